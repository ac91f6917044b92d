"""Randomly pivoted Cholesky: each pivot drawn in proportion to what the ones before leave of k(x, x).

For the residual R = K - F^T F of the rows looked at, with d = diag R (Epperly, Tropp and Webber's
accelerated form: the distribution of the pivots is that of one draw at a time):

    draw b candidates in proportion to d                       with replacement
    H = R restricted to them                                   b x b
    in their order: accept candidate i with probability H_ii / d_i, and if so
        eliminate it from H                                    one step of a Cholesky factorisation
    append the accepted to F by matrix products, d -= their squares

A candidate that resembles an accepted one has H_ii far below d_i and is rejected. Cost: M s kernel
values and M s^2 operations, for M rows looked at. sum d is at any time the trace of K minus its
Nystroem approximation from the accepted pivots.
"""

from __future__ import annotations

import numpy as np
import scipy.linalg as la

from asset_svm.arrays import Array, Matrix
from asset_svm.features.landmarks.base import Landmarks, sample_size, some_rows
from asset_svm.kernels import Kernel
from asset_svm.numerics.compiling import njit

FACTOR_BYTES = 1 << 30
"""Fewer rows are looked at where F would take more, yet at least two a landmark."""
CANDIDATES = 128


def rpcholesky_landmarks(
    X: Matrix, kernel: Kernel, count: int, rng: np.random.Generator, weight: Array | None = None
) -> Landmarks:
    """Choose ``count`` distinct rows; at random beyond the numerical rank of the kernel matrix."""
    fitting = FACTOR_BYTES // (count * X.dtype.itemsize)
    rows, numbers = some_rows(X, weight, max(min(sample_size(count), fitting), 2 * count), rng)
    pivots, _ = cholesky_pivots(rows, kernel, count, rng)
    left = np.setdiff1d(np.arange(len(numbers)), pivots)
    rest = rng.choice(left, size=count - len(pivots), replace=False)
    return Landmarks.of_rows(X, numbers[np.concatenate([pivots, rest])])


def cholesky_pivots(
    X: Matrix, kernel: Kernel, count: int, rng: np.random.Generator, candidates: int = CANDIDATES
) -> tuple[Array, Array]:
    """At most ``count`` pivots, in the order of their choice, and the residual diagonal d.

    Fewer where what is left of the trace is rounding error.
    """
    m, dtype = X.shape[0], np.dtype(X.dtype)
    against = kernel.against(X, dtype)
    diagonal = np.maximum(kernel.diagonal(X), 0.0)
    if not np.isfinite(diagonal).all():  # told of when the map is made
        diagonal[:] = 0.0
    noise = 10.0 * float(np.finfo(dtype).eps) * diagonal
    residual = diagonal.copy()
    factor = np.empty((count, m), dtype=dtype)
    pivots = np.empty(count, dtype=np.int64)
    done = 0
    while done < count and residual.any():
        cumulative = np.cumsum(residual)
        draws = rng.random(min(candidates, count)) * cumulative[-1]
        drawn = np.minimum(np.searchsorted(cumulative, draws, side="right"), m - 1)
        ahead = factor[:done, drawn].astype(np.float64)
        H = kernel(X[drawn], X[drawn]) - ahead.T @ ahead
        exact = H.diagonal().copy()
        accepted = _accept(H, residual[drawn], rng.random(len(drawn)), count - done)
        # What rounding left of a row too much is corrected: no row is drawn in vain for ever.
        residual[drawn] = np.where(exact > noise[drawn], np.minimum(residual[drawn], exact), 0.0)
        if not len(accepted):
            continue
        chosen = drawn[accepted]
        rows = against(X[chosen]) - factor[:done, chosen].T @ factor[:done]
        # H now holds the Cholesky factor of the accepted in its lower triangle.
        lower = H[np.ix_(accepted, accepted)]
        rows = la.solve_triangular(lower.astype(dtype), rows, lower=True, check_finite=False)
        upto = done + len(chosen)
        factor[done:upto], pivots[done:upto] = rows, chosen
        residual -= np.einsum("ij,ij->j", rows, rows, dtype=np.float64)
        residual[residual <= noise] = 0.0
        residual[pivots[:upto]] = 0.0
        done = upto
    return pivots[:done], residual


@njit(cache=True, nogil=True)
def _accept(H: Array, bound: Array, luck: Array, most: int) -> Array:
    """Rejection: the accepted positions, at most so many; H becomes their Cholesky factor."""
    b = len(bound)
    accepted = np.empty(b, dtype=np.int64)
    k = 0
    for i in range(b):
        if k == most:
            break
        if H[i, i] <= 0.0 or luck[i] * bound[i] >= H[i, i]:
            continue
        root = np.sqrt(H[i, i])
        H[i, i] = root
        for j in range(i + 1, b):
            H[j, i] /= root
        for j in range(i + 1, b):
            for p in range(i + 1, j + 1):
                H[j, p] -= H[j, i] * H[p, i]
        accepted[k] = i
        k += 1
    return accepted[:k]
