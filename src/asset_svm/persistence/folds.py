"""scikit-learn's calibration: several models, a pipeline, or isotonic regression.

CalibratedClassifierCV    parameters, method, classes, models
model                     estimator, frozen, calibrators
calibrator                a, b: expit(-(a decision + b)); or x, y, low, high, increasing: y at x, linear
in between
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator

from asset_svm.persistence.reading import FLOATS, Record
from asset_svm.persistence.writing import Writer


def write_folds(
    write: Writer, model: Any, name: str, write_any: Callable[[Writer, Any, str], dict[str, Any]]
) -> dict[str, Any]:
    """A CalibratedClassifierCV; ``write_any`` writes the models in it."""
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


def read_folds(
    record: Record,
    read_any: Callable[[Record], tuple[Any, int | None]],
    columns_of: Callable[[Any], int],
) -> Any:
    """A CalibratedClassifierCV; ``read_any`` reads the models in it."""
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
