"""CSV and TSV text with a header, plain or compressed, parsed by pyarrow in several threads."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from asset_svm.arrays import Array
from asset_svm.data import compression
from asset_svm.data.ahead import in_order
from asset_svm.data.compression import TOO_LONG, Piece, opened, pieces
from asset_svm.data.csv_lexer import RecordEnds, odd_record
from asset_svm.data.csv_pieces import Fault, arrow_table, piece_fault
from asset_svm.data.notation import BLANKS, FOREIGN, MISSING, NUMBER, kind_of, shown
from asset_svm.data.raw import RawOptions
from asset_svm.data.raw_csv import RawPiece, RawPieces, not_text
from asset_svm.data.several_targets import beside
from asset_svm.data.source import Block, TextRows
from asset_svm.data.tables import Columns, as_matrix, need_pyarrow
from asset_svm.data.text_targets import TextTargets
from asset_svm.data.transcoding import as_utf8
from asset_svm.exceptions import DataError

BLOCK_BYTES = 2 << 20
"""Bytes of text that are parsed together: half as much takes twice the time where there are 1000
columns, and twice as much 50 MB more memory."""

MOST_COLUMNS = 1 << 20
"""Names of more would fill the memory."""
COMMAS = "write the file with commas, and its numbers with decimal points"
DELIMITERS = {
    ",": ("commas", 'say format="csv" (--format csv)'),
    "\t": ("tabs", 'say format="tsv" (--format tsv)'),
    ";": ("semicolons", COMMAS),
    "|": ("bars", COMMAS),
}
"""What else separates columns, and what to do about it."""


class CsvRows(TextRows):
    """Rows of a text table: numeric columns, or any as they came, and a target of numbers or text.

    Parameters
    ----------
    path : path, or "-" for standard input
    delimiter : str
    target : str or sequence of str, optional
        The target's column, or several; by default the one named target, label, y or class.
    features : tuple of str, optional
        The columns to read as features, in this order; by default all but the target.
    targets : bool
        Whether targets are read.
    dtype : dtype
        Of matrices.
    raw : RawOptions, optional
        Read the columns as they came: the X of blocks are tables, and not matrices. A header without
        the delimiter says itself what separates columns.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        delimiter: str = ",",
        target: str | Sequence[str] | None = None,
        features: tuple[str, ...] | None = None,
        targets: bool = True,
        dtype: npt.DTypeLike = np.float32,
        raw: RawOptions | None = None,
    ):
        need_pyarrow("Reading CSV")
        self._set_path(path)
        self.delimiter, self.dtype, self.raw = delimiter, np.dtype(dtype), raw
        self._asked = (target, features, targets)
        if self.rereadable:
            with opened(path) as stream:
                self._settle(self._header(self._text(stream)))

    def _text(self, stream: BinaryIO) -> BinaryIO:
        return stream if self.raw is None else as_utf8(stream, self.raw.encoding)

    def _header(self, stream: BinaryIO) -> list[str]:
        line = stream.readline(compression.LONGEST_LINE + 1)
        if len(line) > compression.LONGEST_LINE:
            raise DataError(f"{self.name}, line 1: {TOO_LONG}.")
        delimiters = (self.delimiter,) if self.raw is None else DELIMITERS
        if max(line.count(delimiter.encode()) for delimiter in delimiters) >= MOST_COLUMNS:
            raise DataError(f"{self.name}, line 1: the header has more than {MOST_COLUMNS} columns.")
        try:
            text = line.decode("utf-8-sig").rstrip("\r\n")
        except UnicodeDecodeError:
            said = "the header is not UTF-8 text" if self.raw is None else not_text(self.raw.encoding)
            raise DataError(f"{self.name}, line 1: {said}.") from None
        try:
            names = _names(text, self.delimiter)
            if self.raw is not None and self.delimiter not in text:
                others = {each: _names(text, each) for each in (self.delimiter, *DELIMITERS)}
                self.delimiter = max(others, key=lambda each: len(others[each]))
                names = others[self.delimiter]
        except csv.Error as error:
            raise DataError(f"{self.name}, line 1: the header is not CSV ({error}).") from None
        if not names:
            raise DataError(f"{self.name}, line 1: a header with the names of the columns is missing.")
        if all(NUMBER.fullmatch(name) for name in names):
            raise DataError(
                f"{self.name}, line 1: the header has numbers only; the first line must name the "
                "columns."
            )
        return names

    def _settle(self, names: list[str]) -> Columns:
        target, features, targets = self._asked
        if len(names) == 1 and self.raw is None:
            self._check_delimiter(names)
        if self.raw is not None:
            names = self.raw.kept(names, self.name, strict=features is None)
        try:
            columns = Columns.choose(names, target, features, self.name, targets=targets)
        except DataError:
            self._check_delimiter(names)
            raise
        self.columns = columns
        self.feature_names, self.n_features = columns.features, len(columns.features)
        return columns

    def _check_delimiter(self, names: list[str]) -> None:
        """Raise where another delimiter makes more columns of the header."""
        for other, (word, advice) in DELIMITERS.items():
            count = sum(name.count(other) for name in names) + 1
            if other != self.delimiter and count > len(names):
                raise DataError(
                    f"{self.name}, line 1: the header has {len(names)} columns where "
                    f"{DELIMITERS[self.delimiter][0]} separate them, and {count} where {word} do; "
                    f"{advice}."
                )

    def settle(self, kinds: Mapping[str, str]) -> None:
        """Read columns of tables as these kinds from now on."""
        if self.raw is not None:
            self.raw = replace(self.raw, kinds={**self.raw.kinds, **kinds})

    def _read(self, order: Array | None) -> Iterator[Block]:
        read = 0
        with opened(self.path) as stream:
            text = self._text(stream)
            names = self._header(text)
            columns = self._settle(names)
            gaps = frozenset() if self.raw is None else self.raw.gaps
            targets = {name: TextTargets(gaps) for name in columns.targets}

            def place(i: int) -> str:
                return f"{self.name}, row {read + i + 1}"

            def target_place(name: str) -> Callable[[int], str]:
                return lambda i: f"{place(i)}, column {name!r}"

            parts = pieces(text, BLOCK_BYTES, RecordEnds(self.delimiter))
            for parsed in in_order(parts, self._parser(names, columns)):
                if isinstance(parsed, Fault):
                    raise DataError(f"{place(parsed.row)}{parsed.said}.")
                for part in parsed:
                    if isinstance(part, RawPiece):
                        block = part.block(targets, target_place)
                    else:
                        X = as_matrix(part, columns, self.dtype, place)
                        y = [
                            texts.of_arrow(part.column(name), target_place(name))
                            for name, texts in targets.items()
                        ]
                        block = Block(X, beside(y) if y else None)
                    yield block
                    read += len(block)

    def _parser(self, names: list[str], columns: Columns) -> Callable[[Piece], list[Any] | Fault]:
        if self.raw is not None:
            return RawPieces(names, columns, self.delimiter, self.raw)
        return partial(_parse, names=names, columns=columns, delimiter=self.delimiter)


def _names(text: str, delimiter: str) -> list[str]:
    """The names in a header."""
    return next(csv.reader([text], delimiter=delimiter, strict=True), [])


def _parse(piece: Piece, names: list[str], columns: Columns, delimiter: str) -> list[Any] | Fault:
    """Record batches of a piece, features as float64 and the target as text; or its first fault."""
    import pyarrow as pa

    fault = piece_fault(piece, names, delimiter)
    if fault is not None:
        return fault
    if not piece.text.strip(b"\r\n"):
        return []  # pyarrow takes a text without rows for an error
    types: dict[str, Any] = {column: pa.float64() for column in columns.features}
    types |= dict.fromkeys(columns.targets, pa.string())
    try:
        table = arrow_table(piece.text, names, delimiter, types, null_values=sorted(MISSING))
    except pa.ArrowInvalid as error:
        return _first_fault(piece.text, names, columns, delimiter, str(error))
    return [batch for batch in table.to_batches() if batch.num_rows]


def _first_fault(text: bytes, names: list[str], columns: Columns, delimiter: str, said: str) -> Fault:
    """The first bad cell, found slowly: pyarrow does not say where it stands.

    Rows of the header's width are taken apart, and no others, of which one may have millions of cells.
    """
    odd, begin, width = odd_record(text, delimiter, len(names))
    row = -1
    try:
        for row, cells in enumerate(_rows(text[:begin], delimiter)):
            if found := _fault(cells, names, columns):
                return Fault(row, found)
    except csv.Error as error:
        return Fault(row + 1, f": {error}")
    if odd >= 0:
        return Fault(odd, f": {width} cells where the header has {len(names)}")
    return Fault(0, f" or below: {said}")


def _rows(text: bytes, delimiter: str) -> Iterator[list[str]]:
    """The rows of a piece as text; empty lines are none."""
    lines = io.StringIO(text.decode("utf-8", "replace"), newline="")
    return (cells for cells in csv.reader(lines, delimiter=delimiter) if cells)


def _fault(cells: list[str], names: list[str], columns: Columns) -> str | None:
    """What is wrong with a row; None where nothing is."""
    for name, cell in zip(names, cells, strict=True):
        if name in columns.features:
            found = _feature_fault(cell.strip(BLANKS))
            if found is not None:
                return f", column {name!r}: {found}"
        if name in columns.targets and "\ufffd" in cell:
            return f", column {name!r}: the target is not UTF-8 text"
    return None


def _feature_fault(cell: str) -> str | None:
    match kind_of(cell):
        case "number":
            return None
        case "missing":
            return "the value is missing"
        case "foreign":
            return f"{shown(cell)} {FOREIGN}"
        case _:
            return (
                f"{shown(cell)} is not a number; leave the column out or encode its values as numbers"
            )
