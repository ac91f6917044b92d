"""One class on one map: its lam, and its threshold, which other tasks have by their settings.

lam          by a search on some of the rows (``training.one_class``)
threshold    by the scores of all rows after a fit, of the last ones in a stream
"""

from __future__ import annotations

import math

import numpy as np

from asset_svm.backends.base import Backend
from asset_svm.families.epochs import Epochs
from asset_svm.families.one_map.drawn import DrawnMap
from asset_svm.families.one_map.trial import some_of
from asset_svm.families.rows import Rows
from asset_svm.settings import Settings
from asset_svm.tasks import OneClass, Task
from asset_svm.training.one_class import find_lam, threshold_of
from asset_svm.training.rows import TrainingRows
from asset_svm.training.solution import Solution
from asset_svm.training.stream import RECENT, OnlineSession

OUTSIDE = 2000
"""Rows that shall lie outside among those that lam is found by: with few of them, each is near itself
alone, and rho comes out too large."""
FEWEST, MOST = 1 << 12, 1 << 16
"""Rows that lam is found by, whatever nu is."""
SEARCH_EPOCHS = Epochs(least=5, steps=50_000)
PER_DOUBLING = 8
"""A stream settles its threshold anew so many times while its rows double."""


def lam_for(
    settings: Settings, task: Task, backend: Backend, drawn: DrawnMap, rows: Rows, seed: int
) -> float:
    """The regularisation lam of these rows: by the settings, or of one class by a search.

    Where the map has no metric yet, and steps are taken in one, it is found for the search.
    """
    if not isinstance(task, OneClass):
        return settings.lam_of(rows.weight.sum())
    count = int(np.clip(OUTSIDE / task.nu, FEWEST, MOST))
    some = rows.take(some_of(len(rows.y), count, np.random.default_rng([seed, 7])))
    encoded = task.encode(some.y)
    recipe = settings.recipe(encoded.loss, 1.0, 1, seed)
    order = some.order(settings.sampling, settings.step, seed)
    mapped = DrawnMap(drawn.phi, drawn.metric)  # rows that were mapped before stay those of the fit
    if drawn.metric is None:
        mapped = DrawnMap.measured(backend, drawn.phi, some, settings.step, seed)
    training = mapped.training(backend, some, encoded, *order)
    return find_lam(backend, recipe, training, task.nu, SEARCH_EPOCHS.over(len(some.y)))


def with_threshold(
    task: Task, rows: TrainingRows, solution: Solution, seed: int, *, in_time: bool = False
) -> Task:
    """The task with the threshold of these rows' scores; others have none.

    A run that must end ``in_time`` may not have mapped all rows, and has it by some of them.
    """
    if not isinstance(task, OneClass):
        return task
    coef = solution.coef if rows.metric is None else rows.metric.invert(solution.coef)
    most = max(MOST, math.ceil(OUTSIDE / task.nu)) if in_time else None
    return task.with_threshold(threshold_of(rows, coef, task.nu, seed, most))


def threshold_is_due(task: Task, before: int, after: int) -> bool:
    """Whether a stream that has grown to so many rows settles its threshold anew."""
    if not isinstance(task, OneClass):
        return False
    return before == 0 or _eighths(after) > _eighths(before)


def _eighths(rows: int) -> int:
    return math.floor(PER_DOUBLING * math.log2(max(rows, 1)))


def with_recent_threshold(task: Task, session: OnlineSession, backend: Backend, rows: Rows) -> Task:
    """The task with the threshold of a batch, or of the recent rows where these are more."""
    assert isinstance(task, OneClass)
    recent = session.recent
    X, weight = (rows.X, rows.weight) if len(rows.y) >= RECENT else (recent.X, recent.weight)
    plain = Rows(X, np.ones(len(weight)), weight, weight, np.arange(len(weight)))
    mapped = DrawnMap(session.phi, session.metric)
    training = mapped.training(
        backend, plain, task.encode(plain.y), *plain.order("given", session.recipe.step, 0)
    )
    coef = session.model[0]
    coef = coef if session.metric is None else session.metric.invert(coef)
    return task.with_threshold(threshold_of(training, coef, task.nu, session.recipe.seed))
