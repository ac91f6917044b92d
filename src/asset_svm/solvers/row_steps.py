"""Steps of several models by the row form: one compiled call for thousands of rows.

Models have nothing to do with each other: each thread takes the next lot of them through all steps, and
what is due on the way (folds of the average, shrinks in a metric, sums for the history) is done there.
The models of a lot take turns, so that the next one finds the rows in a cache.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from asset_svm.arrays import Array
from asset_svm.numerics.compiling import njit
from asset_svm.numerics.shrinking import NONE, LoopMetric, shrink
from asset_svm.solvers.row_form import dot_row, run_rows
from asset_svm.solvers.state import LoopAxis, LoopState
from asset_svm.solvers.tallies import Notes, note
from asset_svm.threads.counter import take

TURN = 128
"""Rows after which it is the next model's turn, where models see all of them. Eight outputs (d = 512)
take a tenth longer with 512, and so with 32."""


class Steps(NamedTuple):
    """Steps that K models take, n of them, on the rows V[positions].

    Parameters
    ----------
    rows : array of shape (n,)
        The numbers of the rows.
    target : array of shape (K, n)
    weight : array of shape (n,)
    average_from : int
        The first step that is averaged, in the count of ``SolverState.steps``.
    ends : int array
        Steps after which loops pause, the last being n.
    shrinks, folds : bool arrays
        Whether coefficients in a metric shrink there, and whether what is pending is folded.
    """

    V: Array
    positions: Array
    rows: Array
    target: Array
    weight: Array
    average_from: int
    ends: Array
    shrinks: Array
    folds: Array


@njit(cache=True, nogil=True)
def _fold_pending(u: Array, p: Array, total: Array, A: float) -> None:
    """total += A u - p; p = 0."""
    for q in range(u.shape[0]):
        total[q] += A * u[q] - p[q]
        p[q] = 0


@njit(cache=True, nogil=True)
def fold(state: LoopState, k: int) -> None:
    """``SolverState.fold`` of one model."""
    A, p = state.pending_weight[k], state.pending[k]
    if A != 0.0 or p.any():
        _fold_pending(state.direction[k], p, state.total[k], A)
        state.pending_weight[k] = 0.0


@njit(cache=True, nogil=True)
def settle(axis: LoopAxis, metric: LoopMetric, state: LoopState, first: int, stop: int) -> None:
    """Shrink models first, ..., stop - 1 by what is due, where there is a metric."""
    if metric.form == NONE:
        return
    for k in range(first, stop):
        if state.shrink_due[k] == 0.0:
            continue
        fold(state, k)
        coef = state.direction[k : k + 1]
        scale = coef.dtype.type(state.scale[k])
        for q in range(coef.shape[1]):
            coef[0, q] *= scale
        state.scale[k] = 1.0
        shrink(coef, axis.rate[k : k + 1] * state.shrink_due[k : k + 1], metric)
        state.shrink_due[k] = 0.0


@njit(cache=True, nogil=True)
def _take_turn(
    steps: Steps,
    axis: LoopAxis,
    state: LoopState,
    notes: Notes,
    k: int,
    begin: int,
    end: int,
    margins: Array,
    slopes: Array,
) -> None:
    """Take model k through steps begin, ..., end - 1."""
    n, u = end - begin, state.direction[k]
    c, b, j, A = state.scale[k], state.intercept[k], state.steps[k], state.pending_weight[k]
    eta_sum, b_sum = state.weight[k], state.intercept_total[k]
    way, norm = 0.0, float(dot_row(u, u))
    c, b, j, A, eta_sum, b_sum, way, norm = run_rows(
        steps.V,
        steps.positions[begin:end],
        steps.target[k, begin:end],
        steps.weight[begin:end],
        axis.code,
        axis.parameter[k],
        axis.lam[k],
        axis.radius[k],
        axis.bound[k],
        axis.eta[k],
        axis.power,
        axis.horizon[k],
        axis.reach,
        steps.average_from,
        u,
        state.pending[k],
        state.total[k],
        c,
        b,
        j,
        A,
        eta_sum,
        b_sum,
        way,
        norm,
        margins[:n],
        slopes[:n],
    )
    state.scale[k], state.intercept[k], state.steps[k], state.pending_weight[k] = c, b, j, A
    state.weight[k], state.intercept_total[k] = eta_sum, b_sum
    state.shrink_due[k] += way
    note(
        axis.code, axis.parameter[k], steps.rows[begin:end], steps.target[k, begin:end],
        steps.weight[begin:end], margins[:n], slopes[:n], notes, k,
    )  # fmt: skip


@njit(cache=True, nogil=True)
def work_on_rows(
    counter: Array,
    lots: int,
    turn: int,
    steps: Steps,
    axis: LoopAxis,
    metric: LoopMetric,
    state: LoopState,
    notes: Notes,
) -> None:
    """Take the next of ``lots`` lots of models through all steps.

    What each thread of a team does as long as there is something left. The models of a lot take turns,
    ``turn`` steps each.
    """
    K = state.direction.shape[0]
    margins, slopes = np.empty(turn), np.empty(turn)
    while True:
        number = take(counter)
        if number >= lots:
            return
        first, stop = K * number // lots, K * (number + 1) // lots
        begin = 0
        for pause in range(steps.ends.shape[0]):
            end = steps.ends[pause]
            while begin < end:
                upto = min(begin + turn, end)
                for k in range(first, stop):
                    _take_turn(steps, axis, state, notes, k, begin, upto, margins, slopes)
                begin = upto
            if steps.shrinks[pause]:
                settle(axis, metric, state, first, stop)
            if steps.folds[pause]:
                for k in range(first, stop):
                    fold(state, k)
