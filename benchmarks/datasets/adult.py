"""ADULT (UCI): does a person earn more than 50 000 dollars; embedded in the library."""

from __future__ import annotations

from typing import Any

import numpy as np

from asset_svm import load_adult
from datasets.base import DataSet, Paper


def read() -> tuple[Any, np.ndarray]:
    """All 48 842 rows."""
    X, y, _ = load_adult()
    return X.toarray(), y


DATASET = DataSet("ADULT", read, Paper(32561, 8140, 8141, 123, 11.2, 3.07e-8, 0.001))
