"""Scores of predictions, from blocks of any number of rows in memory that does not grow.

Decisions are counted in bins of their leading bits (a sign, an exponent and 11 bits of the mantissa,
in the order of the numbers), from which ROC, AUC, calibration and histograms follow. Two decisions in
one bin differ by less than a part in 2000: an AUC is off by far less than it is told with.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
BITS = 20
BINS = 1 << BITS


def bin_of(values: Array) -> Array:
    """The bin of each value; a larger value has the same or a later one."""
    bits = np.asarray(values, dtype=np.float32).view(np.int32).astype(np.int64)
    ordered = np.where(bits < 0, -(bits & 0x7FFFFFFF) - 1, bits)
    return (ordered + (1 << 31)) >> (32 - BITS)


def centre_of(bins: Array) -> Array:
    """A value of each bin."""
    ordered = (bins << (32 - BITS)) + (1 << (31 - BITS)) - (1 << 31)
    bits = np.where(ordered < 0, (-(ordered + 1)) | (1 << 31), ordered)
    return bits.astype(np.uint32).view(np.float32).astype(np.float64)


@dataclass(eq=False)
class ClassScores:
    """The scores of a classifier.

    Parameters
    ----------
    classes : array
    """

    classes: Array
    confusion: Array = field(init=False)
    bins: Array | None = field(init=False)
    surprise: float | None = None
    """The sum of -log(probability of the true class), where there are probabilities."""

    def __post_init__(self) -> None:
        K = len(self.classes)
        self.confusion = np.zeros((K, K), dtype=np.int64)
        self.bins = np.zeros((2, BINS), dtype=np.int64) if K == 2 else None

    def add(self, y: Array, predicted: Array, decisions: Array) -> None:
        """Take a block into account; its targets must be known classes."""
        true = np.searchsorted(self.classes, y)
        found = np.searchsorted(self.classes, predicted)
        np.add.at(self.confusion, (true, found), 1)
        if self.bins is not None:
            for label in (0, 1):
                self.bins[label] += np.bincount(bin_of(decisions[true == label, 0]), minlength=BINS)

    def add_probabilities(self, y: Array, probabilities: Array) -> None:
        """Take the (rows, classes) probabilities of a block into account."""
        given = probabilities[np.arange(len(y)), np.searchsorted(self.classes, y)]
        least = np.finfo(np.float64).eps
        self.surprise = (self.surprise or 0.0) - float(np.log(np.maximum(given, least)).sum())

    @property
    def log_loss(self) -> float | None:
        """The mean of -log(probability of the true class)."""
        return None if self.surprise is None else self.surprise / max(self.n_rows, 1)

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return int(self.confusion.sum())

    @property
    def error(self) -> float:
        """The part of the rows that is misclassified."""
        return 1.0 - float(np.trace(self.confusion)) / max(self.n_rows, 1)

    @property
    def precision(self) -> Array:
        """The precision of each class; NaN where it was never predicted."""
        return _ratio(np.diag(self.confusion), self.confusion.sum(axis=0))

    @property
    def recall(self) -> Array:
        """The recall of each class; NaN where there is no row of it."""
        return _ratio(np.diag(self.confusion), self.confusion.sum(axis=1))

    def roc(self) -> tuple[Array, Array]:
        """(false positive rate, true positive rate) from the strictest threshold to the mildest."""
        assert self.bins is not None
        used = np.flatnonzero(self.bins.sum(axis=0))[::-1]
        counts = self.bins[:, used].cumsum(axis=1)
        rates = [np.concatenate([[0.0], c / max(c[-1] if len(c) else 0, 1)]) for c in counts]
        return rates[0], rates[1]

    @property
    def auc(self) -> float | None:
        """The area under the ROC curve; None unless there are two classes, both with rows."""
        if self.bins is None or not (self.bins.sum(axis=1) > 0).all():
            return None
        negative, positive = self.roc()
        return float(np.trapezoid(positive, negative))

    def calibration(self, groups: int = 10) -> tuple[Array, Array]:
        """(mean decision, part of the second class) in groups of equally many rows."""
        assert self.bins is not None
        used = np.flatnonzero(self.bins.sum(axis=0))
        counts, positive, centres = self.bins[:, used].sum(axis=0), self.bins[1, used], centre_of(used)
        group = np.minimum(groups * (counts.cumsum() - 1) // max(counts.sum(), 1), groups - 1)
        rows = np.bincount(group, weights=counts, minlength=groups)
        kept = rows > 0
        mean = np.bincount(group, weights=counts * centres, minlength=groups)[kept] / rows[kept]
        part = np.bincount(group, weights=positive, minlength=groups)[kept] / rows[kept]
        return mean, part


@dataclass(eq=False)
class RealScores:
    """The scores of a regressor; ``sample`` has (y, prediction) of ``most`` rows, drawn uniformly."""

    most: int = 5000
    n_rows: int = 0
    squared: float = 0.0
    absolute: float = 0.0
    mean: float = 0.0
    spread: float = 0.0
    inside: int | None = None
    """The number of rows in their 90 % intervals, where there are any."""
    width: float = 0.0
    """The sum of the widths of these."""
    _rng: np.random.Generator = field(default_factory=lambda: np.random.default_rng(0))
    _keys: Array = field(default_factory=lambda: np.empty(0))
    sample: Array = field(default_factory=lambda: np.empty((0, 2)))

    def add(self, y: Array, predicted: Array, decisions: Array) -> None:
        """Take a block into account."""
        y = np.asarray(y, dtype=np.float64)
        error = np.asarray(predicted, dtype=np.float64) - y
        self.squared += float(error @ error)
        self.absolute += float(np.abs(error).sum())
        # Means and spreads of parts join without loss (Chan et al.).
        n, mean = len(y), float(y.mean())
        total, shift = self.n_rows + n, mean - self.mean
        self.spread += float(((y - mean) ** 2).sum()) + shift**2 * self.n_rows * n / total
        self.mean += shift * n / total
        self.n_rows = total
        keys = np.concatenate([self._keys, self._rng.random(n)])
        rows = np.concatenate([self.sample, np.column_stack([y, predicted])])
        kept = np.argsort(keys)[: self.most]
        self._keys, self.sample = keys[kept], rows[kept]

    def add_intervals(self, y: Array, ends: Array) -> None:
        """Take the (rows, 2) intervals of a block into account."""
        low, high = ends.T
        self.inside = (self.inside or 0) + int(((low <= y) & (y <= high)).sum())
        self.width += float((high - low).sum())

    @property
    def rmse(self) -> float:
        """The root of the mean squared error."""
        return float(np.sqrt(self.squared / max(self.n_rows, 1)))

    @property
    def mae(self) -> float:
        """The mean |error|."""
        return self.absolute / max(self.n_rows, 1)

    @property
    def r2(self) -> float:
        """1 less the squared error relative to that of the mean; NaN where y is constant."""
        return 1.0 - self.squared / self.spread if self.spread > 0 else float("nan")


@dataclass(eq=False)
class OutlierScores:
    """The scores of rows by an outlier detector, counted in bins.

    Parameters
    ----------
    threshold : float
        The score below which rows lie outside.
    """

    threshold: float
    n_rows: int = 0
    n_outside: int = 0
    bins: Array = field(default_factory=lambda: np.zeros(BINS, dtype=np.int64))

    def add(self, decisions: Array) -> None:
        """Take the decisions of a block into account."""
        self.n_rows += len(decisions)
        self.n_outside += int((decisions < 0.0).sum())
        self.bins += np.bincount(bin_of(decisions.ravel() + self.threshold), minlength=BINS)

    @property
    def outside(self) -> float:
        """The part of the rows that lies outside."""
        return self.n_outside / max(self.n_rows, 1)


def _ratio(part: Array, whole: Array) -> Array:
    return np.where(whole > 0, part / np.maximum(whole, 1), np.nan)
