"""Landmarks, transposed for products with rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from asset_svm.arrays import Array, Matrix
from asset_svm.numerics.padding import padded_columns, padded_width
from asset_svm.numerics.products import FEW_NONZEROS, csr_times, nonzeros_times
from asset_svm.numerics.row_products import product

DENSE_LANDMARK_BYTES = 1 << 30
FEWEST_LANDMARKS = 128
"""Finding the nonzeros costs what they save where landmarks are fewer."""


class Transposed:
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
        """Return X Z^T."""
        if sp.issparse(X) and not sp.issparse(self.matrix):
            return csr_times(X, self.matrix, self.place)
        return self.chosen_dots(X if self.columns is None else X[:, self.columns])

    def chosen_dots(self, X: Matrix) -> Array:
        """Return X Z^T for rows that have only the columns of ``columns``."""
        if self.skips:
            return nonzeros_times(X, self.matrix)
        if sp.issparse(self.matrix):
            dots = X @ self.matrix
            return np.asarray(dots.toarray() if sp.issparse(dots) else dots)
        return product(X, self.matrix)
