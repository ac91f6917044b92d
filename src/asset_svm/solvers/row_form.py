"""Algorithm 1, one row at a time, compiled.

For one model, with coef = c u, per row v of target y and weight w:

    f = c u.v + b;  g = slope(y, f)
    j += 1;  eta = eta_1 / j^power              (or linearly to 0 over a horizon)
    c *= 1 - eta lam                                  (if it leaves [0.1, 10]: u *= c, c = 1)
    if g != 0:  u += -(l g / c) v                     l = min(eta w, reach loss / (g^2 (|v|^2 + 1)))
    if |c u| > R:  c = sign(c) R / |u|                (the projection; on inactive steps too)
    b = clip(b - l g, -B, B)
    if j >= average_from:  average gains eta (c u, b)

The average is Abel's sum. With A_t the sum of eta c up to t and u_T = u_0 + sum of a_t v_t,

    sum_t eta_t c_t u_t = A_T u_T - P_T,   P_T = sum over active t of a_t A_(t-1) v_t,

so that an inactive step costs nothing. It cancels once c has decayed: whenever |c| leaves
[0.1, 10] the sum is folded into ``total`` together with c into u.

Conventions: w < 0 marks a row that this model must not see (no shrink, j stands still, the slope is
reported as 0 and f as NaN). A target that the loss has no slope at (``is_seen``) is a step that learns
nothing, whatever f is: it is taken without a product, and f is reported as 0. Where nothing shrinks at
a step, as in a metric, all of those up to the next target are one, so that ``average_from`` must not
be among them. The slope reported is g l / (eta w): what of it the step used. reach is infinite for the
paper's steps; |v|^2 + 1 has no "+ 1" without an intercept, where B = 0. Vectors have the type of the
rows, with accumulators of that type; scalars are float64. Compiled code sees arrays, scalars and
integer codes only.
"""

from __future__ import annotations

import numpy as np

from asset_svm.arrays import Array
from asset_svm.losses import is_seen, scalar_excess, scalar_slope
from asset_svm.numerics.compiling import njit

FAST = {"reassoc", "contract"}
"""Fused and reordered sums, but NaN and infinity stay what they are."""


@njit(cache=True, nogil=True, inline="always")
def truncated(length: float, reach: float, loss: float, norm: float) -> float:
    """The length of a step that goes at most ``reach`` times the way to a loss of 0."""
    return reach * loss / norm if length * norm > reach * loss else length


@njit(cache=True, nogil=True, inline="always")
def step_length(eta_1: float, power: float, horizon: int, j: int) -> float:
    """eta_1 / j^power, or eta_1 (1 - (j - 1) / horizon)."""
    if horizon > 0:
        return eta_1 * max(1.0 - (j - 1) / horizon, 0.0)
    if power == 0.5:
        return eta_1 / np.sqrt(j)
    if power == 1.0:
        return eta_1 / j
    return eta_1 / j**power


@njit(cache=True, nogil=True, inline="always")
def total_length(eta_1: float, horizon: int, j: int, count: int) -> float:
    """The sum of the lengths of ``count`` steps after the first j, which decay linearly to 0."""
    count = max(min(count, horizon - j), 0)
    return eta_1 * count * (1.0 - (j + 0.5 * (count - 1)) / horizon)


@njit(cache=True, nogil=True, fastmath=FAST)
def dot_row(u: Array, v: Array) -> float:
    """u.v, accumulated in their type."""
    total = u.dtype.type(0)
    for q in range(u.shape[0]):
        total += u[q] * v[q]
    return total


@njit(cache=True, nogil=True, fastmath=FAST)
def add_row(u: Array, v: Array, a: float) -> float:
    """u += a v; returns |u|^2."""
    factor = u.dtype.type(a)
    total = u.dtype.type(0)
    for q in range(u.shape[0]):
        moved = u[q] + factor * v[q]
        u[q] = moved
        total += moved * moved
    return total


@njit(cache=True, nogil=True, fastmath=FAST)
def _add_both(u: Array, p: Array, v: Array, a: float, b: float) -> float:
    """u += a v and p += b v; returns |u|^2."""
    first, second = u.dtype.type(a), u.dtype.type(b)
    total = u.dtype.type(0)
    for q in range(u.shape[0]):
        moved = u[q] + first * v[q]
        u[q] = moved
        p[q] += second * v[q]
        total += moved * moved
    return total


@njit(cache=True, nogil=True, fastmath=FAST)
def _fold(u: Array, p: Array, total: Array, A: float, c: float) -> float:
    """total += A u - p; p = 0; u *= c; returns |u|^2."""
    factor = u.dtype.type(c)
    norm = u.dtype.type(0)
    for q in range(u.shape[0]):
        total[q] += A * u[q] - p[q]
        p[q] = 0
        u[q] *= factor
        norm += u[q] * u[q]
    return norm


@njit(cache=True, nogil=True, fastmath=FAST)
def run_rows(
    V: Array,
    index: Array,
    target: Array,
    weight: Array,
    code: int,
    parameter: float,
    lam: float,
    radius: float,
    bound: float,
    eta_1: float,
    power: float,
    horizon: int,
    reach: float,
    average_from: int,
    u: Array,
    p: Array,
    total: Array,
    c: float,
    b: float,
    j: int,
    A: float,
    eta_sum: float,
    b_sum: float,
    travelled: float,
    norm: float,
    margins: Array,
    slopes: Array,
) -> tuple[float, float, int, float, float, float, float, float]:
    """Run the rows V[index] through one model; u, p, total, margins, slopes change in place.

    Returns
    -------
    c, b, j, A, eta_sum, b_sum
        The scalars of the state after the last row.
    travelled
        The sum of eta, with that of these rows.
    norm
        |u|^2.
    """
    free = 1.0 if bound > 0.0 else 0.0
    i = -1
    while i + 1 < index.shape[0]:
        i += 1
        w = weight[i]
        if w < 0.0:
            margins[i] = np.nan
            slopes[i] = 0.0
            continue
        v, f, g = V[index[i], : u.shape[0]], 0.0, 0.0
        if is_seen(code, target[i]):
            f = c * dot_row(u, v) + b
            g = scalar_slope(code, parameter, target[i], f)
        elif horizon > 0 and lam == 0.0:
            idle = 0
            while i < index.shape[0] and weight[i] >= 0.0 and not is_seen(code, target[i]):
                margins[i] = 0.0
                slopes[i] = 0.0
                idle += 1
                i += 1
            i -= 1
            way = total_length(eta_1, horizon, j, idle)
            travelled += way
            j += idle
            if j >= average_from:
                A += way * c
                eta_sum += way
                b_sum += way * b
            continue
        margins[i] = f
        slopes[i] = g
        j += 1
        eta = step_length(eta_1, power, horizon, j)
        travelled += eta
        c *= 1.0 - eta * lam
        if abs(c) < 0.1 or abs(c) > 10.0:  # before the division by c: it may be 0, or rounding noise
            norm = _fold(u, p, total, A, c)
            A, c = 0.0, 1.0
        length = eta * w
        if g != 0.0:
            if reach < np.inf:
                size = g * g * (float(dot_row(v, v)) + free)
                short = truncated(length, reach, scalar_excess(code, parameter, target[i], f), size)
                if short < length:
                    slopes[i] = g * short / length
                    length = short
            a = -length * g / c
            norm = _add_both(u, p, v, a, a * A) if A != 0.0 else add_row(u, v, a)
        if c * c * norm > radius * radius:
            c = np.sign(c) * radius / np.sqrt(norm)
        b = min(max(b - length * g, -bound), bound)
        if j >= average_from:
            A += eta * c
            eta_sum += eta
            b_sum += eta * b
    return c, b, j, A, eta_sum, b_sum, travelled, norm
