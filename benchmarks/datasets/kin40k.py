"""kin40k: forward kinematics of a robot arm; regression."""

from __future__ import annotations

from typing import Any

import numpy as np

from datasets.base import DataSet
from datasets.files import RemoteFile, read_arrays

FILE = RemoteFile("uci_kin40k.npz")


def read() -> tuple[Any, np.ndarray]:
    """All 40 000 rows."""
    return read_arrays(FILE)


DATASET = DataSet("kin40k", read, regression=True)
