"""What every fit of ours obeys: checked rows and weights, all or nothing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from sklearn.utils.validation import _check_sample_weight

FLOATS = [np.float64, np.float32]
PRIVATE_RESULTS = (
    "_session",
    "_decision",
    "_offset",
    "_cell_kernel",
    "_stream_seed",
    "_fitted_map_key",
    "_fitted_labels",
)
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


def check_weight(sample_weight: Any, X: Any) -> np.ndarray:
    """Weights of the rows, float64, none negative, with a finite sum."""
    weight = _check_sample_weight(sample_weight, X, dtype=np.float64)
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
