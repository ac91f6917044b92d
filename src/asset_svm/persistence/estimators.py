"""Estimators of ours: parameters, columns, and the fitted model.

"classifier", "regressor", "quantile regressor",
"outlier detector"            parameters, n_columns, column_names, encoder, task, relevance, model,
                              resume; or, of a mean of several, members, each with relevance and
                              model, and weights, in place of the two; intervals of a regression
intervals                     null, or spread, an estimator, unit, and scores (any) in order
"calibrated"                  estimator, slope (K,), offset (K,)
parameters                    by their names; "approximation" may be a map of the user's own:
                              its kind, parameters, features, frozen; "encoder" the parameters of one
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.frozen import FrozenEstimator
from sklearn.utils.validation import check_is_fitted

from asset_svm.estimators import (
    AssetClassifier,
    AssetOutlierDetector,
    AssetQuantileRegressor,
    AssetRegressor,
    FourierMap,
    NystroemMap,
    TableEncoder,
)
from asset_svm.estimators.calibration import CalibratedClassifier
from asset_svm.estimators.inside import (
    adopt,
    encoder_of,
    fitted_of,
    intervals_of,
    settings_of,
    take_intervals,
)
from asset_svm.estimators.intervals import Intervals
from asset_svm.families.blend import FittedBlend
from asset_svm.families.cells import FittedCells
from asset_svm.families.one_map import FittedMap
from asset_svm.families.relevance.fitted import FittedRelevance
from asset_svm.families.relevance.wrapping import inner_settings
from asset_svm.persistence.columns import read_columns, write_columns
from asset_svm.persistence.encoders import read_encoder, read_parameters, write_encoder
from asset_svm.persistence.models import (
    cells,
    fields_of_cells,
    fields_of_one_map,
    one_map,
    task,
)
from asset_svm.persistence.resume import relevant, resume
from asset_svm.storage.fields import Fields, Writing
from asset_svm.storage.maps import feature_map
from asset_svm.storage.writing import Writer
from asset_svm.tasks import Classification, OneClass, Outputs, Quantiles, Regression

Estimator = AssetClassifier | AssetRegressor | AssetQuantileRegressor | AssetOutlierDetector
GivenMap = NystroemMap | FourierMap
ESTIMATORS: dict[str, type[Estimator]] = {
    "classifier": AssetClassifier,
    "regressor": AssetRegressor,
    "outlier detector": AssetOutlierDetector,
    "quantile regressor": AssetQuantileRegressor,
}
LEARNT: dict[str, type[Any]] = {
    "classifier": Classification,
    "regressor": Regression,
    "quantile regressor": Quantiles,
    "outlier detector": OneClass,
}
"""The task of each kind of estimator."""
MAPS: dict[str, type[GivenMap]] = {"nystroem map": NystroemMap, "fourier map": FourierMap}


def kind_of(estimator: BaseEstimator, kinds: dict[str, Any] = ESTIMATORS) -> str | None:
    """The name of an estimator's kind; None where it is none of ours."""
    return next((kind for kind, cls in kinds.items() if type(estimator) is cls), None)


def write_estimator(write: Writer, estimator: Estimator, name: str) -> dict[str, Any]:
    """The record of a fitted estimator."""
    fitted, settings = fitted_of(estimator), settings_of(estimator)
    encoder = encoder_of(estimator)
    n = int(estimator.n_features_in_) if encoder is None else encoder.encoding_.width
    if write.resumable and _behind(fitted).fixed is not None:
        raise ValueError(
            f"resumable=True needs a model that can go on learning: {_behind(fitted).fixed}."
        )
    if isinstance(fitted, FittedBlend):
        body: dict[str, Any] = {
            "members": [
                _write_fitted(write, member, n, f"{name}.members.{number}")
                for number, member in enumerate(fitted.members)
            ],
            "weights": write.array(fitted.weights, f"{name}.weights"),
            "resume": None,
        }
    else:
        body = _write_fitted(write, fitted, n, name)
        if isinstance(fitted, FittedRelevance):
            settings, n = inner_settings(settings, fitted.learnt), fitted.learnt.width
        map_key, inner = settings.map_key, _behind(fitted)  # what cannot be read is not written
        body["resume"] = (
            Writing.of(write, resume, f"{name}.resume", inner, inner, map_key, n)
            if write.resumable
            else None
        )
    return {
        "kind": kind_of(estimator),
        "parameters": _write_parameters(write, estimator, f"{name}.parameters"),
        **write_columns(estimator),
        "encoder": None if encoder is None else write_encoder(write, encoder, f"{name}.encoder"),
        "task": Writing.of(write, task, name, fitted.task),
        **body,
        **_write_intervals(write, estimator, f"{name}.intervals"),
    }


def _write_intervals(write: Writer, estimator: Estimator, name: str) -> dict[str, Any]:
    """The record of the intervals of a regression, which go on learning with no model."""
    found = intervals_of(estimator)
    if found is None:
        return {}
    own = Writer(resumable=False)
    own.tensors = write.tensors
    spread = write_estimator(own, found.spread, f"{name}.spread")
    scores = write.array(found.scores, f"{name}.scores")
    return {"intervals": {"spread": spread, "unit": found.unit, "scores": scores}}


def _read_intervals(f: Fields, n: int) -> Intervals:
    """The intervals of a regression of n columns."""
    spread = f.record("spread", read_estimator)
    if not isinstance(spread, AssetQuantileRegressor) or spread.n_features_in_ != n:
        f.refuse(f"is no model of quantiles of {n} columns", "spread")
    f.check(np.ndim(spread.quantiles) == 0, "has several quantiles", "spread")
    unit, scores = f.number("unit", 0.0), f.array("scores", (None,), low=0)
    f.check(bool((np.diff(scores) >= 0.0).all()), "are not in order", "scores")
    return Intervals(spread, unit, scores)


def _behind(fitted: Any) -> Any:
    """The model itself, behind a relevance where it has one."""
    return fitted.inner if isinstance(fitted, FittedRelevance) else fitted


def _write_fitted(write: Writer, fitted: Any, n: int, name: str) -> dict[str, Any]:
    """The records of a model on rows of n columns, and of the relevance before it."""
    relevance = None
    if isinstance(fitted, FittedRelevance):
        front = fitted if write.resumable else fitted.begun_with(None)
        relevance = Writing.of(write, relevant, f"{name}.relevance", front, n)
        fitted, n = fitted.inner, front.learnt.width
    assert isinstance(fitted, FittedMap | FittedCells)
    if isinstance(fitted, FittedCells):
        model = Writing.of(write, cells, name, fields_of_cells(fitted), fitted.task, n)
    else:
        model = Writing.of(write, one_map, name, fields_of_one_map(fitted), fitted.task, n)
    return {"relevance": relevance, "model": model}


def read_estimator(f: Fields) -> Estimator:
    """The fitted estimator of its record."""
    kind = f.text("kind", tuple(ESTIMATORS))
    estimator = ESTIMATORS[kind]()
    _read_parameters(f.object("parameters"), estimator)
    settings = settings_of(estimator)
    read_columns(f, estimator)
    n, learnt = estimator.n_features_in_, f.record("task", task)
    encoder = f.maybe(f.record, "encoder", read_encoder) if f.has("encoder") else None
    estimator.encoder_ = encoder
    if encoder is not None:
        f.check(encoder.n_features_in_ == n, f"takes other columns than {n}", "encoder")
        n = encoder.encoding_.width
    one = learnt.parts[0] if isinstance(learnt, Outputs) else learnt
    f.check(isinstance(one, LEARNT[kind]), f"is not that of a {kind}", "task")
    if isinstance(learnt, Classification):
        f.check(len(learnt.known) >= 2, "has fewer than two classes", "task")
        learnt = replace(learnt, class_weight=getattr(estimator, "class_weight", None))
    elif isinstance(learnt, Outputs) and not learnt.numeric:
        f.check(learnt.n_models, "has fewer than two classes", "task")
    if f.has("members"):
        members = tuple(_read_member(each, learnt, n) for each in f.objects("members"))
        weights = f.array("weights", (len(members),))
        f.check(len(members) > 1, "are fewer than two", "members")
        f.check(
            bool((weights > 0.0).all() and abs(weights.sum() - 1.0) < 1e-9), "do not add up", "weights"
        )
        adopt(estimator, FittedBlend(members, weights))
        return estimator
    width = n
    front, fitted, n = _read_fitted(f, learnt, n)
    if f.get("resume") is not None:
        if front is not None:
            settings = inner_settings(settings, front[0])
        fitted = f.record("resume", resume, fitted, settings.map_key, n)
    adopt(estimator, fitted if front is None else FittedRelevance(front[0], fitted, front[1]))
    if kind == "regressor" and f.has("intervals"):
        take_intervals(estimator, f.record("intervals", _read_intervals, width))
    return estimator


def _read_fitted(f: Fields, learnt: Any, n: int) -> tuple[Any, FittedMap | FittedCells, int]:
    """(the relevance before a model, if any; the model; the columns that it takes)."""
    family = f.object("model").text("family", ("one map", "cells"))
    model: Callable[..., FittedMap | FittedCells] = cells if family == "cells" else one_map
    front = f.maybe(f.record, "relevance", relevant, n) if f.has("relevance") else None
    n = n if front is None else front[0].width
    return front, f.record("model", model, learnt, n), n


def _read_member(f: Fields, learnt: Any, n: int) -> Any:
    """A model of a blend."""
    front, fitted, _ = _read_fitted(f, learnt, n)
    return fitted if front is None else FittedRelevance(front[0], fitted, front[1])


# Parameters -----------------------------------------------------------------------------------------


def _write_parameters(write: Writer, estimator: Estimator | GivenMap, name: str) -> dict[str, Any]:
    params = estimator.get_params(deep=False)
    if params.get("device") == "cuda":  # a card may not be where the file is read
        params["device"] = "cpu"
    given, encoder = params.pop("approximation", None), params.pop("encoder", "auto")
    written = write.mapping(params, name)
    if isinstance(given, str):
        written["approximation"] = given
    elif given is not None:
        written["approximation"] = _write_given_map(write, given, f"{name}.approximation")
    if isinstance(encoder, TableEncoder):
        written["encoder"] = write.mapping(encoder.get_params(deep=False), f"{name}.encoder")
    elif encoder is None:
        written["encoder"] = None
    return written


def _write_given_map(write: Writer, given: GivenMap | FrozenEstimator, name: str) -> dict[str, Any]:
    """The record of a map of the user's own."""
    plain: GivenMap = given.estimator if isinstance(given, FrozenEstimator) else given
    features = getattr(plain, "features_", None)
    return {
        "kind": kind_of(plain, MAPS),
        "parameters": _write_parameters(write, plain, f"{name}.parameters"),
        "features": None
        if features is None
        else Writing.of(write, feature_map, f"{name}.features", features),
        "frozen": plain is not given,
    }


def _read_parameters(f: Fields, estimator: Estimator | GivenMap) -> None:
    known = estimator.get_params(deep=False)
    unknown = [name for name in f.fields if name not in known]
    f.check(not unknown, "is a parameter that this asset-svm does not know", *unknown[:1])
    records = {"approximation": _given_map, "encoder": read_parameters}
    params = {
        name: f.record(name, records[name])
        if name in records and isinstance(value, dict)
        else f.value(name)
        for name, value in f.fields.items()
    }
    estimator.set_params(**params)


def _given_map(f: Fields) -> GivenMap | FrozenEstimator:
    made = MAPS[f.text("kind", tuple(MAPS))]()
    _read_parameters(f.object("parameters"), made)
    features = f.maybe(f.record, "features", feature_map)
    if features is not None:
        made.features_, made.n_features_in_ = features, features.n_features_in
    return FrozenEstimator(made) if f.flag("frozen") else made


# Probabilities ------------------------------------------------------------------------------------


def write_calibrated(write: Writer, model: CalibratedClassifier, name: str) -> dict[str, Any]:
    """The record of a classifier with probabilities."""
    check_is_fitted(model)
    return {
        "kind": "calibrated",
        "estimator": write_estimator(write, model.estimator, f"{name}.estimator"),
        "slope": write.array(model.slope_, f"{name}.slope"),
        "offset": write.array(model.offset_, f"{name}.offset"),
    }


def read_calibrated(f: Fields) -> CalibratedClassifier:
    """The classifier with probabilities of its record."""
    estimator = f.record("estimator", read_estimator)
    if type(estimator) is not AssetClassifier:
        f.refuse("is no classifier", "estimator")
    count = len(estimator.classes_)
    shape = (1 if count == 2 else count,)
    model = CalibratedClassifier(estimator)
    return model.calibrated(f.array("slope", shape), f.array("offset", shape))
