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

``beyond`` stands for what |v|^2 has outside the leading directions: its mean over a sample. Where every
direction leads, this is Algorithm 1.

Averages are those of the iterates coef_0 + sum over the steps so far of a v: with A_t the sum of eta up
to t, sum_t eta_t coef_t = A_T coef_0 + lift(sum_t a_t (A_T - A_(t-1)) k_t).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit

from asset_svm.solvers.blocks import RowBlock
from asset_svm.solvers.row_form import (
    FAST,
    add_row,
    dot_row,
    scalar_loss,
    scalar_slope,
    step_length,
    truncated,
)

Array = npt.NDArray[Any]


@dataclass(eq=False)
class LedRows:
    """The rows of a block, and where its models stand since ``renew``.

    Parameters
    ----------
    rows : RowBlock
    lead : array of shape (B, k)
        u.
    offset : array of shape (K, B) or None
        k.lower(coef_0); None: to be renewed.
    moved : array of shape (K, k)
        w.
    """

    rows: RowBlock
    lead: Array
    offset: Array | None
    moved: Array

    @classmethod
    def of(cls, rows: RowBlock, n_models: int) -> LedRows:
        """Before the first step."""
        lead = rows.lead()
        return cls(rows, lead, None, np.zeros((n_models, lead.shape[1]), dtype=lead.dtype))

    def renew(self, coef: Array) -> Array:
        """The offsets; where they are not there, those of this iterate."""
        if self.offset is None:
            self.offset = self.rows.margins(coef)
            self.moved[:] = 0
        return self.offset


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
