"""The targets of a file as an estimator takes them: a file has numbers where there are classes."""

from __future__ import annotations

import numpy as np

from asset_svm.data.scan import Summary, TargetSummary
from asset_svm.data.source import Block
from asset_svm.exceptions import DataError


def labelled(block: Block, summary: Summary, *, numeric: bool) -> Block:
    """The block with targets as the estimator takes them."""
    kind = target_type(summary.targets, numeric=numeric)
    return Block(block.X, np.asarray(block.y).astype(kind, copy=False))


def target_type(targets: TargetSummary, *, numeric: bool) -> np.dtype:
    """The type of targets that the estimator takes: a classifier's are integers, if all can be."""
    if numeric:
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


def whole_labels(y: np.ndarray, *, numeric: bool) -> np.ndarray:
    """A classifier's numbers as integers, where they are."""
    if not numeric and y.dtype.kind == "f" and (y == np.rint(y)).all():
        return y.astype(np.int64)
    return y
