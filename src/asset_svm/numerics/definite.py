"""Whether a symmetric matrix is positive semi-definite, as far as its rounding tells."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.linalg as la

SLACK = 1e-12
"""The rounding of a kernel value in float64: functions of the user's own may round more than once."""


def is_semidefinite(K: npt.NDArray[Any], *, centred: bool) -> bool:
    """Whether z^T K z >= 0 for every z, or, ``centred``, for every z whose sum is 0.

    The latter is what counts beside a free intercept: kernels that are only conditionally positive
    definite, such as -|x - z|^2, make SVMs there. A Cholesky factor ends where it meets what is
    negative.
    """
    matrix = 0.5 * (K + K.T).astype(np.float64)
    precision = max(float(np.finfo(K.dtype).eps), SLACK)
    rounding = len(K) * precision * float(np.abs(K).max(initial=0.0))
    if centred:
        matrix -= matrix.mean(axis=0)
        matrix -= matrix.mean(axis=1, keepdims=True)
    matrix[np.diag_indices(len(K))] += rounding + np.finfo(np.float64).tiny
    return not la.lapack.dpotrf(matrix, lower=1, overwrite_a=1)[1]
