"""From parameters that ask for relevance to those of the model behind it, and who looks on there."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils import check_random_state

from asset_svm.arrays import Array
from asset_svm.families.observing import FitCallbacks, Observer, Parts, Watch
from asset_svm.families.relevance.fitted import FittedRelevance
from asset_svm.families.relevance.quick import is_absolute
from asset_svm.features.relevance import Learnt
from asset_svm.kernels import Argument, formula_type
from asset_svm.memory import in_gigabytes, planned_memory
from asset_svm.settings import Settings
from asset_svm.tasks import Task

MATRICES = 4
"""Square matrices of the columns that learning directions takes."""


def check_relevance(settings: Settings) -> None:
    """Raise where the kernel has no gradients to learn from, or the map is drawn for other rows."""
    kernel, asked = settings.map.kernel, settings.relevance
    argument = formula_type(kernel).argument
    if argument not in (Argument.SQUARED_DISTANCE, Argument.ABSOLUTE_DISTANCE):
        shown = repr(kernel) if isinstance(kernel, str) else "a function of your own"
        raise ValueError(
            f"relevance={asked!r} weighs the columns in a distance, and kernel={shown} is no function "
            'of one; choose "rbf", "exponential", "matern32", "matern52" or "laplacian", or set '
            "relevance=None."
        )
    if asked == "directions" and is_absolute(settings):
        raise ValueError(
            f'relevance="directions" turns rows, and kernel={kernel!r} adds up the columns as they '
            'stand; set relevance="columns", or choose kernel="exponential".'
        )
    if not isinstance(settings.approximation, str):
        raise ValueError(
            f"relevance={asked!r} maps the rows first, and a map of your own (approximation=) is made "
            'for rows as they are; set approximation="nystroem" or "fourier", or relevance=None.'
        )


def check_width(settings: Settings, X: Any) -> None:
    """Raise where rows of so many columns have no map of directions that fits in memory."""
    (m, n), allowed = X.shape, planned_memory(settings.memory_limit)
    if settings.relevance != "directions":
        return
    squares = MATRICES * 8 * n * n
    made_dense = m * n * X.dtype.itemsize if sp.issparse(X) else 0
    for needed, what in (
        (squares, f"learns {MATRICES} matrices of {n} x {n} columns, which take"),
        (made_dense, f"makes {m} sparse rows of {n} columns dense, which take"),
    ):
        if needed > allowed:
            raise MemoryError(
                f'relevance="directions" {what} {in_gigabytes(needed)}, and {in_gigabytes(allowed)} '
                'are allowed; set relevance="columns", or memory_limit to what it may take.'
            )


def inner_settings(settings: Settings, learnt: Learnt) -> Settings:
    """The settings of the model behind a relevance: gamma as a number, given landmarks mapped."""
    relevance = learnt.relevance
    if relevance is None:
        return settings.changed(relevance=None)
    changes: dict[str, Any] = {"relevance": None}
    formula = formula_type(settings.map.kernel)
    if settings.map.gamma == "scale":
        changes["gamma"] = formula.gamma_of(relevance.spread) if relevance.spread > 0.0 else 1.0
    elif settings.map.gamma == "auto":
        changes["gamma"] = formula.gamma_of(float(relevance.n_columns))
    landmarks = settings.map.landmarks
    if not isinstance(landmarks, str):
        changes["landmarks"] = relevance(_points(landmarks, relevance.n_columns))
    return settings.changed(**changes)


def _points(landmarks: Any, n: int) -> Any:
    """Landmarks of a user's own, as rows that can be mapped."""
    points = landmarks if hasattr(landmarks, "tocsr") else np.asarray(landmarks, dtype=np.float64)
    points = points.tocsr() if hasattr(points, "tocsr") else points
    if points.shape[1] != n:
        raise ValueError(
            f"landmarks have {points.shape[1]} features, and X has {n}; give landmarks with the same "
            "columns."
        )
    return points


def peeked_seed(settings: Settings) -> int:
    """The seed that the next draw of ``random_state`` gives, which is left to the model itself."""
    ahead = copy.deepcopy(check_random_state(settings.random_state))  # numpy's own, where it is None
    return settings.changed(random_state=ahead).draw_seed()


def unjudging(settings: Settings, task: Task, y: Array, seed: int) -> Array:
    """The rows that no held-out score of the model behind a relevance judges by."""
    index = np.arange(len(y))
    judged = settings.early_stopping + (settings.n_cells is None and _tries_components(settings))
    for _ in range(judged):
        index = index[task.split(y[index], settings.validation_fraction, seed)[0]]
    return index


def _tries_components(settings: Settings) -> bool:
    return isinstance(settings.map.n_components, str)


@dataclass(frozen=True, eq=False)
class _WrappedCallbacks(FitCallbacks):
    """Callbacks that are shown models with their relevance."""

    inner: FitCallbacks
    wrap: Callable[[Any], FittedRelevance]

    @property
    def registered(self) -> bool:  # type: ignore[override]
        """Whether there are any."""
        return self.inner.registered

    def _wrapped(self, parts: Parts) -> Parts:
        return lambda: self.wrap(parts())

    def epoch_end(self, parts: Parts) -> bool:
        """Tell that an epoch has ended."""
        return self.inner.epoch_end(self._wrapped(parts))

    def partition_begin(self, n_cells: int) -> None:
        """Tell that the next partition has so many cells."""
        self.inner.partition_begin(n_cells)

    def cell_begin(self, number: int) -> None:
        """Tell that a cell begins."""
        self.inner.cell_begin(number)

    def cell_end(self, number: int) -> bool:
        """Tell that a cell is solved."""
        return self.inner.cell_end(number)

    def partition_end(self, parts: Parts) -> bool:
        """Tell that all cells are solved."""
        return self.inner.partition_end(self._wrapped(parts))

    def fit_end(self, parts: Parts) -> None:
        """Tell that the fit has ended."""
        self.inner.fit_end(self._wrapped(parts))


@dataclass(frozen=True, eq=False)
class WrappedObserver:
    """Who looks on at a fit on mapped rows, and is shown models of rows as they come."""

    observer: Observer
    learnt: Learnt

    @property
    def watch(self) -> Watch | None:
        """The function that is called with records."""
        return self.observer.watch

    def _wrap(self, inner: Any) -> FittedRelevance:
        return FittedRelevance(self.learnt, inner)

    def epochs(self, count: int) -> FitCallbacks:
        """The callbacks of a run of so many epochs at most."""
        return _WrappedCallbacks(self.observer.epochs(count), self._wrap)

    def partitions(self, count: int) -> FitCallbacks:
        """The callbacks of so many partitions."""
        return _WrappedCallbacks(self.observer.partitions(count), self._wrap)
