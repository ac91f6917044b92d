"""Scaling of columns from one pass over blocks, with scikit-learn's scalers."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, StandardScaler

from asset_svm.data.source import widened

KINDS = ("none", "standard", "minmax")


class ColumnScaling:
    """Gathers the scaler of a kind.

    Sparse rows stay sparse: "standard" divides by the standard deviation and does not centre,
    "minmax" divides by the largest |value|.
    """

    def __init__(self, kind: str):
        self.kind = kind
        self.scaler: Any = None

    def observe(self, X: Any) -> None:
        """Take a block into account."""
        if self.scaler is None:
            sparse = sp.issparse(X)
            if self.kind == "standard":
                self.scaler = StandardScaler(with_mean=not sparse)
            else:
                self.scaler = MaxAbsScaler() if sparse else MinMaxScaler()
        known = getattr(self.scaler, "n_features_in_", None)
        if sp.issparse(X) and known is not None and X.shape[1] != known:
            if X.shape[1] > known:
                widen_scaler(self.scaler, X.shape[1])
            X = widened(X, max(X.shape[1], known))
        self.scaler.partial_fit(X)

    def finish(self, n_features: int) -> Any:
        """The scaler, for rows of this many features."""
        widen_scaler(self.scaler, n_features)
        return self.scaler


def widen_scaler(scaler: Any, n_features: int) -> None:
    """Add columns that were 0 in every row so far."""
    missing = n_features - scaler.n_features_in_
    for name, fill in (("mean_", 0.0), ("var_", 0.0), ("max_abs_", 0.0), ("scale_", 1.0)):
        values = getattr(scaler, name, None)
        if values is not None:
            setattr(scaler, name, np.concatenate([values, np.full(missing, fill)]))
    scaler.n_features_in_ = n_features
