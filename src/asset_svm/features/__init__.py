"""phi: drawn once, then a pure function of X."""

from asset_svm.features.base import Evaluable, FeatureMap
from asset_svm.features.fourier import FourierFeatures
from asset_svm.features.hadamard import HadamardFeatures
from asset_svm.features.metric import Metric, MetricFeatures
from asset_svm.features.nystroem import NystroemFeatures

__all__ = [
    "Evaluable",
    "FeatureMap",
    "FourierFeatures",
    "HadamardFeatures",
    "Metric",
    "MetricFeatures",
    "NystroemFeatures",
]
