"""scikit-learn estimators: validate, translate, delegate, store.

classifier, regressor     the two estimators: targets and predictions
base                      their parameters, in the words of ``backends``
learner                   fit, partial_fit and certify; it hands checked ``rows`` to
    batch                 all rows at once
    online                a batch after the other
    cells                 either of them, in cells of the input space
streaming, passing        files, in several passes (of ``windows``) or in one
search                    C, gamma and epsilon by cross-validation
session                   what a fit leaves, for the next one to go on from
decision                  what a fit leaves, to predict with

Searches are imported when they are first used: a model that predicts needs none.
"""

from typing import TYPE_CHECKING, Any

from asset_svm.estimators.classifier import AssetClassifier
from asset_svm.estimators.regressor import AssetRegressor
from asset_svm.estimators.transformers import FourierMap, NystroemMap

if TYPE_CHECKING:
    from asset_svm.search import AssetClassifierCV, AssetRegressorCV

__all__ = [
    "AssetClassifier",
    "AssetClassifierCV",
    "AssetRegressor",
    "AssetRegressorCV",
    "FourierMap",
    "NystroemMap",
]


def __getattr__(name: str) -> Any:
    if name not in ("AssetClassifierCV", "AssetRegressorCV"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from asset_svm import search

    return getattr(search, name)
