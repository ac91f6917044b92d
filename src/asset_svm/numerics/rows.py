"""Blocks of rows: moved and scaled with their squared norms, transposed, and summed with weights."""

from __future__ import annotations

import numpy as np

from asset_svm.arrays import Array
from asset_svm.numerics.compiling import njit
from asset_svm.numerics.elementwise import FAST

TILE_ROWS, TILE_COLUMNS = 8, 64
FEW_MODELS = 4
"""Sums for so many models, or fewer, are faster than a copy of the rows in float64."""


@njit(cache=True, nogil=True, fastmath=FAST)
def moved_rows(X: Array, shift: Array, factor: float, out: Array, norms: Array) -> None:
    """out = (X - shift) factor, rounded to the type of out, and norms = |out|^2 of every row."""
    for i in range(X.shape[0]):
        total = 0.0
        for q in range(X.shape[1]):
            out[i, q] = (X[i, q] - shift[q]) * factor
            total += np.float64(out[i, q]) * np.float64(out[i, q])
        norms[i] = total


@njit(cache=True, nogil=True, fastmath=FAST)
def moved_columns(
    X: Array, shift: Array, factor: float, columns: Array, out: Array, norms: Array
) -> None:
    """As ``moved_rows``, but only these columns are written; norms are those of whole rows."""
    for i in range(X.shape[0]):
        total = 0.0
        for q in range(X.shape[1]):
            moved = out.dtype.type((X[i, q] - shift[q]) * factor)
            total += np.float64(moved) * np.float64(moved)
        norms[i] = total
        for t in range(columns.shape[0]):
            q = columns[t]
            out[i, t] = (X[i, q] - shift[q]) * factor


@njit(cache=True, nogil=True)
def transpose_into(A: Array, out: Array) -> None:
    """out = A^T, in tiles of few rows, which lie in one set of a cache where rows are 2^k long.

    1024 x 2048 numbers take 3.0 ms on the machine at hand, numpy's assignment 7.7.
    """
    for top in range(0, A.shape[0], TILE_ROWS):
        bottom = min(top + TILE_ROWS, A.shape[0])
        for left in range(0, A.shape[1], TILE_COLUMNS):
            for j in range(left, min(left + TILE_COLUMNS, A.shape[1])):
                for i in range(top, bottom):
                    out[j, i] = A[i, j]


@njit(cache=True, nogil=True, fastmath=FAST)
def set_weighted(rows: Array, weights: Array, out: Array) -> None:
    """out = rows weights^T, by as many columns of rows as there are weights, with sums in float64."""
    for i in range(rows.shape[0]):
        for k in range(weights.shape[0]):
            total = 0.0
            for j in range(weights.shape[1]):
                total += np.float64(rows[i, j]) * weights[k, j]
            out[i, k] = total


def weighted_sums(rows: Array, weights: Array) -> Array:
    """rows weights^T with sums in float64, whatever the type of the rows; weights in float64."""
    if len(weights) > FEW_MODELS or rows.dtype == np.float64:
        return np.asarray(rows @ weights.T)
    out = np.empty((len(rows), len(weights)))
    set_weighted(rows, weights, out)
    return out
