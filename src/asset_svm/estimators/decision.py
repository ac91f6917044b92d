"""Decisions basis(X) weights^T + intercept: s kernel values (or d features), no support vector."""

from __future__ import annotations

from typing import Any

import numpy as np

from asset_svm.exceptions import NonFiniteError
from asset_svm.features.base import BLOCK_ROWS


class Decision:
    """The decision function of K models.

    Parameters
    ----------
    source : object with ``basis(dtype)``
        A feature map, or a kernel with its landmarks.
    weights : array of shape (K, s)
    intercept : array of shape (K,)
    """

    def __init__(self, source: Any, weights: np.ndarray, intercept: np.ndarray):
        self.source, self.weights, self.intercept = source, weights, intercept
        self._prepared: dict[np.dtype, Any] = {}

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_prepared": {}}

    def __call__(self, X: Any) -> np.ndarray:
        """The (rows, K) decisions; sums in float64, the result in the type of X."""
        basis = self._prepared.get(X.dtype)
        if basis is None:
            basis = self._prepared[X.dtype] = self.source.basis(X.dtype)
        out = np.empty((X.shape[0], len(self.weights)), dtype=X.dtype)
        for start in range(0, X.shape[0], BLOCK_ROWS):
            with np.errstate(over="ignore", invalid="ignore"):  # found and told below
                block = basis(X[start : start + BLOCK_ROWS])
                out[start : start + BLOCK_ROWS] = block @ self.weights.T + self.intercept
        if not np.isfinite(out).all():
            raise NonFiniteError(
                f"The decision of row {int(np.argmin(np.isfinite(out).all(axis=1)))} is not finite: "
                "its values are too large for the kernel; scale the columns as in training."
            )
        return out
