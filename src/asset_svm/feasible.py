"""The feasible set X = {|coef| <= radius} x [-bound, bound] and its Euclidean projection.

``bound=None`` is the set without an intercept: b is 0 and stays 0.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from asset_svm.arrays import Array


@dataclass(frozen=True)
class FeasibleSet:
    """A ball times an interval.

    Notes
    -----
    The paper's "Feasible Sets": radius 1/sqrt(lam) for the hinge loss, Theorem 1's for regression.
    """

    radius: float
    bound: float | None = None

    @property
    def size(self) -> float:
        """D_X = max |x| over X = sqrt(radius^2 + bound^2)."""
        return math.hypot(self.radius, self.bound or 0.0)

    def project(self, coef: Array, intercept: float) -> tuple[Array, float]:
        """The nearest point of X to (coef, intercept)."""
        norm = float(np.linalg.norm(coef))
        if norm > self.radius:
            coef = coef * (self.radius / norm)
        if self.bound is None:
            return coef, 0.0
        return coef, min(max(intercept, -self.bound), self.bound)
