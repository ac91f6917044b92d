"""Products of few models with rows that lie scattered in a matrix: no copy of them is made.

Those of the loops are in the type of the rows, the exact ones of certificates in float64: a dual value
divides the error of a sum by lam.
"""

from __future__ import annotations

from asset_svm.arrays import Array
from asset_svm.numerics.compiling import njit
from asset_svm.solvers.row_form import FAST, dot_row


@njit(cache=True, nogil=True, fastmath=FAST)
def scattered_margins(rows: Array, positions: Array, weights: Array, out: Array) -> None:
    """out[k, i] = rows[positions[i]].weights[k]."""
    width = weights.shape[1]
    for i in range(positions.shape[0]):
        row = rows[positions[i], :width]
        for k in range(weights.shape[0]):
            out[k, i] = dot_row(weights[k], row)


@njit(cache=True, nogil=True, fastmath=FAST)
def exact_margins(rows: Array, positions: Array, weights: Array, out: Array) -> None:
    """out[k, i] = rows[positions[i]].weights[k], in float64."""
    for i in range(positions.shape[0]):
        row = rows[positions[i]]
        for k in range(weights.shape[0]):
            total = 0.0
            for q in range(weights.shape[1]):
                total += row[q] * weights[k, q]
            out[k, i] = total


@njit(cache=True, nogil=True, fastmath=FAST)
def exact_sums(rows: Array, positions: Array, beta: Array, out: Array) -> None:
    """out[sign, k] += sum of beta[k, i] rows[positions[i]] over beta[k, i] of this sign, in float64.

    out[0] is that of negative ones, out[1] of positive ones: one pass over the rows.
    """
    for i in range(positions.shape[0]):
        row = rows[positions[i]]
        for k in range(beta.shape[0]):
            factor = beta[k, i]
            if factor != 0.0:
                total = out[1 if factor > 0.0 else 0, k]
                for q in range(total.shape[0]):
                    total[q] += factor * row[q]
