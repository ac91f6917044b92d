"""Kernels that are functions of |x - z|^2, computed from one matrix product.

Rows are first moved to the mean of the landmarks and multiplied by the root of the rate, that of t: the
kernel does not
change, the cancellation in |x|^2 - 2 x.z + |z|^2 does, and columns of 1e30 do not overflow in float32.
Columns with a quarter of nonzeros or less (among the landmarks) stay where they are: the square of a
nonzero entry is at most 16/9 of what it would be; so do those with three quarters or less that hardly
count in the distance. Zeros cost nothing then (``numerics.products``).
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from asset_svm.arrays import Array, Matrix
from asset_svm.kernels.formula import Argument, BlockFunction, DistanceFormula
from asset_svm.kernels.landmarks import Transposed
from asset_svm.kernels.scale import squared_norms
from asset_svm.numerics.compiling import lent, njit
from asset_svm.numerics.elementwise import minus_distances
from asset_svm.numerics.rows import moved_columns, moved_rows

FEW_COLUMNS = 0.97
"""A product with fewer of the columns than this pays for choosing them while rows are moved."""
SMALL = 0.1
"""A mean square of a column, times the rate, up to which nothing cancels."""


class SquaredDistanceFormula(DistanceFormula):
    """A function of |x - z|^2 that is 1 at 0.

    ``cuda`` is the profile on the card, which finishes products in one pass: the body of a function of
    a float t <= 0. ``loop`` is ``finished`` as compiled code, for arrays of one type.
    """

    argument: ClassVar[Argument] = Argument.SQUARED_DISTANCE
    cuda: ClassVar[str]
    loop: ClassVar[Any]
    slack: ClassVar[float] = 0.0
    """Times the machine precision and |x'|^2 + |z'|^2: squared distances of less count as 0."""

    @property
    def rate(self) -> float:
        """What squared distances are multiplied by: rows are, by its root."""
        return -self.factor

    @classmethod
    def rounding(cls, dtype: Any) -> float:
        """Times |x'|^2 + |z'|^2: squared distances of less, in this type of numpy, count as 0."""
        return cls.slack * float(np.finfo(dtype).eps)

    def against(self, Z: Matrix, dtype: np.dtype[Any]) -> BlockFunction:
        """Prepare the landmarks for one matrix product a block."""
        return SquaredDistanceValues(self, Z, dtype)

    def finished(self, dots: Array, left: Array, right: Array) -> Array:
        """The profile of t = 2 dots - left - right, cut at 0, in place; the first len(right) columns.

        Not a number where t is not. float32 has its loop; numpy's exp is as fast in float64.
        """
        if dots.dtype == np.float32:
            self.loop(dots, left.astype(np.float32), right.astype(np.float32))
            return dots[:, : len(right)]
        return np.asarray(self.profile(self.exponents(dots, left, right)))

    def exponents(self, dots: Array, left: Array, right: Array) -> Array:
        """The t = 2 dots - left - right, cut at 0, in place; the first len(right) columns."""
        minus_distances(dots, left, right, self.rounding(dots.dtype))
        return dots[:, : len(right)]


class SquaredDistanceValues:
    """k(X, Z) from t = 2 x'.z' - |x'|^2 - |z'|^2, x' = sqrt(rate) (x - shift)."""

    def __init__(self, formula: SquaredDistanceFormula, Z: Matrix, dtype: np.dtype[Any]):
        self.formula, self.dtype = formula, dtype
        self.factor = float(np.sqrt(formula.rate))
        if sp.issparse(Z):
            self.shift = np.zeros(Z.shape[1])
            centred = (Z.astype(np.float64) * self.factor).astype(dtype)
        else:
            # A shift that rows of this type can hold: X and Z must move by the same.
            Z = lent(Z)
            self.shift = np.empty(Z.shape[1])
            find_shift(Z, formula.rate, self.shift)
            centred = ((np.asarray(Z, dtype=np.float64) - self.shift) * self.factor).astype(dtype)
        # Round first, then take norms of what was rounded: |z' - z'| is then 0 to rounding.
        self.norms = squared_norms(centred)
        self.transposed = Transposed(centred, dtype, FEW_COLUMNS)

    def __call__(self, X: Matrix) -> Array:
        """Return k(X, Z)."""
        # A row far away overflows to a squared distance of infinity: a kernel value of 0, as it is.
        with np.errstate(over="ignore"):
            values = self._from_sparse if sp.issparse(X) else self._from_dense
            return self.formula.finished(*values(X), self.norms)

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
        """The products x'.z' and the norms |x'|^2."""
        columns, matrix = self.transposed.columns, self.transposed.matrix
        moved = np.empty((X.shape[0], matrix.shape[0]), dtype=self.dtype)
        norms = np.empty(X.shape[0])
        if columns is None:
            moved_rows(X, self.shift, self.factor, moved, norms)
        else:
            moved_columns(X, self.shift, self.factor, columns, moved, norms)
        return self.transposed.chosen_dots(moved), norms


@njit(cache=True, nogil=True)
def find_shift(Z: Array, rate: float, shift: Array) -> None:
    """Where the columns of dense landmarks are moved to 0 from.

    That is their mean, in the type of Z, or what all landmarks have; 0 where they stay: with few
    nonzeros, or with some zeros and of small squares.
    """
    s, n = Z.shape
    total, squares, filled = np.zeros(n), np.zeros(n), np.zeros(n)
    alike = np.ones(n, np.bool_)
    for i in range(s):
        for q in range(n):
            z = np.float64(Z[i, q])
            total[q] += z
            squares[q] += z * z
            filled[q] += z != 0.0
            alike[q] &= Z[i, q] == Z[0, q]
    for q in range(n):
        small = rate * squares[q] <= SMALL * s
        if alike[q]:
            shift[q] = Z[0, q]
        elif filled[q] <= 0.25 * s or (filled[q] <= 0.75 * s and small):
            shift[q] = 0.0
        else:
            shift[q] = Z.dtype.type(total[q] / s)
