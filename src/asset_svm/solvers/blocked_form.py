"""Algorithm 1 on a block of rows at once, for many models: matrix products around a loop over scalars.

With coef_0 the iterate before the block, U = V_B coef_0 and G = V_B V_B^T, every iterate inside the
block is c (coef_0 + V_B^T a), so the steps need only U, G and scalars:

    u = U_i + sum over p < i of a_p G_pi              the margin of row i, before scaling
    f = c u + b;  g = slope(y_i, f)
    j += 1;  eta = eta_1 / j^power                    (or linearly to 0 over a horizon)
    c *= 1 - eta lam                                  (if c = 0: coef_0 = a = 0, c = 1)
    if g != 0:  a_i = -l g / c;  n2 += 2 a_i u + a_i^2 G_ii
    if c^2 n2 > R^2:  c = sign(c) R / sqrt(n2)
    b = clip(b - l g, -B, B)                          l = min(eta w, reach loss / (g^2 (G_ii + 1)))
    if j >= average_from:  omega += eta c

At the end coef = c (coef_0 + V_B^T a), and the average gains
(sum omega) coef_0 + V_B^T (a * what omega grew by after its row). K models share G, and their
products are matrix products: V_B coef^T before, A^T V_B after. Models lie side by side in memory, so
that the sum for u, the only part of the loop whose cost grows with the block, is one of vectors; rows
from which no model learns are left out of it.

Conventions as in the row form, each model with its own rows: target[sort[k], i] and
weight[split[k], i], where a negative weight hides the row from the model. Where |c| leaves [0.1, 10],
or becomes 0, it is folded: multiplied into a and the factor ``alive`` of coef_0, after what the average
has gained so far is put aside in ``gained`` and ``head``. Without it a_i would overflow where the
shrink is strong.
"""

from __future__ import annotations

import numpy as np

from asset_svm.arrays import Array
from asset_svm.losses import scalar_excess, scalar_slope
from asset_svm.numerics.compiling import njit
from asset_svm.solvers.row_form import FAST, step_length, truncated

FEWEST, MOST = 4, 16
"""Models that one thread steps through together: 50 take a tenth longer in groups of 4 than in groups
of 16, with one thread."""
GROUPS = 16
"""There are about as many groups, or a multiple: 16 threads have the same to do. How many threads there
are must not matter, because products of other shapes are rounded in other ways."""
SHORTEST, LONGEST = 32, 256
"""Rows of a block, as many as there are models between these: G costs a row twice the block's length
times d, products with coef four times the number of models times d."""
MANY_MODELS = 128
"""From so many on a fit goes by the blocked form: 200 classes take as long as by loops over rows, with
one thread, and 1000 half as long."""


def block_rows(n_models: int) -> int:
    """The number of rows of a block for so many models."""
    return int(np.clip(n_models, SHORTEST, LONGEST))


def group_size(n_models: int) -> int:
    """The number of models of a group, where there are so many models."""
    groups = -(-n_models // (GROUPS * MOST)) * GROUPS
    return max(-(-n_models // groups), FEWEST)


@njit(cache=True, nogil=True, fastmath=FAST)
def _margins(i: int, G: Array, a: Array, learnt: Array, count: int, u: Array) -> None:
    """u += sum over the first ``count`` rows p of ``learnt`` of a_p G_pi, four at a time."""
    K = u.shape[0]
    q = 0
    while q + 4 <= count:
        p0, p1, p2, p3 = learnt[q], learnt[q + 1], learnt[q + 2], learnt[q + 3]
        g0, g1, g2, g3 = G[i, p0], G[i, p1], G[i, p2], G[i, p3]
        for k in range(K):
            u[k] += (g0 * a[p0, k] + g1 * a[p1, k]) + (g2 * a[p2, k] + g3 * a[p3, k])
        q += 4
    while q < count:
        p = learnt[q]
        g = G[i, p]
        for k in range(K):
            u[k] += g * a[p, k]
        q += 1


@njit(cache=True, nogil=True, fastmath=FAST)
def run_block(
    G: Array,
    U: Array,
    norm: Array,
    target: Array,
    sort: Array,
    weight: Array,
    split: Array,
    code: int,
    parameter: Array,
    lam: Array,
    radius: Array,
    bound: Array,
    eta_1: Array,
    power: float,
    horizon: Array,
    reach: float,
    average_from: Array,
    b: Array,
    j: Array,
    eta_sum: Array,
    b_sum: Array,
    travelled: Array,
    c: Array,
    alive: Array,
    head: Array,
    a: Array,
    gained: Array,
    margins: Array,
    slopes: Array,
) -> Array:
    """Run K models through a block of B rows; returns the numbers of those that some model learnt from.

    Parameters
    ----------
    G, U, norm
        (B, B), (B, K), (K,): V_B V_B^T, V_B coef^T and |coef|^2; norm changes in place.
    target, sort, weight, split
        (T, B), (K,), (F, B), (K,): see above.
    parameter, lam, radius, bound, eta_1, horizon, average_from
        (K,) each.
    b, j, eta_sum, b_sum, travelled
        (K,) each, of the state; they change in place.
    c, alive, head, a, gained
        (K,), (K,), (K,), (B, K), (B, K), written: coef = c (alive coef_0 + V_B^T a), and the average
        gains head coef_0 + V_B^T gained, both 0 but in the rows returned. ``gained`` may have no rows,
        where no model averages.
    margins, slopes
        (K, B), written; they may have no columns.
    """
    B, K = U.shape
    averaging, shown = gained.shape[0] > 0, margins.shape[1] > 0
    u = np.empty(K, dtype=U.dtype)
    omega = np.zeros(K)
    before = np.zeros((B if averaging else 0, K))
    learnt = np.empty(B, dtype=np.int64)
    count = 0
    for k in range(K):
        c[k], alive[k], head[k] = 1.0, 1.0, 0.0
    for i in range(B):
        for k in range(K):
            u[k] = alive[k] * U[i, k]
        _margins(i, G, a, learnt, count, u)
        any_learns = False
        square = float(G[i, i])
        for k in range(K):
            a[i, k] = 0.0
            if averaging:
                gained[i, k] = 0.0
                before[i, k] = omega[k]
            w = weight[split[k], i]
            if w < 0.0:
                if shown:
                    margins[k, i] = np.nan
                    slopes[k, i] = 0.0
                continue
            y = target[sort[k], i]
            margin = float(u[k])
            f = c[k] * margin + b[k]
            g = scalar_slope(code, parameter[k], y, f)
            j[k] += 1
            eta = step_length(eta_1[k], power, horizon[k], j[k])
            travelled[k] += eta
            scale = c[k] * (1.0 - eta * lam[k])
            if abs(scale) < 0.1 or abs(scale) > 10.0:
                head[k] += alive[k] * omega[k]
                alive[k] *= scale
                for q in range(count):
                    p = learnt[q]
                    if averaging:
                        gained[p, k] += a[p, k] * (omega[k] - before[p, k])
                        before[p, k] = 0.0
                    a[p, k] *= scale
                if averaging:
                    before[i, k] = 0.0
                margin *= scale
                norm[k] *= scale * scale
                omega[k], scale = 0.0, 1.0
            length = eta * w
            used = g
            if g != 0.0:
                if reach < np.inf:
                    size = g * g * (square + (1.0 if bound[k] > 0.0 else 0.0))
                    short = truncated(length, reach, scalar_excess(code, parameter[k], y, f), size)
                    if short < length:
                        used = g * short / length
                        length = short
                step = -length * g / scale
                a[i, k] = step
                any_learns = True
                norm[k] += 2.0 * step * margin + step * step * square
                b[k] = min(max(b[k] - length * g, -bound[k]), bound[k])
            if scale * scale * norm[k] > radius[k] * radius[k]:
                scale = np.sign(scale) * radius[k] / np.sqrt(norm[k])
            c[k] = scale
            if shown:
                margins[k, i] = f
                slopes[k, i] = used
            if averaging and j[k] >= average_from[k]:
                omega[k] += eta * scale
                eta_sum[k] += eta
                b_sum[k] += eta * b[k]
        if any_learns:
            learnt[count] = i
            count += 1
    if averaging:
        for q in range(count):
            p = learnt[q]
            for k in range(K):
                gained[p, k] += a[p, k] * (omega[k] - before[p, k])
    for k in range(K):
        head[k] += alive[k] * omega[k]
    return learnt[:count]
