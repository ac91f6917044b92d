"""Columns as they came, out of cells of text: numbers with gaps, times, or levels.

What a column is follows from its cells, or is told by ``RawOptions``. The cells of a file come as
different texts and codes, so that every text is looked at once.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from asset_svm.arrays import Array
from asset_svm.data.notation import NUMBER, shown
from asset_svm.data.tables import listed
from asset_svm.encoding.table import NO_LEVEL, TIME, Column, Levels
from asset_svm.exceptions import DataError

KINDS = ("number", "levels", "time")
ADVICE = "name it as missing with --missing, or make the column categorical with --categorical"
COMMA = (
    "is not a number with a decimal point; say --decimal , where a comma begins the decimals, or write "
    "thousands without separators"
)
TRUTHS = frozenset(("true", "false"))
_INFINITE = re.compile(r"[+-]?inf(inity)?", re.IGNORECASE)
_WITH_COMMA = re.compile(r"[+-]?(([0-9]+|[0-9]{1,3}(\.[0-9]{3})+)(,[0-9]*)?|,[0-9]+)([eE][+-]?[0-9]+)?")
_SEPARATED = re.compile(r"[+-]?([0-9]{1,3}(,[0-9]{3})+(\.[0-9]*)?|[0-9]*,[0-9]+)")
_TIME = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
    r"([ T][0-9]{2}(:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,9})?)?)?(Z|[+-][0-9]{2}(:?[0-9]{2})?)?)?"
)
_ZONE = r"[ T].*(Z|[+-][0-9:]+)$"


@dataclass(frozen=True)
class RawOptions:
    """How the columns of a table are read as they are.

    Parameters
    ----------
    missing : tuple of str
        Cells that are gaps, whatever their case and the blanks around them; blank cells are in any
        case. In a column of numbers, one that is a number is a gap in any notation.
    decimal : {".", ","}
        What begins the decimals of a number; with a comma, points may separate thousands.
    encoding : str
        Of text files, any of Python's.
    kinds : mapping of str to {"number", "levels", "time"}
        What these columns are; others are what their cells look like.
    drop : tuple of str
        Columns that are not read.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import mkdtemp
    >>> from asset_svm import RawOptions, open_rows
    >>> path = Path(mkdtemp()) / "shop.csv"
    >>> lines = ["age,city,bought", "31,Bath,yes", "-1,Cork,no", "58,Bath,no", ""]
    >>> _ = path.write_text(chr(10).join(lines))
    >>> source = open_rows(path, target="bought", raw=RawOptions(missing=("-1",)))
    >>> table = next(iter(source.blocks())).X
    >>> table.column("age").tolist()
    [31.0, nan, 58.0]
    """

    missing: tuple[str, ...] = ("", "NA", "N/A", "NaN", "nan", "null", "?")
    decimal: str = "."
    encoding: str = "utf-8"
    kinds: Mapping[str, str] = field(default_factory=dict)
    drop: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.decimal not in (".", ","):
            raise ValueError(f'decimal={self.decimal!r} is not known; choose "." or ",".')
        for column, kind in self.kinds.items():
            if kind not in KINDS:
                raise ValueError(
                    f"kinds: {column!r} cannot be {kind!r}; choose one of {', '.join(KINDS)}."
                )
        try:
            "a".encode(self.encoding)
        except (LookupError, UnicodeError):
            raise ValueError(
                f"encoding={self.encoding!r} is not known; use one of Python's, such as utf-8, "
                "latin-1, cp1252 or utf-16."
            ) from None

    @cached_property
    def gaps(self) -> frozenset[str]:
        """The cells that are gaps, without blanks and in lower case."""
        return frozenset(("", *(word.strip().lower() for word in self.missing)))

    @cached_property
    def gap_numbers(self) -> Array:
        """The numbers that are gaps."""
        if self.decimal == ".":
            return np.array([float(word) for word in self.gaps if NUMBER.fullmatch(word)])
        return np.array([float(_pointed(word)) for word in self.gaps if _WITH_COMMA.fullmatch(word)])

    def kept(self, names: list[str], name: str, *, strict: bool) -> list[str]:
        """The columns that are read; where ``strict``, all that the options name must be there."""
        for column in (*self.drop, *self.kinds):
            if strict and column not in names:
                raise DataError(
                    f"{name} has no column {column!r}, which an option names; its columns are "
                    f"{listed(names)}."
                )
        return [column for column in names if column not in self.drop]


class BadCellError(Exception):
    """A cell that cannot be what its column is: its row, from 0, and what is wrong with it."""

    def __init__(self, row: int, said: str):
        super().__init__(said)
        self.row, self.said = row, said


def looks_like_separated(names: Iterable[str]) -> bool:
    """Whether levels are numbers, some of them with commas: 1,234.5 or 12,5."""
    names = list(names)
    separated = [bool(_SEPARATED.fullmatch(name)) for name in names]
    return any(separated) and all(
        found or NUMBER.fullmatch(name) for found, name in zip(separated, names, strict=True)
    )


def text_column(coded: Any, kind: str | None, options: RawOptions) -> Column:
    """The column of an arrow array of different texts and codes, each of some row.

    Parameters
    ----------
    kind : str or None
        What the column is; None for what its cells look like.
    """
    cells = _Cells(coded, options)
    if kind == "levels":
        return cells.levels()
    if kind is not None:
        values = cells.numbers() if kind == "number" else cells.times()
        if values is None:
            raise cells.fault(kind)
        return values
    values = cells.numbers()
    if values is None:
        values = cells.times()
    return cells.levels() if values is None else values


def number_column(values: Array, options: RawOptions) -> Array:
    """Numbers with NaN for gaps; those that are not finite are refused."""
    infinite = np.isinf(values)
    if infinite.any():
        i = int(np.argmax(infinite))
        raise BadCellError(i, f"{values[i]} is not a finite number; {ADVICE}")
    if len(options.gap_numbers):
        values = np.where(np.isin(values, options.gap_numbers), np.nan, values)
    return values


def arrow_times(array: Any) -> Array:
    """The times of an arrow array, in UTC where they have a zone."""
    import pyarrow as pa

    zone = getattr(array.type, "tz", None)
    counts = array.cast(pa.timestamp("us", zone), safe=False).cast(pa.int64())
    empty = int(np.datetime64("NaT", "us").astype(np.int64))
    return np.asarray(counts.fill_null(empty).to_numpy(zero_copy_only=False)).view(TIME)


def target_cells(cells: Any, options: RawOptions, place: Callable[[int], str]) -> Any:
    """An arrow array of text targets, their numbers written with a point; ``place(i)`` names row i."""
    if options.decimal == ".":
        return cells
    import pyarrow as pa
    import pyarrow.compute as pc

    coded = pc.utf8_trim_whitespace(cells).dictionary_encode()
    texts = coded.dictionary.to_pylist()
    for k, text in enumerate(texts):
        if NUMBER.fullmatch(text) and not _WITH_COMMA.fullmatch(text):
            i = coded.indices.to_pylist().index(k)
            raise DataError(
                f"{place(i)}: {shown(text)} is no number with a decimal comma; write all numbers in "
                "one notation, or leave out --decimal."
            )
    pointed = [_pointed(text) if _WITH_COMMA.fullmatch(text) else text for text in texts]
    return pa.array(pointed, pa.string()).take(coded.indices)


def _pointed(text: str) -> str:
    return text.replace(".", "").replace(",", ".")


class _Cells:
    """The cells of a column: their different texts without blanks, which of them are gaps, codes."""

    def __init__(self, coded: Any, options: RawOptions):
        self.options = options
        given = coded.dictionary.to_numpy(zero_copy_only=False).tolist()
        self.texts = [text.strip() for text in given]
        self.gaps = [text.lower() in options.gaps for text in self.texts]
        self.as_given = not any(self.gaps) and self.texts == given
        indices = coded.indices
        if indices.null_count:
            indices = indices.fill_null(NO_LEVEL)
        self.codes = indices.to_numpy(zero_copy_only=False).astype(np.int32, copy=False)
        self.first = next(
            (text for text, gap in zip(self.texts, self.gaps, strict=True) if not gap), ""
        )

    def levels(self) -> Levels:
        if self.as_given and not any(len(text) < 6 and text.lower() in TRUTHS for text in self.texts):
            return Levels(self.codes, tuple(self.texts))
        known: dict[str, int] = {}
        by = [
            NO_LEVEL if gap else known.setdefault(_truth(text), len(known))
            for text, gap in zip(self.texts, self.gaps, strict=True)
        ]
        return Levels(np.array([*by, NO_LEVEL], dtype=np.int32)[self.codes], tuple(known))

    def numbers(self) -> Array | None:
        """The numbers; None where a cell is none."""
        import pyarrow as pa
        import pyarrow.compute as pc

        if self.first and not self._is_number(self.first):
            return None
        texts = self._arrow()
        if self.options.decimal == ",":
            if not pc.all(
                pc.match_substring_regex(texts, f"^(?i:{self._notation})$"), min_count=0
            ).as_py():
                return None
            texts = pc.replace_substring(pc.replace_substring(texts, ".", ""), ",", ".")
        try:
            found = pc.cast(texts, pa.float64()).to_numpy(zero_copy_only=False)
        except pa.ArrowInvalid:
            return None
        if np.count_nonzero(np.isnan(found)) != texts.null_count:  # a nan that is no gap
            return None
        return number_column(np.append(found, np.nan)[self.codes], self.options)

    def times(self) -> Array | None:
        """The times; None where a cell is none."""
        if self.first and not _TIME.fullmatch(self.first):
            return None
        found = _times(self._arrow())
        return None if found is None else np.append(found, np.datetime64("NaT", "us"))[self.codes]

    def fault(self, kind: str) -> BadCellError:
        """The first cell that is not of this kind."""
        fits = self._is_number if kind == "number" else _is_time
        bad = [not gap and not fits(text) for text, gap in zip(self.texts, self.gaps, strict=True)]
        row = int(np.argmax(np.array([*bad, False])[self.codes]))
        text = self.texts[self.codes[row]]
        if kind == "number" and looks_like_separated([text]):
            return BadCellError(row, f"{shown(text)} {COMMA}")
        what = "a number" if kind == "number" else "a date or time such as 2024-03-31 12:30:00"
        return BadCellError(row, f"{shown(text)} is not {what}; {ADVICE}")

    @property
    def _notation(self) -> str:
        number = NUMBER if self.options.decimal == "." else _WITH_COMMA
        return f"({number.pattern}|{_INFINITE.pattern})"

    def _is_number(self, text: str) -> bool:
        return bool(re.fullmatch(self._notation, text, re.IGNORECASE))

    def _arrow(self) -> Any:
        """The different texts, null where they are gaps."""
        import pyarrow as pa

        return pa.array(self.texts, pa.string(), mask=np.array(self.gaps, dtype=bool))


def _times(texts: Any) -> Array | None:
    """The times of an arrow array of text, what is below a microsecond cut off; or None."""
    import pyarrow as pa
    import pyarrow.compute as pc

    texts = pc.replace_substring_regex(texts, r"(\.[0-9]{6})[0-9]{1,3}", r"\1")
    zoned = pc.match_substring_regex(texts, _ZONE)
    nothing = pa.scalar(None, pa.string())
    try:
        local = pc.if_else(zoned, nothing, texts).cast(pa.timestamp("us"))
        world = pc.if_else(zoned, texts, nothing).cast(pa.timestamp("us", "UTC"))
    except pa.ArrowInvalid:
        return None
    return arrow_times(pc.coalesce(local, world.cast(pa.timestamp("us"))))


def _is_time(text: str) -> bool:
    import pyarrow as pa

    return bool(_TIME.fullmatch(text)) and _times(pa.array([text])) is not None


def _truth(text: str) -> str:
    """A truth value as others write it too: True, TRUE and true are one."""
    return text.lower() if len(text) < 6 and text.lower() in TRUTHS else text
