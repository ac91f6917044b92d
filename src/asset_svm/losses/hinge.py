"""max(|y| - y f, 0) for y in {-1, 0, 1}: the loss of classification.

For y in {-1, 1} it is max(1 - y f, 0). A model does not see a row with y = 0: it costs nothing, and has
no slope. Pairs of classes have such targets for the rows of all others.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from asset_svm.arrays import Array
from asset_svm.losses.base import OneForAll
from asset_svm.numerics.compiling import njit


@njit(cache=True, nogil=True, inline="always")
def hinge_slope(y: float, f: float) -> float:
    """-y where y f < |y|, else 0."""
    return -y if y * f < abs(y) else 0.0


@njit(cache=True, nogil=True, inline="always")
def hinge_excess(y: float, f: float) -> float:
    """|y| - y f."""
    return abs(y) - y * f


@dataclass(frozen=True)
class Hinge(OneForAll):
    """max(|y| - y f, 0) for y in {-1, 0, 1}; slope -y where y f < |y|, else 0."""

    kind: ClassVar[str] = "hinge"
    code: ClassVar[int] = 0
    parameter: ClassVar[float] = 0.0
    tube: ClassVar[float] = 0.0
    suits_pairs: ClassVar[bool] = True
    steepest: ClassVar[float] = 1.0
    curvature: ClassVar[float] = 0.0
    cuda: ClassVar[str] = """\
struct Loss {
  template <typename T> static __device__ __forceinline__ T excess(T y, T f, T) {
    return (y < 0 ? -y : y) - y * f;
  }
  template <typename T> static __device__ __forceinline__ T steepness(T, T, T) { return T(1); }
  template <typename T> static __device__ __forceinline__ T unit(T y) { return y; }
  template <typename T> static __device__ __forceinline__ T turned(T, T, T along) { return along; }
  static __device__ __forceinline__ double low(double cost, double y, double) {
    return fmin(cost * y, 0.0);
  }
  static __device__ __forceinline__ double high(double cost, double y, double) {
    return fmax(cost * y, 0.0);
  }
};
"""

    def value(self, y: Array, f: Array) -> Array:
        """max(|y| - y f, 0)."""
        return np.maximum(np.abs(y) - y * f, 0.0)

    def slope(self, y: Array, f: Array) -> Array:
        """-y where y f < |y|, else 0."""
        return np.where(y * f < np.abs(y), -y, 0.0)

    def conjugate(self, y: Array, slope: Array) -> Array:
        """slope y, for slope y in [-1, 0]."""
        return slope * y

    def kink(self, y: Array, f: Array) -> tuple[Array, Array]:
        """(y, |y| - y f)."""
        return y, np.abs(y) - y * f

    def corners(self, y: Array, g: Array) -> tuple[Array, Array]:
        """b = y - g; before it the slope is -1 for y = 1, else 0."""
        return (y - g)[None], -(y > 0.0).astype(np.float64)

    def box(self, y: Array, cost: Array) -> tuple[Array, Array]:
        """The box 0 <= y beta <= cost."""
        return np.minimum(cost * y, 0.0), np.maximum(cost * y, 0.0)

    def is_trivial(self, y: Array) -> Array:
        """Whether all rows that a model sees are of one class: a constant of 1 or -1 has no loss."""
        return np.asarray(~((y > 0.0).any(axis=1) & (y < 0.0).any(axis=1)))

    def radius(self, lam: float, y_max: float) -> float:
        """1 / sqrt(lam), by strong duality."""
        return float(1.0 / np.sqrt(lam))

    def intercept_bound(self, y_max: float, reach: float) -> float:
        """1 + reach: an optimal b puts some row on its kink y f = 1."""
        return 1.0 + reach
