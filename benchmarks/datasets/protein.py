"""Protein tertiary structure (UCI); regression."""

from __future__ import annotations

from typing import Any

import numpy as np

from datasets.base import DataSet
from datasets.files import RemoteFile, read_arrays

FILE = RemoteFile("uci_protein.npz")


def read() -> tuple[Any, np.ndarray]:
    """All 45 730 rows."""
    return read_arrays(FILE)


DATASET = DataSet("protein", read, regression=True)
