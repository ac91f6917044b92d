"""CSV and TSV text with a header, plain or compressed, parsed by pyarrow's threads."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from asset_svm.data.compression import STANDARD_INPUT, opened
from asset_svm.data.source import BLOCK_BYTES, Block, RowSource
from asset_svm.data.tables import Columns, TextTargets, as_matrix, need_pyarrow
from asset_svm.exceptions import DataError

Array = npt.NDArray[Any]
NUMBER = re.compile(r"\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*")


class CsvRows(RowSource):
    """Rows of a text table: numeric columns, and a target column of numbers or text.

    Parameters
    ----------
    path : path, or "-" for standard input
    delimiter : str
    target : str, optional
        The target's column; by default the one named target, label, y or class.
    features : tuple of str, optional
        The columns to read as features, in this order; by default all but the target.
    dtype : dtype
    """

    def __init__(
        self,
        path: str | Path,
        *,
        delimiter: str = ",",
        target: str | None = None,
        features: tuple[str, ...] | None = None,
        dtype: npt.DTypeLike = np.float32,
    ):
        need_pyarrow("Reading CSV")
        self.path, self.delimiter = path, delimiter
        self.dtype = np.dtype(dtype)
        self.rereadable = str(path) != STANDARD_INPUT
        self.files = (Path(path),) if self.rereadable else ()
        self.name = str(path) if self.rereadable else "standard input"
        self._asked = (target, features)
        if self.rereadable:
            with opened(path) as stream:
                self._settle(self._header(stream))

    def _header(self, stream: BinaryIO) -> list[str]:
        line = stream.readline(1 << 24)
        try:
            text = line.decode("utf-8-sig").rstrip("\r\n")
        except UnicodeDecodeError:
            raise DataError(f"{self.name}, line 1: the header is not UTF-8 text.") from None
        try:
            names = next(csv.reader([text], delimiter=self.delimiter), [])
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
        self.columns = columns = Columns.choose(names, *self._asked, self.name)
        self.feature_names, self.n_features = columns.features, len(columns.features)
        return columns

    def _read(self, order: Array | None) -> Iterator[Block]:
        import pyarrow as pa

        read = 0
        with opened(self.path) as stream:
            names = self._header(stream)
            columns = self._settle(names)
            targets = None if columns.target is None else TextTargets(columns.target)

            def place(i: int) -> str:
                return f"{self.name}, row {read + i + 1}"

            try:
                for batch in _batches(stream, names, columns, self.delimiter):
                    X = as_matrix(batch, columns, self.dtype, place)
                    y = None if targets is None else targets(batch.column(columns.target), place)
                    yield Block(X, y)
                    read += batch.num_rows
            except pa.ArrowInvalid as error:
                raise DataError(self._where(columns, names, read, str(error))) from None

    def _where(self, columns: Columns, names: list[str], read: int, said: str) -> str:
        """Find the first bad cell, slowly: pyarrow does not say where it stands."""
        if self.rereadable:
            with opened(self.path) as stream:
                stream.readline()
                text = io.TextIOWrapper(stream, encoding="utf-8", errors="replace", newline="")
                rows, number = csv.reader(text, delimiter=self.delimiter), 0
                try:
                    for number, cells in enumerate(rows, start=1):
                        if cells and (found := _fault(cells, names, columns)):
                            return f"{self.name}, row {number}{found}"
                except csv.Error as error:
                    return f"{self.name}, after row {number}: {error}."
        return f"{self.name}, after row {read}: {said}."


def _batches(stream: BinaryIO, names: list[str], columns: Columns, delimiter: str) -> Iterator[Any]:
    """Record batches: features as float64, the target as text."""
    import pyarrow as pa
    import pyarrow.csv as pa_csv

    types: dict[str, Any] = {column: pa.float64() for column in columns.features}
    if columns.target is not None:
        types[columns.target] = pa.string()
    if not stream.peek(1):  # type: ignore[attr-defined]
        return  # pyarrow takes a header without rows for an error
    reader = pa_csv.open_csv(
        stream,
        read_options=pa_csv.ReadOptions(column_names=names, block_size=BLOCK_BYTES),
        parse_options=pa_csv.ParseOptions(delimiter=delimiter, newlines_in_values=True),
        convert_options=pa_csv.ConvertOptions(
            column_types=types, include_columns=columns.all, strings_can_be_null=False
        ),
    )
    for batch in reader:
        if batch.num_rows:
            yield batch


def _fault(cells: list[str], names: list[str], columns: Columns) -> str | None:
    """What is wrong with a row, if anything is."""
    if len(cells) != len(names):
        return f": {len(cells)} cells where the header has {len(names)}."
    for name, cell in zip(names, cells, strict=True):
        if name in columns.features and not NUMBER.fullmatch(cell):
            shown = cell if len(cell) <= 40 else cell[:40] + "..."
            return (
                f", column {name!r}: {shown!r} is not a number; leave the column out or encode its "
                "values as numbers."
            )
        if name == columns.target and "\ufffd" in cell:
            return f", column {name!r}: the target is not UTF-8 text."
    return None
