"""``exact_form`` of several models of a cell at once: each row of K is read once for all of them.

Models sweep abreast, in the order that each would have by itself, so that what one of them does
concerns no other: a model is the same bit for bit whichever are beside it. What they share is time.
The kernel matrix of a cell of a thousand rows is larger than the caches of a core, and reading its row
takes longer than adding it to F; beside the first model that learns from a row the others find it in
the nearest cache, where F of up to ``ABREAST`` models has its place too.
"""

from __future__ import annotations

import numpy as np

from asset_svm.arrays import Array
from asset_svm.losses import scalar_excess
from asset_svm.numerics.compiling import njit
from asset_svm.solvers.exact_form import LOOK, add_row, best, shuffle, values
from asset_svm.threads.counter import ENOUGH

ABREAST = 8
"""Models that sweep together, at most."""


@njit(cache=True, nogil=True)
def end_abreast(
    counter: Array,
    K: Array,
    first: int,
    y: Array,
    cost: Array,
    low: Array,
    high: Array,
    ridge: Array,
    seed: int,
    code: int,
    parameter: Array,
    tube: float,
    tol: float,
    most: int,
    budget: float,
    settle: bool,
    models: Array,
    beta: Array,
    found: Array,
) -> None:
    """``exact_form.solve_cell`` of these models; ``found`` has the sweeps, P and D where each ends.

    y, low, high and beta have the rows of all cells, those of this one from ``first`` on; ``settle``:
    what is not solved is given the P and D of its beta, in float64.
    """
    m, count = len(cost), len(models)
    stop = first + m
    F, order, diagonal = np.zeros((count, m), K.dtype), np.arange(m), np.empty(m)
    for i in range(m):
        diagonal[i] = max(np.float64(K[i, i]), 1e-12)
    moves, sweeps = np.zeros(count, np.int64), 0
    active, between = np.arange(count), max(LOOK // (m * m * count), 1)
    while True:
        left = 0
        for a in active:
            k = models[a]
            primal, dual = values(
                y[k, first:stop], cost, code, parameter[k], tube, ridge, beta[k, first:stop], F[a]
            )
            found[k, 0], found[k, 1], found[k, 2] = sweeps, primal, dual
            solved = sweeps > 0 and primal - dual <= tol * primal
            if sweeps < most and moves[a] <= budget and not solved:
                active[left] = a
                left += 1
        active = active[:left]
        if left == 0 or (sweeps % between == 0 and sweeps > 0 and counter[0] >= ENOUGH):
            break
        seed = shuffle(order, seed)
        for visit in range(m):
            i = order[visit]
            step = 1.0 / diagonal[i]
            for a in active:
                k, place = models[a], first + i
                before = beta[k, place]
                new = best(before, F[a, i] - y[k, place], step, tube, low[k, place], high[k, place])
                if new != before:
                    beta[k, place] = new
                    moves[a] += 1
                    add_row(F[a], K[i], new - before)
        sweeps += 1
    if settle:
        for k in models:
            if found[k, 1] - found[k, 2] > tol * found[k, 1]:
                found[k, 1], found[k, 2] = _exact_values(
                    K, y[k, first:stop], cost, code, parameter[k], tube, ridge, beta[k, first:stop]
                )


@njit(cache=True, nogil=True)
def _exact_values(
    K: Array, y: Array, cost: Array, code: int, parameter: float, tube: float, ridge: Array, beta: Array
) -> tuple[float, float]:
    """P and D at a beta, in float64."""
    primal, dual = 0.0, 0.0
    for i in range(len(y)):
        f = 0.0
        for j in range(len(y)):
            f += np.float64(K[i, j]) * beta[j]
        primal += 0.5 * beta[i] * (f - ridge[i] * beta[i])
        f -= ridge[i] * beta[i]
        primal += cost[i] * max(scalar_excess(code, parameter, y[i], f), 0.0)
        dual += y[i] * beta[i] - tube * abs(beta[i]) - 0.5 * beta[i] * (f + ridge[i] * beta[i])
    return primal, dual
