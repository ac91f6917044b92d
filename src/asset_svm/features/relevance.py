"""Relevance: a linear map of the columns, u = T (x - shift), on whose rows a model lives.

    columns       T = diag(w), a weight a column; CSR rows stay CSR, and no rows are moved
    directions    T of shape (r, n), any linear map; rows become dense, and are moved

The kernels that rows are mapped for are functions of a distance, so that the shift changes nothing but
rounding: sums over columns that lie far from 0 would cancel. A map is scaled so that rows keep their
spread,

    Euclidean kernels      sum of the variances of the columns
    |x - z|_1              sum of their standard deviations

and gamma means what it means on rows as they are.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp

from asset_svm.arrays import Array, Matrix
from asset_svm.threads.blas import few_threads
from asset_svm.threads.blocks import map_in_blocks

NO_SPREAD = 1e-30
"""Times the square of its mean: a column of a smaller variance is one of rounding."""
COLUMNS_AT_A_TIME = 256
"""Columns that are there in float64 at a time."""
NEGLIGIBLE = 1e-9
"""Directions whose part of the squared distances is smaller are left out."""


@dataclass(frozen=True, eq=False)
class Relevance:
    """A linear map of the columns.

    Parameters
    ----------
    weights : array of shape (n,) or (r, n)
        T: its diagonal, or all of it.
    shift : array of shape (n,) or None
        What is subtracted from rows first; None of a map of columns.
    spread : float
        Of the rows that it was learnt from, before and after.
    """

    weights: Array
    shift: Array | None
    spread: float

    @property
    def of_columns(self) -> bool:
        """Whether it is a weight a column."""
        return self.weights.ndim == 1

    @property
    def shape(self) -> str:
        """The name of its kind."""
        return "columns" if self.of_columns else "directions"

    @property
    def n_columns(self) -> int:
        """The number n of columns of rows."""
        return int(self.weights.shape[-1])

    @property
    def width(self) -> int:
        """The number of columns of mapped rows."""
        return int(self.weights.shape[0])

    def __call__(self, X: Matrix) -> Matrix:
        """The mapped rows, in the type of X and where X lies: an array, CSR, or a tensor on a card."""
        if sp.issparse(X):
            return self._of_sparse(X)
        if not isinstance(X, np.ndarray):
            return self._of_tensor(X)
        function = self.plain(X.dtype)
        return map_in_blocks(function, X, self.width, X.dtype, reentrant=True)

    def plain(self, dtype: np.dtype[Any]) -> Any:
        """A function of few dense rows of this type."""
        by = self.weights.astype(dtype)
        shift = np.zeros(self.n_columns, dtype) if self.shift is None else self.shift.astype(dtype)
        if self.of_columns:
            return lambda X: (X - shift) * by
        by = np.ascontiguousarray(by.T)
        return lambda X: (X - shift) @ by

    def _of_sparse(self, X: Matrix) -> Matrix:
        if not self.of_columns:
            dense = np.asarray(X @ self.weights.T.astype(X.dtype))
            return dense if self.shift is None else dense - (self.weights @ self.shift).astype(X.dtype)
        by = self.weights.astype(X.dtype)
        found = type(X)((X.data * by[X.indices], X.indices.copy(), X.indptr.copy()), shape=X.shape)
        found.eliminate_zeros()
        return found

    def _of_tensor(self, X: Any) -> Any:
        moved = X if self.shift is None else X - X.new_tensor(self.shift)
        by = X.new_tensor(self.weights)
        return moved * by if self.of_columns else moved @ by.T

    def back(self, gradients: Array) -> Array:
        """Gradients by the columns of rows, (..., n), from those by mapped columns, (..., width)."""
        return np.asarray(gradients * self.weights if self.of_columns else gradients @ self.weights)

    def mapped_bytes(self, n_rows: int, n_bytes: int, dtype: np.dtype[Any]) -> int:
        """What so many rows that take ``n_bytes`` may take once they are mapped."""
        dense = 0 if self.of_columns else n_rows * self.width * dtype.itemsize
        return max(n_bytes, dense)

    def unmoved(self, Z: Matrix) -> Matrix:
        """Mapped rows as T x, without the shift."""
        if self.shift is None:
            return Z
        moved = self.weights * self.shift if self.of_columns else self.weights @ self.shift
        return Z + moved.astype(Z.dtype)


@dataclass(frozen=True, eq=False)
class Learnt:
    """What was learnt of the relevance of columns.

    Parameters
    ----------
    relevance : Relevance or None
        None where rows as they are were found to be no worse.
    importances : array of shape (n,)
        The parts of the columns in the mean square of the gradients, in units of their standard
        deviations; their sum is 1.
    history : list of dict
        A record of each round.
    asked, kernel : str
        The parameters that it was learnt with.
    """

    relevance: Relevance | None
    importances: Array
    history: list[dict[str, Any]] = field(default_factory=list)
    asked: str = "auto"
    kernel: str = "rbf"

    @property
    def width(self) -> int:
        """The number of columns of rows as a model sees them."""
        return len(self.importances) if self.relevance is None else self.relevance.width


@dataclass(frozen=True, eq=False)
class Moments:
    """Means and standard deviations of columns.

    Parameters
    ----------
    mean, deviation : arrays of shape (n,)
    absolute : bool
        Whether the kernel is one of |x - z|_1.
    """

    mean: Array
    deviation: Array
    absolute: bool

    @classmethod
    def of(cls, X: Matrix, weight: Array, *, absolute: bool) -> Moments:
        """The moments of rows with these weights; a column of one value has deviation 0."""
        mean, variance = column_moments(X, weight)
        return cls(mean, np.sqrt(variance), absolute)

    @property
    def spread(self) -> float:
        """The spread of rows as they are."""
        return float(self.deviation.sum() if self.absolute else (self.deviation**2).sum())

    @property
    def alike(self) -> bool:
        """Whether columns have one scale already, to a tenth."""
        varied = self.deviation[self.deviation > 0.0]
        return len(varied) == 0 or float(varied.max()) <= 1.1 * float(varied.min())

    def standard(self) -> Relevance:
        """T = diag(1 / deviation)."""
        return self.scaled(np.ones(len(self.deviation)))

    def scaled(self, weights: Array, some: Array | None = None) -> Relevance:
        """The map of standardised columns by these weights, in units of the columns.

        ``weights`` are of shape (n,), or (r, n) with ``some`` rows Z of standardised columns, Z^T Z of
        which is their covariance.
        """
        with np.errstate(divide="ignore"):
            inverse = np.where(self.deviation > 0.0, 1.0 / self.deviation, 0.0)
        weights = weights * (inverse > 0.0)
        if weights.ndim == 1:
            found = np.abs(weights).sum() if self.absolute else (weights**2).sum()
        else:
            assert some is not None
            found = float(((some @ weights.T) ** 2).sum())
        spread, exponent = self.spread, 1.0 if self.absolute else 0.5
        factor = (spread / found) ** exponent if found > 0.0 and spread > 0.0 else 1.0
        shift = None if weights.ndim == 1 else self.mean
        return Relevance(factor * weights * inverse, shift, spread)


def column_moments(X: Matrix, weight: Array) -> tuple[Array, Array]:
    """The weighted mean and variance of every column, in float64; a column of one value has none.

    Moments are about the mean, so that an offset of a column does not cancel its variance away.
    """
    share = weight / weight.sum()
    if sp.issparse(X):
        by = np.repeat(share, np.diff(X.indptr))
        n, data = X.shape[1], X.data.astype(np.float64)
        mean = np.bincount(X.indices, by * data, minlength=n)
        there = np.bincount(X.indices, by, minlength=n)
        about = np.bincount(X.indices, by * (data - mean[X.indices]) ** 2, minlength=n)
        variance = about + np.maximum(1.0 - there, 0.0) * mean**2
        return mean, np.where(variance > NO_SPREAD * mean**2, variance, 0.0)
    mean, variance = np.empty((2, X.shape[1]))
    for start in range(0, X.shape[1], COLUMNS_AT_A_TIME):
        part = slice(start, start + COLUMNS_AT_A_TIME)
        block = np.array(X[:, part], dtype=np.float64)
        first = block[0].copy()
        block -= first
        moved = share @ block
        mean[part] = first + moved
        block -= moved
        spread = share @ block**2
        variance[part] = np.where(spread > NO_SPREAD * mean[part] ** 2, spread, 0.0)
    return mean, variance


def leading_directions(M: Array, power: float) -> Array:
    """M^power by its eigenvectors, (r, n): a row a direction that is not negligible.

    Its largest entry is positive.
    """
    with few_threads(len(M)):
        values, vectors = np.linalg.eigh(0.5 * (M + M.T))
    values = np.maximum(values, 0.0) / max(float(values[-1]), np.finfo(np.float64).tiny)
    kept = values ** (2.0 * power) > NEGLIGIBLE
    found = (vectors[:, kept] * values[kept] ** power).T[::-1]
    largest = np.abs(found).argmax(axis=1)
    return np.asarray(found * np.sign(found[np.arange(len(found)), largest])[:, None])
