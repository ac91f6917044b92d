"""From the decisions of many models on held-out rows to scores.

Without ``scoring`` these are the accuracy and R^2 of all models at once. Else every model is shown to
scikit-learn's scorer as an estimator that knows its decisions on the held-out rows already.
"""

from __future__ import annotations

from collections.abc import Callable
from difflib import get_close_matches
from numbers import Real
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.metrics import check_scoring, get_scorer_names

from asset_svm.arrays import Array, Matrix
from asset_svm.tasks import winner

Scorer = Callable[..., Any]
"""As scikit-learn's: called with an estimator, rows and targets, it returns a score."""


class _Decided(BaseEstimator):
    """A model whose decisions on some rows are known."""

    def __init__(self, X: Matrix, decisions: Array):
        self.X, self.decisions = X, decisions

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def _known(self, X: Matrix) -> Array:
        if X is not self.X:
            raise ValueError(
                "scoring asked for the decisions on other rows than those held out; in a search only "
                "these are known: use GridSearchCV with such a scorer."
            )
        return self.decisions


class _DecidedClassifier(ClassifierMixin, _Decided):
    """A classifier whose decisions on some rows are known."""

    def __init__(self, X: Matrix, decisions: Array, classes: Array):
        super().__init__(X, decisions)
        self.classes = self.classes_ = classes

    def decision_function(self, X: Matrix) -> Array:
        known = self._known(X)
        return known.ravel() if len(self.classes_) == 2 else known

    def predict(self, X: Matrix) -> Array:
        return self.classes_[winner(self._known(X))]


class _DecidedRegressor(RegressorMixin, _Decided):
    """A regressor whose predictions of some rows are known."""

    def predict(self, X: Matrix) -> Array:
        return self._known(X).ravel()


def check_one_scoring(estimator: BaseEstimator, scoring: Any) -> Scorer:
    """The scorer that ``scoring`` stands for; several at a time are refused."""
    if scoring is not None and not isinstance(scoring, str) and not callable(scoring):
        raise ValueError(
            f"scoring={scoring!r} is neither a name nor a function; a search has one score, such as "
            'scoring="balanced_accuracy".'
        )
    if isinstance(scoring, str) and scoring not in get_scorer_names():
        near = get_close_matches(scoring, get_scorer_names(), n=1)
        raise ValueError(
            f"scoring={scoring!r} is no score of scikit-learn"
            f"{f'; did you mean {near[0]!r}?' if near else ', see sklearn.metrics.get_scorer_names().'}"
        )
    scorer = check_scoring(estimator, scoring=scoring)
    if getattr(scorer, "_response_method", None) == "predict_proba":
        raise ValueError(
            f"scoring={scoring!r} needs probabilities, and models of a search have decisions; choose "
            "another, and calibrate the best model with CalibratedClassifierCV."
        )
    return scorer


def scores(
    scorer: Scorer | None, classes: Array | None, X: Matrix, y: Array, decisions: Array
) -> Array:
    """The score of each of many models, from (models, rows, outputs) decisions.

    By default it is the accuracy or R^2; NaN where there are too few rows for it.
    """
    if len(y) == 0:
        return np.full(len(decisions), np.nan)
    if scorer is not None:
        return np.array([_number(scorer(_shown(X, part, classes), X, y)) for part in decisions])
    if classes is not None:
        codes = np.searchsorted(classes, y)
        return np.array([float(np.mean(winner(part) == codes)) for part in decisions])
    if len(y) == 1:
        return np.full(len(decisions), np.nan)
    spread = float(((y - y.mean()) ** 2).sum())
    residual = ((decisions[:, :, 0] - y) ** 2).sum(axis=1)
    if spread == 0.0:
        return np.where(residual == 0.0, 1.0, 0.0)
    return np.asarray(1.0 - residual / spread)


def _number(score: Any) -> float:
    """The score as a number, which a user's own scorer need not give."""
    if np.ndim(score) == 0 and isinstance(getattr(score, "item", lambda: score)(), Real):
        return float(score)
    raise ValueError(
        f"scoring gave {score!r}, and a search compares numbers; let it return one number, the higher "
        "the better."
    )


def _shown(X: Matrix, decisions: Array, classes: Array | None) -> _Decided:
    """A model with these decisions, as a scorer sees it."""
    if classes is None:
        return _DecidedRegressor(X, decisions)
    return _DecidedClassifier(X, decisions, classes)
