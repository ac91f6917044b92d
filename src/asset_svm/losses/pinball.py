"""max(q (y - f), (q - 1) (y - f)): the loss whose smallest mean is at the q-quantile.

It is the hinge max(f - y, 0) on a slope of -q: slopes lie between -q, where f is below y, and 1 - q.
At the kink f = y the slope is 0. Models on one axis may have quantiles of their own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from asset_svm.arrays import Array
from asset_svm.losses.base import OneForAll
from asset_svm.numerics.compiling import njit


@njit(cache=True, nogil=True, inline="always")
def pinball_slope(q: float, y: float, f: float) -> float:
    """-q where y > f, 1 - q where y < f, else 0."""
    if y > f:
        return -q
    return 1.0 - q if y < f else 0.0


@njit(cache=True, nogil=True, inline="always")
def pinball_excess(q: float, y: float, f: float) -> float:
    """max(q (y - f), (q - 1) (y - f))."""
    return max(q * (y - f), (q - 1.0) * (y - f))


@dataclass(frozen=True)
class Pinball(OneForAll):
    """max(q (y - f), (q - 1) (y - f)); slope -q where y > f, 1 - q where y < f, else 0.

    Parameters
    ----------
    quantiles : tuple of float
        The q of each model of an axis; of more models than quantiles, they come round again.
    """

    quantiles: tuple[float, ...]
    kind: ClassVar[str] = "pinball"
    code: ClassVar[int] = 2
    tube: ClassVar[float] = 0.0
    suits_pairs: ClassVar[bool] = False
    steepest: ClassVar[float] = 1.0
    curvature: ClassVar[float] = 0.0
    cuda: ClassVar[str] = """\
struct Loss {
  template <typename T> static __device__ __forceinline__ T excess(T y, T f, T q) {
    return y < f ? (q - 1) * (y - f) : q * (y - f);
  }
  template <typename T> static __device__ __forceinline__ T steepness(T y, T f, T q) {
    return y < f ? 1 - q : q;
  }
  template <typename T> static __device__ __forceinline__ T unit(T) { return T(1); }
  template <typename T> static __device__ __forceinline__ T turned(T y, T f, T along) {
    return y - f < 0 ? -along : along;
  }
  static __device__ __forceinline__ double low(double cost, double, double q) { return (q - 1) * cost; }
  static __device__ __forceinline__ double high(double cost, double, double q) { return q * cost; }
};
"""

    @property
    def parameter(self) -> tuple[float, ...]:
        """The quantiles."""
        return self.quantiles

    @property
    def tilt(self) -> float:  # type: ignore[override]
        """The quantile, of one model."""
        (q,) = self.quantiles
        return q

    def of_model(self, k: int) -> Pinball:
        """The loss of model k of an axis."""
        return Pinball((self.quantiles[k % len(self.quantiles)],))

    def _beside(self, y: Array) -> Any:
        """q beside targets: one a row of y, where there are several."""
        if len(self.quantiles) == 1:
            return self.quantiles[0]
        return np.resize(self.quantiles, len(y))[:, None]

    def value(self, y: Array, f: Array) -> Array:
        """max(q (y - f), (q - 1) (y - f))."""
        q, apart = self._beside(y), y - f
        return np.asarray(np.maximum(q * apart, (q - 1.0) * apart))

    def slope(self, y: Array, f: Array) -> Array:
        """-q where y > f, 1 - q where y < f, else 0."""
        q = self._beside(y)
        return np.where(y > f, -q, np.where(y < f, 1.0 - q, 0.0))

    def conjugate(self, y: Array, slope: Array) -> Array:
        """slope y, for slope in [-q, 1 - q]."""
        return slope * y

    def kink(self, y: Array, f: Array) -> tuple[Array, Array]:
        """(-1, f - y): the loss is max(t, 0) - q t."""
        return np.full(np.shape(f), -1.0), f - y

    def corners(self, y: Array, g: Array) -> tuple[Array, Array]:
        """b = y - g; before it the slope is -q."""
        return (y - g)[None], np.full(len(y), -self.tilt)

    def box(self, y: Array, cost: Array) -> tuple[Array, Array]:
        """The box (q - 1) cost <= beta <= q cost."""
        q = self._beside(y)
        return (q - 1.0) * cost, q * cost

    def is_trivial(self, y: Array) -> Array:
        """No model is trivial: targets that are all the same are solved like others."""
        return np.zeros(len(y), dtype=bool)

    def radius(self, lam: float, y_max: float) -> float:
        """sqrt(2 max(q, 1 - q) y_max / lam): (PL) is at most that of coef = 0."""
        steepest = max(max(q, 1.0 - q) for q in self.quantiles)
        return float(np.sqrt(2.0 * steepest * y_max / lam))

    def intercept_bound(self, y_max: float, reach: float) -> float:
        """y_max + reach: an optimal b puts some row on its kink.

        Where the q-quantile of the targets is 0, ``reach`` alone would do.
        """
        return y_max + reach
