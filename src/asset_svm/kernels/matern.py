"""The Matern kernel of smoothness 3/2: its functions have one derivative, the Gaussian's have all.

gamma is 1 / (2 l^2), l the length scale, as the Gaussian's, which is the limit of great smoothness:

    (1 + r) exp(-r),   r = sqrt(3) |x - z| / l = sqrt(6 gamma) |x - z|
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.special import chdtri, ndtri

from asset_svm.arrays import Array
from asset_svm.kernels.distances import SquaredDistanceFormula
from asset_svm.kernels.formula import SpectralDensity, Values
from asset_svm.numerics.compiling import njit
from asset_svm.numerics.elementwise import FAST, decay

FREEDOM = 3
"""Twice the smoothness."""
FARTHEST = -1e5
"""t from which on exp(-r) is 0 in float64."""


@njit(cache=True, nogil=True, fastmath=FAST)
def matern_loop(dots: Array, left: Array, right: Array) -> None:
    """``SquaredDistanceFormula.finished`` in one pass, in place; all of one type."""
    real = dots.dtype.type
    for i in range(dots.shape[0]):
        row, norm = dots[i, : right.shape[0]], left[i]
        for j in range(row.shape[0]):
            t = min(row[j] + row[j] - norm - right[j], real(0.0))
            r = -np.sqrt(real(-6.0) * t)
            row[j] = (real(1.0) - max(r, real(-1000.0))) * decay(r)


@dataclass(frozen=True)
class StudentDensity(SpectralDensity):
    """The density of nu = sqrt(2 gamma) z sqrt(3 / w), z ~ N(0, I) and w ~ chi^2 of 3 degrees."""

    def sample(self, n: int, count: int, rng: np.random.Generator) -> Array:
        """Draw independent frequencies."""
        return rng.normal(size=(n, count)) * self._widths(rng.chisquare(FREEDOM, size=count))

    def lengths(self, n: int, count: int, rng: np.random.Generator) -> Array:
        """Draw lengths: |z| is chi of n degrees of freedom."""
        normal = np.sqrt(rng.chisquare(n, size=count))
        return np.asarray(normal * self._widths(rng.chisquare(FREEDOM, size=count)))

    def coordinates(self, n: int) -> int:
        """The number of uniform numbers of a frequency: n, and one for w."""
        return n + 1

    def quantiles(self, u: Array) -> Array:
        """Return normal quantiles, divided by one of chi^2."""
        return np.asarray(ndtri(u[:-1]) * self._widths(chdtri(FREEDOM, u[-1])))

    def _widths(self, w: Array) -> Array:
        return np.asarray(np.sqrt(2.0 * self.gamma * FREEDOM / w))


@dataclass(frozen=True)
class Matern32(SquaredDistanceFormula):
    """(1 + r) exp(-r), r = sqrt(6 gamma) |x - z|."""

    cuda: ClassVar[str] = (
        "const float r = sqrtf(-6.0f * fmaxf(t, -1e5f)); return (1.0f + r) * expf(-r);"
    )

    @property
    def spectral_density(self) -> SpectralDensity:
        """The density of Student."""
        return StudentDensity(self.gamma)

    def profile(self, t: Values, xp: Any = np) -> Values:
        """(1 + r) exp(-r), r = sqrt(-6 t)."""
        r = self._r(t, xp)
        decay = xp.exp(-r)
        r += 1.0
        r *= decay
        return r

    def derivative(self, t: Values, xp: Any = np) -> Values:
        """3 exp(-r)."""
        r = self._r(t, xp)
        r *= -1.0
        decay = xp.exp(r, out=r)
        decay *= 3.0
        return decay

    def _r(self, t: Values, xp: Any) -> Values:
        t = xp.clip(t, FARTHEST, None, out=t)
        t *= -6.0
        return xp.sqrt(t, out=t)

    def finished(self, dots: Array, left: Array, right: Array) -> Array:
        """Return the values, by one loop where there is one for the type."""
        if dots.dtype != np.float32:
            return super().finished(dots, left, right)
        matern_loop(dots, left.astype(np.float32), right.astype(np.float32))
        return dots[:, : len(right)]
