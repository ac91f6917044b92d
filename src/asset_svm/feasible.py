"""The feasible set X = {|coef| <= radius} x [-bound, bound], onto which every step is projected.

``bound=None`` is the set without an intercept: b is 0 and stays 0.
"""

from __future__ import annotations

import math
from dataclasses import dataclass


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
