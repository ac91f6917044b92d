"""Kernels that are functions of |x - z|_1: the laplacian.

No matrix product can help; compiled loops do, whose landmarks are dense.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from asset_svm.arrays import Array, Matrix
from asset_svm.kernels.formula import (
    Argument,
    BlockFunction,
    DistanceFormula,
    Formula,
    SpectralDensity,
    Values,
)
from asset_svm.kernels.landmarks import DENSE_LANDMARK_BYTES
from asset_svm.numerics.compiling import njit


@dataclass(frozen=True)
class CauchyDensity(SpectralDensity):
    """The density of independent nu_q ~ Cauchy(0, gamma)."""

    rotation_invariant: ClassVar[bool] = False

    def sample(self, n: int, count: int, rng: np.random.Generator) -> Array:
        """Draw independent frequencies."""
        return np.asarray(self.gamma * rng.standard_cauchy(size=(n, count)))

    def quantiles(self, u: Array) -> Array:
        """Return gamma tan(pi (u - 1/2))."""
        return np.asarray(self.gamma * np.tan(np.pi * (u - 0.5)))


@dataclass(frozen=True)
class Laplacian(DistanceFormula):
    """exp(-gamma |x - z|_1)."""

    argument: ClassVar[Argument] = Argument.ABSOLUTE_DISTANCE
    needs_dense_landmarks: ClassVar[bool] = True

    @property
    def spectral_density(self) -> SpectralDensity:
        """The density of Cauchy, in every column."""
        return CauchyDensity(self.gamma)

    def profile(self, t: Values, xp: Any = np) -> Values:
        """exp(t)."""
        return xp.exp(t, out=t)

    def derivative(self, t: Values, xp: Any = np) -> Values:
        """exp(t)."""
        return xp.exp(t, out=t)

    def against(self, Z: Matrix, dtype: np.dtype[Any]) -> BlockFunction:
        """Prepare loops over the columns of the landmarks."""
        return AbsoluteDistanceValues(self, Z, dtype)


class AbsoluteDistanceValues:
    """The function X -> k(X, Z) of a formula of |x - z|_1."""

    def __init__(self, formula: Formula, Z: Matrix, dtype: np.dtype[Any]):
        self.formula, self.dtype = formula, dtype
        if sp.issparse(Z) and Z.shape[0] * Z.shape[1] * 8 > DENSE_LANDMARK_BYTES:
            raise ValueError(
                f'kernel="laplacian" with {Z.shape[0]} sparse landmarks of {Z.shape[1]} features '
                "does not fit in memory; set n_components lower or use kernel='rbf'."
            )
        Z = Z.toarray() if sp.issparse(Z) else np.asarray(Z)
        self.transposed = np.ascontiguousarray(Z.T, dtype=dtype)
        self.norms = np.abs(self.transposed).sum(axis=0)

    def __call__(self, X: Matrix) -> Array:
        """Return k(X, Z)."""
        out = np.empty((X.shape[0], self.transposed.shape[1]), dtype=self.dtype)
        if sp.issparse(X):
            out[:] = self.norms
            data = X.data.astype(self.dtype, copy=False)
            _add_sparse_l1(X.indptr, X.indices, data, self.transposed, out)
        else:
            set_l1_distances(np.ascontiguousarray(X, dtype=self.dtype), self.transposed, out)
        out *= self.dtype.type(self.formula.factor)
        return np.asarray(self.formula.profile(out))


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})
def set_l1_distances(X: Array, ZT: Array, out: Array) -> None:
    """out[i, k] = sum_q |X[i, q] - ZT[q, k]|, four columns of X at a time, as ``numerics.products``."""
    n = X.shape[1]
    whole = n // 4 * 4
    for i in range(X.shape[0]):
        x, row = X[i], out[i]
        row[:] = 0
        for q in range(0, whole, 4):
            x0, x1, x2, x3 = x[q], x[q + 1], x[q + 2], x[q + 3]
            z0, z1, z2, z3 = ZT[q], ZT[q + 1], ZT[q + 2], ZT[q + 3]
            for k in range(row.shape[0]):
                row[k] += abs(x0 - z0[k]) + abs(x1 - z1[k]) + abs(x2 - z2[k]) + abs(x3 - z3[k])
        for q in range(whole, n):
            z = ZT[q]
            for k in range(row.shape[0]):
                row[k] += abs(x[q] - z[k])


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})
def _add_sparse_l1(indptr: Array, indices: Array, data: Array, ZT: Array, out: Array) -> None:
    """out[i] += sum over the nonzeros (q, x) of row i of |x - ZT[q]| - |ZT[q]|."""
    for i in range(indptr.shape[0] - 1):
        for p in range(indptr[i], indptr[i + 1]):
            z = ZT[indices[p]]
            x = data[p]
            for k in range(out.shape[1]):
                out[i, k] += abs(x - z[k]) - abs(z[k])
