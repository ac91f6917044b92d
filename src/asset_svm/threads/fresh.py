"""Memory for large arrays, which all threads bring in.

What a large array lies in is given by the system when it is first written to, a page at a time, by
whoever writes: one thread gets some 0.8 GB a second. Threads that each write to pages of their own get
it side by side, before rows that lie anywhere are put there one by one.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from asset_svm.arrays import Array
from asset_svm.numerics.compiling import njit
from asset_svm.threads.counter import take
from asset_svm.threads.granted import granted
from asset_svm.threads.team import together

LARGE = 1 << 27
"""Bytes from which on threads are called for."""
PIECE = 1 << 24
PAGE = 4096


def new_matrix(shape: tuple[int, int], dtype: npt.DTypeLike) -> Array:
    """A matrix whose numbers are not set yet, but whose memory is there if it is large."""
    matrix = np.empty(shape, dtype=dtype)
    if matrix.nbytes >= LARGE and granted() > 1:
        flat = matrix.reshape(-1).view(np.uint8)
        together(lambda counter: _write(counter, flat))
    return matrix


@njit(cache=True, nogil=True)
def _write(counter: Array, memory: Array) -> None:
    """Write to a byte of every page of the pieces that this thread takes."""
    while True:
        first = take(counter) * PIECE
        if first >= memory.shape[0]:
            break
        for place in range(first, min(first + PIECE, memory.shape[0]), PAGE):
            memory[place] = 0
