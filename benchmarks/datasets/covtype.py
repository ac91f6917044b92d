"""Covertype (UCI): type 1 against the rest, columns in [0, 1]."""

from __future__ import annotations

from typing import Any

import numpy as np

from datasets.base import DataSet, Paper
from datasets.files import DataMissingError, RemoteFile

ARRAYS = RemoteFile("covtype.npz")
TEXT = RemoteFile(
    "covtype.data.gz",
    "https://ndownloader.figshare.com/files/5976039",
    "sha256:614360d0257557dd1792834a85a1cdebfadc3c4f30b011d56afee7ffb5b15771",
)


def types() -> tuple[Any, np.ndarray]:
    """All 581 012 rows as published, y in 1..7; from arrays where they are at hand, else UCI's text."""
    try:
        with np.load(ARRAYS.path()) as arrays:
            return arrays["X"].astype(np.float32), arrays["y"].astype(np.int64)
    except DataMissingError:
        with TEXT.open() as stream:
            table = np.loadtxt(stream, dtype=np.float32, delimiter=",")
        return table[:, :-1], table[:, -1].astype(np.int64)


def read() -> tuple[Any, np.ndarray]:
    """All rows, type 1 against the rest."""
    X, y = types()
    low, high = X.min(axis=0), X.max(axis=0)
    return (X - low) / np.maximum(high - low, 1e-12), np.where(y == 1, 1, -1)


DATASET = DataSet("COVTYPE", read, Paper(464809, 58102, 58101, 54, 21.7, 7.17e-7, 1.0))
