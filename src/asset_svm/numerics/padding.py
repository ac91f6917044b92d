"""Matrices as ``row_products`` takes them: their columns are a multiple of 16."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from asset_svm.arrays import Array

COLUMNS = 16


def padded_width(d: int) -> int:
    """The next multiple of 16 from d on."""
    return -(-d // COLUMNS) * COLUMNS


def padded_columns(matrix: Array, dtype: npt.DTypeLike) -> Array:
    """The matrix with zero columns up to a multiple of 16."""
    d = matrix.shape[1]
    out = np.zeros((matrix.shape[0], padded_width(d)), dtype=dtype)
    out[:, :d] = matrix
    return out
