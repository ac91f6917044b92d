"""What stands before a model: the encoder of a table, and scikit-learn's transformers.

Every step is a function of ``Operations`` and the columns of rows, which may be text in those of
``Kinds``, ``Ordinals`` and ``Filled``; the encoder's are a table.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from asset_svm.arrays import Array
from asset_svm.encoding.encoding import Encoding
from asset_svm.encoding.table import Table, as_levels
from asset_svm.runtime.operations import Operations, Value


class Step(Protocol):
    """A function from columns to columns."""

    @property
    def n(self) -> int:
        """The number of columns that it takes."""

    @property
    def width(self) -> int:
        """The number of columns that come out of it."""

    def __call__(self, ops: Operations, x: Value) -> Value:
        """The columns."""


@dataclass(frozen=True, eq=False)
class Encode:
    """The numbers of a table.

    Parameters
    ----------
    encoding : Encoding
    dtype : numpy type
        That numbers are rounded to.
    named : bool
        Whether tables have names of columns.
    categorical : frozenset of str
        Columns that are categories, whatever they hold.
    """

    encoding: Encoding
    dtype: np.dtype[Any]
    named: bool
    categorical: frozenset[str]

    @property
    def n(self) -> int:
        """The number of columns of a table."""
        return len(self.encoding.notes)

    @property
    def width(self) -> int:
        """The numbers of a row."""
        return self.encoding.width

    @cached_property
    def dense(self) -> Encoding:
        """The encoding with rows that are not sparse, which needs no SciPy."""
        return replace(self.encoding, sparse=False)

    def prepared(self, table: Table) -> Table:
        """A table with categories of the columns that were named so."""
        columns = (
            as_levels(column) if name in self.categorical else column
            for name, column in zip(table.names, table.columns, strict=True)
        )
        return Table(table.names, tuple(columns))

    def __call__(self, ops: Operations, x: Value) -> Value:
        """The numbers of the rows."""
        return ops.encoded(x, self.dense, self.dtype)


@dataclass(frozen=True, eq=False)
class Affine:
    """(x - centre) * factor + offset, what scalers do; ``ends`` are what numbers stay between."""

    centre: Array
    factor: Array
    offset: Array
    ends: tuple[float, float] | None = None

    @property
    def n(self) -> int:
        """The number of columns."""
        return len(self.factor)

    @property
    def width(self) -> int:
        """The number of columns."""
        return len(self.factor)

    def __call__(self, ops: Operations, x: Value) -> Value:
        """The scaled columns."""
        found = (ops.numbers(x) - self.centre) * self.factor + self.offset
        return found if self.ends is None else ops.clip(found, *self.ends)


@dataclass(frozen=True, eq=False)
class Filled:
    """Columns with a value where one is missing; those without any value are left out.

    Parameters
    ----------
    missing : number, text, NaN or None
        What stands for a missing value.
    values : sequence
        What is put there, by column.
    kept : tuple of int
        The columns that are left.
    apart : bool
        Whether None and NaN are two values: they are in objects, and one gap in numbers.
    """

    missing: Any
    values: Sequence[Any]
    kept: tuple[int, ...]
    apart: bool

    @property
    def n(self) -> int:
        """The number of columns that come in."""
        return len(self.values)

    @property
    def width(self) -> int:
        """The number of columns that are left."""
        return len(self.kept)

    def __call__(self, ops: Operations, x: Value) -> Value:
        """The filled columns."""
        found = []
        for number in self.kept:
            column = ops.columns(x, np.array([number]))
            gaps = ops.equals(column, self.missing, self.apart)
            found.append(ops.where(gaps, self.values[number], column))
        return ops.beside(found)


def _which(ops: Operations, column: Value, listed: Sequence[Any]) -> list[Value]:
    """Whether a column has each of its categories; None and NaN are two among those of objects."""
    apart = any(value is None or isinstance(value, str) for value in listed)
    return [ops.equals(column, value, apart) for value in listed]


@dataclass(frozen=True, eq=False)
class Kinds:
    """A column of 0 and 1 for each category; ``dropped`` are those that have none, by column."""

    categories: Sequence[Sequence[Any]]
    dropped: Sequence[int | None]
    strict: bool

    @property
    def n(self) -> int:
        """The number of columns that come in."""
        return len(self.categories)

    @property
    def width(self) -> int:
        """The number of columns that come out."""
        return sum(len(each) for each in self.categories) - sum(k is not None for k in self.dropped)

    def __call__(self, ops: Operations, x: Value) -> Value:
        """The columns of 0 and 1."""
        found = []
        for number, (listed, dropped) in enumerate(zip(self.categories, self.dropped, strict=True)):
            column = ops.columns(x, np.array([number]))
            each = [ops.number(one) for one in _which(ops, column, listed)]
            if self.strict:
                each[0] = ops.known(each[0], ops.total(ops.beside(each)) > 0.0, number)
            found += [one for k, one in enumerate(each) if k != dropped]
        return ops.beside(found)


@dataclass(frozen=True, eq=False)
class Ordinals:
    """The number of each column's category; ``numbers`` may have another for a gap."""

    categories: Sequence[Sequence[Any]]
    numbers: Sequence[Sequence[float]]
    unknown: float | None

    @property
    def n(self) -> int:
        """The number of columns."""
        return len(self.categories)

    @property
    def width(self) -> int:
        """The number of columns."""
        return len(self.categories)

    def __call__(self, ops: Operations, x: Value) -> Value:
        """The numbers."""
        found = []
        for number, (listed, by) in enumerate(zip(self.categories, self.numbers, strict=True)):
            column = ops.columns(x, np.array([number]))
            each = _which(ops, column, listed)
            known = ops.total(ops.beside([ops.number(one) for one in each])) > 0.0
            code = ops.full(ops.number(each[0]), np.array([self.unknown or 0.0]))
            for one, value in zip(each, by, strict=True):
                code = ops.where(one, value, code)
            found.append(ops.known(code, known, number) if self.unknown is None else code)
        return ops.beside(found)


@dataclass(frozen=True, eq=False)
class Together:
    """Steps of some of the columns each, side by side, each times a weight."""

    count: int
    parts: Sequence[tuple[Array, Sequence[Step], float]]

    @property
    def n(self) -> int:
        """The number of columns that come in."""
        return self.count

    @property
    def width(self) -> int:
        """The number of columns that come out."""
        return sum(steps[-1].width if steps else len(which) for which, steps, _ in self.parts)

    def __call__(self, ops: Operations, x: Value) -> Value:
        """The columns of all parts."""
        found = []
        for which, steps, weight in self.parts:
            columns = ops.columns(x, which)
            for step in steps:
                columns = step(ops, columns)
            columns = ops.numbers(columns)
            found.append(columns if weight == 1.0 else columns * weight)
        return ops.beside(found)


def knows_none(steps: Iterable[Step]) -> bool:
    """Whether any of these steps was fitted to None, which is then a value of its own."""
    for step in steps:
        if isinstance(step, Together):
            met = any(knows_none(inner) for _, inner, _ in step.parts)
        elif isinstance(step, Filled):
            met = step.missing is None or None in step.values
        else:
            met = isinstance(step, Kinds | Ordinals) and any(None in each for each in step.categories)
        if met:
            return True
    return False
