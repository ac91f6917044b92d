"""Rows drawn in proportion to scores: of leverage, or of closeness to a decision boundary."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from asset_svm.arrays import Array
from asset_svm.features.landmarks.base import Landmarks, allowed_rows
from asset_svm.kernels import Kernel


def draw_by_scores(scores: Array, count: int, rng: np.random.Generator) -> Array:
    """``count`` distinct positions, drawn one after the other in proportion to ``scores``.

    The first of exponential clocks that run at these rates (Efraimidis and Spirakis): one sort
    instead of ``count`` draws. Positions of score 0 come last, and only where the others are too few.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        clocks = rng.exponential(size=len(scores)) / scores
    ties = rng.random(len(scores))  # among clocks that stand still
    return np.lexsort((ties, clocks))[:count]


@dataclass(frozen=True, eq=False)
class ScoredRows:
    """A sampler of rows in proportion to given scores.

    Parameters
    ----------
    scores : array of shape (m,)
        Not negative; one a row of X.
    """

    scores: Array

    def __call__(
        self, X: Any, kernel: Kernel, count: int, rng: np.random.Generator, weight: Array | None = None
    ) -> Landmarks:
        """Choose ``count`` distinct rows."""
        allowed = allowed_rows(X, weight)
        return Landmarks.of_rows(X, allowed[draw_by_scores(self.scores[allowed], count, rng)])
