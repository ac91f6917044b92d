"""Diamonds (ggplot2): the logarithm of their price, by 6 numbers and 3 categories; regression."""

from __future__ import annotations

from typing import Any

import numpy as np

from datasets.base import DataSet
from datasets.files import RemoteFile, read_table

FILE = RemoteFile("diamonds.csv.gz")
CATEGORICAL = (1, 2, 3)


def read() -> tuple[Any, np.ndarray]:
    """All 53 940 rows."""
    X, price = read_table(FILE, "price", CATEGORICAL)
    return X, np.log(price.astype(np.float64))


DATASET = DataSet("diamonds", read, regression=True, categorical=CATEGORICAL)
