"""Gradients of sums of kernel values with landmarks, f_k(x) = sum_j weights_kj k(x, z_j), in float64.

With p' the derivative of the profile, W_kj = weights_kj p'(t_j) and t = factor u as in ``formula``:

    u = x.z            factor W Z
    u = |x - z|^2      2 sqrt(rate) (W Z' - (W 1) x'),   x' = sqrt(rate) (x - shift), Z' likewise
    u = |x - z|_1      factor sum_j W_j sign(x - z_j),   sign(0) = 0

All models of a piece of rows are one product of (rows K, s) with (s, n), after one of rows with the
landmarks. The shift, the mean of dense landmarks, leaves little to cancel. Pieces have ``VALUES``
numbers of W, whatever the number of threads that take them, and so the same bits.

At a kink the gradient is the mean of what lies around it: 0, of the exponential's term where x = z.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp

from asset_svm.arrays import Array, Matrix
from asset_svm.kernels.absolute import set_l1_distances
from asset_svm.kernels.formula import Argument
from asset_svm.kernels.kernel import Kernel
from asset_svm.kernels.landmarks import DENSE_LANDMARK_BYTES
from asset_svm.kernels.scale import squared_norms
from asset_svm.numerics.compiling import njit
from asset_svm.threads.team import side_by_side

VALUES = 1 << 18
"""Numbers of W, or of gradients, that a piece of rows has at most: 2 MB."""
SPARSE = 0.1
"""The share of nonzeros up to which products with sparse landmarks are the quicker ones."""
FEWEST_ROWS, MOST_ROWS = 8, 512
"""Rows of a piece, at least and at most."""


class BlockGradients(Protocol):
    """The gradients of a block of rows."""

    def __call__(self, X: Array, out: Array) -> None:
        """Fill out, of shape (rows, K, n), with the gradients at the dense float64 rows X."""


def gradients(kernel: Kernel, Z: Matrix, weights: Array, X: Matrix) -> Array:
    """The gradients of sum_j weights_kj k(x, z_j) at the rows of X, (rows, K, n).

    Parameters
    ----------
    Z, X : matrices of shapes (s, n) and (rows, n)
        Dense or CSR.
    weights : array of shape (K, s)
    """
    return kernel_gradients(kernel, Z, weights)(X)


def kernel_gradients(kernel: Kernel, Z: Matrix, weights: Array) -> Callable[[Matrix], Array]:
    """``gradients`` as a function of the rows, landmarks being prepared once."""
    if kernel.argument is Argument.ROWS:
        raise ValueError(
            f"kernel={kernel.name!r} is a function of two matrices, whose gradient nobody knows; use a "
            "kernel that has a name."
        )
    weights = np.ascontiguousarray(weights, dtype=np.float64)
    at = _BY_ARGUMENT[kernel.argument](kernel, Z, weights)
    width = max(weights.size, len(weights) * Z.shape[1])
    return lambda X: in_pieces(at, X, (len(weights), Z.shape[1]), width)


def in_pieces(at: BlockGradients, X: Matrix, shape: tuple[int, int], width: int) -> Array:
    """The (rows, *shape) gradients of all rows of X, piece by piece, by as many threads as are granted.

    ``width`` numbers a row are held on the way.
    """
    out = np.empty((X.shape[0], *shape))
    size = int(np.clip(VALUES // max(width, 1), FEWEST_ROWS, MOST_ROWS))

    def fill(start: int) -> None:
        rows = X[start : start + size]
        rows = rows.toarray() if sp.issparse(rows) else rows
        # A row far away overflows to an infinite distance, where every gradient is 0.
        with np.errstate(over="ignore"):
            at(np.ascontiguousarray(rows, dtype=np.float64), out[start : start + size])

    side_by_side(fill, range(0, X.shape[0], size))
    return out


class ProductGradients:
    """Gradients of a formula of x.z."""

    def __init__(self, kernel: Kernel, Z: Matrix, weights: Array):
        self.formula, self.Z, self.weights = kernel.formula, _wide(Z), weights

    def __call__(self, X: Array, out: Array) -> None:
        """Fill out with the gradients at these rows."""
        t = _times_transposed(X, self.Z)
        t *= self.formula.factor
        slopes = self.formula.derivative(t)
        slopes *= self.formula.factor
        _set_products(slopes, self.weights, self.Z, out)


class LinearGradients:
    """Gradients of sums of x.z, the same everywhere."""

    def __init__(self, kernel: Kernel, Z: Matrix, weights: Array):
        self.found = np.asarray(weights @ _wide(Z))

    def __call__(self, X: Array, out: Array) -> None:
        """Fill out with the gradients at these rows."""
        out[:] = self.found


def _of_product(kernel: Kernel, Z: Matrix, weights: Array) -> BlockGradients:
    return (LinearGradients if kernel.is_linear else ProductGradients)(kernel, Z, weights)


class SquaredDistanceGradients:
    """Gradients of a formula of |x - z|^2."""

    def __init__(self, kernel: Kernel, Z: Matrix, weights: Array):
        self.formula: Any = kernel.formula
        self.weights, self.factor = weights, float(np.sqrt(-self.formula.factor))
        Z = _wide(Z)
        self.shift = np.zeros(Z.shape[1]) if sp.issparse(Z) else Z.mean(axis=0)
        self.moved = Z * self.factor if sp.issparse(Z) else (Z - self.shift) * self.factor
        self.norms = squared_norms(self.moved)

    def __call__(self, X: Array, out: Array) -> None:
        """Fill out with the gradients at these rows."""
        moved = (X - self.shift) * self.factor
        t = _times_transposed(moved, self.moved)
        slopes = self.formula.derivative(self.formula.exponents(t, squared_norms(moved), self.norms))
        slopes *= 2.0 * self.factor
        _set_products(slopes, self.weights, self.moved, out)
        out -= (slopes @ self.weights.T)[:, :, None] * moved[:, None, :]


class AbsoluteDistanceGradients:
    """Gradients of a formula of |x - z|_1."""

    def __init__(self, kernel: Kernel, Z: Matrix, weights: Array):
        self.formula, self.weights = kernel.formula, weights
        Z = Z.toarray() if sp.issparse(Z) else Z
        self.Z = np.ascontiguousarray(Z, dtype=np.float64)
        self.transposed = np.ascontiguousarray(self.Z.T)

    def __call__(self, X: Array, out: Array) -> None:
        """Fill out with the gradients at these rows."""
        t = np.empty((len(X), len(self.Z)))
        set_l1_distances(X, self.transposed, t)
        t *= self.formula.factor
        slopes = self.formula.derivative(t)
        slopes *= self.formula.factor
        _set_signs(slopes, self.weights, X, self.Z, out)


_BY_ARGUMENT: dict[Argument, Callable[[Kernel, Matrix, Array], BlockGradients]] = {
    Argument.PRODUCT: _of_product,
    Argument.SQUARED_DISTANCE: SquaredDistanceGradients,
    Argument.ABSOLUTE_DISTANCE: AbsoluteDistanceGradients,
}


def _wide(Z: Matrix) -> Matrix:
    """Z in float64; sparse as long as few entries are nonzero, or the others would take too much."""
    if not sp.issparse(Z):
        return np.ascontiguousarray(Z, dtype=np.float64)
    size = Z.shape[0] * Z.shape[1]
    if Z.nnz <= SPARSE * size or size * 8 > DENSE_LANDMARK_BYTES:
        return sp.csr_matrix(Z, dtype=np.float64)
    return Z.toarray().astype(np.float64, copy=False)


def _times_transposed(X: Array, Z: Matrix) -> Array:
    """X Z^T, in an array of its own."""
    return np.ascontiguousarray((Z @ X.T).T) if sp.issparse(Z) else X @ Z.T


def _set_products(slopes: Array, weights: Array, Z: Matrix, out: Array) -> None:
    """out[i, k] = sum_j slopes_ij weights_kj z_j."""
    (rows, s), (K, n) = slopes.shape, out.shape[1:]
    W = (slopes[:, None, :] * weights).reshape(rows * K, s)
    if sp.issparse(Z):
        out[:] = (Z.T @ W.T).T.reshape(rows, K, n)
    else:
        np.matmul(W, Z, out=out.reshape(rows * K, n))


@njit(cache=True, nogil=True)
def _set_signs(slopes: Array, weights: Array, X: Array, Z: Array, out: Array) -> None:
    """out[i, k] = sum_j slopes_ij weights_kj sign(x_i - z_j)."""
    (s, n), signs = Z.shape, np.empty(Z.shape[1])
    out[:] = 0.0
    for i in range(len(X)):
        x = X[i]
        for j in range(s):
            z = Z[j]
            for q in range(n):
                signs[q] = np.float64(x[q] > z[q]) - np.float64(x[q] < z[q])
            for k in range(len(weights)):
                w, row = slopes[i, j] * weights[k, j], out[i, k]
                for q in range(n):
                    row[q] += w * signs[q]
