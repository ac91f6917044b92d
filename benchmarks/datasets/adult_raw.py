"""ADULT as UCI publishes it: 6 numbers and 8 categories, with gaps; its training file only."""

from __future__ import annotations

from typing import Any

import numpy as np

from datasets.base import DataSet
from datasets.files import RemoteFile, read_table

FILE = RemoteFile("adult.csv.gz")
CATEGORICAL = (1, 3, 5, 6, 7, 8, 9, 13)


def read() -> tuple[Any, np.ndarray]:
    """All 32 561 rows; 1 is an income above 50 000 dollars."""
    X, income = read_table(FILE, "class", CATEGORICAL, gap="?")
    return X, np.where(income == ">50K", 1, -1)


DATASET = DataSet("ADULT, raw columns", read, categorical=CATEGORICAL)
