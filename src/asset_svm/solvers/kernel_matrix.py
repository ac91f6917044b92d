"""The kernel matrix of the rows of a cell, computed by several threads.

Up to ``GROUP`` dense rows are the work of compiled loops, where the kernel has one.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from asset_svm.arrays import Array, Matrix
from asset_svm.exceptions import NonFiniteError
from asset_svm.kernels import BlockFunction, Kernel
from asset_svm.kernels.loops import BLOCK, fill_blocks, loop_code, prepare
from asset_svm.numerics.compiling import lent
from asset_svm.numerics.padding import padded_width
from asset_svm.numerics.rows import transpose_into
from asset_svm.threads.blas import few_threads
from asset_svm.threads.counter import new_counter
from asset_svm.threads.granted import granted
from asset_svm.threads.team import side_by_side, together

BLOCK_ROWS = 1024
GROUP = 2 * BLOCK_ROWS
"""Rows that others are compared with at a time: what is prepared of sparse ones stays small, and half
of the pairs of a large cell need not be computed."""


def has_loops(kernel: Kernel, X: Matrix) -> bool:
    """Whether compiled loops compute kernel matrices of such rows, in cells of up to ``GROUP``."""
    return loop_code(kernel.formula) is not None and not sp.issparse(X)


def kernel_matrix(kernel: Kernel, X: Matrix) -> Array:
    """Return k of every pair of these rows, in their type."""
    by_loops = X.shape[0] <= GROUP and has_loops(kernel, X)
    K = _by_loops(kernel, X) if by_loops else _by_values(kernel, X)
    if not np.isfinite(K).all():
        raise NonFiniteError(
            "The kernel matrix of a cell is not finite; scale the columns of X (StandardScaler) or "
            "lower gamma."
        )
    kernel.check_values(K, X)
    return K


def _by_loops(kernel: Kernel, X: Array) -> Array:
    """The matrix as threads that solve many cells have it."""
    code, (m, n), width = loop_code(kernel.formula), X.shape, padded_width(X.shape[0])
    room = (np.empty(n * width, dtype=X.dtype) for _ in range(2))
    prepared = prepare(lent(X), -kernel.formula.factor, *room, width)
    K = np.empty((m, width), dtype=X.dtype)
    threads = min(granted(), -(-m // BLOCK))
    if threads > 1:
        together(lambda counter: fill_blocks(counter, code, *prepared, K), threads)
    else:
        with few_threads(0):
            fill_blocks(new_counter(), code, *prepared, K)
    return np.ascontiguousarray(K[:, :m])


def _by_values(kernel: Kernel, X: Matrix) -> Array:
    """The matrix from values of the kernel with groups of the rows."""
    m = X.shape[0]
    K = np.empty((m, m), dtype=X.dtype)
    size = GROUP if kernel.is_symmetric else m
    for first in range(0, m, size):
        group = slice(first, first + size)
        values = kernel.against(X[group], X.dtype)

        def fill(start: int, group: slice = group, values: BlockFunction = values) -> None:
            """Pairs of rows from here with the group, and, beyond it, the other way round."""
            block = slice(start, start + BLOCK_ROWS)
            K[block, group] = found = values(X[block])
            if start >= group.stop:
                transpose_into(found, K[group, block])

        side_by_side(fill, range(first, m, BLOCK_ROWS))
    return K
