"""The metric of the data: a change of basis V' = V T that evens the directions of feature space.

Robust stochastic approximation holds in any Euclidean norm |x|_H: steps x <- P(x - eta H^(-1) G)
in the old basis are plain steps in the new one, T = H^(-1/2), for the coefficients
coef' = T^(-1) coef, with the regulariser lam/2 |T coef'|^2.

With sigma_q^2 the mean square of the features along direction q, h_q = sigma_q / max sigma. Two forms:

- diagonal: the columns of V are the directions (the eigenbasis of K_SS, where they are nearly
  uncorrelated);
- low rank: the top k eigenvectors of a sample's second moments are, and all others share h_k
  (Fourier features, Cholesky bases).

T is symmetric, and the ball {|coef'| <= R / t} holds every coef of norm R, t being the least of its
eigenvalues: 1, but beside a free intercept. There the rows of a centred map are made longer or shorter
as a whole, to a mean square of ``BESIDE_INTERCEPT``: the intercept is a feature of 1, and next to rows
of a flat kernel, which are short once their mean is taken off, it would take all of every step.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import scipy.linalg as la

from asset_svm.arrays import Array
from asset_svm.numerics.padding import padded_columns
from asset_svm.numerics.row_products import product
from asset_svm.numerics.shrinking import DIAGONAL, LOW_RANK, LoopMetric, shrink
from asset_svm.threads.blas import few_threads

FEWEST_ROWS = 100
"""A smaller sample tells nothing of the directions."""
BLOCK_ROWS = 128
METRIC_DIRECTIONS = 128
"""k of the low-rank form."""
BESIDE_INTERCEPT = 10.0
"""By measurement: 3 to 30 are alike on five data sets, 1 has objectives up to 3 per cent larger."""
OVERSAMPLING = 16
SUBSPACE_PASSES = 3


@dataclass(frozen=True, eq=False)
class Metric:
    """T = diag(scale), or T = rest I + directions diag(scale - rest) directions^T.

    Parameters
    ----------
    scale : array of shape (d,) or (k,), float64
        h^(-1/2) along the columns, or along ``directions``.
    directions : array of shape (d, k), optional
        Orthonormal columns.
    rest : float
        h^(-1/2) along all other directions.
    """

    scale: Array
    directions: Array | None = None
    rest: float = 1.0
    _cast: dict[np.dtype[Any], tuple[Array, Array]] = field(default_factory=dict, repr=False)

    @classmethod
    def identity(cls, dimension: int) -> Metric:
        """The metric T = I."""
        return cls(np.ones(dimension))

    @classmethod
    def of_mean_squares(cls, mean_square: Array) -> Metric:
        """The diagonal form, from the mean squares of the columns."""
        return cls(_evened(mean_square))

    @classmethod
    def of_columns(cls, V: Array, weight: Array | None = None, least: Array | float = 0.0) -> Metric:
        """The diagonal form, from a sample of rows; mean squares count as ``least`` at least."""
        w = np.ones(len(V)) if weight is None else np.asarray(weight, dtype=np.float64)
        total = np.zeros(V.shape[1])
        for start in range(0, len(V), BLOCK_ROWS):  # memory touched for the first time is slow
            block = V[start : start + BLOCK_ROWS].astype(np.float64)
            total += w[start : start + BLOCK_ROWS] @ np.square(block, out=block)
        return cls.of_mean_squares(np.maximum(total / w.sum(), least))

    @classmethod
    def of_directions(
        cls, V: Array, count: int, rng: np.random.Generator, weight: Array | None = None
    ) -> Metric:
        """The low-rank form with the top ``count`` directions of a sample of rows.

        By subspace iteration on the second moments, which are never formed: 12 M d k operations
        for a sample of M rows.
        """
        w = np.ones(len(V)) if weight is None else weight
        scaled = V * np.sqrt(w / w.sum()).astype(V.dtype)[:, None]
        count = min(count, *V.shape)
        basis = rng.normal(size=(V.shape[1], min(count + OVERSAMPLING, V.shape[1])))
        with few_threads(count):
            for _ in range(SUBSPACE_PASSES):
                basis = la.qr(basis, mode="economic", check_finite=False)[0].astype(V.dtype)
                basis = (scaled.T @ (scaled @ basis)).astype(np.float64)
            basis = la.qr(basis, mode="economic", check_finite=False)[0]
            along = (scaled @ basis.astype(V.dtype)).astype(np.float64)
            _, singular, right = la.svd(along, full_matrices=False)
        return cls.along(singular[:count] ** 2, basis @ right[:count].T)

    @classmethod
    def along(cls, mean_square: Array, directions: Array) -> Metric:
        """The low-rank form, from orthonormal directions and mean squares along them, descending."""
        scale = _evened(mean_square)
        return cls(scale, directions, float(scale[-1]))

    def beside_intercept(self, V: Array, weight: Array | None = None) -> Metric:
        """T times a number, for rows of V T with a mean square of ``BESIDE_INTERCEPT``."""
        squares = np.empty(len(V))
        for start in range(0, len(V), BLOCK_ROWS):
            rows = self.apply(V[start : start + BLOCK_ROWS]).astype(np.float64)
            squares[start : start + BLOCK_ROWS] = np.einsum("ij,ij->i", rows, rows)
        mean_square = float(np.average(squares, weights=weight))
        if mean_square == 0.0:
            return self
        times = float(np.sqrt(BESIDE_INTERCEPT / mean_square))
        return replace(self, scale=times * self.scale, rest=times * self.rest, _cast={})

    @property
    def least(self) -> float:
        """The least eigenvalue of T."""
        return float(self.scale.min())

    def apply(self, A: Array) -> Array:
        """Return A T, for rows A of features, or coefficients A = coef' of shape (K, d)."""
        return self._multiply(A, self.scale, self.rest)

    def invert(self, A: Array) -> Array:
        """Return A T^(-1)."""
        return self._multiply(A, 1.0 / self.scale, 1.0 / self.rest)

    def shrink(self, coef: Array, amount: Array) -> Array:
        """coef' exp(-amount T^2): the flow of lam/2 |T coef'|^2 over steps of sum amount / lam.

        ``amount`` has shape (K,).
        """
        shrunk = np.array(coef, order="C")
        shrink(shrunk, np.asarray(amount, dtype=np.float64), self.for_loops(coef.dtype))
        return shrunk

    def for_loops(self, dtype: np.dtype[Any]) -> LoopMetric:
        """The metric as compiled loops have it, for coefficients of this type."""
        rates, rest = (self.scale**2).astype(dtype), float(self.rest**2)
        if self.directions is None:
            nothing = np.empty((0, 0), dtype)
            return LoopMetric(DIAGONAL, rates, rest, nothing, nothing)
        return LoopMetric(LOW_RANK, rates, rest, *self._directions(dtype))

    def _directions(self, dtype: np.dtype[Any]) -> tuple[Array, Array]:
        """The directions and their transpose in this type, padded."""
        if dtype not in self._cast:
            U = self.directions
            assert U is not None
            self._cast[dtype] = (padded_columns(U, dtype), padded_columns(U.T, dtype))
        return self._cast[dtype]

    def _multiply(self, A: Array, scale: Array, rest: Any) -> Array:
        dtype = A.dtype
        if self.directions is None:
            return np.asarray(A * np.asarray(scale, dtype=dtype))
        padded, transposed = self._directions(dtype)
        along = product(A, padded)[:, : len(transposed)] * np.asarray(scale - rest, dtype=dtype)
        along = product(along, transposed)[:, : A.shape[1]]
        return np.asarray(A * np.asarray(rest, dtype=dtype) + along)


@dataclass(frozen=True, eq=False)
class MetricFeatures:
    """The map x -> phi(x) T."""

    phi: Any
    metric: Metric

    @property
    def dimension(self) -> int:
        """The number d of features."""
        return int(self.phi.dimension)

    @property
    def basis_dimension(self) -> int:
        """The number s of basis values."""
        return int(self.phi.basis_dimension)

    @property
    def reentrant(self) -> bool:
        """Whether threads may evaluate phi side by side."""
        return bool(self.phi.reentrant)

    def basis(self, dtype: npt.DTypeLike) -> Callable[[Any], Array]:
        """The basis of phi."""
        return cast(Callable[[Any], Array], self.phi.basis(dtype))

    def lift(self, dtype: npt.DTypeLike) -> Callable[[Array], Array]:
        """The function k -> lift(k) T."""
        return cast(Callable[[Array], Array], self.phi.lift_in(self.metric, dtype))


def _evened(mean_square: Array) -> Array:
    """h^(-1/2) for h = sigma / max sigma; directions without any mass count as the smallest."""
    sigma = np.sqrt(mean_square)
    positive = sigma[sigma > 0.0]
    if len(positive) == 0:
        return np.ones(len(sigma))
    sigma = np.maximum(sigma, max(positive.min(), 1e-6 * positive.max()))
    return np.asarray(np.sqrt(sigma.max() / sigma))
