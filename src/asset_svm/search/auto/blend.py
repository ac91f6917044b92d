"""The weights of a mean of candidates, by greedy selection with replacement.

Caruana, Niculescu-Mizil, Crew, Ksikes, "Ensemble selection from libraries of models" (ICML 2004): the
candidate whose decisions lower the loss of the mean most is added, again and again, the best alone
first. Of classes the loss is the logarithmic one of decisions that are scaled to fit: errors of some
thousand rows jump too much to tell two means apart. A mean is worth taking where weights that one half
of the rows has found gain on the other half, and make no more errors there than chance would.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from asset_svm.arrays import Array
from asset_svm.tasks import Quantiles, Task

PICKS = 10
"""Candidates that are added; a weight is a multiple of one over it."""
MOST_MEMBERS = 4
LEAST_WEIGHT = 0.15
"""Members of less, which were added once, are left out: they cost as much as others to predict by."""
WORTH = 1.0
"""Standard errors that the gain of a mean must be above, and that its errors may be above."""
FEWEST_ROWS = 100
SHARPNESSES = 2.0 ** np.arange(-2.0, 6.5, 0.5)


class Losses(Protocol):
    """The losses of decisions on some rows."""

    def __call__(self, decisions: Array) -> Array:
        """The loss of every row, of (rows, outputs) decisions."""

    def errors(self, decisions: Array) -> Array:
        """What every row adds to the error that users look at."""

    def settled(self, decisions: Array) -> Losses:
        """The losses with what is to be fitted, fitted to these decisions."""

    def of(self, rows: Array) -> Losses:
        """The losses on some of the rows."""


def losses_of_numbers(task: Task, y: Array) -> Losses:
    """What decisions of numbers are judged by: squares, or the pinball loss of quantiles."""
    return PinballLosses(task, y) if isinstance(task, Quantiles) else SquaredLosses(y)


@dataclass(frozen=True, eq=False)
class PinballLosses:
    """Of quantiles, in order."""

    task: Quantiles
    y: Array

    def __call__(self, decisions: Array) -> Array:
        """The pinball loss, the mean over the quantiles."""
        return self.task.row_losses(decisions, self.y)

    errors = __call__

    def settled(self, decisions: Array) -> PinballLosses:
        """There is nothing to fit."""
        return self

    def of(self, rows: Array) -> PinballLosses:
        """The losses on some of the rows."""
        return replace(self, y=self.y[rows])


@dataclass(frozen=True, eq=False)
class SquaredLosses:
    """Of regressions."""

    y: Array

    def __call__(self, decisions: Array) -> Array:
        """The squared difference from the target, the mean over outputs."""
        return np.asarray(((decisions - self.y.reshape(len(decisions), -1)) ** 2).mean(axis=1))

    errors = __call__

    def settled(self, decisions: Array) -> SquaredLosses:
        """There is nothing to fit."""
        return self

    def of(self, rows: Array) -> SquaredLosses:
        """The losses on some of the rows."""
        return SquaredLosses(self.y[rows])


@dataclass(frozen=True, eq=False)
class LogLosses:
    """Of classes: the logarithm of what the class of a row is given by ``sharpness`` times decisions.

    Parameters
    ----------
    codes : array of int
        The number of the class of every row.
    weight : array
        What every row counts.
    sharpness : float
    """

    codes: Array
    weight: Array
    sharpness: float = 1.0

    def __call__(self, decisions: Array) -> Array:
        """The weighted logarithmic loss of every row."""
        found = self.sharpness * decisions
        if found.shape[1] == 1:
            signed = np.where(self.codes == 1, -found[:, 0], found[:, 0])
            return np.asarray(self.weight * np.logaddexp(0.0, signed))
        found -= found.max(axis=1, keepdims=True)
        own = found[np.arange(len(found)), self.codes]
        return np.asarray(self.weight * (np.log(np.exp(found).sum(axis=1)) - own))

    def errors(self, decisions: Array) -> Array:
        """The weight of rows of another class."""
        several = decisions.shape[1] > 1
        found = decisions.argmax(axis=1) if several else (decisions[:, 0] > 0.0)
        return np.asarray(self.weight * (found != self.codes))

    def settled(self, decisions: Array) -> LogLosses:
        """The same at the sharpness that fits these decisions best."""
        tried = [replace(self, sharpness=float(each)) for each in SHARPNESSES]
        return min(tried, key=lambda each: float(each(decisions).mean()))

    def of(self, rows: Array) -> LogLosses:
        """The losses on some of the rows."""
        return replace(self, codes=self.codes[rows], weight=self.weight[rows])


Fits = Callable[[Array], bool]
"""Whether there is time for members of these numbers."""


def greedy_weights(decisions: Sequence[Array], losses: Losses, fits: Fits) -> Array:
    """The weights of candidates with these decisions, which add up to 1; most are 0."""
    counts = np.zeros(len(decisions))
    counts[0] = 1
    total = decisions[0].copy()
    while counts.sum() < PICKS:
        losses = losses.settled(total / counts.sum())
        open_ = [number for number in range(len(decisions)) if _is_open(counts, number, fits)]
        means = [float(losses((total + decisions[k]) / (counts.sum() + 1)).mean()) for k in open_]
        best = open_[int(np.argmin(means))]
        counts[best] += 1
        total += decisions[best]
    weights = counts / counts.sum()
    weights[weights < LEAST_WEIGHT] = 0.0
    return np.asarray(weights / weights.sum())


def _is_open(counts: Array, number: int, fits: Fits) -> bool:
    """Whether a candidate may be added: it is in already, or there is room and time for it."""
    if counts[number]:
        return True
    members = np.append(np.flatnonzero(counts), number)
    return len(members) <= MOST_MEMBERS and fits(members)


def worthwhile_weights(
    decisions: Sequence[Array], losses: Losses, fits: Fits, seed: int
) -> Array | None:
    """The weights of a mean that gains over the first candidate; None where it does not."""
    m = len(decisions[0])
    if len(decisions) < 2 or m < FEWEST_ROWS:
        return None
    order = np.random.default_rng([seed, 23]).permutation(m)
    gains, fewer = np.empty(m), np.empty(m)
    for chosen, judged in ((order[: m // 2], order[m // 2 :]), (order[m // 2 :], order[: m // 2])):
        weights = greedy_weights([each[chosen] for each in decisions], losses.of(chosen), fits)
        mean = _mean([each[judged] for each in decisions], weights)
        before, own = decisions[0][judged], losses.of(judged)
        gains[judged] = own.settled(before)(before) - own.settled(mean)(mean)
        fewer[judged] = own.errors(before) - own.errors(mean)
    if gains.mean() <= WORTH * _error(gains) or fewer.mean() < -WORTH * _error(fewer):
        return None
    weights = greedy_weights(decisions, losses, fits)
    return weights if np.count_nonzero(weights) > 1 else None


def _mean(decisions: Sequence[Array], weights: Array) -> Array:
    return np.asarray(sum(w * each for w, each in zip(weights, decisions, strict=True) if w > 0.0))


def _error(values: Array) -> float:
    """The standard error of a mean."""
    return float(values.std() / np.sqrt(len(values)))
