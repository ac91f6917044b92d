"""Blocks: the steps that are prepared together, and the rows behind them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from asset_svm.arrays import Array
from asset_svm.problem import RowProducts
from asset_svm.solvers.average import NEVER


@dataclass(frozen=True)
class Cut:
    """Where blocks begin and end, a function of the step index alone.

    Parameters
    ----------
    size : int
        Steps of a block.
    until, later : int
        From step ``until`` on, blocks have ``later`` steps.
    """

    size: int
    until: int = NEVER
    later: int = 0

    @property
    def longest(self) -> int:
        """The steps of the longest block."""
        return max(self.size, self.later)

    def around(self, position: int) -> tuple[int, int]:
        """Return [first, end) of the block of this step."""
        if position < self.until:
            first = position - position % self.size
            return first, min(first + self.size, self.until)
        first = position - (position - self.until) % self.later
        return first, first + self.later


class MappedRows(Protocol):
    """Rows of V, wherever they come from."""

    @property
    def dimension(self) -> int:
        """The number d of features."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the rows of V."""

    @property
    def in_memory(self) -> bool:
        """Whether all of them lie there, so that ``fetch`` has nothing to do."""

    def fetch(self, rows: Array) -> tuple[Array, Array]:
        """A matrix V and positions in it, such that V[positions, :d] are phi of these rows."""


def fetching_threads(rows: MappedRows) -> int | None:
    """How many threads may fetch rows side by side; None: as many as are granted."""
    return None if rows.in_memory or getattr(rows, "reentrant", False) else 1


class RowBlock(RowProducts, Protocol):
    """Some mapped rows."""

    def margins(self, coef: Array) -> Array:
        """V coef^T, of shape (K, B), with sums in the type of the rows."""


class BlockRows(MappedRows, Protocol):
    """Rows that are opened a block at a time."""

    @property
    def look_size(self) -> int:
        """How many rows to open at a time where all of them are looked at."""

    @property
    def looks_ahead(self) -> int:
        """How many blocks should be announced by ``expect`` before they are opened."""

    def is_shared(self) -> bool:
        """Whether several threads may open blocks at a time; what was announced is finished first."""

    def expect(self, rows: Array) -> None:
        """Tell that this block is opened soon, after those that were announced before it."""

    def open(self, rows: Array) -> RowBlock:
        """Return a block of these rows."""
