"""Algorithm 1 on a block of rows at once: matrix products around a loop over scalars, exact.

With coef_0 the iterate before the block, u = V_B coef_0 and G = V_B V_B^T, every iterate inside the
block is c (coef_0 + V_B^T a), so the steps need only u, G and scalars:

    f = c u_k + b;  g = slope(y_k, f)
    j += 1;  eta = eta_1 / j^power              (or linearly to 0 over a horizon)
    c *= 1 - eta lam                                  (if c = 0: coef_0 = a = u = 0, c = 1)
    if g != 0:  a_k = -l g / c;  n2 += 2 a_k u_k + a_k^2 G_kk;  u += a_k G[:, k]
    if c^2 n2 > R^2:  c = sign(c) R / sqrt(n2)
    b = clip(b - l g, -B, B)                          l = min(eta w, reach loss / (G_kk + 1))
    if j >= average_from:  omega_k = eta c, else 0

At the end coef = c (coef_0 + V_B^T a), and the average gains
(sum omega) coef_0 + V_B^T (a * suffix sums of omega). K models share G, and their products are
matrix products: V_B coef^T before, A V_B after.

Conventions as in the row form. Where |c| leaves [0.1, 10], or becomes 0, it is folded: multiplied
into u, a and the factor ``alive`` of coef_0, after what the average has gained so far is put aside
in ``gained`` and ``head``. Without it a_k would overflow where the shrink is strong.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit

from asset_svm.solvers.row_form import FAST, scalar_loss, scalar_slope, step_length, truncated

Array = npt.NDArray[Any]


@njit(cache=True, nogil=True, fastmath=FAST)
def run_block(
    G: Array,
    u: Array,
    norm: float,
    target: Array,
    weight: Array,
    code: int,
    epsilon: float,
    lam: float,
    radius: float,
    bound: float,
    eta_1: float,
    power: float,
    horizon: int,
    reach: float,
    average_from: int,
    b: float,
    j: int,
    eta_sum: float,
    b_sum: float,
    a: Array,
    gained: Array,
    before: Array,
    margins: Array,
    slopes: Array,
) -> tuple[float, float, float, float, int, float, float, float]:
    """Run one model through a block; u, a, gained, before, margins, slopes change in place.

    Returns
    -------
    c, alive, head, b, j, eta_sum, b_sum, travelled
        coef = c (alive coef_0 + V_B^T a); the average gains head coef_0 + V_B^T gained.
    """
    travelled = 0.0
    free = 1.0 if bound > 0.0 else 0.0
    c, alive, head, omega = 1.0, 1.0, 0.0, 0.0
    for k in range(u.shape[0]):
        a[k] = 0.0
        gained[k] = 0.0
        before[k] = omega
        w = weight[k]
        if w < 0.0:
            margins[k] = np.nan
            slopes[k] = 0.0
            continue
        f = c * u[k] + b
        g = scalar_slope(code, epsilon, target[k], f)
        margins[k] = f
        slopes[k] = g
        j += 1
        eta = step_length(eta_1, power, horizon, j)
        travelled += eta
        c *= 1.0 - eta * lam
        if abs(c) < 0.1 or abs(c) > 10.0:
            head += alive * omega
            alive *= c
            for i in range(k + 1):
                gained[i] += a[i] * (omega - before[i])
                a[i] *= c
                before[i] = 0.0
            for i in range(k, u.shape[0]):
                u[i] *= c
            norm *= c * c
            omega, c = 0.0, 1.0
        length = eta * w
        if g != 0.0:
            if reach < np.inf:
                size = G[k, k] + free
                short = truncated(length, reach, scalar_loss(code, epsilon, target[k], f), size)
                if short < length:
                    slopes[k] = g * short / length
                    length = short
            step = -length * g / c
            a[k] = step
            norm += 2.0 * step * u[k] + step * step * G[k, k]
            for i in range(k, u.shape[0]):
                u[i] += step * G[k, i]
        if c * c * norm > radius * radius:
            c = np.sign(c) * radius / np.sqrt(norm)
        b = min(max(b - length * g, -bound), bound)
        if j >= average_from:
            omega += eta * c
            eta_sum += eta
            b_sum += eta * b
    for i in range(u.shape[0]):
        gained[i] += a[i] * (omega - before[i])
    return c, alive, head + alive * omega, b, j, eta_sum, b_sum, travelled
