"""What a fit on one map leaves: the model, what is known of it, and what the next fit goes on from."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from asset_svm.arrays import Array, Matrix
from asset_svm.backends.device import row_type
from asset_svm.families.base import Fitted
from asset_svm.families.beginning import Beginning
from asset_svm.families.decision import Decision, decision_of
from asset_svm.families.one_map.drawn import DrawnMap
from asset_svm.families.rows import Rows
from asset_svm.features import FeatureMap, Metric, NystroemFeatures
from asset_svm.features.kernel_basis import KernelBasis
from asset_svm.problem import Certificate
from asset_svm.settings import Settings
from asset_svm.solvers import SolverState
from asset_svm.tasks import Task
from asset_svm.training.recipe import Recipe
from asset_svm.training.solution import Solution
from asset_svm.training.stream import OnlineSession, state_at

HISTORY = 32
"""The history of a stream reaches back so many batches."""
COMPACTED = "it was compacted; take the model that it was made from"
BARE = "it holds no more than prediction needs; take the model that it was made from"
"""Why a model cannot go on learning, and what to do."""


@dataclass(frozen=True, eq=False)
class FittedMap:
    """A model on one map.

    Parameters
    ----------
    coef : array of shape (K, d) or None
        The coefficients of features; None where there is no map that they belong to.
    phi : FeatureMap or None
        None where the model is fixed.
    indices : array, optional
        The rows that are landmarks, numbered as the user passed them.
    session : OnlineSession or None
        What ``partial_fit`` and ``warm_start`` go on from.
    map_key : tuple or None
        ``Settings.map_key`` of the settings that the map was drawn with.
    component_search : list of dict, optional
        The trials of n_components="auto".
    beginning : Beginning, optional
        The first rows of a stream, as long as the model may begin anew.
    extra : dict
        Attributes that some kinds of fits have besides.
    fixed : str or None
        Why the model cannot go on learning, and what to do; None where it can.
    """

    task: Task
    coef: Array | None
    phi: FeatureMap | None
    decision: Decision
    indices: Array | None
    session: OnlineSession | None
    map_key: tuple[Any, ...] | None
    lam: float
    n_iter: int
    steps: int
    step_scale: float | None
    objective: float
    dual_gap: float
    history: list[dict[str, Any]]
    component_search: list[dict[str, Any]] | None = None
    beginning: Beginning | None = None
    extra: dict[str, Any] = field(default_factory=dict)
    fixed: str | None = None

    @classmethod
    def of(
        cls,
        settings: Settings,
        task: Task,
        model: tuple[Array, Array],
        certificate: Certificate,
        session: OnlineSession,
        rows: Rows | None,
        *,
        n_iter: int,
        steps: int,
        step_scale: float | None,
        history: list[dict[str, Any]],
        component_search: list[dict[str, Any]] | None = None,
        extra: dict[str, Any] | None = None,
    ) -> FittedMap:
        """The model of a session; ``rows`` are those that its map was drawn from, where it was."""
        phi, coef = session.phi, np.asarray(model[0], dtype=np.float64)
        indices = getattr(phi, "indices", None)
        if rows is not None and indices is not None and not _is_given(settings):
            indices = rows.index[indices]
        return cls(
            task,
            coef,
            phi,
            decision_of(coef, model[1], phi, task.offset),
            indices,
            session,
            settings.map_key,
            session.recipe.lam[0],
            n_iter,
            steps,
            step_scale,
            float(certificate.objective.sum()),
            float(certificate.dual_gap.sum()),
            history,
            component_search,
            extra=extra or {},
        )

    @classmethod
    def solved(
        cls,
        settings: Settings,
        task: Task,
        drawn: DrawnMap,
        recipe: Recipe,
        solution: Solution,
        rows: Rows | None,
        *,
        mean_weight: float,
        y_max: float | Array,
        steps_before: int = 0,
        component_search: list[dict[str, Any]] | None = None,
        extra: dict[str, Any] | None = None,
    ) -> FittedMap:
        """The model that a run has found, and a session that goes on from it.

        ``rows`` are those that the map was drawn from, where it was; ``mean_weight`` and ``y_max`` are
        those of all rows that the run has learnt from, ``steps_before`` the steps of a run before it.
        """
        steps = steps_before + solution.steps
        session = OnlineSession.after(
            solution, recipe, drawn.phi, drawn.metric, mean_weight, y_max, steps
        )
        return cls.of(
            settings,
            task,
            (solution.coef, solution.intercept),
            solution.certificate,
            session,
            rows,
            n_iter=solution.epochs,
            steps=steps,
            step_scale=solution.step_scale,
            history=solution.history,
            component_search=component_search,
            extra=extra,
        )

    @classmethod
    def so_far(cls, task: Task, phi: FeatureMap, coef: Array, intercept: Array) -> FittedMap:
        """The model of a run that goes on, which can predict and no more."""
        coef, unknown = np.asarray(coef, dtype=np.float64), float("nan")
        decision = decision_of(coef, intercept, phi, task.offset)
        indices = getattr(phi, "indices", None)
        return cls(
            task, coef, phi, decision, indices, None, None,
            unknown, 0, 0, None, unknown, unknown, [], fixed=BARE,
        )  # fmt: skip

    @property
    def landmarks(self) -> Matrix | None:
        """The landmarks; None where there are none."""
        return getattr(self.decision.source, "components", None)

    def attributes(self) -> dict[str, Any]:
        """What users see of the model, by the names of an estimator's attributes."""
        source = self.decision.source
        found: dict[str, Any] = {
            "intercept_": self.decision.intercept,
            "n_iter_": self.n_iter,
            "t_": self.steps,
            "lam_": self.lam,
            "history_": self.history,
            "step_scale_": self.step_scale,
            "objective_": self.objective,
            "dual_gap_": self.dual_gap,
        }
        if self.coef is not None:
            found |= {"map_coef_": self.coef, "n_components_": self.coef.shape[1]}
        if self.phi is not None:
            found["feature_map_"] = self.phi
        if hasattr(source, "components"):
            found["dual_coef_"] = self.decision.weights
            found["components_"] = source.components
            found["component_indices_"] = self.indices
            found["gamma_"] = source.kernel.gamma
        if isinstance(self.phi, NystroemFeatures):
            found["approximation_error_"] = self.phi.trace_error
        if self.component_search is not None:
            found["component_search_"] = self.component_search
        return found | self.extra

    def intercept_of(self, phi: FeatureMap) -> Array:
        """The intercepts as training sees them: beside phi(x).coef, for targets less the offset."""
        assert self.coef is not None
        return np.asarray(self.decision.intercept - self.task.offset + phi.drift(self.coef))

    def begun_with(self, beginning: Beginning | None) -> FittedMap:
        """The model with other first rows."""
        return replace(self, beginning=beginning)

    def counted_after(self, before: FittedMap) -> FittedMap:
        """This model of a first batch as one more batch after those of another."""
        batches = before.n_iter + 1
        if self.session is not None:
            self.session.batches = batches
        history = [*before.history, {**self.history[-1], "batch": batches}][-HISTORY:]
        return replace(self, n_iter=batches, history=history)

    def compacted(self) -> FittedMap:
        """A model that predicts from d kernel values instead of s."""
        phi = self.phi
        assert isinstance(phi, NystroemFeatures) and self.coef is not None
        chosen, weights = phi.compact(self.coef)
        basis = KernelBasis(phi.kernel, phi.components[chosen], wide=phi.wide)
        decision = Decision(basis, weights, self.decision.intercept)
        change = decision(phi.components) - self.decision(phi.components)
        return replace(
            self,
            phi=None,
            session=None,
            beginning=None,
            indices=None if self.indices is None else self.indices[chosen],
            decision=decision,
            extra={**self.extra, "compact_error_": float(np.abs(change).max())},
            fixed=COMPACTED,
        )

    def bare(self) -> FittedMap:
        """The model with no more than prediction needs, and what is known of it in numbers.

        The coefficients of features stay where these are what decisions are sums of.
        """
        phi, decision, coef, extra = self.phi, self.decision, self.coef, dict(self.extra)
        if coef is not None:
            extra["n_components_"] = coef.shape[1]
        if isinstance(phi, NystroemFeatures):
            basis = KernelBasis(phi.kernel, phi.components, wide=phi.wide)
            decision = Decision(basis, decision.weights, decision.intercept)
            extra["approximation_error_"] = phi.trace_error
        return replace(
            self,
            coef=decision.weights if self.landmarks is None else None,
            phi=None,
            session=None,
            map_key=None,
            beginning=None,
            decision=decision,
            extra=extra,
            fixed=self.fixed or BARE,
        )


def adopted(
    settings: Settings,
    task: Task,
    phi: FeatureMap,
    coef: Array,
    intercept: Array,
    dtype: npt.DTypeLike,
    mean_weight: float,
    steps: int,
) -> FittedMap:
    """A model that was not found by a run, as one that a stream goes on from."""
    seed, lam = settings.draw_seed(), settings.lam
    assert lam is not None
    recipe = settings.recipe(task.loss, lam, len(coef), seed)
    session = OnlineSession(recipe, phi, mean_weight, state_at(coef, intercept, None, dtype, steps))
    nothing = Certificate(np.zeros(1), np.zeros(1))
    return FittedMap.of(
        settings, task, (coef, intercept), nothing, session, None,
        n_iter=0, steps=steps, step_scale=None, history=[],
    )  # fmt: skip


@dataclass(frozen=True, eq=False)
class WarmStart:
    """The map, metric and iterates of an earlier fit."""

    phi: FeatureMap
    metric: Metric | None
    state: SolverState
    steps: int
    indices: Array | None


def warm_start(settings: Settings, before: Fitted | None, task: Task, X: Matrix) -> WarmStart | None:
    """What a fit goes on from, where ``warm_start`` asks for it and the earlier fit serves."""
    if not settings.warm_start or not isinstance(before, FittedMap):
        return None
    if before.fixed is not None:
        raise ValueError(
            f"warm_start=True goes on from the steps of an earlier fit, and this model has none: "
            f"{before.fixed}, or set warm_start=False."
        )
    if before.session is None or before.coef is None:
        return None
    session, phi = before.session, before.session.phi
    if before.map_key != settings.map_key or not same_classes(before.task, task):
        return None
    if len(before.coef) != task.n_models:  # other quantiles
        return None
    if phi.n_features_in != X.shape[1] or session.state.direction.dtype != row_type(X):
        return None
    intercept = before.decision.intercept - task.offset + phi.drift(before.coef)
    if not session.recipe.free_intercept:
        intercept = np.zeros(len(before.coef))  # what is there is a threshold, and no iterate
    # Steps that decay over this run count from its beginning; the paper's go on counting.
    steps = session.state.steps if session.metric is None else 0
    state = state_at(before.coef, intercept, session.metric, row_type(X), steps)
    return WarmStart(phi, session.metric, state, before.steps, before.indices)


def same_classes(one: Task, other: Task) -> bool:
    """Whether two tasks have as many models, and the same classes, or both none."""
    if one.n_models != other.n_models:
        return False
    if one.classes is None or other.classes is None:
        return one.classes is other.classes
    known: list[Any] = [task.classes for task in (one, other)]
    listed = [[np.asarray(each).tolist() for each in own] for own in known]
    return listed[0] == listed[1]


def _is_given(settings: Settings) -> bool:
    """Whether the landmarks are those of a map that was fitted before, and no rows of this fit."""
    return hasattr(settings.approximation, "features_")
