"""The one door to the inside of an estimator, for the rest of the library.

Estimators have the public names of scikit-learn's and those that users are told of. What else their own
folder, searches, model files, clusters and commands need of them goes through here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from asset_svm.families import Fitted, Trained
from asset_svm.families.rows import Rows
from asset_svm.settings import Settings
from asset_svm.tasks import Task

if TYPE_CHECKING:
    from asset_svm.estimators.calibration import CalibratedClassifier
    from asset_svm.estimators.classifier import AssetClassifier
    from asset_svm.estimators.intervals import Intervals
    from asset_svm.estimators.learner import Learner
    from asset_svm.estimators.tables import TableEncoder

L = TypeVar("L", bound="Learner")


def settings_of(estimator: Learner) -> Settings:
    """The parameters of an estimator, checked and frozen."""
    return estimator._settings()


def task_of(estimator: Learner, settings: Settings, classes: Any = None) -> Task:
    """What an estimator with these settings learns, not settled by any rows yet."""
    return estimator._task(settings, classes)


def in_units(estimator: Learner, task: Task, y: np.ndarray, weight: np.ndarray) -> tuple[Any, Any]:
    """The task with the units of its targets, and these in them."""
    return estimator._in_units(task, y, weight)


def encoder_of(estimator: Learner | CalibratedClassifier) -> TableEncoder | None:
    """What makes numbers of the tables that a fitted estimator takes."""
    inner: Any = getattr(estimator, "estimator", estimator)
    return inner.__dict__.get("encoder_")


def take_encoder(estimator: Learner, encoder: TableEncoder) -> None:
    """Have an estimator take tables as an encoder does."""
    estimator._take_encoder(encoder)


def checked_rows(
    estimator: Learner,
    task: Task,
    X: Any,
    y: Any,
    sample_weight: Any,
    *,
    first: bool,
    means: bool = True,
) -> tuple[Task, Rows] | None:
    """The settled task, and checked rows of positive weight; None where there are none.

    Without ``means`` no target has a part in the numbers that are made of a table.
    """
    return estimator._check_rows(task, X, y, sample_weight, first=first, means=means)


def fit_watched(estimator: L, X: Any, y: Any, sample_weight: Any = None, **options: Any) -> L:
    """Fit an estimator while somebody looks on; options as for ``Learner._fit_watched``."""
    return estimator._fit_watched(X, y, sample_weight, **options)


def warn_of(estimator: Learner, settings: Settings, trained: Trained[Any]) -> None:
    """Warn where the model of an estimator is not what it should be."""
    estimator._warn(settings, trained)


def fitted_of(estimator: Learner | CalibratedClassifier) -> Any:
    """The model that the last fit has left."""
    return estimator._fitted  # where there is none, ``__getattr__`` tells


def intervals_of(estimator: Learner) -> Intervals | None:
    """What the intervals of a regression are made of, where it has any."""
    return estimator.__dict__.get("_intervals")


def take_intervals(estimator: Learner, intervals: Intervals) -> None:
    """Give a fitted regression its intervals."""
    estimator.__dict__["_intervals"] = intervals


def decided_by(estimator: Learner, X: Any) -> np.ndarray:
    """The (rows, K) decisions of a fitted estimator."""
    return estimator._decide(X)


def adopt(estimator: Learner, fitted: Fitted) -> None:
    """Take a model as that of a fit of the estimator."""
    estimator._adopt(fitted)


def copied_with(estimator: L, fitted: Fitted) -> L:
    """An estimator like this one, with another model."""
    return estimator._copy_with(fitted)


def probabilities_of(
    estimator: AssetClassifier | CalibratedClassifier, decisions: np.ndarray
) -> np.ndarray:
    """The (rows, classes) probabilities of rows that have these (rows, K) decisions."""
    return estimator._probabilities(decisions)


def predictions_of(
    estimator: Learner | CalibratedClassifier,
) -> Callable[[np.ndarray], np.ndarray]:
    """The function from (rows, K) decisions to predictions."""
    return estimator._predictions
