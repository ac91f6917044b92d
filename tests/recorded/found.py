"""What is compared of a model, its hashes, and how far two of them are apart."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np
import scipy.sparse as sp

Found = dict[str, np.ndarray]
"""Parts of a result by their names."""

ATTRIBUTES = (
    "intercept_",
    "dual_coef_",
    "components_",
    "component_indices_",
    "approximation_error_",
    "n_components_",
    "gamma_",
    "classes_",
    "lam_",
    "step_scale_",
    "n_iter_",
    "t_",
    "objective_",
    "dual_gap_",
    "n_cells_",
    "support_",
    "n_support_",
    "support_vectors_",
    "n_shards_",
    "n_rounds_",
)
"""Of a model, whichever it has."""
SEARCH_ATTRIBUTES = ("best_score_", "best_index_", "Cs_", "gammas_", "epsilons_", "path_coefs_")
SCORES = re.compile(r"mean_test_score|split\d+_test_score|rank_test_score|n_resources|iter")
"""Columns of ``cv_results_`` that do not hang on the clock."""


def model_parts(model: Any, X_new: Any) -> Found:
    """Decisions on new rows, the solver's vector, and the public attributes of a model.

    Of a pipeline, decisions are its own and attributes those of its last step.
    """
    found = {"decisions": as_array(decide(model, X_new))}
    last = model[-1] if hasattr(model, "steps") else model
    last = getattr(last, "estimator", last)  # of probabilities
    for name in (vector_name(), *ATTRIBUTES):
        value = getattr(last, name, None)
        if value is not None:
            found["vector" if name == vector_name() else name] = as_array(value)
    return found


def search_parts(search: Any, X_new: Any) -> Found:
    """What a search chose, its scores, and the model that it trained."""
    found = {"best_params_": as_array(json.dumps(search.best_params_, sort_keys=True))}
    for name in SEARCH_ATTRIBUTES:
        value = getattr(search, name, None)
        if value is not None:
            found[name] = as_array(value)
    for name, column in search.cv_results_.items():
        if SCORES.fullmatch(name):
            found[name] = as_array(column)
    if hasattr(search, "best_estimator_"):
        found |= model_parts(search.best_estimator_, X_new)
    return found


def decide(model: Any, X: Any) -> Any:
    """Probabilities, decisions or predictions: the first that the model has."""
    for method in ("predict_proba", "decision_function", "predict"):
        if hasattr(model, method):
            return getattr(model, method)(X)
    raise TypeError(f"{type(model).__name__} decides nothing.")


@cache
def vector_name() -> str:
    """The attribute that holds the solver's vector, in the feature space of the map.

    It is ``coef_``, or, where that is kept for weights of columns, the one that a model without such
    weights names when it is asked for them.
    """
    library: Any = import_module("asset_svm")
    X = np.random.default_rng(0).normal(size=(30, 3))
    model = library.AssetClassifier(n_components=8, rank=4, max_iter=1, random_state=0).fit(
        X, X[:, 0] > 0
    )
    try:
        return "coef_" if model.coef_ is not None else ""
    except AttributeError as error:
        for name in re.findall(r"\b[a-z_]+_\b", str(error).partition(";")[2]):
            value: Any = getattr(model, name, None)
            if np.shape(value) == (1, model.n_components_):
                return str(name)
        raise


def as_array(value: Any) -> np.ndarray:
    """An array that a file can hold without pickle."""
    array = np.asarray(value.toarray() if sp.issparse(value) else value)
    return array.astype(str) if array.dtype == object else array


def digest(array: np.ndarray) -> str:
    """A hash of the type, the shape and every bit."""
    array = np.ascontiguousarray(array)
    text = f"{array.dtype.str} {array.shape} ".encode()
    return hashlib.sha256(text + array.tobytes()).hexdigest()[:16]


def digests(found: Mapping[str, np.ndarray]) -> dict[str, str]:
    """The hashes of all parts."""
    return {name: digest(array) for name, array in found.items()}


def differing(old: Mapping[str, str], new: Mapping[str, str]) -> list[str]:
    """The parts whose hashes differ, or that only one side has; decisions first."""
    return [name for name in {**old, **new} if old.get(name) != new.get(name)]


def distance(old: np.ndarray | None, new: np.ndarray | None) -> float:
    """The largest difference, relative to the largest number; infinite where there is none to tell."""
    if old is None or new is None or old.shape != new.shape:
        return float("inf")
    if old.dtype.kind not in "fiub" or new.dtype.kind not in "fiub":
        return 0.0 if np.array_equal(old, new) else float("inf")
    old, new = old.astype(np.float64), new.astype(np.float64)
    if not np.array_equal(np.isfinite(old), np.isfinite(new)):
        return float("inf")
    finite = np.isfinite(old)
    size = np.abs(old[finite]).max(initial=0.0)
    apart = np.abs(old[finite] - new[finite]).max(initial=0.0)
    return float(apart / size) if apart and size else float(apart and np.inf)
