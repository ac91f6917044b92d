"""Columns for methods that measure distances: ours for ours, what scikit-learn has for others.

Tables of numbers are standardised. Where there are categories, ours has ``TableEncoder``; others have
standardised numbers, gaps that become medians with a column that tells, and a column for each
category, a gap being one more of them. Sparse rows, and columns that share a unit, stay.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

from asset_svm import TableEncoder
from tabular.base import Rows


def encoder(rows: Rows) -> Any:
    """An unfitted transformer of the columns of these rows, to float32."""
    if sp.issparse(rows.X) or rows.as_published:
        return FunctionTransformer()
    if not rows.categorical:
        return StandardScaler()
    numbers = [place for place in range(rows.X.shape[1]) if place not in rows.categorical]
    filled = make_pipeline(SimpleImputer(strategy="median", add_indicator=True), StandardScaler())
    categories = OneHotEncoder(handle_unknown="ignore", sparse_output=False, dtype=np.float32)
    return ColumnTransformer(
        [("numbers", filled, numbers), ("categories", categories, list(rows.categorical))]
    )


def our_encoder(rows: Rows) -> Any:
    """The same for ours."""
    return TableEncoder(categorical=rows.categorical) if rows.categorical else encoder(rows)


def total_variance(X: Any) -> float:
    """The sum of the columns' variances: n_features where they are standardised."""
    if sp.issparse(X):
        squares = float(X.multiply(X).sum()) / X.shape[0]
        return squares - float(np.square(np.asarray(X.mean(axis=0))).sum())
    return float(np.var(X, axis=0, dtype=np.float64).sum())


def total_deviation(X: Any) -> float:
    """The sum of the columns' standard deviations: n_features where they are standardised."""
    if sp.issparse(X):
        mean = np.asarray(X.mean(axis=0))
        squares = np.asarray(X.multiply(X).mean(axis=0))
        return float(np.sqrt(np.maximum(squares - mean**2, 0.0)).sum())
    return float(np.std(X, axis=0, dtype=np.float64).sum())
