"""What numpy makes numbers of in silence, and a user never meant: masked values, times, text."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, time, timedelta
from typing import Any

import numpy as np
import scipy.sparse as sp

from asset_svm.data.sparse import fault_of

TIMES = (date, time, timedelta, np.datetime64, np.timedelta64)


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
            yield name, np.asarray(values)
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
    if isinstance(odd, str | bytes):
        raise ValueError(
            f"{name} has text ({odd[:40]!r}) where numbers are needed; encode it as numbers, or "
            "convert text that is numbers by astype(float)."
        )
    raise ValueError(
        f"{name} has times ({odd!s}), which are no numbers and no classes; convert them first, for "
        "example to seconds."
    )
