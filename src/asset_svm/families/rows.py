"""Rows to learn from, their weights, and the order in which they are visited."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from asset_svm.data import GivenOrder, Order, ShuffledOrder, UniformOrder

MILD_WEIGHTS = 10.0
"""Weights up to so many times their mean count as multipliers of slopes rather than as frequencies."""


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows to learn from.

    ``weight`` is that of (PL), ``sample_weight`` without the class weights, ``index`` the place of
    each row in what the user passed.
    """

    X: Any
    y: np.ndarray
    sample_weight: np.ndarray
    weight: np.ndarray
    index: np.ndarray

    def take(self, rows: np.ndarray) -> Rows:
        """Some of the rows; all of them costs nothing."""
        if len(rows) == len(self.y):
            return self
        return Rows(*(part[rows] for part in (self.X, *self.columns)))

    @property
    def columns(self) -> tuple[np.ndarray, ...]:
        """All that there is of each row but X."""
        return self.y, self.sample_weight, self.weight, self.index

    @property
    def uneven(self) -> np.ndarray | None:
        """The sample weights, or None where they are all alike."""
        w = self.sample_weight
        return None if (w == w[0]).all() else w

    def order(self, sampling: str, step: str, seed: int) -> tuple[Order, np.ndarray | None]:
        """The order of visits, and the multipliers of slopes where it ignores the weights."""
        w = self.weight
        sampling = resolve_sampling(sampling, step, w.max(), w.mean())
        return visiting_order(sampling, seed, w, None if (w == w[0]).all() else w.mean())


def visiting_order(
    sampling: str, seed: int, weight: np.ndarray, mean_weight: float | None
) -> tuple[Order, np.ndarray | None]:
    """The order of visits of rows, and the multipliers of slopes where it ignores the weights.

    ``mean_weight`` is that of all rows, of which these may be some; None where all weights are alike.
    """
    m = len(weight)
    if sampling == "uniform":
        return UniformOrder(m, seed, None if mean_weight is None else weight), None
    order = ShuffledOrder(m, seed) if sampling == "shuffle" else GivenOrder(m)
    return order, None if mean_weight is None else weight / mean_weight


def resolve_sampling(sampling: str, step: str, heaviest: float, mean: float) -> str:
    """``sampling`` for rows of these largest and mean weights.

    Slopes of very unequal weight would be taken whole once an epoch; drawing evens them out.
    """
    if sampling != "auto":
        return sampling
    return "shuffle" if step == "metric" and heaviest <= MILD_WEIGHTS * mean else "uniform"
