"""Centres of clusters of a sample of rows as landmarks (``features.clusters``).

Centres of sparse rows would be dense: there the landmark is the row nearest to each centre instead.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from asset_svm.arrays import Array, Matrix
from asset_svm.features.clusters import BLOCK_ROWS, cluster_centres
from asset_svm.features.landmarks.base import Landmarks, sample_size, some_rows
from asset_svm.kernels import DENSE_LANDMARK_BYTES, Kernel, squared_norms


def kmeans_landmarks(
    X: Matrix, kernel: Kernel, count: int, rng: np.random.Generator, weight: Array | None = None
) -> Landmarks:
    """Return ``count`` cluster centres of dense rows; of sparse rows, the rows nearest to them."""
    if sp.issparse(X) and count * X.shape[1] * 8 > DENSE_LANDMARK_BYTES:
        raise ValueError(
            f'landmarks="kmeans" with {count} centres of {X.shape[1]} features does not fit in '
            'memory; set n_components lower or landmarks="uniform".'
        )
    rows, numbers = some_rows(X, weight, sample_size(count), rng)
    if sp.issparse(X):
        centres = cluster_centres(rows, count, rng)
        return Landmarks.of_rows(X, numbers[_nearest_rows(rows, centres, rng)])
    # Moved and scaled, squares of large columns neither cancel nor overflow.
    centre = rows.mean(axis=0, dtype=np.float64)
    moved = rows - centre.astype(rows.dtype)
    size = float(np.abs(moved).max()) or 1.0
    moved /= rows.dtype.type(size)
    centres = cluster_centres(moved, count, rng)
    return Landmarks((centres.astype(np.float64) * size + centre).astype(X.dtype))


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
