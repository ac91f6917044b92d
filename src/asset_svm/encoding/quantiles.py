"""Quantiles of any number of values in one pass, joined from parts.

A hierarchy of buffers: one that is full is sorted, and every second value of it goes up a level, where
it counts twice (Karnin, Lang, Liberty, "Optimal Quantile Approximation in Streams", FOCS 2016, with
buffers of one size). Which of the two is drawn by the number of the merge, so that parts join to the
same quantiles whenever they come in the same order. Ranks are off by about log2(n / size) / size at
most, and by far less as a rule. Up to twice ``size`` values are kept as they are, and quantiles exact.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from asset_svm.arrays import Array

SIZE = 4096


class QuantileSketch:
    """Quantiles of the values that were added."""

    def __init__(self, size: int = SIZE):
        self.size, self.merges = size, 0
        self.levels: list[list[Array]] = [[]]

    def add(self, values: Array) -> None:
        """Take finite values into account."""
        step = 2 * self.size
        for start in range(0, len(values), step):
            self._put(0, np.array(values[start : start + step], dtype=np.float64))

    def join(self, other: QuantileSketch) -> None:
        """Take what another sketch has seen into account."""
        for number, level in enumerate(other.levels):
            for values in level:
                self._put(number, values)

    def _put(self, number: int, values: Array) -> None:
        while True:
            while number >= len(self.levels):  # another sketch may have none between
                self.levels.append([])
            level = self.levels[number]
            level.append(values)
            if sum(map(len, level)) <= 2 * self.size:
                return
            together = np.sort(np.concatenate(level))
            odd = len(together) % 2
            level[:] = [together[:1]] if odd else []  # the one that has no other
            self.merges += 1
            values, number = together[odd:][self.merges % 2 :: 2], number + 1

    def quantiles(self, parts: Sequence[float] | Array) -> Array:
        """The values below which these parts of all lie: a value that was added, each."""
        values, ranks = self.cumulated()
        places = np.searchsorted(ranks, np.asarray(parts) * ranks[-1], side="left")
        return np.asarray(values[np.minimum(places, len(values) - 1)])

    def cumulated(self) -> tuple[Array, Array]:
        """The values that are kept, in order, and how many lie up to each."""
        values = np.concatenate([part for level in self.levels for part in level] or [np.zeros(0)])
        counts = np.concatenate(
            [
                np.full(len(part), 1 << number)
                for number, level in enumerate(self.levels)
                for part in level
            ]
            or [np.zeros(0, int)]
        )
        order = np.argsort(values, kind="stable")
        return values[order], np.cumsum(counts[order])
