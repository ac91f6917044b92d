"""scikit-learn's own transformers of the common kinds, and what they are put together by.

A file names one of a fixed list, and what it was fitted to is read field by field; anything else is
refused by its name when it is saved. Each is written with its parameters that are not the defaults
(``parameters``), its columns, and what ``set_output`` was told (``output``):

    StandardScaler       mean, var, scale, n_samples_seen
    MinMaxScaler         min, scale, data_min, data_max, data_range, n_samples_seen
    MaxAbsScaler         max_abs, scale, n_samples_seen
    RobustScaler         center, scale
    OneHotEncoder        categories
    OrdinalEncoder       categories
    SimpleImputer        statistics, fit_type, fill_type
    FunctionTransformer  without a function
    ColumnTransformer    transformers: each with its name and columns; remainder, sparse_output
    Pipeline             steps: each with its name
    CalibratedClassifierCV    classes, method, models: each with its estimator and calibrators, which
                              have a, b (sigmoid) or x, y (isotonic)

They are imported where they are met: a model of ours alone needs none of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.utils.validation import check_is_fitted

from asset_svm.estimators.calibration import CalibratedClassifier
from asset_svm.persistence.estimators import (
    ESTIMATORS,
    kind_of,
    read_calibrated,
    read_columns,
    read_estimator,
    write_calibrated,
    write_columns,
    write_estimator,
)
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
KINDS = (*SCALERS, *ENCODERS, "SimpleImputer", "FunctionTransformer", "ColumnTransformer")
AROUND = ("Pipeline", "CalibratedClassifierCV")
MODELS = (*ESTIMATORS, "calibrated", *AROUND)
"""What a file may hold, and a pipeline may end in."""


def _class_of(kind: str) -> Any:
    """The class of one of ``KINDS``."""
    from sklearn import compose, impute, preprocessing

    modules = {"ColumnTransformer": compose, "SimpleImputer": impute}
    return getattr(modules.get(kind, preprocessing), kind)


def _named(step: Any) -> str | None:
    """Which of ``KINDS`` a step is."""
    name = type(step).__name__
    return name if name in KINDS and type(step) is _class_of(name) else None


# Models -------------------------------------------------------------------------------------------


def write_model(write: Writer, model: Any, name: str) -> dict[str, Any]:
    """Something that predicts."""
    last = model
    while hasattr(last, "steps"):
        last = last.steps[-1][1]
    if _is_passed(last) or _named(last) is not None:
        what = "passthrough" if _is_passed(last) else type(last).__name__
        raise ValueError(
            f"A {what} predicts nothing; save an AssetClassifier or AssetRegressor with it."
        )
    return write_any(write, model, name)


def read_model(record: Record) -> Any:
    """Something that predicts."""
    model, width = read_any(record)
    if width is not None:
        record.refuse("is no model that predicts")
    return model


def write_any(write: Writer, model: Any, name: str) -> dict[str, Any]:
    """Anything that a file may hold."""
    from sklearn.calibration import CalibratedClassifierCV
    from sklearn.pipeline import Pipeline

    from asset_svm.search.base import SearchEstimator

    if hasattr(model, "to_local"):  # trained on a cluster
        model = model.to_local()
    if kind_of(model) is not None:
        return write_estimator(write, model, name)
    if isinstance(model, CalibratedClassifier):
        return write_calibrated(write, model, name)
    if isinstance(model, Pipeline):
        return _write_pipeline(write, model, name)
    if isinstance(model, CalibratedClassifierCV):
        check_is_fitted(model)
        plain = CalibratedClassifier.of(model)
        return (
            _write_folds(write, model, name) if plain is None else write_calibrated(write, plain, name)
        )
    if _named(model) is not None:
        return _write_transformer(write, model, name)
    if isinstance(model, SearchEstimator):
        raise ValueError(
            f"A {type(model).__name__} cannot be saved, only the model that it found; save its "
            "best_estimator_."
        )
    raise ValueError(
        f"A {type(model).__name__} cannot be saved; save an AssetClassifier or AssetRegressor, alone "
        f"or in a Pipeline behind transformers that are one of {', '.join(KINDS)}."
    )


def read_any(record: Record) -> tuple[Any, int | None]:
    """(the object, the columns that come out of it; None where these are predictions)."""
    kind = record.text("kind", (*MODELS, *KINDS))
    if kind in ESTIMATORS:
        return read_estimator(record), None
    if kind == "calibrated":
        return read_calibrated(record), None
    if kind == "CalibratedClassifierCV":
        return _read_folds(record), None
    if kind == "Pipeline":
        return _read_pipeline(record)
    return _read_transformer(record, kind)


def columns_of(model: Any) -> int:
    """The columns of the rows that a model takes."""
    if hasattr(model, "steps"):  # a pipeline
        return columns_of(next(step for _, step in model.steps if not _is_passed(step)))
    return int(model.n_features_in_)


def _is_passed(step: Any) -> bool:
    return step is None or isinstance(step, str)


# Pipelines ----------------------------------------------------------------------------------------


def _write_pipeline(write: Writer, model: Any, name: str) -> dict[str, Any]:
    steps = [
        {
            "name": each,
            "step": {"kind": "passthrough"}
            if _is_passed(step)
            else write_any(write, step, f"{name}.{each}"),
        }
        for each, step in model.steps
    ]
    return {"kind": "Pipeline", "steps": steps}


def _read_pipeline(record: Record) -> tuple[Any, int | None]:
    from sklearn.pipeline import Pipeline

    steps: list[tuple[str, Any]] = []
    width: int | None = None
    for number, each in enumerate(record.records("steps")):
        last = number == len(record.items("steps")) - 1
        inner = each.record("step")
        if inner.fields.get("kind") == "passthrough":
            steps.append((each.text("name"), "passthrough"))
            continue
        step, out = read_any(inner)
        if out is None and not last:
            each.refuse("is a model that something comes after", "step")
        if width is not None and columns_of(step) != width:
            each.refuse(f"takes {columns_of(step)} columns, and {width} come out before it", "step")
        steps.append((each.text("name"), step))
        width = out
    if not steps or all(_is_passed(step) for _, step in steps):
        record.refuse("has no step that does anything", "steps")
    made = Pipeline(steps)
    made._validate_steps()
    return made, width


# Transformers -------------------------------------------------------------------------------------


def _write_transformer(write: Writer, step: Any, name: str) -> dict[str, Any]:
    kind = type(step).__name__
    check_is_fitted(step)
    params = _changed_parameters(step)
    writers: dict[str, Callable[..., dict[str, Any]]] = {
        **dict.fromkeys(SCALERS, _write_scaler),
        **dict.fromkeys(ENCODERS, _write_encoder),
        "SimpleImputer": _write_imputer,
        "FunctionTransformer": _write_nothing,
        "ColumnTransformer": _write_by_columns,
    }
    fitted = writers[kind](write, step, name)
    if kind == "ColumnTransformer":
        params = {n: v for n, v in params.items() if n not in ("transformers", "remainder")}
    config = getattr(step, "_sklearn_output_config", {})
    return {
        "kind": kind,
        "parameters": write.mapping(params, f"{name}.{kind}"),
        **write_columns(step),
        "output": config.get("transform"),
        **fitted,
    }


def _changed_parameters(step: Any) -> dict[str, Any]:
    """Those that are not the defaults, since versions differ in what there are."""
    defaults = type(step)([]) if type(step).__name__ == "ColumnTransformer" else type(step)()
    known = defaults.get_params(deep=False)
    return {n: v for n, v in step.get_params(deep=False).items() if repr(v) != repr(known[n])}


def _read_transformer(record: Record, kind: str) -> tuple[Any, int]:
    params = record.mapping("parameters")
    cls = _class_of(kind)
    step = cls([]) if kind == "ColumnTransformer" else cls()
    unknown = [name for name in params if name not in step.get_params(deep=False)]
    if unknown:
        record.refuse("is no parameter that this scikit-learn knows", f"parameters.{unknown[0]}")
    step.set_params(**params)
    step._validate_params()
    read_columns(record, step)
    readers: dict[str, Callable[..., int]] = {
        **dict.fromkeys(SCALERS, _read_scaler),
        "OneHotEncoder": _read_one_hot,
        "OrdinalEncoder": _read_ordinal,
        "SimpleImputer": _read_imputer,
        "FunctionTransformer": _read_nothing,
        "ColumnTransformer": _read_by_columns,
    }
    width = readers[kind](record, step)
    if record.value("output") is not None:
        step.set_output(transform=record.text("output", ("default", "pandas", "polars")))
    return step, width


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
        "fill_type": step._fill_dtype.str,
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


# Transformers of some of the columns --------------------------------------------------------------


def _write_by_columns(write: Writer, step: Any, name: str) -> dict[str, Any]:
    given = {each: (inner, columns) for each, inner, columns in step.transformers_}
    written = []
    for (each, asked, _), columns in zip(step.transformers, step._columns, strict=True):
        inner, _ = given[each]
        written.append(
            {
                "name": each,
                "transformer": _write_part(write, asked, inner, columns, f"{name}.{each}"),
                "columns": write.value(columns, f"{name}.{each}.columns"),
            }
        )
    remainder = given.get("remainder", ("drop", []))
    return {
        "transformers": written,
        "remainder": _write_part(write, step.remainder, *remainder, f"{name}.remainder"),
        "sparse_output": bool(step.sparse_output_),
    }


def _write_part(write: Writer, asked: Any, fitted: Any, columns: Any, name: str) -> dict[str, Any]:
    """What is done to some of the columns; of none of them, nothing is."""
    if isinstance(asked, str) or isinstance(fitted, str):
        return {"kind": asked if isinstance(asked, str) else "drop"}
    if np.size(columns) == 0 and not isinstance(columns, slice):
        return {"kind": "drop"}
    return write_any(write, fitted, name)


def _read_by_columns(record: Record, step: Any) -> int:
    n, taken, fitted = int(step.n_features_in_), set[int](), []
    asked: list[tuple[str, Any, Any, int, Any]] = []
    indices: dict[str, list[int]] = {}
    for each in record.records("transformers"):
        name, columns = each.text("name"), each.value("columns")
        indices[name] = _indices(each, columns, step)
        taken |= set(indices[name])
        asked.append((name, *_read_part(each, "transformer", len(indices[name])), columns))
    rest = sorted(set(range(n)) - taken)
    indices["remainder"] = rest
    remainder = _read_part(record, "remainder", len(rest))
    every = list(asked)
    if rest:
        every.append(("remainder", *remainder, rest))
    width, step.output_indices_ = 0, {}
    for name, _, inner, out, columns in every:
        fitted.append((name, inner, columns))
        if not isinstance(inner, str) and indices[name]:
            step.output_indices_[name] = slice(width, width + out)
            width += out
    if width == 0:
        record.refuse("lets no column through", "transformers")
    step.transformers = [(name, given, columns) for name, given, _, _, columns in asked]
    step.remainder = remainder[0]
    step.transformers_, step._columns = fitted, [columns for *_, columns in asked]
    step._transformer_to_input_indices, step._n_features = indices, n
    step._remainder = ("remainder", step.remainder, rest)
    step.sparse_output_ = record.flag("sparse_output")
    step._validate_transformers()
    _check_weights(record, step.transformer_weights)
    return width


def _read_part(record: Record, name: str, count: int) -> tuple[Any, Any, int]:
    """(what was asked for, what was fitted, the columns that come out) of so many columns."""
    part = record.record(name)
    if part.fields.get("kind") == "drop":
        return "drop", "drop", 0
    if part.fields.get("kind") == "passthrough":
        from sklearn.preprocessing import FunctionTransformer

        through = FunctionTransformer(
            accept_sparse=True, check_inverse=False, feature_names_out="one-to-one"
        )
        through.n_features_in_ = count
        return "passthrough", through, count
    step, width = read_any(part)
    if width is None:
        record.refuse("is a model, not a transformer", name)
    if columns_of(step) != count:
        record.refuse(f"takes {columns_of(step)} columns, and has {count}", name)
    return clone(step), step, width


def _indices(record: Record, columns: Any, step: Any) -> list[int]:
    """The numbers of columns that are named in any way that scikit-learn knows."""
    n, names = int(step.n_features_in_), getattr(step, "feature_names_in_", None)
    listed = None if names is None else names.tolist()
    try:
        if isinstance(columns, slice):
            ends = [columns.start, columns.stop]
            if any(isinstance(end, str) for end in ends) and listed is not None:
                first = 0 if ends[0] is None else listed.index(ends[0])
                last = n if ends[1] is None else listed.index(ends[1]) + 1
                return list(range(n))[first : last : columns.step]
            return list(range(n))[columns]
        each = columns.tolist() if isinstance(columns, np.ndarray) else columns
        each = each if isinstance(each, list | tuple) else [each]
        kinds = {type(one) for one in each}
        if kinds == {bool} and len(each) == n:
            return np.flatnonzero(each).tolist()
        if kinds == {str} and listed is not None:
            return [listed.index(one) for one in each]
        if kinds <= {int} and all(-n <= one < n for one in each):
            return [one % n for one in each]
    except (ValueError, TypeError):
        pass
    record.refuse(f"is {shown(columns)}, which names no columns of {n}", "columns")


def _check_weights(record: Record, weights: Any) -> None:
    if weights is not None and not all(type(each) in (int, float) for each in weights.values()):
        record.refuse("is not a number for each", "parameters.transformer_weights")


# Calibration --------------------------------------------------------------------------------------


def _write_folds(write: Writer, model: Any, name: str) -> dict[str, Any]:
    """A CalibratedClassifierCV of several models, of a pipeline, or by isotonic regression."""
    if model.method not in ("sigmoid", "isotonic"):
        raise ValueError(
            f"A CalibratedClassifierCV with method={model.method!r} cannot be saved; set method to "
            '"sigmoid" or "isotonic".'
        )
    names = ("ensemble", "cv", "n_jobs")
    params = {each: getattr(model, each) for each in names}
    if not isinstance(params["cv"], int):  # how the folds were made, which prediction does not need
        params["cv"] = None
    return {
        "kind": "CalibratedClassifierCV",
        "parameters": write.mapping(params, f"{name}.parameters"),
        "method": model.method,
        "classes": write.array(model.classes_, f"{name}.classes"),
        "models": [
            {
                "frozen": isinstance(each.estimator, FrozenEstimator),
                "estimator": write_any(write, _thawed(each.estimator), f"{name}.{i}"),
                "calibrators": [
                    _write_calibrator(write, one, f"{name}.{i}.calibrators.{k}")
                    for k, one in enumerate(each.calibrators)
                ],
            }
            for i, each in enumerate(model.calibrated_classifiers_)
        ],
    }


def _thawed(estimator: Any) -> Any:
    return estimator.estimator if isinstance(estimator, FrozenEstimator) else estimator


def _write_calibrator(write: Writer, calibrator: Any, name: str) -> dict[str, Any]:
    if hasattr(calibrator, "a_"):
        return {"a": write.number(calibrator.a_), "b": write.number(calibrator.b_)}
    return {
        "x": write.array(calibrator.X_thresholds_, f"{name}.x"),
        "y": write.array(calibrator.y_thresholds_, f"{name}.y"),
        "low": write.number(calibrator.X_min_),
        "high": write.number(calibrator.X_max_),
        "increasing": bool(calibrator.increasing_),
    }


def _read_folds(record: Record) -> Any:
    from sklearn.calibration import CalibratedClassifierCV, _CalibratedClassifier

    method = record.text("method", ("sigmoid", "isotonic"))
    classes = record.labels("classes")
    models = []
    for each in record.records("models"):
        estimator, width = read_any(each.record("estimator"))
        own = getattr(estimator, "classes_", None)
        if width is not None or own is None:
            each.refuse("is no classifier", "estimator")
        if not set(own.tolist()) <= set(classes.tolist()):
            each.refuse("has classes that are not known", "estimator")
        calibrators = [_read_calibrator(one, method) for one in each.records("calibrators")]
        if len(calibrators) != (1 if len(own) == 2 else len(own)):
            each.refuse(f"are {len(calibrators)} for {len(own)} classes", "calibrators")
        inner = FrozenEstimator(estimator) if each.flag("frozen") else estimator
        models.append(_CalibratedClassifier(inner, calibrators, classes=classes, method=method))
    if not models or len({columns_of(_thawed(each.estimator)) for each in models}) > 1:
        record.refuse("are none, or of different columns", "models")
    params = record.mapping("parameters")
    made = CalibratedClassifierCV(clone(models[0].estimator), method=method, **params)
    made._validate_params()
    made.calibrated_classifiers_, made.classes_ = models, classes
    for name in ("n_features_in_", "feature_names_in_"):
        if hasattr(models[0].estimator, name):
            setattr(made, name, getattr(models[0].estimator, name))
    return made


def _read_calibrator(record: Record, method: str) -> Any:
    from sklearn.calibration import _SigmoidCalibration
    from sklearn.isotonic import IsotonicRegression

    if method == "sigmoid":
        made = _SigmoidCalibration()
        made.a_, made.b_ = np.float64(record.number("a")), np.float64(record.number("b"))
        return made
    made = IsotonicRegression(out_of_bounds="clip")
    x = record.array("x", (None,), FLOATS)
    y = record.array("y", (len(x),), FLOATS)
    if len(x) == 0 or (np.diff(x) <= 0.0).any():
        record.refuse("is not in order", "x")
    made.X_thresholds_, made.y_thresholds_ = x, y
    made.X_min_, made.X_max_ = (x.dtype.type(record.number(each)) for each in ("low", "high"))
    if made.X_min_ > made.X_max_ or made.X_min_ < x[0] or made.X_max_ > x[-1]:
        record.refuse("is out of the range of x", "low")
    made.increasing_ = record.flag("increasing")
    made._build_f(x, y)
    return made
