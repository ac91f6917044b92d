"""A search in stages, the same for every set, in place of a product that nobody would wait for.

1. Every shape (kernel, relevance, one map or cells) at two bandwidths and one C, on few rows.
2. The two best shapes at all bandwidths and Cs, on the same rows.
3. The three best settings on all training rows; the best of them with narrower kernels, as long as
   that is better, since rows lie closer where they are many; then half steps of bandwidth and C.
4. Of each shape the larger model at its best: twice the landmarks, and better chosen ones, or four
   partitions of cells twice as large; of cells also the exact SVM of all rows, where the library
   solves so many whole. Where a larger model is the best, half steps of its bandwidth, which need not
   be that of the smaller one; regressions try a finer epsilon at the end.

Of settings whose losses are alike, to a hundredth, the simplest is taken, which is the quickest too.

Bandwidths are factors c of squared lengths: 1 is as wide as the rows. The Gaussian has
gamma = c / v, v the total variance of the rows (n_features where columns are standardised), the
exponential kernel sqrt(c / v), and the laplacian sqrt(c) / d, d the sum of the columns' standard
deviations. Rows that relevance maps keep their total variance, so that factors keep their meaning.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
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
HALF_STEPS = dict(factor=(0.5, 2.0), C=(1.0 / 3.0, 3.0))
"""Factors of bandwidth and C between those of the grid."""
LARGER_STEPS = (0.5, 2.0)
"""Factors of the bandwidth that a larger model tries, which need not be that of the smaller one."""
ALIKE = 1.01
"""Times the smallest loss: what has less is as good."""
WHOLE_ROWS = 16_384
"""Rows up to which a cell is solved exactly."""
LARGE_CELL = 2000
"""The rows of a cell of the larger model; those of the library's choice have half as many."""


@dataclass(frozen=True)
class Candidate:
    """One setting of ours; ``size`` is 0, 1 for the larger model, 2 for the exact one of all rows."""

    kernel: str
    relevance: str | None
    cells: bool
    factor: float = 1.0
    C: float = SCREENING_COST
    size: int = 0
    epsilon: float = EPSILONS[0]

    @property
    def shape(self) -> Candidate:
        """The same with bandwidth, C, size and epsilon left open."""
        return Candidate(self.kernel, self.relevance, self.cells)

    def factors(self) -> tuple[float, ...]:
        """Its bandwidths: cells, which see near rows only, want narrower ones."""
        return CELL_FACTORS if self.cells else MAP_FACTORS

    @property
    def cost(self) -> tuple[float, ...]:
        """What a model takes grows with each of these, the first ones most."""
        return self.size, -self.epsilon, self.C, self.factor

    def options(
        self, n_rows: int, variance: float, deviation: float, *, regression: bool
    ) -> dict[str, Any]:
        """Parameters of the estimator but for ``relevance``."""
        gammas = dict(
            rbf=self.factor / variance,
            exponential=(self.factor / variance) ** 0.5,
            laplacian=self.factor**0.5 / deviation,
        )
        options: dict[str, Any] = dict(kernel=self.kernel, gamma=gammas[self.kernel], C=self.C)
        if not self.cells:
            options |= (
                dict(n_components=2048, landmarks="rpcholesky")
                if self.size
                else dict(n_components=1024)
            )
        elif self.size == 1:
            options |= dict(n_cells=max(n_rows // LARGE_CELL, 1), n_partitions=4)
        else:
            options |= dict(n_cells="auto" if self.size == 0 else 1)
        return options | (dict(epsilon=self.epsilon) if regression else {})

    def __str__(self) -> str:
        cells = ("cells", "large cells x4", "one exact cell")
        family = cells[self.size] if self.cells else f"s={1024 << self.size}"
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


def staged_search(tried: Sequence[Candidate], ask: Ask, *, n_rows: int, regression: bool) -> Candidate:
    """The candidate with the lowest loss on validation rows after training on all training rows.

    ``n_rows`` are those of the final model.
    """
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
    every: dict[Candidate, float] = {}

    def ask_all(candidates: Iterable[Candidate]) -> None:
        for candidate in candidates:
            if candidate not in every:
                every[candidate] = ask(candidate, True)

    ask_all(sorted(few, key=few.get)[:SETTINGS_KEPT])
    while (narrower := _narrower(every)) not in every:
        ask_all([narrower])
    for name, factors in HALF_STEPS.items():
        best = _simplest(every)
        ask_all(replace(best, **{name: getattr(best, name) * factor}) for factor in factors)
    for shape in _best_shapes(every):
        best = _simplest({each: loss for each, loss in every.items() if each.shape == shape})
        whole = shape.cells and n_rows <= WHOLE_ROWS
        ask_all(replace(best, size=size) for size in ((1, 2) if whole else (1,)))
    best = _simplest(every)
    if best.size:
        ask_all(replace(best, factor=best.factor * factor) for factor in LARGER_STEPS)
    if regression:
        ask_all([replace(_simplest(every), epsilon=EPSILONS[1])])
    return _simplest(every)


def _simplest(losses: dict[Candidate, float]) -> Candidate:
    """The simplest of those whose losses are as good as the smallest."""
    least = min(losses.values())
    return min((each for each in losses if losses[each] <= ALIKE * least), key=lambda each: each.cost)


def _narrower(losses: dict[Candidate, float]) -> Candidate:
    """The best candidate with the next factor; itself at the last one there is."""
    best = min(losses, key=losses.get)
    factors = best.factors()
    following = factors.index(best.factor) + 1
    return replace(best, factor=factors[min(following, len(factors) - 1)])


def _best_shapes(losses: dict[Candidate, float]) -> list[Candidate]:
    """Shapes by the best of their losses."""
    return list(dict.fromkeys(candidate.shape for candidate in sorted(losses, key=losses.get)))
