"""Steps of many models by the blocked form: one compiled call for many blocks of rows.

    gather_block    V_B in one place, and G = V_B V_B^T
    step_through    a group of models goes through all blocks, one after the other
    work_on_blocks  what each thread of a team does: the next group, or the next block to gather

Groups do not wait for each other: nothing that one of them does concerns another. Margins are a product
for the group, updates one too where many steps are not 0; else the rows of those that are not are added
up.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from asset_svm.arrays import Array
from asset_svm.numerics.compiling import njit
from asset_svm.numerics.shrinking import NONE, LoopMetric, shrink
from asset_svm.solvers.blocked_form import run_block
from asset_svm.solvers.row_form import FAST, dot_row
from asset_svm.solvers.state import LoopAxis, LoopState
from asset_svm.solvers.tallies import Notes, note
from asset_svm.threads.counter import take

SPARSE = 0.3
"""The part of the steps of a block below which adding up the rows of those that learn is faster than a
product."""


class Sight(NamedTuple):
    """What K models are shown of some blocks.

    Parameters
    ----------
    rows : array of shape (n,)
        The numbers of the rows that are visited.
    target : array of shape (T, n)
    sort : int array of shape (K,)
        The row of ``target`` that is each model's.
    weight : array of shape (F, n)
        Multipliers of slopes; negative hides a row.
    split : int array of shape (K,)
        The row of ``weight`` that is each model's.
    average_from : int array of shape (K,)
        The first of its steps that each model averages.
    """

    rows: Array
    target: Array
    sort: Array
    weight: Array
    split: Array
    average_from: Array


class Blocks(NamedTuple):
    """The features of some blocks, one after the other.

    Parameters
    ----------
    V : array of shape (n, d)
    G : array of shape (blocks, B^2)
        V_B V_B^T of each, row by row, as far as a block has rows; what is above the diagonal is not
        used.
    begin : int array of shape (blocks + 1,)
        Where blocks begin in V.
    shrinks : bool array of shape (blocks,)
        Whether coefficients in a metric shrink after each.
    """

    V: Array
    G: Array
    begin: Array
    shrinks: Array

    @classmethod
    def empty(cls, begin: Array, shrinks: Array, dimension: int, dtype: np.dtype[Any]) -> Blocks:
        """Blocks that ``gather_block`` has yet to fill."""
        longest = int(np.diff(begin).max())
        V = np.empty((int(begin[-1]), dimension), dtype)
        return cls(V, np.empty((len(shrinks), longest * longest), dtype), begin, shrinks)

    @classmethod
    def none(cls, dimension: int, dtype: np.dtype[Any]) -> Blocks:
        """No block."""
        V, G = np.empty((0, dimension), dtype), np.empty((0, 0), dtype)
        return cls(V, G, np.zeros(1, dtype=np.int64), np.empty(0, dtype=np.bool_))


@njit(cache=True, nogil=True)
def gather_block(V: Array, positions: Array, blocks: Blocks, number: int) -> None:
    """Copy the rows of a block from V[positions], and set its G: in two halves, one is not used."""
    begin, end = blocks.begin[number], blocks.begin[number + 1]
    B, d = end - begin, blocks.V.shape[1]
    for i in range(begin, end):
        blocks.V[i] = V[positions[i], :d]
    half = (B + 1) // 2
    G = blocks.G[number, : B * B].reshape(B, B)
    low, high = blocks.V[begin : begin + half], blocks.V[begin + half : end]
    G[:half, :half] = np.dot(low, low.T)
    if half < B:
        G[half:, :half] = np.dot(high, low.T)
        G[half:, half:] = np.dot(high, high.T)


@njit(cache=True, nogil=True, fastmath=FAST)
def _add_learnt(factors: Array, learnt: Array, block: Array, out: Array) -> None:
    """out += sum of factors[i] block[i] over the rows learnt from, two at a time."""
    i, before = -1, out.dtype.type(0)
    for q in range(learnt.shape[0]):
        p = learnt[q]
        factor = factors[p]
        if factor == 0:
            continue
        if i < 0:
            i, before = p, factor
            continue
        v, w = block[i], block[p]
        for j in range(out.shape[0]):
            out[j] += before * v[j] + factor * w[j]
        i = -1
    if i >= 0:
        v = block[i]
        for j in range(out.shape[0]):
            out[j] += before * v[j]


@njit(cache=True, nogil=True, fastmath=FAST)
def _add_sums(a: Array, learnt: Array, block: Array, sparse: bool, out: Array) -> None:
    """out = a^T block, for an a of shape (B, K) that is 0 but in the rows learnt from."""
    if not sparse:
        np.dot(a.T, block, out)
        return
    out[:] = 0
    for k in range(a.shape[1]):
        _add_learnt(a[:, k], learnt, block, out[k])


@njit(cache=True, nogil=True, fastmath=FAST)
def step_through(
    blocks: Blocks,
    sight: Sight,
    axis: LoopAxis,
    metric: LoopMetric,
    state: LoopState,
    notes: Notes,
    first: int,
    stop: int,
) -> None:
    """Take models first, ..., stop - 1 through all blocks; state and notes change in place."""
    coef, total = state.direction[first:stop], state.total[first:stop]
    # Copies, each in a cache line of its own: those of the next models are another thread's.
    intercept, steps = state.intercept[first:stop].copy(), state.steps[first:stop].copy()
    weight, due = state.weight[first:stop].copy(), state.shrink_due[first:stop].copy()
    intercept_total = state.intercept_total[first:stop].copy()
    average_from, rate = sight.average_from[first:stop], axis.rate[first:stop]
    K, d = coef.shape
    dtype = coef.dtype
    shown = notes.loss.shape[0] > 0
    norm, scale, alive, head = np.empty(K), np.empty(K), np.empty(K), np.empty(K)
    sums = np.empty((K, d), dtype)
    for number in range(blocks.shrinks.shape[0]):
        begin, end = blocks.begin[number], blocks.begin[number + 1]
        B = end - begin
        block, G = blocks.V[begin:end], blocks.G[number, : B * B].reshape(B, B)
        U = np.dot(block, coef.T)
        averaging = False
        for k in range(K):
            norm[k] = dot_row(coef[k], coef[k])
            averaging = averaging or steps[k] + B >= average_from[k]
        a, gained = np.empty((B, K), dtype), np.empty((B if averaging else 0, K), dtype)
        margins, slopes = np.empty((K, B if shown else 0)), np.empty((K, B if shown else 0))
        learnt = run_block(
            G,
            U,
            norm,
            sight.target[:, begin:end],
            sight.sort[first:stop],
            sight.weight[:, begin:end],
            sight.split[first:stop],
            axis.code,
            axis.parameter[first:stop],
            axis.lam[first:stop],
            axis.radius[first:stop],
            axis.bound[first:stop],
            axis.eta[first:stop],
            axis.power,
            axis.horizon[first:stop],
            axis.reach,
            average_from,
            intercept,
            steps,
            weight,
            intercept_total,
            due,
            scale,
            alive,
            head,
            a,
            gained,
            margins,
            slopes,
        )
        count = 0
        for q in range(learnt.shape[0]):
            for k in range(K):
                count += a[learnt[q], k] != 0
        sparse = count < SPARSE * a.size
        if averaging:
            _add_sums(gained, learnt, block, sparse, sums)
            for k in range(K):
                for j in range(d):
                    total[k, j] += head[k] * coef[k, j] + sums[k, j]
        _add_sums(a, learnt, block, sparse, sums)
        for k in range(K):
            kept, added = dtype.type(scale[k] * alive[k]), dtype.type(scale[k])
            for j in range(d):
                coef[k, j] = kept * coef[k, j] + added * sums[k, j]
        if blocks.shrinks[number]:
            if metric.form != NONE:
                shrink(coef, rate * due, metric)
            due[:] = 0.0
        if shown:
            for k in range(K):
                y, w = sight.target[sight.sort[first + k]], sight.weight[sight.split[first + k]]
                note(
                    axis.code, axis.parameter[first + k], sight.rows[begin:end], y[begin:end],
                    w[begin:end], margins[k], slopes[k], notes, first + k,
                )  # fmt: skip
    state.intercept[first:stop], state.steps[first:stop] = intercept, steps
    state.weight[first:stop], state.shrink_due[first:stop] = weight, due
    state.intercept_total[first:stop] = intercept_total


@njit(cache=True, nogil=True)
def work_on_blocks(
    counter: Array,
    size: int,
    blocks: Blocks,
    sight: Sight,
    axis: LoopAxis,
    metric: LoopMetric,
    state: LoopState,
    notes: Notes,
    V: Array,
    positions: Array,
    following: Blocks,
) -> None:
    """Take the next group of ``size`` models through some blocks, or fill one of those that follow.

    What each thread of a team does as long as there is something left: numbers of ``counter`` are
    groups, then the ``following`` blocks, whose rows are V[positions].
    """
    K = state.direction.shape[0] if blocks.shrinks.shape[0] > 0 else 0
    groups = (K + size - 1) // size
    while True:
        number = take(counter)
        if number < groups:
            stop = min((number + 1) * size, K)
            step_through(blocks, sight, axis, metric, state, notes, number * size, stop)
        elif number < groups + following.shrinks.shape[0]:
            gather_block(V, positions, following, number - groups)
        else:
            return
