"""Quantiles of numbers, one model each, by the pinball loss.

Models know nothing of each other, so that their decisions may cross where rows are few. Predictions do
not: those of a row are put in order. Of two that cross, f_1 > f_2 for q_1 < q_2, that changes the
pinball loss of the row, whatever y is, by (q_1 - q_2) (f_1 - f_2) < 0: it never grows.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np

from asset_svm.arrays import Array
from asset_svm.data import ShiftedTargets
from asset_svm.losses import Pinball
from asset_svm.settings import checks as check
from asset_svm.tasks.base import Constancy, Encoded, train_test_rows
from asset_svm.tasks.regression import NARROW, UNEQUAL, quantile_range
from asset_svm.tasks.units import Units


@dataclass(frozen=True, eq=False)
class Quantiles:
    """Learning quantiles.

    Parameters
    ----------
    quantiles : tuple of float
        In increasing order, between 0 and 1.
    alone : bool
        Whether there is one, which the user gave as a number: predictions have one axis then.
    centred : bool
        Whether the weighted quantiles of the targets are subtracted: with an intercept, or in cells, it
        is the same problem in a smaller ball.
    offset : array of shape (K,)
        What is subtracted for each model.
    units : Units or None
        Those of targets and decisions, where they are not the user's. They are increasing, and so a
        quantile in them is one in the user's.
    """

    quantiles: tuple[float, ...] = (0.5,)
    alone: bool = False
    centred: bool = True
    offset: Array = field(default_factory=lambda: np.zeros(1))
    units: Units | None = None
    numeric: ClassVar[bool] = True
    classes: ClassVar[Array | None] = None
    offset_of_cell: ClassVar[float] = 0.0

    @classmethod
    def of(cls, quantiles: Any, *, centred: bool) -> Quantiles:
        """The task of the parameter, which is checked."""
        levels = checked_quantiles(quantiles)
        return cls(levels, np.ndim(quantiles) == 0, centred, np.zeros(len(levels)))

    @property
    def loss(self) -> Pinball:
        """The pinball loss."""
        return Pinball(self.quantiles)

    @property
    def in_units(self) -> bool:
        """Whether targets have units that are not the user's."""
        return self.units is not None

    @property
    def n_models(self) -> int:
        """Every quantile has a model."""
        return len(self.quantiles)

    def of_cell(self, *, known: bool, free_intercept: bool) -> Quantiles:
        """The same task, which subtracts what all cells subtract where a cell has no intercept."""
        return replace(self, centred=free_intercept)

    def targets_of_cell(self, y: Array) -> Array:
        """Return the targets themselves: each model has an offset of its own."""
        return y

    def with_classes(self, classes: Array) -> Quantiles:
        """There are no classes: numbers may happen to be few."""
        return self

    def with_epsilon(self, epsilon: float) -> Quantiles:
        """The same task: there is no tube around a quantile."""
        return self

    def standardised(self, y: Array, weight: Array) -> tuple[Quantiles, Array]:
        """The task of targets in units of their standard deviation."""
        y = np.asarray(y, dtype=np.float64)
        mean = np.average(y, weights=weight)
        spread = float(np.sqrt(np.average((y - mean) ** 2, weights=weight)))
        y = y / spread if spread > 0.0 else y
        return replace(self, centred=True, units=None).settled(y, weight), y

    def settled(self, y: Array, weight: Array) -> Quantiles:
        """The task with the quantiles of these rows as offset, where it is centred."""
        if not self.centred:
            return self
        y = np.asarray(y, dtype=np.float64)
        return replace(self, offset=weighted_quantiles(y, weight, self.quantiles))

    def encode(self, y: Array) -> Encoded:
        """Return the targets less the offset of each model, as the solver sees them."""
        values = np.asarray(y, dtype=np.float64)
        ends = np.array([values.min(), values.max()])
        y_max = float(np.abs(np.subtract.outer(ends, self.offset)).max())
        return Encoded(ShiftedTargets(values, self.offset), self.loss, y_max, self.offset)

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
        """Quantiles can always be learnt from one batch after the other."""

    def predict(self, decisions: Array) -> Array:
        """Return the decisions of each row in order, in the user's units."""
        found = in_order(decisions)
        found = found if self.units is None else self.units.back(found)
        return found.ravel() if self.alone else found

    def decisions(self, decisions: Array) -> Array:
        """Return one decision a quantile, which may cross."""
        return decisions.ravel() if self.alone else decisions

    def slopes(self, decisions: Array) -> Array | None:
        """Return the derivatives of quantiles by decisions; None where they are the same."""
        return None if self.units is None else self.units.slope(decisions)

    def score(self, decisions: Array, y: Array, weight: Array | None) -> float:
        """Return D^2 of the pinball loss, the mean over the quantiles."""
        return d2_of(in_order(decisions), y, self.quantiles, weight)

    def row_losses(self, decisions: Array, y: Array) -> Array:
        """Return the pinball loss of every row, the mean over the quantiles."""
        found = self.loss.value(np.broadcast_to(y, decisions.T.shape), in_order(decisions).T)
        return np.asarray(found.mean(axis=0))

    def soft_losses(self, decisions: Array, y: Array) -> Array:
        """Return the pinball loss of every row, which nowhere jumps."""
        return self.row_losses(decisions, y)

    def importance(self, decisions: Array, y: Array) -> Array:
        """Return numbers that are high for rows far from all of their quantiles."""
        return np.abs(y[:, None] - decisions).min(axis=1)

    def coverage(self, predictions: Array, y: Array, weight: Array | None = None) -> Array:
        """The share of the rows at or below each quantile, from (rows, K) predictions."""
        return np.average(np.asarray(y)[:, None] <= predictions, axis=0, weights=weight)

    def constancy(self, decisions: Array, y: Array, weight: Array, C: float | None) -> Constancy | None:
        """What is to be said where every quantile ranges over next to nothing beside the targets."""
        ranges = [quantile_range(column, weight) for column in decisions.T]
        found, wanted = max(ranges), quantile_range(y, weight)
        if found > NARROW * wanted or wanted == 0.0:
            return None
        seen = (
            f"half of its predictions lie within {found:.2g}, half of the targets within {wanted:.2g}"
        )
        causes, advice = [], ["raise C"]
        if C is not None and wanted > UNEQUAL * C:
            causes.append(f"the targets spread over {wanted / C:.2g} times C={C:g}")
            advice.append('divide the targets by their spread (target_transform="standard")')
        return Constancy(seen, causes, advice)

    def split(self, y: Array, fraction: float, seed: int) -> tuple[Array, Array]:
        """Split the rows at random."""
        return train_test_rows(len(y), fraction, seed)

    def count_by_class(self, y: Array) -> Array:
        """Return the number of all rows."""
        return np.array([len(y)])


def checked_quantiles(quantiles: Any) -> tuple[float, ...]:
    """The quantiles of a parameter: a number between 0 and 1, or several in increasing order."""
    if isinstance(quantiles, np.ndarray) and quantiles.ndim == 0:
        quantiles = quantiles.item()
    given = [quantiles] if np.ndim(quantiles) == 0 else list(quantiles)
    for q in given:
        if not check.is_number(q) or not 0.0 < q < 1.0:
            raise ValueError(
                f"quantiles={quantiles!r} has {q!r}, which is not between 0 and 1; name shares of the "
                "rows, for example quantiles=(0.1, 0.5, 0.9)."
            )
    if not given:
        raise ValueError("quantiles is empty; name some, for example quantiles=(0.1, 0.5, 0.9).")
    levels = tuple(float(q) for q in given)
    if any(one >= other for one, other in pairwise(levels)):
        raise ValueError(
            f"quantiles={quantiles!r} is not in increasing order, or has one twice; sort it, each once."
        )
    return levels


def has_tube(task: Any) -> bool:
    """Whether errors of numbers up to some epsilon do not count."""
    return bool(task.numeric) and not isinstance(task, Quantiles)


def in_order(decisions: Array) -> Array:
    """The decisions of each row, the smallest for the first quantile."""
    return np.sort(decisions, axis=1)


def weighted_quantiles(y: Array, weight: Array, quantiles: tuple[float, ...]) -> Array:
    """For each quantile the smallest y below or at which lies that part of the weight."""
    order = np.argsort(y, kind="stable")
    running = np.cumsum(weight[order])
    places = np.searchsorted(running, np.array(quantiles) * running[-1])
    return np.asarray(y[order[np.minimum(places, len(y) - 1)]])


def d2_of(predictions: Array, y: Array, quantiles: tuple[float, ...], weight: Array | None) -> float:
    """D^2 of the pinball loss, the mean over the quantiles, from (rows, K) predictions."""
    if weight is None:
        return plain_d2(predictions, np.asarray(y, dtype=np.float64), quantiles)
    from sklearn.metrics import d2_pinball_score

    found = [
        d2_pinball_score(y, predictions[:, k], sample_weight=weight, alpha=q)
        for k, q in enumerate(quantiles)
    ]
    return float(np.mean(found))


def plain_d2(predictions: Array, y: Array, quantiles: tuple[float, ...]) -> float:
    """The same without weights, and without scikit-learn's checks, which searches make too often."""
    if len(y) < 2:
        return float("nan")
    constants = np.percentile(y, 100.0 * np.array(quantiles))
    loss, each = Pinball(quantiles), np.broadcast_to(y, (len(quantiles), len(y)))
    found = loss.value(each, predictions.T).mean(axis=1)
    usual = loss.value(each, np.broadcast_to(constants[:, None], each.shape)).mean(axis=1)
    gained = 1.0 - np.divide(found, usual, out=np.ones(len(usual)), where=usual > 0.0)
    return float(np.where((usual == 0.0) & (found == 0.0), 1.0, gained).mean())
