"""What numpy makes numbers or classes of in silence, and a user never meant.

Masked values, times, text among numbers; and among classes a text that is empty, None or NaN.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, time, timedelta
from typing import Any

import numpy as np
import scipy.sparse as sp

from asset_svm.data.sparse import fault_of

TIMES = (date, time, timedelta, np.datetime64, np.timedelta64)


def check_kind(values: Any, name: str, *, numeric: bool = True) -> None:
    """Raise where values are masked, times, or, where they must be ``numeric``, text; else missing."""
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
        raise ValueError(
            f"{name} has {int(np.ma.count_masked(values))} masked values; fill them in, or leave their "
            "rows out."
        )
    for where, array in _arrays(values, name):
        _check_array(array, where, numeric=numeric)


def _arrays(values: Any, name: str) -> Iterator[tuple[str, np.ndarray]]:
    """What has to be looked at: of a frame its columns that are not numbers by their type."""
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
        if not numeric and kind in "UO":
            _check_classes(array, name)
        return
    if isinstance(odd, str | bytes):
        raise ValueError(
            f"{name} has text ({odd[:40]!r}) where numbers are needed; encode it as numbers, or "
            "convert text that is numbers by astype(float)."
        )
    raise ValueError(
        f"{name} has times ({odd!s}), which are no numbers and no classes; convert them first, for "
        "example to seconds."
    )


def _check_classes(array: np.ndarray, name: str) -> None:
    """Raise where a class is missing, and its name says nothing."""
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


def _is_missing(value: Any) -> bool:
    if isinstance(value, str):
        return not value.strip()
    return (
        value is None
        or (isinstance(value, float) and value != value)
        or type(value).__name__ == "NAType"  # of pandas, which need not be there
    )
