"""scikit-learn estimators: validate, translate, delegate, store.

classifier, regressor     the two estimators: targets and predictions
base                      their parameters, in the words of ``engines``
learner                   fit, partial_fit and certify; it hands checked ``rows`` to
    batch                 all rows at once
    online                a batch after the other
    cells                 either of them, in cells of the input space
streaming, passing        files, in several passes (of ``windows``) or in one
search                    C, gamma and epsilon by cross-validation
session                   what a fit leaves, for the next one to go on from
decision                  what a fit leaves, to predict with
"""

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
