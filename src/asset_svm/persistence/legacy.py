"""Files of format 1, those of 0.1.0: read-only, and for ever.

They name classes of that version and hold the attributes of an estimator (``decoding``):

    model        the class
    params       those of ``get_params``
    fitted       the attributes of the fit; the models of cells may be estimators themselves
    scaling      the scaler's class, parameters and attributes, or null
    provenance   the versions, the time, and what the caller added

What is read is written in the format of today, in memory: reading that checks every part of it.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from sklearn.base import BaseEstimator
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline

from asset_svm.estimators import AssetClassifier, AssetRegressor, FourierMap, NystroemMap
from asset_svm.estimators.calibration import CalibratedClassifier
from asset_svm.estimators.inside import adopt, fitted_of, settings_of, task_of
from asset_svm.estimators.validation import FROM_VALIDATION
from asset_svm.exceptions import ModelFileError
from asset_svm.families import Fitted
from asset_svm.families.cells import FittedCells, Nested
from asset_svm.families.one_map import FittedMap
from asset_svm.families.one_map.fitted import COMPACTED
from asset_svm.persistence.composed import write_model
from asset_svm.persistence.decoding import Decoder
from asset_svm.persistence.estimators import Estimator, GivenMap
from asset_svm.persistence.transformers import SCALERS
from asset_svm.storage.fields import Array
from asset_svm.storage.writing import Writer
from asset_svm.tasks import Regression

MODELS: dict[str, type[Estimator | CalibratedClassifier]] = {
    cls.__name__: cls for cls in (AssetClassifier, AssetRegressor, CalibratedClassifier)
}
MAPS: dict[str, type[GivenMap]] = {"NystroemMap": NystroemMap, "FourierMap": FourierMap}
EXTRA = ("compact_error_", "n_shards_", "n_rounds_")
"""The attributes that some kinds of fits had besides."""


def upgraded(header: Any, tensors: dict[str, Array], path: str | Path) -> tuple[Any, dict[str, Array]]:
    """The header and the tensors of the same model in the format of today."""
    decode = OldDecoder(tensors, path)
    model = estimator = decode.model(header)
    if header["scaling"] is not None:
        model = Pipeline([("scale", scaler_of(decode(header["scaling"]))), ("svm", estimator)])
    write = Writer(resumable=fitted_of(estimator).fixed is None)
    written = write_model(write, model, "model")
    return {"model": written, "provenance": {}}, write.tensors


def provenance(header: Any, tensors: dict[str, Array], path: str | Path) -> dict[str, Any]:
    """What the file tells of its origin."""
    told = Decoder(tensors, path)(header["provenance"])
    if not isinstance(told, dict):
        raise ModelFileError(f"{path} has no provenance.")
    return told


class OldDecoder(Decoder):
    """Turns JSON into objects, estimators among them."""

    kinds = (*Decoder.kinds, "model")

    def _class(self, value: dict[str, Any]) -> Any:
        made = super()._class(value)
        if not isinstance(made, Nested):
            return made
        inner: Any = made.model  # an estimator, in these files
        return replace(made, model=fitted_of(inner))

    def _model(self, value: dict[str, Any]) -> Any:
        return OldDecoder(self.tensors, self.path).model(value["$model"])

    def model(self, saved: dict[str, Any]) -> Estimator | CalibratedClassifier:
        """The estimator that its JSON stands for."""
        if saved["model"] not in MODELS:
            raise ModelFileError(f"{self.path} holds a {saved['model']!r}, which is not known.")
        estimator = MODELS[saved["model"]]()
        self._set_params(estimator, saved["params"])
        fitted = {name: self(value) for name, value in saved["fitted"].items()}
        current = fitted.pop("_map_is_current", False)
        if isinstance(estimator, CalibratedClassifier):
            estimator.__dict__.update(fitted)
            return estimator
        model = model_of_old(estimator, fitted)
        if current and isinstance(model, FittedMap):
            model = replace(model, map_key=settings_of(estimator).map_key)
        estimator.__dict__.update({n: v for n, v in fitted.items() if n in FROM_VALIDATION})
        adopt(estimator, model)
        return estimator

    def _set_params(self, estimator: BaseEstimator, params: dict[str, Any]) -> None:
        known = estimator.get_params(deep=False)
        unknown = [name for name in params if name not in known]
        if unknown:
            raise ModelFileError(
                f"{self.path} has the parameter {unknown[0]!r}, which this asset-svm does not know."
            )
        given = params.get("approximation")
        plain = {name: self(value) for name, value in params.items() if name != "approximation"}
        if isinstance(given, dict):
            made = MAPS[given["map"]]()
            self._set_params(made, given["params"])
            features = self(given["features"])
            if features is not None:
                made.features_, made.n_features_in_ = features, features.n_features_in
            plain["approximation"] = FrozenEstimator(made) if given["frozen"] else made
        elif given is not None:
            plain["approximation"] = given
        estimator.set_params(**plain)


def model_of_old(estimator: Estimator, old: dict[str, Any]) -> Fitted:
    """The model of a file of 0.1.0, which has the attributes of an estimator."""
    task = task_of(estimator, settings_of(estimator), old.get("classes_"))
    if isinstance(task, Regression):
        task = replace(task, offset=old["_offset"])
    shared = {
        "task": task,
        "decision": old["_decision"],
        "lam": old["lam_"],
        "n_iter": old["n_iter_"],
        "steps": old["t_"],
        "objective": old["objective_"],
        "dual_gap": old["dual_gap_"],
        "history": old["history_"],
        "beginning": old.get("_beginning"),
        "extra": {name: old[name] for name in EXTRA if name in old},
    }
    if "cells_" in old:
        return FittedCells(
            kernel=old["_cell_kernel"],
            seed=old["_stream_seed"],
            support=old.get("support_"),
            n_support=old.get("n_support_"),
            **shared,
        )
    return FittedMap(
        coef=old["coef_"],
        phi=old["feature_map_"],
        indices=old.get("component_indices_"),
        session=old["_session"],
        map_key=None,
        step_scale=old.get("step_scale_"),
        component_search=old.get("component_search_"),
        fixed=COMPACTED if old["_session"] is None else None,
        **shared,
    )


def scaler_of(parts: dict[str, Any]) -> BaseEstimator:
    """The scaler that is made of these parts."""
    from sklearn import preprocessing

    if parts["class"] not in SCALERS:
        raise LookupError(parts["class"])
    scaler = getattr(preprocessing, parts["class"])(**parts["params"])
    vars(scaler).update(parts["fitted"])
    return scaler
