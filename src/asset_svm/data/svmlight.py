"""svmlight / libsvm text, plain or compressed, parsed by several threads in the order of the file."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from asset_svm.arrays import Array
from asset_svm.data import compression
from asset_svm.data import svmlight_parser as parser
from asset_svm.data.ahead import in_order
from asset_svm.data.compression import TOO_LONG, Piece, opened, pieces, stripped
from asset_svm.data.notation import shown
from asset_svm.data.source import SEGMENT_BYTES, Block, TextRows
from asset_svm.exceptions import DataError

LARGEST_INDEX = 1 << 27
"""The largest index where nobody says how many features there are: a number for every column takes a
gigabyte then."""

REASONS = {
    parser.BAD_LABEL: "the label {token} is not a number",
    parser.NO_COLON: "{token} is not an index:value pair",
    parser.BAD_INDEX: "{token} has no whole number before its colon",
    parser.ZERO_INDEX: "feature index 0 in a file whose indices count from 1; pass zero_based=True "
    "(--zero-based) if they count from 0",
    parser.ORDER: "the index of {token} does not follow the one before it; indices must increase "
    "within a row",
    parser.BAD_VALUE: "the value of {token} is not a number",
    parser.LARGE_INDEX: "the index of {token} is too large: a map of so many columns takes gigabytes; "
    "if there are so many, say so with n_features= (--n-features)",
}


class SvmlightRows(TextRows):
    """Rows of an svmlight file: ``label index:value index:value ...``.

    Parameters
    ----------
    path : path, or "-" for standard input
    n_features : int, optional
        A larger index is an error; None: the file tells, up to ``LARGEST_INDEX``.
    zero_based : bool
        Whether indices count from 0 instead of 1.
    dtype : dtype
    """

    def __init__(
        self,
        path: str | Path,
        *,
        n_features: int | None = None,
        zero_based: bool = False,
        dtype: npt.DTypeLike = np.float32,
    ):
        self._set_path(path)
        self.n_features = n_features
        self.base, self.dtype = 0 if zero_based else 1, np.dtype(dtype)
        self.largest = LARGEST_INDEX if n_features is None else parser.LARGEST_INDEX
        if self.rereadable and stripped(Path(path)) == Path(path):
            self.n_segments = -(-Path(path).stat().st_size // SEGMENT_BYTES)

    def _read(self, order: Array | None) -> Iterator[Block]:
        line: int | None = 1 if order is None else None
        with opened(self.path) as stream:
            parts = pieces(stream, SEGMENT_BYTES) if order is None else _pieces_at(stream, order)
            parse = partial(_parse, base=self.base, largest=self.largest, dtype=self.dtype)
            for parsed in in_order(parts, parse):
                yield from self._finished(parsed, line)
                line = None if line is None else line + parsed.lines

    def _finished(self, parsed: _Parsed, line: int | None) -> Iterator[Block]:
        """The rows of a piece that begins on ``line``, then its error; None: read out of order."""

        def place(number: int) -> str:
            where = "a line read again" if line is None else f"line {line + number}"
            return f"{self.name}, {where}"

        if len(parsed.y):
            limit = self.n_features
            if limit is not None and parsed.X.shape[1] > limit:
                row = int(np.argmax(np.maximum.reduceat(*_ended(parsed.X)) >= limit))
                raise DataError(
                    f"{place(int(parsed.line_of[row]))}: a feature index is beyond the {limit} "
                    "features expected."
                )
            yield Block(parsed.X, parsed.y)
        if parsed.reason is not None:
            first = line == 1 and parsed.bad_line == 0 and parsed.reason.startswith("the label")
            hint = " (is this svmlight text? see format=, --format)" if first else ""
            raise DataError(f"{place(parsed.bad_line)}: {parsed.reason}{hint}.")


@dataclass(frozen=True, eq=False)
class _Parsed:
    """The rows of a piece up to its end or its first error, which lies on ``bad_line``."""

    X: Any
    y: Array
    line_of: Array
    lines: int
    reason: str | None = None
    bad_line: int = 0


def _ended(X: Any) -> tuple[Array, Array]:
    """Arguments of reduceat for the largest index of every row: empty rows count as index 0."""
    filled_rows = np.diff(X.indptr) > 0
    last = np.zeros(X.shape[0], dtype=np.int64)
    last[filled_rows] = X.indices[X.indptr[1:][filled_rows] - 1]
    return last, np.arange(X.shape[0])


def _pieces_at(stream: BinaryIO, order: Array) -> Iterator[Piece]:
    """The segments of these numbers: segment i has the lines that begin in its SEGMENT_BYTES."""
    longest = compression.LONGEST_LINE
    for number in order.tolist():
        start, end = number * SEGMENT_BYTES, (number + 1) * SEGMENT_BYTES
        if start:
            stream.seek(start - 1)
            before = stream.readline(longest + 1)
            if len(before) > longest:
                yield Piece(before, cut=True)
            start += len(before) - 1
        else:
            stream.seek(0)
        piece = stream.read(max(end - start, 0))
        if piece and not piece.endswith(b"\n"):
            rest = stream.readline(longest + 1)
            if len(rest) > longest:
                yield Piece(rest, cut=True)
            piece += rest
        yield Piece(piece)


def _parse(part: Piece, base: int, largest: int, dtype: np.dtype[Any]) -> _Parsed:
    piece = part.text
    if part.cut:
        nothing = np.empty(0, dtype=np.int32)
        return _Parsed(sp.csr_matrix((0, 0), dtype=dtype), np.empty(0), nothing, 0, TOO_LONG)
    text = np.frombuffer(piece, dtype=np.uint8)
    most_rows, most_entries = piece.count(b"\n") + 1, piece.count(b":") + 1
    labels, indptr = np.zeros(most_rows), np.empty(most_rows + 1, dtype=np.int32)
    indices, values = np.empty(most_entries, dtype=np.int32), np.empty(most_entries)
    line_of = np.empty(most_rows, dtype=np.int32)
    hard = np.empty((most_rows + most_entries, 4), dtype=np.int64)
    status, line, start, stop, rows, entries, n_hard = parser.parse(
        text, base, largest, parser.POWERS, labels, indptr, indices, values, line_of, hard
    )
    # On an error the rows before its line are whole; entries of its own line are dropped.
    entries = int(indptr[rows])
    reason, bad_line = None, line
    if status != parser.OK:
        reason = REASONS[status].format(
            token=shown(piece[start:stop].decode("utf-8", "backslashreplace"))
        )
    for row, place, begin, end in hard[:n_hard].tolist():
        if row < rows:
            number = float(piece[begin:end])
            if place == parser.LABEL:
                labels[row] = number
            else:
                values[place] = number
    with np.errstate(over="ignore"):  # told below
        data = values[:entries].astype(dtype)
    finite = np.isfinite(data)
    if not (finite.all() and np.isfinite(labels[:rows]).all()):
        rows_of = np.repeat(np.arange(rows), np.diff(indptr[: rows + 1]))
        bad_values, bad_labels = rows_of[~finite], np.flatnonzero(~np.isfinite(labels[:rows]))
        first = min([*bad_values[:1].tolist(), *bad_labels[:1].tolist()])
        what = "the label" if first in bad_labels else "a value"
        reason, bad_line = f"{what} is too large for {dtype}", int(line_of[first])
        rows, entries = first, int(indptr[first])
        data = data[:entries]
    width = int(indices[:entries].max()) + 1 if entries else 0
    X = sp.csr_matrix((data, indices[:entries], indptr[: rows + 1]), shape=(rows, width))
    return _Parsed(X, labels[:rows], line_of, line, reason, bad_line)
