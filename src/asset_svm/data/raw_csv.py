"""Pieces of CSV text as tables of the columns as they came."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from asset_svm.data.compression import Piece
from asset_svm.data.csv_lexer import RecordEnds, odd_record
from asset_svm.data.csv_pieces import Fault, arrow_table, cell_at, piece_fault
from asset_svm.data.raw import (
    BadCellError,
    RawOptions,
    arrow_times,
    number_column,
    target_cells,
    text_column,
)
from asset_svm.data.several_targets import beside
from asset_svm.data.source import Block
from asset_svm.data.tables import Columns
from asset_svm.data.text_targets import TextTargets
from asset_svm.encoding.table import Column, Table, gaps, kind_of

TRIES = 3
"""Readings of a piece with columns as numbers at once, before all come as text."""
GLANCE_BYTES = 1 << 16
_COLUMN = re.compile(r"In CSV column #([0-9]+):")


@dataclass(frozen=True)
class RawPiece:
    """The features of a piece, and its targets by their columns, as arrow arrays of text."""

    table: Table
    targets: dict[str, Any]
    options: RawOptions

    def block(
        self, targets: dict[str, TextTargets], place: Callable[[str], Callable[[int], str]]
    ) -> Block:
        """The rows; ``targets`` are those of all pieces, ``place(name)(i)`` names one of row i."""
        y = []
        for name, array in self.targets.items():
            cells = target_cells(array, self.options, place(name))
            y.append(targets[name].of_arrow(cells, place(name)))
        return Block(self.table, beside(y) if y else None)


class RawPieces:
    """A function of a piece: its ``RawPiece``s, one or none, or its first fault.

    All columns can be read as different texts and codes, of which numbers, times and levels are made.
    Those that were numbers or times in another piece are tried as such at once, which is faster and
    gives the same: what a piece holds is no matter of others.
    """

    def __init__(self, names: list[str], columns: Columns, delimiter: str, options: RawOptions):
        self.names, self.columns, self.delimiter, self.options = names, columns, delimiter, options
        self.known = dict[str, str]()
        """The kinds of columns that can be tried at once."""
        self.texts = set[str]()
        """Columns with a cell that pyarrow does not read as what its column is."""
        words = {word.strip() for word in options.missing} | options.gaps
        cases = {case(word) for word in words for case in (str, str.upper, str.capitalize)}
        self.gaps = sorted(cases | {f" {word}" for word in cases})  # the usual ones

    def __call__(self, piece: Piece) -> list[RawPiece] | Fault:
        """What a piece holds."""
        import pyarrow as pa

        fault = piece_fault(piece, self.names, self.delimiter)
        if fault is not None:
            return fault
        if not piece.text.strip(b"\r\n"):
            return []  # pyarrow takes a text without rows for an error
        try:
            return self._read(piece.text)
        except pa.ArrowInvalid as error:
            return self._first_fault(piece.text, str(error))

    def _read(self, text: bytes) -> list[RawPiece] | Fault:
        import pyarrow as pa

        if not self.known and len(text) > GLANCE_BYTES:
            self._glance(text[:GLANCE_BYTES])
        for _ in range(TRIES):
            tried = {name: kind for name, kind in self.known.copy().items() if name not in self.texts}
            if not tried:
                break
            try:
                table = self._table(text, tried)
            except pa.ArrowInvalid as error:
                found = _COLUMN.match(str(error))
                if found is None:  # a row that is no row
                    raise
                self.texts.add(self.names[int(found[1])])
                continue
            odd = {name for name in tried if tried[name] == "number" and _has_nan(table.column(name))}
            if not odd:
                return self._columns(table)
            self.texts |= odd
        return self._columns(self._table(text, {}))

    def _glance(self, text: bytes) -> None:
        """Learn from the first rows what columns can be tried as."""
        import pyarrow as pa

        end = RecordEnds(self.delimiter)(text)
        with suppress(pa.ArrowInvalid):  # told of the whole piece
            if text[: max(end, 0)].strip(b"\r\n"):
                self._columns(self._table(text[:end], {}))

    def _table(self, text: bytes, kinds: dict[str, str]) -> Any:
        import pyarrow as pa

        texts = pa.dictionary(pa.int32(), pa.string())
        at_once = {"number": pa.float64(), "time": pa.timestamp("us")}
        types = {name: at_once.get(kinds.get(name, ""), texts) for name in self.columns.features}
        types |= dict.fromkeys(self.columns.targets, pa.string())
        return arrow_table(
            text,
            self.names,
            self.delimiter,
            types,
            null_values=self.gaps,
            decimal_point=self.options.decimal,
        )

    def _columns(self, table: Any) -> list[RawPiece] | Fault:
        table = table.combine_chunks()
        if not table.num_rows:
            return []
        columns, faults = list[Column](), list[Fault]()
        for name in self.columns.features:
            try:
                columns.append(self._column(name, table.column(name).chunk(0)))
            except BadCellError as fault:
                faults.append(Fault(fault.row, f", column {name!r}: {fault.said}"))
        if faults:
            return min(faults, key=lambda fault: fault.row)
        targets = {name: table.column(name).chunk(0) for name in self.columns.targets}
        return [RawPiece(Table(self.columns.features, tuple(columns)), targets, self.options)]

    def _column(self, name: str, array: Any) -> Column:
        import pyarrow as pa

        if pa.types.is_floating(array.type):
            return number_column(array.to_numpy(zero_copy_only=False), self.options)
        kind = self.options.kinds.get(name)
        if pa.types.is_timestamp(array.type):
            empty = array.null_count == len(array) and kind is None
            return np.full(len(array), np.nan) if empty else arrow_times(array)
        column = text_column(array, kind, self.options)
        if kind_of(column) != "levels" and not gaps(column).all():
            self.known[name] = kind_of(column)
        return column

    def _first_fault(self, text: bytes, said: str) -> Fault:
        """The first row that is no row, or is not text."""
        odd, begin, width = odd_record(text, self.delimiter, len(self.names))
        try:
            text[:begin].decode()
        except UnicodeDecodeError as error:
            row, column = cell_at(text, error.start, self.names, self.delimiter)
            return Fault(row, f", column {column}: {not_text(self.options.encoding)}")
        if odd >= 0:
            return Fault(odd, f": {width} cells where the header has {len(self.names)}")
        return Fault(0, f" or below: {said}")


def not_text(encoding: str) -> str:
    """What to say of bytes that are not text in the encoding."""
    return (
        f"the bytes are not text in {encoding}; say in which encoding the file is, as with --encoding "
        "latin-1 or --encoding utf-16"
    )


def _has_nan(column: Any) -> bool:
    """Whether a column of numbers has a NaN that is no gap."""
    values = (chunk.to_numpy(zero_copy_only=False) for chunk in column.chunks)
    return sum(int(np.count_nonzero(np.isnan(part))) for part in values) != column.null_count
