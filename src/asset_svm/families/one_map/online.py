"""Learning on one map from arrays that come one batch after the other.

Files that are read a window at a time, epoch after epoch, are those of ``windows``.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from asset_svm.backends.device import as_type, row_type
from asset_svm.families.observing import logger
from asset_svm.families.one_map.components import choose_map
from asset_svm.families.one_map.drawn import DrawnMap
from asset_svm.families.one_map.fitted import HISTORY, FittedMap
from asset_svm.families.one_map.one_class import lam_for, threshold_is_due, with_recent_threshold
from asset_svm.families.rows import Rows
from asset_svm.settings import Settings
from asset_svm.solvers import SolverState
from asset_svm.tasks import Encoded, Task, has_targets
from asset_svm.training.stream import OnlineSession


def begin_stream(settings: Settings, task: Task, rows: Rows) -> FittedMap:
    """The model of a first batch, which settles the map, lam and the steps."""
    encoded, seed = task.encode(rows.y), settings.draw_seed()
    backend = settings.backend(rows.X)
    phi, records = choose_map(settings, backend, rows, task, seed)
    lam = lam_for(settings, task, backend, DrawnMap(phi, None), rows, seed)
    if settings.lam is None:
        how = (
            "1 / (C * weight of the first rows)" if has_targets(task) else "nu * rho of the first rows"
        )
        logger.info("lam=%g = %s from now on", lam, how)
    K = encoded.targets.n_models
    session = OnlineSession(
        settings.recipe(encoded.loss, lam, K, seed),
        phi,
        float(rows.weight.mean()),
        SolverState.zeros(K, phi.dimension, row_type(rows.X)),
    )
    return _after(settings, task, session, rows, encoded, [], records, rows)


def go_on(settings: Settings, fitted: FittedMap, rows: Rows) -> FittedMap:
    """The model after one batch more."""
    if fitted.session is None:
        raise ValueError(f"This model cannot go on learning: {fitted.fixed}.")
    encoded = fitted.task.encode(rows.y)
    found = _after(settings, fitted.task, fitted.session.copy(), rows, encoded, fitted.history)
    return replace(
        found,
        indices=fitted.indices,
        map_key=fitted.map_key,
        component_search=fitted.component_search,
        beginning=fitted.beginning,
        extra=fitted.extra,
    )


def _after(
    settings: Settings,
    task: Task,
    session: OnlineSession,
    rows: Rows,
    encoded: Encoded,
    history: list[dict[str, Any]],
    component_search: list[dict[str, Any]] | None = None,
    drawn_from: Rows | None = None,
) -> FittedMap:
    """The model after a batch, which the session learns from."""
    backend, seen = settings.backend(rows.X), session.rows_seen
    certificate = session.update(
        backend,
        as_type(rows.X, session.state.direction.dtype),
        encoded.targets,
        rows.weight,
        encoded.y_max,
        shuffle=settings.sampling == "shuffle",
    )
    if threshold_is_due(task, seen, session.rows_seen):
        task = with_recent_threshold(task, session, backend, rows)
    steps = int(session.state.steps.max())
    record = {
        "batch": session.batches,
        "steps": steps,
        **session.record(),
        "objective": float(certificate.objective.sum()),
        "dual_gap": float(certificate.dual_gap.sum()),
    }
    return FittedMap.of(
        settings,
        task,
        session.model,
        certificate,
        session,
        drawn_from,
        n_iter=session.batches,
        steps=steps,
        step_scale=session.scale,
        history=[*history, record][-HISTORY:],
        component_search=component_search,
    )
