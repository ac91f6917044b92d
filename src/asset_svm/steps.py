"""Step rules eta_j = scale / j^power, or decaying linearly to 0, and what they are made of.

A rule carries its metric H: steps are x <- P(x - eta H^(-1) G). Both rules of the paper have H = I,
written ``metric=None``.

- ``RobustStep``: eta_j = step_scale D_X / (D_G sqrt j), for (PL) with or without an intercept.
- ``StrongStep``: eta_j = 1 / (lam j), for (PL) without one.
- ``MetricStep``: eta_j = step_scale D_X / (D_G sqrt N) (1 - (j - 1) / N) in the metric of the data,
  where the number N of steps is known; else the robust step in that metric. Steps are truncated.

Truncated (Asi & Duchi, "Stochastic (approximate) proximal point methods", 2019): a loss is never
negative, so that the model loss(f) + slope (f' - f) of it is not trusted below 0. A step on one row
goes at most ``reach`` times the way to where that row's loss is 0; with 1 it is the proximal step.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np

from asset_svm.arrays import Array
from asset_svm.features.metric import Metric
from asset_svm.losses import Loss

GRID = (1.0, 0.3, 0.1, 0.03, 0.01)
"""The multipliers of D_X that the pilot tries, largest first."""
REACH = 1.5
"""The part of the way to a loss of 0 that a step may go: between 1, the proximal step, and 2, the
reflection (by measurement)."""


class StepRule(Protocol):
    """A power law for the lengths of steps, with a metric."""

    @property
    def scale(self) -> float:
        """The length eta_1 of the first step."""

    @property
    def power(self) -> float:
        """The exponent of 1/j."""

    @property
    def horizon(self) -> int:
        """N, where steps decay linearly to 0 over N of them; 0 where they do not."""

    @property
    def reach(self) -> float:
        """The most a step goes, in parts of the way to a loss of 0 on its row; infinity: any."""

    @property
    def metric(self) -> Metric | None:
        """The metric H, or None for the identity."""


@dataclass(frozen=True)
class RobustStep:
    """eta_j = step_scale D_X / (D_G sqrt j).

    Parameters
    ----------
    size : float
        D_X, the radius of the feasible set.
    gradient_bound : float
        D_G, the root mean square norm of a stochastic subgradient.
    step_scale : float
        Multiplies D_X in the step, never in the feasible set; 1 is the paper's.
    """

    size: float
    gradient_bound: float
    step_scale: float = 1.0
    power: ClassVar[float] = 0.5
    horizon: ClassVar[int] = 0
    reach: ClassVar[float] = np.inf
    metric: ClassVar[Metric | None] = None

    @property
    def scale(self) -> float:
        """eta_1 = step_scale D_X / D_G."""
        return self.step_scale * self.size / self.gradient_bound


@dataclass(frozen=True)
class StrongStep:
    """eta_j = 1 / (lam j)."""

    lam: float
    power: ClassVar[float] = 1.0
    horizon: ClassVar[int] = 0
    reach: ClassVar[float] = np.inf
    metric: ClassVar[Metric | None] = None

    @property
    def scale(self) -> float:
        """eta_1 = 1 / lam."""
        return 1.0 / self.lam


@dataclass(frozen=True)
class MetricStep:
    """Steps in the metric of the data.

    Parameters
    ----------
    size, gradient_bound, step_scale : float
        As in ``RobustStep``, with norms taken in the metric.
    metric : Metric
    horizon : int
        N, the number of steps; 0 where it is not known.
    reach : float
    """

    size: float
    gradient_bound: float
    metric: Metric
    step_scale: float = 1.0
    horizon: int = 0
    reach: float = REACH

    @property
    def power(self) -> float:
        """The exponent of 1/j: 0 with a horizon, else 1/2."""
        return 0.0 if self.horizon else 0.5

    @property
    def scale(self) -> float:
        """The length eta_1 of the first step."""
        return self.step_scale * self.size / self.gradient_bound / max(self.horizon, 1) ** 0.5


def gradient_bound(loss: Loss, norms: Array, y: Array, weight: Array | None = None) -> float:
    """D_G from a sample of rows, at the first iterate (0, 0).

    D_G^2 = mean over the sample of d_l^2 (|v_l|^2 + 1), without the "+ 1" when there is no
    intercept. Where every sampled slope is 0 (regression, all |y| <= epsilon) slopes of 1 are used.

    Parameters
    ----------
    norms, y : arrays of shape (M,)
        |v_l|^2 (+ 1) and the targets of the sampled rows.
    weight : array of shape (M,), optional
        Multipliers of the slopes, where rows are weighted by their slope.
    """
    slope = loss.slope(y, np.zeros(len(y)))
    if weight is not None:
        slope = slope * weight
    if not slope.any():
        slope = np.ones(len(y)) if weight is None else weight
    bound = float(np.sqrt(np.mean(slope**2 * norms)))
    return bound if bound > 0.0 else 1.0
