"""The SVM of few rows, exactly: every row is a landmark, and the kernel matrix fits in a cache.

With f = K beta, (PL) times 1/lam and its dual are

    P = 1/2 beta^T K beta + sum_i C_i loss(y_i, f_i),           C_i = w_i / (lam W)
    D = -1/2 beta^T K beta + sum_i y_i beta_i - tube |beta_i| - curvature beta_i^2 / (2 C_i),

with beta in the box of the loss, and its tube (``losses``): 0 <= y_i beta_i <= C_i for the hinge, whose
tube is 0, |beta_i| <= C_i for the epsilon-insensitive loss, where it is epsilon. A loss that has a
curvature adds a ridge to K, which all solvers here are given with it. Each coordinate of D
has its maximum in closed form; sweeps over all of them in random order, with f kept up to date, end
after a few (Hsieh et al. 2008). A visit that changes nothing costs no more than a look at f_i; one that
does, a row of K.

Sweeps are slow where K is ill-conditioned: see ``interior_form``. A free b asks for sum beta = 0,
which they cannot keep: see ``pair_form``. The kernel matrix has no landmarks to be approximated by, so
the solution is (PL)'s own.
"""

from __future__ import annotations

import numpy as np

from asset_svm import clock
from asset_svm.arrays import Array
from asset_svm.losses import Loss, dual_ridge, loop_arguments, scalar_excess
from asset_svm.numerics.compiling import njit
from asset_svm.solvers.row_form import FAST
from asset_svm.threads.team import check_interrupt

LOOK = 1 << 26
"""Entries of K that sweeps may add, some hundredths of a second, between two looks at the clock."""


@njit(cache=True, nogil=True, fastmath=FAST)
def add_row(F: Array, row: Array, a: float) -> None:
    """F += a row."""
    factor = F.dtype.type(a)
    for k in range(F.shape[0]):
        F[k] += factor * row[k]


@njit(cache=True, nogil=True)
def shuffle(order: Array, seed: int) -> int:
    """Fisher and Yates, by a linear congruential generator; returns its state."""
    state = seed
    for k in range(order.shape[0] - 1, 0, -1):
        state = (state * 1103515245 + 12345) % 2147483648
        r = (state >> 8) % (k + 1)
        order[k], order[r] = order[r], order[k]
    return state


def solve_cell(
    K: Array,
    y: Array,
    cost: Array,
    loss: Loss,
    tol: float,
    most: int,
    budget: float,
    seed: int,
    beta: Array,
    F: Array,
    deadline: float = np.inf,
) -> tuple[int, float, float]:
    """Maximise D, without intercept, over the box of the loss; beta and F = K beta change in place.

    Parameters
    ----------
    K : array of shape (m, m)
        With the ridge of the loss on its diagonal, and so is F.
    cost : array of shape (m,)
        C_i.
    tol : float
        Sweeps end when P - D <= tol P.
    most : int
        Sweeps at most.
    budget : float
        Changes of a beta, after which no new sweep begins.
    deadline : float
        Of ``clock.now``, looked at now and then.

    Returns
    -------
    sweeps
    P, D
        At the end.
    """
    (low, high), ridge = loss.box(y, cost), dual_ridge(loss, cost)
    order, sweeps, moves = np.arange(len(y)), 0, 0
    diagonal = np.maximum(np.diagonal(K).astype(np.float64), 1e-12)
    between = max(LOOK // max(len(y), 1) ** 2, 1)
    while True:
        limit = min(sweeps + between, most)
        sweeps, moves, seed, primal, dual = sweep(
            K, y, cost, low, high, *loop_arguments(loss), loss.tube, ridge, tol, limit, budget, seed,
            order, beta, F, sweeps, moves, diagonal,
        )  # fmt: skip
        if sweeps < limit or limit == most or clock.now() > deadline:
            return sweeps, primal, dual
        check_interrupt()


@njit(cache=True, nogil=True)
def sweep(
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
    budget: float,
    seed: int,
    order: Array,
    beta: Array,
    F: Array,
    sweeps: int,
    moves: int,
    diagonal: Array,
) -> tuple[int, int, int, float, float]:
    """``solve_cell`` from the given numbers of sweeps and changes on: they, the seed, P and D."""
    m = y.shape[0]
    while True:
        primal, dual = values(y, cost, code, parameter, tube, ridge, beta, F)
        if sweeps >= most or moves > budget or (sweeps > 0 and primal - dual <= tol * primal):
            break
        seed = shuffle(order, seed)
        for k in range(m):
            i = order[k]
            new = best(beta[i], F[i] - y[i], 1.0 / diagonal[i], tube, low[i], high[i])
            moved = new - beta[i]
            if moved != 0.0:
                beta[i] = new
                moves += 1
                add_row(F, K[i], moved)
        sweeps += 1
    return sweeps, moves, seed, primal, dual


@njit(cache=True, nogil=True, inline="always")
def best(beta: float, slope: float, step: float, tube: float, low: float, high: float) -> float:
    """Where a coordinate has its maximum, ``slope`` being F_i - y_i and ``step`` 1 / K_ii."""
    new = beta - slope * step
    if tube > 0.0:
        new = np.sign(new) * max(abs(new) - tube * step, 0.0)
    return min(max(new, low), high)


@njit(cache=True, nogil=True)
def values(
    y: Array,
    cost: Array,
    code: int,
    parameter: float,
    tube: float,
    ridge: Array,
    beta: Array,
    F: Array,
) -> tuple[float, float]:
    """P and D at a beta."""
    primal, dual, square, bent = 0.0, 0.0, 0.0, 0.0
    for i in range(y.shape[0]):
        f = F[i] - ridge[i] * beta[i]
        square += beta[i] * F[i]
        bent += ridge[i] * beta[i] * beta[i]
        primal += cost[i] * max(scalar_excess(code, parameter, y[i], f), 0.0)
        dual += y[i] * beta[i] - tube * abs(beta[i])
    return primal + 0.5 * (square - bent), dual - 0.5 * square
