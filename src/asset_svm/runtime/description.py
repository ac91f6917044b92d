"""What a model computes, as it is read from a file: steps, decisions, and heads that read them.

    columns -> front -> rows of numbers -> decide -> (rows, K) decisions -> heads -> what users see

``runtime`` predicts by it with numpy, ``export`` writes it as ONNX or C.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from asset_svm.arrays import Array
from asset_svm.runtime.links import Head, shares
from asset_svm.runtime.operations import Operations, Value
from asset_svm.runtime.parts import Intervals, Part
from asset_svm.runtime.steps import Encode, Step


@dataclass(frozen=True, eq=False)
class Finite:
    """A part whose rows must be finite."""

    inner: Part

    @property
    def width(self) -> int:
        """The number K of decisions."""
        return self.inner.width

    @property
    def breadth(self) -> int:
        """The numbers of a row that are there at a time."""
        return self.inner.breadth

    def __call__(self, ops: Operations, x: Value) -> Value:
        """The (rows, K) decisions."""
        x = ops.finite_rows(x)
        return ops.marked(self.inner(ops, x), x)


@dataclass(frozen=True, eq=False)
class Sigmoid:
    """expit(-(a decision + b))."""

    a: float
    b: float

    def __call__(self, ops: Operations, x: Value) -> Value:
        """The probability of each row."""
        return ops.expit(x * -self.a - self.b)


@dataclass(frozen=True, eq=False)
class Isotonic:
    """A function that rises, or falls, in pieces."""

    places: Array
    values: Array
    ends: tuple[float, float]

    def __call__(self, ops: Operations, x: Value) -> Value:
        """The probability of each row."""
        return ops.interpolated(ops.clip(x, *self.ends), self.places, self.values)


@dataclass(frozen=True, eq=False)
class Fold:
    """A classifier, and what makes probabilities of its decisions.

    Parameters
    ----------
    model : Description
    calibrators : sequence
        One for two classes, else one a class that the model knows.
    known : array of int
        The numbers of those among all classes.
    """

    model: Description
    calibrators: Sequence[Sigmoid | Isotonic]
    known: Array


@dataclass(frozen=True, eq=False)
class Folds:
    """The mean probabilities of calibrated classifiers."""

    members: tuple[Fold, ...]
    width: int

    @property
    def breadth(self) -> int:
        """The numbers of a row that are there at a time."""
        return max(fold.model.breadth for fold in self.members)

    def __call__(self, ops: Operations, x: Value) -> Value:
        """The (rows, classes) probabilities."""
        total: Value = self._of(self.members[0], ops, x)
        for fold in self.members[1:]:
            total = total + self._of(fold, ops, x)
        return total * (1.0 / len(self.members))

    def _of(self, fold: Fold, ops: Operations, x: Value) -> Value:
        head = fold.model.heads[0]
        found = head.decisions(ops, fold.model.raw(ops, x))  # type: ignore[union-attr]
        each = [by(ops, ops.columns(found, np.array([k]))) for k, by in enumerate(fold.calibrators)]
        if self.width == 2:
            return shares(ops, each[0], 2)
        placed = [each[0] * 0.0] * self.width
        # Of two of several classes scikit-learn gives the first what is the second's; so do we.
        for k, value in zip(fold.known.tolist(), each, strict=False):
            placed[k] = value
        return shares(ops, ops.beside(placed), self.width)


@dataclass(frozen=True, eq=False)
class Description:
    """A model.

    Parameters
    ----------
    kind : {"classifier", "regressor", "quantile regressor", "outlier detector"}
    n_columns : int
    names : tuple of str, optional
        Of the columns, where the model knows them.
    front : tuple of steps
        Before rows are numbers.
    decide : part
    heads : tuple of heads
        One for each output.
    several : bool
        Whether targets had several columns.
    dtype : numpy type
        Of the rows that it has learnt from, where that is known; else float64.
    intervals : Intervals, optional
    """

    kind: str
    n_columns: int
    names: tuple[str, ...] | None
    front: tuple[Step, ...]
    decide: Part
    heads: tuple[Head, ...]
    several: bool
    dtype: np.dtype[np.floating]
    intervals: Intervals | None = None

    @cached_property
    def encoder(self) -> Encode | None:
        """The encoder, where the model takes tables."""
        if not self.front and isinstance(self.decide, Folds):
            return self.decide.members[0].model.encoder
        first = self.front[0] if self.front else None
        return first if isinstance(first, Encode) else None

    @cached_property
    def steps(self) -> tuple[Step, ...]:
        """All steps before rows are numbers, those of folds too."""
        folds = self.decide.members if isinstance(self.decide, Folds) else ()
        return (*self.front, *(step for fold in folds for step in fold.model.steps))

    @property
    def breadth(self) -> int:
        """The numbers of a row that are there at a time, about."""
        return max([self.decide.breadth, *(step.width for step in self.front)])

    def rows(self, ops: Operations, x: Value) -> Value:
        """Rows of numbers."""
        for step in self.front:
            x = step(ops, x)
        return x

    def raw(self, ops: Operations, x: Value) -> Value:
        """(rows, K) decisions of what users pass."""
        return self.decide(ops, self.rows(ops, x))
