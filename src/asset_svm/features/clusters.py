"""Lloyd's algorithm, in a bounded number of passes over a sample of rows.

    centres = rows at random
    a pass:  each row goes to its nearest centre        one matrix product
             each centre moves to the mean of its rows

A centre that loses all its rows stays where it is. Passes end when few rows change their centre; the
first ones do most of the work, and there are at most ``MOST_PASSES``. Cells and landmarks are made of
the centres. Those of many small samples at a time are found by compiled threads: ``descent``.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from asset_svm.arrays import Array, Matrix
from asset_svm.kernels import squared_norms
from asset_svm.numerics.compiling import njit

MOST_PASSES = 8
FEW_CHANGES = 0.02
"""The part of the rows by which, or by fewer, changes end the passes."""
BLOCK_ROWS = 1024
LARGE = 1e15


def cluster_centres(rows: Matrix, count: int, rng: np.random.Generator) -> Array:
    """``count`` centres of dense or sparse rows, as a dense matrix."""
    return lloyd(rows, np.sort(rng.choice(rows.shape[0], size=count, replace=False)))


def lloyd(rows: Matrix, start: Array) -> Array:
    """Centres of dense or sparse rows, from those of ``start`` on."""
    (m, n), count = rows.shape, len(start)
    first = rows[start]
    centres = np.asarray(first.toarray() if sp.issparse(first) else first)
    labels = np.full(m, -1)
    for _ in range(MOST_PASSES):
        before, labels = labels, nearest_centres(rows, centres)
        if np.count_nonzero(labels != before) <= FEW_CHANGES * m:
            break
        sizes = np.bincount(labels, minlength=count)
        if sp.issparse(rows):
            member = sp.csr_matrix((np.ones(m), labels, np.arange(m + 1)), shape=(m, count))
            sums = (member.T @ rows).toarray()
        else:
            sums = np.zeros((count, n))
            _add_rows(rows, labels, sums)
        alive = sizes > 0
        centres[alive] = sums[alive] / sizes[alive, None]
    return centres


def nearest_centres(rows: Matrix, centres: Array) -> Array:
    """The nearest centre of each row, in blocks; the first of equally near ones."""
    if centres.size and float(np.abs(centres).max()) > LARGE:
        centres = centres.astype(np.float64)  # squares would overflow
    half = 0.5 * squared_norms(centres).astype(centres.dtype)
    transposed = np.ascontiguousarray(centres.T)
    labels = np.empty(rows.shape[0], dtype=np.intp)
    for start in range(0, rows.shape[0], BLOCK_ROWS):
        closeness = rows[start : start + BLOCK_ROWS] @ transposed
        closeness -= half
        labels[start : start + BLOCK_ROWS] = closeness.argmax(axis=1)
    return labels


@njit(cache=True, nogil=True)
def _add_rows(rows: Array, labels: Array, sums: Array) -> None:
    """sums[labels[i]] += rows[i]."""
    for i in range(rows.shape[0]):
        for q in range(rows.shape[1]):
            sums[labels[i], q] += rows[i, q]
