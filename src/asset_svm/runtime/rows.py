"""What users pass, as columns: arrays, frames, dicts of columns, and lists of rows with names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import numpy as np

from asset_svm.arrays import Array
from asset_svm.encoding.frames import as_table, is_frame, table_of
from asset_svm.encoding.table import Table, is_gap
from asset_svm.exceptions import DataError
from asset_svm.runtime.description import Description
from asset_svm.runtime.operations import all_finite, named
from asset_svm.runtime.steps import Encode, knows_none


def prepared(description: Description, X: Any) -> Any:
    """X as the front of a model takes it: a ``Table``, an array, or a CSR matrix."""
    X = _by_columns(X)
    encode = description.encoder
    if encode is not None:
        return encode.prepared(_table(description, encode, X))
    if hasattr(X, "tocsr"):
        return _counted(description, X.tocsr())
    names = description.names
    if isinstance(X, Mapping) and names is None:
        raise ValueError(
            "The model was trained on rows without names of columns; give an array of "
            f"{description.n_columns} columns."
        )
    # Steps may take text, or leave such columns out.
    text = bool(description.steps)
    if names is None or not (isinstance(X, Mapping) or is_frame(X)):
        return _counted(description, _array(X, text))
    found = _counted(description, _array(_ordered(description, names, X), text, names))
    return found if text else all_finite(found, names)


def _by_columns(X: Any) -> Any:
    """A list of rows with names as a dict of columns; everything else as it is."""
    if isinstance(X, Mapping):
        if X and all(np.ndim(each) == 0 for each in X.values()):
            return {name: [each] for name, each in X.items()}  # one row
        return X
    if not isinstance(X, list | tuple) or not X or not isinstance(X[0], Mapping):
        return X
    names = list(X[0])
    for number, row in enumerate(X):
        if not isinstance(row, Mapping):
            raise DataError(f"Row {number} of X is a {type(row).__name__}, and others have names.")
        odd = next((name for name in names if name not in row), None)
        odd = odd if odd is not None else next((name for name in row if name not in names), None)
        if odd is not None:
            raise DataError(
                f"Row {number} of X and the first row do not both have {odd!r}; give every row the "
                "same names, and None for what is missing."
            )
    return {name: [row[name] for row in X] for name in names}


def _table(description: Description, encode: Encode, X: Any) -> Table:
    """The columns by the names of those that were learnt from; x0, x1, ... where they had none."""
    names = encode.encoding.names
    by_name = isinstance(X, Mapping) or (encode.named and is_frame(X))
    if isinstance(X, Mapping) and not encode.named and set(X) != set(names):
        raise ValueError(
            "The model was trained on rows without names of columns, and X has "
            f"{', '.join(map(repr, list(X)[:20]))}; give an array of {len(names)} columns, or call "
            f"them {', '.join(names[:20])}{', ...' if len(names) > 20 else ''}."
        )
    used = {note.name for note in encode.encoding.notes if note.kept}
    unread = (lambda given: set(given) - used) if by_name else None
    if isinstance(X, Mapping):
        times = {note.name for note in encode.encoding.notes if note.kind == "time"}
        X = {name: _times(name, each) if name in times else each for name, each in X.items()}
    table = table_of(X, unread) if isinstance(X, Mapping) else as_table(X, unread)
    if by_name:
        return table
    if len(table.names) != len(names):
        raise ValueError(f"X has {len(table.names)} columns, and the model takes {len(names)}.")
    return Table(names, table.columns)


def _times(name: str, column: Any) -> Any:
    """A column of times; text among them is a date of ISO 8601, as JSON has it."""
    if isinstance(column, np.ndarray) and column.dtype.kind not in "OU":
        return column
    found = []
    for value in column:
        try:
            text = isinstance(value, str) and not is_gap(value)
            found.append(datetime.fromisoformat(value.strip()) if text else value)
        except ValueError:
            raise DataError(
                f"The column {name!r} has the text {value[:40]!r}, which is no date of ISO 8601, as "
                "2024-05-31 or 2024-05-31T12:30:00Z."
            ) from None
    return found


def _ordered(description: Description, names: Sequence[str], X: Any) -> Array:
    """Named columns as an array, in the order of the model."""
    given = [str(name) for name in (X if isinstance(X, Mapping) else X.columns)]
    missing = next((name for name in names if name not in given), None)
    if missing is not None:
        raise DataError(
            f"The column {missing!r} is missing, which the model was trained with; the columns are "
            f"{', '.join(map(repr, given[:20]))}."
        )
    columns = [_column(X[name]) for name in names]
    if isinstance(X, Mapping) and not knows_none(description.steps):
        columns = [_without_none(column) for column in columns]
    lengths = {len(column) if column.ndim == 1 else -1 for column in columns}
    if len(lengths) > 1 or -1 in lengths:
        raise DataError("The columns of X are not lists of the same length.")
    return np.column_stack(columns)


NUMBERS = {float, int, bool}


def _column(values: Any) -> Array:
    """A column of numbers in their own type, everything else as objects."""
    if not isinstance(values, list | tuple) or NUMBERS.issuperset(map(type, values)):
        found = _unmasked(values)
        if found.dtype.kind in "biuf":
            return found
    return np.asarray(values, dtype=object)


def _without_none(column: Array) -> Array:
    """A column of a dict, in which None is what JSON has for a gap, for steps that know no None."""
    if column.dtype != object:
        return column
    gaps = [each is None for each in column.ravel().tolist()]
    return np.where(np.reshape(gaps, column.shape), np.nan, column)


def _unmasked(X: Any) -> Array:
    """An array of what has no masked values."""
    if np.ma.is_masked(X):
        count = int(np.sum(np.ma.getmaskarray(X)))
        raise ValueError(f"X has {count} masked values; fill them in, or leave their rows out.")
    return np.asarray(X)


def _array(X: Any, text: bool, names: Sequence[str] | None = None) -> Array:
    """A matrix of float64; of objects where there is ``text``, or None, that may stay."""
    found = _unmasked(X)
    if found.ndim != 2:
        raise ValueError(
            f"X has {found.ndim} dimension{'' if found.ndim == 1 else 's'} instead of 2: it is a table "
            "of rows and columns; a single row is [[...]]."
        )
    if found.dtype.kind in "biuf":
        return found.astype(np.float64)
    if found.dtype.kind not in "OUS":
        raise ValueError(f"X is an array of {found.dtype}, and the model takes numbers.")
    out = np.empty(found.shape)
    for row, cells in enumerate(found.tolist()):
        for column, cell in enumerate(cells):
            if isinstance(cell, str | bytes) and not is_gap(cell):
                if text:
                    return _objects(found)
                raise ValueError(
                    f"X has the text {str(cell)[:40]!r} in row {row}, column {named(column, names)}, "
                    "counted from 0; the model takes numbers."
                )
            if text and cell is None:
                return _objects(found)
            try:
                out[row, column] = np.nan if is_gap(cell) else float(cell)
            except (TypeError, ValueError, OverflowError):
                raise ValueError(
                    f"X has {repr(cell)[:40]} in row {row}, column {named(column, names)}, counted "
                    "from 0, which is no number."
                ) from None
    return out


def _objects(found: Array) -> Array:
    """Cells as they are, but NaN for all that stands for it, as pandas.NA, which cannot be compared."""
    cells = found.astype(object)
    for at, cell in enumerate(cells.flat):
        if cell is not None and not isinstance(cell, str) and is_gap(cell):
            cells.flat[at] = np.nan
    return cells


def _counted(description: Description, X: Any) -> Any:
    """Rows with as many columns as the model takes, and at least one of them."""
    if X.shape[1] != description.n_columns:
        raise ValueError(f"X has {X.shape[1]} columns, and the model takes {description.n_columns}.")
    if X.shape[0] == 0:
        raise ValueError("X has no rows; give one at least.")
    return X
