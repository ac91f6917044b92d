"""A piece of CSV text as an arrow table, or what is wrong with it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from asset_svm.data.compression import TOO_LONG, Piece
from asset_svm.data.csv_lexer import last_cell, odd_quote


@dataclass(frozen=True)
class Fault:
    """What is wrong with a row, counted from 0 in its piece."""

    row: int
    said: str


def piece_fault(piece: Piece, names: list[str], delimiter: str) -> Fault | None:
    """What is wrong with a piece that pyarrow would not tell, if anything is."""
    quote = odd_quote(piece.text, delimiter)
    if quote >= 0:
        row, column = cell_at(piece.text, quote, names, delimiter)
        return Fault(
            row,
            f", column {column}: the quote that opens this cell is never closed, or closed before the "
            "end of the cell; close it, or write it twice where it is part of the text",
        )
    return Fault(0, f": {TOO_LONG}") if piece.cut else None


def cell_at(text: bytes, place: int, names: list[str], delimiter: str) -> tuple[int, str]:
    """The row of the cell at a place in a text, and what its column is called in a message."""
    row, column = last_cell(text[:place], delimiter)
    return row, repr(names[column]) if column < len(names) else str(column + 1)


def arrow_table(
    text: bytes, names: list[str], delimiter: str, types: dict[str, Any], **options: Any
) -> Any:
    """The columns of ``types``, in this order, of a text with at least one row.

    ``options`` are those of pyarrow's ``ConvertOptions``.
    """
    import pyarrow as pa
    import pyarrow.csv as pa_csv

    return pa_csv.read_csv(
        pa.BufferReader(text),
        # One block: the piece has been cut already, and other pieces have the other threads.
        read_options=pa_csv.ReadOptions(
            column_names=names, block_size=len(text) + 1, use_threads=False
        ),
        parse_options=pa_csv.ParseOptions(delimiter=delimiter, newlines_in_values=b'"' in text),
        convert_options=pa_csv.ConvertOptions(
            column_types=types, include_columns=list(types), strings_can_be_null=False, **options
        ),
    )
