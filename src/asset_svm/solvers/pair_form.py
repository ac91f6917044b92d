"""The dual of ``exact_form`` with a free b, which asks for sum beta = 0: two coordinates at a time.

With r = y - K beta, moving t from beta_j to beta_i changes D at the rate up_i - down_j, where

    up_i   = r_i - tube (beta_i >= 0, else + tube)      -infinity at the upper end of the box
    down_j = r_j - tube (beta_j > 0, else + tube)       +infinity at the lower end

and, at the optimum, max up <= b <= min down. A step takes i = argmax up, and of all j with
down_j < up_i the one with the largest gain (up_i - down_j)^2 / (K_ii + K_jj - 2 K_ij) (Fan, Chen and
Lin 2005), to the maximum along t, the end of the box or the kink at 0. Two rows of K are all that it
reads: where few rows are support vectors, as with many classes, few steps end it. They are many where
K is ill-conditioned: see ``interior_form``. Where D is not concave (``numerics.definite``), P = D at
any of its stationary points, and steps that end say nothing.
"""

from __future__ import annotations

import numpy as np

from asset_svm import clock
from asset_svm.arrays import Array
from asset_svm.losses import Loss, dual_ridge, loop_arguments, scalar_excess
from asset_svm.numerics.compiling import njit
from asset_svm.threads.team import check_interrupt

LOOK = 1 << 24
"""Entries of K that steps may read, some hundredths of a second, between two looks at the clock."""
BETWEEN = 32
"""Steps between two looks at the gap, which cost as much as one of them."""
PIECE = 256
"""Rows of which the best value alone is found, by vector instructions; its place is looked for in the
best piece."""
FLAT = 1e-12
"""The least curvature along a pair, as LIBSVM has it."""
FAST = {"reassoc", "contract", "nnan", "nsz"}


def solve_pairs(
    K: Array,
    y: Array,
    cost: Array,
    loss: Loss,
    tol: float,
    most: int,
    beta: Array,
    r: Array,
    deadline: float = np.inf,
) -> int:
    """Maximise D over the box of the loss and sum beta = 0; beta and r = y - K beta change in place.

    Parameters
    ----------
    K : array of shape (m, m)
        With the ridge of the loss on its diagonal.
    cost : array of shape (m,)
        C_i.
    tol : float
        Steps end when P - D <= tol P, at the b in the middle of max up and min down.
    most : int
        Steps at most.
    r : array of shape (m,)
        In float64, whatever the type of K.
    deadline : float
        Of ``clock.now``, looked at now and then.

    Returns
    -------
    steps
    """
    m, steps, ended = len(y), 0, False
    (low, high), ridge = loss.box(y, cost), dual_ridge(loss, cost)
    diagonal = np.diagonal(K).astype(np.float64)
    up, down = np.empty(m), np.empty(m)
    between = max(LOOK // max(m, 1), BETWEEN)
    while True:
        limit = min(steps + between, most)
        steps, ended = _step(
            K, y, cost, low, high, *loop_arguments(loss), loss.tube, ridge, tol, limit, steps,
            beta, r, diagonal, up, down,
        )  # fmt: skip
        if ended or limit == most or clock.now() > deadline:
            return steps
        check_interrupt()


@njit(cache=True, nogil=True, inline="always")
def _slopes(k: int, beta: Array, low: Array, high: Array, tube: float, up: Array, down: Array) -> None:
    """Set what is taken from r_k for up_k and down_k."""
    up[k] = np.inf if beta[k] >= high[k] else (tube if beta[k] >= 0.0 else -tube)
    down[k] = -np.inf if beta[k] <= low[k] else (tube if beta[k] > 0.0 else -tube)


@njit(cache=True, nogil=True, fastmath=FAST)
def _largest(r: Array, less: Array) -> float:
    best = -np.inf
    for k in range(r.shape[0]):
        value = r[k] - less[k]
        best = value if value > best else best
    return best


@njit(cache=True, nogil=True, fastmath=FAST)
def _smallest(r: Array, less: Array) -> float:
    best = np.inf
    for k in range(r.shape[0]):
        value = r[k] - less[k]
        best = value if value < best else best
    return best


@njit(cache=True, nogil=True, fastmath=FAST)
def _gain(r: Array, less: Array, top: float, own: float, row: Array, diagonal: Array) -> float:
    best = 0.0
    for k in range(r.shape[0]):
        slope = top - (r[k] - less[k])
        curve = own + diagonal[k] - 2.0 * row[k]
        curve = curve if curve > FLAT else FLAT
        slope = slope if slope > 0.0 else 0.0
        value = slope * slope / curve
        best = value if value > best else best
    return best


@njit(cache=True, nogil=True, fastmath=FAST)
def _take(r: Array, t: float, first: Array, second: Array) -> None:
    for k in range(r.shape[0]):
        r[k] -= t * (np.float64(first[k]) - np.float64(second[k]))


@njit(cache=True, nogil=True)
def _gap(
    y: Array,
    cost: Array,
    code: int,
    parameter: float,
    tube: float,
    ridge: Array,
    beta: Array,
    r: Array,
    b: float,
) -> tuple[float, float]:
    """Return P - D and P."""
    square, bent, primal, dual = 0.0, 0.0, 0.0, 0.0
    for i in range(y.shape[0]):
        f = y[i] - r[i]
        square += beta[i] * f
        bent += ridge[i] * beta[i] * beta[i]
        f += b - ridge[i] * beta[i]
        primal += cost[i] * max(scalar_excess(code, parameter, y[i], f), 0.0)
        dual += y[i] * beta[i] - tube * abs(beta[i])
    return primal + (square - 0.5 * bent) - dual, primal + 0.5 * (square - bent)


@njit(cache=True, nogil=True)
def _step(
    K: Array,
    y: Array,
    cost: Array,
    low: Array,
    high: Array,
    code: int,
    parameter: float,
    tube: float,
    ridge: Array,
    tol: float,
    most: int,
    steps: int,
    beta: Array,
    r: Array,
    diagonal: Array,
    up: Array,
    down: Array,
) -> tuple[int, bool]:
    """``solve_pairs`` from the given number of steps on: it, and whether nothing is left to do."""
    m = y.shape[0]
    for k in range(m):
        _slopes(k, beta, low, high, tube, up, down)
    while True:
        top, place = -np.inf, 0
        for start in range(0, m, PIECE):
            value = _largest(r[start : start + PIECE], up[start : start + PIECE])
            if value > top:
                top, place = value, start
        if steps % BETWEEN == 0:
            bottom = _smallest(r, down)
            if not top - bottom > 0.0:
                return steps, True
            gap, primal = _gap(y, cost, code, parameter, tube, ridge, beta, r, 0.5 * (top + bottom))
            if gap <= tol * primal:
                return steps, True
        if steps >= most:
            return steps, False
        i = place
        while r[i] - up[i] < top:
            i += 1
        row, own = K[i], diagonal[i]
        best, place = 0.0, -1
        for start in range(0, m, PIECE):
            end = start + PIECE
            value = _gain(r[start:end], down[start:end], top, own, row[start:end], diagonal[start:end])
            if value > best:
                best, place = value, start
        if place < 0:
            return steps, True
        j, found = -1, -1.0
        for k in range(place, min(place + PIECE, m)):
            slope = top - (r[k] - down[k])
            if slope > 0.0:
                value = slope * slope / max(own + diagonal[k] - 2.0 * row[k], FLAT)
                if value > found:
                    j, found = k, value
        slope, curve = top - (r[j] - down[j]), max(own + diagonal[j] - 2.0 * row[j], FLAT)
        end_i = 0.0 if tube > 0.0 and beta[i] < 0.0 else high[i]
        end_j = 0.0 if tube > 0.0 and beta[j] > 0.0 else low[j]
        t = min(slope / curve, end_i - beta[i], beta[j] - end_j)
        beta[i] = end_i if t == end_i - beta[i] else beta[i] + t
        beta[j] = end_j if t == beta[j] - end_j else beta[j] - t
        _slopes(i, beta, low, high, tube, up, down)
        _slopes(j, beta, low, high, tube, up, down)
        _take(r, t, row, K[j])
        steps += 1
