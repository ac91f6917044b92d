"""Estimators for rows that lie on a Dask cluster."""

from __future__ import annotations

from importlib.util import find_spec

if find_spec("distributed") is None:
    raise ImportError(
        "asset_svm.dask needs Dask with its distributed scheduler, which is not installed; "
        'run: pip install "asset-svm[dask]"'
    )

from asset_svm.dask.estimators import (
    DaskAssetClassifier,
    DaskAssetQuantileRegressor,
    DaskAssetRegressor,
)
from asset_svm.dask.exceptions import ClusterError
from asset_svm.dask.files import read_rows
from asset_svm.dask.searches import (
    DaskAssetClassifierCV,
    DaskAssetQuantileRegressorCV,
    DaskAssetRegressorCV,
)

__all__ = [
    "ClusterError",
    "DaskAssetClassifier",
    "DaskAssetClassifierCV",
    "DaskAssetQuantileRegressor",
    "DaskAssetQuantileRegressorCV",
    "DaskAssetRegressor",
    "DaskAssetRegressorCV",
    "read_rows",
]
