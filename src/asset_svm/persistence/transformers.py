"""What scikit-learn's own transformers of the common kinds were fitted to.

    StandardScaler         mean, var, scale, n_samples_seen
    MinMaxScaler           min, scale, data_min, data_max, data_range, n_samples_seen
    MaxAbsScaler           max_abs, scale, n_samples_seen
    RobustScaler           center, scale
    OneHotEncoder          categories
    OrdinalEncoder         categories
    SimpleImputer          statistics, fit_type, fill_type
    FunctionTransformer    nothing: one that has no function

``WRITERS`` write these fields; ``READERS`` set them on a transformer that has its parameters and
columns, and return how many columns come out of it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from asset_svm.persistence.reading import FLOATS, INTEGERS, LABELS, Array, Record, shown
from asset_svm.persistence.writing import Writer

SCALERS = {
    "StandardScaler": ("mean_", "var_", "scale_"),
    "MinMaxScaler": ("min_", "scale_", "data_min_", "data_max_", "data_range_"),
    "MaxAbsScaler": ("max_abs_", "scale_"),
    "RobustScaler": ("center_", "scale_"),
}
"""Their arrays, one number a column each, or None."""
OPTIONAL = {
    ("StandardScaler", "with_mean"): ("mean_",),
    ("StandardScaler", "with_std"): ("var_", "scale_"),
    ("RobustScaler", "with_centering"): ("center_",),
    ("RobustScaler", "with_scaling"): ("scale_",),
}
"""Those that are needed only where a parameter is True."""
DIVISORS = (("StandardScaler", "scale_"), ("MaxAbsScaler", "scale_"), ("RobustScaler", "scale_"))
"""Those that are divided by."""
ENCODERS = ("OneHotEncoder", "OrdinalEncoder")


def _write_scaler(write: Writer, step: Any, name: str) -> dict[str, Any]:
    arrays = SCALERS[type(step).__name__]
    fitted: dict[str, Any] = {
        each.rstrip("_"): write.array(
            _as_array(getattr(step, each, None)), f"{name}.{each.rstrip('_')}"
        )
        for each in arrays
    }
    if hasattr(step, "n_samples_seen_"):
        fitted["n_samples_seen"] = write.value(step.n_samples_seen_, f"{name}.n_samples_seen")
    return fitted


def _as_array(value: Any) -> Array | None:
    return None if value is None else np.asarray(value)


def _read_scaler(record: Record, step: Any) -> int:
    kind, n = type(step).__name__, int(step.n_features_in_)
    optional = {
        name: not getattr(step, switch)
        for (of, switch), names in OPTIONAL.items()
        if of == kind
        for name in names
    }
    for each in SCALERS[kind]:
        read = record.maybe_array if optional.get(each) else record.array
        found = read(each.rstrip("_"), (n,), FLOATS)
        if (kind, each) in DIVISORS and found is not None and (found == 0.0).any():
            record.refuse("has a 0, by which a column is divided", each.rstrip("_"))
        setattr(step, each, found)
    if "n_samples_seen" not in record.fields:
        return n
    if isinstance(record.fields["n_samples_seen"], dict):
        step.n_samples_seen_ = record.array("n_samples_seen", (n,), (*INTEGERS, *FLOATS))
    else:
        step.n_samples_seen_ = record.number("n_samples_seen", 0)
    return n


def _write_encoder(write: Writer, step: Any, name: str) -> dict[str, Any]:
    if getattr(step, "_infrequent_enabled", False):
        raise ValueError(
            f"A {type(step).__name__} with min_frequency or max_categories cannot be saved; leave them "
            "out, or name the categories."
        )
    categories = [
        write.array(each, f"{name}.categories.{i}") for i, each in enumerate(step.categories_)
    ]
    return {"categories": categories}


def _read_categories(record: Record, step: Any) -> list[Array]:
    holders = [
        Record({"categories": each}, record.tensors, record.path, f"{record.place}.categories.{i}")
        for i, each in enumerate(record.items("categories"))
    ]
    if len(holders) != step.n_features_in_:
        record.refuse(f"has {len(holders)} lists for {step.n_features_in_} columns", "categories")
    found = [_read_labels(each) for each in holders]
    if not all(len(each) for each in found):
        record.refuse("has a list without any", "categories")
    step.categories_ = found
    step._infrequent_enabled = False
    return found


def _read_labels(holder: Record) -> Array:
    """Categories of a column: labels, among which there may be nan."""
    if "texts" in holder.record("categories").fields:
        return holder.labels("categories")
    return holder.array("categories", (None,), LABELS, finite=False)


def _read_one_hot(record: Record, step: Any) -> int:
    _read_categories(record, step)
    step._set_drop_idx()
    step._n_features_outs = step._compute_n_features_outs()
    return int(sum(step._n_features_outs))


def _read_ordinal(record: Record, step: Any) -> int:
    found = _read_categories(record, step)
    places = [
        next((k for k, each in enumerate(listed.tolist()) if _is_nan(each)), None) for listed in found
    ]
    step._missing_indices = {i: place for i, place in enumerate(places) if place is not None}
    return len(found)


def _is_nan(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)


def _write_imputer(write: Writer, step: Any, name: str) -> dict[str, Any]:
    if step.add_indicator:
        raise ValueError(
            "A SimpleImputer with add_indicator=True cannot be saved; set add_indicator=False."
        )
    statistics = np.asarray(step.statistics_)
    return {
        "statistics": write.array(statistics, f"{name}.statistics"),
        "fit_type": step._fit_dtype.str,
        "fill_type": getattr(step, "_fill_dtype", step._fit_dtype).str,  # scikit-learn before 1.7
    }


def _read_imputer(record: Record, step: Any) -> int:
    n = int(step.n_features_in_)
    if "texts" in record.record("statistics").fields:
        statistics = record.labels("statistics", n)
    else:
        statistics = record.array("statistics", (n,), LABELS, finite=False)
    step.statistics_, step.indicator_ = statistics, None
    for name in ("fit", "fill"):
        code = record.text(f"{name}_type")
        if code.lstrip("<|>=") not in ("O", "b1", *LABELS):
            record.refuse(f"is {shown(code)}", f"{name}_type")
        setattr(step, f"_{name}_dtype", np.dtype(code))
    statistics.astype(step._fill_dtype)
    lost = 0 if step.keep_empty_features else sum(map(_is_nan, statistics.tolist()))
    if lost == n:
        record.refuse("has no value for any column", "statistics")
    return n - lost


def _write_nothing(write: Writer, step: Any, name: str) -> dict[str, Any]:
    if step.func is not None or step.inverse_func is not None:
        function = step.func if step.func is not None else step.inverse_func
        raise ValueError(
            f"A FunctionTransformer of {function!r} cannot be saved, since a model file holds no code; "
            "apply the function before the model."
        )
    return {}


def _read_nothing(record: Record, step: Any) -> int:
    if step.func is not None or step.inverse_func is not None:
        record.refuse("names a function", "parameters")
    return int(step.n_features_in_)


WRITERS: dict[str, Callable[[Writer, Any, str], dict[str, Any]]] = {
    **dict.fromkeys(SCALERS, _write_scaler),
    **dict.fromkeys(ENCODERS, _write_encoder),
    "SimpleImputer": _write_imputer,
    "FunctionTransformer": _write_nothing,
}
READERS: dict[str, Callable[[Record, Any], int]] = {
    **dict.fromkeys(SCALERS, _read_scaler),
    "OneHotEncoder": _read_one_hot,
    "OrdinalEncoder": _read_ordinal,
    "SimpleImputer": _read_imputer,
    "FunctionTransformer": _read_nothing,
}
