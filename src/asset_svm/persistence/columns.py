"""What validation has noted of the rows of any estimator."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from asset_svm.storage.fields import Fields


def write_columns(estimator: BaseEstimator) -> dict[str, Any]:
    """What validation has noted of the rows: how many columns there are, and their names."""
    names = getattr(estimator, "feature_names_in_", None)
    return {
        "n_columns": int(estimator.n_features_in_),
        "column_names": None if names is None else [str(each) for each in names],
    }


def read_columns(f: Fields, estimator: BaseEstimator) -> None:
    """Note on an estimator what its record says of the columns."""
    count, names = f.integer("n_columns", 1), f.maybe(f.each, "column_names", "text")
    estimator.n_features_in_ = count
    if names is not None:
        f.check(len(names) == count, f"has {len(names)} names for {count} columns", "column_names")
        estimator.feature_names_in_ = np.array(names, dtype=object)
