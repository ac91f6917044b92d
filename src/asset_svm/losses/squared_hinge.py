"""max(|y| - y f, 0)^2 for y in {-1, 0, 1}: a smooth loss of classification.

A model does not see a row with y = 0, as that of the hinge loss does not.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from asset_svm.arrays import Array
from asset_svm.losses.base import OneForAll, least_box
from asset_svm.numerics.compiling import njit


@njit(cache=True, nogil=True, inline="always")
def squared_hinge_slope(y: float, f: float) -> float:
    """-2 y max(|y| - y f, 0)."""
    return -2.0 * y * (abs(y) - y * f) if y * f < abs(y) else 0.0


@njit(cache=True, nogil=True, inline="always")
def squared_hinge_excess(y: float, f: float) -> float:
    """(|y| - y f)^2 where y f < |y|, else |y| - y f."""
    t = abs(y) - y * f
    return t * t if t > 0.0 else t


@dataclass(frozen=True)
class SquaredHinge(OneForAll):
    """max(|y| - y f, 0)^2 for y in {-1, 0, 1}; slope -2 y max(|y| - y f, 0)."""

    kind: ClassVar[str] = "squared hinge"
    code: ClassVar[int] = 3
    parameter: ClassVar[float] = 0.0
    tube: ClassVar[float] = 0.0
    suits_pairs: ClassVar[bool] = False
    steepest: ClassVar[float] = np.inf
    curvature: ClassVar[float] = 0.5
    cuda: ClassVar[str] = """\
struct Loss {
  template <typename T> static __device__ __forceinline__ T beyond(T y, T f) {
    return (y < 0 ? -y : y) - y * f;
  }
  template <typename T> static __device__ __forceinline__ T excess(T y, T f, T) {
    const T t = beyond(y, f);
    return t > 0 ? t * t : t;
  }
  template <typename T> static __device__ __forceinline__ T steepness(T y, T f, T) {
    return T(2) * beyond(y, f);
  }
  template <typename T> static __device__ __forceinline__ T unit(T y) { return y; }
  template <typename T> static __device__ __forceinline__ T turned(T, T, T along) { return along; }
  static __device__ __forceinline__ double low(double, double y, double) {
    return y < 0 ? -1e300 : 0.0;
  }
  static __device__ __forceinline__ double high(double, double y, double) {
    return y > 0 ? 1e300 : 0.0;
  }
};
"""

    def value(self, y: Array, f: Array) -> Array:
        """max(|y| - y f, 0)^2."""
        return np.asarray(np.maximum(np.abs(y) - y * f, 0.0) ** 2)

    def slope(self, y: Array, f: Array) -> Array:
        """-2 y max(|y| - y f, 0)."""
        return -2.0 * y * np.maximum(np.abs(y) - y * f, 0.0)

    def conjugate(self, y: Array, slope: Array) -> Array:
        """slope y + slope^2 / 4, for slope y <= 0."""
        return np.asarray(slope * y + 0.25 * slope**2)

    def kink(self, y: Array, f: Array) -> tuple[Array, Array]:
        """(y, |y| - y f)."""
        return y, np.abs(y) - y * f

    def corners(self, y: Array, g: Array) -> tuple[Array, Array]:
        """b = y - g: the best b of all rows lies between those of some."""
        return (y - g)[None], self.slope(y, g)

    def box(self, y: Array, cost: Array) -> tuple[Array, Array]:
        """0 <= y beta, up to where no solution is: sum C_i loss_i is at most sum C_i."""
        most = least_box(cost, np.ones_like(cost))
        return np.where(y < 0.0, -most, 0.0), np.where(y > 0.0, most, 0.0)

    def is_trivial(self, y: Array) -> Array:
        """Whether all rows that a model sees are of one class: a constant of 1 or -1 has no loss."""
        return np.asarray(~((y > 0.0).any(axis=1) & (y < 0.0).any(axis=1)))

    def radius(self, lam: float, y_max: float) -> float:
        """sqrt(2 / lam): (PL) is at most 1, that of coef = 0."""
        return float(np.sqrt(2.0 / lam))

    def intercept_bound(self, y_max: float, reach: float) -> float:
        """1 + reach: beyond, all rows of a class have no loss, and those of the other gain."""
        return 1.0 + reach
