"""The Gaussian kernel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.special import ndtri

from asset_svm.arrays import Array
from asset_svm.kernels import profiles
from asset_svm.kernels.distances import SquaredDistanceFormula
from asset_svm.kernels.formula import SpectralDensity, Values
from asset_svm.numerics.elementwise import gaussian_loop


@dataclass(frozen=True)
class NormalDensity(SpectralDensity):
    """The density N(0, 2 gamma I) of nu (the density's exponent is n/2)."""

    def sample(self, n: int, count: int, rng: np.random.Generator) -> Array:
        """Draw independent frequencies."""
        return rng.normal(scale=np.sqrt(2.0 * self.gamma), size=(n, count))

    def lengths(self, n: int, count: int, rng: np.random.Generator) -> Array:
        """Draw sqrt(2 gamma) times chi of n degrees of freedom."""
        return np.asarray(np.sqrt(2.0 * self.gamma * rng.chisquare(n, size=count)))

    def quantiles(self, u: Array) -> Array:
        """Return the normal quantiles, times sqrt(2 gamma)."""
        return np.asarray(np.sqrt(2.0 * self.gamma) * ndtri(u))


@dataclass(frozen=True)
class Gaussian(SquaredDistanceFormula):
    """exp(-gamma |x - z|^2)."""

    cuda: ClassVar[str] = "return expf(t);"
    loop: ClassVar[Any] = staticmethod(gaussian_loop)

    @property
    def spectral_density(self) -> SpectralDensity:
        """The normal density."""
        return NormalDensity(self.gamma)

    def profile(self, t: Values, xp: Any = np) -> Values:
        """exp(t)."""
        return profiles.decay(t, xp)

    def derivative(self, t: Values, xp: Any = np) -> Values:
        """exp(t)."""
        return xp.exp(t, out=t)
