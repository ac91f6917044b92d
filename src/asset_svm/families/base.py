"""What a family of models is: from settings, a task and rows to a fitted model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

import numpy as np

from asset_svm.arrays import Array
from asset_svm.families.observing import Observer
from asset_svm.families.rows import Rows
from asset_svm.settings import Settings
from asset_svm.tasks import Task


class DecisionFunction(Protocol):
    """A function from rows to (rows, K) decisions."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of rows that it was made for."""

    @property
    def alone(self) -> bool:
        """Whether one thread of the host must decide."""

    def __call__(self, X: Any) -> Array:
        """The (rows, K) decisions, in float64."""

    def unchecked(self, dtype: np.dtype[Any]) -> Any:
        """A function from rows of this type to decisions, without any check."""

    def on_card(self, backend: Any, X: Any) -> Array:
        """The (rows, K) decisions, computed on a card."""

    def gradients(self, X: Any) -> Array:
        """The (rows, K, n) gradients of the decisions, in float64."""


class Fitted(Protocol):
    """A model, what is known of it, and what it goes on from."""

    @property
    def task(self) -> Task:
        """The task that the model has learnt."""

    @property
    def decision(self) -> DecisionFunction:
        """The function that the model predicts with."""

    @property
    def fixed(self) -> str | None:
        """Why it cannot go on learning, and what to do; None where it can."""

    @property
    def objective(self) -> float:
        """The value of (PL) at this model, summed over its K models."""

    @property
    def dual_gap(self) -> float:
        """An upper bound of objective minus optimum."""

    def attributes(self) -> dict[str, Any]:
        """What users see of the model, by the names of an estimator's attributes."""


F = TypeVar("F", bound=Fitted)
"""The fitted models of a family."""


@dataclass(frozen=True, eq=False)
class Trained(Generic[F]):
    """A fitted model, and the rows that it has learnt from, in the words of its task.

    Where the rows are a sample of them (``sampled``), little is known of the model's gap.
    """

    fitted: F
    rows: Rows
    sampled: bool = False


class Family(Protocol[F]):
    """A kind of models, and how they are trained."""

    def fit(
        self,
        settings: Settings,
        task: Task,
        rows: Rows,
        begun: float,
        observer: Observer,
        before: Fitted | None = None,
        drawn: Any = None,
    ) -> Trained[F]:
        """Train on all rows at once.

        Parameters
        ----------
        settings : Settings
        task : Task
            Settled by these rows.
        rows : Rows
        begun : float
            When the fit began, by ``clock.now``.
        observer : Observer
        before : Fitted, optional
            The model of an earlier fit, for ``warm_start``.
        drawn : DrawnMap, optional
            The map that this fit would draw, where it is known.
        """

    def check(self, settings: Settings) -> None:
        """Raise where a parameter asks for something that these models do not have."""

    def begin(self, settings: Settings, task: Task, rows: Rows) -> F:
        """The model of a first batch."""

    def go_on(self, settings: Settings, fitted: F, rows: Rows) -> F:
        """The model after one batch more; that before it is left as it is."""

    def warn(self, settings: Settings, trained: Trained[F]) -> None:
        """Warn where a model is not what was asked for."""
