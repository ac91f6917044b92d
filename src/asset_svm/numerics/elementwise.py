"""Gaussian kernel values and cosines from matrix products, in place, in one pass, for float32.

numpy needs five passes over a block for the first (0.61 ms for 512 x 1024 on the machine at hand) and
three for the second; the loops here, which the compiler turns into vector instructions, take 0.15 ms.
Polynomials are Chebyshev interpolants: exp(r) = 1 + r + r^2 q(r) for |r| <= log(2)/2, relative error
1e-8, and cos(2 pi t) in t^2 for |t| <= 1/2, error 1e-10, before rounding to float32.

float64 blocks take numpy's exp and cos, the first after one pass for the exponents (1.1 to 0.5 ms):
``minus_distances``. Loops that may not go back to the interpreter have ``decay``, in both types: the
series of exp(r) up to r^13, below the last digit of float64 for such r.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import types
from numba.extending import overload

from asset_svm.arrays import Array
from asset_svm.numerics.compiling import njit

FAST = {"reassoc", "contract"}

F = np.float32
LOG2E, LOG2_HIGH, LOG2_LOW = F(1.4426950408889634), F(0.693359375), F(np.log(2.0) - 0.693359375)
"""log(2) in two parts: n times the first is exact for |n| < 2^9."""
SMALLEST = F(-87.0)
"""exp of less is below the smallest normal number; it counts as 0."""
E0, E1, E2, E3, E4 = F(0.5), F(0.16666576266), F(0.04166646674), F(0.00836318173), F(0.00139336521)
WIDE_HIGH, WIDE_LOW = 0.6931471803691238, 1.9082149292705877e-10
WIDE_SMALLEST = -708.0
C0, C1, C2, C3 = F(1.0), F(-19.7392082), F(64.9393921), F(-85.4566574)
C4, C5, C6, C7 = F(60.2421303), F(-26.4046688), F(7.80013132), F(-1.45311224)


@njit(cache=True, nogil=True, fastmath=FAST, inline="always")
def exp_nonpositive(x: float) -> float:
    """exp(x) for a float32 x in [SMALLEST, 0]."""
    n = np.floor(x * LOG2E + F(0.5))
    r = (x - n * LOG2_HIGH) - n * LOG2_LOW
    q = (((E4 * r + E3) * r + E2) * r + E1) * r + E0
    power = np.int32((np.int32(n) + np.int32(127)) << np.int32(23))
    return (q * r * r + r + F(1.0)) * power.view(np.float32)


@njit(cache=True, nogil=True, fastmath=FAST, inline="always")
def _wide_exp_nonpositive(x: float) -> float:
    """exp(x) for a float64 x in [WIDE_SMALLEST, 0]."""
    n = np.floor(x * 1.4426950408889634 + 0.5)
    r = (x - n * WIDE_HIGH) - n * WIDE_LOW
    q = (1 / 6227020800 * r + 1 / 479001600) * r + 1 / 39916800
    q = ((q * r + 1 / 3628800) * r + 1 / 362880) * r + 1 / 40320
    q = ((q * r + 1 / 5040) * r + 1 / 720) * r + 1 / 120
    q = ((q * r + 1 / 24) * r + 1 / 6) * r + 0.5
    power = np.int64((np.int64(n) + np.int64(1023)) << np.int64(52))
    return (q * r * r + r + 1.0) * power.view(np.float64)


@njit(cache=True, nogil=True, fastmath=FAST, inline="always")
def _narrow_decay(t: float) -> Any:
    # not-a-number compares false: such a row stays what it is, and is found later
    return F(0.0) if t < SMALLEST else exp_nonpositive(max(t, SMALLEST)) + (t - t)


@njit(cache=True, nogil=True, fastmath=FAST, inline="always")
def _wide_decay(t: float) -> float:
    return 0.0 if t < WIDE_SMALLEST else _wide_exp_nonpositive(max(t, WIDE_SMALLEST)) + (t - t)


def decay(t: float) -> float:
    """exp(t) for t <= 0, in compiled code; 0 below the smallest normal number, not-a-number stays."""
    raise NotImplementedError


@overload(decay, inline="always")
def _decay_of(t: Any) -> Callable[[Any], float]:
    def narrow(t: Any) -> float:
        return _narrow_decay(t)

    def wide(t: Any) -> float:
        return _wide_decay(t)

    return narrow if t == types.float32 else wide


@njit(cache=True, nogil=True, fastmath=FAST)
def gaussian_loop(dots: Array, left: Array, right: Array) -> None:
    """exp(min(2 dots - left - right, 0)), in place, in the first len(right) columns, in their type."""
    zero = dots.dtype.type(0)
    for i in range(dots.shape[0]):
        row, norm = dots[i, : right.shape[0]], left[i]
        for j in range(row.shape[0]):
            row[j] = decay(min(row[j] + row[j] - norm - right[j], zero))


@njit(cache=True, nogil=True, fastmath=FAST)
def minus_distances(dots: Array, left: Array, right: Array, rounding: float) -> None:
    """min(2 dots - left - right, 0), in place, in the first len(right) columns.

    What is no less than -rounding (left + right) counts as 0.
    """
    for i in range(dots.shape[0]):
        row, norm = dots[i, : right.shape[0]], left[i]
        for j in range(row.shape[0]):
            t = row[j] + row[j] - norm - right[j]
            row[j] = 0.0 if t > -rounding * (norm + right[j]) else t  # not-a-number stays


@njit(cache=True, nogil=True, fastmath=FAST)
def _cosine(turns: Array, phases: Array, amplitude: float) -> None:
    for i in range(turns.shape[0]):
        row = turns[i, : phases.shape[0]]
        for j in range(row.shape[0]):
            t = row[j] + phases[j]
            t = t - np.floor(t + F(0.5))
            u = t * t
            p = (((C7 * u + C6) * u + C5) * u + C4) * u
            row[j] = amplitude * ((((p + C3) * u + C2) * u + C1) * u + C0)


@njit(cache=True, nogil=True)
def put_parts_of_turns(turns: Array, columns: Array, out: Array) -> None:
    """What turns have beyond whole ones, in [-1/2, 1/2], put into these columns of ``out``."""
    for i in range(turns.shape[0]):
        for j in range(columns.shape[0]):
            out[i, columns[j]] = turns[i, j] - np.floor(turns[i, j] + 0.5)


def scaled_cosines(turns: Array, phases: Array, amplitude: float) -> Array:
    """amplitude cos(2 pi (turns + phases)), in place; the first len(phases) columns of it."""
    d = len(phases)
    if turns.dtype == np.float32:
        _cosine(turns, phases.astype(np.float32), np.float32(amplitude))
        return turns[:, :d]
    values = turns[:, :d]
    values += phases
    values *= 2.0 * np.pi
    np.cos(values, out=values)
    values *= amplitude
    return values
