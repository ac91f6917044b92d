"""Model files: ``save`` and ``load``, without pickle.

A ``*.asset`` file (see ``storage.container``) holds one fitted estimator, by itself or behind a scaler
in a scikit-learn ``Pipeline``. Its header:

    model        the class
    params       those of ``get_params``
    fitted       the attributes of the fit; what ``partial_fit`` and ``warm_start`` go on from included,
                 and the models of cells, which may be estimators themselves
    scaling      the scaler's class, parameters and attributes, or null
    provenance   the versions, the time, and what the caller adds

Predictions of a loaded model are bitwise those of the saved one, and so are its later batches.
"""

from __future__ import annotations

import platform
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import scipy
import sklearn
from sklearn.frozen import FrozenEstimator
from sklearn.utils.validation import check_is_fitted

import asset_svm
from asset_svm.estimators import AssetClassifier, AssetRegressor, FourierMap, NystroemMap
from asset_svm.estimators.calibration import CalibratedClassifier, calibrated
from asset_svm.estimators.validation import FROM_VALIDATION, results
from asset_svm.exceptions import ModelFileError
from asset_svm.families.beginning import Beginning
from asset_svm.families.cells import CellDecision, CellModels, Constant, FittedCells, Nested
from asset_svm.families.decision import Decision
from asset_svm.families.one_map import FittedMap
from asset_svm.families.rows import Rows
from asset_svm.storage import container, encoding
from asset_svm.storage.encoding import Decoder, Encoder
from asset_svm.tasks import Classification, Regression

CLASSES = {
    **encoding.CLASSES,
    **{
        cls.__name__: cls
        for cls in (
            Beginning,
            CellDecision,
            CellModels,
            Classification,
            Constant,
            Decision,
            FittedCells,
            FittedMap,
            Nested,
            Regression,
            Rows,
        )
    },
}
MODELS: dict[str, Any] = {
    cls.__name__: cls for cls in (AssetClassifier, AssetRegressor, CalibratedClassifier)
}
MAPS: dict[str, Any] = {"NystroemMap": NystroemMap, "FourierMap": FourierMap}
SCALERS = ("StandardScaler", "MinMaxScaler", "MaxAbsScaler")
KIND = "model"
EXTRA = ("compact_error_", "n_shards_", "n_rounds_")
"""Attributes of 0.1.0 that some kinds of fits have besides."""


def save(model: Any, path: str | Path, *, provenance: dict[str, Any] | None = None) -> None:
    """Write a fitted model to a file.

    Parameters
    ----------
    model : AssetClassifier, AssetRegressor, CalibratedClassifierCV, or Pipeline
        scikit-learn's CalibratedClassifierCV of an AssetClassifier, with ensemble=False and sigmoids,
        is loaded as a CalibratedClassifier. A pipeline has one scaler (StandardScaler, MinMaxScaler,
        MaxAbsScaler) and one of them. Those of ``asset_svm.dask`` are saved as the plain ones that they
        become by ``to_local``.
    path : path
        By convention ``*.asset``. Written whole or not at all; an old file stays until then.
    provenance : dict, optional
        What the file shall tell of where the model comes from.

    Notes
    -----
    A model of ``device="cuda"`` is saved as one of the CPU, since a file goes anywhere; after ``load``,
    ``set_params(device="cuda")`` sends it back.

    Raises
    ------
    ValueError
        The model has a part that is not numbers, such as a callable kernel.
    """
    scaler, estimator = _steps(model)
    check_is_fitted(estimator)
    kernel = getattr(estimator, "estimator", estimator).kernel
    if callable(kernel):
        raise ValueError(
            f"kernel={kernel!r} is a function, and a model file holds no code; a model with "
            "a callable kernel cannot be saved."
        )
    encode = ModelEncoder()
    header = {
        **encode.model(estimator),
        "scaling": None if scaler is None else encode(scaler_parts(scaler), "scaling"),
        "provenance": encode({**machine(), **(provenance or {})}, "provenance"),
    }
    container.write(path, KIND, header, encode.tensors)


def load(path: str | Path) -> Any:
    """Read a model file; executes nothing of it.

    Returns
    -------
    model : AssetClassifier, AssetRegressor, CalibratedClassifier, or Pipeline
        A pipeline of a scaler and one of them.

    Raises
    ------
    ModelFileError
        The file is cut, damaged, something else, or of a newer version.
    """
    header, tensors = container.read(path, KIND)
    decode = ModelDecoder(tensors, path)
    try:
        estimator = decode.model(header)
        if header["scaling"] is None:
            return estimator
        from sklearn.pipeline import Pipeline

        scaler = scaler_of(decode(header["scaling"]))
    except ModelFileError:
        raise
    except (
        LookupError,
        TypeError,
        ValueError,
        AttributeError,
        ArithmeticError,
        RecursionError,
    ) as error:
        why = " ".join(
            repr(error).split()
        )  # an error of a parameter shows its value, which may be anything
        why = why if len(why) <= 300 else f"{why[:300]}..."
        raise ModelFileError(f"{path} is not a model that can be read ({why}).") from None
    return Pipeline([("scale", scaler), ("svm", estimator)])


def read_provenance(path: str | Path) -> dict[str, Any]:
    """What a model file tells of its origin."""
    header, tensors = container.read(path, KIND)
    told: dict[str, Any] = Decoder(tensors, path)(header["provenance"])
    return told


def machine() -> dict[str, str]:
    """The versions at work, and the time."""
    return {
        "asset_svm": asset_svm.__version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "scikit_learn": sklearn.__version__,
        "platform": f"{platform.system()} {platform.machine()}",
        "saved": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def _steps(model: Any) -> tuple[Any, Any]:
    """(scaler or None, estimator)."""
    from sklearn.pipeline import Pipeline

    from asset_svm.search.base import SearchEstimator

    parts = [step for _, step in model.steps] if isinstance(model, Pipeline) else [model]
    estimator, before = calibrated(parts[-1]), parts[:-1]
    if hasattr(estimator, "to_local"):  # trained on a cluster
        estimator = estimator.to_local()
    if isinstance(estimator, SearchEstimator):
        raise ValueError(
            f"A {type(estimator).__name__} cannot be saved, only the model that it found; save its "
            "best_estimator_."
        )
    fits = MODELS.get(type(estimator).__name__) is type(estimator) and len(before) <= 1
    if not fits or any(type(part).__name__ not in SCALERS for part in before):
        names = [type(part).__name__ for part in parts]
        raise ValueError(
            f"A {' and '.join(names)} cannot be saved; save an AssetClassifier or AssetRegressor, "
            f"alone or in a Pipeline behind one of {', '.join(SCALERS)}."
        )
    return (before[0] if before else None), estimator


class ModelEncoder(Encoder):
    """Encodes estimators too."""

    classes = CLASSES

    def model(self, estimator: Any) -> dict[str, Any]:
        """The JSON of an estimator."""
        return {
            "model": type(estimator).__name__,
            "params": _encoded_params(self, estimator),
            "fitted": _encoded_results(self, estimator),
        }

    def _object(self, value: Any, name: str) -> dict[str, Any]:
        if MODELS.get(type(value).__name__) is type(value):
            inner = ModelEncoder()
            inner.tensors, inner.prefix = self.tensors, f"{self.prefix}{name}/"
            return {"$model": inner.model(value)}
        return super()._object(value, name)


class ModelDecoder(Decoder):
    """Makes estimators too."""

    def _class(self, value: dict[str, Any]) -> Any:
        made = super()._class(value)
        if isinstance(made, Nested) and not isinstance(made.model, FittedMap):  # of 0.1.0
            return replace(made, model=made.model._fitted)
        return made

    classes = CLASSES
    kinds = (*Decoder.kinds, "model")

    def model(self, saved: dict[str, Any]) -> Any:
        """The estimator of its JSON."""
        if saved["model"] not in MODELS:
            raise ModelFileError(f"{self.path} holds a {saved['model']!r}, which is not known.")
        estimator = MODELS[saved["model"]]()
        _restore_params(self, estimator, saved["params"], self.path)
        _restore_results(self, estimator, saved["fitted"])
        return estimator

    def _model(self, value: dict[str, Any]) -> Any:
        return ModelDecoder(self.tensors, self.path).model(value["$model"])


# Parameters -------------------------------------------------------------------------------------


def _encoded_params(encode: Encoder, estimator: Any) -> dict[str, Any]:
    params = estimator.get_params(deep=False)
    if params.get("device") == "cuda":  # a card may not be where the file is read
        params["device"] = "cpu"
    given = params.pop("approximation", None)
    encoded = {name: encode(value, name) for name, value in params.items()}
    if given is None or isinstance(given, str):
        return encoded if given is None else {**encoded, "approximation": given}
    frozen = isinstance(given, FrozenEstimator)
    given = given.estimator if frozen else given
    features = encode(getattr(given, "features_", None), "approximation.features")
    encoded["approximation"] = {
        "map": type(given).__name__,
        "params": _encoded_params(encode, given),
        "frozen": frozen,
        "features": features,
    }
    return encoded


def _restore_params(decode: Decoder, estimator: Any, params: dict[str, Any], path: Any) -> None:
    known = estimator.get_params(deep=False)
    unknown = [name for name in params if name not in known]
    if unknown:
        raise ModelFileError(
            f"{path} has the parameter {unknown[0]!r}, which this asset-svm does not know."
        )
    given = params.get("approximation")
    plain = {name: decode(value) for name, value in params.items() if name != "approximation"}
    if isinstance(given, dict):
        made = MAPS[given["map"]]()
        _restore_params(decode, made, given["params"], path)
        features = decode(given["features"])
        if features is not None:
            made.features_, made.n_features_in_ = features, features.n_features_in
        plain["approximation"] = FrozenEstimator(made) if given["frozen"] else made
    elif given is not None:
        plain["approximation"] = given
    estimator.set_params(**plain)


# Attributes of the fit --------------------------------------------------------------------------


def _encoded_results(encode: Encoder, estimator: Any) -> dict[str, Any]:
    """The model, and what validation has noted; of the key of the map only whether it is current."""
    fitted = {n: v for n, v in results(estimator).items() if n in (*FROM_VALIDATION, "_fitted")}
    if isinstance(estimator, CalibratedClassifier):
        return {name: encode(value, name) for name, value in results(estimator).items()}
    model = fitted["_fitted"]
    current = isinstance(model, FittedMap) and model.map_key == estimator._settings().map_key
    fitted["_fitted"] = _without_key(model)
    encoded = {name: encode(value, name) for name, value in fitted.items()}
    encoded["_map_is_current"] = current
    return encoded


def _without_key(model: Any) -> Any:
    return replace(model, map_key=None) if isinstance(model, FittedMap) else model


def _restore_results(decode: Decoder, estimator: Any, fitted: dict[str, Any]) -> None:
    fitted = {name: decode(value) for name, value in fitted.items()}
    current = fitted.pop("_map_is_current", False)
    if isinstance(estimator, CalibratedClassifier):
        estimator.__dict__.update(fitted)
        return
    model = fitted.pop("_fitted", None)
    if model is None:
        model = upgraded(estimator, fitted)
        fitted = {name: value for name, value in fitted.items() if name in FROM_VALIDATION}
    if not callable(getattr(model, "decision", None)):
        raise ModelFileError(f"{decode.path} has no decision function.")
    if current:
        model = replace(model, map_key=estimator._settings().map_key)
    estimator.__dict__.update(fitted)
    estimator._keep(model)


def upgraded(estimator: Any, old: dict[str, Any]) -> Any:
    """The model of a file of 0.1.0, which has the attributes of an estimator."""
    settings = estimator._settings()
    task = estimator._task(settings, old.get("classes_"))
    if task.numeric:
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
        **shared,
    )


# Scaling ----------------------------------------------------------------------------------------


def scaler_parts(scaler: Any) -> dict[str, Any]:
    """What a scaler is made of: its class, parameters and fitted attributes."""
    check_is_fitted(scaler)
    fitted = {name: value for name, value in vars(scaler).items() if name.endswith("_")}
    return {"class": type(scaler).__name__, "params": scaler.get_params(), "fitted": fitted}


def scaler_of(parts: dict[str, Any]) -> Any:
    """The scaler that is made of these parts."""
    from sklearn import preprocessing

    if parts["class"] not in SCALERS:
        raise LookupError(parts["class"])
    scaler = getattr(preprocessing, parts["class"])(**parts["params"])
    vars(scaler).update(parts["fitted"])
    return scaler
