"""What every task offers: from targets to what the solver sees, and from decisions to predictions.

A task is frozen. ``settled`` returns one that knows what all of its later rows share (the classes, the
number that is subtracted from targets); ``encode`` is for targets of a settled task.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Protocol, Self

import numpy as np

from asset_svm.arrays import Array
from asset_svm.data import Targets
from asset_svm.losses import Loss


@dataclass(frozen=True, eq=False)
class Encoded:
    """Targets as the solver sees them.

    Parameters
    ----------
    targets : Targets
    loss : Loss
    y_max : float or array of shape (K,)
        The largest |target|, of all models or of each.
    offset : float or array of shape (K,)
        What was subtracted from the targets, of all models or of each.
    labels : tuple, optional
        The classes, where there are any.
    """

    targets: Targets
    loss: Loss
    y_max: float | Array
    offset: float | Array = 0.0
    labels: tuple[Any, ...] | None = None


@dataclass(frozen=True)
class Constancy:
    """What is said of a model that tells no rows apart: what is seen, why it may be, what to do."""

    seen: str
    causes: list[str]
    advice: list[str]


class Task(Protocol):
    """What is learnt from targets, and how decisions are read."""

    @property
    def numeric(self) -> bool:
        """Whether targets are numbers, and not classes."""

    @property
    def loss(self) -> Loss:
        """The loss of a margin and a target."""

    @property
    def classes(self) -> Any:
        """The classes, sorted, a list of them for several outputs; None where there are none, or where
        they are not known yet.
        """

    @property
    def offset(self) -> float | Array:
        """The number that is subtracted from targets, or one a model."""

    @property
    def offset_of_cell(self) -> float | Array:
        """The number that ``targets_of_cell`` subtracts, or one a model."""

    @property
    def n_models(self) -> int:
        """The number K of models, and of decisions of a row."""

    def of_cell(self, *, known: bool, free_intercept: bool) -> Self:
        """The task of a model of one cell: weights of classes are in those of the rows already.

        ``known`` says that the model shall know all classes; else it knows those of its rows.
        """

    def targets_of_cell(self, y: Array) -> Array:
        """The targets as a model of one cell takes them: less the offset of all cells."""

    def with_classes(self, classes: Any) -> Self:
        """The task where these classes are known; the same task where there are none."""

    def with_epsilon(self, epsilon: float) -> Self:
        """The task with another half-width of the tube; of numbers only."""

    def standardised(self, y: Array, weight: Array) -> tuple[Self, Array]:
        """The task of a quick look at these rows, settled, and their targets in units of its own.

        The weights of classes are in those of the rows already.
        """

    def settled(self, y: Array, weight: Array) -> Self:
        """The task of these rows: classes that are not known yet are theirs, and so is the offset."""

    def encode(self, y: Array) -> Encoded:
        """Return these targets as the solver sees them."""

    def class_weights(self, y: Array, weight: Array) -> Array | None:
        """The factor of each row's weight that its class brings; None where there is none."""

    def factors(self, totals: Any) -> Any:
        """The factor of each class, from the weights of their rows; None where all are 1."""

    def factors_of(self, factors: Any, y: Array) -> Array:
        """What the class of each row multiplies its weight by."""

    def check_stream(self) -> None:
        """Raise where the task cannot be learnt from one batch after the other."""

    def predict(self, decisions: Array) -> Array:
        """Return predictions from (rows, K) decisions."""

    def decisions(self, decisions: Array) -> Any:
        """What a user calls decisions, from those of shape (rows, K)."""

    def slopes(self, decisions: Array) -> Array | None:
        """The derivatives of what a user sees by decisions of shape (rows, K); None where all are 1."""

    def score(self, decisions: Array, y: Array, weight: Array | None) -> float:
        """What scikit-learn calls the score of such decisions."""

    def row_losses(self, decisions: Array, y: Array) -> Array:
        """What each row adds to the error that users look at."""

    def soft_losses(self, decisions: Array, y: Array) -> Array:
        """The same, smoothed where it jumps: of few rows its mean says more."""

    def importance(self, decisions: Array, y: Array) -> Array:
        """How likely each row should be a landmark, by the decisions of a first fit."""

    def constancy(self, decisions: Array, y: Array, weight: Array, C: float | None) -> Constancy | None:
        """What is to be said where such decisions on training rows tell none apart, else None.

        None too where a constant is all there is to learn. ``C`` is None where lam is given instead.
        """

    def split(self, y: Array, fraction: float, seed: int) -> tuple[Array, Array]:
        """The numbers of rows to learn from, and of those to hold out."""

    def count_by_class(self, y: Array) -> Array:
        """The number of rows of each class; of all rows, where there are no classes."""


def train_test_rows(
    n_rows: int, fraction: float, seed: int, stratify: Array | None = None
) -> tuple[Array, Array]:
    """The numbers of rows to learn from, and of those to hold out; of every class to ``stratify``."""
    from sklearn.model_selection import train_test_split  # takes its time, and few fits need it

    held, least = math.ceil(fraction * n_rows), 1 if stratify is None else len(np.unique(stratify))
    if min(held, n_rows - held) < least:
        raise ValueError(
            f"validation_fraction={fraction:g} of {n_rows} rows of positive weight leaves "
            f"{n_rows - held} to learn from and {held} to hold out, and neither may be less than "
            f"{least}; choose another fraction, or set early_stopping=False and a number of components."
        )
    kept, out = train_test_split(
        np.arange(n_rows), test_size=fraction, random_state=seed, stratify=stratify
    )
    return kept, out
