"""What every fit of ours obeys: checked rows and weights, all or nothing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn import config_context, get_config
from sklearn.base import BaseEstimator
from sklearn.utils import assert_all_finite
from sklearn.utils.validation import (
    _check_n_features,
    _check_sample_weight,
    check_array,
    column_or_1d,
    validate_data,
)

from asset_svm.backends.device import on_host
from asset_svm.encoding.frames import as_table, is_frame
from asset_svm.encoding.table import gaps
from asset_svm.families.base import Fitted
from asset_svm.settings.kinds import check_kind, check_targets
from asset_svm.tasks import Outputs, Task
from asset_svm.threads.granted import granted
from asset_svm.threads.team import side_by_side

FLOATS = [np.float64, np.float32]
PRIVATE_RESULTS = (
    "_fitted", "_board", "_as_given", "_intervals", "_learnt_rows", "_looked_rows", "_default_score",
)  # fmt: skip
LARGE = 1 << 22
"""Bytes from which threads look for numbers that are not finite."""
FROM_VALIDATION = ("n_features_in_", "feature_names_in_", "classes_", "encoder_")


def is_result(name: str) -> bool:
    """Whether a fit writes this attribute: public ones end in "_"."""
    return name in PRIVATE_RESULTS or (name.endswith("_") and not name.startswith("_"))


def results(estimator: BaseEstimator) -> dict[str, Any]:
    """The attributes that fits have written."""
    return {name: value for name, value in estimator.__dict__.items() if is_result(name)}


def forget(estimator: BaseEstimator, *, keep: tuple[str, ...] = ()) -> None:
    """Remove the attributes that fits have written."""
    for name in results(estimator):
        if name not in keep:
            del estimator.__dict__[name]


@contextmanager
def all_or_nothing(estimator: BaseEstimator) -> Iterator[None]:
    """Restore the attributes of an earlier fit when this one fails."""
    before = results(estimator)
    try:
        yield
    except BaseException:
        forget(estimator)
        estimator.__dict__.update(before)
        raise


def validate_rows(estimator: BaseEstimator, X: Any, y: Any = "no_validation", **options: Any) -> Any:
    """``validate_data`` for rows, with threads that look for NaN and infinity in large arrays.

    What numpy would make numbers of in silence is refused (``kinds``).
    """
    options = dict(accept_sparse="csr", dtype=FLOATS) | options
    if is_wide(y):
        y, options["multi_output"] = (y.toarray() if sp.issparse(y) else y), True
    check_kind(X, "X")
    check_targets(y, numeric=bool(options.get("y_numeric")))
    try:
        return _validated(estimator, X, y, options)
    except ValueError as error:
        if not str(error).startswith("Input X contains NaN"):
            raise
        raise ValueError(_told_of_gaps(estimator, X, trained=not options.get("reset", True))) from None


def _told_of_gaps(estimator: BaseEstimator, X: Any, *, trained: bool) -> str:
    """What to do about gaps in rows of numbers."""
    where = ""
    if is_frame(X):
        table = as_table(X)
        holes = (
            name for name, each in zip(table.names, table.columns, strict=True) if gaps(each).any()
        )
        where = f" in the column {next(holes)!r}"
    begun = f"Input X contains NaN{where}, and {type(estimator).__name__} "
    if not hasattr(estimator, "encoder"):
        return f"{begun}takes none; put a TableEncoder before it, or impute or drop such rows."
    if trained:
        return (
            f"{begun}was trained on rows without gaps; train it with encoder=TableEncoder(), which "
            "gives new gaps a meaning, or impute or drop such rows."
        )
    return (
        f"{begun}takes rows of numbers as they are; give encoder=TableEncoder(), which makes the "
        "median and a column of its own of gaps, or impute or drop such rows."
    )


def is_wide(y: Any) -> bool:
    """Whether targets have several columns; those in one column are taken as a list of targets."""
    shape: tuple[int, ...] = getattr(y, "shape", ())
    if isinstance(y, list | tuple) and len(y) and isinstance(y[0], list | tuple | np.ndarray):
        shape = (len(y), len(y[0]))
    return len(shape) == 2 and shape[1] > 1


def _validated(estimator: BaseEstimator, X: Any, y: Any, options: dict[str, Any]) -> Any:
    large = isinstance(X, np.ndarray) and X.dtype in FLOATS and X.nbytes >= LARGE
    if not large or get_config()["assume_finite"]:
        return validate_data(estimator, X, y, **options)
    with config_context(assume_finite=True):
        checked = validate_data(estimator, X, y, **options)
    name = type(estimator).__name__
    parts = np.array_split(X, granted())
    finite = all(side_by_side(lambda number: _has_finite_sum(parts[number]), range(len(parts))))
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


def face_of(fitted: Fitted) -> dict[str, Any]:
    """The attributes of an estimator that has this model."""
    shown = classes_of(fitted.task)
    classes = {} if shown is None else {"classes_": shown}
    return {**fitted.attributes(), **classes, "_fitted": fitted}


def classes_of(task: Task) -> Any:
    """``classes_`` of a task: of label indicators the numbers of the labels, as in scikit-learn."""
    if isinstance(task, Outputs) and task.is_indicator:
        return np.arange(len(task.parts))
    return task.classes


def check_card_rows(estimator: BaseEstimator, X: Any, *, reset: bool) -> Any:
    """What ``validate_data`` checks, of a tensor on the card, without a copy to the host."""
    # Of one row of X's shape, so that the messages are scikit-learn's own.
    rows = X[:1] if X.ndim else X
    check_array(on_host(rows).astype(np.float64) * 0.0)
    if str(X.dtype) not in ("torch.float32", "torch.float64"):
        X = X.float() if X.is_floating_point() else X.double()
    if not bool(X.isfinite().all()):
        raise ValueError("Input X contains NaN or infinity; impute or drop such rows.")
    _check_n_features(estimator, X, reset=reset)
    return X.detach()


def check_card_targets(X: Any, y: Any, *, numeric: bool) -> np.ndarray:
    """Targets of rows on the card, on the host."""
    y = on_host(y)
    check_targets(y, numeric=numeric)
    y = y if is_wide(y) else column_or_1d(y, warn=True)
    if numeric:
        y = check_array(y, ensure_2d=False, dtype=np.float64)
    if len(y) != len(X):
        raise ValueError(f"X has {len(X)} rows and y has {len(y)}; they must be as many.")
    return np.asarray(y)
