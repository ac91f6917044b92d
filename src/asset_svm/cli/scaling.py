"""Scaling of columns from one pass over blocks, with scikit-learn's scalers."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, StandardScaler

from asset_svm.data.source import widened

KINDS = ("auto", "none", "standard", "minmax")


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

    def join(self, other: ColumnScaling) -> None:
        """Take what another one saw of other rows into account."""
        if other.scaler is None:
            return
        if self.scaler is None:
            self.scaler = other.scaler
            return
        ours, theirs = self.scaler, other.scaler
        width = max(ours.n_features_in_, theirs.n_features_in_)
        widen_scaler(ours, width)
        widen_scaler(theirs, width)
        if isinstance(ours, StandardScaler):
            _join_moments(ours, theirs)
        else:  # the extremes are rows that stand for all others
            ends = ("max_abs_",) if isinstance(ours, MaxAbsScaler) else ("data_min_", "data_max_")
            seen = ours.n_samples_seen_ + theirs.n_samples_seen_
            ours.partial_fit(np.array([getattr(theirs, name) for name in ends]))
            ours.n_samples_seen_ = seen

    def finish(self, n_features: int) -> Any:
        """The scaler, for rows of this many features."""
        widen_scaler(self.scaler, n_features)
        return self.scaler


def _join_moments(ours: Any, theirs: Any) -> None:
    """Mean and variance of both together (Chan, Golub and LeVeque)."""
    n, m = ours.n_samples_seen_, theirs.n_samples_seen_
    apart, total = theirs.mean_ - ours.mean_, n + m
    ours.var_ = (n * ours.var_ + m * theirs.var_) / total + n * m / total**2 * apart**2
    ours.mean_ = ours.mean_ + m / total * apart
    ours.n_samples_seen_ = total
    rounding = total * np.finfo(np.float64).eps
    constant = ours.var_ <= rounding * ours.var_ + (rounding * ours.mean_) ** 2
    ours.scale_ = np.where(constant, 1.0, np.sqrt(ours.var_))


def widen_scaler(scaler: Any, n_features: int) -> None:
    """Add columns that were 0 in every row so far."""
    missing = n_features - scaler.n_features_in_
    for name, fill in (("mean_", 0.0), ("var_", 0.0), ("max_abs_", 0.0), ("scale_", 1.0)):
        values = getattr(scaler, name, None)
        if values is not None:
            setattr(scaler, name, np.concatenate([values, np.full(missing, fill)]))
    scaler.n_features_in_ = n_features
