"""Kernels that are functions of x.z: linear, polynomial, sigmoid."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from asset_svm.arrays import Array, Matrix
from asset_svm.exceptions import NonFiniteError
from asset_svm.kernels import profiles
from asset_svm.kernels.formula import (
    Argument,
    BlockFunction,
    Formula,
    Values,
)
from asset_svm.kernels.landmarks import Transposed
from asset_svm.kernels.scale import squared_norms


class ProductFormula(Formula):
    """A function of x.z alone."""

    argument: ClassVar[Argument] = Argument.PRODUCT

    @property
    def factor(self) -> float:
        """The factor gamma of x.z."""
        return self.gamma

    def against(self, Z: Matrix, dtype: np.dtype[Any]) -> BlockFunction:
        """Prepare the landmarks for one matrix product a block."""
        return ProductValues(self, Z, dtype)

    def diagonal(self, X: Matrix) -> Array:
        """Return the profile of |x|^2."""
        return np.asarray(self.values(squared_norms(X)))

    def values(self, dots: Values, xp: Any = np) -> Values:
        """Turn inner products into kernel values, in place."""
        if self.has_gamma:
            dots *= self.factor
        return self.profile(dots, xp)


@dataclass(frozen=True)
class Linear(ProductFormula):
    """The inner product x.z."""

    has_gamma: ClassVar[bool] = False
    is_linear: ClassVar[bool] = True

    @property
    def factor(self) -> float:
        """The factor of x.z is 1."""
        return 1.0

    def profile(self, t: Values, xp: Any = np) -> Values:
        """Return t itself."""
        return t

    def derivative(self, t: Values, xp: Any = np) -> Values:
        """Return 1."""
        t[...] = 1.0
        return t


@dataclass(frozen=True)
class Polynomial(ProductFormula):
    """(gamma x.z + coef0)^degree."""

    @property
    def has_whole_degree(self) -> bool:
        """Whether negative numbers have this power."""
        return float(self.degree).is_integer()

    @property
    def positive_definite(self) -> bool:
        """The kernel is positive definite where all its terms are."""
        return self.coef0 >= 0 and self.has_whole_degree

    def profile(self, t: Values, xp: Any = np) -> Values:
        """(t + coef0)^degree."""
        return profiles.polynomial(self._checked(t), self.degree, self.coef0)

    def derivative(self, t: Values, xp: Any = np) -> Values:
        """degree (t + coef0)^(degree - 1)."""
        t = profiles.polynomial(self._checked(t), self.degree - 1.0, self.coef0)
        t *= self.degree
        return t

    def _checked(self, t: Values) -> Values:
        """The t themselves; raises where t + coef0 is negative and may not be."""
        if not self.has_whole_degree and bool((t < -self.coef0).any()):
            raise NonFiniteError(
                f"degree={self.degree:g} of a negative number gamma x.z + coef0 is not a real number; "
                "set degree to an integer, or coef0 so high that none is negative."
            )
        return t


@dataclass(frozen=True)
class Sigmoid(ProductFormula):
    """tanh(gamma x.z + coef0)."""

    @property
    def positive_definite(self) -> bool:
        """The kernel is not positive definite."""
        return False

    def profile(self, t: Values, xp: Any = np) -> Values:
        """tanh(t + coef0)."""
        return profiles.sigmoid(t, self.coef0, xp)

    def derivative(self, t: Values, xp: Any = np) -> Values:
        """1 - tanh(t + coef0)^2."""
        t = self.profile(t, xp)
        t *= t
        t *= -1.0
        t += 1.0
        return t


class ProductValues:
    """The function X -> k(X, Z) of a formula of x.z."""

    def __init__(self, formula: ProductFormula, Z: Matrix, dtype: np.dtype[Any]):
        self.formula, self.dtype, self.s = formula, dtype, Z.shape[0]
        self.transposed = Transposed(Z, dtype)

    def __call__(self, X: Matrix) -> Array:
        """Return k(X, Z)."""
        dots = self.transposed.dots(X.astype(self.dtype, copy=False))
        return np.asarray(self.formula.values(dots[:, : self.s]))
