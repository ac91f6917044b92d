"""What turns rows of numbers into decisions: sums, cells, relevance and means of models.

Every part is a function of ``Operations`` and rows (m, n) that gives (m, K) decisions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol

import numpy as np

from asset_svm.arrays import Array
from asset_svm.runtime.operations import Operations, Value
from asset_svm.runtime.sources import Cosines, Landmarks


class Part(Protocol):
    """A function from rows to decisions."""

    @property
    def width(self) -> int:
        """The number K of decisions."""

    @property
    def breadth(self) -> int:
        """The numbers of a row that are there at a time, about."""

    def __call__(self, ops: Operations, x: Value) -> Value:
        """The (rows, K) decisions."""


@dataclass(frozen=True, eq=False)
class Sums:
    """Weighted sums of kernel values, or of features.

    Parameters
    ----------
    source : Landmarks or Cosines
    weights : array of shape (K, s)
    intercept : array of shape (K,)
    """

    source: Landmarks | Cosines
    weights: Array
    intercept: Array

    @property
    def width(self) -> int:
        """The number K of decisions."""
        return len(self.intercept)

    @property
    def breadth(self) -> int:
        """The numbers of a row that are there at a time."""
        return self.source.breadth

    def __call__(self, ops: Operations, x: Value) -> Value:
        """The (rows, K) decisions."""
        return ops.sums(x, self)

    def by_values(self, ops: Operations, x: Value) -> Value:
        """The decisions by the values of all landmarks."""
        return ops.product(self.source.values(ops, x), self.weights) + self.intercept


@dataclass(frozen=True, eq=False)
class Constant:
    """The same decisions for every row."""

    values: Array

    @property
    def width(self) -> int:
        """The number K of decisions."""
        return len(self.values)

    @property
    def breadth(self) -> int:
        """The numbers of a row that are there at a time."""
        return len(self.values)

    def __call__(self, ops: Operations, x: Value) -> Value:
        """The (rows, K) decisions."""
        return ops.full(x, self.values)


@dataclass(frozen=True, eq=False)
class Placed:
    """The decisions of a model that knows some of the classes, or has an offset.

    Parameters
    ----------
    inner : Sums
    known : array of int, optional
        The columns that it has of ``width``: others are -1, or less where all that it has are.
    width : int
    offset : array of shape (width,)
    """

    inner: Sums
    known: Array | None
    width: int
    offset: Array

    @property
    def breadth(self) -> int:
        """The numbers of a row that are there at a time."""
        return self.inner.breadth

    def __call__(self, ops: Operations, x: Value) -> Value:
        """The (rows, K) decisions."""
        found = self.inner(ops, x)
        if self.known is None:
            return found + self.offset
        if len(self.known) == 2:  # one decision between two of the classes
            found = ops.beside([-found, found])
        others = ops.clip(ops.smallest(found), None, -1.0)
        places = np.full(self.width, len(self.known))
        places[self.known] = np.arange(len(self.known))
        return ops.columns(ops.beside([found, others]), places)


@dataclass(frozen=True, eq=False)
class Tree:
    """Nodes of centres; rows go down by the nearest.

    Parameters
    ----------
    centres : array of shape (all centres, n)
        Those of one node after the other.
    first, counts : arrays of int, one entry a node, the root first
        Where its centres begin, and how many there are; empty where there is one cell.
    below : array of int
        Below each centre a node, or -1 less a cell.
    """

    centres: Array
    first: Array
    counts: Array
    below: Array

    @cached_property
    def half(self) -> Array:
        """|c|^2 / 2 of all centres."""
        return 0.5 * np.einsum("ij,ij->i", self.centres, self.centres)

    @cached_property
    def depth(self) -> int:
        """The longest way down."""
        deep = np.ones(len(self.first), dtype=int)
        for node in range(len(self.first) - 1, -1, -1):  # nodes come after those above them
            below = self.below[self.first[node] : self.first[node] + self.counts[node]]
            deep[node] = 1 + max((deep[child] for child in below if child >= 0), default=0)
        return int(deep[0]) if len(deep) else 0


@dataclass(frozen=True, eq=False)
class Expansions:
    """Sums of kernel values with landmarks of the cell of a row.

    Parameters
    ----------
    landmarks : Landmarks
        Those of one cell after the other.
    weights : array of shape (all landmarks, K)
    first : array of int of shape (cells + 1,)
        Where the landmarks of each cell begin.
    intercept : array of shape (cells, K)
    """

    landmarks: Landmarks
    weights: Array
    first: Array
    intercept: Array

    @property
    def width(self) -> int:
        """The number K of decisions."""
        return self.intercept.shape[1]

    @property
    def n_cells(self) -> int:
        """The number of cells."""
        return len(self.intercept)

    @property
    def breadth(self) -> int:
        """The numbers of a row that are there at a time."""
        return self.landmarks.n + int(np.diff(self.first).max(initial=0))

    def of_cell(self, ops: Operations, x: Value, cell: int) -> Value:
        """The (rows, K) decisions of rows of this cell."""
        some = slice(self.first[cell], self.first[cell + 1])
        by = self.landmarks
        if some.start == some.stop:
            return ops.full(x, self.intercept[cell])
        values = by.some(ops, *by.moved_rows(ops, x), by.moved[some], by.norms[some])
        return ops.product(values, self.weights[some].T) + self.intercept[cell]


@dataclass(frozen=True, eq=False)
class Partition:
    """A tree, and what decides in each of its cells.

    Parameters
    ----------
    tree : Tree
    models : Expansions, or a sequence of parts
    """

    tree: Tree
    models: Expansions | Sequence[Part]

    @property
    def width(self) -> int:
        """The number K of decisions."""
        found = self.models if isinstance(self.models, Expansions) else self.models[0]
        return found.width

    @property
    def breadth(self) -> int:
        """The numbers of a row that are there at a time."""
        if isinstance(self.models, Expansions):
            return self.models.breadth
        return max(each.breadth for each in self.models)

    def __call__(self, ops: Operations, x: Value) -> Value:
        """The (rows, K) decisions."""
        cells = ops.cell(x, self.tree)
        if isinstance(self.models, Expansions):
            return ops.expansions(x, cells, self.models)

        def of(model: Part) -> Callable[[Value], Value]:
            return lambda rows: model(ops, rows)

        return ops.by_cell(x, cells, [of(model) for model in self.models], self.width)


@dataclass(frozen=True, eq=False)
class Mean:
    """The weighted mean of parts: of partitions, or of the models of a race.

    Parameters
    ----------
    members : tuple of parts
    weights : array
        They add up to 1.
    """

    members: tuple[Part, ...]
    weights: Array

    @property
    def width(self) -> int:
        """The number K of decisions."""
        return self.members[0].width

    @property
    def breadth(self) -> int:
        """The numbers of a row that are there at a time."""
        return max(member.breadth for member in self.members)

    def __call__(self, ops: Operations, x: Value) -> Value:
        """The (rows, K) decisions."""
        total = self.members[0](ops, x) * float(self.weights[0])
        for member, weight in zip(self.members[1:], self.weights[1:], strict=True):
            total = total + member(ops, x) * float(weight)
        return total


@dataclass(frozen=True, eq=False)
class Relevant:
    """A part behind a linear map of the columns.

    Parameters
    ----------
    weights : array of shape (n,) or (r, n)
    shift : array of shape (n,), optional
        What is subtracted from rows first.
    inner : part
    """

    weights: Array
    shift: Array | None
    inner: Part

    @property
    def width(self) -> int:
        """The number K of decisions."""
        return self.inner.width

    @property
    def breadth(self) -> int:
        """The numbers of a row that are there at a time."""
        return max(self.inner.breadth, 2 * self.weights.shape[-1])

    def __call__(self, ops: Operations, x: Value) -> Value:
        """The (rows, K) decisions."""
        x = x if self.shift is None else x - self.shift
        x = x * self.weights if self.weights.ndim == 1 else ops.product(x, self.weights)
        return self.inner(ops, x)


@dataclass(frozen=True, eq=False)
class Intervals:
    """The half-width of the intervals around a regression, and the factors of coverages.

    Parameters
    ----------
    spread : part
        Decides the median of |error| / unit.
    back : callable
        From its decisions to that.
    unit : float
    scores : array
        From the smallest on.
    """

    spread: Part
    back: Callable[[Operations, Value], Value]
    unit: float
    scores: Array = field(repr=False)

    FLOOR = 0.1

    def widths(self, ops: Operations, x: Value) -> Value:
        """(rows, 1): what a factor is multiplied by."""
        return ops.clip(self.back(ops, self.spread(ops, x)), self.FLOOR, None) * self.unit

    def factor(self, coverage: float) -> float:
        """The ceil((n + 1) coverage)-th smallest score; infinite where there are too few."""
        n = len(self.scores)
        place = int(np.ceil(round((n + 1) * coverage, 9)))
        return float(self.scores[place - 1]) if place <= n else np.inf
