"""What is learnt from the targets: classes, or numbers, of one output or several."""

from asset_svm.tasks.base import Constancy, Encoded, Task
from asset_svm.tasks.classification import Classification, winner
from asset_svm.tasks.outputs import Outputs, for_targets, several, with_outputs
from asset_svm.tasks.regression import Regression

__all__ = [
    "Classification",
    "Constancy",
    "Encoded",
    "Outputs",
    "Regression",
    "Task",
    "for_targets",
    "several",
    "winner",
    "with_outputs",
]
