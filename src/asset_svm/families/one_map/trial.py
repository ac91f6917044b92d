"""A quick fit inside a fit: what it finds decides the landmarks, or their number, of the real one."""

from __future__ import annotations

import numpy as np

from asset_svm.arrays import Array
from asset_svm.backends.base import Backend
from asset_svm.families.decision import Decision, decision_of
from asset_svm.families.epochs import Epochs
from asset_svm.families.one_map.drawn import DrawnMap
from asset_svm.families.rows import Rows
from asset_svm.features import FeatureMap
from asset_svm.settings import Settings
from asset_svm.tasks import Encoded
from asset_svm.training.run import train
from asset_svm.training.stopping import Stopping

TRIAL_EPOCHS = Epochs(least=5, steps=50_000)


def trial(
    settings: Settings,
    backend: Backend,
    phi: FeatureMap,
    rows: Rows,
    encoded: Encoded,
    lam: float,
    seed: int,
    few: Epochs = TRIAL_EPOCHS,
) -> Decision:
    """The decision function of a model trained for ``few`` epochs on these rows with this map."""
    recipe = settings.recipe(encoded.loss, lam, encoded.targets.n_models, seed)
    drawn = DrawnMap.measured(backend, phi, rows, recipe.step, seed)
    epochs = few.over(len(rows.y))
    if settings.max_iter is not None:
        epochs = min(epochs, int(settings.max_iter))
    order = rows.order(settings.sampling, settings.step, seed)
    training = drawn.training(backend, rows, encoded, *order)
    solution = train(backend, recipe, training, Stopping(epochs))
    return decision_of(solution.coef, solution.intercept, phi, encoded.offset)


def some_of(n_rows: int, count: int, rng: np.random.Generator) -> Array:
    """The numbers of at most ``count`` of the rows, drawn at random."""
    if n_rows <= count:
        return np.arange(n_rows)
    return np.sort(rng.choice(n_rows, size=count, replace=False))
