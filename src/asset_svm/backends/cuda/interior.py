"""The interior-point method of ``solvers.interior_form`` for many cells and models at once.

One member of the batch is one model of one cell; all take the same step at the same time, and those
that are done wait where they are. Both sides of a row are kept, (members, 2, p), with a mask of those
that there are; padding has none, and neither row nor column in K.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from asset_svm.solvers.interior_form import BACK, MOST_STEPS


@dataclass(frozen=True, eq=False)
class Duals:
    """The problems of a batch, float64.

    Parameters
    ----------
    K : tensor of shape (members, p, p)
        0 in rows and columns of padding.
    y, low, high : tensors of shape (members, p)
    sizes : tensor of shape (members,)
        m.
    rounding : float
        The machine epsilon of the type that K was computed in.
    """

    K: Tensor
    y: Tensor
    low: Tensor
    high: Tensor
    sizes: Tensor
    tube: float
    rounding: float
    intercept: bool

    def times(self, beta: Tensor) -> Tensor:
        """Return K beta of every member."""
        return torch.bmm(self.K, beta[:, :, None])[:, :, 0]


def solve_interior(duals: Duals, tol: float) -> tuple[Tensor, Tensor]:
    """(beta, steps) of every member, with duality gaps of at most ``tol`` times the primal values."""
    y, K = duals.y, duals.K
    real = torch.arange(y.shape[1], device=y.device) < duals.sizes[:, None]
    sign = torch.tensor([1.0, -1.0], dtype=y.dtype, device=y.device)[:, None]
    upper = torch.stack([duals.high, -duals.low], dim=1) * real[:, None, :]
    on = upper > 0.0
    diagonal = K.diagonal(dim1=1, dim2=2).abs().sum(dim=1) / duals.sizes
    jitter = duals.rounding * duals.sizes.sqrt() * diagonal
    a, s, t = 0.5 * upper, torch.ones_like(upper), torch.ones_like(upper)
    b = torch.zeros_like(diagonal)
    live = torch.ones_like(b, dtype=torch.bool)
    steps = torch.zeros_like(b, dtype=torch.int64)
    while True:
        beta = (sign * a).sum(dim=1)
        F = duals.times(beta)
        residual = (sign * (F + b[:, None] - y)[:, None] + duals.tube - s + t) * on
        imbalance = beta.sum(dim=1) if duals.intercept else torch.zeros_like(b)
        gap = ((a * s + (upper - a) * t) * on).sum(dim=(1, 2))
        primal = 0.5 * (beta * F).sum(dim=1) + (upper * t.clamp(min=0)).sum(dim=(1, 2))
        off = (residual.abs() * upper).sum(dim=(1, 2)) + (imbalance * b).abs()
        live = live & ~((gap + off <= tol * primal) & (steps > 0)) & (steps < MOST_STEPS)
        live = live & gap.isfinite()
        if not bool(live.any()):
            return beta, steps
        below, above = torch.where(on, a, 1.0), torch.where(on, upper - a, 1.0)
        freedom = on / (s / below + t / above)
        inverse = torch.where(real, freedom.sum(dim=1).clamp(min=1e-300), 1.0)
        factor, failed = _factored(K, 1.0 / inverse, jitter)
        live = live & ~failed
        ones = torch.cholesky_solve(real.to(y.dtype)[:, :, None], factor)[:, :, 0]

        def direction(
            low_goal: Tensor, high_goal: Tensor, s: Tensor = s, t: Tensor = t, below: Tensor = below,
            above: Tensor = above, freedom: Tensor = freedom, inverse: Tensor = inverse,
            factor: Tensor = factor, ones: Tensor = ones, residual: Tensor = residual,
            imbalance: Tensor = imbalance,
        ) -> tuple[Tensor, Tensor, Tensor, Tensor]:  # fmt: skip
            """Newton's step towards a s = low_goal, (upper - a) t = high_goal."""
            right = (-residual + (low_goal / below - s) - (high_goal / above - t)) * on
            r = (sign * right * freedom).sum(dim=1) / inverse
            d_beta = torch.cholesky_solve(r[:, :, None], factor)[:, :, 0]
            d_b = torch.zeros_like(imbalance)
            if duals.intercept:
                d_b = (d_beta.sum(dim=1) + imbalance) / ones.sum(dim=1)
                d_beta = d_beta - d_b[:, None] * ones
            q = r - d_beta / inverse  # K d_beta + d_b
            d_a = (right - sign * q[:, None]) * freedom
            d_s = low_goal / below - s - s / below * d_a
            d_t = high_goal / above - t + t / above * d_a
            return d_a, d_s, d_t, d_b

        def length(d_a: Tensor, d_s: Tensor, d_t: Tensor, a: Tensor = a, s: Tensor = s, t: Tensor = t,
                   on: Tensor = on) -> Tensor:  # fmt: skip
            """The longest step up to 1 / BACK that leaves every value positive."""
            pairs = ((a, d_a), (upper - a, -d_a), (s, d_s), (t, d_t))
            ends = [torch.where(on & (d < 0), -x / d, torch.inf).amin(dim=(1, 2)) for x, d in pairs]
            return torch.stack(ends).amin(dim=0).clamp(max=1.0 / BACK)

        def along(x: Tensor, step: Tensor, d: Tensor) -> Tensor:
            return x + step[:, None, None] * d

        zero = torch.zeros_like(a)
        d_a, d_s, d_t, d_b = direction(zero, zero)
        step = length(d_a, d_s, d_t)
        ahead = along(a, step, d_a) * along(s, step, d_s)
        ahead = ahead + along(upper - a, step, -d_a) * along(t, step, d_t)
        ratio = (ahead * on).sum(dim=(1, 2)) / gap
        centre = (gap / (2 * on.sum(dim=(1, 2))) * ratio**3)[:, None, None]
        d_a, d_s, d_t, d_b = direction(centre - d_a * d_s, centre + d_a * d_t)
        step = torch.where(live, (BACK * length(d_a, d_s, d_t)).clamp(max=1.0), 0.0)
        still = (~live)[:, None, None]
        a, s, t = (torch.where(still, x, along(x, step, d)) for x, d in ((a, d_a), (s, d_s), (t, d_t)))
        b = torch.where(live, b + step * d_b, b)
        steps = steps + live


def _factored(K: Tensor, diagonal: Tensor, jitter: Tensor) -> tuple[Tensor, Tensor]:
    """Cholesky's factors of K + diag(diagonal), and of K moved by what rounding may have taken.

    And which members have none.
    """
    extra = torch.zeros_like(jitter)
    for level in (1.0, 10.0, 100.0, None):
        A = K.clone()
        A.diagonal(dim1=1, dim2=2).add_(diagonal + extra[:, None])
        factor, info = torch.linalg.cholesky_ex(A)
        failed = info != 0
        if level is None or not bool(failed.any()):
            break
        extra = torch.where(failed, level * jitter, extra)
    unit = torch.eye(K.shape[1], dtype=K.dtype, device=K.device)
    return torch.where(failed[:, None, None], unit, factor), failed
