"""The pilot: short runs with multipliers of the grid, to choose ``step_scale``.

D_X is a bound on |x|, and a loose one: solutions have a tenth to a thirtieth of that norm, so that
the paper's steps start too long. The middle multipliers of the grid train side by side, as models of
one axis, on a small sample of the rows, by the run's own rule, and are compared by the objective of
what they return on those rows: (PL) is about the rows trained on, and rows left out would measure
something else. While the largest wins the next one beyond is tried, and smaller ones while the
smallest is about as good as the best, or even the best is worse than coef = 0.

Truncated steps (see ``steps``) have a plateau: beyond some multiplier nearly all are truncated, and
longer ones are the same. With small lam all of the grid may lie there: it begins at its edge.

A short run favours short steps: the further a run goes, the longer the steps that pay. With the
paper's rule, on eight data sets, the best multiplier of a run of N steps was the best of its first
n = N/100 steps times 3 to 10, and of those the longer ones had the lower test errors; hence the
factor (N/n)^(1/2). In the metric a run visits every row of its sample once, as the long one does in
an epoch, and the best multipliers hardly differ: (N/n)^(1/6) where steps decay to 0, else 1. There
steps are truncated (see ``steps``), and a multiplier three times too long costs a per cent of the
objective, one three times too short more.

Deterministic for a seed.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from asset_svm import clock
from asset_svm.arrays import Array
from asset_svm.backends.base import Backend, Visits
from asset_svm.data import Order, ShuffledOrder, Targets, UniformOrder
from asset_svm.solvers.average import Average, CountWindow
from asset_svm.solvers.blocks import BlockRows, Cut
from asset_svm.solvers.state import ModelAxis, SolverState
from asset_svm.steps import GRID
from asset_svm.training.rows import RepeatedTargets, plain_coef

SHARE = 0.006
"""The steps of one multiplier's pilot, as a part of the run's."""
PILOT_STEPS = 1000
"""A pilot has at least so many steps."""
JUDGES = 4000
"""The multipliers are compared on at most so many rows."""
MOST_ROWS = 20_000
"""A pilot holds at most so many rows; where it has more steps, it visits them again."""
MOST_METRIC_STEPS = 3000
"""In the metric a pilot has at most so many steps."""
TIE = 0.02
"""Objectives closer than this part of what is left of them, and of what coef = 0 has more, count as
equal."""
DECAYING = 1 / 6
"""The power of N/n by which multipliers grow in the metric where steps decay to 0."""
LATE = 0.01
"""Steps in this last part of a run may be truncated or not: they hardly count."""
EXTENSIONS = 6
"""At most so many multipliers are tried beyond the middle of the grid."""
BISECTIONS = 40
"""The interval of the best intercept for coef = 0 is halved so many times."""


def choose_step_scale(
    backend: Backend,
    mapped: BlockRows,
    targets: Targets,
    weight: Array,
    rows: Array,
    axis: Callable[[float, int], ModelAxis],
    *,
    total: int,
    seed: int,
    average: float,
    grid: tuple[float, ...] = GRID,
    deadline: float = np.inf,
) -> float:
    """The multiplier whose short run ends in the lowest objective, carried to the whole run.

    Parameters
    ----------
    rows : array of int
        The numbers of the rows that there are to try steps on.
    axis : callable
        From (multiplier, steps) to the models of a run of so many steps.
    total : int
        The steps of the run that the multiplier is chosen for.
    average : float
        The fraction of its steps that a run averages.
    deadline : float
        The moment by ``clock.now`` at which pilots end, and what was seen so far decides.
    """
    rng = np.random.default_rng([seed, 2])
    in_metric = axis(1.0, 1).metric is not None
    steps = max(int(SHARE * total), PILOT_STEPS)
    if in_metric:
        steps = min(steps, MOST_METRIC_STEPS)
    fit = rows[rng.permutation(len(rows))[: min(steps, MOST_ROWS)]]
    held, judge = backend.hold(mapped, fit), fit[:JUDGES]
    learnt, w = targets.block(fit), weight[judge] / weight[judge].sum()
    y = learnt[:, : len(judge)]
    decays = False
    order: Order = UniformOrder(len(fit), seed, weight[fit])
    if in_metric and bool((weight[fit] == weight[fit[0]]).all()):
        order = ShuffledOrder(len(fit), seed)

    def objectives(scales: tuple[float, ...]) -> Array:
        nonlocal decays
        joined = ModelAxis.joined([axis(scale, steps) for scale in scales])
        decays = bool(joined.horizon.any())
        repeated = RepeatedTargets(learnt, len(scales))
        driver = backend.driver(
            Visits(held, repeated, order, Cut(backend.block_size)),
            joined,
            SolverState.zeros(len(joined.lam), mapped.dimension, mapped.dtype),
            Average(CountWindow(max(round(average * steps), 1))),
        )
        driver.advance(steps, deadline)
        driver.settle()
        coef, intercept = driver.model()
        f = held.margins(coef, len(judge)) + intercept[:, None]
        losses = joined.loss.value(np.tile(y, (len(scales), 1)), f) @ w
        plain = plain_coef(coef, joined.metric)
        values = losses + 0.5 * joined.lam * np.einsum("kd,kd->k", plain, plain)
        return values.reshape(len(scales), -1).sum(axis=1)

    unit = axis(1.0, steps)
    at_zero = unit.loss.value(y, np.zeros(y.shape))
    share = min(_plateau(unit, steps, at_zero, held.mean_square) / grid[0], 1.0)
    tried = tuple(share * scale for scale in grid)
    middle = tried[1:-1]
    found = dict(zip(middle, objectives(middle), strict=True))
    constant = _constant(unit, y, w)
    for _ in range(EXTENSIONS):
        if clock.now() > deadline:
            break
        best = min(found, key=lambda scale: found[scale])
        gained = max(constant - found[best], 0.0)
        near = found[best] + TIE * min(found[best], gained)
        # Long steps that are all truncated do about as well as each other: a plateau hides a valley.
        # Where nothing is gained there is none, and steps that do as well as each other stay long.
        slides = found[min(found)] <= near and len(set(found.values())) > 1
        if slides or found[best] > (at_zero @ w).sum():
            another = next((c for c in tried if c < min(found)), min(found) * GRID[1])
        elif best == max(found) < tried[0]:
            another = tried[0]
        else:
            break
        found[another] = objectives((another,))[0]
    exponent = (DECAYING if decays else 0.0) if in_metric else 1 / 2
    growth = (max(total, steps) / steps) ** exponent
    return float(min(_lowest(found) * growth, max(grid)))


def _plateau(axis: ModelAxis, steps: int, losses: Array, mean_square: float) -> float:
    """The multiplier beyond which steps hardly differ: all but the last ones are truncated.

    On a row of mean length with the mean loss, at coef = 0, of those that have any.
    """
    active = losses[losses > 0.0]
    if axis.reach == np.inf or len(active) == 0:
        return np.inf
    late = LATE if axis.horizon.any() else steps**-axis.power
    norm = mean_square + (1.0 if axis.free_intercept else 0.0)
    return float(axis.reach * active.mean() / (late * axis.eta.min() * norm))


def _constant(axis: ModelAxis, y: Array, w: Array) -> float:
    """The mean loss of coef = 0, with the best intercept where it is free; summed over the models."""
    if not axis.free_intercept:
        return float((axis.loss.value(y, np.zeros(y.shape)) @ w).sum())
    low, high = -axis.bound, axis.bound.copy()
    for _ in range(BISECTIONS):
        middle = 0.5 * (low + high)
        falls = axis.loss.slope(y, np.broadcast_to(middle[:, None], y.shape)) @ w < 0.0
        low, high = np.where(falls, middle, low), np.where(falls, high, middle)
    ends = [axis.loss.value(y, np.broadcast_to(b[:, None], y.shape)) @ w for b in (low, high)]
    return float(np.minimum(*ends).sum())


def _lowest(found: dict[float, float]) -> float:
    """The multiplier at which a parabola through the best and its neighbours is lowest, in logarithms.

    Between two multipliers that do about as well, chance would decide; the parabola lies between. Of
    those that do exactly as well, where steps change nothing, the largest.
    """
    scales = np.array(sorted(found))
    values = np.log(np.maximum([found[scale] for scale in scales], np.finfo(float).tiny))
    i = int(np.flatnonzero(values == values.min())[-1])
    if i in (0, len(scales) - 1):
        return float(scales[i])
    x = np.log(scales[i - 1 : i + 2])
    curve, slope, _ = np.polyfit(x - x[1], values[i - 1 : i + 2], 2)
    if curve <= 0.0:
        return float(scales[i])
    return float(np.exp(x[1] + np.clip(-0.5 * slope / curve, x[0] - x[1], x[2] - x[1])))
