"""Landmarks where they matter: near the decision boundary of a first fit, or at its large residuals.

The first fit has few uniform landmarks and sees some of the rows; what it makes of these gives the
scores by which landmarks are drawn (``AssetClassifier._importance``, ``AssetRegressor._importance``).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from asset_svm.backends.base import Backend
from asset_svm.estimators.maps import draw_nystroem
from asset_svm.estimators.trial import some_of, trial
from asset_svm.features.landmarks import ScoredRows, uniform_landmarks
from asset_svm.features.landmarks.base import ROWS_A_LANDMARK

FIRST_COMPONENTS = 512
"""Landmarks of the first fit, at most."""
FEWEST_ROWS = 50_000
"""Rows that the first fit sees, where there are as many."""


def margin_sampler(
    learner: Any, backend: Backend, rows: Any, encoded: Any, seed: int, count: int
) -> ScoredRows:
    """A sampler of rows by their scores, for ``count`` landmarks; rows not looked at have score 0."""
    rng = np.random.default_rng([seed, 5])
    looked = some_of(rows, max(FEWEST_ROWS, ROWS_A_LANDMARK * count), rng)
    some = rows.take(looked)
    part = learner._encode(some.y, some.weight, encoded.labels)
    phi = draw_nystroem(
        learner,
        some.X,
        some.uneven,
        rng,
        min(FIRST_COMPONENTS, len(some.y)),
        uniform_landmarks,
        eigenbasis=learner._step == "metric",
        centred=learner._centred,
        features=backend.nystroem,
    )
    first = trial(learner, backend, phi, some, part, learner._lam(rows), seed)
    scores = np.zeros(len(rows.y))
    scores[looked] = learner._importance(first(some.X), some.y)
    return ScoredRows(scores)
