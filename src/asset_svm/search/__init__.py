"""Search of C, gamma and epsilon: every model on one map of the rows."""

from asset_svm.search.classifier import AssetClassifierCV
from asset_svm.search.progress import SearchProgress
from asset_svm.search.quantiles import AssetQuantileRegressorCV
from asset_svm.search.regressor import AssetRegressorCV

__all__ = ["AssetClassifierCV", "AssetQuantileRegressorCV", "AssetRegressorCV", "SearchProgress"]
