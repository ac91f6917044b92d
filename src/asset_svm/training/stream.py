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
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from asset_svm.arrays import Array, Matrix
from asset_svm.backends.base import Backend
from asset_svm.data import GivenOrder, Order, ShuffledOrder, Targets
from asset_svm.feasible import FeasibleSet
from asset_svm.features import FeatureMap, Metric
from asset_svm.features.metric import FEWEST_ROWS
from asset_svm.problem import Certificate
from asset_svm.solvers import Average, Cut, SolverState
from asset_svm.solvers.tallies import Progress, Slopes
from asset_svm.training.certificate import certify_rows, settle_intercept
from asset_svm.training.plan import StepSizes, measure, pilot_scale
from asset_svm.training.recipe import Recipe
from asset_svm.training.rows import TrainingRows, in_metric, plain_coef
from asset_svm.training.solution import Solution, check_finite

USUAL_SCALE = 0.1
"""The multiplier that pilots find most often: taken as long as there are no rows for one."""
RECENT = 1024
"""Estimates are made from so many of the last rows."""
HORIZON = 100
"""A pilot chooses for a run of so many times its own steps."""
OUTGROWN = 2.0
"""A multiplier says nothing of a D_X that is so many times the one it was found for."""


@dataclass(frozen=True, eq=False)
class Recent:
    """The last rows of a stream, at most ``RECENT``, with their targets and weights."""

    X: Matrix
    y: Array
    weight: Array

    @classmethod
    def none(cls, n_models: int) -> Recent:
        """No rows yet, before the first batch."""
        return cls(None, np.zeros((n_models, 0)), np.zeros(0))

    @property
    def enough(self) -> bool:
        """Whether there are enough rows to estimate anything from."""
        return len(self.weight) >= FEWEST_ROWS

    @property
    def n_models(self) -> int:
        """The number of models, K."""
        return len(self.y)

    def block(self, rows: Array) -> Array:
        """The (K, len(rows)) targets of these rows."""
        return self.y[:, rows]

    def last(self, count: int) -> Recent:
        """The last ``count`` of these rows."""
        return Recent(self.X[-count:], self.y[:, -count:], self.weight[-count:])

    def joined(self, X: Matrix, y: Array, weight: Array) -> Recent:
        """The last rows of these and a new batch."""
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
    mean_weight : float
        The mean weight of the first batch, which weights count relative to.
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
    y_max: float | Array = 0.0
    gradient_bounds: Array | None = None
    kappa: float = 0.0
    bulk: float | Array = np.inf
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
        return plain_coef(coef, self.metric), intercept

    @property
    def sets(self) -> list[FeasibleSet]:
        """The feasible set of each model, by what is known of the rows so far."""
        return self.recipe.feasible_sets(self.y_max, self.kappa, self.bulk, self.metric)

    @property
    def sizes(self) -> StepSizes:
        """What the steps are made of now."""
        assert self.gradient_bounds is not None
        scale = 1.0 if self.scale is None else self.scale
        return StepSizes(self.sets, self.gradient_bounds, self.kappa, self.bulk, scale)

    @property
    def size(self) -> float:
        """The largest D_X of all models."""
        return max(s.size for s in self.sets)

    def _estimate_metric(self, backend: Backend) -> None:
        """Find the metric of the recent rows, and carry the state over into it."""
        recent, seed = self.recent, self.recipe.seed + self.batches
        new = backend.find_metric(self.phi, recent.X, recent.weight, seed)
        old = self.metric or Metric.identity(self.phi.dimension)

        def change(A: Array) -> Array:
            return new.invert(old.apply(A))

        self.state.change_basis(change)
        self.average.change_basis(change)
        self.metric = new

    def _estimate_gradients(self, backend: Backend) -> None:
        """Estimate D_G and kappa from the recent rows; kappa only grows."""
        recent = self.recent
        m = recent.X.shape[0]
        rows = self._rows(backend, recent.X, recent, recent.weight, GivenOrder(m))
        first, found = self.gradient_bounds is None, measure(self.recipe, rows)
        self.gradient_bounds, self.kappa = found.bounds, max(self.kappa, found.kappa)
        self.bulk = found.bulk if first else larger(self.bulk, found.bulk)
        self.next_estimate = 2 * max(self.rows_seen, m)

    @classmethod
    def after(
        cls,
        solution: Solution,
        recipe: Recipe,
        phi: FeatureMap,
        metric: Metric | None,
        mean_weight: float,
        y_max: float | Array,
        steps: int,
    ) -> OnlineSession:
        """A session that goes on from the model of a run, at its step count."""
        state = state_at(solution.coef, solution.intercept, metric, solution.dtype, steps)
        session, sizes = cls(recipe, phi, mean_weight, state), solution.sizes
        session.y_max, session.scale, session.metric = y_max, solution.step_scale, metric
        session.gradient_bounds, session.kappa, session.bulk = sizes.bounds, sizes.kappa, sizes.bulk
        session.rows_seen, session.next_estimate = steps, 2 * steps
        session.scale_size = np.inf if recipe.step_scale is not None else session.size
        if solution.steps == 0:  # nothing was learnt, and nothing is known of the steps
            session.scale = session.gradient_bounds = None
        if session.scale is None:
            session.scale_size = 0.0
        return session

    def copy(self) -> OnlineSession:
        """A session that can be thrown away if its next batch fails."""
        return copy.deepcopy(self, {id(self.phi): self.phi})

    def prepare(
        self,
        backend: Backend,
        X: Matrix,
        targets: Targets,
        weight: Array,
        y_max: float | Array,
        steps: int,
    ) -> None:
        """Settle everything from a uniform sample of all rows, for a run of about ``steps`` steps."""
        self.y_max = y_max
        if self.recipe.step == "metric":
            self.metric = backend.find_metric(self.phi, X, weight, self.recipe.seed)
        rows = self._rows(backend, X, targets, weight, GivenOrder(X.shape[0]))
        found = measure(self.recipe, rows)
        self.gradient_bounds, self.kappa, self.bulk = found.bounds, found.kappa, found.bulk
        self._settle_scale(backend, rows, steps)

    def learn(self, backend: Backend, X: Matrix, targets: Targets, weight: Array) -> None:
        """Learn from one window of a prepared run, its rows in the order given."""
        rows = self._rows(backend, X, targets, weight, GivenOrder(X.shape[0]))
        self._run(backend, rows, None)

    def finish(
        self,
        backend: Backend,
        X: Matrix,
        targets: Targets,
        weight: Array,
        epochs: int,
        history: list[dict[str, Any]],
    ) -> Solution:
        """The solution of a prepared run that ends after so many epochs, by a sample of its rows.

        The intercept is settled by it, and the certificate is that of (PL) of these rows.
        """
        rows = self._rows(backend, X, targets, weight, GivenOrder(X.shape[0]))
        model = settle_intercept(rows, self.recipe, self.average.result(self.state))
        found, dtype = certify_rows(rows, self.recipe, model), rows.mapped.dtype
        return Solution.of(
            model, self.metric, found, self.sizes, dtype, epochs, self.rows_seen, history
        )

    def record(self) -> dict[str, float]:
        """What a history tells of the rows that were learnt from last."""
        assert self.progress is not None
        return self.progress.record(np.array(self.recipe.lam), self.model[0])

    def update(
        self,
        backend: Backend,
        X: Matrix,
        targets: Targets,
        weight: Array,
        y_max: float | Array,
        *,
        shuffle: bool = False,
    ) -> Certificate:
        """Learn from one batch; returns the certificate of (PL) on its rows."""
        n = X.shape[0]
        order: Order = ShuffledOrder(n, self.recipe.seed + self.batches) if shuffle else GivenOrder(n)
        self.y_max = larger(self.y_max, y_max)
        self.recent = self.recent.joined(X, targets.block(np.arange(n)), weight)
        first = self.gradient_bounds is None
        due = first or (self.rows_seen + n >= self.next_estimate and self.recent.enough)
        if due and self.recipe.step == "metric" and (first or self.recent.enough):
            self._estimate_metric(backend)
        if due:
            self._estimate_gradients(backend)
        rows = self._rows(backend, X, targets, weight, order)
        if self.scale is None or self.size > OUTGROWN * self.scale_size:
            telling = self._telling(backend, rows)
            self._settle_scale(backend, telling, HORIZON * telling.order.n_rows)
        slopes = Slopes.zeros(len(self.recipe.lam), n)
        self._run(backend, rows, slopes)
        certificate = certify_rows(
            rows, self.recipe, self.average.result(self.state), slopes, tight=False
        )
        check_finite(*self.model, certificate)
        return certificate

    def _rows(
        self, backend: Backend, X: Matrix, targets: Targets, weight: Array, order: Order
    ) -> TrainingRows:
        """The rows of a batch, mapped, in the metric if there is one."""
        return TrainingRows(
            backend.rows(in_metric(self.phi, self.metric), X),
            targets,
            order,
            weight,
            weight / self.mean_weight,
            self.y_max,
            self.metric,
        )

    def _settle_scale(self, backend: Backend, rows: TrainingRows, steps: int) -> None:
        """Settle the multiplier of D_X for so many steps: given, by a pilot, or the usual one."""
        assert self.gradient_bounds is not None
        if self.recipe.step_scale is not None:
            self.scale, self.scale_size = self.recipe.step_scale, np.inf
            return
        if rows.order.n_rows < FEWEST_ROWS or not self._has_loss(rows.targets, rows.order.n_rows).any():
            if self.scale is None:
                self.scale, self.scale_size = USUAL_SCALE, 0.0
            return
        found = pilot_scale(backend, self.recipe, rows, self.sizes, steps, decaying=self.horizon > 0)
        # The pilot counts its steps from 1, and those of a run on its way are shorter already.
        self.scale = max(found, self.scale) if self.scale is not None and self.scale_size else found
        self.scale_size = self.size

    def _telling(self, backend: Backend, rows: TrainingRows) -> TrainingRows:
        """The rows to settle a multiplier by: those of a batch, or the recent ones if it has few.

        Recent rows before the first that says something are left out.
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
        slopes: Slopes | None,
    ) -> None:
        """Visit every row once; what the loop saw on its way is ``progress``."""
        n, form = rows.order.n_rows, self.recipe.form
        visits = rows.visits(Cut(backend.block_size), form=form, length=n)
        axis = self.sizes.axis(self.recipe, self.metric, self.horizon)
        driver = backend.driver(visits, axis, self.state, self.average)
        driver.slopes = slopes
        driver.advance(n)
        driver.settle()
        self.batches += 1
        self.rows_seen += n
        self.progress = driver.take_progress()


def state_at(
    coef: Array, intercept: Array, metric: Metric | None, dtype: npt.DTypeLike, steps: Array | int
) -> SolverState:
    """A state whose iterate is this model, in the metric's basis, at these step counts."""
    K, d = coef.shape
    state = SolverState.zeros(K, d, dtype)
    state.direction[:] = coef if metric is None else metric.invert(coef)
    state.intercept[:] = intercept
    state.steps[:] = steps
    return state


def larger(one: float | Array, other: float | Array) -> float | Array:
    """The larger of two sizes, or of those of each model."""
    found = np.maximum(one, other)
    return found if found.ndim else float(found)
