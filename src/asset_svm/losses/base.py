"""What a loss is asked for, and what follows from its parts for any loss.

The kink convention, stated once: the subgradient is the paper's Table 1 with its strict
inequalities, so that at a kink (y f = 1; |y - f| = epsilon) the slope is 0.

A loss is a convex function h of t, how far the margin f lies beyond the kink on its side of the target:

    h(t) = max over 0 <= p <= steepest of p t - curvature p^2 / 2

Curvature 0 and slopes of at most 1 make max(t, 0); curvature 1/2 and slopes of any size max(t, 0)^2,
curvature c and slopes of at most 1 Huber's loss. In the dual, the curvature is a ridge on the diagonal
of the kernel matrix (``dual_ridge``). Another smooth h says itself what it is (``rounded``,
``penalty``). A loss supplies its own radius, box and constants, so that no caller asks which it holds.

Less ``tilt`` times t, a loss may slope on both sides: h(t) = max(t, 0) and a tilt of q make the
pinball loss.

Compiled loops see a number for the loss, ``code``, and one more for each model, ``parameter``
(``table``). The card's kernels have a structure ``Loss`` in their source, which ``cuda`` holds (None:
the loss is for the host), with these members for T = float and double:

    T excess(T y, T f, T parameter)     loss(y, f) where that is positive, else a number that is not
    T steepness(T y, T f, T parameter)  |slope| where loss(y, f) is positive
    T unit(T y)                         minus the sign of the slope on the first side of the target
    T turned(T y, T f, T along)         ``along`` where f is on the first side, else minus that
    double low(double cost, double y, double parameter), high(...)      the box of the dual; it may be
                                        wider than ``box`` where no solution is
"""

from __future__ import annotations

from typing import Any, ClassVar, Protocol, Self

import numpy as np

from asset_svm.arrays import Array

BISECTIONS = 60


class OneForAll:
    """A loss that all models of an axis share, and that follows from its curvature."""

    tilt: ClassVar[float] = 0.0
    suits_cells: ClassVar[bool] = True
    steepest: ClassVar[float]

    @property
    def curvature(self) -> float:
        """The curvature of the conjugate."""
        raise NotImplementedError

    @property
    def is_smooth(self) -> bool:
        """Whether the loss is curved."""
        return self.curvature > 0.0

    def of_model(self, k: int) -> Self:
        """The loss itself."""
        return self

    def of_models(self, which: Array) -> Self:
        """The loss of the models with these numbers, on an axis of their own."""
        own = getattr(self, "parameter", 0.0)
        if not isinstance(own, tuple):
            return self
        build: Any = type(self)
        found: Self = build(tuple(own[k % len(own)] for k in which))
        return found

    def rounded(self, t: Array) -> tuple[Array, Array, Array]:
        """p (t - curvature p / 2) at its best p in [0, steepest], that p, and the curvature."""
        p = np.clip(t / self.curvature, 0.0, self.steepest)
        h = p * (t - 0.5 * self.curvature * p)
        return h, p, np.broadcast_to(self.curvature, t.shape)

    def penalty(self, p: Array) -> Array:
        """curvature p / 2."""
        return 0.5 * self.curvature * p


class Loss(Protocol):
    """What the solvers, the feasible set and the certificate need of a loss."""

    kind: ClassVar[str]
    """The name of the loss in model files."""
    code: ClassVar[int]
    """The place in ``table.LOSSES``, by which compiled loops know the loss."""
    suits_pairs: ClassVar[bool]
    """Whether many models of few rows are solved two coordinates of the dual at a time: where models
    have few support vectors."""
    suits_cells: ClassVar[bool]
    """Whether cells can be solved exactly."""
    steepest: ClassVar[float]
    """The largest |slope|."""

    @property
    def cuda(self) -> str | None:
        """The loss in the source of the card's kernels; None where they have it not."""

    @property
    def curvature(self) -> float:
        """The curvature of the conjugate: 0 where the loss is piecewise linear."""

    @property
    def parameter(self) -> float | tuple[float, ...]:
        """The number that compiled code sees beside ``code``, or one a model; 0 where there is none."""

    @property
    def tilt(self) -> float:
        """The slope that the loss of one model has besides, times -1, as t grows; mostly 0."""

    @property
    def is_smooth(self) -> bool:
        """Whether the slope is continuous."""

    def rounded(self, t: Array) -> tuple[Array, Array, Array]:
        """h(t), its slope p, and one over that of p, of a smooth loss."""

    def penalty(self, p: Array) -> Array:
        """The conjugate of h at p, over p."""

    def of_model(self, k: int) -> Self:
        """The loss of model k of an axis; others take (K, rows) targets and margins."""

    def of_models(self, which: Array) -> Self:
        """The loss of the models with these numbers, on an axis of their own."""

    @property
    def tube(self) -> float:
        """The half-width within which the loss is 0 around a target: the dual has -tube |beta|."""

    def value(self, y: Array, f: Array) -> Array:
        """loss(y, f), elementwise."""

    def slope(self, y: Array, f: Array) -> Array:
        """One element of the subdifferential in f, elementwise."""

    def conjugate(self, y: Array, slope: Array) -> Array:
        """sup_f slope f - loss(y, f), for a slope inside the subdifferential's range."""

    def kink(self, y: Array, f: Array) -> tuple[Array, Array]:
        """(side, t): the loss is h(t), and t falls by ``side`` times what f gains.

        A side of 0 says that the model does not see the row.
        """

    def corners(self, y: Array, g: Array) -> tuple[Array, Array]:
        """Where loss(y, g + b) has kinks as b grows, (corners, rows), and its slope before the first.

        At every corner the slope of a piecewise linear loss grows by 1.
        """

    def box(self, y: Array, cost: Array) -> tuple[Array, Array]:
        """(low, high), between which beta = -cost slope lies in the dual."""

    def is_trivial(self, y: Array) -> Array:
        """Whether, with a free intercept, the constant y[:, 0] solves each model, one a row of y."""

    def radius(self, lam: float, y_max: float) -> float:
        """R such that every solution of (PL) has |coef| <= R."""

    def intercept_bound(self, y_max: float, reach: float) -> float:
        """B such that a solution has |b| <= B, where |v.coef| <= ``reach`` on every row."""


def best_intercept(loss: Loss, y: Array, margins: Array, weight: Array) -> float:
    """The b that makes sum_i w_i loss(y_i, margin_i + b) as small as it gets.

    Where the sum is piecewise linear b is a weighted quantile of the corners. Where a whole interval is
    as good (classes of equal weight that a flat kernel can hardly tell apart) it is its middle. Rows
    that the model does not see have no part in it.
    """
    seen = loss.kink(y, margins)[0] != 0.0
    if not seen.all():
        y, margins, weight = y[seen], margins[seen], weight[seen]
        if len(y) == 0:
            return 0.0
    corners, slope = loss.corners(y, margins)
    if loss.is_smooth:
        low, high = float(corners.min()), float(corners.max())
        for _ in range(BISECTIONS):
            middle = 0.5 * (low + high)
            falls = float(weight @ loss.slope(y, margins + middle)) < 0.0
            low, high = (middle, high) if falls else (low, middle)
        return 0.5 * (low + high)
    order = np.argsort(corners, axis=None)
    places, jumps = corners.ravel()[order], np.tile(weight, len(corners))[order]
    slopes, last = float(weight @ slope) + np.cumsum(jumps), len(order) - 1
    rounding = 1e-12 * float(jumps.sum())
    begin = min(int(np.searchsorted(slopes, -rounding)), last)
    end = min(int(np.searchsorted(slopes, rounding, side="right")), last)
    return 0.5 * float(places[begin] + places[end])


def least_box(cost: Array, at_zero: Array) -> Array:
    """2 sqrt(C_i sum_j C_j at_zero_j): the largest C_i |slope| of squares at a solution.

    There sum_j C_j t_j^2 is at most its value at f = 0, so that t_i <= sqrt(that / C_i).
    """
    total = np.sum(cost * at_zero, axis=-1, keepdims=True)
    return np.asarray(2.0 * np.sqrt(cost * total))


def dual_ridge(loss: Loss, cost: Array) -> Array:
    """curvature / C_i, which the dual has on the diagonal of K; 0 for rows that cost nothing."""
    return np.divide(loss.curvature, cost, out=np.zeros(len(cost)), where=cost > 0.0)
