"""The one data set that ships with the package."""

from asset_svm.datasets.adult import load_adult

__all__ = ["load_adult"]
