"""What scikit-learn's own transformers of the common kinds were fitted to.

    StandardScaler         mean, var, scale, n_samples_seen
    MinMaxScaler           min, scale, data_min, data_max, data_range, n_samples_seen
    MaxAbsScaler           max_abs, scale, n_samples_seen
    RobustScaler           center, scale
    OneHotEncoder          categories
    OrdinalEncoder         categories
    SimpleImputer          statistics, fit_type, fill_type
    FunctionTransformer    nothing: one that has no function

``TRANSFORMERS`` are the records of these: they take a transformer that has its parameters and columns,
and return its attributes. ``SETTLE`` makes it whole after they are set, and tells how many columns come
out of it.

Encoders and imputers keep a part of what they were fitted to in private attributes, and scikit-learn
has no other way to it: those are read and set here, and nowhere else but in ``composed`` and ``folds``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from asset_svm.storage.fields import FLOATS, LABELS, Fields, shown

SCALERS = {
    "StandardScaler": ("mean_", "var_", "scale_"),
    "MinMaxScaler": ("min_", "scale_", "data_min_", "data_max_", "data_range_"),
    "MaxAbsScaler": ("max_abs_", "scale_"),
    "RobustScaler": ("center_", "scale_"),
}
"""Their arrays, one number a column each, or None."""
SWITCHES = {
    "with_mean": ("mean_",),
    "with_std": ("var_", "scale_"),
    "with_centering": ("center_",),
    "with_scaling": ("scale_",),
}
"""Arrays that are None where a parameter is False."""
DIVISORS = ("StandardScaler", "MaxAbsScaler", "RobustScaler")
"""The scalers that divide by their scale."""


def _scaler(f: Fields, step: BaseEstimator) -> dict[str, Any]:
    kind, n = type(step).__name__, int(step.n_features_in_)
    off = {switch for switch in SWITCHES if not getattr(step, switch, True)}
    may_miss = {each for switch in off for each in SWITCHES[switch]}
    found: dict[str, Any] = {}
    for each in SCALERS[kind]:
        name = each.rstrip("_")
        found[each] = f.maybe(f.array, name, (n,), FLOATS, of=each)
        f.check(found[each] is not None or each in may_miss, "is missing", name)
    if kind in DIVISORS and found["scale_"] is not None:
        f.check((found["scale_"] != 0.0).all(), "has a 0, by which a column is divided", "scale")
    if f.has("n_samples_seen", "n_samples_seen_"):
        seen = found["n_samples_seen_"] = f.value("n_samples_seen", of="n_samples_seen_")
        counts = np.asarray(seen)
        fits = type(seen) in (int, float, np.ndarray) and counts.shape in ((), (n,))
        fits = fits and counts.dtype.kind in "if" and np.isfinite(counts).all()
        f.check(fits, f"is {shown(seen)}", "n_samples_seen")
    return found


def _categories(f: Fields, step: BaseEstimator) -> dict[str, Any]:
    if getattr(step, "_infrequent_enabled", False):
        raise ValueError(
            f"A {type(step).__name__} with min_frequency or max_categories cannot be saved; leave them "
            "out, or name the categories."
        )
    found = f.each("categories", "labels", finite=False, of="categories_")
    why = f"has {len(found)} lists for {step.n_features_in_} columns"
    f.check(len(found) == step.n_features_in_, why, "categories")
    f.check(all(len(each) for each in found), "has a list without any", "categories")
    return {"categories_": found, "_infrequent_enabled": False}


def _settle_one_hot(step: BaseEstimator) -> int:
    step._set_drop_idx()
    step._n_features_outs = step._compute_n_features_outs()
    return int(sum(step._n_features_outs))


def _settle_ordinal(step: BaseEstimator) -> int:
    places = [
        next((k for k, each in enumerate(listed.tolist()) if _is_nan(each)), None)
        for listed in step.categories_
    ]
    step._missing_indices = {i: place for i, place in enumerate(places) if place is not None}
    return len(places)


def _is_nan(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)


def _imputer(f: Fields, step: BaseEstimator) -> dict[str, Any]:
    if step.add_indicator:
        raise ValueError(
            "A SimpleImputer with add_indicator=True cannot be saved; set add_indicator=False."
        )
    statistics = f.labels("statistics", int(step.n_features_in_), finite=False, of="statistics_")
    fit = f.text("fit_type", of=lambda step: step._fit_dtype.str)
    # scikit-learn before 1.7 has one type.
    fill = f.text("fill_type", of=lambda step: getattr(step, "_fill_dtype", step._fit_dtype).str)
    for name, code in (("fit_type", fit), ("fill_type", fill)):
        f.check(code.lstrip("<|>=") in ("O", "b1", *LABELS), f"is {shown(code)}", name)
    found = {"statistics_": statistics, "indicator_": None}
    return {**found, "_fit_dtype": np.dtype(fit), "_fill_dtype": np.dtype(fill)}


def _settle_imputer(step: BaseEstimator) -> int:
    step.statistics_.astype(step._fill_dtype)
    kept = [step.keep_empty_features or not _is_nan(each) for each in step.statistics_.tolist()]
    if not any(kept):
        raise ValueError("a SimpleImputer has no value for any column")
    return sum(kept)


def _nothing(f: Fields, step: BaseEstimator) -> dict[str, Any]:
    if step.func is not None or step.inverse_func is not None:
        function = step.func if step.func is not None else step.inverse_func
        raise ValueError(
            f"A FunctionTransformer of {function!r} cannot be saved, since a model file holds no code; "
            "apply the function before the model."
        )
    return {}


TRANSFORMERS: dict[str, Callable[[Fields, BaseEstimator], dict[str, Any]]] = {
    **dict.fromkeys(SCALERS, _scaler),
    "OneHotEncoder": _categories,
    "OrdinalEncoder": _categories,
    "SimpleImputer": _imputer,
    "FunctionTransformer": _nothing,
}
SETTLE: dict[str, Callable[[BaseEstimator], int]] = {
    "OneHotEncoder": _settle_one_hot,
    "OrdinalEncoder": _settle_ordinal,
    "SimpleImputer": _settle_imputer,
}
"""The columns that come out of all others are those that go in."""
