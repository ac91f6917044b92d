"""Squared norms of rows, and the gamma that suits their scale."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from asset_svm.arrays import Array, Matrix
from asset_svm.kernels.formula import Formula


def squared_norms(X: Matrix) -> Array:
    """|x|^2 of every row, in float64."""
    if sp.issparse(X):
        return np.asarray(X.astype(np.float64).power(2).sum(axis=1)).ravel()
    X = np.asarray(X, dtype=np.float64)
    norms: Array = np.einsum("ij,ij->i", X, X)
    return norms


def scale_gamma(X: Matrix, weight: Array | None = None, formula: type[Formula] = Formula) -> float:
    """``gamma="scale"``: SVC's 1 / (n Var X), or, where gamma is one over a length, its root.

    The variance is that of all entries, weighted by row. A weight of k counts as k copies of the row,
    so that both give the same kernel. 1 where all entries are alike.
    """
    m, n = X.shape
    w = np.full(m, 1.0 / m) if weight is None else weight / weight.sum()
    shift = 0.0
    if sp.issparse(X):
        first = float(w @ np.asarray(X.sum(axis=1), dtype=np.float64).ravel()) / n
        second = float(w @ squared_norms(X)) / n
    else:
        # Moments about one entry: an offset common to all entries does not cancel the variance away.
        shift = float(X[0, 0])
        first = second = 0.0
        for start in range(0, m, 4096):
            block = np.asarray(X[start : start + 4096], dtype=np.float64) - shift
            part = w[start : start + 4096]
            first += float(part @ block.sum(axis=1)) / n
            second += float(part @ np.einsum("ij,ij->i", block, block)) / n
    variance = second - first * first
    floor = 1e-14 * second
    return formula.gamma_of(n * variance) if variance > floor else 1.0
