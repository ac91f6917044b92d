"""The rows of a search, in single precision where that tells them apart as well."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from asset_svm.arrays import Matrix
from asset_svm.backends.device import on_card

KEPT = 1e-4
"""Rounding may take such a part of a column's spread: kernel values hardly change."""
LARGEST = 1e18
"""Squares of larger values are not finite in single precision."""


def in_single(X: Matrix) -> Matrix:
    """X in float32, which halves the work; as it is where a column would lose its differences."""
    if on_card(X) or X.dtype == np.float32:
        return X
    if sp.issparse(X):  # zeros are exact, and the values stand apart from them
        return X.astype(np.float32) if abs(X).max() < LARGEST else X
    size = np.abs(X).max(axis=0)
    if size.max() >= LARGEST:
        return X
    spread = X.std(axis=0)
    lost = np.finfo(np.float32).eps * size
    return X.astype(np.float32) if (lost <= KEPT * spread)[spread > 0.0].all() else X
