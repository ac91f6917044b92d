"""What every fit of ours obeys: checked rows and weights, all or nothing."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import numpy as np
from sklearn import config_context, get_config
from sklearn.utils import assert_all_finite
from sklearn.utils.validation import _check_sample_weight, validate_data

from asset_svm.settings.kinds import check_kind, check_targets
from asset_svm.threads.blas import blas_threads

FLOATS = [np.float64, np.float32]
PRIVATE_RESULTS = (
    "_session",
    "_beginning",
    "_decision",
    "_offset",
    "_cell_kernel",
    "_stream_seed",
    "_fitted_map_key",
    "_fitted_labels",
)
LARGE = 1 << 26
"""Bytes from which threads look for numbers that are not finite."""
FROM_VALIDATION = ("n_features_in_", "feature_names_in_", "classes_")


def is_result(name: str) -> bool:
    """Whether a fit writes this attribute: public ones end in "_"."""
    return name in PRIVATE_RESULTS or (name.endswith("_") and not name.startswith("_"))


def results(estimator: Any) -> dict[str, Any]:
    """The attributes that fits have written."""
    return {name: value for name, value in estimator.__dict__.items() if is_result(name)}


def forget(estimator: Any, *, keep: tuple[str, ...] = ()) -> None:
    """Remove the attributes that fits have written."""
    for name in results(estimator):
        if name not in keep:
            del estimator.__dict__[name]


@contextmanager
def all_or_nothing(estimator: Any) -> Iterator[None]:
    """Restore the attributes of an earlier fit when this one fails."""
    before = results(estimator)
    try:
        yield
    except BaseException:
        forget(estimator)
        estimator.__dict__.update(before)
        raise


def validate_rows(estimator: Any, X: Any, y: Any = "no_validation", **options: Any) -> Any:
    """``validate_data`` for rows, with threads that look for NaN and infinity in large arrays.

    What numpy would make numbers of in silence is refused (``kinds``).
    """
    options = dict(accept_sparse="csr", dtype=FLOATS) | options
    check_kind(X, "X")
    check_targets(y, numeric=bool(options.get("y_numeric")))
    large = isinstance(X, np.ndarray) and X.dtype in FLOATS and X.nbytes >= LARGE
    if not large or get_config()["assume_finite"]:
        return validate_data(estimator, X, y, **options)
    with config_context(assume_finite=True):
        checked = validate_data(estimator, X, y, **options)
    name = type(estimator).__name__
    parts = np.array_split(X, max(blas_threads(), 1))
    with ThreadPoolExecutor(len(parts)) as pool:
        finite = all(pool.map(_has_finite_sum, parts))
    if not finite:  # or the sum overflowed: the slow look decides
        assert_all_finite(X, estimator_name=name, input_name="X")
    if not isinstance(y, str):
        assert_all_finite(checked[1], estimator_name=name, input_name="y")
    return checked


def _has_finite_sum(part: np.ndarray) -> bool:
    with np.errstate(all="ignore"):  # of this thread
        return bool(np.isfinite(part.sum()))


def check_weight(sample_weight: Any, X: Any, *, part: bool = False) -> np.ndarray:
    """Weights of the rows, float64, none negative, with a finite sum.

    All of them may be 0 where the rows are a ``part`` of others: there is nothing new in it.
    """
    check_kind(sample_weight, "sample_weight")
    none = part and sample_weight is not None and not np.any(np.asarray(sample_weight))
    weight = _check_sample_weight(
        np.ones_like(sample_weight, dtype=np.float64) if none else sample_weight, X, dtype=np.float64
    )
    if none:
        return np.zeros_like(weight)
    if (weight < 0).any():
        raise ValueError(
            f"sample_weight has a negative value ({weight.min():g}); weights must be 0 or above."
        )
    if not np.isfinite(weight.sum()):
        raise ValueError(
            f"sample_weight has values up to {weight.max():g}, whose sum is not finite; divide the "
            "weights by their largest value."
        )
    return weight
