"""Models of one cell: of the family of one map, on the rows of the cell, with the same settings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from asset_svm.arrays import Array
from asset_svm.families.one_map.fitted import FittedMap
from asset_svm.kernels import Kernel
from asset_svm.settings import Settings
from asset_svm.tasks import Outputs, Task


@dataclass(frozen=True, eq=False)
class Nested:
    """The decision of a model of one cell, in the columns of all classes.

    Parameters
    ----------
    model : FittedMap
    columns : array of int, optional
        The classes that the model knows, where they are not all: the others score -1, or less where
        all that it knows do.
    n_models : int
    offset : float or array of shape (K,)
        What was subtracted from the targets.
    """

    model: FittedMap
    columns: Array | None
    n_models: int
    offset: float | Array

    def __call__(self, X: Any) -> Array:
        """Return the (rows, K) decisions."""
        return self._placed(self.model.decision(X))

    def by(self, backend: Any, X: Any) -> Array:
        """The (rows, K) decisions, computed where the backend works."""
        return self._placed(self.model.decision.by(backend, X))

    def gradients(self, X: Any) -> Array:
        """Return the (rows, K, n) gradients of the decisions."""
        decision = self.model.decision
        slopes = decision.gradients(X)
        if self.columns is None:
            return slopes
        found = decision(X)
        if len(self.columns) == 2:
            found, slopes = np.hstack([-found, found]), np.hstack([-slopes, slopes])
        least = found.argmin(axis=1)
        at_least = slopes[np.arange(len(found)), least] * (found.min(axis=1) < -1.0)[:, None]
        out = np.repeat(at_least[:, None, :], self.n_models, axis=1)
        out[:, self.columns] = slopes
        return out

    def _placed(self, found: Array) -> Array:
        if self.columns is None:
            return found + self.offset
        if len(self.columns) == 2:  # one decision between two of the classes
            found = np.hstack([-found, found])
        out = np.repeat(np.minimum(found.min(axis=1, keepdims=True), -1.0), self.n_models, axis=1)
        out[:, self.columns] = found
        return out


def nested_settings(
    settings: Settings, kernel: Kernel, seed: int, lam: float, device: str = "cpu"
) -> Settings:
    """The settings of a model for the rows of one cell."""
    return settings.changed(
        gamma=kernel.gamma,
        n_cells=None,
        device=device,
        lam=lam,
        random_state=seed,
        verbose=0,
        warm_start=False,
    )


def in_columns(task: Task, model: FittedMap) -> Nested:
    """The decision of a nested model, in the columns of all classes."""
    columns = None
    own = model.task.classes
    known = not isinstance(task, Outputs) and task.classes is not None and own is not None
    if known and len(own) < len(task.classes):
        columns = np.searchsorted(task.classes, own)
    return Nested(model, columns, task.n_models, task.offset_of_cell)
