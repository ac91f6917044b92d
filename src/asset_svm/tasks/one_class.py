"""One class: where rows are, and which of them lie outside of it; there are no targets.

The solver sees rows whose targets are all 1, and the hinge loss without an intercept
(``training.one_class``). Decisions are scores phi(x).coef less a threshold, a quantile of the training
rows' scores: the task keeps it, negative, as its offset.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from asset_svm.arrays import Array
from asset_svm.data import RealTargets
from asset_svm.losses import Hinge
from asset_svm.settings import checks as check
from asset_svm.tasks.base import Constancy, Encoded, Task
from asset_svm.tasks.regression import quantile_range

UNSETTLED = -1.0
"""The offset before the scores of any rows are known: a margin is 1 at the boundary."""
NARROW = 1e-3
"""Times the threshold: scores that range over less tell no rows apart."""
JUDGED = "there are no targets to judge by"


@dataclass(frozen=True, eq=False)
class OneClass:
    """Learning where rows are.

    Parameters
    ----------
    nu : float
        The share of the rows that lie outside, by weight.
    offset : float
        Minus the threshold of scores.
    """

    nu: float = 0.1
    offset: float = UNSETTLED
    numeric: ClassVar[bool] = True
    classes: ClassVar[Array | None] = None
    n_models: ClassVar[int] = 1
    offset_of_cell: ClassVar[float] = 0.0

    @classmethod
    def of(cls, nu: Any) -> OneClass:
        """The task of the parameter, which is checked."""
        check.check_fraction("nu", nu)
        return cls(float(nu))

    @property
    def loss(self) -> Hinge:
        """The hinge loss."""
        return Hinge()

    @property
    def threshold(self) -> float:
        """The score below which rows lie outside."""
        return -self.offset

    def with_threshold(self, threshold: float) -> OneClass:
        """The task with another threshold of scores."""
        return replace(self, offset=-threshold)

    def of_cell(self, *, known: bool, free_intercept: bool) -> OneClass:
        """Raise: one threshold for all cells would couple them."""
        raise ValueError(
            "One class has one threshold for all rows, and cells have models of their own."
        )

    def targets_of_cell(self, y: Array) -> Array:
        """Return the targets, which are all 1."""
        return y

    def with_classes(self, classes: Array) -> OneClass:
        """There are no classes."""
        return self

    def with_epsilon(self, epsilon: float) -> OneClass:
        """Raise: there is no tube around targets."""
        raise ValueError(f"epsilon={epsilon!r} is for regression; leave it out.")

    def standardised(self, y: Array, weight: Array) -> tuple[OneClass, Array]:
        """Raise: a quick look needs targets to judge by."""
        raise ValueError(f"Relevance cannot be learnt: {JUDGED}.")

    def settled(self, y: Array, weight: Array) -> OneClass:
        """The task as it is: the threshold is known when rows have scores."""
        return self

    def encode(self, y: Array) -> Encoded:
        """Targets of 1, whatever is given."""
        return Encoded(RealTargets(np.ones(len(y))), self.loss, 1.0, self.offset)

    def class_weights(self, y: Array, weight: Array) -> Array | None:
        """Return None: there are no classes."""
        return None

    def factors(self, totals: Array) -> Array | None:
        """Return None: there are no classes."""
        return None

    def factors_of(self, factors: Array, y: Array) -> Array:
        """Return 1 for every row: there are no classes."""
        return np.ones(len(y))

    def check_stream(self) -> None:
        """One class can always be learnt from one batch after the other."""

    def predict(self, decisions: Array) -> Array:
        """Return 1 for rows inside, -1 for rows outside."""
        return np.where(decisions.ravel() >= 0.0, 1, -1)

    def decisions(self, decisions: Array) -> Array:
        """Return one decision a row."""
        return decisions.ravel()

    def slopes(self, decisions: Array) -> Array | None:
        """Return None: decisions are what a user sees."""
        return None

    def score(self, decisions: Array, y: Array, weight: Array | None) -> float:
        """Raise: nothing says which rows should lie outside."""
        raise ValueError(f"One class has no score: {JUDGED}.")

    def row_losses(self, decisions: Array, y: Array) -> Array:
        """Return 1 for every row outside, else 0."""
        return (decisions.ravel() < 0.0).astype(np.float64)

    def soft_losses(self, decisions: Array, y: Array) -> Array:
        """Return how far each row lies outside, which nowhere jumps."""
        return np.maximum(-decisions.ravel(), 0.0)

    def importance(self, decisions: Array, y: Array) -> Array:
        """Raise: landmarks near the boundary of a first fit would leave most rows without any."""
        raise ValueError(f'landmarks="margin" cannot be chosen: {JUDGED}.')

    def constancy(self, decisions: Array, y: Array, weight: Array, C: float | None) -> Constancy | None:
        """What is to be said where the scores of rows hardly differ."""
        scores = decisions.ravel() + self.threshold
        found, size = quantile_range(scores, weight), float(np.abs(scores).max())
        if found > NARROW * size:
            return None
        seen = f"half of the scores lie within {found:.2g}, and the largest is {size:.2g}"
        return Constancy(seen, [], ["change gamma, which is too small or too large for these rows"])

    def split(self, y: Array, fraction: float, seed: int) -> tuple[Array, Array]:
        """Raise: held-out rows could judge nothing."""
        raise ValueError(f"No rows can be held out: {JUDGED}.")

    def count_by_class(self, y: Array) -> Array:
        """Return the number of all rows."""
        return np.array([len(y)])


def has_targets(task: Task) -> bool:
    """Whether a task learns from targets."""
    return not isinstance(task, OneClass)
