"""The kernel matrix of the rows of a cell, computed by several threads."""

from __future__ import annotations

import numpy as np

from asset_svm.arrays import Array, Matrix
from asset_svm.exceptions import NonFiniteError
from asset_svm.kernels import BlockFunction, Kernel
from asset_svm.numerics.rows import transpose_into
from asset_svm.threads.team import side_by_side

BLOCK = 1024
GROUP = 2 * BLOCK
"""Rows that others are compared with at a time: what is prepared of sparse ones stays small, and half
of the pairs of a large cell need not be computed."""


def kernel_matrix(kernel: Kernel, X: Matrix) -> Array:
    """Return k of every pair of these rows, in their type."""
    m = X.shape[0]
    K = np.empty((m, m), dtype=X.dtype)
    size = GROUP if kernel.is_symmetric else m
    for first in range(0, m, size):
        group = slice(first, first + size)
        values = kernel.against(X[group], X.dtype)

        def fill(start: int, group: slice = group, values: BlockFunction = values) -> None:
            """Pairs of rows from here with the group, and, beyond it, the other way round."""
            block = slice(start, start + BLOCK)
            K[block, group] = found = values(X[block])
            if start >= group.stop:
                transpose_into(found, K[group, block])

        side_by_side(fill, range(first, m, BLOCK))
    if not np.isfinite(K).all():
        raise NonFiniteError(
            "The kernel matrix of a cell is not finite; scale the columns of X (StandardScaler) or "
            "lower gamma."
        )
    kernel.check_values(K, X)
    return K
