"""Kernels that are no inner products: a model of one is no SVM, and of little use."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from asset_svm.exceptions import warn_caller
from asset_svm.features import NystroemFeatures

LANDMARKS = 500
"""The number of landmarks of a map whose kernel matrix is looked at."""
NEGATIVE = 0.01
"""A part of the largest eigenvalue: one below minus that is no rounding."""


def warn_that_indefinite(seen: str, also: str = "") -> None:
    """Warn of a kernel matrix that is not positive semi-definite, as is ``seen`` from something."""
    warn_caller(
        f"{seen}, as no positive semi-definite kernel matrix does; choose another kernel, gamma or "
        f"coef0{also}.",
        ConvergenceWarning,
    )


def warn_of_indefinite(phi: Any) -> None:
    """Warn where a map leaves out negative eigenvalues of the kernel that matter."""
    if not isinstance(phi, NystroemFeatures) or phi.kernel.positive_definite:
        return
    some = phi.components[:LANDMARKS]
    K = np.asarray(phi.kernel(some, some), dtype=np.float64)
    if phi.centre is not None:  # beside a free intercept only differences of rows count
        K = K - K.mean(axis=0) - K.mean(axis=1)[:, None] + K.mean()
    values = np.linalg.eigvalsh(0.5 * (K + K.T))
    if values[0] < -NEGATIVE * max(values[-1], 0.0):
        share = -values[0] / max(values[-1], -values[0])
        warn_that_indefinite(
            "The kernel matrix of the landmarks has negative eigenvalues, the lowest "
            f"{share:.2g} times the largest in size"
        )
