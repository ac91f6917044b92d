"""Kernel matrices of few dense rows, by compiled code that holds no interpreter lock.

The same steps as ``distances.SquaredDistanceValues``, for the pairs of one set of rows:

    rows moved to their mean and scaled; columns in which no two rows differ left out
    a block:  products with all rows, by tiles or nonzero by nonzero; then the kernel's own loop

Kernels that have such a loop are those of ``WITH_LOOPS``, by whose places compiled code knows them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from asset_svm.arrays import Array
from asset_svm.kernels.distances import FEW_COLUMNS, find_shift
from asset_svm.kernels.formula import Formula
from asset_svm.kernels.gaussian import Gaussian
from asset_svm.kernels.landmarks import FEWEST_LANDMARKS
from asset_svm.kernels.matern import (
    Exponential,
    Matern32,
    Matern52,
    exponential_loop,
    matern32_loop,
    matern52_loop,
)
from asset_svm.numerics.compiling import njit
from asset_svm.numerics.elementwise import gaussian_loop
from asset_svm.numerics.products import FEW_NONZEROS, set_by_nonzeros
from asset_svm.numerics.row_products import set_product
from asset_svm.numerics.rows import moved_rows
from asset_svm.threads.counter import take

WITH_LOOPS: tuple[type[Formula], ...] = (Gaussian, Exponential, Matern32, Matern52)
BLOCK = 256
"""Rows whose values are computed at a time, while they lie in a cache."""


def loop_code(formula: Formula) -> int | None:
    """The number by which compiled code knows a formula; None where it has no loop."""
    kind = type(formula)
    return WITH_LOOPS.index(kind) if kind in WITH_LOOPS else None


@njit(cache=True, nogil=True)
def finish(code: int, dots: Array, left: Array, right: Array) -> None:
    """Kernel values from x.z, |x|^2 and |z|^2, in place: ``SquaredDistanceFormula.finished``."""
    if code == 0:
        gaussian_loop(dots, left, right)
    elif code == 1:
        exponential_loop(dots, left, right)
    elif code == 2:
        matern32_loop(dots, left, right)
    else:
        matern52_loop(dots, left, right)


@njit(cache=True, nogil=True)
def fill_matrix(rows: Array, code: int, rate: float, moved: Array, transposed: Array, K: Array) -> bool:
    """Set k of every pair of rows; False where a value is not finite.

    Parameters
    ----------
    rows : array of shape (m, n)
    rate : float
        That of the formula: what squared distances are multiplied by.
    moved, transposed : arrays
        Room for m n numbers, and for n times the columns of K.
    K : array of shape (m, m and a few)
        The columns are a multiple of 16; those from m on mean nothing.
    """
    own, by, norms, skips = prepare(rows, rate, moved, transposed, K.shape[1])
    return fill_blocks(np.zeros(1, np.int64), code, own, by, norms, skips, K)


@njit(cache=True, nogil=True)
def prepare(
    rows: Array, rate: float, moved: Array, transposed: Array, width: int
) -> tuple[Array, Array, Array, bool]:
    """Rows moved and scaled, the same transposed, their squared norms; whether products skip zeros.

    The first two lie where ``fill_matrix`` has room for them.
    """
    m, n = rows.shape
    shift, squares, norms = np.empty(n), np.empty(m), np.empty(m, rows.dtype)
    find_shift(rows, rate, shift)
    own = moved[: m * n].reshape(m, n)
    moved_rows(rows, shift, np.sqrt(rate), own, squares)
    columns, nonzeros = _columns(own)
    count = len(columns)
    if count < n:
        for i in range(m):
            for t in range(count):  # never beyond what has been read
                moved[i * count + t] = own[i, columns[t]]
    own = moved[: m * count].reshape(m, count)
    by = transposed[: count * width].reshape(count, width)
    for t in range(count):
        for i in range(m):
            by[t, i] = own[i, t]
        by[t, m:] = 0
    for i in range(m):
        norms[i] = squares[i]
    return own, by, norms, m >= FEWEST_LANDMARKS and nonzeros <= FEW_NONZEROS * m * count


@njit(cache=True, nogil=True)
def fill_blocks(
    counter: Array, code: int, own: Array, by: Array, norms: Array, skips: bool, K: Array
) -> bool:
    """Set the rows of K block by block, as numbers of the counter say; False as ``fill_matrix``."""
    m, is_finite = len(own), True
    while True:
        start = BLOCK * take(counter)
        if start >= m:
            return is_finite
        stop = min(start + BLOCK, m)
        block = K[start:stop]
        if skips:
            set_by_nonzeros(own[start:stop], by, block)
        elif len(by):
            set_product(own[start:stop], by, block)
        else:
            block[:] = 0
        finish(code, block, norms[start:stop], norms)
        is_finite &= _times_zero(block, m) == 0


@njit(cache=True, nogil=True)
def _columns(moved: Array) -> tuple[Array, int]:
    """The columns that are not all 0, or all where they are nearly all; the nonzeros there are."""
    m, n = moved.shape
    filled = np.zeros(n)
    for i in range(m):
        for q in range(n):
            filled[q] += moved[i, q] != 0
    columns = np.flatnonzero(filled)
    if len(columns) > FEW_COLUMNS * n:
        columns = np.arange(n)
    return columns, int(filled.sum())


@njit(cache=True, nogil=True, fastmath={"reassoc"})
def _times_zero(block: Array, m: int) -> Any:
    """0, or not a number where a value of the first m columns is not finite."""
    zero = block.dtype.type(0)
    total = zero
    for i in range(block.shape[0]):
        row = block[i, :m]
        for j in range(m):
            total += row[j] * zero
    return total
