"""A quick fit inside a fit: what it finds decides the landmarks, or their number, of the real one."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from asset_svm.backends.base import Backend
from asset_svm.estimators.base import decision_of
from asset_svm.estimators.drawn import DrawnMap
from asset_svm.estimators.epochs import Epochs
from asset_svm.features import FeatureMap
from asset_svm.training.rows import TrainingRows
from asset_svm.training.run import train
from asset_svm.training.stopping import Stopping

TRIAL_EPOCHS = Epochs(least=5, steps=50_000)


def trial(
    learner: Any, backend: Backend, phi: FeatureMap, rows: Any, encoded: Any, lam: float, seed: int
) -> Callable[[Any], np.ndarray]:
    """The decisions of a few epochs on these rows with this map."""
    recipe = learner._recipe(encoded.loss, lam, encoded.targets.n_models, seed)
    drawn = DrawnMap.measured(backend, phi, rows, recipe.step, seed)
    order, slope_weight = rows.order(learner.sampling, learner._step, seed)
    epochs = TRIAL_EPOCHS.over(len(rows.y))
    if learner.max_iter is not None:
        epochs = min(epochs, int(learner.max_iter))
    training = TrainingRows(
        drawn.rows(backend, rows.X),
        encoded.targets,
        order,
        rows.weight,
        slope_weight,
        encoded.y_max,
        drawn.metric,
    )
    solution = train(backend, recipe, training, Stopping(epochs))
    return partial(decision_of(solution.coef, solution.intercept, phi, encoded).by, backend)


def some_of(rows: Any, count: int, rng: np.random.Generator) -> np.ndarray:
    """The numbers of at most ``count`` of the rows, drawn at random."""
    m = len(rows.y)
    return np.arange(m) if m <= count else np.sort(rng.choice(m, size=count, replace=False))
