"""Factors of the kernel matrix K_SS of landmarks, in float64."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import scipy.linalg as la

from asset_svm.arrays import Array
from asset_svm.numerics.compiling import njit
from asset_svm.threads.blas import few_threads
from asset_svm.threads.granted import granted

LONG = 1024
"""Rows up to which an eigendecomposition is a matter of a fifth of a second, for one thread."""
SPARE = 2
"""Threads that must be there for each that an eigendecomposition has."""
TILE = 64
"""Rows and columns of a piece of K_SS that the cache holds beside its mirror image."""
WIDE = 10.0
"""Times the relative threshold: what rounding in the type of the rows may cut beyond it."""


def default_threshold(dtype: npt.DTypeLike) -> float:
    """The relative eigenvalue below which rows of this type carry only noise.

    float32 rows: its machine precision. float64 rows: 1e-12, since the eigenvalues of K_SS are
    themselves known only to about s times the machine precision.
    """
    return float(np.finfo(np.float32).eps) if np.dtype(dtype) == np.float32 else 1e-12


@njit(cache=True, nogil=True)
def symmetrise(gram: Array) -> None:
    """Set K_SS to the mean of it and its transpose, tile by tile."""
    s = len(gram)
    for top in range(0, s, TILE):
        for left in range(0, top + 1, TILE):
            for i in range(top, min(top + TILE, s)):
                for j in range(left, min(left + TILE, i)):
                    mean = 0.5 * (gram[i, j] + gram[j, i])
                    gram[i, j] = mean
                    gram[j, i] = mean


def _norm(gram: Array) -> float:
    """The 1-norm of a symmetric matrix, without a copy of it."""
    return float(la.lapack.dlange("1", gram.T))


def inverse_cholesky(gram: Array, threshold: float) -> Array | None:
    """L^(-T) of gram = L L^T, or None unless gram's condition proves that nothing would be cut.

    1/cond_1 <= lambda_min / lambda_max for a symmetric matrix; LAPACK's estimate of cond_1 can be
    low by a small factor, hence the margin of 10.
    """
    with few_threads(len(gram)):
        factor, failed = la.lapack.dpotrf(gram.T, lower=1, clean=1)  # gram, as LAPACK wants columns
        if failed:
            return None
        norm = _norm(gram)
        reciprocal, failed = la.lapack.dpocon(factor, norm, uplo="L")
        if failed or reciprocal < 10.0 * threshold:
            return None
        inverse, failed = la.lapack.dtrtri(factor, lower=1)
    return None if failed else np.ascontiguousarray(inverse.T)


def centred_gram(
    gram: Array, centre: Array, dtype: npt.DTypeLike, threshold: float
) -> tuple[Array, float, bool]:
    """K_SS of kernel values less ``centre``, the noise of its eigenvalues, and ``KernelBasis.wide``."""
    size = _norm(gram)
    gram = gram - centre
    gram -= centre[:, None]
    gram += centre.mean()
    precision = 8.0 * float(np.finfo(np.float64).eps)
    left = _norm(gram)  # about its largest eigenvalue, as yet unknown
    wide = float(np.finfo(dtype).eps) * size > WIDE * threshold * left
    if not wide:
        precision = max(float(np.finfo(dtype).eps), precision)
    return gram, precision * size, wide


def descending_eigenpairs(gram: Array, *, overwrite: bool = False) -> tuple[Array, Array]:
    """The eigenvalues of K_SS, the largest first, and their eigenvectors as columns.

    Large ones have some threads where there are many: the one place where more threads round in other
    ways. Half of them, since those of LAPACK wait for each other by spinning, and stand still where
    another process has taken one's processor; twice as many gain a tenth.
    """
    driver = "evd" if len(gram) > 1 else "ev"  # scipy before 1.12 gives evd no room for one row
    threads = granted() // SPARE if len(gram) > LONG else 1
    with few_threads(len(gram), max(threads, 1)):
        values, vectors = la.eigh(gram.T, driver=driver, check_finite=False, overwrite_a=overwrite)
    return values[::-1], vectors[:, ::-1]
