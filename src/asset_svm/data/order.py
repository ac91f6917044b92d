"""In which order the rows are visited: a pure function of the step index.

``rows(start, stop)`` gives the row of each step in [start, stop), steps counted from 0. Nothing is
remembered between calls, so a run can be cut anywhere and resumed with the same order.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from asset_svm.arrays import Array

PAGE = 1 << 16


class Order(Protocol):
    """A function from steps to rows."""

    @property
    def n_rows(self) -> int:
        """The number of rows that steps refer to: an epoch."""

    def rows(self, start: int, stop: int) -> Array:
        """The row of each step in [start, stop)."""


@dataclass
class _Paged:
    """Draws made a page at a time, each page from its own seed; the last two are kept."""

    n_rows: int
    seed: int
    page_size: int = PAGE
    _kept: dict[int, Array] = field(default_factory=dict, init=False, repr=False)

    def _draw(self, rng: np.random.Generator) -> Array:
        raise NotImplementedError

    def _page(self, number: int) -> Array:
        if number not in self._kept:
            rng = np.random.Generator(np.random.PCG64(np.random.SeedSequence([self.seed, number])))
            self._kept = {**dict(list(self._kept.items())[-1:]), number: self._draw(rng)}
        return self._kept[number]

    def rows(self, start: int, stop: int) -> Array:
        """The row of each step in [start, stop)."""
        parts = []
        while start < stop:
            number, offset = divmod(start, self.page_size)
            upto = min(stop, (number + 1) * self.page_size)
            parts.append(self._page(number)[offset : offset + upto - start])
            start = upto
        return np.concatenate(parts) if parts else np.empty(0, dtype=np.int64)


class UniformOrder(_Paged):
    """Rows with replacement, equally likely (the paper's) or in proportion to their weights."""

    def __init__(self, n_rows: int, seed: int, weight: Array | None = None):
        super().__init__(n_rows, seed)
        self._cumulative = None if weight is None else np.cumsum(weight) / np.sum(weight)

    def _draw(self, rng: np.random.Generator) -> Array:
        if self._cumulative is None:
            return rng.integers(0, self.n_rows, size=PAGE)
        drawn = np.searchsorted(self._cumulative, rng.random(PAGE), side="right")
        return np.minimum(drawn, self.n_rows - 1)


class ShuffledOrder(_Paged):
    """Every row once an epoch, each epoch in a new random order."""

    def __init__(self, n_rows: int, seed: int):
        super().__init__(n_rows, seed, page_size=n_rows)

    def _draw(self, rng: np.random.Generator) -> Array:
        return rng.permutation(self.n_rows)


@dataclass(frozen=True)
class GivenOrder:
    """Rows are visited as they stand, over and over."""

    n_rows: int

    def rows(self, start: int, stop: int) -> Array:
        """The row of each step in [start, stop)."""
        return np.arange(start, stop, dtype=np.int64) % self.n_rows
