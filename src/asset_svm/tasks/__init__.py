"""What is learnt: classes, numbers, their quantiles; without targets, where rows are."""

from asset_svm.tasks.base import Constancy, Encoded, Task
from asset_svm.tasks.classification import Classification, winner
from asset_svm.tasks.one_class import OneClass, has_targets
from asset_svm.tasks.outputs import Outputs, for_targets, several, units_of, with_outputs
from asset_svm.tasks.quantiles import Quantiles
from asset_svm.tasks.regression import Regression

__all__ = [
    "Classification",
    "Constancy",
    "Encoded",
    "OneClass",
    "Outputs",
    "Quantiles",
    "Regression",
    "Task",
    "for_targets",
    "has_targets",
    "several",
    "units_of",
    "winner",
    "with_outputs",
]
