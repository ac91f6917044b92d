"""All columns of a table together: rows of numbers, their names, and where each comes from."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from asset_svm.arrays import Array, Matrix
from asset_svm.encoding.columns import ColumnEncoder, Means, OneHot, Steps
from asset_svm.encoding.summary import check_size
from asset_svm.encoding.table import NO_LEVEL, TRUTH, Column, Levels, Table, as_levels, gaps, kind_of
from asset_svm.exceptions import DataError

FOLDS = 5
"""Rows have the target means of the rows of other folds."""
BLOCK_ROWS = 8192
MIX = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True)
class Note:
    """What became of a column.

    Parameters
    ----------
    name : str
    kind : {"number", "time", "levels", ""}
        What it is; "" where no row has a value.
    made : str
        What was made of it; for a column that was left out, why.
    kept : bool
    """

    name: str
    kind: str
    made: str
    kept: bool = True


@dataclass(frozen=True, eq=False)
class Encoding:
    """Functions of columns, side by side.

    Parameters
    ----------
    notes : tuple of Note
        One for each column of tables, in their order.
    parts : tuple of (int, ColumnEncoder)
        The number of a column, and a function of it; a column may have several.
    sparse : bool
        Whether rows are CSR.
    """

    notes: tuple[Note, ...]
    parts: tuple[tuple[int, ColumnEncoder], ...]
    sparse: bool = False

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The columns of tables."""
        return tuple(note.name for note in self.notes)

    @cached_property
    def feature_names(self) -> list[str]:
        """The names of the numbers; one that is there already has a number behind it."""
        names: dict[str, None] = {}
        for number, part in self.parts:
            for suffix in part.suffixes:
                plain = name = " ".join(filter(None, (self.names[number], suffix)))
                again = 2
                while name in names:
                    name, again = f"{plain} ({again})", again + 1
                names[name] = None
        return list(names)

    @cached_property
    def origins(self) -> Array:
        """The column that each number comes from."""
        return np.repeat(
            [number for number, _ in self.parts], [len(part.suffixes) for _, part in self.parts]
        )

    @property
    def width(self) -> int:
        """The numbers of a row."""
        return len(self.origins)

    @property
    def crossed(self) -> bool:
        """Whether rows to learn from have other numbers than the same rows to predict."""
        return any(isinstance(part, Means) for _, part in self.parts)

    def ordered(self, table: Table) -> Table:
        """The columns that are used, in the order of this encoding, each of the kind that it was."""
        kept = [note for note in self.notes if note.kept]
        places = {name: place for place, name in enumerate(table.names)}
        missing = next((note.name for note in kept if note.name not in places), None)
        if missing is not None:
            raise DataError(
                f"The column {missing!r} is missing, which the model was trained with; the columns are "
                f"{', '.join(map(repr, table.names[:20]))}."
            )
        return Table(
            tuple(note.name for note in kept),
            tuple(
                _alike(table.columns[places[note.name]], note, truth=note.name in self.truths)
                for note in kept
            ),
        )

    @cached_property
    def truths(self) -> set[str]:
        """Columns of truth values."""
        return {
            self.names[number]
            for number, part in self.parts
            if isinstance(part, OneHot | Steps) and set(part.names) <= set(TRUTH)
        }

    @cached_property
    def used(self) -> tuple[tuple[int, ColumnEncoder], ...]:
        """The parts, with numbers of the columns among those that are used."""
        kept = [number for number, note in enumerate(self.notes) if note.kept]
        return tuple((kept.index(number), part) for number, part in self.parts)

    def __call__(
        self,
        table: Table,
        dtype: npt.DTypeLike = np.float32,
        *,
        learning: bool = False,
        whole: bool = False,
    ) -> Matrix:
        """The numbers of the rows; with ``learning`` no target has a part in those of its own row.

        ``whole`` as for ``folds_of``: as it was where the means were taken.
        """
        table = self.ordered(table)
        folds = folds_of(table, whole=whole) if learning and self.crossed else None
        if self.sparse:
            from scipy.sparse import hstack  # ``runtime`` encodes without it

            blocks = [self._block(number, part, table, folds) for number, part in self.used]
            return hstack(blocks, format="csr", dtype=dtype)
        out = np.empty((len(table), self.width), dtype=dtype)
        for start in range(0, len(table), BLOCK_ROWS):
            rows = slice(start, start + BLOCK_ROWS)
            some, done = table[rows], 0
            for number, part in self.used:
                width = len(part.suffixes)
                own = None if folds is None else folds[rows]
                out[rows, done : done + width] = _numbers(part, some.columns[number], own)
                done += width
        return out

    def _block(self, number: int, part: ColumnEncoder, table: Table, folds: Array | None) -> Any:
        """The CSR columns of one function."""
        from scipy.sparse import csr_matrix

        if not isinstance(part, OneHot):
            return csr_matrix(_numbers(part, table.columns[number], folds))
        places = part.places(table.columns[number])
        there = np.flatnonzero(places >= 0)
        shape = len(table), len(part.suffixes)
        return csr_matrix((np.ones(len(there)), (there, places[there])), shape=shape)

    def slopes(self, table: Table) -> Array:
        """The derivative of every number by its column; NaN where that is no number."""
        table = self.ordered(table)
        return np.concatenate(
            [part.slopes(table.columns[number]) for number, part in self.used], axis=1
        )


def _numbers(part: ColumnEncoder, column: Column, folds: Array | None) -> Array:
    return part(column, folds) if isinstance(part, Means) else part(column)


def _alike(column: Column, note: Note, *, truth: bool) -> Column:
    """The column as it was in training; ``truth``: it had truth values, which may come as 0 and 1."""
    kind, given = note.kind, kind_of(column)
    if not isinstance(column, Levels) and given == "number":
        check_size(column, note.name)
    if given == kind:
        return column
    if kind != "levels" and gaps(column).all():  # of whatever kind
        return np.full(len(column), np.datetime64("NaT", "us") if kind == "time" else np.nan)
    if isinstance(column, Levels):
        if kind == "number" and column.names == TRUTH:
            return np.array([0.0, 1.0, np.nan])[column.codes]
        first = column.names[int(column.codes[column.codes >= 0][0])]
        raise DataError(
            f"The column {note.name!r} has the text {first[:40]!r}; in training it had "
            f"{'times' if kind == 'time' else 'numbers'}."
        )
    if truth and given == "number" and np.isin(column[~np.isnan(column)], (0.0, 1.0)).all():
        return Levels(np.where(np.isnan(column), NO_LEVEL, column).astype(np.int32), TRUTH)
    if kind == "levels":
        return as_levels(column)
    raise DataError(
        f"The column {note.name!r} has {'numbers' if given == 'number' else 'times'}; in training it "
        f"had {'times' if kind == 'time' else 'numbers'}."
    )


def folds_of(table: Table, n_folds: int = FOLDS, *, whole: bool = False) -> Array:
    """The fold of each row, by what it holds, wherever it is read from.

    Equal rows are in one fold. Where the table is ``whole``, they are dealt out in turn: a table of
    few different rows would have the rows of a level in one fold, and no mean of those of others.
    """
    mixed = np.zeros(len(table), dtype=np.uint64)
    with np.errstate(over="ignore"):
        for column in table.columns:
            if isinstance(column, Levels):
                hashes = [zlib.crc32(name.encode("utf-8", "surrogatepass")) for name in column.names]
                bits = np.array([*hashes, 0], dtype=np.uint64)[column.codes]
            elif column.dtype.kind == "M":
                bits = column.astype(np.int64).view(np.uint64)
            else:
                bits = (column.astype(np.float64) + 0.0).view(np.uint64)  # one zero
            mixed = (mixed ^ bits) * MIX
            mixed ^= mixed >> np.uint64(29)
    folds = (mixed % np.uint64(n_folds)).astype(np.int64)
    return (folds + _repeats(mixed)) % n_folds if whole else folds


def _repeats(values: Array) -> Array:
    """How many equal values lie before each."""
    order = np.argsort(values, kind="stable")
    ordered = values[order]
    first = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1]))
    found = np.empty(len(values), dtype=np.int64)
    found[order] = np.arange(len(values)) - np.repeat(first, np.diff(np.append(first, len(values))))
    return found


def said(notes: Sequence[Note]) -> list[str]:
    """A line for each thing that was made of columns, with their names."""
    groups: dict[tuple[bool, str, str], list[str]] = {}
    for note in notes:
        groups.setdefault((note.kept, note.kind if note.kept else "", note.made), []).append(note.name)
    lines = []
    for (kept, _, made), names in groups.items():
        shown = ", ".join(names[:12]) + (f", ... ({len(names)} in all)" if len(names) > 12 else "")
        lines.append(f"{shown}: {made}" if kept else f"{shown}: left out, {made}")
    return lines
