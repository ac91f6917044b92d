"""What ``partial_fit`` and ``warm_start`` go on from: the session that every fit by steps leaves."""

from __future__ import annotations

from typing import Any

import numpy as np

from asset_svm.estimators.base import Encoded, inner_intercept
from asset_svm.estimators.device import row_type
from asset_svm.features import FeatureMap, Metric
from asset_svm.solvers import SolverState
from asset_svm.training.recipe import Recipe
from asset_svm.training.solution import Solution
from asset_svm.training.stream import OnlineSession


def keep_session(
    learner: Any,
    solution: Solution,
    recipe: Recipe,
    phi: FeatureMap,
    metric: Metric | None,
    mean_weight: float,
    encoded: Encoded,
    steps: int,
) -> None:
    """Keep the averaged model, at its step count, to go on from."""
    dtype = solution.state.direction.dtype
    state = _state_at(solution.coef, solution.intercept, metric, dtype, steps)
    session = OnlineSession(recipe, phi, mean_weight, state)
    session.y_max, session.scale, session.metric = encoded.y_max, solution.step_scale, metric
    session.gradient_bounds, session.kappa = solution.gradient_bounds, solution.kappa
    session.bulk = solution.bulk
    session.rows_seen, session.next_estimate = steps, 2 * steps
    session.scale_size = np.inf if recipe.step_scale is not None else session.size
    if solution.epochs == 0:  # nothing was learnt, and nothing is known of the steps
        session.scale = session.gradient_bounds = None
    if session.scale is None:
        session.scale_size = 0.0
    keep(learner, session, encoded)


def adopt_model(
    learner: Any,
    phi: FeatureMap,
    coef: Any,
    intercept: Any,
    encoded: Encoded,
    dtype: Any,
    mean_weight: float,
    steps: int,
) -> None:
    """Take over a model of other making, from which ``partial_fit`` goes on."""
    seed, lam = learner._seed(), float(learner.lam)
    recipe = learner._recipe(encoded.loss, lam, len(coef), seed)
    learner._store(coef, intercept, phi, encoded)
    state = _state_at(coef, intercept, None, dtype, steps)
    keep(learner, OnlineSession(recipe, phi, mean_weight, state), encoded)
    learner.lam_, learner.history_ = lam, []


def keep(learner: Any, session: OnlineSession, encoded: Encoded) -> None:
    """Keep a session, and what its model was made for."""
    learner._session, learner._offset = session, encoded.offset
    learner._fitted_map_key, learner._fitted_labels = learner._map_key(), encoded.labels


def warm_parts(
    learner: Any, X: Any, encoded: Encoded
) -> tuple[FeatureMap | None, Metric | None, SolverState | None]:
    """The map, metric and iterates of an earlier fit, where ``warm_start`` can use them."""
    session = getattr(learner, "_session", None)
    if not learner.warm_start or session is None or learner._map_key() != learner._fitted_map_key:
        return None, None, None
    if session.phi.n_features_in != X.shape[1] or session.state.direction.dtype != row_type(X):
        return None, None, None
    if learner._fitted_labels != encoded.labels:
        return None, None, None
    coef, intercept = learner.coef_, inner_intercept(learner, session.phi, encoded.offset)
    # Steps that decay over this run count from its beginning; the paper's go on counting.
    steps = session.state.steps if session.metric is None else 0
    state = _state_at(coef, intercept, session.metric, row_type(X), steps)
    return session.phi, session.metric, state


def _state_at(coef: Any, intercept: Any, metric: Metric | None, dtype: Any, steps: Any) -> SolverState:
    """A state whose iterate is this model, in the metric's basis, at these step counts."""
    K, d = coef.shape
    state = SolverState.zeros(K, d, dtype)
    state.direction[:] = coef if metric is None else metric.invert(coef)
    state.intercept[:] = intercept
    state.steps[:] = steps
    return state
