"""Rows of a matrix, by their numbers, gathered by several threads.

Most of the time goes into memory that nobody has written to yet, which threads share.
"""

from __future__ import annotations

import numpy as np

from asset_svm.arrays import Array
from asset_svm.numerics.compiling import lent, njit
from asset_svm.threads.counter import take
from asset_svm.threads.team import together

ROWS = 1024
"""Rows that a thread takes at a time."""


def gathered(X: Array, rows: Array, threads: int) -> Array:
    """X[rows], of a dense X in order."""
    X = lent(X)
    out = np.empty((len(rows), X.shape[1]), dtype=X.dtype)
    together(lambda counter: _gather(counter, X, rows, out), min(threads, -(-len(rows) // ROWS) or 1))
    return out


@njit(cache=True, nogil=True)
def _gather(counter: Array, X: Array, rows: Array, out: Array) -> None:
    while True:
        start = ROWS * take(counter)
        if start >= len(rows):
            return
        for i in range(start, min(start + ROWS, len(rows))):
            out[i] = X[rows[i]]
