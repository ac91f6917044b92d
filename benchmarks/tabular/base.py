"""What a method is given, what it gives back, and how its final model is scored.

Losses are errors in per cent, or RMSE of a target that training rows standardise. Times are wall
times, encoding included: all methods have the same threads. Final models that take less than
``SHORT`` seconds are trained twice, and the shorter time counts. On a machine that others use too one
boosting of abalone took 8.9 s, and 0.1 to 0.2 s at other times, so that a result says how much of the
machine others had meanwhile (``others``), and tables mark such times.
"""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np

import datasets as data

SHORT = 10.0
BUSY = 0.1
"""The share of the machine from which on a time is marked."""
Predict = Callable[[Any], np.ndarray]
Fit = Callable[[Any, np.ndarray], Predict]


@dataclass(frozen=True, eq=False)
class Rows:
    """A set and one of its splits, columns as they were read; known by its identity.

    Parameters
    ----------
    train, validation, test : ndarray of int
        The rows of each part.
    seed : int
        Of the split, and of what methods draw.
    threads : int
        What every method may use.
    categorical : tuple of int
        Columns of categories' numbers; NaN is a gap.
    as_published : bool
        Whether columns share a unit, so that encoding leaves them alone.
    """

    X: Any
    y: np.ndarray
    train: np.ndarray
    validation: np.ndarray
    test: np.ndarray
    regression: bool = False
    categorical: tuple[int, ...] = ()
    as_published: bool = False
    seed: int = 0
    threads: int = 2

    @classmethod
    def read(
        cls, name: str, seed: int, threads: int, *, as_published: bool, most: int | None = None
    ) -> Rows:
        """A split of a set; ``most`` training rows, and a third as many to validate and to test."""
        X, y = data.load(name)
        entry = data.SETS[name]
        train, validation, test = entry.parts(len(y), seed)
        if most is not None:
            train, validation, test = train[:most], validation[: most // 3], test[: most // 3]
        if entry.regression:
            y = (y - y[train].mean()) / y[train].std()
        return cls(
            X, y, train, validation, test, entry.regression, entry.categorical, as_published, seed,
            threads,
        )  # fmt: skip

    @property
    def learning(self) -> np.ndarray:
        """What final models are trained on: training and validation rows."""
        return np.concatenate([self.train, self.validation])

    def loss(self, predicted: np.ndarray, chosen: np.ndarray) -> float:
        """Of these rows: RMSE, or the error in per cent."""
        if self.regression:
            return float(np.sqrt(np.mean((np.ravel(predicted) - self.y[chosen]) ** 2)))
        return 100.0 * float(np.mean(np.ravel(predicted) != self.y[chosen]))

    def dense_for(self, method: str) -> Rows:
        """These rows, for a method that takes no sparse ones."""
        if not isinstance(self.X, np.ndarray):
            raise NotImplementedError(f"{method} takes no sparse rows")
        return self


class Method(Protocol):
    """A way to learn a table."""

    @property
    def name(self) -> str:
        """What tables call it."""

    def missing(self) -> str:
        """How to get it where it is not installed, else ""."""

    def version(self) -> str | None:
        """Name and version of the software."""

    def settings(self) -> dict[str, Any]:
        """What tells a result from one that another grid or version would give."""

    def run(self, rows: Rows, say: Callable[[str], None]) -> dict[str, Any]:
        """Choose, train, and score: loss, seconds, and whatever else is worth a record."""


def timed(function: Callable[[], Any]) -> tuple[float, Any]:
    """Wall seconds and the result; peers' warnings are no news here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        begun = time.perf_counter()
        result = function()
        return time.perf_counter() - begun, result


def beside(function: Callable[[], Any]) -> tuple[float, Any]:
    """The share of all cores' time that other processes had meanwhile, and the result; 0 if unknown."""
    (busy, total), own = _machine_ticks(), sum(os.times()[:4])
    result = function()
    (busy_after, total_after), own_after = _machine_ticks(), sum(os.times()[:4])
    ticks = (own_after - own) * os.sysconf("SC_CLK_TCK")
    return max(0.0, busy_after - busy - ticks) / max(total_after - total, 1), result


def _machine_ticks() -> tuple[int, int]:
    """Busy ticks of all cores, and all of them, since the machine was started."""
    try:
        ticks = [int(word) for word in Path("/proc/stat").read_text().splitlines()[0].split()[1:9]]
    except (OSError, ValueError):
        return 0, 0
    return sum(ticks) - ticks[3] - ticks[4], sum(ticks)


def validated(rows: Rows, fit: Fit) -> tuple[float, float]:
    """The validation loss of a model of the training rows, and the seconds of its training."""
    X, y = rows.X[rows.train], rows.y[rows.train]
    seconds, predict = timed(lambda: fit(X, y))
    return rows.loss(predict(rows.X[rows.validation]), rows.validation), seconds


def final(rows: Rows, fit: Fit) -> dict[str, float]:
    """The test loss of a model of training and validation rows; the only look at test rows there is."""
    X, y = rows.X[rows.learning], rows.y[rows.learning]
    others, (seconds, predict) = beside(lambda: timed(lambda: fit(X, y)))
    if seconds < SHORT:
        again, (shorter, _) = beside(lambda: timed(lambda: fit(X, y)))
        seconds, others = min((seconds, others), (shorter, again))
    held = rows.X[rows.test]
    predict_seconds, predicted = timed(lambda: predict(held))
    return dict(
        loss=rows.loss(predicted, rows.test), seconds=seconds, predict_seconds=predict_seconds,
        others=others,
    )  # fmt: skip


def hidden(rows: Rows) -> Rows:
    """The rows with test targets that are of no use: what is chosen by them cannot depend on these."""
    y = rows.y.copy()
    y[rows.test] = y[rows.train[0]]
    return replace(rows, y=y)
