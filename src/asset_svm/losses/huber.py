"""|y - f| - epsilon / 2 beyond epsilon, (y - f)^2 / (2 epsilon) within: Huber's loss.

Squares for small errors, absolute values for large ones: |y - f| with its kink rounded over epsilon.
(scikit-learn's, of ``SGDRegressor``, is epsilon times this.)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from asset_svm.arrays import Array
from asset_svm.losses.base import OneForAll
from asset_svm.numerics.compiling import njit


@njit(cache=True, nogil=True, inline="always")
def huber_slope(epsilon: float, y: float, f: float) -> float:
    """(f - y) / epsilon, cut at -1 and 1."""
    return min(max((f - y) / epsilon, -1.0), 1.0)


@njit(cache=True, nogil=True, inline="always")
def huber_excess(epsilon: float, y: float, f: float) -> float:
    """|y - f| - epsilon / 2 beyond epsilon, else (y - f)^2 / (2 epsilon)."""
    t = abs(y - f)
    return t - 0.5 * epsilon if t > epsilon else t * t / (2.0 * epsilon)


@dataclass(frozen=True)
class Huber(OneForAll):
    """|y - f| - epsilon / 2 beyond epsilon, (y - f)^2 / (2 epsilon) within."""

    epsilon: float
    kind: ClassVar[str] = "huber"
    code: ClassVar[int] = 5
    tube: ClassVar[float] = 0.0
    suits_pairs: ClassVar[bool] = False
    steepest: ClassVar[float] = 1.0
    cuda: ClassVar[str] = """\
struct Loss {
  template <typename T> static __device__ __forceinline__ T apart(T y, T f) {
    return y < f ? f - y : y - f;
  }
  template <typename T> static __device__ __forceinline__ T excess(T y, T f, T epsilon) {
    const T t = apart(y, f);
    return t > epsilon ? t - epsilon / 2 : t * t / (2 * epsilon);
  }
  template <typename T> static __device__ __forceinline__ T steepness(T y, T f, T epsilon) {
    const T t = apart(y, f);
    return t < epsilon ? t / epsilon : T(1);
  }
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
        """The error epsilon from which the loss is straight."""
        return self.epsilon

    @property
    def curvature(self) -> float:
        """The error epsilon from which the loss is straight."""
        return self.epsilon

    def value(self, y: Array, f: Array) -> Array:
        """|y - f| - epsilon / 2 beyond epsilon, else (y - f)^2 / (2 epsilon)."""
        t = np.abs(y - f)
        return np.where(t > self.epsilon, t - 0.5 * self.epsilon, t * t / (2.0 * self.epsilon))

    def slope(self, y: Array, f: Array) -> Array:
        """(f - y) / epsilon, cut at -1 and 1."""
        return np.clip((f - y) / self.epsilon, -1.0, 1.0)

    def conjugate(self, y: Array, slope: Array) -> Array:
        """slope y + epsilon slope^2 / 2, for slope in [-1, 1]."""
        return np.asarray(slope * y + 0.5 * self.epsilon * slope**2)

    def kink(self, y: Array, f: Array) -> tuple[Array, Array]:
        """(sign(y - f), |y - f|)."""
        side = np.where(y >= f, 1.0, -1.0)
        return side, side * (y - f)

    def corners(self, y: Array, g: Array) -> tuple[Array, Array]:
        """b = y - g: the best b of all rows lies between those of some."""
        return (y - g)[None], self.slope(y, g)

    def box(self, y: Array, cost: Array) -> tuple[Array, Array]:
        """The box |beta| <= cost."""
        return -cost, cost

    def is_trivial(self, y: Array) -> Array:
        """No model is trivial: targets that are all the same are solved like others."""
        return np.zeros(len(y), dtype=bool)

    def radius(self, lam: float, y_max: float) -> float:
        """sqrt(2 loss(y_max, 0) / lam): (PL) is at most that of coef = 0."""
        return float(np.sqrt(2.0 * self.value(np.array(y_max), np.zeros(())) / lam))

    def intercept_bound(self, y_max: float, reach: float) -> float:
        """y_max + reach: beyond, f is on one side of all targets."""
        return y_max + reach
