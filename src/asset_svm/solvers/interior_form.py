"""The dual of ``exact_form`` by an interior-point method: for ill-conditioned kernels, and a free b.

beta = u - v with 0 <= u, v <= C_i (one of them is 0 throughout for the hinge). The barrier's Newton
steps, predictor and corrector (Mehrotra 1992), reduce to one matrix for both,

    (K + E) d_beta + d_b = r,    sum d_beta = -sum beta    (the last where there is an intercept),

with E diagonal and positive: a Cholesky factor of the order of the cell. A dozen or two of them end
in a solution to any accuracy, however ill-conditioned K is.
"""

from __future__ import annotations

import numpy as np
import scipy.linalg as la

from asset_svm import clock
from asset_svm.arrays import Array
from asset_svm.losses import Loss
from asset_svm.threads.team import check_interrupt

MOST_STEPS = 80
BACK = 0.995
"""The part of the way to the nearest bound that a step goes."""


def solve_interior(
    K: Array,
    y: Array,
    cost: Array,
    loss: Loss,
    tol: float,
    *,
    intercept: bool,
    deadline: float = np.inf,
) -> tuple[Array, int]:
    """(beta, steps) with a duality gap of at most ``tol`` times the primal value.

    The gap is that of the barrier's own pair of points. Where rounding ends the run before, as with
    enormous C, or ``deadline`` (of ``clock.now``) does, or the kernel is not positive
    definite, beta is the last point that was reached.
    """
    m, (low, high) = len(y), loss.box(y, cost)
    jitter = float(np.finfo(K.dtype).eps * np.sqrt(m) * np.abs(np.diagonal(K)).mean())
    K = K.astype(np.float64)
    signs = np.concatenate([np.ones(m), -np.ones(m)])
    upper = np.concatenate([high, -low])
    there = np.flatnonzero(upper > 0.0)  # the sides that a row has
    row, sign, upper = there % m, signs[there], upper[there]
    a, s, t = 0.5 * upper, np.ones(len(there)), np.ones(len(there))
    b = 0.0
    steps = 0
    while True:
        check_interrupt()
        beta = np.bincount(row, sign * a, m)
        F = K @ beta
        residual = sign * (F[row] + b - y[row]) + loss.tube - s + t
        imbalance = float(beta.sum()) if intercept else 0.0
        gap = float(a @ s + (upper - a) @ t)
        # C_i loss_i = C_i max(..., 0) of the better of a row's sides; t is that loss in the limit.
        primal = 0.5 * float(beta @ F) + float(upper @ np.maximum(t, 0.0))
        off = float(np.abs(residual) @ upper) + abs(imbalance * b)
        if (gap + off <= tol * primal and steps > 0) or steps >= MOST_STEPS:
            return beta, steps
        inside = bool((a > 0.0).all() and (a < upper).all())  # rounding may put a point on the wall
        if not inside or clock.now() > deadline:
            return beta, steps
        theta = s / a + t / (upper - a)
        inverse = np.bincount(row, 1.0 / theta, m)
        factor = _factored(K, 1.0 / np.maximum(inverse, 1e-300), jitter)
        if factor is None or not np.isfinite(gap):
            return beta, steps
        mean = gap / (2 * len(a))

        def direction(
            low_goal: Array, high_goal: Array, a: Array = a, s: Array = s, t: Array = t,
            theta: Array = theta, inverse: Array = inverse, factor: Array = factor,
            residual: Array = residual, imbalance: float = imbalance,
        ) -> tuple[Array, Array, Array, float]:  # fmt: skip
            """Newton's step towards a s = low_goal, (upper - a) t = high_goal."""
            right = -residual + (low_goal / a - s) - (high_goal / (upper - a) - t)
            r = np.bincount(row, sign * right / theta, m) / inverse
            d_beta, d_b = _solved(factor, r), 0.0
            if intercept:
                ones = _solved(factor, np.ones(m))
                d_b = float((d_beta.sum() + imbalance) / ones.sum())
                d_beta = d_beta - d_b * ones
            q = r - d_beta / inverse  # K d_beta + d_b
            d_a = (right - sign * q[row]) / theta
            d_s = low_goal / a - s - s / a * d_a
            d_t = high_goal / (upper - a) - t + t / (upper - a) * d_a
            return d_a, d_s, d_t, d_b

        zero = np.zeros(len(a))
        d_a, d_s, d_t, d_b = direction(zero, zero)
        length = _length((a, d_a), (upper - a, -d_a), (s, d_s), (t, d_t))
        ahead = float((a + length * d_a) @ (s + length * d_s))
        ahead += float((upper - a - length * d_a) @ (t + length * d_t))
        centre = mean * (ahead / gap) ** 3
        d_a, d_s, d_t, d_b = direction(centre - d_a * d_s, centre + d_a * d_t)
        length = min(1.0, BACK * _length((a, d_a), (upper - a, -d_a), (s, d_s), (t, d_t)))
        a, s, t, b = a + length * d_a, s + length * d_s, t + length * d_t, b + length * d_b
        steps += 1


def _factored(K: Array, diagonal: Array, jitter: float) -> Array | None:
    """Cholesky's factor of K + diag(diagonal), and of K moved by what rounding may have taken."""
    for extra in (0.0, jitter, 10.0 * jitter, 100.0 * jitter):
        A = K.copy()
        A[np.diag_indices(len(A))] += diagonal + extra
        factor, failed = la.lapack.dpotrf(A, lower=1, overwrite_a=1)
        if not failed:
            return np.asarray(factor)
    return None


def _solved(factor: Array, right: Array) -> Array:
    return np.asarray(la.lapack.dpotrs(factor, right, lower=1)[0])


def _length(*pairs: tuple[Array, Array]) -> float:
    """The longest step up to 1 / BACK that leaves every value positive."""
    return min(1.0 / BACK, *(float(np.min(-x[d < 0] / d[d < 0], initial=np.inf)) for x, d in pairs))
