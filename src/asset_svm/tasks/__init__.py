"""What is learnt from the targets: classes, numbers, or their quantiles."""

from asset_svm.tasks.base import Constancy, Encoded, Task
from asset_svm.tasks.classification import Classification, winner
from asset_svm.tasks.quantiles import Quantiles
from asset_svm.tasks.regression import Regression

__all__ = ["Classification", "Constancy", "Encoded", "Quantiles", "Regression", "Task", "winner"]
