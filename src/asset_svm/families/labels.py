"""The targets of a file as an estimator takes them: a file has numbers where there are classes."""

from __future__ import annotations

import numpy as np

from asset_svm.data.scan import Summary, TargetSummary
from asset_svm.data.source import Block
from asset_svm.exceptions import DataError
from asset_svm.tasks import Task


def labelled(task: Task, block: Block, summary: Summary) -> Block:
    """The block with targets as the estimator takes them."""
    kind = target_type(task, summary.targets)
    return Block(block.X, np.asarray(block.y).astype(kind, copy=False))


def target_type(task: Task, targets: TargetSummary) -> np.dtype:
    """The type of targets that the estimator takes: a classifier's are integers, if all can be."""
    if task.numeric:
        if targets.kind == "names":
            raise DataError("The targets are names; regression needs numbers.")
        return np.dtype(np.float64)
    classes = targets.classes
    if classes is None or (targets.kind == "numbers" and not targets.whole):
        raise DataError(
            "The targets have fractions, or more than 1000 different values; use AssetRegressor "
            "(--task regression)."
        )
    return classes.dtype


def whole_labels(task: Task, y: np.ndarray) -> np.ndarray:
    """A classifier's numbers as integers, where they are."""
    if not task.numeric and y.dtype.kind == "f" and (y == np.rint(y)).all():
        return y.astype(np.int64)
    return y
