"""Tables of pandas, polars and numpy as columns; the libraries are not imported, only asked."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from importlib import import_module
from numbers import Real
from typing import Any, TypeAlias

import numpy as np

from asset_svm.arrays import Array, is_sparse
from asset_svm.encoding.table import (
    TIME,
    TRUTH,
    Column,
    Levels,
    Table,
    gaps,
    is_gap,
    kind_of,
    level_text,
)
from asset_svm.exceptions import DataError

MANY = 1000
"""Values that are looked at first to tell what objects are."""
Unread: TypeAlias = Callable[[Sequence[str]], Collection[str]]
FARTHEST = 100_000_000
"""Days from 1970 that microseconds can count."""


def is_frame(X: Any) -> bool:
    """Whether X has named columns, of kinds of their own."""
    return isinstance(X, Table) or _is_pandas(X) or _is_polars(X)


def _is_pandas(X: Any) -> bool:
    return hasattr(X, "iloc") and hasattr(X, "columns")


def _is_polars(X: Any) -> bool:
    return hasattr(X, "get_columns") and hasattr(X, "schema")


def as_table(X: Any, unread: Unread | None = None) -> Table:
    """The columns of a frame, or of a two-dimensional array; columns of arrays are x0, x1, ...

    ``unread`` says which names are not looked at: they are gaps.
    """
    if isinstance(X, Table):
        return X
    if _is_pandas(X):
        return _named(
            X.columns, (X.iloc[:, j] for j in range(X.shape[1])), _pandas_column, len(X), unread
        )
    if _is_polars(X):
        return _named(X.columns, X.get_columns(), _polars_column, len(X), unread)
    if is_sparse(X):
        raise ValueError("X is sparse, and has numbers alone; a table encoder is of no use for it.")
    array = _array(X)
    names = [f"x{j}" for j in range(array.shape[1])]
    return _named(names, (array[:, j] for j in range(len(names))), _array_column, len(array), unread)


def table_of(columns: Mapping[str, Any], unread: Unread | None = None) -> Table:
    """The table of a dict of columns, each a list or a one-dimensional array, all of one length."""
    each = [
        column if isinstance(column, np.ndarray) else np.array([*column, None], dtype=object)[:-1]
        for column in columns.values()
    ]
    lengths = {column.shape for column in each}
    if len(lengths) > 1 or any(column.ndim != 1 for column in each):
        shapes = ", ".join(
            f"{name!r}: {len(column)}" for name, column in zip(columns, each, strict=True)
        )
        raise DataError(f"The columns of X are not lists of the same length ({shapes[:200]}).")
    return _named(columns, each, _array_column, len(each[0]) if each else 0, unread)


def _array(X: Any) -> Array:
    """An array of rows and columns; what is masked is a gap."""
    if np.ma.isMaskedArray(X):
        mask = np.ma.getmaskarray(X)
        X = np.array(X.data, dtype=object if mask.any() else None)
        X[mask] = None
    array = X if isinstance(X, np.ndarray) else np.asarray(X, dtype=object)
    if array.dtype.names is not None:
        raise ValueError("X is an array of records; make a data frame of it: pandas.DataFrame(X).")
    if hasattr(X, "collect"):
        raise ValueError("X is a lazy frame, whose rows are not there yet; give X.collect().")
    if array.ndim != 2:
        what = "" if array.ndim else f" ({type(X).__name__})"
        raise ValueError(
            f"Expected 2D array, got {array.ndim}D array{what} instead. Reshape your data: a table has "
            "rows and columns."
        )
    return array


def _named(
    given: Iterable[Any],
    values: Iterable[Any],
    column_of: Callable[[Any], Column],
    n_rows: int,
    unread: Unread | None,
) -> Table:
    """A table of columns that were given, each by its name in what is wrong with it."""
    names = [str(name) for name in given]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise ValueError(f"X has two columns named {twice!r}; rename one.")
    if n_rows == 0 or not names:
        what, shape = ("feature" if n_rows else "sample"), (n_rows, len(names))
        raise ValueError(
            f"Found array with 0 {what}(s) (shape={shape}) while a minimum of 1 is required."
        )
    columns: list[Column] = []
    left = () if unread is None else unread(names)
    for name, each in zip(names, values, strict=True):
        if name in left:
            columns.append(np.full(n_rows, np.nan))
            continue
        try:
            columns.append(column_of(each))
        except (TypeError, ValueError) as error:
            raise type(error)(f"The column {name!r} {error}") from None
    assert all(len(column) == n_rows for column in columns)
    return Table(tuple(names), tuple(columns))


def is_plain(X: Any) -> bool:
    """Whether all columns of a frame are numbers, or truth values, without gaps."""
    if _is_pandas(X) and all(getattr(dtype, "kind", "O") in "biuf" for dtype in X.dtypes):
        return not bool(X.isna().to_numpy().any())
    if _is_polars(X) and all(str(dtype) == "Boolean" or dtype.is_numeric() for dtype in X.dtypes):
        return not any(
            each.null_count() or (each.dtype.is_float() and each.is_nan().any())
            for each in X.get_columns()
        )
    if any(str(dtype).lower().startswith(("timedelta", "duration")) for dtype in X.dtypes):
        return False
    return all(kind_of(each) == "number" and not gaps(each).any() for each in as_table(X).columns)


def _array_column(values: Array) -> Column:
    kind = values.dtype.kind
    if kind == "b":
        return Levels(values.astype(np.int32), TRUTH)
    if kind in "iuf":
        return values.astype(np.float64)
    if kind == "M":
        return _times(values)
    if kind == "m":
        return _seconds(values)
    if kind == "c":
        raise ValueError(COMPLEX)
    return _object_column(values if kind == "O" else values.tolist())


def _times(values: Array) -> Array:
    """Times in microseconds; numpy would wrap those that are too far."""
    days = values.astype("datetime64[D]").astype(np.int64)
    if (~np.isnat(values) & (np.abs(days) > FARTHEST)).any():
        raise DataError("has times more than 270,000 years away; make gaps of them.")
    return values.astype(TIME)


COMPLEX = "has complex numbers. Complex data not supported: make columns of their parts."


def _seconds(values: Array) -> Array:
    return np.where(np.isnat(values), np.nan, values / np.timedelta64(1, "s"))


def _object_column(values: Iterable[Any]) -> Column:
    """A column of objects: numbers where all are, times where all are, else levels."""
    values = list(values)
    there = [value for value in values if not is_gap(value)]
    if all(_is_number(value) for value in there[:MANY]) and all(map(_is_number, there)):
        return np.array([np.nan if is_gap(value) else _float(value) for value in values])
    if all(isinstance(value, timedelta | np.timedelta64) for value in there):
        return np.array([np.nan if is_gap(value) else _in_seconds(value) for value in values])
    if all(isinstance(value, date | np.datetime64) for value in there):
        return np.array(
            [np.datetime64("NaT", "us") if is_gap(value) else _time(value) for value in values],
            dtype=TIME,
        )
    odd = next((each for each in there if not isinstance(each, str | bytes | Real | date)), None)
    if isinstance(odd, complex):
        raise ValueError(COMPLEX)
    if odd is not None and not np.isscalar(odd) and not isinstance(odd, Decimal):
        raise TypeError(
            f"has {type(odd).__name__} values; argument must be a string or a number, or a date: make "
            "columns of their parts, or leave the column out."
        )
    return Levels.of(values)


def _float(value: Any) -> float:
    """A number as a float; infinite where it is beyond floats, to be refused as such."""
    try:
        return float(value)
    except OverflowError:
        return np.inf


def _in_seconds(value: Any) -> float:
    return value.total_seconds() if isinstance(value, timedelta) else value / np.timedelta64(1, "s")


def _is_number(value: Any) -> bool:
    return isinstance(value, Real | Decimal) and not isinstance(value, bool | np.bool_)


def _time(value: Any) -> Any:
    if isinstance(value, datetime) and value.tzinfo is not None:
        value = value.astimezone(UTC).replace(tzinfo=None)
    return _times(np.array([value], dtype="datetime64"))[0]


def _pandas_column(series: Any) -> Column:
    dtype = series.dtype
    kind = getattr(dtype, "kind", "O")
    if hasattr(dtype, "categories"):
        return _renamed(np.asarray(series.cat.codes), list(dtype.categories))
    if kind == "M":
        if getattr(dtype, "tz", None) is not None:
            series = series.dt.tz_convert("UTC").dt.tz_localize(None)
        values = series.to_numpy()  # objects, of Arrow's with a zone
        return _times(values) if values.dtype.kind == "M" else _object_column(values)
    if kind == "m":
        return _seconds(series.to_numpy(dtype="timedelta64[us]"))
    if kind == "b":
        missing = np.asarray(series.isna())
        codes = np.where(missing, -1, series.to_numpy(dtype=object, na_value=False).astype(np.int32))
        return Levels(codes.astype(np.int32), TRUTH)
    if kind in "iuf":
        return np.asarray(series.to_numpy(dtype=np.float64, na_value=np.nan))
    if kind == "c":
        raise ValueError(COMPLEX)
    try:
        codes, names = series.factorize()
    except TypeError:  # some have no hash
        return _object_column(series.tolist())
    if len(names) == 0 or not all(isinstance(name, str) for name in names):
        return _object_column(series.tolist())
    return _renamed(codes, list(names))


def _polars_column(series: Any) -> Column:
    dtype = series.dtype
    name = str(dtype).partition("(")[0]
    if name == "Boolean":
        codes = series.cast(_like(dtype, "Int32")).fill_null(-1).to_numpy()
        return Levels(codes.astype(np.int32), TRUTH)
    if name == "Decimal" or dtype.is_numeric():
        return np.asarray(series.cast(_like(dtype, "Float64")).fill_null(np.nan).to_numpy())
    if name in ("Datetime", "Date"):
        return _times(np.asarray(series.to_numpy()))
    if name == "Duration":
        return _seconds(np.asarray(series.to_numpy()))
    return _object_column(series.to_list())


def _like(dtype: Any, name: str) -> Any:
    """Another type of the library that a type is of."""
    module = import_module(type(dtype).__module__.partition(".")[0])
    return getattr(module, name)


def _renamed(codes: Array, values: list[Any]) -> Column:
    """Levels whose names may be blank, or the same once they are text; numbers, where all are gaps."""
    known: dict[str, int] = {}
    by = [-1 if is_gap(value) else known.setdefault(level_text(value), len(known)) for value in values]
    if not known:
        return np.full(len(codes), np.nan)
    return Levels(np.array([*by, -1], dtype=np.int32)[codes], tuple(known))
