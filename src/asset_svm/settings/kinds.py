"""What numpy makes numbers or classes of in silence, and a user never meant.

Masked values, times, text among numbers. Targets that are text or objects are looked at one by one: a
hole has no class, and a mixture no order.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, time, timedelta
from numbers import Number
from typing import Any

import numpy as np
import scipy.sparse as sp

from asset_svm.data.sparse import fault_of

TIMES = (date, time, timedelta, np.datetime64, np.timedelta64)
LABELS = {"text": (str,), "bytes": (bytes,), "numbers": (Number, np.bool_)}
"""The types that objects which are targets may have."""


def check_kind(values: Any, name: str, *, numeric: bool = True) -> None:
    """Raise where values are masked, times, or, where they must be ``numeric``, text."""
    if values is None or isinstance(values, str):
        return  # "no_validation", or for scikit-learn to refuse
    if sp.issparse(values):
        fault = fault_of(values)
        if fault is not None:
            raise ValueError(
                f"{name} is not a sound {values.format.upper()} matrix: {fault}; build it anew from "
                "its entries."
            )
        return
    if np.ma.is_masked(values):
        count = int(np.ma.getmaskarray(values).sum())
        raise ValueError(f"{name} has {count} masked values; fill them in, or leave their rows out.")
    if getattr(getattr(values, "dtype", None), "names", None) is not None:
        raise ValueError(
            f"{name} is an array of records; make a data frame of it: pandas.DataFrame({name})."
        )
    if hasattr(values, "collect_schema") and not hasattr(values, "get_columns"):
        raise ValueError(f"{name} is a lazy frame, whose rows are not there yet; collect() it.")
    for where, array in _arrays(values, name):
        _check_array(array, where, numeric=numeric)


def check_targets(y: Any, name: str = "y", *, numeric: bool) -> None:
    """``check_kind`` for targets; each must be there, and all of one kind."""
    check_kind(y, name, numeric=numeric)
    if y is None or isinstance(y, str):
        return
    for where, array in _arrays(y, name):
        if array.dtype.kind in "UO" and array.ndim == 2 and array.shape[1] > 1:
            for number, column in enumerate(array.T):
                _check_labels(column, f"{where}, column {number},")
        elif array.dtype.kind in "UO":
            _check_labels(array, where)


def _arrays(values: Any, name: str) -> Iterator[tuple[str, np.ndarray]]:
    """The arrays to look at, with their names: of a frame, columns of no numeric type."""
    if isinstance(values, np.ndarray):
        yield name, values
    elif hasattr(values, "columns") and hasattr(values, "dtypes"):
        for number, (column, dtype) in enumerate(zip(values.columns, values.dtypes, strict=True)):
            if getattr(dtype, "kind", "O") not in "biufc":
                one = values.iloc[:, number] if hasattr(values, "iloc") else values[column]
                yield f"{name}, column {column!r},", np.asarray(one)
    elif getattr(getattr(values, "dtype", None), "kind", "O") not in "biufc":
        try:
            array = np.asarray(values)
            if array.dtype.kind == "U":  # of a list, maybe, whose None and NaN have become text
                array = np.asarray(values, dtype=object)
            yield name, array
        except (ValueError, TypeError):  # ragged rows and the like, which scikit-learn tells of
            return


def _check_array(array: np.ndarray, name: str, *, numeric: bool) -> None:
    kind = array.dtype.kind
    odd: Any = None
    if kind in "mM" or (numeric and kind in "US"):
        odd = array.flat[0] if array.size else None
    elif kind == "O":
        kinds = (*TIMES, str, bytes) if numeric else TIMES
        odd = next((value for value in array.flat if isinstance(value, kinds)), None)
    if odd is None:
        return
    how = " (encoder=TableEncoder())" if name.partition(",")[0] == "X" else ""
    if isinstance(odd, str | bytes):
        raise ValueError(
            f"{name} has text ({odd[:40]!r}) where numbers are needed; encode it as numbers{how}, or "
            "convert text that is numbers by astype(float)."
        )
    raise ValueError(
        f"{name} has times ({odd!s}), which are no numbers and no classes; convert them first{how}, "
        "for example to seconds."
    )


def _check_labels(array: np.ndarray, name: str) -> None:
    """Raise where a target is missing, or of another kind than others."""
    if array.dtype.kind == "U":
        missing = (array == "") | np.char.isspace(array)
    else:
        missing = np.fromiter(map(_is_missing, array.flat), dtype=bool, count=array.size)
    if missing.any():
        row = int(np.argmax(missing))
        found = array.ravel()[row : row + 1].tolist()[0]
        raise ValueError(
            f"{name} has no value in row {row}, counted from 0 ({found!r}); fill it in, or leave the "
            "row out."
        )
    if array.dtype.kind == "O":
        _check_mixture(array, name)


def _check_mixture(array: np.ndarray, name: str) -> None:
    seen: dict[str, Any] = {}
    for row, value in enumerate(array.flat):
        kind = next((kind for kind, types in LABELS.items() if isinstance(value, types)), None)
        if kind is None:
            raise ValueError(
                f"{name} has {value!r:.40} in row {row}, which is neither a number nor text; give "
                "every row one of them."
            )
        seen.setdefault(kind, value)
    if len(seen) > 1:
        (one, first), (other, second) = list(seen.items())[:2]
        raise ValueError(
            f"{name} has {one} ({first!r:.40}) and {other} ({second!r:.40}); make them of one "
            "kind, for example by astype(str)."
        )


def _is_missing(value: Any) -> bool:
    """Whether it is an empty text, None, NaN, or pandas's NA, which is not to be compared."""
    if isinstance(value, str):
        return not value.strip()
    if value is None or type(value).__name__ == "NAType":
        return True
    return isinstance(value, Number) and bool(value != value)
