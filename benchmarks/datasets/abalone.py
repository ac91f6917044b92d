"""Abalone (UCI): the age of a shell, scaled by LIBSVM; regression."""

from __future__ import annotations

from typing import Any

import numpy as np

from datasets.base import DataSet
from datasets.files import DataMissingError, RemoteFile, libsvm_file, read_svmlight

COMPRESSED = RemoteFile("abalone_scale.bz2")
PLAIN = libsvm_file(
    "regression", "abalone_scale", "7f1f6ca7f636e684949fc3f6388fc4f7503083717f776876bbdd11098fc5378b"
)


def read() -> tuple[Any, np.ndarray]:
    """All 4 177 rows."""
    try:
        COMPRESSED.path()
    except DataMissingError:
        return read_svmlight([PLAIN], 8)
    return read_svmlight([COMPRESSED], 8)


DATASET = DataSet("abalone", read, regression=True)
