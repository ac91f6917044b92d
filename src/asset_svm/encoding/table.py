"""Columns as they came: numbers with gaps, times, or levels of a category."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any, TypeAlias

import numpy as np

from asset_svm.arrays import Array

TIME = np.dtype("datetime64[us]")
NO_LEVEL = -1
"""The code of a gap."""
TRUTH = ("false", "true")
"""The levels of truth values."""
NAME_BYTES = 64
"""Of a name beside its characters."""


@dataclass(frozen=True, eq=False)
class Levels:
    """A column of categories.

    Parameters
    ----------
    codes : array of int32
        Which of ``names`` each row has; ``NO_LEVEL`` where there is none.
    names : tuple of str
        Different texts; some may be of no row.
    """

    codes: Array
    names: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.codes)

    def __getitem__(self, rows: Any) -> Levels:
        """These rows; of many names only those that they have, for a sample must not hold a file's."""
        codes = self.codes[rows]
        if 2 * len(codes) >= len(self.names):
            return Levels(codes, self.names)
        used = np.unique(codes[codes >= 0])
        by = np.full(len(self.names) + 1, NO_LEVEL, dtype=np.int32)
        by[used] = np.arange(len(used))
        return Levels(by[codes], tuple(self.names[k] for k in used.tolist()))

    @property
    def nbytes(self) -> int:
        """The bytes of the codes and, roughly, of the names."""
        return int(self.codes.nbytes) + sum(map(len, self.names)) + NAME_BYTES * len(self.names)

    @classmethod
    def of(cls, values: Iterable[Any]) -> Levels:
        """The levels of values of any kind, in the order in which they come; None is a gap."""
        known: dict[str, int] = {}
        codes = [
            NO_LEVEL if is_gap(value) else known.setdefault(level_text(value), len(known))
            for value in values
        ]
        return cls(np.array(codes, dtype=np.int32), tuple(known))

    def counts(self) -> Array:
        """The rows of every name."""
        return np.bincount(self.codes[self.codes >= 0], minlength=len(self.names))

    def coded_by(self, numbers: dict[str, int], other: int) -> Array:
        """The codes of the rows in another numbering of names; ``other`` for a name without one."""
        by = np.array([*(numbers.get(name, other) for name in self.names), NO_LEVEL], dtype=np.int32)
        return by[self.codes]  # NO_LEVEL is the last


Column: TypeAlias = Array | Levels
"""Floats with NaN for gaps, ``TIME`` with NaT for gaps, or levels."""


def is_gap(value: Any) -> bool:
    """Whether a value of any kind is none: None, NaN, NaT, NA, or blank text."""
    if value is None:
        return True
    if isinstance(value, str):
        return not value.strip()
    if type(value).__name__ in ("NAType", "NaTType"):
        return True
    if isinstance(value, Decimal):
        return value.is_nan()  # one that signals is not to be compared
    try:
        return bool(value != value)
    except (TypeError, ValueError):
        return False


def level_text(value: Any) -> str:
    """The name of a level: what is the same to people is the same, 1.0 and "1" and " 1".

    A time at midnight is a date.
    """
    if isinstance(value, bool | np.bool_):
        return TRUTH[int(value)]
    if isinstance(value, str):
        return value.strip()
    if (
        isinstance(value, float | np.floating)
        and float(value).is_integer()
        and abs(float(value)) < 1e15
    ):
        return str(int(value))
    if isinstance(value, np.datetime64):
        value = value.astype(TIME).item()
    if isinstance(value, datetime):
        return value.isoformat(" ").removesuffix(" 00:00:00")
    if isinstance(value, bytes):
        return value.decode("utf-8", "backslashreplace").strip()
    return str(value).strip()


@dataclass(frozen=True, eq=False)
class Table:
    """Named columns of equally many rows."""

    names: tuple[str, ...]
    columns: tuple[Column, ...]

    def __len__(self) -> int:
        return len(self.columns[0]) if self.columns else 0

    def __getitem__(self, rows: Any) -> Table:
        return Table(self.names, tuple(column[rows] for column in self.columns))

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return len(self), len(self.columns)

    @property
    def nbytes(self) -> int:
        """The bytes of the values."""
        return int(sum(column.nbytes for column in self.columns))

    def column(self, name: str) -> Column:
        """The column of a name."""
        return self.columns[self.names.index(name)]

    def select(self, names: Sequence[str]) -> Table:
        """Columns in this order."""
        return Table(tuple(names), tuple(self.column(name) for name in names))

    @staticmethod
    def joined(tables: Sequence[Table]) -> Table:
        """The rows of tables with the same columns, one after the other."""
        if len(tables) == 1:
            return tables[0]
        each = zip(*(table.columns for table in tables), strict=True)
        return Table(tables[0].names, tuple(_joined(columns) for columns in each))


def kind_of(column: Column) -> str:
    """What a column is: "levels", "time" or "number"."""
    if isinstance(column, Levels):
        return "levels"
    return "time" if column.dtype.kind == "M" else "number"


def as_levels(column: Column) -> Levels:
    """Any column as one of categories: different values are different levels."""
    if isinstance(column, Levels):
        return column
    values, codes = np.unique(column, return_inverse=True)  # gaps are the last, and one
    codes = np.where(_gaps(column), NO_LEVEL, codes).astype(np.int32)
    return Levels(codes, tuple(level_text(value) for value in values[~_gaps(values)]))


def gaps(column: Column) -> Array:
    """Which rows have no value."""
    return column.codes < 0 if isinstance(column, Levels) else _gaps(column)


def _gaps(values: Array) -> Array:
    return np.asarray(np.isnat(values) if values.dtype.kind == "M" else np.isnan(values))


def _is_nothing(column: Column) -> bool:
    """Whether a column is of no kind: numbers that are all gaps."""
    return kind_of(column) == "number" and bool(gaps(column).all())


def _joined(columns: Sequence[Column]) -> Column:
    kinds = {kind_of(column) for column in columns if not _is_nothing(column)}
    if kinds <= {"number"}:
        return np.concatenate(columns)  # type: ignore[arg-type]
    if kinds == {"time"}:
        return np.concatenate([column.astype(TIME) for column in columns])  # type: ignore[union-attr]
    known: dict[str, int] = {}
    parts = []
    for column in map(as_levels, columns):
        for name in column.names:
            known.setdefault(name, len(known))
        parts.append(column.coded_by(known, NO_LEVEL))
    return Levels(np.concatenate(parts), tuple(known))
