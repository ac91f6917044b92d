"""Models, and what scikit-learn puts together of them and of its transformers.

A file names one of a fixed list; anything else is refused by its name when it is saved.

    Pipeline             steps: each with its name
    ColumnTransformer    transformers: each with its name and columns; remainder, sparse_output

A transformer has besides its parameters that are not the defaults (``parameters``), its columns, and
what ``set_output`` was told (``output``). scikit-learn's classes are imported where they are met: a
model of ours alone needs none of them.
"""

from __future__ import annotations

from collections.abc import Sized
from typing import Any

import numpy as np
from sklearn.base import clone
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
from asset_svm.persistence.folds import read_folds, write_folds
from asset_svm.persistence.reading import Record, shown
from asset_svm.persistence.transformers import READERS, WRITERS
from asset_svm.persistence.writing import Writer

COLUMNS = "ColumnTransformer"
KINDS = (*WRITERS, COLUMNS)
MODELS = (*ESTIMATORS, "calibrated", "Pipeline", "CalibratedClassifierCV")
"""What a file may hold, and a pipeline may end in."""


def _class_of(kind: str) -> Any:
    """The class of one of ``KINDS``."""
    from sklearn import compose, impute, preprocessing

    modules = {COLUMNS: compose, "SimpleImputer": impute}
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
            write_folds(write, model, name, write_any)
            if plain is None
            else write_calibrated(write, plain, name)
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
        return read_folds(record, read_any, columns_of), None
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
    fitted = {**WRITERS, COLUMNS: _write_by_columns}[kind](write, step, name)
    if kind == COLUMNS:
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
    defaults = type(step)([]) if type(step).__name__ == COLUMNS else type(step)()
    known = defaults.get_params(deep=False)
    return {n: v for n, v in step.get_params(deep=False).items() if repr(v) != repr(known[n])}


def _read_transformer(record: Record, kind: str) -> tuple[Any, int]:
    params = record.mapping("parameters")
    cls = _class_of(kind)
    step = cls([]) if kind == COLUMNS else cls()
    unknown = [name for name in params if name not in step.get_params(deep=False)]
    if unknown:
        record.refuse("is no parameter that this scikit-learn knows", f"parameters.{unknown[0]}")
    step.set_params(**params)
    step._validate_params()
    read_columns(record, step)
    width = {**READERS, COLUMNS: _read_by_columns}[kind](record, step)
    if record.value("output") is not None:
        step.set_output(transform=record.text("output", ("default", "pandas", "polars")))
    return step, width


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
    if isinstance(columns, Sized) and len(columns) == 0:
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
