"""scikit-learn estimators: validate, translate, delegate, store."""

from asset_svm.estimators.classifier import AssetClassifier
from asset_svm.estimators.regressor import AssetRegressor
from asset_svm.estimators.search import AssetClassifierCV, AssetRegressorCV
from asset_svm.estimators.transformers import FourierMap, NystroemMap

__all__ = [
    "AssetClassifier",
    "AssetClassifierCV",
    "AssetRegressor",
    "AssetRegressorCV",
    "FourierMap",
    "NystroemMap",
]
