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
from asset_svm.estimators.validation import classes_of
from asset_svm.tasks import Quantiles, Task
from asset_svm.tasks.quantiles import in_order

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

    def __init__(self, X: Matrix, decisions: Array, task: Task):
        super().__init__(X, decisions)
        self.task, self.classes_ = task, classes_of(task)

    def decision_function(self, X: Matrix) -> Any:
        return self.task.decisions(self._known(X))

    def predict(self, X: Matrix) -> Array:
        return self.task.predict(self._known(X))


class _DecidedRegressor(RegressorMixin, _Decided):
    """A regressor whose predictions of some rows are known; quantiles are put in order."""

    def __init__(self, X: Matrix, decisions: Array, *, ordered: bool):
        super().__init__(X, decisions)
        self.ordered = ordered

    def predict(self, X: Matrix) -> Array:
        known = self._known(X)
        known = in_order(known) if self.ordered else known
        return known.ravel() if known.shape[1] == 1 else known


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


def scores(scorer: Scorer | None, task: Task, X: Matrix, y: Array, decisions: Array) -> Array:
    """The score of each of many models, from (models, rows, outputs) decisions.

    By default it is the accuracy or R^2; NaN where there are too few rows for it.
    """
    if len(y) == 0:
        return np.full(len(decisions), np.nan)
    if scorer is not None:
        return np.array([_number(scorer(_shown(X, part, task), X, y)) for part in decisions])
    if task.numeric and len(y) == 1:
        return np.full(len(decisions), np.nan)
    if not task.numeric or y.ndim == 2 or isinstance(task, Quantiles):
        return np.array([task.score(part, y, None) for part in decisions])
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


def _shown(X: Matrix, decisions: Array, task: Task) -> _Decided:
    """A model with these decisions, as a scorer sees it."""
    if task.numeric:
        return _DecidedRegressor(X, decisions, ordered=isinstance(task, Quantiles))
    return _DecidedClassifier(X, decisions, task)
