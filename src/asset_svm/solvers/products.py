"""Products with rows of which some are features v = lift(k) and others still basis values k.

f = v.coef = k.lower(coef); sum beta v = (sum over features) beta v + lift((sum over others) beta k).
"""

from __future__ import annotations

from typing import Any

import numpy.typing as npt
from numba import njit

from asset_svm.solvers.row_form import FAST, _add, _dot

Array = npt.NDArray[Any]


@njit(cache=True, nogil=True, fastmath=FAST)
def mixed_margins(
    rows: Array, positions: Array, lifted: Array, coef: Array, weights: Array, out: Array
) -> None:
    """out[k, i] = row.coef[k] where lifted[i], else row.weights[k], with row = rows[positions[i]]."""
    d, s = coef.shape[1], weights.shape[1]
    for i in range(positions.shape[0]):
        row = rows[positions[i]]
        for k in range(coef.shape[0]):
            out[k, i] = _dot(coef[k], row[:d]) if lifted[i] else _dot(weights[k], row[:s])


@njit(cache=True, nogil=True, fastmath=FAST)
def mixed_sums(
    rows: Array, positions: Array, lifted: Array, beta: Array, features: Array, basis: Array
) -> None:
    """Add beta[k, i] row to features[k] where lifted[i], else to basis[k]."""
    d, s = features.shape[1], basis.shape[1]
    for i in range(positions.shape[0]):
        row = rows[positions[i]]
        for k in range(beta.shape[0]):
            if beta[k, i] != 0.0:
                if lifted[i]:
                    _add(features[k], row[:d], beta[k, i])
                else:
                    _add(basis[k], row[:s], beta[k, i])
