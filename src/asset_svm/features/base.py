"""What every feature map phi: R^n -> R^d offers.

A map is a frozen dataclass: ``sample(..., rng)`` draws one, ``evaluator(dtype)`` prepares it for rows
of a type, ``__call__`` applies it. Decisions go through ``decision_weights``: phi(x).coef equals
``basis(x) @ decision_weights(coef)``, where the basis is s kernel values (Nystroem) or phi itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from asset_svm.features.metric import Metric

Array = npt.NDArray[Any]
Matrix = Any
BLOCK_ROWS = 1024
"""Rows mapped at a time where nothing else sets the number."""


class Evaluable(Protocol):
    """Anything that turns rows into features: all that training needs of a map."""

    @property
    def dimension(self) -> int:
        """d, the length of phi(x)."""

    def evaluator(self, dtype: npt.DTypeLike) -> Callable[[Matrix], Array]:
        """A function from a block of rows to its (rows, d) features in ``dtype``."""


class FeatureMap(Evaluable, Protocol):
    """phi, and the cheaper basis that decisions are made of."""

    @property
    def n_features_in(self) -> int:
        """n, the length of x."""

    def find_metric(self, V: Array, weight: Array | None, rng: np.random.Generator) -> Metric:
        """The metric of the data in this map's basis, from a sample V of its features."""

    def in_metric(self, metric: Metric) -> Evaluable:
        """x -> phi(x) T."""

    def basis(self, dtype: npt.DTypeLike) -> Callable[[Matrix], Array]:
        """A function from a block of rows to the values that decisions are linear in."""

    def decision_weights(self, coef: Array) -> Array:
        """(K, d) coefficients of phi to (K, s) weights of the basis."""

    def __call__(self, X: Matrix) -> Array:
        """phi(X), in the type of X."""


def map_in_blocks(function: Callable[[Matrix], Array], X: Matrix, width: int) -> Array:
    """Apply a block function to all rows of X."""
    out = np.empty((X.shape[0], width), dtype=X.dtype)
    for start in range(0, X.shape[0], BLOCK_ROWS):
        out[start : start + BLOCK_ROWS] = function(X[start : start + BLOCK_ROWS])
    return out
