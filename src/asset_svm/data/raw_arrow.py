"""Columns as they came, out of arrow arrays of any type that is a number, a time or a level."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

import numpy as np

from asset_svm.data.raw import RawOptions, arrow_times, number_column, text_column
from asset_svm.encoding.table import NO_LEVEL, Column, Levels, as_levels, is_gap, kind_of, level_text
from asset_svm.exceptions import DataError

_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


def categorical(metadata: Mapping[bytes, bytes] | None) -> set[str]:
    """The columns of a Parquet file that were written as categories; it keeps those of text alone."""
    import pyarrow as pa

    try:
        written = base64.b64decode((metadata or {})[b"ARROW:schema"])
        schema = pa.ipc.read_schema(pa.BufferReader(written))
    except (KeyError, ValueError, pa.ArrowException, OSError):  # written by others
        return set()
    return {field.name for field in schema if pa.types.is_dictionary(field.type)}


def check_type(field: Any, options: RawOptions, name: str) -> None:
    """Raise where a field of a file's schema cannot be read as the kind that is asked for."""
    import pyarrow as pa

    found, asked = _kind(field.type), options.kinds.get(field.name)
    if found is None:
        raise DataError(
            f"{name}: the column {field.name!r} has the type {field.type}, which is no number, time or "
            f"category; leave it out with --drop {field.name}, or make columns of what it holds."
        )
    fits = asked in (None, found, "levels") or found == "levels" or pa.types.is_null(field.type)
    if not fits:
        what = "numbers" if asked == "number" else "times"
        raise DataError(
            f"{name}: the column {field.name!r} has the type {field.type}, which cannot be read as "
            f"{what}; let it be what it is, or make it categorical with --categorical."
        )


def arrow_column(array: Any, kind: str | None, options: RawOptions) -> Column:
    """The column of an arrow array whose type ``check_type`` lets pass."""
    import pyarrow as pa

    if pa.types.is_null(array.type):
        array = array.cast(pa.float64() if kind != "time" else pa.timestamp("us"))
    found = _kind(array.type)
    if found == "number":
        column: Column = number_column(_numbers(array), options)
    elif found == "time":
        column = arrow_times(array)
    elif pa.types.is_boolean(array.type) and kind == "number":
        column = _numbers(array.cast(pa.int8()))
    elif kind in ("number", "time"):
        column = text_column(_texts(array).dictionary_encode(), kind, options)
    else:
        column = _levels(array, options)
    return as_levels(column) if kind == "levels" and kind_of(column) != "levels" else column


def _kind(kind: Any) -> str | None:
    """The kind of column that an arrow type is; None where it is none."""
    import pyarrow.types as t

    if t.is_integer(kind) or t.is_floating(kind) or t.is_decimal(kind) or t.is_null(kind):
        return "number"
    if t.is_time(kind) or t.is_duration(kind):
        return "number"
    if t.is_date(kind) or t.is_timestamp(kind):
        return "time"
    if t.is_dictionary(kind):
        return None if _kind(kind.value_type) is None else "levels"
    return "levels" if t.is_boolean(kind) or _is_text(kind) else None


def _is_text(kind: Any) -> bool:
    import pyarrow.types as t

    return bool(t.is_string(kind) or t.is_large_string(kind) or t.is_string_view(kind))


def _numbers(array: Any) -> Any:
    """The numbers of an array, NaN for nulls; times of the day and durations in seconds."""
    import pyarrow as pa
    import pyarrow.types as t

    unit = 1
    if t.is_time(array.type) or t.is_duration(array.type):
        unit = _PER_SECOND[array.type.unit]
        array = array.cast(pa.int32() if t.is_time32(array.type) else pa.int64())
    values = array.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    return values if unit == 1 else values / unit


def _levels(array: Any, options: RawOptions) -> Levels:
    import pyarrow as pa

    if pa.types.is_boolean(array.type):
        codes = array.cast(pa.int32()).fill_null(NO_LEVEL).to_numpy(zero_copy_only=False)
        return Levels(codes, ("false", "true"))
    if pa.types.is_dictionary(array.type) and not _is_text(array.type.value_type):
        return _named(array)
    column = text_column(_texts(array).dictionary_encode(), "levels", options)
    assert isinstance(column, Levels)
    return column


def _named(array: Any) -> Levels:
    """The levels of a dictionary of any values."""
    values = array.dictionary.to_pylist()
    known: dict[str, int] = {}
    by = [
        NO_LEVEL if is_gap(value) else known.setdefault(level_text(value), len(known))
        for value in values
    ]
    codes = array.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    return Levels(np.array([*by, NO_LEVEL], dtype=np.int32)[codes], tuple(known))


def _texts(array: Any) -> Any:
    """The array as one of text, of whatever type."""
    import pyarrow as pa

    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    return array.cast(pa.string())
