"""Estimators of one cell: of the same class and parameters as that of all cells, without cells."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from asset_svm.kernels import Kernel


@dataclass(frozen=True, eq=False)
class Nested:
    """The decision of an estimator of one cell, in the columns of all classes.

    Parameters
    ----------
    model : estimator
    columns : array of int, optional
        The classes that the model knows, where they are not all: the others score -1, or less where
        all that it knows do.
    n_models : int
    offset : float
        What was subtracted from the targets.
    """

    model: Any
    columns: np.ndarray | None
    n_models: int
    offset: float

    def __call__(self, X: Any) -> np.ndarray:
        """The (rows, K) decisions."""
        return self._placed(self.model._decision(X))

    def by(self, backend: Any, X: Any) -> np.ndarray:
        """The (rows, K) decisions, computed where the backend works."""
        return self._placed(self.model._decision.by(backend, X))

    def _placed(self, found: np.ndarray) -> np.ndarray:
        if self.columns is None:
            return found + self.offset
        if len(self.columns) == 2:  # one decision between two of the classes
            found = np.hstack([-found, found])
        out = np.repeat(np.minimum(found.min(axis=1, keepdims=True), -1.0), self.n_models, axis=1)
        out[:, self.columns] = found
        return out


def nested_estimator(estimator: Any, kernel: Kernel, seed: int, lam: float, device: str = "cpu") -> Any:
    """An estimator like this one for the rows of one cell."""
    settings = {
        "n_cells": None,
        "device": device,
        "lam": lam,
        "random_state": seed,
        "n_jobs": 1,
        "verbose": 0,
    }
    settings |= {"gamma": kernel.gamma, "fit_intercept": estimator._free_intercept, "warm_start": False}
    if "class_weight" in estimator.get_params(deep=False):
        settings["class_weight"] = None  # in the weights of the rows already
    model = clone(estimator).set_params(**settings)
    if hasattr(model, "set_callbacks"):
        model.set_callbacks()  # a clone has those of the estimator, whose tasks are cells
    return model


def nested_targets(y: np.ndarray, encoded: Any) -> np.ndarray:
    """The targets as an estimator of one cell takes them."""
    return y if encoded.labels is not None else y - encoded.offset


def in_columns(estimator: Any, model: Any, encoded: Any) -> Nested:
    """The decision of a nested model, in the columns of the estimator."""
    classes, columns = getattr(estimator, "classes_", None), None
    if classes is not None and len(model.classes_) < len(classes):
        columns = np.searchsorted(classes, model.classes_)
    return Nested(model, columns, encoded.targets.n_models, encoded.offset)
