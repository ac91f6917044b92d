"""What is learnt from the targets, classes or numbers; or, without any, where rows are."""

from asset_svm.tasks.base import Constancy, Encoded, Task
from asset_svm.tasks.classification import Classification, winner
from asset_svm.tasks.one_class import OneClass, has_targets
from asset_svm.tasks.regression import Regression

__all__ = [
    "Classification",
    "Constancy",
    "Encoded",
    "OneClass",
    "Regression",
    "Task",
    "has_targets",
    "winner",
]
