"""What a formula of a kernel supplies, whatever it is a function of.

A kernel is a profile of one number, k(x, z) = profile(t) with t = factor u and

    u          x.z           |x - z|^2             |x - z|_1
    factor     gamma or 1    -gamma or -gamma^2    -gamma

so that products give t without another pass, and t <= 0 where u is a distance. A user's function is a
kernel without a profile: its argument is the rows themselves.

Profiles and their derivatives are written once, for arrays and tensors of a card: they may overwrite
t, and take what is no operator from ``xp``, which is numpy or torch. Where a loop in one pass over the
values is worth it, on the CPU or on the card, the formula has that beside them (``distances``).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any, ClassVar

import numpy as np

from asset_svm.arrays import Array, Matrix

Values = Any
"""An array of numpy, or a tensor."""
BlockFunction = Callable[[Matrix], Array]


class Argument(Enum):
    """The number that a kernel is a function of."""

    PRODUCT = "x.z"
    SQUARED_DISTANCE = "|x - z|^2"
    ABSOLUTE_DISTANCE = "|x - z|_1"
    ROWS = "x and z"


@dataclass(frozen=True)
class SpectralDensity(ABC):
    """The distribution of the frequencies nu with k(x, z) = E cos(nu^T (x - z)), for n columns."""

    gamma: float
    rotation_invariant: ClassVar[bool] = True
    """Whether it is the same in all directions."""

    @abstractmethod
    def sample(self, n: int, count: int, rng: np.random.Generator) -> Array:
        """Draw independent frequencies, (n, count)."""

    def lengths(self, n: int, count: int, rng: np.random.Generator) -> Array:
        """Draw independent |nu|, (count,), of a density that is the same in all directions."""
        raise NotImplementedError

    def coordinates(self, n: int) -> int:
        """The number of uniform numbers that make a frequency: one a column, unless it says more."""
        return n

    @abstractmethod
    def quantiles(self, u: Array) -> Array:
        """Frequencies, (n, count), from numbers in (0, 1), (coordinates(n), count)."""


@dataclass(frozen=True)
class Formula(ABC):
    """A kernel with its numbers, some of which it may have no use for."""

    gamma: float
    degree: float
    coef0: float

    argument: ClassVar[Argument]
    has_gamma: ClassVar[bool] = True
    needs_dense_landmarks: ClassVar[bool] = False
    is_linear: ClassVar[bool] = False
    is_reentrant: ClassVar[bool] = True
    is_symmetric: ClassVar[bool] = True

    @classmethod
    def of(cls, name: Any, gamma: float, degree: float, coef0: float) -> Formula:
        """The formula of a name (or function) with its numbers."""
        return cls(gamma, degree, coef0)

    @classmethod
    def gamma_of(cls, square: float) -> float:
        """The gamma that suits rows of squared distances of this size: gamma="scale" and its like."""
        return 1.0 / square

    @property
    @abstractmethod
    def factor(self) -> float:
        """The number that u is multiplied by for t."""

    @property
    def positive_definite(self) -> bool:
        """Whether the kernel is positive definite on all rows: |phi(x)|^2 <= k(x, x) follows."""
        return True

    @property
    def spectral_density(self) -> SpectralDensity | None:
        """The density of its frequencies; None where it has none."""
        return None

    @abstractmethod
    def profile(self, t: Values, xp: Any = np) -> Values:
        """k as a function of t, which may be overwritten."""

    @abstractmethod
    def derivative(self, t: Values, xp: Any = np) -> Values:
        """The derivative of the profile by t, which may be overwritten."""

    @abstractmethod
    def against(self, Z: Matrix, dtype: np.dtype[Any]) -> BlockFunction:
        """A function from a block of rows to its values with the landmarks Z."""

    @abstractmethod
    def diagonal(self, X: Matrix) -> Array:
        """Return k(x, x) for every row, in float64."""

    def check_values(self, K: Array, X: Matrix) -> None:
        """Raise where the values of all pairs of rows show that they cannot be a kernel's."""
        return None


class DistanceFormula(Formula):
    """A function of a distance of x and z that is 1 at 0."""

    @property
    def factor(self) -> float:
        """The factor -gamma of the distance."""
        return -self.gamma

    def diagonal(self, X: Matrix) -> Array:
        """Return 1 for every row."""
        return np.ones(X.shape[0])
