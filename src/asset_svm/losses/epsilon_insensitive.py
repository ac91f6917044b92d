"""max(|y - f| - epsilon, 0): the loss of regression."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from asset_svm.arrays import Array
from asset_svm.losses.base import OneForAll
from asset_svm.numerics.compiling import njit


@njit(cache=True, nogil=True, inline="always")
def tube_slope(epsilon: float, y: float, f: float) -> float:
    """-1 where y > f + epsilon, 1 where y < f - epsilon, else 0."""
    if y > f + epsilon:
        return -1.0
    return 1.0 if y < f - epsilon else 0.0


@njit(cache=True, nogil=True, inline="always")
def tube_excess(epsilon: float, y: float, f: float) -> float:
    """|y - f| - epsilon."""
    return abs(y - f) - epsilon


@dataclass(frozen=True)
class EpsilonInsensitive(OneForAll):
    """max(|y - f| - epsilon, 0); slope -1 where y > f + epsilon, 1 where y < f - epsilon, else 0."""

    epsilon: float
    kind: ClassVar[str] = "epsilon insensitive"
    code: ClassVar[int] = 1
    suits_pairs: ClassVar[bool] = False
    steepest: ClassVar[float] = 1.0
    curvature: ClassVar[float] = 0.0
    cuda: ClassVar[str] = """\
struct Loss {
  template <typename T> static __device__ __forceinline__ T excess(T y, T f, T epsilon) {
    const T residual = y - f;
    return (residual < 0 ? -residual : residual) - epsilon;
  }
  template <typename T> static __device__ __forceinline__ T steepness(T, T, T) { return T(1); }
  template <typename T> static __device__ __forceinline__ T unit(T) { return T(1); }
  template <typename T> static __device__ __forceinline__ T turned(T y, T f, T along) {
    return y - f < 0 ? -along : along;
  }
  static __device__ __forceinline__ double low(double cost, double, double) { return -cost; }
  static __device__ __forceinline__ double high(double cost, double, double) { return cost; }
};
"""

    @property
    def parameter(self) -> float:
        """The half-width epsilon."""
        return self.epsilon

    @property
    def tube(self) -> float:
        """The half-width epsilon."""
        return self.epsilon

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

    def box(self, y: Array, cost: Array) -> tuple[Array, Array]:
        """The box |beta| <= cost."""
        return -cost, cost

    def is_trivial(self, y: Array) -> Array:
        """No model is trivial: targets that are all the same are solved like others."""
        return np.zeros(len(y), dtype=bool)

    def radius(self, lam: float, y_max: float) -> float:
        """sqrt(2 (y_max - epsilon) / lam) (Theorem 1); 0 in the trivial case epsilon >= y_max."""
        return float(np.sqrt(2.0 * max(y_max - self.epsilon, 0.0) / lam))

    def intercept_bound(self, y_max: float, reach: float) -> float:
        """y_max + epsilon + reach: an optimal b puts some row on a kink."""
        return y_max + self.epsilon + reach
