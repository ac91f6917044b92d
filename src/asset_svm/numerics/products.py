"""Rows times a dense matrix, nonzero by nonzero: CSR rows, and dense ones with many zeros.

A nonzero costs one contiguous row of the matrix, read at the speed of the cache it lies in: some 30 to
50 GFLOP/s (s = 1024). Dense rows with few nonzeros gain by it; how few depends on what a matrix product
does on the machine: 100 GFLOP/s on a core of Zen 4, more than twice as much where there are two wide
multipliers.
What a row gives does not depend on the rows beside it.
"""

from __future__ import annotations

from typing import Any

import llvmlite.binding as llvm
import numpy as np

from asset_svm.arrays import Array
from asset_svm.numerics.compiling import njit
from asset_svm.numerics.elementwise import FAST

_CPU = llvm.get_host_cpu_name()
FEW_NONZEROS = 0.18 if _CPU == "znver5" else 0.3 if _CPU.startswith("znver") else 0.08
"""The share of nonzeros up to which skipping the others is faster than a matrix product.

By the kind of CPU and not by a measurement, which would round a model in two ways on one machine.
Measured break-even: 0.30 to 0.39 on Zen 4, 0.09 (large matrices) to 0.25 on Sapphire Rapids, against
OpenBLAS; 0.19 on Zen 5, against ``row_products``.
"""


@njit(cache=True, nogil=True, fastmath=FAST)
def _row_times(indices: Array, data: Array, Z: Array, row: Array) -> None:
    """row = data Z[indices], four rows of Z at a time: a quarter of the passes over the sum."""
    row[:] = 0
    whole = len(indices) // 4 * 4
    for p in range(0, whole, 4):
        z0, z1, z2, z3 = (
            Z[indices[p]], Z[indices[p + 1]], Z[indices[p + 2]], Z[indices[p + 3]],
        )  # fmt: skip
        x0, x1, x2, x3 = data[p], data[p + 1], data[p + 2], data[p + 3]
        for k in range(row.shape[0]):
            row[k] += x0 * z0[k] + x1 * z1[k] + x2 * z2[k] + x3 * z3[k]
    for p in range(whole, len(indices)):
        z, x = Z[indices[p]], data[p]
        for k in range(row.shape[0]):
            row[k] += x * z[k]


@njit(cache=True, nogil=True)
def _csr_times(indptr: Array, indices: Array, data: Array, Z: Array, out: Array) -> None:
    for i in range(indptr.shape[0] - 1):
        part = slice(indptr[i], indptr[i + 1])
        _row_times(indices[part], data[part], Z, out[i])


@njit(cache=True, nogil=True)
def _csr_columns_times(
    indptr: Array, indices: Array, data: Array, place: Array, Z: Array, out: Array
) -> None:
    found, values = np.empty(0, np.int32), np.empty(0, data.dtype)
    for i in range(indptr.shape[0] - 1):
        first, last = indptr[i], indptr[i + 1]
        if last - first >= len(found):
            found, values = np.empty(last - first + 1, np.int32), np.empty(last - first + 1, data.dtype)
        count = 0
        for p in range(first, last):  # no branch: an entry without a place is overwritten by the next
            found[count], values[count] = place[indices[p]], data[p]
            count += place[indices[p]] >= 0
        _row_times(found[:count], values[:count], Z, out[i])


@njit(cache=True, nogil=True)
def set_by_nonzeros(X: Array, Z: Array, out: Array) -> None:
    """out = X Z for a dense X, its zeros skipped."""
    n = X.shape[1]
    indices, data = np.empty(n + 1, np.int32), np.empty(n + 1, X.dtype)
    for i in range(X.shape[0]):
        count = 0
        for q in range(n):  # no branch: an entry of 0 is overwritten by the next
            indices[count], data[count] = q, X[i, q]
            count += X[i, q] != 0
        _row_times(indices[:count], data[:count], Z, out[i])


def csr_times(X: Any, Z: Array, place: Array | None = None) -> Array:
    """X Z for a CSR matrix X; given ``place``, column q of X meets row place[q] of Z, none below 0."""
    out = np.empty((X.shape[0], Z.shape[1]), dtype=Z.dtype)
    data = X.data.astype(Z.dtype, copy=False)
    if place is None:
        _csr_times(X.indptr, X.indices, data, Z, out)
    else:
        _csr_columns_times(X.indptr, X.indices, data, place, Z, out)
    return out


def nonzeros_times(X: Array, Z: Array) -> Array:
    """X Z for a dense X of the type of Z, its zeros skipped."""
    out = np.empty((len(X), Z.shape[1]), dtype=Z.dtype)
    set_by_nonzeros(np.ascontiguousarray(X), Z, out)
    return out
