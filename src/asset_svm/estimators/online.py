"""Learning online, from arrays that come one batch after the other: ``partial_fit``.

Files that are read a window at a time, epoch after epoch, are those of ``windows``.
"""

from __future__ import annotations

from typing import Any

from asset_svm.estimators.base import Encoded
from asset_svm.estimators.device import as_type, row_type
from asset_svm.estimators.monitor import logger
from asset_svm.estimators.rows import Rows
from asset_svm.estimators.session import keep
from asset_svm.solvers import SolverState
from asset_svm.training.stream import OnlineSession

HISTORY = 32
"""Batches that the history of a stream reaches back."""


def learn_batch(learner: Any, rows: Rows, encoded: Encoded, *, first: bool) -> None:
    """Learn from one batch, and store the model on the learner."""
    session = _new_session(learner, rows, encoded) if first else learner._session.copy()
    certificate = session.update(
        learner._backend(rows.X),
        as_type(rows.X, session.state.direction.dtype),
        encoded.targets,
        rows.weight,
        encoded.y_max,
        shuffle=learner.sampling == "shuffle",
    )
    coef, intercept = session.model
    indices = getattr(learner, "component_indices_", None)
    learner._store(coef, intercept, session.phi, encoded)
    if first:
        learner._point_to(rows, True)
    elif indices is not None:
        learner.component_indices_ = indices
    learner._session = session
    learner.n_iter_, learner.t_ = session.batches, int(session.state.steps.max())
    learner.step_scale_ = session.scale
    learner.objective_ = float(certificate.objective.sum())
    learner.dual_gap_ = float(certificate.dual_gap.sum())
    add_record(learner, _record(learner, session))


def add_record(learner: Any, record: dict[str, Any]) -> None:
    """Add a line to the history, which forgets old ones."""
    learner.history_ = [*learner.history_, record][-HISTORY:]


def _new_session(learner: Any, rows: Rows, encoded: Encoded) -> OnlineSession:
    """What the first batch settles."""
    seed, lam = learner._seed(), learner._lam(rows)
    if learner.lam is None:
        logger.info("lam=%g = 1 / (C * weight of the first rows) from now on", lam)
    phi, told = learner._choose_map(learner._backend(rows.X), rows, encoded, seed)
    learner.__dict__.update(told)
    K = encoded.targets.n_models
    learner.lam_, learner.history_ = lam, []
    session = OnlineSession(
        learner._recipe(encoded.loss, lam, K, seed),
        phi,
        float(rows.weight.mean()),
        SolverState.zeros(K, phi.dimension, row_type(rows.X)),
    )
    keep(learner, session, encoded)
    return session


def _record(learner: Any, session: OnlineSession) -> dict[str, Any]:
    """One line of the history: what the loop saw of the batch before it learnt from it."""
    progress = session.progress
    assert progress is not None
    return {
        "batch": session.batches,
        "steps": learner.t_,
        "progressive_loss": float(progress.loss.sum()) / progress.steps,
        "active": float(progress.active.mean()) / progress.steps,
        "sign_errors": float(progress.errors.mean()) / progress.steps,
        "objective": learner.objective_,
        "dual_gap": learner.dual_gap_,
    }
