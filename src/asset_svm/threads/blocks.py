"""Functions of rows, by threads that take a block of them at a time.

What is computed of a row must not depend on those beside it (``numerics.row_products``): then neither
blocks nor threads change a bit of it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from asset_svm.arrays import Array, Matrix
from asset_svm.threads.team import side_by_side

BLOCK_ROWS = 512
"""Rows of a block where there are many."""
FEWEST_ROWS = 32
"""Blocks of fewer rows would copy landmarks more often than it pays."""
PIECES = 16
"""Blocks that few rows are cut into where each row is much work."""
MUCH = 1 << 26
"""Products of two numbers that take some milliseconds: starting threads takes about one."""


def map_in_blocks(
    function: Callable[[Matrix], Array],
    X: Matrix,
    width: int,
    dtype: npt.DTypeLike,
    *,
    reentrant: bool,
) -> Array:
    """Apply a block function to all rows of X, by threads where it may be and it is much work."""
    m = X.shape[0]
    rows = _rows_of_a_block(m, width * X.shape[1])
    out = np.empty((m, width), dtype=dtype)

    def fill(start: int) -> None:
        out[start : start + rows] = function(X[start : start + rows])

    if reentrant and m > rows:
        side_by_side(fill, range(0, m, rows))
    else:
        for start in range(0, m, rows):
            fill(start)
    return out


def _rows_of_a_block(m: int, work: Any) -> int:
    """As many as all blocks have, but for the last; ``work`` is that of a row."""
    if m >= PIECES * BLOCK_ROWS or m * work < MUCH:
        return BLOCK_ROWS
    return max(FEWEST_ROWS, min(BLOCK_ROWS, -(-m // PIECES)))
