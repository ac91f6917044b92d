"""The targets of a file as an estimator takes them: a file has numbers where there are classes."""

from __future__ import annotations

import numpy as np

from asset_svm.data.scan import Summary, TargetSummary
from asset_svm.data.several_targets import SeveralTargets, beside, by_column, columns_of
from asset_svm.data.source import Block
from asset_svm.exceptions import DataError


def labelled(block: Block, summary: Summary, *, numeric: bool) -> Block:
    """The block with targets as the estimator takes them."""
    y, targets = np.asarray(block.y), summary.targets
    if isinstance(targets, SeveralTargets):
        columns = zip(targets.parts, columns_of(y), strict=True)
        typed = [own.astype(target_type(part, numeric=numeric), copy=False) for part, own in columns]
        return Block(block.X, beside(typed))
    return Block(block.X, y.astype(target_type(targets, numeric=numeric), copy=False))


def check_targets(targets: TargetSummary | SeveralTargets, *, numeric: bool) -> None:
    """Raise where some targets are none that the estimator takes."""
    for part in targets.parts if isinstance(targets, SeveralTargets) else [targets]:
        target_type(part, numeric=numeric)


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

    def whole(column: np.ndarray) -> np.ndarray:
        is_whole = column.dtype.kind == "f" and (column == np.rint(column)).all()
        return column.astype(np.int64) if is_whole else column

    return y if numeric else by_column(y, whole)
