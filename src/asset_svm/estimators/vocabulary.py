"""Words of SVC and its kin that mean something else here, and the answer to each.

An unknown parameter is a TypeError of Python's, an unknown attribute an AttributeError: they stay that,
and say what to use instead.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any, ClassVar

from sklearn.base import BaseEstimator

CALIBRATE = (
    "wrap the classifier in sklearn.calibration.CalibratedClassifierCV(..., ensemble=False), or run: "
    "asset train --probability"
)
CALIBRATE_OR_LOGISTIC = f'{CALIBRATE}; or set loss="logistic", and leave multi_class at "ovr"'
PARAMETERS = {
    "probability": (
        "SVC",
        "a model has decisions, and probabilities are made of them after it",
        CALIBRATE,
    ),
    "decision_function_shape": (
        "SVC",
        "there is one decision a class, as of SVC by default",
        'leave it out; how classes are separated is multi_class="ovr" or "ovo"',
    ),
    "break_ties": (
        "SVC",
        "predict takes the class with the largest decision in any case",
        "leave it out",
    ),
    "shrinking": ("SVC", "there is no working set that could shrink", "leave it out"),
    "cache_size": ("SVC", "no kernel values are cached", "bound the memory by memory_limit, in bytes"),
    "nu": (
        "NuSVC",
        "errors have a price, not a share of the rows",
        "set C, or search it by AssetClassifierCV or AssetRegressorCV; the share of outliers is nu of "
        "AssetOutlierDetector",
    ),
    "penalty": ("LinearSVC", "it is the squared norm of the weights", "leave it out, and set C"),
    "dual": ("LinearSVC", "there is one solver for any shape of X", "leave it out"),
    "multi_class": ("LinearSVC", "there are no classes", "leave it out"),
    "intercept_scaling": (
        "LinearSVC",
        "an intercept has no part in the penalty",
        "leave it out, or bound the intercept by intercept_bound",
    ),
}
"""Whose parameter each is, why it is none here, and what to do."""

FEWER_LOSSES = (
    "a search is one for the loss of SVC and SVR",
    "leave it out, or search that estimator by sklearn.model_selection.GridSearchCV",
)
QUANTILES = {
    "quantiles": ("AssetQuantileRegressor", "a row has one prediction here", "use that estimator"),
}
"""Answers of regressions of one number."""

LANDMARKS = (
    "decisions are sums over landmarks, not over support vectors; see components_ and dual_coef_, or "
    "set n_cells=1 for the exact SVM of up to 16384 rows"
)
HOW_IT_ENDED = "objective_, dual_gap_ and history_ tell how a fit ended"
ATTRIBUTES = {
    "support_": LANDMARKS,
    "support_vectors_": LANDMARKS,
    "n_support_": LANDMARKS,
    "fit_status_": HOW_IT_ENDED,
    "shape_fit_": "n_features_in_ has the number of columns",
    "class_weight_": "class_weight has the weights as they were given",
    "probA_": CALIBRATE,
    "probB_": CALIBRATE,
    "predict_proba": CALIBRATE_OR_LOGISTIC,
    "predict_log_proba": CALIBRATE_OR_LOGISTIC,
}
"""What to use instead of an attribute."""


def _answer(estimator: SpeaksOfSVC, name: str, value: Any) -> str:
    whose, why, advice = (PARAMETERS | estimator._answers)[name]
    cls = type(estimator).__name__
    return f"{name}={value!r} is a parameter of {whose}, and none of {cls}: {why}; {advice}."


def _answering(construct: Callable[..., None]) -> Callable[..., None]:
    known = set(inspect.signature(construct).parameters)

    @wraps(construct)
    def answering(self: Any, *args: Any, **params: Any) -> None:
        for name in params.keys() & (PARAMETERS | self._answers).keys() - known:
            raise TypeError(_answer(self, name, params[name]))
        construct(self, *args, **params)

    return answering


class SpeaksOfSVC(BaseEstimator):
    """An estimator that knows what SVC's words are here."""

    _answers: ClassVar[dict[str, tuple[str, str, str]]] = {}
    """More parameters that an estimator has not, as in ``PARAMETERS``."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "__init__" in cls.__dict__:
            cls.__init__ = _answering(cls.__init__)  # type: ignore[method-assign]

    def set_params(self, **params: Any) -> Any:
        """Set parameters, as ``BaseEstimator.set_params``."""
        answered = (PARAMETERS | self._answers).keys()
        for name in params.keys() & answered - set(self._get_param_names()):
            raise ValueError(_answer(self, name, params[name]))
        return super().set_params(**params)

    def __getattr__(self, name: str) -> Any:
        """Say what to use instead of an attribute that is not there."""
        message = f"{type(self).__name__!r} object has no attribute {name!r}"
        if name in ATTRIBUTES:
            message = f"{message}: {ATTRIBUTES[name]}."
        raise AttributeError(message)
