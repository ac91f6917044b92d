"""What signatures call arrays and matrices."""

import sys
from typing import Any

import numpy.typing as npt

Array = npt.NDArray[Any]
Matrix = Any
"""A dense two-dimensional array or a CSR matrix."""


def is_sparse(X: Any) -> bool:
    """Whether X is a sparse matrix, of which there are none before SciPy's are imported.

    Whoever predicts without SciPy (``runtime``) must not pay for the question.
    """
    sparse = sys.modules.get("scipy.sparse")
    return sparse is not None and bool(sparse.issparse(X))
