"""What a sampler of landmarks is given, and what it returns.

Conventions: a row of weight 0 is absent. Weights beyond that do not count: a heavy row is not a more
useful landmark for its weight. Where a method costs more than O(1) a row, it works on a random sample
of the rows (``some_rows``), so that its cost depends on the number of landmarks alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from asset_svm.arrays import Array, Matrix
from asset_svm.kernels import Kernel

ROWS_A_LANDMARK = 10
"""Rows that are looked at for each landmark."""
FEWEST_ROWS = 10_000


@dataclass(frozen=True, eq=False)
class Landmarks:
    """The landmarks, and the rows that they were: None where they are no rows."""

    points: Matrix
    indices: Array | None = None

    @classmethod
    def of_rows(cls, X: Matrix, indices: Array) -> Landmarks:
        """The landmarks that are these rows of X, in their order there."""
        indices = np.sort(indices)
        return cls(X[indices], indices)


class Sampler(Protocol):
    """A function that chooses landmarks."""

    def __call__(
        self, X: Matrix, kernel: Kernel, count: int, rng: np.random.Generator, weight: Array | None
    ) -> Landmarks:
        """Choose ``count`` landmarks for the kernel on the rows of X; never a row of weight 0."""


def allowed_rows(X: Matrix, weight: Array | None) -> Array:
    """The numbers of the rows of positive weight."""
    return np.arange(X.shape[0]) if weight is None else np.flatnonzero(weight)


def some_rows(
    X: Matrix, weight: Array | None, at_most: int, rng: np.random.Generator
) -> tuple[Matrix, Array]:
    """At most so many rows of positive weight, drawn at random, and their numbers."""
    allowed = allowed_rows(X, weight)
    if len(allowed) > at_most:
        allowed = np.sort(rng.choice(allowed, size=at_most, replace=False))
    return (X if len(allowed) == X.shape[0] else X[allowed]), allowed


def sample_size(count: int) -> int:
    """How many rows to look at for ``count`` landmarks."""
    return max(ROWS_A_LANDMARK * count, FEWEST_ROWS)
