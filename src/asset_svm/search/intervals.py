"""CV+ intervals: what a search's best parameters leave in rows that their models have not seen.

The rows are cut into folds, and the best parameters are trained K times more, each time without one
of them. With f_k the model without fold k, and R_i = |y_i - f_k(i)(x_i)| the error in each row as the
model without its fold sees it, the interval at x lies between (n rows, alpha = 1 - coverage)

    the floor(alpha (n + 1))-th smallest of f_k(i)(x) - R_i    and
    the ceil((1 - alpha) (n + 1))-th smallest of f_k(i)(x) + R_i,

and is infinite where there is no such row. It holds the y of an exchangeable row with a probability of
at least 1 - 2 alpha - sqrt(2 / n), of about 1 - alpha as a rule (Barber, Candes, Ramdas and Tibshirani
2021, their theorem 4), for parameters that were chosen without these rows. A search has chosen them by
all rows, a few numbers from many errors, which is not in the theorem.

No row is lost to learning, as it is where rows are kept out (``estimators.intervals``), whose guarantee
is 1 - alpha.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.model_selection import GroupKFold, KFold
from sklearn.utils import _safe_indexing

from asset_svm.arrays import Array
from asset_svm.estimators.learner import Learner

FOLDS = 5
VALUES = 1 << 22
"""Ends of intervals that are put in order at a time, of all rows and errors together."""


@dataclass(frozen=True, eq=False)
class CrossIntervals:
    """What CV+ intervals of any coverage are made of.

    Parameters
    ----------
    models : sequence of estimators
        Each trained without a fold.
    fold : array of shape (n,)
        The fold of each row.
    errors : array of shape (n,)
        |y - f| of each, by the model without its fold.
    """

    models: Sequence[Any]
    fold: Array
    errors: Array

    @classmethod
    def of(
        cls, make: Callable[[], Learner], X: Any, y: Array, weight: Array | None, groups: Any, seed: int
    ) -> CrossIntervals:
        """The intervals of estimators that ``make`` makes."""
        n, models = len(y), []
        fold, errors = np.empty(n, dtype=np.int64), np.empty(n)
        for number, (learnt, held) in enumerate(_folds(n, groups, seed)):
            own = () if weight is None else (weight[learnt],)
            model: Any = make()
            model.fit(_safe_indexing(X, learnt), y[learnt], *own)
            fold[held] = number
            errors[held] = np.abs(y[held] - model.predict(_safe_indexing(X, held)))
            models.append(model)
        return cls(models, fold, errors)

    def around(self, X: Any, coverage: float) -> Array:
        """(rows, 2): the ends of the intervals."""
        each = np.column_stack([model.predict(X) for model in self.models])
        return np.concatenate([self._ends(part, coverage) for part in self._parts(each)])

    def _parts(self, each: Array) -> Iterator[Array]:
        """The predictions of a few rows at a time."""
        size = max(VALUES // len(self.errors), 1)
        for start in range(0, max(len(each), 1), size):
            yield each[start : start + size]

    def _ends(self, each: Array, coverage: float) -> Array:
        """The ends of rows with these (rows, folds) predictions."""
        n, centres = len(self.errors), each[:, self.fold]
        low = math.floor(round((1.0 - coverage) * (n + 1), 9))
        high = math.ceil(round(coverage * (n + 1), 9))
        ends = np.tile([-np.inf, np.inf], (len(each), 1))
        if low >= 1:
            ends[:, 0] = np.partition(centres - self.errors, low - 1, axis=1)[:, low - 1]
        if high <= n:
            ends[:, 1] = np.partition(centres + self.errors, high - 1, axis=1)[:, high - 1]
        return ends


def _folds(n: int, groups: Any, seed: int) -> Iterator[tuple[Array, Array]]:
    """The rows to learn from and to look at; rows of a group in one fold."""
    rows = np.arange(n)
    if groups is None:
        splitter: Any = KFold(min(FOLDS, n), shuffle=True, random_state=seed)
    else:
        splitter = GroupKFold(min(FOLDS, len(np.unique(groups))))
    found: Iterator[tuple[Array, Array]] = splitter.split(rows, groups=groups)
    return found
