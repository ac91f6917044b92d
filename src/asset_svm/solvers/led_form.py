"""Algorithm 1 in blocks whose rows are never lifted to features, compiled.

Features v = lift(k) of a row cost far more than its basis values k (see ``features.base``), and most of
what a step needs can do without: margins are k.lower(coef), and a sum of steps is lifted as one row,
sum a v = lift(sum a k). Only the effect of a step on the margins of the rows right after it needs
features, v_i.v_t; and of these only the leading coordinates u (``Metric.leading``), in which all
rows have something in common. Along them the iterate moves at every step, along all other
directions once a block:

    f_t = k_t.lower(coef_0) + u_t.w + b          coef_0: the iterate at the block's beginning
    g_t = slope(y_t, f_t);  a_t = -l_t g_t       l_t: see ``row_form``, with |u|^2 + beyond for |v|^2
    w  += a_t u_t;  b = clip(b - l_t g_t, -B, B)
    coef = coef_0 + lift(sum_t a_t k_t)          at its end, projected onto the ball

A block is a ``part`` (see ``Cut``) of the rows that the driver fetches together. ``beyond`` stands for
what |v|^2 has outside the leading directions: its mean over a sample. Where every direction leads,
this is Algorithm 1.

Averages are those of the iterates coef_0 + sum over the steps so far of a v: with A_t the sum of eta up
to t, sum_t eta_t coef_t = A_T coef_0 + lift(sum_t a_t (A_T - A_(t-1)) k_t).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from asset_svm.numerics.compiling import njit
from asset_svm.solvers.average import NEVER
from asset_svm.solvers.blocks import RowBlock
from asset_svm.solvers.row_form import (
    FAST,
    OverModels,
    add_row,
    dot_row,
    scalar_loss,
    scalar_slope,
    step_length,
    truncated,
)
from asset_svm.solvers.state import ModelAxis, SolverState

Array = npt.NDArray[Any]


@dataclass(eq=False)
class LedRows:
    """The rows of some blocks, fetched together, and where models stand in the one at hand.

    Parameters
    ----------
    rows : RowBlock
    lead : array of shape (n, k)
        u.
    size : int
        B.
    offset : array of shape (K, n)
        k.lower(coef_0) of the rows at hand.
    moved : array of shape (K, k)
        w.
    fresh : bool
        Whether offset and w are those of the iterate and the block at hand.
    """

    rows: RowBlock
    lead: Array
    size: int
    offset: Array
    moved: Array
    fresh: bool = False

    @classmethod
    def of(cls, rows: RowBlock, n_models: int, size: int) -> LedRows:
        """Before the first step."""
        lead = rows.lead()
        moved = np.zeros((n_models, lead.shape[1]), dtype=lead.dtype)
        return cls(rows, lead, size or len(lead), np.zeros((n_models, len(lead))), moved)

    def end(self, start: int) -> int:
        """Of the block of a row."""
        return min(start - start % self.size + self.size, len(self.lead))

    def renew(self, start: int, coef: Array) -> None:
        """Offsets of the rows from ``start`` to the end of its block, at this iterate."""
        here = slice(start, self.end(start))
        self.offset[:, here] = self.rows.part(here).margins(coef)
        self.moved[:] = 0
        self.fresh = True


@njit(cache=True, nogil=True, fastmath=FAST)
def run_led(
    lead: Array,
    offset: Array,
    target: Array,
    weight: Array,
    code: int,
    epsilon: float,
    bound: float,
    eta_1: float,
    power: float,
    horizon: int,
    reach: float,
    beyond: float,
    average_from: int,
    moved: Array,
    b: float,
    j: int,
    a: Array,
    gained: Array,
    margins: Array,
    slopes: Array,
) -> tuple[float, int, float, float, float]:
    """Run one model through some rows; moved, a, gained, margins, slopes change in place.

    Returns
    -------
    b, j, eta_sum, b_sum, travelled
        The average gains eta_sum coef_0 + lift(sum gained k) and b_sum; travelled: the sum of eta.
    """
    travelled, omega, b_sum = 0.0, 0.0, 0.0
    free = 1.0 if bound > 0.0 else 0.0
    for i in range(target.shape[0]):
        a[i] = 0.0
        gained[i] = 0.0
        w = weight[i]
        if w < 0.0:
            margins[i] = np.nan
            slopes[i] = 0.0
            continue
        u = lead[i]
        f = offset[i] + dot_row(moved, u) + b
        g = scalar_slope(code, epsilon, target[i], f)
        margins[i] = f
        slopes[i] = g
        j += 1
        eta = step_length(eta_1, power, horizon, j)
        travelled += eta
        length = eta * w
        if g != 0.0:
            if reach < np.inf:
                size = float(dot_row(u, u)) + beyond + free
                short = truncated(length, reach, scalar_loss(code, epsilon, target[i], f), size)
                if short < length:
                    slopes[i] = g * short / length
                    length = short
            a[i] = -length * g
            gained[i] = omega
            add_row(moved, u, a[i])
        b = min(max(b - length * g, -bound), bound)
        if j >= average_from:
            omega += eta
            b_sum += eta * b
    for i in range(target.shape[0]):
        gained[i] = a[i] * (omega - gained[i])
    return b, j, omega, b_sum, travelled


def step_led(
    led: LedRows,
    part: slice,
    target: Array,
    weight: Array,
    axis: ModelAxis,
    state: SolverState,
    average_from: int,
    over_models: OverModels,
    margins: Array,
    slopes: Array,
) -> None:
    """Take K models through a part of the rows, block by block; what is passed changes in place.

    Where the part ends with a block, the projection is left to the caller, after the shrink.
    """
    K, metric = len(target), axis.metric
    assert metric is not None
    averages = average_from < NEVER
    if (state.scale != 1.0).any():
        state.unscale()
    a, gained = np.zeros((2, *target.shape))
    travelled, eta_sum = np.zeros(K), np.zeros(K)

    def run(k: int) -> None:
        state.intercept[k], state.steps[k], eta_sum[k], b_sum, travelled[k] = run_led(
            led.lead[here],
            led.offset[k, here],
            target[k, done],
            weight[done],
            axis.loss.code,
            axis.loss.epsilon,
            axis.bound[k],
            axis.eta[k],
            axis.power,
            axis.horizon[k],
            axis.reach,
            metric.beyond,
            average_from,
            led.moved[k],
            state.intercept[k],
            state.steps[k],
            a[k, done],
            gained[k, done],
            margins[k, done],
            slopes[k, done],
        )
        state.intercept_total[k] += b_sum

    def go(models: Array) -> None:
        for k in models:
            run(int(k))

    start = part.start
    while start < part.stop:
        end = led.end(start)
        here = slice(start, min(end, part.stop))
        done = slice(start - part.start, here.stop - part.start)
        if not led.fresh:
            led.renew(start, state.coef)
        over_models(go)
        state.shrink_due += travelled
        if averages:
            state.weight += eta_sum
            state.total += eta_sum[:, None] * state.direction
        state.direction += led.rows.part(here).sums(a[:, done]).astype(state.direction.dtype)
        start = here.stop
        led.fresh = start < end
        if start == end and start < part.stop:
            state.project(axis.radius)
    if averages:
        state.total += led.rows.part(part).sums(gained)
