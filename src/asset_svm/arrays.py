"""What signatures call arrays and matrices."""

from typing import Any

import numpy.typing as npt

Array = npt.NDArray[Any]
Matrix = Any
"""A dense two-dimensional array or a CSR matrix."""
