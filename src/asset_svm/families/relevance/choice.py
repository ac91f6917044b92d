"""The choice among quick fits: the smallest loss, and, with "auto", whether it is worth anything."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from asset_svm.arrays import Array
from asset_svm.families.one_map.components import clearly_less
from asset_svm.families.relevance.quick import QuickFit
from asset_svm.features.relevance import Learnt

GUARD = 2.0
"""Standard errors of the difference that rows as they are must be worse by, row by row."""
LEAST_GAIN = 0.01
"""The part of their loss that they must be worse by."""


@dataclass(eq=False)
class Choice:
    """Quick fits so far, and those whose maps may be taken.

    Parameters
    ----------
    first : QuickFit
        The one that rounds begin with.
    fits : list of QuickFit
        All of them.
    candidates : list of QuickFit
    plain : QuickFit or None
        The best on rows as they are, where that is asked for.
    """

    first: QuickFit
    fits: list[QuickFit] = field(default_factory=list)
    candidates: list[QuickFit] = field(default_factory=list)
    plain: QuickFit | None = None

    def add(self, fit: QuickFit) -> None:
        """Take a fit of a round into account."""
        self.fits.append(fit)
        self.candidates.append(fit)

    @property
    def best(self) -> QuickFit | None:
        """The candidate with the smallest loss."""
        return best_of(self.candidates)

    def learnt(self, deciding: Array, *, auto: bool) -> Learnt:
        """What is taken: the best, or, with ``auto``, rows as they are unless it is clearly better.

        ``deciding`` are the weights of rows that no choice has looked at.
        """
        best, plain = self.best, self.plain
        if auto and best is not None and plain is not None and not is_worth(best, plain, deciding):
            best = None
        chosen = best or (plain if auto else self.first)
        relevance = None if chosen is None or (auto and best is None) else chosen.relevance
        history = [{**fit.record, "chosen": fit is chosen} for fit in self.fits]
        made_of = (best or self.first).made_of
        assert made_of is not None
        return Learnt(relevance, shares(made_of), history)


def best_of(fits: Iterable[QuickFit]) -> QuickFit | None:
    """The fit with the smallest loss."""
    return min(fits, key=lambda fit: fit.loss, default=None)


def is_worth(best: QuickFit, plain: QuickFit, weight: Array) -> bool:
    """Whether a fit is clearly better than one on rows as they are, by rows of these weights."""
    own, other = float(weight @ best.losses), float(weight @ plain.losses)
    clear = clearly_less(best.losses, plain.losses, weight, GUARD)
    return clear and own < (1.0 - LEAST_GAIN) * other and best.error <= plain.error


def shares(M: Array) -> Array:
    """The parts of the columns in the diagonal of M."""
    diagonal = np.diagonal(M) if M.ndim == 2 else M
    total = float(diagonal.sum())
    if not np.isfinite(total) or total <= 0.0:
        return np.full(len(diagonal), 1.0 / len(diagonal))
    return np.asarray(diagonal / total)
