"""Rows drawn by approximate ridge leverage scores l_i = (K (K + rho I)^(-1))_ii.

With s0 pilot landmarks at random, delta = rho s0 / m and K_00 = Q D Q^T (Musco and Musco's estimate):

    l_i ~ (k_ii - k_i0 (K_00 + delta I)^(-1) k_0i) / rho
        = (k_ii - sum_q v_iq^2 D_q / (D_q + delta)) / rho

with v the Nystroem features of the pilot. rho is such that the scores of all rows sum up to s, the
number of landmarks: then l_i is how much of a landmark row i deserves.

Cost: M (s0 n + s0^2) for M rows looked at, with s0 at most ``PILOT``.
"""

from __future__ import annotations

import numpy as np
import scipy.linalg as la

from asset_svm.arrays import Array, Matrix
from asset_svm.features.landmarks.base import Landmarks, sample_size, some_rows
from asset_svm.features.landmarks.scored import draw_by_scores
from asset_svm.kernels import Kernel
from asset_svm.threads.blas import few_threads

PILOT = 1024
BLOCK_ROWS = 1024
BISECTIONS = 60


def leverage_landmarks(
    X: Matrix, kernel: Kernel, count: int, rng: np.random.Generator, weight: Array | None = None
) -> Landmarks:
    """Choose ``count`` distinct rows in proportion to their scores."""
    rows, numbers = some_rows(X, weight, sample_size(count), rng)
    s = min(PILOT, count)
    pilot = rows[np.sort(rng.choice(len(numbers), size=s, replace=False))]
    scores = leverage_scores(rows, kernel, count, pilot)
    return Landmarks.of_rows(X, numbers[draw_by_scores(scores, count, rng)])


def leverage_scores(X: Matrix, kernel: Kernel, total: int, pilot: Matrix) -> Array:
    """Approximate scores of the rows of X, in [0, 1], of the rho at which they sum up to ``total``."""
    m, s = X.shape[0], pilot.shape[0]
    diagonal, gram = np.maximum(kernel.diagonal(X), 0.0), kernel(pilot, pilot)
    trace = float(diagonal.sum())
    if not (0.0 < trace < np.inf and np.isfinite(gram).all()):  # told of when the map is made
        return np.ones(m)
    with few_threads(s):
        values, vectors = la.eigh(gram, check_finite=False)
    kept = values > s * np.finfo(X.dtype).eps * values[-1]
    values, vectors = values[kept], vectors[:, kept]
    projection = (vectors / np.sqrt(values)).astype(X.dtype)
    against = kernel.against(pilot, X.dtype)
    squares = np.empty((m, len(values)), dtype=X.dtype)
    for start in range(0, m, BLOCK_ROWS):
        squares[start : start + BLOCK_ROWS] = (against(X[start : start + BLOCK_ROWS]) @ projection) ** 2
    along = squares.sum(axis=0, dtype=np.float64)

    def excess(rho: float) -> float:
        return (trace - along @ (values / (values + rho * s / m))) / rho - total

    # The sum falls from infinity, or m, to 0 as rho grows from 0; trace / total makes it too small.
    low, high = 1e-12 * trace / total, trace / total
    for _ in range(BISECTIONS):
        middle = float(np.sqrt(low * high))
        low, high = (middle, high) if excess(middle) > 0.0 else (low, middle)
    weights = (values / (values + high * s / m)).astype(X.dtype)
    return np.clip((diagonal - squares @ weights) / high, 0.0, 1.0)
