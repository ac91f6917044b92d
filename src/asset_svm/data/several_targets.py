"""Targets in several columns of a file: as arrays of shape (rows, outputs), and what they are.

Numbers of all columns make an array of numbers, names one of text; where some columns have numbers and
others names, it is one of objects, each column of which is of one kind.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from asset_svm.arrays import Array


def beside(columns: list[Array]) -> Array:
    """The targets of these columns; one alone is itself."""
    if len(columns) == 1:
        return columns[0]
    kinds = {"text" if column.dtype.kind in "UO" else "numbers" for column in columns}
    if len(kinds) > 1:
        columns = [column.astype(object) for column in columns]
    return np.column_stack(columns)


def columns_of(y: Array) -> Iterator[Array]:
    """The columns of targets, each of its own kind; targets of one column are one."""
    for column in np.atleast_2d(y.T):
        plain = column.dtype.kind != "O" or y.ndim == 1
        yield column if plain else np.array(column.tolist())


def by_column(y: Array, function: Callable[[Array], Array]) -> Array:
    """A function of targets, of every column where there are several."""
    if y.ndim == 1:
        return function(y)
    return beside([function(column) for column in columns_of(y)])


@dataclass
class SeveralTargets:
    """What the targets of several columns are, in the words of ``TargetSummary``.

    Parameters
    ----------
    parts : list of TargetSummary
        Of each column.
    """

    parts: list[Any]

    def add(self, y: Array, name: str) -> None:
        """Take the targets of a block into account."""
        for number, (part, column) in enumerate(zip(self.parts, columns_of(y), strict=True)):
            part.add(column, f"{name}, target {number + 1}")

    def join(self, other: SeveralTargets, name: str) -> None:
        """Take the targets of other rows into account."""
        for number, (part, own) in enumerate(zip(self.parts, other.parts, strict=True)):
            part.join(own, f"{name}, target {number + 1}")

    @property
    def kind(self) -> str:
        """The kind of all columns, or "mixed"."""
        kinds = {part.kind for part in self.parts}
        return kinds.pop() if len(kinds) == 1 else "mixed"

    @property
    def low(self) -> Array:
        """The least number of each column."""
        return np.array([part.low for part in self.parts])

    @property
    def high(self) -> Array:
        """The largest number of each column."""
        return np.array([part.high for part in self.parts])

    @property
    def whole(self) -> bool:
        """Whether all numbers are integers."""
        return all(part.whole for part in self.parts)

    @property
    def classes(self) -> list[Array] | None:
        """The different targets of each column; None if some are too many."""
        found = [part.classes for part in self.parts]
        return None if any(each is None for each in found) else found

    @property
    def class_counts(self) -> list[Array]:
        """The number of rows of each of ``classes``."""
        return [part.class_counts for part in self.parts]

    @property
    def classifies(self) -> bool:
        """Whether all look like classes."""
        return all(part.classifies for part in self.parts)

    def changed(self, low: Array, high: Array) -> SeveralTargets:
        """The same targets after a function that makes these ends of theirs."""
        ends = zip(self.parts, low, high, strict=True)
        return SeveralTargets([part.changed(*each) for part, *each in ends])
