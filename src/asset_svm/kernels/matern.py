"""The Matern kernels of smoothness 1/2, 3/2 and 5/2: rougher functions than the Gaussian's.

gamma is one over a length, a factor of the distance r = |x - z| itself, so that t = -(gamma r)^2;
``sklearn.gaussian_process.kernels.Matern`` has length_scale = 1 / gamma:

    exponential    exp(-a)                    a = gamma r
    matern32       (1 + a) exp(-a)            a = sqrt(3) gamma r
    matern52       (1 + a + a^2/3) exp(-a)    a = sqrt(5) gamma r

The first has a kink at r = 0, where an error of t as small as rounding is one of its square root: what
two products of one row may differ by counts as 0 (``SquaredDistanceFormula.slack``), so that equal rows
have a value of 1 as for any other kernel.
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

FARTHEST = -1e6
"""t from which on exp(-a) is 0 in float64."""
SLACK = 8.0
"""Times the machine precision: |x'|^2 + |z'|^2 - 2 x'.z' of equal rows, relative to the first two.
6 were seen with up to 1000 columns, in both types."""


@njit(cache=True, nogil=True, fastmath=FAST)
def exponential_loop(dots: Array, left: Array, right: Array) -> None:
    """``SquaredDistanceFormula.finished`` of exp(-a) in one pass, in place; all of one type."""
    real = dots.dtype.type
    slack = real(-SLACK * np.finfo(dots.dtype).eps)
    for i in range(dots.shape[0]):
        row, norm = dots[i, : right.shape[0]], left[i]
        for j in range(row.shape[0]):
            t = row[j] + row[j] - norm - right[j]
            t = real(0.0) if t > slack * (norm + right[j]) else t
            row[j] = decay(-np.sqrt(-t))


@njit(cache=True, nogil=True, fastmath=FAST)
def matern32_loop(dots: Array, left: Array, right: Array) -> None:
    """``SquaredDistanceFormula.finished`` of (1 + a) exp(-a) in one pass, in place; all of one type."""
    real = dots.dtype.type
    for i in range(dots.shape[0]):
        row, norm = dots[i, : right.shape[0]], left[i]
        for j in range(row.shape[0]):
            t = min(row[j] + row[j] - norm - right[j], real(0.0))
            minus = -np.sqrt(real(-3.0) * t)
            row[j] = (real(1.0) - max(minus, real(-1000.0))) * decay(minus)


@njit(cache=True, nogil=True, fastmath=FAST)
def matern52_loop(dots: Array, left: Array, right: Array) -> None:
    """``SquaredDistanceFormula.finished`` of (1 + a + a^2/3) exp(-a) likewise."""
    real = dots.dtype.type
    for i in range(dots.shape[0]):
        row, norm = dots[i, : right.shape[0]], left[i]
        for j in range(row.shape[0]):
            t = min(row[j] + row[j] - norm - right[j], real(0.0))
            minus = -np.sqrt(real(-5.0) * t)
            a = -max(minus, real(-1000.0))
            row[j] = (real(1.0) + a + a * a * real(1.0 / 3.0)) * decay(minus)


@dataclass(frozen=True)
class StudentDensity(SpectralDensity):
    """The density of nu = gamma z sqrt(f / w), z ~ N(0, I) and one w ~ chi^2 of f degrees of freedom.

    ``freedom`` is f, twice the smoothness of the kernel.
    """

    freedom: int

    def sample(self, n: int, count: int, rng: np.random.Generator) -> Array:
        """Draw independent frequencies."""
        return rng.normal(size=(n, count)) * self._widths(rng.chisquare(self.freedom, size=count))

    def lengths(self, n: int, count: int, rng: np.random.Generator) -> Array:
        """Draw lengths: |z| is chi of n degrees of freedom."""
        normal = np.sqrt(rng.chisquare(n, size=count))
        return np.asarray(normal * self._widths(rng.chisquare(self.freedom, size=count)))

    def coordinates(self, n: int) -> int:
        """The number of uniform numbers of a frequency: n, and one for w."""
        return n + 1

    def quantiles(self, u: Array) -> Array:
        """Return normal quantiles, divided by one of chi^2."""
        return np.asarray(ndtri(u[:-1]) * self._widths(chdtri(self.freedom, u[-1])))

    def _widths(self, w: Array) -> Array:
        return np.asarray(self.gamma * np.sqrt(self.freedom / w))


class MaternFormula(SquaredDistanceFormula):
    """A function of a = sqrt(freedom) gamma r."""

    freedom: ClassVar[int]

    @classmethod
    def gamma_of(cls, square: float) -> float:
        """One over the length whose square this is."""
        return float(1.0 / np.sqrt(square))

    @property
    def factor(self) -> float:
        """The factor -gamma^2 of the squared distance."""
        return -(self.gamma**2)

    @property
    def spectral_density(self) -> SpectralDensity:
        """The density of Student."""
        return StudentDensity(self.gamma, self.freedom)

    def _a(self, t: Values, xp: Any) -> Values:
        """a, where t was; far away it is less, where exp(-a) is 0."""
        t = xp.clip(t, FARTHEST, None, out=t)
        t *= -float(self.freedom)
        return xp.sqrt(t, out=t)


@dataclass(frozen=True)
class Exponential(MaternFormula):
    """exp(-gamma r)."""

    freedom: ClassVar[int] = 1
    slack: ClassVar[float] = SLACK
    cuda: ClassVar[str] = "return expf(-sqrtf(-fmaxf(t, -1e6f)));"
    loop: ClassVar[Any] = staticmethod(exponential_loop)

    def profile(self, t: Values, xp: Any = np) -> Values:
        """exp(-a)."""
        a = self._a(t, xp)
        a *= -1.0
        return xp.exp(a, out=a)

    def derivative(self, t: Values, xp: Any = np) -> Values:
        """exp(-a) / (2 a); 0 at the kink, the mean of what lies on its two sides."""
        a = self._a(t, xp)
        values = xp.exp(-a)
        at_kink = a == 0.0
        values[at_kink], a[at_kink] = 0.0, 1.0
        values /= a
        values *= 0.5
        return values


@dataclass(frozen=True)
class Matern32(MaternFormula):
    """(1 + a) exp(-a), a = sqrt(3) gamma r."""

    freedom: ClassVar[int] = 3
    cuda: ClassVar[str] = (
        "const float a = sqrtf(-3.0f * fmaxf(t, -1e6f)); return (1.0f + a) * expf(-a);"
    )
    loop: ClassVar[Any] = staticmethod(matern32_loop)

    def profile(self, t: Values, xp: Any = np) -> Values:
        """(1 + a) exp(-a)."""
        a = self._a(t, xp)
        decay = xp.exp(-a)
        a += 1.0
        a *= decay
        return a

    def derivative(self, t: Values, xp: Any = np) -> Values:
        """3/2 exp(-a)."""
        a = self._a(t, xp)
        a *= -1.0
        decay = xp.exp(a, out=a)
        decay *= 1.5
        return decay


@dataclass(frozen=True)
class Matern52(MaternFormula):
    """(1 + a + a^2/3) exp(-a), a = sqrt(5) gamma r."""

    freedom: ClassVar[int] = 5
    cuda: ClassVar[str] = (
        "const float a = sqrtf(-5.0f * fmaxf(t, -1e6f)); return (1.0f + a + a * a / 3.0f) * expf(-a);"
    )
    loop: ClassVar[Any] = staticmethod(matern52_loop)

    def profile(self, t: Values, xp: Any = np) -> Values:
        """(1 + a + a^2/3) exp(-a)."""
        a = self._a(t, xp)
        values = xp.exp(-a)
        values *= 1.0 + a + a * a / 3.0
        return values

    def derivative(self, t: Values, xp: Any = np) -> Values:
        """5/6 (1 + a) exp(-a)."""
        a = self._a(t, xp)
        decay = xp.exp(-a)
        a += 1.0
        a *= decay
        a *= 5.0 / 6.0
        return a
