"""Probabilities of classes: a sigmoid of each decision, fitted to decisions of rows held out.

The method is Platt's, as scikit-learn's ``CalibratedClassifierCV(ensemble=False)`` has it: the
decisions of every row come from a model that was trained on the other folds, one sigmoid per class
(one-vs-rest) turns them into probabilities, which are divided by their sum, and the model itself is
that of all rows. It predicts the class with the largest probability.

The sigmoids are scikit-learn's own. The models of the folds are trained here, where a terminal sees
their progress and can end them, and the model of all rows, which is there already, is not trained
again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from scipy.special import expit
from sklearn import config_context
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.frozen import FrozenEstimator
from sklearn.utils import _safe_indexing, indexable
from sklearn.utils.validation import check_is_fitted

from asset_svm.estimators.classifier import AssetClassifier
from asset_svm.estimators.inside import decided_by, fit_watched, fitted_of
from asset_svm.estimators.scored import ScoresTargets
from asset_svm.estimators.validation import check_weight
from asset_svm.families import Fitted
from asset_svm.families.observing import Watch
from asset_svm.settings.kinds import check_targets
from asset_svm.tasks import Outputs, winner
from asset_svm.tasks.classification import shares_of

if TYPE_CHECKING:  # imported where they work: predictions need neither, and they take their time
    from sklearn.calibration import CalibratedClassifierCV
    from sklearn.model_selection import StratifiedKFold

FOLDS = 5


class CalibratedClassifier(ScoresTargets, ClassifierMixin, BaseEstimator):
    """A fitted AssetClassifier with probabilities: what a model file of both holds.

    Parameters
    ----------
    estimator : AssetClassifier
        Fitted.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    slope_, offset_ : ndarrays of shape (n_decisions,)
        The probability of class k is expit(slope_[k] decision[k] + offset_[k]) before all are divided
        by their sum; of two classes, that of the second.
    n_features_in_ : int
    """

    def __init__(self, estimator: AssetClassifier = None) -> None:  # type: ignore[assignment]
        self.estimator = estimator

    @classmethod
    def of(cls, model: CalibratedClassifierCV) -> CalibratedClassifier | None:
        """From scikit-learn's, where that is one AssetClassifier with sigmoids; else None."""
        if len(model.calibrated_classifiers_) != 1 or model.method != "sigmoid":
            return None
        inner = model.calibrated_classifiers_[0].estimator
        if isinstance(inner, FrozenEstimator):
            inner = inner.estimator
        if not isinstance(inner, AssetClassifier):
            return None
        return cls(inner).calibrated(*_sigmoids_of(model))

    def calibrated(self, slope: np.ndarray, offset: np.ndarray) -> Self:
        """This model, with sigmoids of these slopes and offsets."""
        self.classes_, self.slope_, self.offset_ = self.estimator.classes_, slope, offset
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(self.estimator, name):
                setattr(self, name, getattr(self.estimator, name))
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "slope_")

    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, watch: Watch | None = None) -> Self:
        """Find the sigmoids of a fitted estimator, from models like it on parts of its rows.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The rows that ``estimator`` was fitted to.
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), optional
            In the models of the folds and in the sigmoids, as scikit-learn has it; rows of
            weight 0 are in no fold.
        watch : callable, optional
            Sees the progress of every fold's fit; returning True ends it.

        Returns
        -------
        self
        """
        check_is_fitted(self.estimator)
        check_one_output(self.estimator)
        check_targets(y, numeric=False)
        (X,), y, weight = indexable(X), np.asarray(y), None
        if sample_weight is not None:
            weight = check_weight(sample_weight, y)
            used = np.flatnonzero(weight)
            X, y, weight = _safe_indexing(X, used), y[used], weight[used]
        folds = _folds(y, self.estimator.classes_)
        decisions = held_out_decisions(self.estimator, X, y, weight, folds, watch)
        return self.calibrated(*sigmoids(decisions, y, weight, folds))

    def decision_function(self, X: Any) -> np.ndarray:
        """Decisions of the estimator.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        decisions : ndarray of shape (n_samples,) for two classes, else (n_samples, n_classes)
        """
        check_is_fitted(self)
        return self.estimator.decision_function(X)

    def predict_proba(self, X: Any) -> np.ndarray:
        """Probabilities of the classes.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        probabilities : ndarray of shape (n_samples, n_classes)
        """
        return self.probabilities(self._decide(X))

    def predict(self, X: Any) -> np.ndarray:
        """The class with the largest probability.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        y : ndarray of shape (n_samples,)
        """
        return self._predictions(self._decide(X))

    def _decide(self, X: Any) -> np.ndarray:
        """The (rows, K) decisions of the estimator."""
        check_is_fitted(self)
        return decided_by(self.estimator, X)

    def probabilities(self, decisions: np.ndarray) -> np.ndarray:
        """(rows, classes) from the (rows, K) decisions."""
        decisions = self._fitted.task.by_class(decisions.astype(np.float64))  # type: ignore[attr-defined]
        return shares_of(expit(decisions * self.slope_ + self.offset_))

    # What predicting a file a block at a time asks of a model ------------------------------------

    _probabilities = probabilities

    @property
    def _fitted(self) -> Fitted:
        """The model that decides."""
        return fitted_of(self.estimator)

    def _predictions(self, decisions: np.ndarray) -> np.ndarray:
        """The predictions of rows that have these (rows, K) decisions."""
        return self.classes_[self.probabilities(decisions).argmax(axis=1)]


def calibrated(
    estimator: AssetClassifier, decisions: np.ndarray, y: np.ndarray
) -> CalibratedClassifier:
    """A fitted estimator with sigmoids of (rows, K) decisions that are known, of rows held out."""
    from sklearn.model_selection import StratifiedKFold

    check_one_output(estimator)
    decisions = fitted_of(estimator).task.by_class(decisions)
    labels, counts = np.unique(y, return_counts=True)
    if not np.array_equal(labels, estimator.classes_):
        raise ValueError(
            f"Rows that are held out have the classes {labels.tolist()}, and the model "
            f"{estimator.classes_.tolist()}; probabilities need rows of all: choose another cv."
        )
    check_counts(labels, counts)
    return CalibratedClassifier(estimator).calibrated(
        *sigmoids(decisions, y, None, StratifiedKFold(2))  # no model is trained: any folds will do
    )


def check_one_output(estimator: AssetClassifier) -> None:
    """Raise where a model has several outputs: probabilities are those of the classes of one."""
    task = fitted_of(estimator).task
    if isinstance(task, Outputs):
        raise ValueError(
            f"Probabilities are those of one column of classes, and this model has {len(task.parts)}; "
            "fit one model for each column that needs them."
        )


def check_counts(labels: np.ndarray, counts: np.ndarray) -> None:
    """Raise where a class has too few rows for folds."""
    if counts.min() < 2:
        label = labels[counts.argmin()]
        raise ValueError(
            f"Class {label.item()!r} has one row, and probabilities are found on rows held out; give "
            "every class at least 2 rows."
        )


def held_out_decisions(
    estimator: AssetClassifier,
    X: Any,
    y: np.ndarray,
    weight: np.ndarray | None,
    folds: StratifiedKFold,
    watch: Watch | None = None,
) -> np.ndarray:
    """(rows, K) decisions, each by a model like ``estimator`` that has not seen the row."""
    n_classes = len(estimator.classes_)
    out = np.empty((len(y), 1 if n_classes == 2 else n_classes))
    for train, test in folds.split(X, y):
        model = clone(estimator)
        part = None if weight is None else weight[train]
        fit_watched(model, _safe_indexing(X, train), y[train], part, watch=watch)
        out[test] = model.decision_function(_safe_indexing(X, test)).reshape(len(test), -1)
    return out


def _folds(y: np.ndarray, classes: np.ndarray) -> StratifiedKFold:
    """For targets that have all classes of the estimator, and no others."""
    labels, counts = np.unique(y, return_counts=True)
    if not np.array_equal(labels, classes):
        raise ValueError(
            f"y has the classes {labels.tolist()} in rows of positive weight, and the estimator was "
            f"fitted to {classes.tolist()}; pass the rows that it was fitted to."
        )
    check_counts(labels, counts)
    from sklearn.model_selection import StratifiedKFold

    return StratifiedKFold(min(FOLDS, int(counts.min())))


def sigmoids(
    decisions: np.ndarray, y: np.ndarray, weight: np.ndarray | None, folds: StratifiedKFold
) -> tuple[np.ndarray, np.ndarray]:
    """(slope, offset) of the sigmoid of each column of decisions, found by scikit-learn."""
    # Its search stops at once where decisions are tiny.
    size = np.abs(decisions).max(axis=0)
    size[size == 0.0] = 1.0
    from sklearn.calibration import CalibratedClassifierCV

    model = CalibratedClassifierCV(_Decided(), ensemble=False, cv=folds)
    with config_context(enable_metadata_routing=False):  # nobody but us is asked for weights
        found = model.fit(decisions / size, y, weight)
    slope, offset = _sigmoids_of(found)
    return slope / size, offset


class _Decided(ClassifierMixin, BaseEstimator):
    """A model whose rows are decisions: scikit-learn finds the sigmoids, and nothing is trained."""

    def fit(self, X: np.ndarray, y: np.ndarray, sample_weight: np.ndarray | None = None) -> Self:
        """Note the classes."""
        self.classes_ = np.unique(y)
        return self

    def decision_function(self, X: np.ndarray) -> np.ndarray:
        """The decisions, which the rows are."""
        return X.ravel() if len(self.classes_) == 2 else X

    def predict(self, X: np.ndarray) -> np.ndarray:
        """The class of the largest decision."""
        return self.classes_[winner(X)]


def _sigmoids_of(model: CalibratedClassifierCV) -> tuple[np.ndarray, np.ndarray]:
    """(slope, offset) of the sigmoid of each decision; scikit-learn's are expit(-(a decision + b))."""
    found = model.calibrated_classifiers_[0].calibrators
    return np.array([-each.a_ for each in found]), np.array([-each.b_ for each in found])
