"""What is read off decisions: classes, probabilities, numbers, quantiles, outliers.

A model has a head for each of its outputs, with columns of the (rows, K) decisions of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import ClassVar, TypeAlias

import numpy as np

from asset_svm.arrays import Array
from asset_svm.runtime.operations import Operations, Value

Units: TypeAlias = tuple[str, float, float]
"""kind, mean and scale of what a regression learns in: "standard", or "log"."""


def back(ops: Operations, units: Units | None, x: Value) -> Value:
    """Numbers in units as those of users."""
    if units is None:
        return x
    kind, mean, scale = units
    found = x * scale + mean
    return ops.exp(found) if kind == "log" else found


def log_expit(ops: Operations, x: Value) -> Value:
    """The logarithm of 1 / (1 + exp(-x)), without an overflow."""
    return ops.clip(x, None, 0.0) - ops.log(ops.exp(-ops.abs(x)) + 1.0)


def shares(ops: Operations, each: Value, count: int) -> Value:
    """Probabilities of classes, from those of each against the rest; of two from the second's."""
    if count == 2:
        return ops.beside([1.0 - each, each])
    total = ops.total(each)
    there = total > 0.0
    return ops.where(there, each / ops.where(there, total, 1.0), 1.0 / count)


@dataclass(frozen=True, eq=False)
class Classes:
    """Classes by decisions.

    Parameters
    ----------
    classes : array
        In order.
    paired : bool
        Whether decisions are those of pairs of classes.
    logistic : bool
        Whether they are logarithms of odds.
    """

    classes: Array
    paired: bool = False
    logistic: bool = False
    has_decisions: ClassVar[bool] = True

    @property
    def width(self) -> int:
        """The number of decisions."""
        count = len(self.classes)
        if self.paired and count > 2:
            return count * (count - 1) // 2
        return count if count > 2 else count - 1

    @property
    def has_probabilities(self) -> bool:
        """Whether there are probabilities."""
        return self.logistic and not (self.paired and len(self.classes) > 2)

    def decisions(self, ops: Operations, found: Value) -> Value:
        """(rows, classes), or (rows, 1) of two."""
        return _votes(ops, found, len(self.classes)) if self.paired and found_many(self) else found

    def codes(self, ops: Operations, found: Value) -> Value:
        """(rows, 1): the number of the class."""
        if self.width == 1:
            return ops.integer(found > 0.0)
        return ops.argmax(self.decisions(ops, found))

    def probabilities(self, ops: Operations, found: Value) -> Value:
        """(rows, classes)."""
        if self.width == 1:
            return ops.beside([ops.expit(-found), ops.expit(found)])
        # In logarithms: far from all classes their probabilities themselves are all 0.
        each = log_expit(ops, found)
        each = ops.exp(each - ops.largest(each))
        return each / ops.total(each)

    def log_probabilities(self, ops: Operations, found: Value) -> Value:
        """(rows, classes): logarithms."""
        if self.width == 1:
            return log_expit(ops, ops.beside([-found, found]))
        each = log_expit(ops, found)
        each = each - ops.largest(each)
        return each - ops.log(ops.total(ops.exp(each)))


def found_many(head: Classes) -> bool:
    """Whether there are more than two classes."""
    return len(head.classes) > 2


def _votes(ops: Operations, found: Value, count: int) -> Value:
    """(rows, classes): votes of pairs, and less than a third of one for the sum of decisions."""
    pairs = list(combinations(range(count), 2))
    first, second = np.zeros((2, count, len(pairs)))
    for k, (one, other) in enumerate(pairs):
        first[one, k] = second[other, k] = 1.0
    wins = ops.number(found > 0.0)
    votes = ops.product(wins, second) + ops.product(1.0 - wins, first)
    sums = ops.product(found, second - first)
    return votes + sums / ((ops.abs(sums) + 1.0) * 3.0)


@dataclass(frozen=True, eq=False)
class OneClassOnly:
    """An output of one class, of which there is no decision."""

    classes: Array
    logistic: bool = False
    has_decisions: ClassVar[bool] = True
    width: ClassVar[int] = 0

    @property
    def has_probabilities(self) -> bool:
        """Whether there are probabilities."""
        return self.logistic

    @property
    def side(self) -> float:
        """1 where the class is a label that is there, else -1."""
        return 1.0 if self.classes[0] == 1 else -1.0

    def decisions(self, ops: Operations, found: Value) -> Value:
        """(rows, 1): the side of the class."""
        return ops.full(found, np.array([self.side]))

    def codes(self, ops: Operations, found: Value) -> Value:
        """(rows, 1): 0."""
        return ops.full(found, np.zeros(1, dtype=np.int64))

    def probabilities(self, ops: Operations, found: Value) -> Value:
        """(rows, 1): 1."""
        return ops.full(found, np.ones(1))

    def log_probabilities(self, ops: Operations, found: Value) -> Value:
        """(rows, 1): 0."""
        return ops.full(found, np.zeros(1))


@dataclass(frozen=True, eq=False)
class Sigmoids:
    """Classes with calibrated probabilities, which decide.

    Parameters
    ----------
    inner : Classes
    slope, offset : arrays, one entry for two classes, else one a class
    """

    inner: Classes
    slope: Array
    offset: Array
    has_decisions: ClassVar[bool] = True
    has_probabilities: ClassVar[bool] = True

    @property
    def classes(self) -> Array:
        """The classes."""
        return self.inner.classes

    @property
    def width(self) -> int:
        """The number of decisions."""
        return self.inner.width

    def decisions(self, ops: Operations, found: Value) -> Value:
        """(rows, classes), or (rows, 1) of two."""
        return self.inner.decisions(ops, found)

    def probabilities(self, ops: Operations, found: Value) -> Value:
        """(rows, classes)."""
        each = ops.expit(self.inner.decisions(ops, found) * self.slope + self.offset)
        return shares(ops, each, len(self.classes))

    def codes(self, ops: Operations, found: Value) -> Value:
        """(rows, 1): the number of the class of the largest probability."""
        return ops.argmax(self.probabilities(ops, found))


@dataclass(frozen=True, eq=False)
class Shares:
    """Classes by probabilities, which is all that a mean of calibrated models has."""

    classes: Array
    has_decisions: ClassVar[bool] = False
    has_probabilities: ClassVar[bool] = True

    @property
    def width(self) -> int:
        """The number of classes."""
        return len(self.classes)

    def decisions(self, ops: Operations, found: Value) -> Value:
        """There are none."""
        raise NotImplementedError

    def probabilities(self, ops: Operations, found: Value) -> Value:
        """(rows, classes)."""
        return found

    def codes(self, ops: Operations, found: Value) -> Value:
        """(rows, 1): the number of the class of the largest probability."""
        return ops.argmax(found)


@dataclass(frozen=True, eq=False)
class Numbers:
    """Numbers of a regression."""

    units: Units | None
    width: ClassVar[int] = 1

    def values(self, ops: Operations, found: Value) -> Value:
        """(rows, 1)."""
        return back(ops, self.units, found)


@dataclass(frozen=True, eq=False)
class Quantiles:
    """Quantiles of a regression, in order; ``alone``: one, given as a number."""

    levels: tuple[float, ...]
    alone: bool
    units: Units | None

    @property
    def width(self) -> int:
        """The number of quantiles."""
        return len(self.levels)

    def values(self, ops: Operations, found: Value) -> Value:
        """(rows, quantiles)."""
        return back(ops, self.units, found if self.width == 1 else ops.in_order(found))


@dataclass(frozen=True, eq=False)
class Outliers:
    """Rows inside (1) or outside (-1); ``offset`` is minus the threshold, which decisions have."""

    offset: float
    classes: ClassVar[Array] = np.array([-1, 1])
    width: ClassVar[int] = 1
    has_decisions: ClassVar[bool] = True
    has_probabilities: ClassVar[bool] = False

    def decisions(self, ops: Operations, found: Value) -> Value:
        """(rows, 1)."""
        return found

    def codes(self, ops: Operations, found: Value) -> Value:
        """(rows, 1): 1 inside, else 0."""
        return ops.integer(found >= 0.0)


OfClasses: TypeAlias = Classes | OneClassOnly | Sigmoids | Shares | Outliers
OfNumbers: TypeAlias = Numbers | Quantiles
Head: TypeAlias = OfClasses | OfNumbers


def split(ops: Operations, heads: Sequence[Head], found: Value) -> list[tuple[Head, Value]]:
    """Every head with its columns of decisions; one without any has all of them, for their rows."""
    if len(heads) == 1:
        return [(heads[0], found)]
    ends = np.cumsum([head.width for head in heads])
    return [
        (head, ops.columns(found, np.arange(end - head.width, end)) if head.width else found)
        for head, end in zip(heads, ends.tolist(), strict=True)
    ]
