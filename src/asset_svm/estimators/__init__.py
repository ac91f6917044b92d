"""scikit-learn estimators: parameters and rows in, a family's model kept.

classifier, regressor     the two estimators
quantiles                 regression of quantiles
outliers                  the one that learns where rows are, without targets
learner                   what they share: fit, partial_fit, certify, predict
files                     fits to files, and predictions of their rows
transformers              the feature maps by themselves
tables                    rows of numbers from columns of any kind
calibration               probabilities of classes
validation                what every fit obeys: checked rows, all or nothing
callbacks                 who looks on at a fit
vocabulary                SVC's words that mean something else here

Searches are in ``asset_svm.search``.
"""

from asset_svm.estimators.classifier import AssetClassifier
from asset_svm.estimators.outliers import AssetOutlierDetector
from asset_svm.estimators.quantiles import AssetQuantileRegressor
from asset_svm.estimators.regressor import AssetRegressor
from asset_svm.estimators.tables import TableEncoder
from asset_svm.estimators.transformers import FourierMap, NystroemMap

__all__ = [
    "AssetClassifier",
    "AssetOutlierDetector",
    "AssetQuantileRegressor",
    "AssetRegressor",
    "FourierMap",
    "NystroemMap",
    "TableEncoder",
]
