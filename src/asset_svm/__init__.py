"""Kernel support vector machines for data too large for exact solvers.

Everything public is exported here, and imported when it is first used: importing scikit-learn and
numba takes over a second, which a command line that prints its help must not pay.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from asset_svm.version import __version__ as __version__

if TYPE_CHECKING:
    from asset_svm.data.opening import open_rows
    from asset_svm.data.raw import RawOptions
    from asset_svm.datasets import load_adult
    from asset_svm.estimators import (
        AssetClassifier,
        AssetOutlierDetector,
        AssetQuantileRegressor,
        AssetRegressor,
        FourierMap,
        NystroemMap,
        TableEncoder,
    )
    from asset_svm.exceptions import DataError, ModelFileError, NonFiniteError
    from asset_svm.persistence import load, save
    from asset_svm.plotting import RelevanceDisplay
    from asset_svm.search import AssetClassifierCV, AssetQuantileRegressorCV, AssetRegressorCV

__all__ = [
    "AssetClassifier",
    "AssetClassifierCV",
    "AssetOutlierDetector",
    "AssetQuantileRegressor",
    "AssetQuantileRegressorCV",
    "AssetRegressor",
    "AssetRegressorCV",
    "DataError",
    "FourierMap",
    "ModelFileError",
    "NonFiniteError",
    "NystroemMap",
    "RawOptions",
    "RelevanceDisplay",
    "TableEncoder",
    "load",
    "load_adult",
    "open_rows",
    "save",
]

_HOMES = {
    "AssetClassifier": "asset_svm.estimators",
    "AssetClassifierCV": "asset_svm.search",
    "AssetOutlierDetector": "asset_svm.estimators",
    "AssetQuantileRegressor": "asset_svm.estimators",
    "AssetQuantileRegressorCV": "asset_svm.search",
    "AssetRegressor": "asset_svm.estimators",
    "AssetRegressorCV": "asset_svm.search",
    "DataError": "asset_svm.exceptions",
    "FourierMap": "asset_svm.estimators",
    "ModelFileError": "asset_svm.exceptions",
    "NonFiniteError": "asset_svm.exceptions",
    "NystroemMap": "asset_svm.estimators",
    "RawOptions": "asset_svm.data.raw",
    "RelevanceDisplay": "asset_svm.plotting",
    "TableEncoder": "asset_svm.estimators",
    "load": "asset_svm.persistence",
    "load_adult": "asset_svm.datasets",
    "open_rows": "asset_svm.data.opening",
    "save": "asset_svm.persistence",
}


_MODULES = ("export", "runtime")
"""Modules of their own, which need no extra to be imported."""


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"{__name__}.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted([*__all__, *_MODULES, "__version__"])
