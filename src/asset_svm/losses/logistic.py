"""log(1 + exp(-y f)) for y in {-1, 1}: the loss whose decisions are logarithms of odds.

At its smallest mean, expit(f) is the probability of y = 1. A model does not see a row with y = 0, whose
loss is 0. No other row has a loss of 0, so that every one is a support vector: cells have no exact
solver for it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import entr, expit

from asset_svm.arrays import Array
from asset_svm.losses.base import OneForAll
from asset_svm.numerics.compiling import njit

FLAT = 40.0
"""Margins beyond which a slope is 0 or 1 to rounding."""


@njit(cache=True, nogil=True, inline="always")
def logistic_slope(y: float, f: float) -> float:
    """-y / (1 + exp(y f))."""
    m = y * f
    if m > 0.0:
        small = np.exp(-m)
        return -y * small / (1.0 + small)
    return -y / (1.0 + np.exp(m))


@njit(cache=True, nogil=True, inline="always")
def logistic_excess(y: float, f: float) -> float:
    """log(1 + exp(-y f)); 0 for y = 0."""
    if y == 0.0:
        return 0.0
    m = y * f
    return np.log1p(np.exp(-m)) if m > 0.0 else np.log1p(np.exp(m)) - m


@dataclass(frozen=True)
class Logistic(OneForAll):
    """log(1 + exp(-y f)) for y in {-1, 1}, 0 for y = 0; slope -y / (1 + exp(y f))."""

    kind: ClassVar[str] = "logistic"
    code: ClassVar[int] = 6
    parameter: ClassVar[float] = 0.0
    tube: ClassVar[float] = 0.0
    suits_pairs: ClassVar[bool] = False
    suits_cells: ClassVar[bool] = False
    is_smooth: ClassVar[bool] = True
    steepest: ClassVar[float] = 1.0
    curvature: ClassVar[float] = 0.0
    cuda: ClassVar[str] = """\
struct Loss {
  template <typename T> static __device__ __forceinline__ T excess(T y, T f, T) {
    const T m = y * f;
    if (y == 0) return T(0);
    return m > 0 ? log1p(exp(-m)) : log1p(exp(m)) - m;
  }
  template <typename T> static __device__ __forceinline__ T steepness(T y, T f, T) {
    const T m = y * f, small = exp(m > 0 ? -m : m);
    return m > 0 ? small / (1 + small) : 1 / (1 + small);
  }
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
        """log(1 + exp(-y f)); 0 for y = 0."""
        return np.where(y == 0.0, 0.0, np.logaddexp(0.0, -y * f))

    def slope(self, y: Array, f: Array) -> Array:
        """-y / (1 + exp(y f))."""
        return np.asarray(-y * expit(-y * f))

    def conjugate(self, y: Array, slope: Array) -> Array:
        """p log p + (1 - p) log(1 - p), for p = -slope y in [0, 1]."""
        p = np.clip(-slope * y, 0.0, 1.0)
        return np.asarray(-entr(p) - entr(1.0 - p))

    def kink(self, y: Array, f: Array) -> tuple[Array, Array]:
        """(y, -y f)."""
        return y, -y * f

    def rounded(self, t: Array) -> tuple[Array, Array, Array]:
        """log(1 + exp(t)), its slope p, and 1 / (p (1 - p))."""
        p = expit(t)
        return np.logaddexp(0.0, t), p, 1.0 / np.maximum(p * (1.0 - p), 1e-12)

    def penalty(self, p: Array) -> Array:
        """log p + (1 - p) / p log(1 - p); 0 where p is."""
        total = -entr(p) - entr(1.0 - p)
        return np.divide(total, p, out=np.zeros_like(p), where=p > 0.0)

    def corners(self, y: Array, g: Array) -> tuple[Array, Array]:
        """b = 40 y - g, where the slope ends: the best b of all rows lies between those of some."""
        return (FLAT * y - g)[None], self.slope(y, g)

    def box(self, y: Array, cost: Array) -> tuple[Array, Array]:
        """The box 0 <= y beta <= cost."""
        return np.minimum(cost * y, 0.0), np.maximum(cost * y, 0.0)

    def is_trivial(self, y: Array) -> Array:
        """No model is trivial: the best constant is infinite where a class is alone."""
        return np.zeros(len(y), dtype=bool)

    def radius(self, lam: float, y_max: float) -> float:
        """sqrt(2 log(2) / lam): (PL) is at most log 2, that of coef = 0."""
        return float(np.sqrt(2.0 * np.log(2.0) / lam))

    def intercept_bound(self, y_max: float, reach: float) -> float:
        """20 + reach: odds of 5e8 between the classes, where f leaves them to b."""
        return 0.5 * FLAT + reach
