"""Estimators of ours: parameters, columns, and the fitted model.

"classifier", "regressor"     parameters, n_columns, column_names, task, model, resume
"calibrated"                  estimator, slope (K,), offset (K,)
parameters                    by their names; "approximation" may be a map of the user's own:
                              its kind, parameters, features, n_columns, frozen
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.frozen import FrozenEstimator
from sklearn.utils.validation import check_is_fitted

from asset_svm.estimators import AssetClassifier, AssetRegressor, FourierMap, NystroemMap
from asset_svm.estimators.calibration import CalibratedClassifier
from asset_svm.families.cells import FittedCells
from asset_svm.persistence.maps import read_map, write_map
from asset_svm.persistence.models import (
    read_cells,
    read_one_map,
    read_task,
    write_cells,
    write_one_map,
    write_task,
)
from asset_svm.persistence.reading import Record
from asset_svm.persistence.resume import read_resume, write_resume
from asset_svm.persistence.writing import Writer

ESTIMATORS: dict[str, Any] = {"classifier": AssetClassifier, "regressor": AssetRegressor}
MAPS: dict[str, Any] = {"nystroem map": NystroemMap, "fourier map": FourierMap}


def kind_of(estimator: Any) -> str | None:
    """The name of an estimator's kind; None where it is none of ours."""
    return next((kind for kind, cls in ESTIMATORS.items() if type(estimator) is cls), None)


def write_estimator(write: Writer, estimator: Any, name: str) -> dict[str, Any]:
    """A fitted AssetClassifier or AssetRegressor."""
    check_is_fitted(estimator)
    kind, fitted = kind_of(estimator), estimator._fitted
    settings = estimator._settings()  # what cannot be read is not written
    resume = None
    if isinstance(fitted, FittedCells):
        model = write_cells(write, fitted, name)
    else:
        model = write_one_map(write, fitted, name)
    if write.resumable:
        if fitted.fixed is not None:
            raise ValueError(f"resumable=True needs a model that can go on learning: {fitted.fixed}.")
        current = getattr(fitted, "map_key", None) == settings.map_key
        resume = write_resume(write, fitted, f"{name}.resume", map_is_current=current)
    return {
        "kind": kind,
        "parameters": _write_parameters(write, estimator, f"{name}.parameters"),
        **write_columns(estimator),
        "task": write_task(write, fitted.task, name),
        "model": model,
        "resume": resume,
    }


def read_estimator(record: Record) -> Any:
    """A fitted estimator."""
    kind = record.text("kind", tuple(ESTIMATORS))
    estimator = ESTIMATORS[kind]()
    _read_parameters(record.record("parameters"), estimator)
    settings = estimator._settings()
    read_columns(record, estimator)
    n_columns = estimator.n_features_in_
    task = read_task(record.record("task"), getattr(estimator, "class_weight", None))
    if task.numeric != (kind == "regressor"):
        record.refuse(f"is not that of a {kind}", "task")
    if task.classes is not None and len(task.classes) < 2:
        record.refuse("has fewer than two classes", "task")
    model = record.record("model")
    family = read_cells if model.text("family", ("one map", "cells")) == "cells" else read_one_map
    fitted: Any = family(model, task, n_columns)
    resume = record.maybe_record("resume")
    if resume is not None:
        fitted = read_resume(resume, fitted, settings.map_key)
    estimator._keep(fitted)
    return estimator


# Columns ------------------------------------------------------------------------------------------


def write_columns(estimator: Any) -> dict[str, Any]:
    """What validation has noted of the rows: as many columns, and their names."""
    names = getattr(estimator, "feature_names_in_", None)
    return {
        "n_columns": int(estimator.n_features_in_),
        "column_names": None if names is None else [str(each) for each in names],
    }


def read_columns(record: Record, estimator: Any) -> None:
    """Note them again."""
    estimator.n_features_in_ = record.integer("n_columns", 1)
    if record.value("column_names") is None:
        return
    names = record.texts("column_names")
    if len(names) != estimator.n_features_in_:
        record.refuse(f"has {len(names)} names for {estimator.n_features_in_} columns", "column_names")
    estimator.feature_names_in_ = np.array(names, dtype=object)


# Parameters ---------------------------------------------------------------------------------------


def _write_parameters(write: Writer, estimator: Any, name: str) -> dict[str, Any]:
    params = estimator.get_params(deep=False)
    if callable(params["kernel"]):
        raise ValueError(
            f"kernel={params['kernel']!r} is a function, and a model file holds no code; a model with "
            "a callable kernel cannot be saved."
        )
    if params.get("device") == "cuda":  # a card may not be where the file is read
        params["device"] = "cpu"
    given = params.pop("approximation", None)
    written = write.mapping(params, name)
    if isinstance(given, str):
        written["approximation"] = given
    elif given is not None:
        written["approximation"] = _write_given_map(write, given, f"{name}.approximation")
    return written


def _write_given_map(write: Writer, given: Any, name: str) -> dict[str, Any]:
    """A map of the user's own."""
    frozen = isinstance(given, FrozenEstimator)
    given = given.estimator if frozen else given
    features = getattr(given, "features_", None)
    return {
        "kind": next(kind for kind, cls in MAPS.items() if type(given) is cls),
        "parameters": _write_parameters(write, given, f"{name}.parameters"),
        "features": None if features is None else write_map(write, features, f"{name}.features"),
        "frozen": frozen,
    }


def _read_parameters(record: Record, estimator: Any) -> None:
    known = estimator.get_params(deep=False)
    unknown = [name for name in record.fields if name not in known]
    if unknown:
        record.refuse("is a parameter that this asset-svm does not know", unknown[0])
    own = isinstance(record.fields.get("approximation"), dict)
    names = [name for name in record.fields if not (own and name == "approximation")]
    params = {name: record.value(name) for name in names}
    if own:
        params["approximation"] = _read_given_map(record.record("approximation"))
    estimator.set_params(**params)


def _read_given_map(record: Record) -> Any:
    made = MAPS[record.text("kind", tuple(MAPS))]()
    _read_parameters(record.record("parameters"), made)
    features = record.maybe_record("features")
    if features is not None:
        made.features_ = read_map(features, None)
        made.n_features_in_ = made.features_.n_features_in
    return FrozenEstimator(made) if record.flag("frozen") else made


# Probabilities ------------------------------------------------------------------------------------


def write_calibrated(write: Writer, model: CalibratedClassifier, name: str) -> dict[str, Any]:
    """A classifier with probabilities."""
    check_is_fitted(model)
    return {
        "kind": "calibrated",
        "estimator": write_estimator(write, model.estimator, f"{name}.estimator"),
        "slope": write.array(model.slope_, f"{name}.slope"),
        "offset": write.array(model.offset_, f"{name}.offset"),
    }


def read_calibrated(record: Record) -> CalibratedClassifier:
    """A classifier with probabilities."""
    estimator = read_estimator(record.record("estimator"))
    if type(estimator) is not AssetClassifier:
        record.refuse("is no classifier", "estimator")
    shape = (estimator._fitted.task.n_models,)
    slope, offset = record.array("slope", shape), record.array("offset", shape)
    made: Any = CalibratedClassifier
    return made(estimator)._with(slope, offset)
