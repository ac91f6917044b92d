"""scikit-learn's calibration: several models, a pipeline, or isotonic regression.

CalibratedClassifierCV    parameters, method, classes, models
model                     estimator, frozen, calibrators
calibrator                a, b: expit(-(a decision + b)); or x, y, low, high, increasing: y at x, linear
in between
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.frozen import FrozenEstimator

from asset_svm.storage.fields import FLOATS, Fields, Writing
from asset_svm.storage.writing import Writer

if TYPE_CHECKING:  # imported where it is met: a model of ours alone does not need it
    from sklearn.calibration import CalibratedClassifierCV

METHODS = ("sigmoid", "isotonic")


def write_folds(
    write: Writer,
    model: CalibratedClassifierCV,
    name: str,
    write_any: Callable[[Writer, BaseEstimator, str], dict[str, Any]],
) -> dict[str, Any]:
    """The record of a CalibratedClassifierCV; ``write_any`` writes the models in it."""
    if model.method not in METHODS:
        raise ValueError(
            f"A CalibratedClassifierCV with method={model.method!r} cannot be saved; set method to "
            '"sigmoid" or "isotonic".'
        )
    params = {each: getattr(model, each) for each in ("ensemble", "cv", "n_jobs")}
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
                **Writing.of(write, _calibrators, f"{name}.{i}", each, model.method),
            }
            for i, each in enumerate(model.calibrated_classifiers_)
        ],
    }


def _thawed(estimator: BaseEstimator) -> BaseEstimator:
    return estimator.estimator if isinstance(estimator, FrozenEstimator) else estimator


def read_folds(
    f: Fields,
    read_any: Callable[[Fields], tuple[BaseEstimator, int | None]],
    columns_of: Callable[[BaseEstimator], int],
) -> CalibratedClassifierCV:
    """The CalibratedClassifierCV of its record; ``read_any`` reads the models in it."""
    from sklearn.calibration import CalibratedClassifierCV, _CalibratedClassifier

    method, classes = f.text("method", METHODS), f.labels("classes")

    def fold(f: Fields) -> Any:
        estimator, width = f.record("estimator", read_any)
        own = getattr(estimator, "classes_", None)
        if width is not None or own is None:
            f.refuse("is no classifier", "estimator")
        known = set(own.tolist()) <= set(classes.tolist())
        f.check(known, "has classes that are not known", "estimator")
        calibrators, count = _calibrators(f, method), 1 if len(own) == 2 else len(own)
        why = f"are {len(calibrators)} for {len(own)} classes"
        f.check(len(calibrators) == count, why, "calibrators")
        inner = FrozenEstimator(estimator) if f.flag("frozen") else estimator
        return _CalibratedClassifier(inner, calibrators, classes=classes, method=method)

    models = f.each("models", "record", fold)
    widths = {columns_of(_thawed(each.estimator)) for each in models}
    f.check(len(widths) == 1, "are none, or of different columns", "models")
    params, first = f.mapping("parameters"), models[0].estimator
    made = CalibratedClassifierCV(clone(first), method=method, **params)
    made._validate_params()
    made.calibrated_classifiers_, made.classes_ = models, classes
    for name in ("n_features_in_", "feature_names_in_"):
        if hasattr(first, name):
            setattr(made, name, getattr(first, name))
    return made


def _calibrators(f: Fields, method: str) -> list[Any]:
    return f.each("calibrators", "record", _sigmoid if method == "sigmoid" else _isotonic)


def _sigmoid(f: Fields) -> Any:
    from sklearn.calibration import _SigmoidCalibration

    made = _SigmoidCalibration()
    made.a_, made.b_ = (np.float64(f.number(name, of=f"{name}_")) for name in ("a", "b"))
    return made


def _isotonic(f: Fields) -> Any:
    from sklearn.isotonic import IsotonicRegression

    x = f.array("x", (None,), FLOATS, of="X_thresholds_")
    y = f.array("y", (len(x),), FLOATS, of="y_thresholds_")
    f.check(len(x) and (np.diff(x) > 0.0).all(), "is not in order", "x")
    low, high = (f.number(name, of=of) for name, of in (("low", "X_min_"), ("high", "X_max_")))
    made = IsotonicRegression(out_of_bounds="clip")
    made.X_thresholds_, made.y_thresholds_ = x, y
    made.X_min_, made.X_max_ = x.dtype.type(low), x.dtype.type(high)
    f.check(x[0] <= made.X_min_ <= made.X_max_ <= x[-1], "is out of the range of x", "low")
    made.increasing_ = f.flag("increasing", of="increasing_")
    made._build_f(x, y)
    return made
