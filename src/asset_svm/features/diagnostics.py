"""How far phi(x).phi(z) is from k(x, z), on a sample of rows."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from asset_svm.arrays import Array, Matrix


def trace_error(phi: Callable[[Matrix], Array], squares: Callable[[Matrix], Array], X: Matrix) -> float:
    """sum_i (k(x_i, x_i) - |phi(x_i)|^2) / sum_i k(x_i, x_i), ``squares`` a function to k(x, x).

    Of a Nystroem map: between 0 (the kernel itself) and 1 (nothing of it), and an upper bound of the
    relative error of the kernel matrix in any norm of its eigenvalues. Of Fourier features it says
    nothing, they have |phi(x)|^2 = k(x, x) in the mean.
    """
    V = phi(X).astype(np.float64)
    trace = float(squares(X).sum())
    if trace <= 0.0:  # an indefinite kernel, or all zero
        return 0.0 if not V.any() else float("nan")
    return 1.0 - float(np.einsum("ij,ij->", V, V)) / trace
