"""A search in three stages, the same for every set, in place of a product that nobody would wait for.

1. Every shape (kernel, relevance, one map or cells) at two bandwidths and one C, on few rows.
2. The two best shapes at all bandwidths and Cs, on the same rows.
3. The three best settings on all training rows; the best of them with narrower kernels, as long as
   that is better, since rows lie closer where they are many; of each shape the larger model (twice
   the landmarks, four partitions of cells) at its best; regressions try a finer epsilon at the end.

Bandwidths are factors c of squared lengths: 1 is as wide as the rows. The Gaussian has
gamma = c / v, v the total variance of the rows (n_features where columns are standardised), the
exponential kernel sqrt(c / v), and the laplacian sqrt(c) / d, d the sum of the columns' standard
deviations. Rows that relevance maps keep their total variance, so that factors keep their meaning.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

KERNELS = ("rbf", "exponential", "laplacian")
RELEVANCES = (None, "columns", "directions")
CELL_FACTORS = (0.25, 1.0, 4.0, 16.0, 64.0, 256.0)
MAP_FACTORS = (0.0625, 0.25, 1.0, 4.0, 16.0)
SCREENED = slice(1, 4, 2)
"""The second and the fourth factor: on either side of the middle."""
COSTS = (1.0, 10.0, 100.0, 1000.0)
SCREENING_COST = 10.0
EPSILONS = (0.05, 0.01)
SHAPES_KEPT, SETTINGS_KEPT = 2, 3


@dataclass(frozen=True)
class Candidate:
    """One setting of ours."""

    kernel: str
    relevance: str | None
    cells: bool
    factor: float = 1.0
    C: float = SCREENING_COST
    large: bool = False
    epsilon: float = EPSILONS[0]

    @property
    def shape(self) -> Candidate:
        """The same with bandwidth, C, size and epsilon left open."""
        return Candidate(self.kernel, self.relevance, self.cells)

    def factors(self) -> tuple[float, ...]:
        """Its bandwidths: cells, which see near rows only, want narrower ones."""
        return CELL_FACTORS if self.cells else MAP_FACTORS

    def options(self, variance: float, deviation: float, *, regression: bool) -> dict[str, Any]:
        """Parameters of the estimator but for ``relevance``."""
        gammas = dict(
            rbf=self.factor / variance,
            exponential=(self.factor / variance) ** 0.5,
            laplacian=self.factor**0.5 / deviation,
        )
        options: dict[str, Any] = dict(kernel=self.kernel, gamma=gammas[self.kernel], C=self.C)
        if self.cells:
            options |= dict(n_cells="auto", n_partitions=4 if self.large else 1)
        else:
            options |= dict(n_components=2048 if self.large else 1024)
        return options | (dict(epsilon=self.epsilon) if regression else {})

    def __str__(self) -> str:
        family = ("cells x4" if self.large else "cells") if self.cells else f"s={1024 << self.large}"
        words = f"{self.kernel}, {self.relevance or 'no relevance'}, {family}, c={self.factor:g}"
        return f"{words}, C={self.C:g}" + (", finer" if self.epsilon < EPSILONS[0] else "")


Ask = Callable[[Candidate, bool], float]
"""The validation loss of a candidate, on few rows (False) or on all training rows."""


def shapes(kernels: Sequence[str], relevances: Sequence[str | None]) -> list[Candidate]:
    """All there are; the laplacian has no directions: it is no function of Euclidean lengths."""
    return [
        Candidate(kernel, relevance, cells)
        for kernel, relevance, cells in itertools.product(kernels, relevances, (False, True))
        if (kernel, relevance) != ("laplacian", "directions")
    ]


def staged_search(tried: Sequence[Candidate], ask: Ask, *, regression: bool) -> Candidate:
    """The candidate with the lowest loss on validation rows after training on all training rows."""
    few: dict[Candidate, float] = {}
    for shape in tried:
        for factor in shape.factors()[SCREENED]:
            candidate = replace(shape, factor=factor)
            few[candidate] = ask(candidate, False)
    for shape in _best_shapes(few)[:SHAPES_KEPT]:
        for factor, C in itertools.product(shape.factors(), COSTS):
            candidate = replace(shape, factor=factor, C=C)
            if candidate not in few:
                few[candidate] = ask(candidate, False)
    every = {candidate: ask(candidate, True) for candidate in sorted(few, key=few.get)[:SETTINGS_KEPT]}
    narrower = _narrower(every)
    while narrower not in every:
        every[narrower] = ask(narrower, True)
        narrower = _narrower(every)
    for shape in _best_shapes(every):
        best = min((candidate for candidate in every if candidate.shape == shape), key=every.get)
        larger = replace(best, large=True)
        every[larger] = ask(larger, True)
    if regression:
        finer = replace(min(every, key=every.get), epsilon=EPSILONS[1])
        every[finer] = ask(finer, True)
    return min(every, key=every.get)


def _narrower(losses: dict[Candidate, float]) -> Candidate:
    """The best candidate with the next factor; itself at the last one there is."""
    best = min(losses, key=losses.get)
    factors = best.factors()
    following = factors.index(best.factor) + 1
    return replace(best, factor=factors[min(following, len(factors) - 1)])


def _best_shapes(losses: dict[Candidate, float]) -> list[Candidate]:
    """Shapes by the best of their losses."""
    return list(dict.fromkeys(candidate.shape for candidate in sorted(losses, key=losses.get)))
