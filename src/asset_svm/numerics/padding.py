"""Matrix products that round a row in one way, whatever rows stand beside it."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from asset_svm.arrays import Array

COLUMNS = 16


def padded_width(d: int) -> int:
    """The next multiple of 16 from d on."""
    return -(-d // COLUMNS) * COLUMNS


def padded_columns(matrix: Array, dtype: npt.DTypeLike) -> Array:
    """The matrix with zero columns up to a multiple of 16.

    Matrix products treat the last columns of other widths apart, and round them differently for
    different numbers and positions of rows: of a padded one, a row's product is always the same.
    """
    d = matrix.shape[1]
    out = np.zeros((matrix.shape[0], padded_width(d)), dtype=dtype)
    out[:, :d] = matrix
    return out
