"""coef exp(-amount T^2), in place and compiled: the shrink of coefficients in a metric T.

Along a direction that is stretched by t, a coefficient is multiplied by exp(-amount t^2). Loops do this
on their way, without the interpreter: exp is a polynomial there, which the compiler turns into vector
instructions; exp(r) = 1 + r + ... + r^13 / 13! for |r| <= log(2)/2 has a relative error of 4e-18.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from asset_svm.arrays import Array
from asset_svm.numerics.compiling import njit
from asset_svm.numerics.elementwise import FAST, SMALLEST, exp_nonpositive

CONTRACT = {"contract"}
"""A product and a sum may be one instruction; sums keep their order."""
LOG2E, LOG2_HIGH, LOG2_LOW = 1.4426950408889634, 0.693147180369123816490, 1.90821492927058770002e-10
"""log(2) in two parts: n times the first is exact for |n| < 2^11."""
ROUND = 6755399441055744.0
"""1.5 2^52: a float64 that it is added to is rounded to an integer, which stands in its last bits."""
SMALLEST_WIDE = -708.0
"""exp of less is below the smallest normal number; it counts as 0."""
NONE, DIAGONAL, LOW_RANK = 0, 1, 2


class LoopMetric(NamedTuple):
    """A metric as compiled loops have it, in the type of the coefficients.

    Parameters
    ----------
    form : int
        NONE, DIAGONAL or LOW_RANK.
    rates : array of shape (d,) or (k,)
        t^2 along the columns, or along the directions.
    rest : float
        t^2 along all others.
    directions, transposed : arrays of shape (d, at least k) and (k, at least d)
        With columns of 0 beyond; empty but in the low-rank form.
    """

    form: int
    rates: Array
    rest: float
    directions: Array
    transposed: Array


def no_metric(dtype: np.dtype[Any]) -> LoopMetric:
    """What stands for a metric where there is none."""
    return LoopMetric(NONE, np.empty(0, dtype), 0.0, np.empty((0, 0), dtype), np.empty((0, 0), dtype))


@njit(cache=True, nogil=True, fastmath=CONTRACT, inline="always")
def _exp_wide(x: float) -> float:
    """exp(x) for a float64 x in [SMALLEST_WIDE, 0]."""
    shifted = x * LOG2E + ROUND
    n = shifted - ROUND
    r = (x - n * LOG2_HIGH) - n * LOG2_LOW
    p = 1.0 / 6227020800.0
    p = p * r + 1.0 / 479001600.0
    p = p * r + 1.0 / 39916800.0
    p = p * r + 1.0 / 3628800.0
    p = p * r + 1.0 / 362880.0
    p = p * r + 1.0 / 40320.0
    p = p * r + 1.0 / 5040.0
    p = p * r + 1.0 / 720.0
    p = p * r + 1.0 / 120.0
    p = p * r + 1.0 / 24.0
    p = p * r + 1.0 / 6.0
    p = p * r + 0.5
    power = (np.float64(shifted).view(np.int64) + np.int64(1023)) << np.int64(52)
    return (p * r * r + r + 1.0) * np.int64(power).view(np.float64)


@njit(cache=True, nogil=True, fastmath=CONTRACT)
def _decay_wide(amount: float, rates: Array, out: Array) -> None:
    for q in range(rates.shape[0]):
        x = -amount * rates[q]
        out[q] = 0.0 if x < SMALLEST_WIDE else _exp_wide(max(x, SMALLEST_WIDE)) + (x - x)


@njit(cache=True, nogil=True, fastmath=FAST)
def _decay_narrow(amount: float, rates: Array, out: Array) -> None:
    factor = np.float32(amount)
    for q in range(rates.shape[0]):
        x = -factor * np.float32(rates[q])
        zero = np.float32(0.0)
        out[q] = zero if x < SMALLEST else exp_nonpositive(max(x, SMALLEST)) + (x - x)


@njit(cache=True, nogil=True)
def decay(amount: float, rates: Array, out: Array) -> None:
    """out = exp(-amount rates), for amount rates >= 0; not-a-number stays."""
    if out.itemsize == 4:
        _decay_narrow(amount, rates, out)
    else:
        _decay_wide(amount, rates, out)


@njit(cache=True, nogil=True, fastmath=FAST)
def shrink(coef: Array, amount: Array, metric: LoopMetric) -> None:
    """coef_k exp(-amount_k T^2) in place, for coef of shape (K, d)."""
    K, d = coef.shape
    k_rates = metric.rates.shape[0]
    by = np.empty(k_rates, dtype=coef.dtype)
    if metric.form == DIAGONAL:
        for k in range(K):
            decay(amount[k], metric.rates, by)
            u = coef[k]
            for q in range(d):
                u[q] *= by[q]
    elif metric.form == LOW_RANK:
        along = np.dot(coef, metric.directions)
        moved = np.empty((K, k_rates), dtype=coef.dtype)
        rest = np.empty(K, dtype=coef.dtype)
        for k in range(K):
            decay(amount[k], metric.rates, by)
            rest[k] = np.exp(-amount[k] * metric.rest)
            for q in range(k_rates):
                moved[k, q] = along[k, q] * (by[q] - rest[k])
        added = np.dot(moved, metric.transposed)
        for k in range(K):
            u = coef[k]
            for q in range(d):
                u[q] = u[q] * rest[k] + added[k, q]
