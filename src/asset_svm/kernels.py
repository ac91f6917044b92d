"""Kernels k(x, z) against a fixed set of landmarks, in blocks of dense or CSR rows.

A ``Kernel`` is a name with its numbers. ``Kernel.against(Z, dtype)`` prepares the landmarks once and
returns a function of a block of rows X that gives the dense block k(X, Z) in ``dtype``.

Conventions that bind the code below:

- Names, ``gamma``, ``degree`` and ``coef0`` mean what they mean in ``sklearn.svm.SVC``; ``laplacian``
  is exp(-gamma |x - z|_1). A callable takes two matrices and returns the matrix of kernel values, dense
  or sparse.
- The Gaussian kernel is computed from one matrix product. Rows are first moved to the mean of the
  landmarks and multiplied by sqrt(gamma): the kernel does not change, the cancellation in
  |x|^2 - 2 x.z + |z|^2 does, and columns of 1e30 do not overflow in float32. Columns with a
  quarter of nonzeros or less (among the landmarks) stay where they are: the square of a nonzero entry
  is at most 16/9 of what it would be; so do those with three quarters or less that hardly count in the
  distance. Zeros cost nothing then (``numerics.products``).
- Columns in which all landmarks are 0 are left out of products; where dense rows are moved, those in
  which no two landmarks differ.
- CSR rows are never made dense. What is left of landmarks is, up to ``DENSE_LANDMARK_BYTES``: a nonzero
  of x then costs one contiguous row of length s.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from asset_svm.exceptions import NonFiniteError
from asset_svm.numerics.compiling import njit
from asset_svm.numerics.definite import is_semidefinite
from asset_svm.numerics.elementwise import gaussian_values
from asset_svm.numerics.padding import padded_columns, padded_width
from asset_svm.numerics.products import FEW_NONZEROS, csr_times, nonzeros_times
from asset_svm.numerics.rows import moved_columns, moved_rows

Array = npt.NDArray[Any]
Matrix = Any
"""A dense two-dimensional array or a CSR matrix."""
BlockFunction = Callable[[Matrix], Array]

WITH_GAMMA = ("rbf", "laplacian", "poly", "sigmoid")
NAMES = (*WITH_GAMMA, "linear")
DENSE_LANDMARK_BYTES = 1 << 30
FEW_COLUMNS = 0.97
"""A product with fewer of the columns than this pays for choosing them while rows are moved."""
FEWEST_LANDMARKS = 128
"""With fewer, finding the nonzeros costs what they save."""
SMALL = 0.1
"""Times 1 / gamma: a mean square from which nothing cancels."""


@dataclass(frozen=True)
class Kernel:
    """A kernel with its parameters.

    Parameters
    ----------
    name : {"rbf", "laplacian", "poly", "sigmoid", "linear"} or callable
        A callable f(X, Z) returns the (rows of X, rows of Z) matrix of kernel values.
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
        if not callable(self.name) and self.name not in NAMES:
            listed = ", ".join(f'"{name}"' for name in NAMES)
            raise ValueError(
                f"kernel={self.name!r} is not a known kernel; choose one of {listed}, or a callable."
            )

    @property
    def positive_definite(self) -> bool:
        """Whether |phi(x)|^2 <= k(x, x) can be expected (not of "sigmoid", not of a callable)."""
        if self.name == "poly":
            return self.coef0 >= 0 and float(self.degree).is_integer()
        return self.name in ("rbf", "laplacian", "linear")

    @property
    def needs_positive_bases(self) -> bool:
        """Whether k is a power, not whole, of gamma x.z + coef0."""
        return self.name == "poly" and not float(self.degree).is_integer()

    def definite_on(self, X: Matrix, *, centred: bool) -> bool:
        """Whether the (centred) kernel matrix of these rows is positive semi-definite, to rounding."""
        return is_semidefinite(self(X, X).astype(X.dtype), centred=centred)

    def against(self, Z: Matrix, dtype: npt.DTypeLike) -> BlockFunction:
        """Prepare the landmarks ``Z``; the result maps a block X to k(X, Z) in ``dtype``."""
        dtype = np.dtype(dtype)
        if callable(self.name):
            return _Callable(self.name, Z, dtype)
        if self.name == "rbf":
            return _Gaussian(self, Z, dtype)
        if self.name == "laplacian":
            return _Laplacian(self, Z, dtype)
        return _InnerProduct(self, Z, dtype)

    def __call__(self, X: Matrix, Z: Matrix) -> Array:
        """k(X, Z) in float64, whatever the type of the rows."""
        return self.against(Z, np.float64)(X)

    def check_own(self, K: Array, X: Matrix) -> None:
        """Raise where a user's kernel is 0 for all pairs of rows that are not all 0 themselves.

        Of rows and themselves only, that is while a model is trained: a row that is far from every
        landmark, or has no word in common with one, has kernel values of 0 by right, and where all rows
        of a prediction are such their decisions are the intercept.
        """
        if callable(self.name) and not K.any() and (X != 0).sum():
            raise ValueError(
                f"The callable kernel returned 0 for every pair of {len(K)} rows, even of a row with "
                "itself, and tells none of them apart; it must return the matrix of kernel values."
            )

    def diagonal(self, X: Matrix) -> Array:
        """k(x, x) for every row, in float64."""
        m = X.shape[0]
        if self.name in ("rbf", "laplacian"):
            return np.ones(m)
        if callable(self.name):
            rows = (X[i : i + 1] for i in range(m))
            return np.array([self(x, x).item() for x in rows])
        return _apply(self, squared_norms(X))


def squared_norms(X: Matrix) -> Array:
    """|x|^2 of every row, in float64."""
    if sp.issparse(X):
        return np.asarray(X.astype(np.float64).power(2).sum(axis=1)).ravel()
    X = np.asarray(X, dtype=np.float64)
    norms: Array = np.einsum("ij,ij->i", X, X)
    return norms


def scale_gamma(X: Matrix, weight: Array | None = None) -> float:
    """The ``gamma="scale"`` of SVC: 1 / (n Var X), the variance over all entries (weighted by row).

    A weight of k counts as k copies of the row, so that both give the same kernel.
    """
    m, n = X.shape
    w = np.full(m, 1.0 / m) if weight is None else weight / weight.sum()
    shift = 0.0
    if sp.issparse(X):
        first = float(w @ np.asarray(X.sum(axis=1), dtype=np.float64).ravel()) / n
        second = float(w @ squared_norms(X)) / n
    else:
        # Moments about one entry: an offset common to all entries does not cancel the variance away.
        shift = float(X[0, 0])
        first = second = 0.0
        for start in range(0, m, 4096):
            block = np.asarray(X[start : start + 4096], dtype=np.float64) - shift
            part = w[start : start + 4096]
            first += float(part @ block.sum(axis=1)) / n
            second += float(part @ np.einsum("ij,ij->i", block, block)) / n
    variance = second - first * first
    floor = 1e-14 * second
    return 1.0 / (n * variance) if variance > floor else 1.0


def _apply(kernel: Kernel, dots: Array) -> Array:
    """Turn inner products into kernel values, in place where the type allows."""
    if kernel.name == "linear":
        return dots
    dots *= kernel.gamma
    dots += kernel.coef0
    if kernel.name == "sigmoid":
        return np.tanh(dots, out=dots)
    if kernel.needs_positive_bases and (dots < 0.0).any():
        raise negative_base(kernel)
    return np.power(dots, kernel.degree, out=dots)


def negative_base(kernel: Kernel) -> NonFiniteError:
    """What is wrong where a base is negative that may not be."""
    return NonFiniteError(
        f"degree={kernel.degree:g} of a negative number gamma x.z + coef0 is not a real number; set "
        "degree to an integer, or coef0 so high that none is negative."
    )


class _Transposed:
    """Z^T of landmarks Z: a row for each column of Z in which a landmark is not 0.

    It is dense, unless that would take more than ``DENSE_LANDMARK_BYTES``.

    Parameters
    ----------
    choosing : float
        Columns of dense landmarks are left out where at most this share of them is left.

    Attributes
    ----------
    matrix : array of shape (columns, s and a few), or a CSR matrix of shape (n, s)
    columns : array or None
        The columns that the rows of ``matrix`` stand for; None where it is all of them.
    skips : bool
        Whether dense rows are multiplied nonzero by nonzero: they are as full as landmarks are.
    """

    def __init__(self, Z: Matrix, dtype: np.dtype[Any], choosing: float = 0.0):
        s, n = Z.shape
        self.columns: Array | None = None
        self.place: Array | None = None
        if sp.issparse(Z):
            Z = sp.csr_matrix(Z, dtype=dtype, copy=True)
            Z.sum_duplicates()
            columns, nonzeros = np.unique(Z.indices), Z.nnz
            if len(columns) * s * 8 > DENSE_LANDMARK_BYTES:
                self.matrix: Matrix = sp.csr_matrix(Z.T)
                self.skips = False
                return
            self.matrix = np.zeros((len(columns), padded_width(s)), dtype=dtype)
            self.matrix[np.searchsorted(columns, Z.indices), Z.tocoo().row] = Z.data
        else:
            columns, nonzeros = np.flatnonzero(Z.any(axis=0)), np.count_nonzero(Z)
            if len(columns) > choosing * n:
                columns = np.arange(n)
            self.matrix = padded_columns(Z.T[columns], dtype)
        self.skips = s >= FEWEST_LANDMARKS and nonzeros <= FEW_NONZEROS * s * len(columns)
        if len(columns) < n:
            self.columns, self.place = columns, np.full(n, -1, dtype=np.int32)
            self.place[columns] = np.arange(len(columns), dtype=np.int32)

    def dots(self, X: Matrix) -> Array:
        """X Z^T."""
        if sp.issparse(X) and not sp.issparse(self.matrix):
            return csr_times(X, self.matrix, self.place)
        return self.chosen_dots(X if self.columns is None else X[:, self.columns])

    def chosen_dots(self, X: Matrix) -> Array:
        """The same, for rows that have only the columns of ``columns``."""
        if self.skips:
            return nonzeros_times(X, self.matrix)
        dots = X @ self.matrix
        return np.asarray(dots.toarray() if sp.issparse(dots) else dots)


class _Callable:
    """A user's kernel, its result checked: a matrix of the right shape, of finite real numbers.

    What is returned is copied, since it may be a matrix that the user keeps, and callers write into
    theirs. A sparse one is made dense, as ``SVC`` does: the plain product of CSR rows is one.
    """

    def __init__(self, function: Callable[[Matrix, Matrix], Any], Z: Matrix, dtype: np.dtype[Any]):
        self.function, self.Z, self.dtype = function, Z, dtype

    def __call__(self, X: Matrix) -> Array:
        found = self.function(X, self.Z)
        expected = (X.shape[0], self.Z.shape[0])
        if np.ma.is_masked(found):
            raise ValueError(
                f"The callable kernel returned {int(found.mask.sum())} masked values; it must "
                "return a number for every pair of rows."
            )
        values = _matrix(found)
        if values is None or values.shape != expected:
            what = f"shape {values.shape}" if values is not None and values.ndim else f"{found!r:.60}"
            raise ValueError(
                f"The callable kernel returned {what} for {expected[0]} rows and {expected[1]} "
                f"landmarks; it must return the {expected} matrix of kernel values."
            )
        if values.dtype.kind not in "fiub":
            raise ValueError(
                f"The callable kernel returned values of type {values.dtype}; it must return "
                "real numbers."
            )
        with np.errstate(over="ignore"):
            copied = values.astype(self.dtype)
        finite = np.isfinite(copied)
        if not finite.all():
            raise NonFiniteError(
                f"The callable kernel returned values that are not finite in {self.dtype} "
                f"({values[~finite][0]}); it must return finite numbers: mend it, or scale the columns "
                "of X (StandardScaler) if they are too large for it."
            )
        return copied


def _matrix(found: Any) -> Array | None:
    """The array of what a user's function returned; None where there is none."""
    try:
        return np.asarray(found.toarray() if sp.issparse(found) else found)
    except (TypeError, ValueError):  # rows of different lengths
        return None


class _InnerProduct:
    """linear, poly and sigmoid: functions of x.z alone."""

    def __init__(self, kernel: Kernel, Z: Matrix, dtype: np.dtype[Any]):
        self.kernel, self.dtype, self.s = kernel, dtype, Z.shape[0]
        self.transposed = _Transposed(Z, dtype)

    def __call__(self, X: Matrix) -> Array:
        dots = self.transposed.dots(X.astype(self.dtype, copy=False))
        return _apply(self.kernel, dots[:, : self.s])


class _Gaussian:
    """exp(-gamma |x - z|^2) = exp(2 x'.z' - |x'|^2 - |z'|^2), x' = sqrt(gamma) (x - shift)."""

    def __init__(self, kernel: Kernel, Z: Matrix, dtype: np.dtype[Any]):
        self.dtype = dtype
        self.factor = float(np.sqrt(kernel.gamma))
        if sp.issparse(Z):
            self.shift = np.zeros(Z.shape[1])
            centred = (Z.astype(np.float64) * self.factor).astype(dtype)
        else:
            # A shift that rows of this type can hold: X and Z must move by the same.
            self.shift = Z.mean(axis=0, dtype=np.float64).astype(Z.dtype).astype(np.float64)
            Z = np.asarray(Z, dtype=np.float64)
            self.shift[_stays(Z, kernel.gamma)] = 0.0
            self.shift = np.where((Z[0] == Z).all(axis=0), Z[0], self.shift)
            centred = ((Z - self.shift) * self.factor).astype(dtype)
        # Round first, then take norms of what was rounded: |z' - z'| is then 0 to rounding.
        self.norms = squared_norms(centred)
        self.transposed = _Transposed(centred, dtype, FEW_COLUMNS)

    def __call__(self, X: Matrix) -> Array:
        # A row far away overflows to a squared distance of infinity: a kernel value of 0, as it is.
        with np.errstate(over="ignore"):
            values = self._from_sparse if sp.issparse(X) else self._from_dense
            return gaussian_values(*values(X), self.norms)

    def _from_sparse(self, X: Matrix) -> tuple[Array, Array]:
        """x'.z' and |x'|^2; the shift is taken off the products, since CSR rows cannot be moved."""
        scaled = X.astype(self.dtype) * self.dtype.type(self.factor)
        offset = self.shift * self.factor
        norms = squared_norms(scaled)
        dots = self.transposed.dots(scaled)
        if offset.any():
            norms = norms - 2.0 * (scaled.astype(np.float64) @ offset) + offset @ offset
            dots -= self.transposed.dots(offset.astype(self.dtype)[None, :])
        return dots, norms

    def _from_dense(self, X: Matrix) -> tuple[Array, Array]:
        """x'.z' and |x'|^2."""
        columns, matrix = self.transposed.columns, self.transposed.matrix
        moved = np.empty((X.shape[0], matrix.shape[0]), dtype=self.dtype)
        norms = np.empty(X.shape[0])
        if columns is None:
            moved_rows(X, self.shift, self.factor, moved, norms)
        else:
            moved_columns(X, self.shift, self.factor, columns, moved, norms)
        return self.transposed.chosen_dots(moved), norms


def _stays(Z: Array, gamma: float) -> Array:
    """The columns that are not moved: with few nonzeros, or with some zeros and of small squares."""
    share = np.count_nonzero(Z, axis=0) / len(Z)
    with np.errstate(over="ignore"):
        small = gamma * np.einsum("ij,ij->j", Z, Z) <= SMALL * len(Z)
    stays: Array = (share <= 0.25) | ((share <= 0.75) & small)
    return stays


class _Laplacian:
    """exp(-gamma |x - z|_1); no matrix product can help, a compiled loop does."""

    def __init__(self, kernel: Kernel, Z: Matrix, dtype: np.dtype[Any]):
        self.gamma, self.dtype = kernel.gamma, dtype
        if sp.issparse(Z) and Z.shape[0] * Z.shape[1] * 8 > DENSE_LANDMARK_BYTES:
            raise ValueError(
                f'kernel="laplacian" with {Z.shape[0]} sparse landmarks of {Z.shape[1]} features '
                "does not fit in memory; set n_components lower or use kernel='rbf'."
            )
        Z = Z.toarray() if sp.issparse(Z) else np.asarray(Z)
        self.transposed = np.ascontiguousarray(Z.T, dtype=dtype)
        self.norms = np.abs(self.transposed).sum(axis=0)

    def __call__(self, X: Matrix) -> Array:
        out = np.empty((X.shape[0], self.transposed.shape[1]), dtype=self.dtype)
        if sp.issparse(X):
            out[:] = self.norms
            data = X.data.astype(self.dtype, copy=False)
            _add_sparse_l1(X.indptr, X.indices, data, self.transposed, out)
        else:
            _l1_distances(np.ascontiguousarray(X, dtype=self.dtype), self.transposed, out)
        out *= self.dtype.type(-self.gamma)
        return np.exp(out, out=out)


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})
def _l1_distances(X: Array, ZT: Array, out: Array) -> None:
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
