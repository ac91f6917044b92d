"""Landmarks where they matter: near the decision boundary of a first fit, or at its large residuals.

The first fit has few uniform landmarks and sees some of the rows; what it makes of these gives the
scores by which landmarks are drawn (``Task.importance``).
"""

from __future__ import annotations

from functools import partial

import numpy as np

from asset_svm.backends.base import Backend
from asset_svm.families.one_map.maps import draw_map, draw_nystroem
from asset_svm.families.one_map.trial import some_of, trial
from asset_svm.families.rows import Rows
from asset_svm.features import FeatureMap
from asset_svm.features.landmarks import ScoredRows, uniform_landmarks
from asset_svm.features.landmarks.base import ROWS_A_LANDMARK
from asset_svm.settings import Settings
from asset_svm.tasks import Task

FIRST_COMPONENTS = 512
"""The first fit has at most so many landmarks."""
FEWEST_ROWS = 50_000
"""The first fit sees so many rows, where there are as many."""


def margin_sampler(
    settings: Settings, backend: Backend, rows: Rows, task: Task, seed: int, count: int
) -> ScoredRows:
    """A sampler of rows by their scores, for ``count`` landmarks; rows not looked at have score 0."""
    rng = np.random.default_rng([seed, 5])
    looked = some_of(len(rows.y), max(FEWEST_ROWS, ROWS_A_LANDMARK * count), rng)
    some = rows.take(looked)
    encoded = task.settled(some.y, some.weight).encode(some.y)
    phi = draw_nystroem(
        settings.map,
        some.X,
        some.uneven,
        rng,
        min(FIRST_COMPONENTS, len(some.y)),
        uniform_landmarks,
        eigenbasis=settings.step == "metric",
        centred=settings.centred,
        features=backend.nystroem,
    )
    lam = settings.lam_of(rows.weight.sum())
    first = trial(settings, backend, phi, some, encoded, lam, seed)
    scores = np.zeros(len(rows.y))
    scores[looked] = task.importance(first.by(backend, some.X), some.y)
    return ScoredRows(scores)


def draw_map_of(
    settings: Settings, backend: Backend, rows: Rows, task: Task, seed: int, count: int | None
) -> FeatureMap:
    """The map for these rows, with ``count`` components where the parameter has no number."""
    margin = partial(margin_sampler, settings, backend, rows, task, seed)
    return draw_map(settings, backend, rows.X, rows.uneven, seed, n_components=count, margin=margin)
