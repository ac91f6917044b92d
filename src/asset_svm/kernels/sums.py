"""Sums of kernel values with landmarks, by compiled code that holds no interpreter lock.

    f_k(x) = sum_j weights_kj k(x, z_j) + intercept_k, in float64

for dense rows and kernels that have a loop (``loops``). Threads take ``BLOCK`` rows at a time by
themselves: rows moved and scaled, their products with the landmarks, the kernel's own loop, the sums.
What a row is given does not depend on the rows beside it, nor on how many threads there are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from asset_svm.arrays import Array
from asset_svm.kernels.distances import SquaredDistanceValues
from asset_svm.kernels.loops import BLOCK, finish, loop_code
from asset_svm.numerics.compiling import njit
from asset_svm.numerics.padding import padded_columns
from asset_svm.numerics.products import set_by_nonzeros
from asset_svm.numerics.row_products import set_product
from asset_svm.numerics.rows import FEW_MODELS, moved_columns, moved_rows, set_weighted
from asset_svm.threads.counter import new_counter, take
from asset_svm.threads.granted import granted
from asset_svm.threads.team import together

FEW_BLOCKS = 64
"""Where there is one thread, it is the caller's for so many blocks: Ctrl-C comes after them."""


@dataclass(frozen=True, eq=False)
class KernelSums:
    """The decisions of K models by their landmarks.

    Parameters
    ----------
    code : int
        ``loop_code`` of the kernel.
    shift, factor, columns : array, float, array
        How rows are moved and scaled, and which columns of them are multiplied; none for all.
    matrix : array of shape (columns, s and a few)
    norms : array of shape (s,)
    skips : bool
        Whether products are made nonzero by nonzero.
    weights, intercept : arrays of shape (K, s) and (K,)
    transposed : array of shape (s, K and a few)
        The weights, where there are many models.
    """

    code: int
    shift: Array
    factor: float
    columns: Array
    matrix: Array
    norms: Array
    skips: bool
    weights: Array
    transposed: Array
    intercept: Array

    @classmethod
    def of(cls, values: Any, weights: Array, intercept: Array) -> Self | None:
        """The sums of these kernel values; None where compiled code cannot compute them."""
        if not isinstance(values, SquaredDistanceValues):
            return None
        code, by = loop_code(values.formula), values.transposed
        if code is None or not isinstance(by.matrix, np.ndarray) or by.matrix.size == 0:
            return None
        columns = np.empty(0, dtype=np.intp) if by.columns is None else by.columns
        norms = values.norms.astype(values.dtype)
        weights = np.ascontiguousarray(weights, dtype=np.float64)
        return cls(
            code, values.shift, values.factor, columns, by.matrix, norms, by.skips, weights,
            padded_columns(weights.T, np.float64), np.asarray(intercept, dtype=np.float64),
        )  # fmt: skip

    def __call__(self, X: Array) -> Array:
        """The (rows, K) decisions of dense rows, in float64."""
        out = np.empty((len(X), len(self.weights)))
        arguments = (
            np.ascontiguousarray(X), self.code, self.shift, self.factor, self.columns, self.matrix,
            self.norms, self.skips, self.weights, self.transposed, self.intercept, out,
        )  # fmt: skip
        alone = BLOCK if granted() > 1 else FEW_BLOCKS * BLOCK  # done before another thread has woken
        if len(X) <= alone:
            _decide(new_counter(), *arguments)
        else:
            together(lambda counter: _decide(counter, *arguments))
        return out


@njit(cache=True, nogil=True)
def _decide(
    counter: Array,
    X: Array,
    code: int,
    shift: Array,
    factor: float,
    columns: Array,
    matrix: Array,
    norms: Array,
    skips: bool,
    weights: Array,
    transposed: Array,
    intercept: Array,
    out: Array,
) -> None:
    """Decide the blocks of rows whose numbers this thread takes."""
    s, size, many = len(norms), min(BLOCK, len(X)), len(weights) > FEW_MODELS
    moved = np.zeros((size, matrix.shape[0]), matrix.dtype)
    dots = np.empty((size, matrix.shape[1]), matrix.dtype)
    squares, left = np.empty(size), np.zeros(size, matrix.dtype)
    sums = np.empty((size if many else 0, transposed.shape[1]))
    while True:
        start = BLOCK * take(counter)
        if start >= len(X):
            break
        rows = X[start : start + BLOCK]
        m = len(rows)
        if len(columns):
            moved_columns(rows, shift, factor, columns, moved, squares)
        else:
            moved_rows(rows, shift, factor, moved, squares)
        for i in range(m):
            left[i] = squares[i]
        if skips:
            set_by_nonzeros(moved[:m], matrix, dots)
        else:
            set_product(moved[:m], matrix, dots[:m])
        finish(code, dots[:m], left[:m], norms)
        found = out[start : start + m]
        if many:
            set_product(dots[:m, :s].astype(np.float64), transposed, sums[:m])
            found[:] = sums[:m, : len(weights)]
        else:
            set_weighted(dots[:m], weights, found)
        for i in range(m):
            for k in range(len(intercept)):
                found[i, k] += intercept[k]
