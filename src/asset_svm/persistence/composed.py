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
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted

from asset_svm.estimators.calibration import CalibratedClassifier
from asset_svm.persistence.columns import read_columns, write_columns
from asset_svm.persistence.encoders import read_encoder, write_encoder
from asset_svm.persistence.estimators import (
    ESTIMATORS,
    kind_of,
    read_calibrated,
    read_estimator,
    write_calibrated,
    write_estimator,
)
from asset_svm.persistence.folds import read_folds, write_folds
from asset_svm.persistence.transformers import SETTLE, TRANSFORMERS
from asset_svm.storage.fields import Fields, Writing, shown
from asset_svm.storage.writing import Writer

if TYPE_CHECKING:
    from sklearn.compose import ColumnTransformer
    from sklearn.pipeline import Pipeline

BY_COLUMNS = "ColumnTransformer"
OURS = "TableEncoder"
KINDS = (*TRANSFORMERS, BY_COLUMNS, OURS)
MODELS = (*ESTIMATORS, "calibrated", "Pipeline", "CalibratedClassifierCV")
"""What a file may hold, and a pipeline may end in."""
Step: TypeAlias = BaseEstimator | str | None
"""A step of a pipeline, or a part of a ColumnTransformer; a word stands for what passes or drops it."""


def _class_of(kind: str) -> Any:
    """The class of one of ``KINDS``."""
    from sklearn import compose, impute, preprocessing

    from asset_svm import estimators

    modules = {BY_COLUMNS: compose, "SimpleImputer": impute, OURS: estimators}
    return getattr(modules.get(kind, preprocessing), kind)


def _kind_of_transformer(step: Step) -> str | None:
    """Which of ``KINDS`` a step is; None where it is none of them."""
    name = type(step).__name__
    return name if name in KINDS and type(step) is _class_of(name) else None


# Models ---------------------------------------------------------------------------------------------


def write_model(write: Writer, model: BaseEstimator, name: str) -> dict[str, Any]:
    """The record of something that predicts."""
    last: Step = model
    while hasattr(last, "steps"):  # a pipeline
        last = last.steps[-1][1]  # type: ignore[union-attr]
    if _is_word(last) or _kind_of_transformer(last) is not None:
        what = "passthrough" if _is_word(last) else type(last).__name__
        raise ValueError(
            f"A {what} predicts nothing; save an AssetClassifier or AssetRegressor with it."
        )
    return write_any(write, model, name)


def read_model(f: Fields) -> BaseEstimator:
    """The model of its record, which predicts."""
    model, width = read_any(f)
    if width is not None:
        f.refuse("is no model that predicts")
    return model


def write_any(write: Writer, model: BaseEstimator, name: str) -> dict[str, Any]:
    """The record of anything that a file may hold."""
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
        if plain is not None:
            return write_calibrated(write, plain, name)
        return write_folds(write, model, name, write_any)
    if _kind_of_transformer(model) is not None:
        return _write_transformer(write, model, name)
    if isinstance(model, SearchEstimator):
        raise ValueError(
            f"{type(model).__name__} cannot be saved, only the model that it found; save its "
            "best_estimator_."
        )
    raise ValueError(
        f"A {type(model).__name__} cannot be saved; save an AssetClassifier or AssetRegressor, alone "
        f"or in a Pipeline behind transformers that are one of {', '.join(KINDS)}."
    )


def read_any(f: Fields) -> tuple[BaseEstimator, int | None]:
    """(what a record is, the columns that come out of it; None where these are predictions)."""
    kind = f.text("kind", (*MODELS, *KINDS))
    if kind in ESTIMATORS:
        return read_estimator(f), None
    if kind == "calibrated":
        return read_calibrated(f), None
    if kind == "CalibratedClassifierCV":
        return read_folds(f, read_any, columns_of), None
    if kind == "Pipeline":
        return _read_pipeline(f)
    return _read_transformer(f, kind)


def columns_of(model: BaseEstimator) -> int:
    """The number of columns of the rows that a model takes."""
    if hasattr(model, "steps"):  # a pipeline
        return columns_of(next(step for _, step in model.steps if not _is_word(step)))
    return int(model.n_features_in_)


def _is_word(step: Step) -> bool:
    """Whether a step is no estimator, but a word such as "passthrough"."""
    return step is None or isinstance(step, str)


def _word_of(f: Fields, *words: str) -> str | None:
    """Which of these words a record stands for, if it does for any."""
    kind = f.fields.get("kind")
    return kind if kind in words else None


# Pipelines ------------------------------------------------------------------------------------------


def _write_pipeline(write: Writer, model: Pipeline, name: str) -> dict[str, Any]:
    steps = [
        {
            "name": each,
            "step": {"kind": "passthrough"}
            if _is_word(step)
            else write_any(write, step, f"{name}.{each}"),
        }
        for each, step in model.steps
    ]
    return {"kind": "Pipeline", "steps": steps}


def _read_pipeline(f: Fields) -> tuple[Pipeline, int | None]:
    from sklearn.pipeline import Pipeline

    steps: list[tuple[str, Step]] = []
    width, ended = None, False
    for each in f.objects("steps"):
        name, step = each.text("name"), each.object("step")
        if ended:
            f.refuse("has a model that something comes after", "steps")
        if word := _word_of(step, "passthrough"):
            steps.append((name, word))
            continue
        made, out = read_any(step)
        if width is not None and columns_of(made) != width:
            each.refuse(f"takes {columns_of(made)} columns, and {width} come out before it", "step")
        steps.append((name, made))
        width, ended = out, out is None
    if all(_is_word(step) for _, step in steps):
        f.refuse("has no step that does anything", "steps")
    pipeline = Pipeline(steps)
    pipeline._validate_steps()
    return pipeline, width


# Transformers ---------------------------------------------------------------------------------------


def _write_transformer(write: Writer, step: BaseEstimator, name: str) -> dict[str, Any]:
    check_is_fitted(step)
    kind = type(step).__name__
    if kind == OURS:
        return write_encoder(write, step, name)
    params = changed_parameters(step)  # versions differ in what there are
    if kind == BY_COLUMNS:
        fitted = _write_by_columns(write, step, name)
        params = {n: v for n, v in params.items() if n not in ("transformers", "remainder")}
    else:
        fitted = Writing.of(write, TRANSFORMERS[kind], name, step, step)
    return {
        "kind": kind,
        "parameters": write.mapping(params, f"{name}.{kind}"),
        **write_columns(step),
        "output": getattr(step, "_sklearn_output_config", {}).get("transform"),
        **fitted,
    }


def changed_parameters(estimator: BaseEstimator) -> dict[str, Any]:
    """The parameters that are not at their defaults."""
    known = _plain(type(estimator)).get_params(deep=False)
    given = estimator.get_params(deep=False)
    return {name: value for name, value in given.items() if repr(value) != repr(known[name])}


def _plain(cls: Any) -> BaseEstimator:
    """An estimator of a class with the default parameters."""
    return cls([]) if cls.__name__ == BY_COLUMNS else cls()


def _read_transformer(f: Fields, kind: str) -> tuple[BaseEstimator, int]:
    if kind == OURS:
        encoder = read_encoder(f)
        return encoder, encoder.encoding_.width
    params, step = f.mapping("parameters"), _plain(_class_of(kind))
    unknown = [name for name in params if name not in step.get_params(deep=False)]
    if unknown:
        f.refuse("is no parameter that this scikit-learn knows", f"parameters.{unknown[0]}")
    step.set_params(**params)
    step._validate_params()
    read_columns(f, step)
    if kind == BY_COLUMNS:
        width = _read_by_columns(f, step)
    else:
        vars(step).update(TRANSFORMERS[kind](f, step))
        width = SETTLE[kind](step) if kind in SETTLE else int(step.n_features_in_)
    output = f.maybe(f.text, "output", ("default", "pandas", "polars"))
    if output is not None:
        step.set_output(transform=output)
    return step, width


# Transformers of some of the columns ----------------------------------------------------------------


def _write_by_columns(write: Writer, step: ColumnTransformer, name: str) -> dict[str, Any]:
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


def _write_part(write: Writer, asked: Step, fitted: Step, columns: Any, name: str) -> dict[str, Any]:
    """The record of what is done to some of the columns; to none of them, nothing is."""
    if isinstance(asked, str) or isinstance(fitted, str):
        return {"kind": asked if isinstance(asked, str) else "drop"}
    if isinstance(columns, Sized) and len(columns) == 0:
        return {"kind": "drop"}
    return write_any(write, fitted, name)


def _read_by_columns(f: Fields, step: ColumnTransformer) -> int:
    n, taken, fitted = int(step.n_features_in_), set[int](), []
    asked: list[tuple[str, Step, Step, int, Any]] = []
    indices: dict[str, list[int]] = {}
    for each in f.objects("transformers"):
        name, columns = each.text("name"), each.value("columns")
        indices[name] = _indices(each, columns, step)
        taken |= set(indices[name])
        asked.append((name, *_read_part(each, "transformer", len(indices[name])), columns))
    rest = sorted(set(range(n)) - taken)
    indices["remainder"] = rest
    remainder = _read_part(f, "remainder", len(rest))
    every = [*asked, ("remainder", *remainder, rest)] if rest else asked
    width, step.output_indices_ = 0, {}
    for name, _, inner, out, columns in every:
        fitted.append((name, inner, columns))
        if not isinstance(inner, str) and indices[name]:
            step.output_indices_[name] = slice(width, width + out)
            width += out
    if width == 0:
        f.refuse("lets no column through", "transformers")
    step.transformers = [(name, given, columns) for name, given, _, _, columns in asked]
    step.remainder = remainder[0]
    step.transformers_, step._columns = fitted, [columns for *_, columns in asked]
    step._transformer_to_input_indices, step._n_features = indices, n
    step._remainder = ("remainder", step.remainder, rest)
    step.sparse_output_ = f.flag("sparse_output")
    step._validate_transformers()
    weights = step.transformer_weights or {}
    if not all(type(each) in (int, float) for each in weights.values()):
        f.refuse("is not a number for each", "parameters.transformer_weights")
    return width


def _read_part(f: Fields, name: str, count: int) -> tuple[Step, Step, int]:
    """(what was asked for, what was fitted, the columns that come out) of so many columns."""
    part = f.object(name)
    word = _word_of(part, "drop", "passthrough")
    if word == "passthrough":
        from sklearn.preprocessing import FunctionTransformer

        through = FunctionTransformer(
            accept_sparse=True, check_inverse=False, feature_names_out="one-to-one"
        )
        through.n_features_in_ = count
        return word, through, count
    if word is not None:
        return word, word, 0
    step, width = read_any(part)
    if width is None:
        f.refuse("is a model, not a transformer", name)
    if columns_of(step) != count:
        f.refuse(f"takes {columns_of(step)} columns, and has {count}", name)
    return clone(step), step, width


def _indices(f: Fields, columns: Any, step: ColumnTransformer) -> list[int]:
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
    f.refuse(f"is {shown(columns)}, which names no columns of {n}", "columns")
