"""Losses loss(y, f) of a margin f = v.coef + b, with everything the method asks of them.

The kink convention, stated once: the subgradient is the paper's Table 1 with its strict
inequalities, so that at a kink (y f = 1; |y - f| = epsilon) the slope is 0.

A loss supplies its own radius, intercept bound and conjugate, so that no caller asks which loss it
holds. Compiled loops see ``code`` and ``epsilon`` and repeat ``slope`` in scalar form.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


class Loss(Protocol):
    """What the solvers, the feasible set and the certificate need of a loss."""

    code: ClassVar[int]

    @property
    def epsilon(self) -> float:
        """The half-width of the tube (0 where there is none)."""

    def value(self, y: Array, f: Array) -> Array:
        """loss(y, f), elementwise."""

    def slope(self, y: Array, f: Array) -> Array:
        """One element of the subdifferential in f, elementwise."""

    def conjugate(self, y: Array, slope: Array) -> Array:
        """sup_f slope f - loss(y, f), for a slope inside the subdifferential's range."""

    def kink(self, y: Array, f: Array) -> tuple[Array, Array]:
        """(side, t): the loss is max(t, 0), and t falls by ``side`` times what f gains."""

    def corners(self, y: Array, g: Array) -> tuple[Array, Array]:
        """Where loss(y, g + b) bends as b grows, (corners, rows), and its slope before the first.

        At every corner the slope grows by 1.
        """

    def radius(self, lam: float, y_max: float) -> float:
        """R such that every solution of (PL) has |coef| <= R."""

    def intercept_bound(self, y_max: float, reach: float) -> float:
        """B such that a solution has |b| <= B, where |v.coef| <= ``reach`` on every row."""


@dataclass(frozen=True)
class Hinge:
    """max(1 - y f, 0) for y in {-1, 1}; slope -y where y f < 1, else 0."""

    code: ClassVar[int] = 0
    epsilon: ClassVar[float] = 0.0

    def value(self, y: Array, f: Array) -> Array:
        """max(1 - y f, 0)."""
        return np.maximum(1.0 - y * f, 0.0)

    def slope(self, y: Array, f: Array) -> Array:
        """-y where y f < 1, else 0."""
        return np.where(y * f < 1.0, -y, 0.0)

    def conjugate(self, y: Array, slope: Array) -> Array:
        """slope y, for slope y in [-1, 0]."""
        return slope * y

    def kink(self, y: Array, f: Array) -> tuple[Array, Array]:
        """(y, 1 - y f)."""
        return y, 1.0 - y * f

    def corners(self, y: Array, g: Array) -> tuple[Array, Array]:
        """b = y - g; before it the slope is -1 for y = 1, else 0."""
        return (y - g)[None], -(y > 0.0).astype(np.float64)

    def radius(self, lam: float, y_max: float) -> float:
        """1 / sqrt(lam), by strong duality."""
        return float(1.0 / np.sqrt(lam))

    def intercept_bound(self, y_max: float, reach: float) -> float:
        """1 + reach: an optimal b puts some row on its kink y f = 1."""
        return 1.0 + reach


@dataclass(frozen=True)
class EpsilonInsensitive:
    """max(|y - f| - epsilon, 0); slope -1 where y > f + epsilon, 1 where y < f - epsilon, else 0."""

    epsilon: float
    code: ClassVar[int] = 1

    def value(self, y: Array, f: Array) -> Array:
        """max(|y - f| - epsilon, 0)."""
        return np.maximum(np.abs(y - f) - self.epsilon, 0.0)

    def slope(self, y: Array, f: Array) -> Array:
        """-1 where y > f + epsilon, 1 where y < f - epsilon, else 0."""
        return np.where(y > f + self.epsilon, -1.0, np.where(y < f - self.epsilon, 1.0, 0.0))

    def conjugate(self, y: Array, slope: Array) -> Array:
        """slope y + epsilon |slope|, for slope in [-1, 1]."""
        return slope * y + self.epsilon * np.abs(slope)

    def kink(self, y: Array, f: Array) -> tuple[Array, Array]:
        """(sign(y - f), |y - f| - epsilon): the kink on the side where f is."""
        side = np.where(y >= f, 1.0, -1.0)
        return side, side * (y - f) - self.epsilon

    def corners(self, y: Array, g: Array) -> tuple[Array, Array]:
        """b = y - g -+ epsilon; before the first the slope is -1."""
        return np.stack([y - g - self.epsilon, y - g + self.epsilon]), np.full(len(y), -1.0)

    def radius(self, lam: float, y_max: float) -> float:
        """sqrt(2 (y_max - epsilon) / lam) (Theorem 1); 0 in the trivial case epsilon >= y_max."""
        return float(np.sqrt(2.0 * max(y_max - self.epsilon, 0.0) / lam))

    def intercept_bound(self, y_max: float, reach: float) -> float:
        """y_max + epsilon + reach: an optimal b puts some row on a kink."""
        return y_max + self.epsilon + reach
