"""The one data set that ships with the package, and one of any size that is made."""

from asset_svm.datasets.adult import load_adult
from asset_svm.datasets.waves import make_waves
from asset_svm.datasets.writing import write_rows

__all__ = ["load_adult", "make_waves", "write_rows"]
