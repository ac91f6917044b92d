"""A tight lower bound of (PL), from a model that is nearly optimal.

The average slopes of a run (``problem``) are noisy, and the dual punishes noise by 1/lam: for small
lam their bound says little. Here the loss is smoothed over a width delta at its kink, and the smoothed
(PL) is solved by Newton's method from the given model. At its solution the slopes

    p_i = clip(1/2 + t_i / (2 delta), 0, 1),   t_i: how far row i is beyond its kink,

are a point of the dual that is stationary to rounding, and their bound is off by at most
(delta / 4) times the share of rows inside the width. delta is divided by 3 until that, too, is small.
A loss that is smooth by itself (``losses.base``) is left as it is. Where it has a tilt, slopes are
p_i - tilt.

Where the rows are too many for memory, Newton's method runs on a zone of those nearest to their kinks,
and all others keep the slope they have at the given model. Whatever the slopes, the bound is valid; it
is computed from them, not from the smoothed problem.

Cost: some 50 passes over the zone and 60 d^3 operations; seconds for 10^5 rows and d = 1000.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import scipy.linalg as la

from asset_svm.arrays import Array
from asset_svm.features import Metric
from asset_svm.losses import Loss
from asset_svm.problem import best_dual

Blocks = Callable[[], Iterable[tuple[Array, Array, Array]]]
"""Each call walks over all rows: (V, y of this model, weight) of a block at a time."""

ZONE_BYTES = 1 << 29
"""The zone: all rows where they fit into this, else as many of the nearest."""
WIDTH_FLOPS = 1e10
"""Rows inside the first delta: a fifth of all, unless their d x d matrix costs more than this (then
8 d). A wide start is the safe one: Newton's method sees all rows that may cross their kinks."""
ROUNDS = 3
"""The zone is drawn anew around the smoothed solution while that still helps."""
NEWTON_STEPS = 40
BLOCK = 1024
"""Rows that are turned into float64 at a time."""
PRECISION = 0.004
"""The smoothing's part of the objective at which delta is small enough."""


@dataclass(frozen=True, eq=False)
class _Zone:
    """The rows nearest to their kinks, with what all other rows contribute.

    ``V`` has a last column of ones where the intercept is free; ``side`` is the sign by which a
    margin moves a row towards its kink; ``outside`` holds the sums of w p side v over the other rows
    beyond their kinks, those of side -1 and of side +1, ``linear`` what they add to the dual value
    besides, and ``sums`` those of w p.
    """

    loss: Loss
    V: Array
    side: Array
    kink: Array
    weight: Array
    outside: Array
    linear: Array
    sums: Array


def tight_bound(
    loss: Loss,
    lam: float,
    coef: Array,
    intercept: float,
    blocks: Blocks,
    *,
    free_intercept: bool,
    metric: Metric | None = None,
) -> tuple[float, float, Array]:
    """(objective, lower bound) of (PL) for one model, and the solution of the smoothed problem.

    The latter is a better model where the given one is far from the optimum: coef, and the intercept
    at its end where that is free.

    Parameters
    ----------
    coef : array of shape (d,)
        With a ``metric``, coef' = T^(-1) coef, and the rows are those of V T.
    """
    metric = metric or Metric.identity(len(coef))
    if free_intercept:
        # The same problem, in which rounding and a ridge do not meet the mean of the rows.
        mean = _mean(blocks)
        blocks = _less(blocks, mean)
        intercept += float(mean @ coef)
    curvature = lam * metric.apply(metric.apply(np.eye(len(coef))))
    point = coef.astype(np.float64)
    if free_intercept:
        point = np.append(point, intercept)
        curvature = np.pad(curvature, (0, 1))
    objective, best = np.inf, -np.inf
    for round_ in range(ROUNDS):
        here, b = (point[:-1], float(point[-1])) if free_intercept else (point, 0.0)
        distance, total, losses = _distances(loss, here, b, blocks)
        plain = metric.apply(here[None])[0]
        if round_ == 0:
            objective = 0.5 * lam * float(plain @ plain) + losses / total
        m, d = len(distance), len(point)
        if m == 0:
            return objective, 0.0, np.zeros(d)
        near = min(m, max(ZONE_BYTES // (4 * d), 4 * d))
        inside = min(near, max(4 * d, min(m // 5, max(8 * d, int(WIDTH_FLOPS / d**2)))))
        zone = _gather(loss, here, b, blocks, _nearest(distance, near), free_intercept)
        value_of = _Bound(zone, lam, total, metric, free_intercept)
        found, point = _descend(
            zone, point, curvature, total, _nearest(distance, inside), objective, value_of
        )
        gained, best = found - best, max(best, found)
        if near == m or objective - best <= 0.01 * objective or gained <= 0.002 * objective:
            break
    if free_intercept:
        point[-1] -= float(mean @ point[:-1])
    return objective, best, point


def _mean(blocks: Blocks) -> Array:
    """The weighted mean of all rows, in float64."""
    total, sums = 0.0, np.zeros(0)
    for V, _, weight in blocks():
        part = weight @ V.astype(np.float64)
        sums = part if len(sums) == 0 else sums + part
        total += float(weight.sum())
    return np.asarray(sums / total)


def _less(blocks: Blocks, mean: Array) -> Blocks:
    """The blocks with this row taken off every other."""

    def walk() -> Iterator[tuple[Array, Array, Array]]:
        for V, y, weight in blocks():
            yield (V - mean).astype(V.dtype), y, weight

    return walk


def _nearest(distance: Array, count: int) -> float:
    """The width that holds the ``count`` rows nearest to their kinks."""
    return max(float(np.partition(np.abs(distance), count - 1)[count - 1]), 1e-6)


def _descend(
    zone: _Zone,
    point: Array,
    curvature: Array,
    total: float,
    delta: float,
    objective: float,
    bound: _Bound,
) -> tuple[float, Array]:
    """Solve for smaller and smaller delta; the best bound, and the last solution."""
    best = -np.inf
    for _ in range(12):
        point, slopes, smoothed = _newton(zone, point, curvature, total, delta)
        found = bound(slopes)
        gained, best = found - best, max(best, found)
        if smoothed <= PRECISION * objective or gained <= 0.001 * objective:
            break
        delta /= 3.0
    return best, point


def _distances(loss: Loss, coef: Array, intercept: float, blocks: Blocks) -> tuple[Array, float, float]:
    """t of all rows that the model sees; over all, the sum of the weights, and that of the losses."""
    parts, total, losses = [], 0.0, 0.0
    for V, y, weight in blocks():
        f = V.astype(np.float64) @ coef + intercept
        side, t = loss.kink(y, f)
        parts.append(t[side != 0.0])
        total += float(weight.sum())
        losses += float(weight @ loss.value(y, f))
    return np.concatenate(parts), total, losses


def _gather(
    loss: Loss, coef: Array, intercept: float, blocks: Blocks, limit: float, free_intercept: bool
) -> _Zone:
    """The rows with |t| <= limit, and the sums over the others."""
    kept: list[tuple[Array, ...]] = []
    width = len(coef) + free_intercept
    outside, linear, sums = np.zeros((2, width)), np.zeros(2), np.zeros(2)
    for V, y, weight in blocks():
        if free_intercept:
            V = np.column_stack([V, np.ones(len(V), dtype=V.dtype)])
        f = V[:, : len(coef)].astype(np.float64) @ coef + intercept
        side, t = loss.kink(y, f)
        kink = t + side * f  # the loss at margin 0, before it is cut at 0
        near = (np.abs(t) <= limit) & (side != 0.0)
        kept.append((V[near], side[near], kink[near], weight[near]))
        p = np.abs(loss.slope(y, f)) if loss.is_smooth else (t > 0).astype(np.float64)
        for sign, chosen in enumerate(_by_sign(side, p - loss.tilt)):
            w = np.where(chosen & ~near, weight * (p - loss.tilt), 0.0)
            outside[sign] += _exact_sum(w * side, V)
            linear[sign] += w @ (kink - loss.penalty(p))
            sums[sign] += np.abs(w).sum()
    V, side, kink, weight = (np.concatenate(part) for part in zip(*kept, strict=True))
    return _Zone(loss, V, side, kink, weight, outside, linear, sums)


def _by_sign(side: Array, slope: Array) -> tuple[Array, Array]:
    """The rows whose margins slopes by t pull down, and those whose margins they pull up."""
    return side * slope < 0.0, side * slope > 0.0


def _smooth(loss: Loss, t: Array, delta: float) -> tuple[Array, Array, Array]:
    """The smoothed h(t), its slope p, and the width of t over which p grows by 1."""
    if loss.is_smooth:
        return loss.rounded(t)
    p = np.clip(0.5 + t / (2.0 * delta), 0.0, 1.0)
    return np.where(p < 1.0, delta * p * p, t), p, np.broadcast_to(2.0 * delta, t.shape)


def _newton(
    zone: _Zone, point: Array, curvature: Array, total: float, delta: float
) -> tuple[Array, Array, float]:
    """Minimise the smoothed problem on the zone; also p there, and the smoothing's share."""
    pull = zone.outside.sum(axis=0) / total
    w = zone.weight / total

    def look(x: Array) -> tuple[float, Array, Array]:
        t = zone.kink - zone.side * (zone.V @ x.astype(zone.V.dtype)).astype(np.float64)
        smooth, p, width = _smooth(zone.loss, t, delta)
        loss = w @ (smooth - zone.loss.tilt * t)
        return float(0.5 * x @ curvature @ x - pull @ x + loss), p, width

    value, p, width = look(point)
    for _ in range(NEWTON_STEPS):
        push = ((w * (p - zone.loss.tilt) * zone.side).astype(zone.V.dtype) @ zone.V).astype(np.float64)
        gradient = curvature @ point - pull - push
        bent = np.flatnonzero((p > 0.0) & (p < zone.loss.steepest))
        rows = zone.V[bent]
        scaled = rows * (w[bent] / width[bent]).astype(rows.dtype)[:, None]
        hessian = curvature + (rows.T @ scaled).astype(np.float64)
        step = -_solve(hessian, gradient)
        expected = float(-gradient @ step)
        length = 1.0
        while True:
            moved, q, width = look(point + length * step)
            if moved <= value - 0.25 * length * expected or length < 1e-4:
                break
            length *= 0.5
        if moved >= value:
            break
        done = value - moved <= 1e-6 * max(value, 1e-12)
        point, value, p = point + length * step, moved, q
        if done:
            break
    return point, p, 0.0 if zone.loss.is_smooth else float(w @ (delta * p * (1.0 - p)))


def _exact_sum(weights: Array, V: Array) -> Array:
    """weights V in float64, whatever the type of V: a bound divides its error by lam."""
    total = np.zeros(V.shape[1])
    for start in range(0, len(V), BLOCK):
        total += weights[start : start + BLOCK] @ V[start : start + BLOCK].astype(np.float64)
    return total


def _solve(hessian: Array, gradient: Array) -> Array:
    """A positive definite system, with as much ridge as rounding has made necessary."""
    ridge = 1e-8 * float(np.trace(hessian)) / len(hessian)
    diagonal = np.diag_indices_from(hessian)
    while True:
        hessian[diagonal] += ridge
        try:
            return np.asarray(la.cho_solve(la.cho_factor(hessian, check_finite=False), gradient))
        except la.LinAlgError:
            ridge *= 100.0


@dataclass(frozen=True, eq=False)
class _Bound:
    """The function from slopes on a zone to their dual value."""

    zone: _Zone
    lam: float
    total: float
    metric: Metric
    free_intercept: bool

    def __call__(self, p: Array) -> float:
        zone, total = self.zone, self.total
        parts, linear, sums = zone.outside.copy(), zone.linear.copy(), zone.sums.copy()
        slope = p - zone.loss.tilt
        for sign, chosen in enumerate(_by_sign(zone.side, slope)):
            w = np.where(chosen, zone.weight * slope, 0.0)
            parts[sign] += _exact_sum(w * zone.side, zone.V)
            linear[sign] += w @ (zone.kink - zone.loss.penalty(p))
            sums[sign] += np.abs(w).sum()
        if self.free_intercept:
            parts = parts[:, :-1]
        plain = self.metric.invert(parts) / total
        return best_dual(self.lam, plain, linear / total, sums, self.free_intercept)
