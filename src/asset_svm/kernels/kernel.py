"""A kernel: a name with its numbers.

``Kernel.against(Z, dtype)`` prepares the landmarks once and returns a function of a block of rows X
that gives the dense block k(X, Z) in ``dtype``. What differs from kernel to kernel is its formula's.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from asset_svm.arrays import Array, Matrix
from asset_svm.kernels.formula import Argument, BlockFunction, Formula, SpectralDensity
from asset_svm.kernels.table import formula_type
from asset_svm.numerics.definite import is_semidefinite
from asset_svm.threads.blocks import map_in_blocks


@dataclass(frozen=True)
class Kernel:
    """A kernel with its parameters.

    Parameters
    ----------
    name : str or callable
        One of ``table.NAMES``. A callable f(X, Z) returns the (rows of X, rows of Z) matrix of kernel
        values.
    gamma : float
        The width; unused by "linear" and by a callable.
    degree, coef0 : float
        Of "poly" and "sigmoid".
    """

    name: str | Callable[[Matrix, Matrix], Any]
    gamma: float = 1.0
    degree: float = 3
    coef0: float = 0.0

    def __post_init__(self) -> None:
        _ = self.formula  # an unknown name is told here

    @property
    def formula(self) -> Formula:
        """The formula that the name stands for, with these numbers."""
        return formula_type(self.name).of(self.name, self.gamma, self.degree, self.coef0)

    @property
    def argument(self) -> Argument:
        """The number that k is a function of."""
        return self.formula.argument

    @property
    def positive_definite(self) -> bool:
        """Whether |phi(x)|^2 <= k(x, x) can be expected (not of "sigmoid", not of a callable)."""
        return self.formula.positive_definite

    @property
    def is_reentrant(self) -> bool:
        """Whether values may be computed by several threads at a time."""
        return self.formula.is_reentrant

    @property
    def is_linear(self) -> bool:
        """Whether the kernel is the product x.z itself."""
        return self.formula.is_linear

    @property
    def is_symmetric(self) -> bool:
        """Whether k(x, z) = k(z, x) can be relied on."""
        return self.formula.is_symmetric

    @property
    def spectral_density(self) -> SpectralDensity | None:
        """The distribution of the frequencies of Fourier features; None where there is none."""
        return self.formula.spectral_density

    def profile(self, u: npt.ArrayLike) -> Array:
        """k as a function of u: of x.z, |x - z|^2 or |x - z|_1, as ``argument`` says."""
        return np.asarray(self.formula.profile(self._scaled(u)))

    def derivative(self, u: npt.ArrayLike) -> Array:
        """Return the derivative of the profile by u."""
        return np.asarray(self.formula.factor * self.formula.derivative(self._scaled(u)))

    def _scaled(self, u: npt.ArrayLike) -> Array:
        """Return t = factor u, in an array of its own."""
        return np.asarray(self.formula.factor * np.array(u, dtype=np.float64, ndmin=1))

    def definite_on(self, X: Matrix, *, centred: bool) -> bool:
        """Whether the (centred) kernel matrix of these rows is positive semi-definite, to rounding."""
        return is_semidefinite(self(X, X).astype(X.dtype), centred=centred)

    def against(self, Z: Matrix, dtype: npt.DTypeLike) -> BlockFunction:
        """Prepare the landmarks ``Z``; the result maps a block X to k(X, Z) in ``dtype``."""
        return self.formula.against(Z, np.dtype(dtype))

    def __call__(self, X: Matrix, Z: Matrix) -> Array:
        """Return k(X, Z) in float64 for rows of any type, by threads where they are much work."""
        values = self.against(Z, np.float64)
        if not self.is_reentrant:
            return values(X)
        return map_in_blocks(values, X, Z.shape[0], np.float64, reentrant=True)

    def check_values(self, K: Array, X: Matrix) -> None:
        """Raise where the values of all pairs of rows show that they cannot be a kernel's."""
        self.formula.check_values(K, X)

    def diagonal(self, X: Matrix) -> Array:
        """Return k(x, x) for every row, in float64."""
        return self.formula.diagonal(X)
