"""Online learning: one pass over rows that come in batches, in constant memory.

The map, lam and the step's multiplier are settled by the first batch; from then on a batch moves the
iterate and its average. Where the loss's radius follows |y| (regression), the feasible set grows with
the largest |y| seen. D_G, and the metric where the steps have one, are estimated anew when the number
of rows seen has doubled, from the last 1024 of them: between two such moments the run is one of fixed
metric, and there are only logarithmically many.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from asset_svm.data import GivenOrder, Order, ShuffledOrder, Targets
from asset_svm.engines.certification import certify_rows
from asset_svm.engines.task import Engine, Recipe, TrainingRows
from asset_svm.engines.training import check_finite, pilot_scale, sample_gradients
from asset_svm.features import Evaluable, FeatureMap, Metric
from asset_svm.features.metric import FEWEST_ROWS
from asset_svm.problem import Certificate
from asset_svm.solvers import Average, ModelAxis, SolverState
from asset_svm.solvers.driver import Progress, Slopes

Array = npt.NDArray[Any]
Matrix = Any

SMALL_BATCH_SCALE = 0.1
"""A first batch with fewer rows is too small for a pilot: take what the pilot finds most often."""
RECENT = 1024
"""Rows of the stream that estimates are made from."""
HORIZON = 100
"""The pilot prepares for this many times the steps it takes."""


@dataclass(frozen=True, eq=False)
class Recent:
    """The last rows of a stream, at most ``RECENT``, with their targets and weights."""

    X: Matrix
    y: Array
    weight: Array

    @classmethod
    def none(cls, n_models: int) -> Recent:
        """Before the first batch."""
        return cls(None, np.zeros((n_models, 0)), np.zeros(0))

    @property
    def enough(self) -> bool:
        """Whether they are enough to estimate anything from."""
        return len(self.weight) >= FEWEST_ROWS

    @property
    def n_models(self) -> int:
        """K."""
        return len(self.y)

    def block(self, rows: Array) -> Array:
        """Their targets."""
        return self.y[:, rows]

    def joined(self, X: Matrix, y: Array, weight: Array) -> Recent:
        """With a new batch at the end."""
        if X.shape[0] >= RECENT or self.X is None:
            return Recent(X[-RECENT:].copy(), y[:, -RECENT:], weight[-RECENT:])
        stacked = sp.vstack([self.X, X], "csr") if sp.issparse(X) else np.vstack([self.X, X])
        return Recent(
            stacked[-RECENT:],
            np.hstack([self.y, y])[:, -RECENT:],
            np.concatenate([self.weight, weight])[-RECENT:],
        )


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
    recent: Recent = field(init=False)
    y_max: float = 0.0
    gradient_bounds: Array | None = None
    kappa: float = 0.0
    scale: float | None = None
    batches: int = 0
    metric: Metric | None = None
    rows_seen: int = 0
    next_estimate: int = 0
    progress: Progress | None = None

    def __post_init__(self) -> None:
        self.average = Average(self.recipe.window(None, stream=True))
        self.recent = Recent.none(len(self.recipe.lam))

    @property
    def model(self) -> tuple[Array, Array]:
        """The averaged (K, d) coef and (K,) intercept."""
        coef, intercept = self.average.result(self.state)
        return coef if self.metric is None else self.metric.apply(coef), intercept

    def _estimate_metric(self, engine: Engine) -> None:
        """The metric of the recent rows, the state carried over into it."""
        recent, seed = self.recent, self.recipe.seed + self.batches
        new = engine.find_metric(self.phi, recent.X, recent.weight, seed)
        old = self.metric or Metric.identity(self.phi.dimension)

        def change(A: Array) -> Array:
            return new.invert(old.apply(A))

        self.state.change_basis(change)
        self.average.change_basis(change)
        self.metric = new

    def _estimate_gradients(self, engine: Engine, phi: Evaluable) -> None:
        """D_G and kappa of the recent rows; kappa only grows."""
        recent = self.recent
        m = recent.X.shape[0]
        rows = TrainingRows(
            engine.rows(phi, recent.X, screen=False),
            recent,
            GivenOrder(m),
            recent.weight,
            recent.weight / self.mean_weight,
            self.y_max,
            self.metric,
        )
        self.gradient_bounds, kappa = sample_gradients(self.recipe, rows)
        self.kappa = max(self.kappa, kappa)
        self.next_estimate = 2 * max(self.rows_seen, m)

    def copy(self) -> OnlineSession:
        """A session that can be thrown away if its next batch fails."""
        return copy.deepcopy(self, {id(self.phi): self.phi})

    def update(
        self,
        engine: Engine,
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
        self.recent = self.recent.joined(X, targets.block(np.arange(n)), weight)
        first = self.gradient_bounds is None
        due = first or (self.rows_seen + n >= self.next_estimate and self.recent.enough)
        if due and self.recipe.step == "metric" and (first or self.recent.enough):
            self._estimate_metric(engine)
        phi = self.phi if self.metric is None else self.phi.in_metric(self.metric)
        if due:
            self._estimate_gradients(engine, phi)
        rows = TrainingRows(
            engine.rows(phi, X, screen=self.recipe.screens),
            targets,
            order,
            weight,
            slope_weight,
            self.y_max,
            self.metric,
        )
        with engine.pool(len(self.recipe.lam)) as pool:
            assert self.gradient_bounds is not None
            sets = self.recipe.feasible_sets(self.y_max, self.kappa)
            if self.scale is None:
                self.scale = self.recipe.step_scale
                if self.scale is None and n >= FEWEST_ROWS:
                    self.scale = pilot_scale(
                        engine,
                        self.recipe,
                        rows,
                        sets,
                        self.gradient_bounds,
                        HORIZON * n,
                        pool,
                        decaying=False,
                    )
                elif self.scale is None:
                    self.scale = SMALL_BATCH_SCALE
            rules = self.recipe.rules(sets, self.gradient_bounds, self.scale, 0, self.metric)
            driver = engine.driver(
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
                screen=rows.mapped.screens,
            )
            driver.slopes = Slopes.zeros(len(self.recipe.lam), n)
            driver.advance(n)
            driver.settle()
            self.batches += 1
            self.rows_seen += n
            certificate = certify_rows(
                rows, self.recipe, self.average.result(self.state), driver.slopes, tight=False
            )
            self.progress = driver.take_progress()
        check_finite(*self.model, certificate)
        return certificate
