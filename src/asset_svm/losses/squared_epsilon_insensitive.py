"""max(|y - f| - epsilon, 0)^2: a smooth loss of regression; half-way to least squares."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from asset_svm.arrays import Array
from asset_svm.losses.base import OneForAll, least_box
from asset_svm.numerics.compiling import njit


@njit(cache=True, nogil=True, inline="always")
def squared_tube_slope(epsilon: float, y: float, f: float) -> float:
    """-2 (y - f - epsilon) where y > f + epsilon, 2 (f - y - epsilon) where y < f - epsilon, else 0."""
    if y > f + epsilon:
        return -2.0 * (y - f - epsilon)
    return 2.0 * (f - y - epsilon) if y < f - epsilon else 0.0


@njit(cache=True, nogil=True, inline="always")
def squared_tube_excess(epsilon: float, y: float, f: float) -> float:
    """(|y - f| - epsilon)^2 beyond the tube, else |y - f| - epsilon."""
    t = abs(y - f) - epsilon
    return t * t if t > 0.0 else t


@dataclass(frozen=True)
class SquaredEpsilonInsensitive(OneForAll):
    """max(|y - f| - epsilon, 0)^2."""

    epsilon: float
    kind: ClassVar[str] = "squared epsilon insensitive"
    code: ClassVar[int] = 4
    suits_pairs: ClassVar[bool] = False
    steepest: ClassVar[float] = np.inf
    curvature: ClassVar[float] = 0.5
    cuda: ClassVar[str] = """\
struct Loss {
  template <typename T> static __device__ __forceinline__ T beyond(T y, T f, T epsilon) {
    const T residual = y - f;
    return (residual < 0 ? -residual : residual) - epsilon;
  }
  template <typename T> static __device__ __forceinline__ T excess(T y, T f, T epsilon) {
    const T t = beyond(y, f, epsilon);
    return t > 0 ? t * t : t;
  }
  template <typename T> static __device__ __forceinline__ T steepness(T y, T f, T epsilon) {
    return T(2) * beyond(y, f, epsilon);
  }
  template <typename T> static __device__ __forceinline__ T unit(T) { return T(1); }
  template <typename T> static __device__ __forceinline__ T turned(T y, T f, T along) {
    return y - f < 0 ? -along : along;
  }
  static __device__ __forceinline__ double low(double, double, double) { return -1e300; }
  static __device__ __forceinline__ double high(double, double, double) { return 1e300; }
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
        """max(|y - f| - epsilon, 0)^2."""
        return np.asarray(np.maximum(np.abs(y - f) - self.epsilon, 0.0) ** 2)

    def slope(self, y: Array, f: Array) -> Array:
        """-2 sign(y - f) max(|y - f| - epsilon, 0)."""
        return -2.0 * np.sign(y - f) * np.maximum(np.abs(y - f) - self.epsilon, 0.0)

    def conjugate(self, y: Array, slope: Array) -> Array:
        """slope y + epsilon |slope| + slope^2 / 4."""
        return np.asarray(slope * y + self.epsilon * np.abs(slope) + 0.25 * slope**2)

    def kink(self, y: Array, f: Array) -> tuple[Array, Array]:
        """(sign(y - f), |y - f| - epsilon): the kink on the side where f is."""
        side = np.where(y >= f, 1.0, -1.0)
        return side, side * (y - f) - self.epsilon

    def corners(self, y: Array, g: Array) -> tuple[Array, Array]:
        """b = y - g -+ epsilon: the best b of all rows lies between those of some."""
        return np.stack([y - g - self.epsilon, y - g + self.epsilon]), self.slope(y, g)

    def box(self, y: Array, cost: Array) -> tuple[Array, Array]:
        """Up to where no solution is: sum C_i loss_i is at most that of f = 0."""
        most = least_box(cost, self.value(y, np.zeros_like(y)))
        return -most, most

    def is_trivial(self, y: Array) -> Array:
        """No model is trivial: targets that are all the same are solved like others."""
        return np.zeros(len(y), dtype=bool)

    def radius(self, lam: float, y_max: float) -> float:
        """sqrt(2 / lam) (y_max - epsilon): (PL) is at most that of coef = 0."""
        return float(np.sqrt(2.0 / lam) * max(y_max - self.epsilon, 0.0))

    def intercept_bound(self, y_max: float, reach: float) -> float:
        """y_max + epsilon + reach: beyond, all rows are on one side of their tubes."""
        return y_max + self.epsilon + reach
