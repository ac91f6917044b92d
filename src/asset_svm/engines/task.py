"""What a run is made of: how to solve, on what rows, when to stop, and what comes out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol

import numpy as np
import numpy.typing as npt

from asset_svm.data import GivenOrder, Order, Targets
from asset_svm.feasible import FeasibleSet
from asset_svm.features import Evaluable, FeatureMap, Metric, NystroemFeatures
from asset_svm.losses import Loss
from asset_svm.problem import Certificate
from asset_svm.solvers import (
    BlockRows,
    CountWindow,
    Cut,
    FinalWindow,
    FractionWindow,
    NoWindow,
    RowBlock,
    SolverState,
)
from asset_svm.solvers.average import Window
from asset_svm.solvers.driver import Form
from asset_svm.solvers.pilot import Trials
from asset_svm.steps import MetricStep, RobustStep, StepRule, StrongStep

Array = npt.NDArray[Any]
StepKind = Literal["robust", "strong", "metric"]
Matrix = Any
BLOCK = 1024
"""Rows at a time, where all of them are looked at once."""
UNASKED = 1e9
"""Operations up to which the tight bound is computed unasked: some tenths of a second."""
MANY_MODELS = 128
"""From so many on a fit goes by the blocked form: 200 classes take as long as by loops over rows, with
one thread, and 1000 half as long."""


class Engine(Trials, Protocol):
    """Who evaluates phi and runs the loop."""

    @property
    def nystroem(self) -> type[NystroemFeatures]:
        """The class of Nystroem maps whose landmarks are factored here."""

    def rows(self, phi: Evaluable, X: Matrix) -> BlockRows:
        """phi of the rows of X."""

    def memory(self) -> int:
        """Bytes that mapped rows may take."""

    def cut(self) -> Cut:
        """Steps between two looks at a run."""

    def working(self, rows: BlockRows) -> AbstractContextManager[None]:
        """Inside, rows are mapped ahead of the loop, where the engine has threads for it."""

    def pool(self, n_models: int) -> AbstractContextManager[ThreadPoolExecutor | None]:
        """Threads for the models of a block."""

    def find_metric(self, phi: FeatureMap, X: Matrix, weight: Array, seed: int) -> Metric:
        """The metric of the data from a random sample of rows."""

    @property
    def hides_rows_by_model(self) -> bool:
        """Whether models that train together may each see other rows."""

    @property
    def crew(self) -> int:
        """Threads for the models of a search."""

    def map_all(self, rows: BlockRows, pool: ThreadPoolExecutor | None) -> None:
        """Map the rows that are kept ahead of time."""

    def held_out(self, phi: FeatureMap, X: Matrix) -> Callable[[Array], Array]:
        """A function from (K, d) coef to the (rows, K) decisions on these rows, without intercept."""


@dataclass(frozen=True)
class Recipe:
    """How to solve K problems (PL): everything but the rows.

    Parameters
    ----------
    loss : Loss
    lam : tuple of float
        One a model.
    step : {"robust", "strong", "metric"}
    step_scale : float or None
        None: by a pilot.
    average : float, int, None or "auto"
        "auto": the last half; the last twentieth where the steps decay to 0.
    free_intercept : bool
    intercept_bound : float or None
        None: the loss's own.
    gradient_sample : int
    form : {"row", "blocked"}
    seed : int
    tight_within : float
        Operations that the tight bound of a certificate may take without a ``tol`` that asks for it.
    """

    loss: Loss
    lam: tuple[float, ...]
    step: StepKind = "robust"
    step_scale: float | None = None
    average: float | int | Literal["auto"] | None = "auto"
    free_intercept: bool = True
    intercept_bound: float | None = None
    gradient_sample: int = 1000
    form: Form = "row"
    seed: int = 0
    tight_within: float = UNASKED

    def feasible_sets(
        self, y_max: float, kappa: float, bulk: float, metric: Metric | None
    ) -> list[FeasibleSet]:
        """X of each model; ``kappa`` is the largest |v|, ``bulk`` the size of most targets.

        The paper's, for its steps. Steps in the metric have smaller ones where a few targets are far
        larger than all others, which would make them too long: slopes are at most 1, so that
        |coef| <= kappa / lam; and where |y| <= bulk for half of the rows, their slopes alone keep
        an optimal intercept below the bound for these.
        """
        sets = []
        for lam in self.lam:
            radius, largest = self.loss.radius(lam, y_max), y_max
            if self.step == "metric" and kappa > 0.0:
                radius, largest = min(radius, kappa / lam), min(bulk, y_max)
            bound = self.intercept_bound
            if bound is None:
                bound = self.loss.intercept_bound(largest, kappa * radius)
            if metric is not None:
                radius /= metric.least
            sets.append(FeasibleSet(radius, bound if self.free_intercept else None))
        return sets

    def rules(
        self,
        sets: list[FeasibleSet],
        gradient_bounds: Array,
        scale: float,
        horizon: int = 0,
        metric: Metric | None = None,
    ) -> list[StepRule]:
        """The step rule of each model; ``horizon`` is the number of steps, 0 where not known."""
        if metric is not None:
            return [
                MetricStep(s.size, float(g), metric, scale, horizon)
                for s, g in zip(sets, gradient_bounds, strict=True)
            ]
        if self.step == "strong":
            return [StrongStep(lam) for lam in self.lam]
        return [RobustStep(s.size, float(g), scale) for s, g in zip(sets, gradient_bounds, strict=True)]

    @property
    def loop_form(self) -> Form:
        """How rows are stepped through; by many models with matrix products that they share."""
        return "blocked" if len(self.lam) >= MANY_MODELS else self.form

    def usual_average(self, *, decaying: bool) -> float:
        """The fraction that "auto" stands for."""
        return 0.05 if self.step == "metric" and decaying else 0.5

    def window(self, total: int | None, *, stream: bool = False, looked_at: bool = True) -> Window:
        """The averaging window of a run of ``total`` steps (None: not known).

        ``stream`` says that the steps do not decay to 0 at its end, ``looked_at`` that its model is
        of interest before.
        """
        if self.average is None:
            return NoWindow()
        if isinstance(self.average, int):
            return CountWindow(self.average, total, every_step=total is None)
        fraction = self.average
        if fraction == "auto":
            fraction = self.usual_average(decaying=not stream)
        if total is None or looked_at:
            return FractionWindow(fraction, total)
        return FinalWindow(fraction, total)


@dataclass(frozen=True)
class Stopping:
    """When to stop.

    Parameters
    ----------
    epochs : int
        At most this many.
    tol : float or None
        Stop when gap / objective is below it; checked after 1, 2, 4, 8, ... epochs.
    deadline : float
        By ``clock.now``.
    after_epoch : callable, optional
        Called with (epoch, model, record); returns True to stop.
    chosen : callable, optional
        Gives the model to return instead of the last one, or None.
    early : bool
        Whether ``after_epoch`` is there to stop the run.
    watched : bool
        Whether ``after_epoch`` looks at the model.
    """

    epochs: int
    tol: float | None = None
    deadline: float = float("inf")
    after_epoch: Callable[[int, tuple[Array, Array], dict[str, Any]], bool] | None = None
    chosen: Callable[[], tuple[Array, Array] | None] | None = None
    early: bool = False
    watched: bool = False

    @property
    def looked_at(self) -> bool:
        """Whether the model is of interest before the end of the run."""
        return self.watched or self.early or not self.end_is_known or self.tol is not None

    @property
    def end_is_known(self) -> bool:
        """Whether the run, or a stage of it, ends when planned: steps can decay to 0 then."""
        return self.deadline == float("inf") and not self.early

    def stage(self, done: int) -> int:
        """The epochs of the next stage: all, or, to be checked by ``tol``, as many as are done."""
        left = self.epochs - done
        return left if self.tol is None else min(max(done, 1), left)


@dataclass(frozen=True, eq=False)
class Solution:
    """The averaged model of a run and what is known of it."""

    coef: Array
    intercept: Array
    certificate: Certificate
    epochs: int
    step_scale: float | None
    state: SolverState
    gradient_bounds: Array
    kappa: float
    steps: int = 0
    history: list[dict[str, Any]] = field(default_factory=list)
    timed_out: bool = False
    bulk: float = float("inf")


@dataclass(frozen=True, eq=False)
class TrainingRows:
    """The rows of a run: mapped, with targets, weights of (PL), and the order of visits.

    ``slope_weight`` multiplies slopes where the order itself does not follow the weights. With a
    ``metric`` the mapped rows are those of V T.
    """

    mapped: BlockRows
    targets: Targets
    order: Order
    weight: Array
    slope_weight: Array | None
    y_max: float
    metric: Metric | None = None

    def indices(self) -> Iterator[Array]:
        """The numbers of all rows in their order, a block at a time."""
        size = self.mapped.look_size
        for start in range(0, self.order.n_rows, size):
            yield np.arange(start, min(start + size, self.order.n_rows))

    def some(self, count: int, seed: int) -> TrainingRows:
        """At most ``count`` of the rows, drawn at random."""
        m = self.order.n_rows
        if count >= m:
            return self
        chosen = np.sort(np.random.default_rng([seed, 4]).choice(m, size=count, replace=False))
        return replace(
            self,
            mapped=_Some(self.mapped, chosen),
            targets=_SomeTargets(self.targets, chosen),
            order=GivenOrder(count),
            weight=self.weight[chosen],
            slope_weight=None,
        )

    def take(self, index: Array) -> Array:
        """The mapped rows of these numbers."""
        V, positions = self.mapped.fetch(index)
        return V[positions, : self.mapped.dimension]


@dataclass(frozen=True, eq=False)
class _Some:
    """Some of the mapped rows."""

    mapped: BlockRows
    chosen: Array

    @property
    def dimension(self) -> int:
        return self.mapped.dimension

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.mapped.dtype

    def fetch(self, rows: Array) -> tuple[Array, Array]:
        return self.mapped.fetch(self.chosen[rows])

    @property
    def look_size(self) -> int:
        return self.mapped.look_size

    @property
    def looks_ahead(self) -> int:
        return self.mapped.looks_ahead

    def expect(self, rows: Array) -> None:
        self.mapped.expect(self.chosen[rows])

    def open(self, rows: Array) -> RowBlock:
        return self.mapped.open(self.chosen[rows])


@dataclass(frozen=True, eq=False)
class _SomeTargets:
    """The targets of some of the rows."""

    targets: Targets
    chosen: Array

    @property
    def n_models(self) -> int:
        return self.targets.n_models

    def block(self, rows: Array) -> Array:
        return self.targets.block(self.chosen[rows])
