"""scikit-learn's transformers of the kinds that model files hold, as steps."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from asset_svm.arrays import Array
from asset_svm.runtime.steps import Affine, Filled, Kinds, Ordinals, Step, Together
from asset_svm.storage.fields import FLOATS, Fields, shown

Inner = Callable[[Fields], tuple[Step, ...]]
SCALERS = {
    "StandardScaler": ("mean", "scale"),
    "MinMaxScaler": ("min", "scale"),
    "MaxAbsScaler": ("scale", "scale"),
    "RobustScaler": ("center", "scale"),
}
"""The arrays that predictions need: what is taken off or added, and what divides or multiplies."""


def width_of(steps: Sequence[Step]) -> int | None:
    """The columns that come out of steps; None where there is no step."""
    return steps[-1].width if steps else None


def transformer(f: Fields, inner: Inner) -> Step:
    """The step of a transformer's record; ``inner`` reads those of parts of a ColumnTransformer."""
    return TRANSFORMERS[f.text("kind")](f, f.integer("n_columns", 1), f.mapping("parameters"), inner)


def _scaler(f: Fields, n: int, params: dict[str, Any], inner: Inner) -> Step:
    kind = f.text("kind")
    first, second = (f.maybe(f.array, name, (n,), FLOATS) for name in SCALERS[kind])
    none, one = np.zeros(n), np.ones(n)
    by = one if second is None else second.astype(np.float64)
    if kind == "MinMaxScaler":
        f.check(first is not None and second is not None, "is missing", "scale")
        low, high = params.get("feature_range", (0.0, 1.0))
        ends = (float(low), float(high)) if params.get("clip") else None
        return Affine(none, by, none if first is None else first.astype(np.float64), ends)
    f.check((by != 0.0).all(), "has a 0, by which a column is divided", "scale")
    ends = (-1.0, 1.0) if kind == "MaxAbsScaler" and params.get("clip") else None
    # A StandardScaler keeps the mean that it does not take off, and a MaxAbsScaler has none.
    stays = first is None or kind == "MaxAbsScaler" or not params.get("with_mean", True)
    centre = none if stays else np.asarray(first, dtype=np.float64)
    return Affine(centre, 1.0 / by, none, ends)


def _plain(values: Array) -> list[Any]:
    return [each.item() if isinstance(each, np.generic) else each for each in values.tolist()]


def _is_nan(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)


def _categories(f: Fields, n: int) -> list[list[Any]]:
    found = [_plain(each) for each in f.each("categories", "labels", finite=False)]
    f.check(len(found) == n and all(found), f"has {len(found)} lists for {n} columns", "categories")
    return found


def _one_hot(f: Fields, n: int, params: dict[str, Any], inner: Inner) -> Step:
    found, drop = _categories(f, n), params.get("drop")
    dropped: list[int | None] = [None] * n
    if isinstance(drop, str):
        f.check(drop in ("first", "if_binary"), f"is {shown(drop)}", "parameters.drop")
        dropped = [0 if drop == "first" or len(each) == 2 else None for each in found]
    elif drop is not None:
        for number, value in enumerate(np.asarray(drop, dtype=object).tolist()):
            gap = _is_nan(value)
            same = (
                k for k, each in enumerate(found[number]) if (_is_nan(each) if gap else each == value)
            )
            dropped[number] = next(same, None)
    return Kinds(found, dropped, params.get("handle_unknown", "error") == "error")


def _ordinal(f: Fields, n: int, params: dict[str, Any], inner: Inner) -> Step:
    found = _categories(f, n)
    gap, strict = params.get("encoded_missing_value", math.nan), "handle_unknown" not in params
    numbers = [
        [gap if _is_nan(each) else float(k) for k, each in enumerate(listed)] for listed in found
    ]
    unknown = None if strict or params["handle_unknown"] == "error" else params.get("unknown_value")
    return Ordinals(found, numbers, None if unknown is None else float(unknown))


def _imputer(f: Fields, n: int, params: dict[str, Any], inner: Inner) -> Step:
    values = _plain(f.labels("statistics", n, finite=False))
    keeps = bool(params.get("keep_empty_features"))
    kept = tuple(k for k, value in enumerate(values) if keeps or not _is_nan(value))
    f.check(kept, "has no value for any column", "statistics")
    apart = f.text("fit_type").lstrip("<|>=") == "O"
    return Filled(params.get("missing_values", math.nan), values, kept, apart)


def _nothing(f: Fields, n: int, params: dict[str, Any], inner: Inner) -> Step:
    return Together(n, [(np.arange(n), (), 1.0)])


def _by_columns(f: Fields, n: int, params: dict[str, Any], inner: Inner) -> Step:
    names = f.maybe(f.each, "column_names", "text")
    weights = params.get("transformer_weights") or {}
    parts: list[tuple[Array, Sequence[Step], float]] = []
    taken = set[int]()
    for each in f.objects("transformers"):
        which = _indices(each, n, names)
        taken |= set(which)
        _add(parts, each.object("transformer"), which, weights.get(each.text("name"), 1.0), inner)
    rest = [k for k in range(n) if k not in taken]
    _add(parts, f.object("remainder"), rest, weights.get("remainder", 1.0), inner)
    f.check(parts, "lets no column through", "transformers")
    return Together(n, parts)


def _add(
    parts: list[tuple[Array, Sequence[Step], float]], f: Fields, which: list[int], weight: float,
    inner: Inner,
) -> None:  # fmt: skip
    """Add what is made of these columns, if anything is."""
    if f.fields.get("kind") == "drop" or not which:
        return
    steps = inner(f)
    count = steps[0].n if steps else len(which)
    f.check(count == len(which), f"takes {count} columns, and has {len(which)}")
    parts.append((np.array(which), steps, float(weight)))


def _indices(f: Fields, n: int, names: list[str] | None) -> list[int]:
    """The numbers of columns that are named in any way that scikit-learn knows."""
    columns, by = f.value("columns"), {name: k for k, name in enumerate(names or ())}
    if isinstance(columns, slice):
        first, last = columns.start, columns.stop
        if isinstance(first, str) or isinstance(last, str):
            first = None if first is None else by[first]
            last = None if last is None else by[last] + 1
        return list(range(n))[first : last : columns.step]
    listed = columns.tolist() if isinstance(columns, np.ndarray) else columns
    listed = list(listed) if isinstance(listed, list | tuple) else [listed]
    if listed and all(isinstance(each, bool) for each in listed):
        f.check(len(listed) == n, f"has {len(listed)} entries for {n} columns", "columns")
        return np.flatnonzero(listed).tolist()
    found = [by.get(each, n) if isinstance(each, str) else each for each in listed]
    good = all(type(each) is int and -n <= each < n for each in found)
    f.check(good, f"is {shown(columns)}, which names no columns of {n}", "columns")
    return [each % n for each in found]


TRANSFORMERS: dict[str, Callable[[Fields, int, dict[str, Any], Inner], Step]] = {
    **dict.fromkeys(SCALERS, _scaler),
    "OneHotEncoder": _one_hot,
    "OrdinalEncoder": _ordinal,
    "SimpleImputer": _imputer,
    "FunctionTransformer": _nothing,
    "ColumnTransformer": _by_columns,
}
