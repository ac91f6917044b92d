"""Probabilities of classes: a sigmoid of each decision, fitted to decisions of rows held out.

The method is Platt's, as scikit-learn's ``CalibratedClassifierCV(ensemble=False)`` has it: the
decisions of every row come from a model that was trained on the other folds, one sigmoid per class
(one-vs-rest) turns them into probabilities, which are divided by their sum, and the model itself is
that of all rows. It predicts the class with the largest probability.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import StratifiedKFold
from sklearn.utils.validation import check_is_fitted

from asset_svm.estimators.classifier import AssetClassifier

FOLDS = 5
NEWTON_STEPS = 100


class CalibratedClassifier(ClassifierMixin, BaseEstimator):
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

    def __init__(self, estimator=None):
        self.estimator = estimator

    @classmethod
    def of(cls, model: Any) -> CalibratedClassifier:
        """From scikit-learn's CalibratedClassifierCV, with ensemble=False and sigmoids."""
        check_is_fitted(model)
        if len(model.calibrated_classifiers_) != 1 or model.method != "sigmoid":
            raise ValueError(
                f"A CalibratedClassifierCV with method={model.method!r} and "
                f"{len(model.calibrated_classifiers_)} models cannot be saved; set "
                'method="sigmoid" and ensemble=False.'
            )
        (whole,) = model.calibrated_classifiers_
        # scikit-learn's sigmoid is expit(-(a decision + b)).
        slope = np.array([-sigmoid.a_ for sigmoid in whole.calibrators])
        offset = np.array([-sigmoid.b_ for sigmoid in whole.calibrators])
        inner = whole.estimator
        if isinstance(inner, FrozenEstimator):
            inner = inner.estimator
        if not isinstance(inner, AssetClassifier):
            raise ValueError(
                f"A CalibratedClassifierCV of a {type(inner).__name__} cannot be saved; calibrate an "
                "AssetClassifier, and put a scaler before the CalibratedClassifierCV, in a Pipeline."
            )
        return cls(inner)._with(slope, offset)

    def _with(self, slope: np.ndarray, offset: np.ndarray) -> CalibratedClassifier:
        self.classes_, self.slope_, self.offset_ = self.estimator.classes_, slope, offset
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(self.estimator, name):
                setattr(self, name, getattr(self.estimator, name))
        return self

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def __sklearn_is_fitted__(self):
        return hasattr(self, "slope_")

    def fit(self, X, y, *, watch=None):
        """Find the sigmoids of a fitted estimator, from models like it on parts of its rows.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The rows that ``estimator`` was fitted to.
        y : array-like of shape (n_samples,)
        watch : callable, optional
            Sees the progress of every fold's fit; returning True ends it.

        Returns
        -------
        self
        """
        check_is_fitted(self.estimator)
        y = np.asarray(y)
        decisions = held_out_decisions(self.estimator, X, y, watch)
        return self._with(*sigmoids(decisions, np.searchsorted(self.estimator.classes_, y)))

    def decision_function(self, X):
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

    def predict_proba(self, X):
        """Probabilities of the classes.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        probabilities : ndarray of shape (n_samples, n_classes)
        """
        decisions = self.decision_function(X)
        return self.probabilities(decisions[:, None] if decisions.ndim == 1 else decisions)

    def predict(self, X):
        """The class with the largest probability.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        y : ndarray of shape (n_samples,)
        """
        return self.classes_[self.predict_proba(X).argmax(axis=1)]

    def probabilities(self, decisions: np.ndarray) -> np.ndarray:
        """(rows, classes) from the (rows, K) decisions."""
        each = expit(decisions.astype(np.float64) * self.slope_ + self.offset_)
        if each.shape[1] == 1:
            return np.hstack([1.0 - each, each])
        total = each.sum(axis=1, keepdims=True)
        return np.divide(each, total, out=np.full_like(each, 1.0 / each.shape[1]), where=total > 0.0)

    # What predicting a file a block at a time asks of a model ------------------------------------

    _y_numeric = False

    @property
    def _decision(self) -> Any:
        return self.estimator._decision

    def _finisher(self, method: str) -> Callable[[np.ndarray], np.ndarray]:
        if method != "predict":
            return self.estimator._finisher(method)
        return lambda decisions: self.classes_[self.probabilities(decisions).argmax(axis=1)]


def check_counts(labels: np.ndarray, counts: np.ndarray) -> None:
    """Raise where a class has too few rows for folds."""
    if counts.min() < 2:
        label = labels[counts.argmin()]
        raise ValueError(
            f"Class {label.item()!r} has one row, and probabilities are found on rows held out; give "
            "every class at least 2 rows."
        )


def held_out_decisions(estimator: Any, X: Any, y: np.ndarray, watch: Any = None) -> np.ndarray:
    """(rows, K) decisions, each by a model like ``estimator`` that has not seen the row."""
    labels, counts = np.unique(y, return_counts=True)
    check_counts(labels, counts)
    out = np.empty((len(y), 1 if len(labels) == 2 else len(labels)))
    for train, test in StratifiedKFold(min(FOLDS, int(counts.min()))).split(X, y):
        model = clone(estimator)
        model._fit(X[train], y[train], None, watch=watch)
        out[test] = model._decide(X[test])
    return out


def sigmoids(decisions: np.ndarray, codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(slope, offset) of the sigmoid of each column of decisions; ``codes`` are numbers of classes."""
    columns = decisions.T
    classes = [1] if len(columns) == 1 else range(len(columns))
    found = [sigmoid(f, codes == k) for f, k in zip(columns, classes, strict=True)]
    return np.array([a for a, _ in found]), np.array([b for _, b in found])


def sigmoid(decisions: np.ndarray, positive: np.ndarray) -> tuple[float, float]:
    """(a, b) that make expit(a decision + b) most likely, by Newton's method (Lin, Lin and Weng 2007).

    Platt's targets, (N+ + 1) / (N+ + 2) and 1 / (N- + 2), keep the likelihood from running away where
    the classes are separate.
    """
    n_positive, n_negative = int(positive.sum()), int((~positive).sum())
    target = np.where(positive, (n_positive + 1.0) / (n_positive + 2.0), 1.0 / (n_negative + 2.0))
    scale = max(float(np.abs(decisions).max(initial=0.0)), 1e-300)
    f = decisions / scale

    def loss(point: np.ndarray) -> float:
        z = point[0] * f + point[1]
        return float((np.logaddexp(0.0, z) - target * z).sum())

    point = np.array([0.0, np.log((n_positive + 1.0) / (n_negative + 1.0))])
    value = loss(point)
    for _ in range(NEWTON_STEPS):
        p = expit(point[0] * f + point[1])
        slopes, w = p - target, p * (1.0 - p)
        gradient = np.array([slopes @ f, slopes.sum()])
        mixed = w @ f
        hessian = np.array([[w @ (f * f), mixed], [mixed, w.sum()]])
        # A ridge far below rounding of the sums: decisions may all be the same.
        step = np.linalg.solve(hessian + 1e-12 * (1.0 + np.trace(hessian)) * np.eye(2), gradient)
        if abs(gradient @ step) <= 1e-14 * (1.0 + value):
            break
        length = 1.0
        while (
            loss(point - length * step) > value - 1e-4 * length * (gradient @ step) and length > 1e-10
        ):
            length *= 0.5
        point = point - length * step
        value = loss(point)
    return float(point[0]) / scale, float(point[1])


def calibrated(model: Any) -> Any:
    """A CalibratedClassifierCV of scikit-learn's as ours; any other model as it is."""
    return CalibratedClassifier.of(model) if isinstance(model, CalibratedClassifierCV) else model
