"""Letter (UCI), as LIBSVM publishes it: 26 classes."""

from __future__ import annotations

from typing import Any

import numpy as np

from datasets.base import DataSet
from datasets.files import libsvm_file, read_svmlight

FILES = [
    libsvm_file(
        "multiclass",
        "letter.scale.bz2",
        "ce2c7df15cc5742dc4382d59079181c97c21e0beaa0af53c84cc5745c69f1020",
    ),
    libsvm_file(
        "multiclass",
        "letter.scale.t.bz2",
        "07522ccbf54187fae6d560d1712b88c41ea1f7e8d19491c5adcc22ee37a075da",
    ),
]


def read() -> tuple[Any, np.ndarray]:
    """All 20 000 rows."""
    return read_svmlight(FILES, 16)


DATASET = DataSet("letter", read)
