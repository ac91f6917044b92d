"""Products of few models with rows that lie scattered in a matrix: no copy of them is made."""

from __future__ import annotations

from typing import Any

import numpy.typing as npt

from asset_svm.numerics.compiling import njit
from asset_svm.solvers.row_form import FAST, add_row, dot_row

Array = npt.NDArray[Any]


@njit(cache=True, nogil=True, fastmath=FAST)
def scattered_margins(rows: Array, positions: Array, weights: Array, out: Array) -> None:
    """out[k, i] = rows[positions[i]].weights[k]."""
    width = weights.shape[1]
    for i in range(positions.shape[0]):
        row = rows[positions[i], :width]
        for k in range(weights.shape[0]):
            out[k, i] = dot_row(weights[k], row)


@njit(cache=True, nogil=True, fastmath=FAST)
def scattered_sums(rows: Array, positions: Array, beta: Array, out: Array) -> None:
    """out[k] += sum over i of beta[k, i] rows[positions[i]]."""
    width = out.shape[1]
    for i in range(positions.shape[0]):
        row = rows[positions[i], :width]
        for k in range(beta.shape[0]):
            if beta[k, i] != 0.0:
                add_row(out[k], row, beta[k, i])
