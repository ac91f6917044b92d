"""What the steps of a run are made of: feasible sets, D_G, and the multiplier of D_X.

    sample    the lengths of rows, and the slopes at 0, of a random sample of them
    sets      the feasible set of each model
    scale     given, or found by a pilot on some of the rows

Whoever trains (all rows at once, folds, shards, a stream) has its steps from here.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from asset_svm.arrays import Array
from asset_svm.backends.base import Backend
from asset_svm.feasible import FeasibleSet
from asset_svm.features import Metric
from asset_svm.solvers import ModelAxis
from asset_svm.training.gradients import GradientSample, bulk_of
from asset_svm.training.pilot import DECAYING, choose_step_scale
from asset_svm.training.recipe import Recipe
from asset_svm.training.rows import TrainingRows


@dataclass(frozen=True, eq=False)
class StepSizes:
    """What the steps of K models are made of.

    Parameters
    ----------
    sets : list of FeasibleSet
        The feasible set of each model.
    bounds : array of shape (K,)
        D_G of each model.
    kappa : float
        The largest |v| of the sample.
    bulk : float or array of shape (K,)
        The size of most targets, of all models or of each.
    scale : float
        The multiplier of D_X.
    """

    sets: list[FeasibleSet]
    bounds: Array
    kappa: float
    bulk: float | Array
    scale: float = 1.0

    @property
    def trivial(self) -> bool:
        """Whether epsilon >= |y|_inf: (0, 0) is the only feasible point, and a solution."""
        return max(s.radius for s in self.sets) == 0.0

    def for_part(self, part: float) -> StepSizes:
        """Those of a stage that has this part of the steps, where they decay to 0 in the metric."""
        return replace(self, scale=self.scale * part**DECAYING)

    def axis(self, recipe: Recipe, metric: Metric | None, horizon: int) -> ModelAxis:
        """The models of a run of ``horizon`` steps that decay to 0; of any length where that is 0."""
        rules = recipe.rules(self.sets, self.bounds, self.scale, horizon, metric)
        return ModelAxis.build(recipe.loss, recipe.lam, self.sets, rules)


def measure(recipe: Recipe, rows: TrainingRows) -> StepSizes:
    """The step sizes by a random sample of the rows, with a multiplier that is not found yet."""
    even = bool((rows.weight == rows.weight[0]).all())
    p = None if even or rows.slope_weight is not None else rows.weight / rows.weight.sum()
    sample = GradientSample.draw(recipe, rows.mapped, rows.order.n_rows, rows.metric, p)
    weight = None if rows.slope_weight is None else rows.slope_weight[sample.rows]
    y = rows.targets.block(sample.rows)
    bulk = bulk_of(y, weight, each=np.ndim(rows.y_max) > 0)
    sets = recipe.feasible_sets(rows.y_max, sample.kappa, bulk, rows.metric)
    return StepSizes(sets, sample.bounds(recipe, y, weight), sample.kappa, bulk)


def find_step_sizes(
    backend: Backend,
    recipe: Recipe,
    rows: TrainingRows,
    steps: int,
    *,
    decaying: bool,
) -> StepSizes:
    """The step sizes for runs of about so many steps, by all rows or a sample of them."""
    found, scale = measure(recipe, rows), recipe.step_scale
    if scale is None and not found.trivial:
        scale = pilot_scale(backend, recipe, rows, found, steps, decaying=decaying)
    return found if scale is None else replace(found, scale=scale)


def pilot_scale(
    backend: Backend,
    recipe: Recipe,
    rows: TrainingRows,
    sizes: StepSizes,
    total: int,
    *,
    decaying: bool,
) -> float:
    """The multiplier of D_X for a run of ``total`` steps."""
    if recipe.step == "strong":
        return 1.0

    def axis(scale: float, steps: int) -> ModelAxis:
        return replace(sizes, scale=scale).axis(recipe, rows.metric, steps if decaying else 0)

    return choose_step_scale(
        backend,
        rows.mapped,
        rows.targets,
        rows.weight,
        np.arange(rows.order.n_rows),
        axis,
        total=total,
        seed=recipe.seed,
        average=recipe.usual_average(decaying=decaying),
    )
