"""phi: drawn once, then a pure function of X."""

from asset_svm.features.base import FeatureMap
from asset_svm.features.fourier import FourierFeatures
from asset_svm.features.nystroem import NystroemFeatures

__all__ = ["FeatureMap", "FourierFeatures", "NystroemFeatures"]
