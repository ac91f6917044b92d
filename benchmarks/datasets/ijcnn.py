"""IJCNN 2001 challenge, as LIBSVM publishes it."""

from __future__ import annotations

from typing import Any

import numpy as np

from datasets.base import DataSet, Paper
from datasets.files import libsvm_file, read_svmlight

FILES = [
    libsvm_file(
        "binary", "ijcnn1.bz2", "7fe291672c3fefe6a7e3c51529becd23f0e985ba05ffb8d53c9c648c1e91cc19"
    ),
    libsvm_file(
        "binary", "ijcnn1.t.bz2", "e7b0bbd518641980dc322746c6bc59d019d3153934e6258e48f9d8cfae2c4bb8"
    ),
]


def read() -> tuple[Any, np.ndarray]:
    """All 141 691 rows."""
    return read_svmlight(FILES, 22)


DATASET = DataSet("IJCNN", read, Paper(113352, 14170, 14169, 22, 56.5, 8.82e-8, 1.0))
