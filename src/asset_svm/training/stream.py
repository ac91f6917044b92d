"""Online learning: one pass over rows that come in batches, in constant memory.

The map and lam are settled by the first batch; from then on a batch moves the iterate and its average.
Where the loss's radius follows |y| (regression), the feasible set grows with the largest |y| seen. The
step's multiplier of D_X is settled by the first rows on which the model 0 has a loss at all (targets
inside epsilon say nothing of steps), and anew when D_X has outgrown what it was found for. D_G, and the
metric where the steps have one, are estimated anew when the number of rows seen has doubled, from the
last 1024 of them: between two such moments the run is one of fixed metric, and there are only
logarithmically many.

A run over a file (``prepare``, then ``learn`` a window at a time) knows its rows beforehand: everything
is settled by a sample of all of them, and its steps decay to 0 at a known end.
"""

from __future__ import annotations

import copy
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from asset_svm.backends.base import Backend
from asset_svm.data import GivenOrder, Order, ShuffledOrder, Targets
from asset_svm.feasible import FeasibleSet
from asset_svm.features import FeatureMap, Metric
from asset_svm.features.metric import FEWEST_ROWS
from asset_svm.problem import Certificate
from asset_svm.solvers import Average, Cut, SolverState
from asset_svm.solvers.tallies import Progress, Slopes
from asset_svm.training.certificate import certify_rows, settle_intercept
from asset_svm.training.plan import StepSizes, pilot_scale, sample_gradients
from asset_svm.training.recipe import Recipe
from asset_svm.training.rows import TrainingRows
from asset_svm.training.solution import check_finite

Array = npt.NDArray[Any]
Matrix = Any

USUAL_SCALE = 0.1
"""What the pilot finds most often: taken as long as there are no rows for one."""
RECENT = 1024
"""Rows of the stream that estimates are made from."""
HORIZON = 100
"""The pilot prepares for this many times the steps it takes."""
OUTGROWN = 2.0
"""Times the D_X that a multiplier was found for: it says nothing of a larger one."""


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

    def last(self, count: int) -> Recent:
        """The last so many of them."""
        return Recent(self.X[-count:], self.y[:, -count:], self.weight[-count:])

    def joined(self, X: Matrix, y: Array, weight: Array) -> Recent:
        """With a new batch at the end."""
        last = X[-RECENT:]
        if hasattr(last, "cpu"):  # a tensor on the card
            last = last.cpu().numpy()
        if X.shape[0] >= RECENT or self.X is None:
            return Recent(last.copy(), y[:, -RECENT:], weight[-RECENT:])
        if sp.issparse(self.X) or sp.issparse(last):  # batches may be of either kind
            stacked = sp.vstack([sp.csr_matrix(self.X), sp.csr_matrix(last)], "csr")
        else:
            stacked = np.vstack([self.X, last])
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
    horizon : int
        The number of steps there will be, 0 where it is not known.
    """

    recipe: Recipe
    phi: FeatureMap
    mean_weight: float
    state: SolverState
    horizon: int = 0
    average: Average = field(init=False)
    recent: Recent = field(init=False)
    y_max: float = 0.0
    gradient_bounds: Array | None = None
    kappa: float = 0.0
    bulk: float = np.inf
    scale: float | None = None
    scale_size: float = np.inf
    """The D_X that ``scale`` was found for: 0 where it was not found, infinity where it was given."""
    batches: int = 0
    metric: Metric | None = None
    rows_seen: int = 0
    next_estimate: int = 0
    progress: Progress | None = None

    def __post_init__(self) -> None:
        self.average = Average(self.recipe.window(self.horizon or None, stream=not self.horizon))
        self.recent = Recent.none(len(self.recipe.lam))

    @property
    def model(self) -> tuple[Array, Array]:
        """The averaged (K, d) coef and (K,) intercept."""
        coef, intercept = self.average.result(self.state)
        return coef if self.metric is None else self.metric.apply(coef), intercept

    @property
    def sets(self) -> list[FeasibleSet]:
        """X of each model, by what is known of the rows so far."""
        return self.recipe.feasible_sets(self.y_max, self.kappa, self.bulk, self.metric)

    @property
    def sizes(self) -> StepSizes:
        """What the steps are made of now."""
        assert self.gradient_bounds is not None
        scale = 1.0 if self.scale is None else self.scale
        return StepSizes(self.sets, self.gradient_bounds, self.kappa, self.bulk, scale)

    @property
    def size(self) -> float:
        """D_X, the largest of all models."""
        return max(s.size for s in self.sets)

    def _estimate_metric(self, backend: Backend) -> None:
        """The metric of the recent rows, the state carried over into it."""
        recent, seed = self.recent, self.recipe.seed + self.batches
        new = backend.find_metric(self.phi, recent.X, recent.weight, seed)
        old = self.metric or Metric.identity(self.phi.dimension)

        def change(A: Array) -> Array:
            return new.invert(old.apply(A))

        self.state.change_basis(change)
        self.average.change_basis(change)
        self.metric = new

    def _estimate_gradients(self, backend: Backend) -> None:
        """D_G and kappa of the recent rows; kappa only grows."""
        recent = self.recent
        m = recent.X.shape[0]
        rows = self._rows(backend, recent.X, recent, recent.weight, GivenOrder(m))
        first = self.gradient_bounds is None
        self.gradient_bounds, kappa, bulk = sample_gradients(self.recipe, rows)
        self.kappa = max(self.kappa, kappa)
        self.bulk = bulk if first else max(self.bulk, bulk)
        self.next_estimate = 2 * max(self.rows_seen, m)

    def copy(self) -> OnlineSession:
        """A session that can be thrown away if its next batch fails."""
        return copy.deepcopy(self, {id(self.phi): self.phi})

    def prepare(
        self, backend: Backend, X: Matrix, targets: Targets, weight: Array, y_max: float, steps: int
    ) -> None:
        """Settle everything from a uniform sample of all rows, for a run of about ``steps`` steps."""
        self.y_max = y_max
        if self.recipe.step == "metric":
            self.metric = backend.find_metric(self.phi, X, weight, self.recipe.seed)
        rows = self._rows(backend, X, targets, weight, GivenOrder(X.shape[0]))
        self.gradient_bounds, self.kappa, self.bulk = sample_gradients(self.recipe, rows)
        with backend.pool(len(self.recipe.lam)) as pool:
            self._settle_scale(backend, rows, steps, pool)

    def learn(self, backend: Backend, X: Matrix, targets: Targets, weight: Array) -> Progress:
        """Learn from one window of a prepared run, its rows in the order given."""
        rows = self._rows(backend, X, targets, weight, GivenOrder(X.shape[0]))
        with backend.pool(len(self.recipe.lam)) as pool:
            return self._run(backend, rows, pool, None)

    def finish(
        self, backend: Backend, X: Matrix, targets: Targets, weight: Array
    ) -> tuple[Array, Array, Certificate]:
        """(coef, intercept, certificate) of a run over a file, by a sample of its rows.

        The intercept is settled by it, and the certificate is that of (PL) of these rows.
        """
        rows = self._rows(backend, X, targets, weight, GivenOrder(X.shape[0]))
        model = settle_intercept(rows, self.recipe, self.average.result(self.state))
        certificate = certify_rows(rows, self.recipe, model)
        coef = model[0] if self.metric is None else self.metric.apply(model[0])
        check_finite(coef, model[1], certificate)
        return coef, model[1], certificate

    def update(
        self,
        backend: Backend,
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
        self.y_max = max(self.y_max, y_max)
        self.recent = self.recent.joined(X, targets.block(np.arange(n)), weight)
        first = self.gradient_bounds is None
        due = first or (self.rows_seen + n >= self.next_estimate and self.recent.enough)
        if due and self.recipe.step == "metric" and (first or self.recent.enough):
            self._estimate_metric(backend)
        if due:
            self._estimate_gradients(backend)
        rows = self._rows(backend, X, targets, weight, order)
        with backend.pool(len(self.recipe.lam)) as pool:
            if self.scale is None or self.size > OUTGROWN * self.scale_size:
                telling = self._telling(backend, rows)
                self._settle_scale(backend, telling, HORIZON * telling.order.n_rows, pool)
            slopes = Slopes.zeros(len(self.recipe.lam), n)
            progress = self._run(backend, rows, pool, slopes)
            certificate = certify_rows(
                rows, self.recipe, self.average.result(self.state), slopes, tight=False
            )
            self.progress = progress
        check_finite(*self.model, certificate)
        return certificate

    def _rows(
        self, backend: Backend, X: Matrix, targets: Targets, weight: Array, order: Order
    ) -> TrainingRows:
        """Rows mapped by phi, in the metric where there is one."""
        phi = self.phi if self.metric is None else self.phi.in_metric(self.metric)
        return TrainingRows(
            backend.rows(phi, X),
            targets,
            order,
            weight,
            weight / self.mean_weight,
            self.y_max,
            self.metric,
        )

    def _settle_scale(
        self, backend: Backend, rows: TrainingRows, steps: int, pool: ThreadPoolExecutor | None
    ) -> None:
        """The multiplier of D_X for ``steps`` steps: given, by a pilot, or for now the usual one."""
        assert self.gradient_bounds is not None
        if self.recipe.step_scale is not None:
            self.scale, self.scale_size = self.recipe.step_scale, np.inf
            return
        if rows.order.n_rows < FEWEST_ROWS or not self._has_loss(rows.targets, rows.order.n_rows).any():
            if self.scale is None:
                self.scale, self.scale_size = USUAL_SCALE, 0.0
            return
        found = pilot_scale(
            backend, self.recipe, rows, self.sizes, steps, pool, decaying=self.horizon > 0
        )
        # The pilot counts its steps from 1, and those of a run on its way are shorter already.
        self.scale = max(found, self.scale) if self.scale is not None and self.scale_size else found
        self.scale_size = self.size

    def _telling(self, backend: Backend, rows: TrainingRows) -> TrainingRows:
        """The rows to settle a multiplier by: those of a batch, or the recent ones if it has few.

        Of these none before the first that says something.
        """
        recent = self.recent
        if rows.order.n_rows >= FEWEST_ROWS or not recent.enough:
            return rows
        m = len(recent.weight)
        last = recent.last(m - int(self._has_loss(recent, m).argmax()))
        return self._rows(backend, last.X, last, last.weight, GivenOrder(len(last.weight)))

    def _has_loss(self, targets: Targets, n_rows: int) -> Array:
        """Whether the model 0 has a loss on each of the rows."""
        y = targets.block(np.arange(n_rows))
        return np.asarray((self.recipe.loss.value(y, np.zeros(y.shape)) > 0.0).any(axis=0))

    def _run(
        self,
        backend: Backend,
        rows: TrainingRows,
        pool: ThreadPoolExecutor | None,
        slopes: Slopes | None,
    ) -> Progress:
        """One visit of every row."""
        assert self.gradient_bounds is not None and self.scale is not None
        n = rows.order.n_rows
        driver = backend.driver(
            rows.mapped,
            rows.targets,
            rows.order,
            self.sizes.axis(self.recipe, self.metric, self.horizon),
            self.state,
            self.average,
            weight=rows.slope_weight,
            cut=Cut(backend.block_size),
            form=self.recipe.form,
            pool=pool,
            length=n,
        )
        driver.slopes = slopes
        driver.advance(n)
        driver.settle()
        self.batches += 1
        self.rows_seen += n
        return driver.take_progress()
