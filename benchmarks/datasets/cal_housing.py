"""California housing: the value of houses; regression."""

from __future__ import annotations

from typing import Any

import numpy as np

from datasets.base import DataSet
from datasets.files import RemoteFile, read_arrays

FILE = RemoteFile("cal_housing.npz")


def read() -> tuple[Any, np.ndarray]:
    """All 20 640 rows."""
    return read_arrays(FILE)


DATASET = DataSet("cal_housing", read, regression=True)
