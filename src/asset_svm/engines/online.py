"""Online learning: one pass over rows that come in batches, in constant memory.

The map, lam, D_G and the step's multiplier are settled by the first batch; from then on a batch only
moves the iterate and its average. Where the loss's radius follows |y| (regression), the feasible set
grows with the largest |y| seen.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from asset_svm.data import GivenOrder, Order, ShuffledOrder, Targets
from asset_svm.engines.local import LocalEngine
from asset_svm.engines.training import (
    Recipe,
    TrainingRows,
    certify_rows,
    pilot_scale,
    sample_gradients,
)
from asset_svm.features import FeatureMap
from asset_svm.problem import Certificate
from asset_svm.solvers import Average, Driver, ModelAxis, SolverState
from asset_svm.solvers.driver import Slopes

Array = npt.NDArray[Any]
Matrix = Any

SMALL_BATCH = 100
SMALL_BATCH_SCALE = 0.1
"""A first batch with fewer rows is too small for a pilot: take what the pilot finds most often."""
HORIZON = 100
"""The pilot prepares for this many times the steps it takes."""


@dataclass(eq=False)
class OnlineSession:
    """A model that goes on learning.

    Parameters
    ----------
    recipe : Recipe
    phi : FeatureMap
    mean_weight : float
        Of the first batch: weights count relative to it.
    state : SolverState
    """

    recipe: Recipe
    phi: FeatureMap
    mean_weight: float
    state: SolverState
    average: Average = field(init=False)
    y_max: float = 0.0
    gradient_bounds: Array | None = None
    kappa: float = 0.0
    scale: float | None = None
    batches: int = 0

    def __post_init__(self) -> None:
        self.average = Average(self.recipe.window(None, stream=True))

    @property
    def model(self) -> tuple[Array, Array]:
        """The averaged (K, d) coef and (K,) intercept."""
        return self.average.result(self.state)

    def copy(self) -> OnlineSession:
        """A session that can be thrown away if its next batch fails."""
        return copy.deepcopy(self, {id(self.phi): self.phi})

    def update(
        self,
        engine: LocalEngine,
        X: Matrix,
        targets: Targets,
        weight: Array,
        y_max: float,
        *,
        shuffle: bool = False,
    ) -> Certificate:
        """Learn from one batch; returns the certificate of (PL) on its rows."""
        n = X.shape[0]
        order: Order = ShuffledOrder(n, self.recipe.seed + self.batches) if shuffle else GivenOrder(n)
        slope_weight = weight / self.mean_weight
        self.y_max = max(self.y_max, y_max)
        rows = TrainingRows(
            engine.rows(self.phi, X), targets, order, weight, slope_weight, self.y_max
        )
        with engine.pool(len(self.recipe.lam)) as pool:
            if self.gradient_bounds is None:
                self.gradient_bounds, self.kappa = sample_gradients(self.recipe, rows)
            sets = self.recipe.feasible_sets(self.y_max, self.kappa)
            if self.scale is None:
                self.scale = self.recipe.step_scale
                if self.scale is None and n >= SMALL_BATCH:
                    self.scale = pilot_scale(
                        engine, self.recipe, rows, sets, self.gradient_bounds, HORIZON * n, pool
                    )
                elif self.scale is None:
                    self.scale = SMALL_BATCH_SCALE
            rules = self.recipe.rules(sets, self.gradient_bounds, self.scale)
            driver = Driver(
                rows.mapped,
                targets,
                order,
                ModelAxis.build(self.recipe.loss, self.recipe.lam, sets, rules),
                self.state,
                self.average,
                weight=slope_weight,
                block_size=engine.block_size,
                form=self.recipe.form,
                pool=pool,
                length=n,
            )
            driver.slopes = Slopes.zeros(len(self.recipe.lam), n)
            driver.advance(n)
            self.batches += 1
            return certify_rows(driver, rows, self.recipe)
