"""The task of rows that are not all in memory: settled by a sample, and by what is known of all."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from asset_svm.arrays import Array
from asset_svm.data.scan import Summary
from asset_svm.data.source import Block
from asset_svm.tasks import Encoded, Outputs, Task


@dataclass(frozen=True, eq=False)
class WholeTask:
    """A settled task, and what all rows have in common that some of them do not tell.

    Parameters
    ----------
    y_max : float or array, optional
        The largest |target|, less the offset, of each output; None where every target has the same.
    factors : array of shape (n_classes,), optional
        What the class of a row multiplies its weight by; None where all classes count alike. A list of
        them where there are several outputs.
    """

    task: Task
    y_max: float | Array | None
    factors: Any

    @classmethod
    def of_numbers(cls, task: Task, y: Array, weight: Array, ends: Array) -> WholeTask:
        """The task settled by a sample of targets that lie between ``ends``."""
        task = task.settled(y, weight)
        return cls(task, task.encode(ends).y_max, None)

    @classmethod
    def of_classes(cls, task: Task, y: Array, weight: Array, classes: Any, totals: Any) -> WholeTask:
        """The task settled by a sample of all classes; ``totals`` are the weights of their rows."""
        task = task.with_classes(classes).settled(y, weight)
        return cls(task, None, task.factors(totals))

    @classmethod
    def of_summary(cls, task: Task, summary: Summary, sample: Block) -> WholeTask:
        """The task of the rows of a file, from what a scan told of them and a sample."""
        y, targets = np.asarray(sample.y), summary.targets
        ones = np.ones(len(y))
        if task.numeric:
            return cls.of_numbers(task, y, ones, np.array([targets.low, targets.high]))
        return cls.of_classes(task, y, ones, targets.classes, targets.class_counts)

    def total_weight(self, summary: Summary) -> float:
        """The weight of all rows of a file."""
        if self.factors is None:
            return float(summary.n_rows)
        if isinstance(self.task, Outputs):
            raise ValueError(
                "class_weight multiplies the weights of all classes of a row, and how often those "
                "of several outputs meet is known of rows in memory only; leave it out, or raise "
                "memory_limit (--memory)."
            )
        return float(self.factors @ summary.targets.class_counts)

    def encode(self, y: Array) -> Encoded:
        """The targets of some of the rows, as the solver sees them."""
        encoded = self.task.encode(y)
        return encoded if self.y_max is None else replace(encoded, y_max=self.y_max)

    def weights(self, y: Array, weight: Array) -> Array:
        """The weights of some of the rows in (PL), from their sample weights."""
        if self.factors is None:
            return weight
        return np.asarray(weight * self.task.factors_of(self.factors, y))
