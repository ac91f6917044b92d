"""Centres of clusters as landmarks: Lloyd's algorithm in a bounded number of passes over a sample.

    centres = s rows at random
    a pass:  each row goes to its nearest centre        one matrix product, 2 M s n operations
             each centre moves to the mean of its rows

A centre that loses all its rows stays where it is. Passes end when few rows change their centre; the
first ones do most of the work, and there are at most ``MOST_PASSES``.

Centres of sparse rows would be dense: there the landmark is the row nearest to each centre instead.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from numba import njit

from asset_svm.features.landmarks.base import Landmarks, sample_size, some_rows
from asset_svm.kernels import DENSE_LANDMARK_BYTES, Kernel, squared_norms

Array = npt.NDArray[Any]
Matrix = Any
MOST_PASSES = 8
FEW_CHANGES = 0.02
"""Of the rows: fewer changes end the passes."""
BLOCK_ROWS = 1024


def kmeans_landmarks(
    X: Matrix, kernel: Kernel, count: int, rng: np.random.Generator, weight: Array | None = None
) -> Landmarks:
    """``count`` cluster centres of dense rows; of sparse rows, the rows nearest to them."""
    if sp.issparse(X) and count * X.shape[1] * 8 > DENSE_LANDMARK_BYTES:
        raise ValueError(
            f'landmarks="kmeans" with {count} centres of {X.shape[1]} features does not fit in '
            'memory; set n_components lower or landmarks="uniform".'
        )
    rows, numbers = some_rows(X, weight, sample_size(count), rng)
    if sp.issparse(X):
        centres, _ = _lloyd(rows, count, rng)
        return Landmarks.of_rows(X, numbers[_nearest_rows(rows, centres, rng)])
    # Moved and scaled, squares of large columns neither cancel nor overflow.
    centre = rows.mean(axis=0, dtype=np.float64)
    moved = rows - centre.astype(rows.dtype)
    size = float(np.abs(moved).max()) or 1.0
    moved /= rows.dtype.type(size)
    centres, _ = _lloyd(moved, count, rng)
    return Landmarks((centres.astype(np.float64) * size + centre).astype(X.dtype))


def _lloyd(rows: Matrix, count: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """The centres, and the centre of each row."""
    m, n = rows.shape
    first = rows[np.sort(rng.choice(m, size=count, replace=False))]
    centres = np.asarray(first.toarray() if sp.issparse(first) else first)
    labels = np.full(m, -1)
    for _ in range(MOST_PASSES):
        before, labels = labels, nearest_centres(rows, centres)
        if np.count_nonzero(labels != before) <= FEW_CHANGES * m:
            break
        sizes = np.bincount(labels, minlength=count)
        if sp.issparse(rows):
            member = sp.csr_matrix((np.ones(m), labels, np.arange(m + 1)), shape=(m, count))
            sums = (member.T @ rows).toarray()
        else:
            sums = np.zeros((count, n))
            _add_rows(rows, labels, sums)
        alive = sizes > 0
        centres[alive] = sums[alive] / sizes[alive, None]
    return centres, labels


def nearest_centres(rows: Matrix, centres: Array) -> Array:
    """The nearest centre of each row, in blocks; the first of equally near ones."""
    half = 0.5 * squared_norms(centres).astype(centres.dtype)
    transposed = np.ascontiguousarray(centres.T)
    labels = np.empty(rows.shape[0], dtype=np.int64)
    for start in range(0, rows.shape[0], BLOCK_ROWS):
        closeness = rows[start : start + BLOCK_ROWS] @ transposed
        closeness -= half
        labels[start : start + BLOCK_ROWS] = closeness.argmax(axis=1)
    return labels


def _nearest_rows(rows: Matrix, centres: Array, rng: np.random.Generator) -> Array:
    """The row nearest to each centre, distinct: a centre whose row is taken gets one at random."""
    half = 0.5 * squared_norms(rows).astype(centres.dtype)
    best = np.full(len(centres), -np.inf, dtype=centres.dtype)
    chosen = np.zeros(len(centres), dtype=np.int64)
    transposed = np.ascontiguousarray(centres.T)
    for start in range(0, rows.shape[0], BLOCK_ROWS):
        closeness = rows[start : start + BLOCK_ROWS] @ transposed
        closeness -= half[start : start + BLOCK_ROWS, None]
        winner = closeness.argmax(axis=0)
        value = closeness[winner, np.arange(len(centres))]
        better = value > best
        best[better], chosen[better] = value[better], winner[better] + start
    chosen = np.unique(chosen)
    left = np.setdiff1d(np.arange(rows.shape[0]), chosen)
    return np.concatenate([chosen, rng.choice(left, size=len(centres) - len(chosen), replace=False)])


@njit(cache=True, nogil=True)
def _add_rows(rows: Array, labels: Array, sums: Array) -> None:
    """sums[labels[i]] += rows[i]."""
    for i in range(rows.shape[0]):
        for q in range(rows.shape[1]):
            sums[labels[i], q] += rows[i, q]
