"""MNIST: the digits 0-4 against 5-9, pixels in [0, 1]."""

from __future__ import annotations

from typing import Any

import numpy as np

from datasets.base import DataSet, Paper
from datasets.files import RemoteFile

_HOST = "https://ossci-datasets.s3.amazonaws.com/mnist/"
_SUMS = {
    "train-images-idx3-ubyte.gz": "md5:f68b3c2dcbeaaa9fbdd348bbdeb94873",
    "train-labels-idx1-ubyte.gz": "md5:d53e105ee54ea40749a09fcbcd1e9432",
    "t10k-images-idx3-ubyte.gz": "md5:9fb629c4189551a2d022fa330f9573f3",
    "t10k-labels-idx1-ubyte.gz": "md5:ec29112dd5afa0611ce80d1b7f02629c",
}
FILES = {name: RemoteFile(name, _HOST + name, checksum) for name, checksum in _SUMS.items()}


def digits(part: str) -> tuple[np.ndarray, np.ndarray]:
    """Images of shape (m, 28, 28), uint8, and digits, of the part "train" or "t10k"."""
    with FILES[f"{part}-images-idx3-ubyte.gz"].open() as stream:
        images = np.frombuffer(stream.read(), np.uint8, offset=16).reshape(-1, 28, 28)
    with FILES[f"{part}-labels-idx1-ubyte.gz"].open() as stream:
        return images, np.frombuffer(stream.read(), np.uint8, offset=8)


def low_or_high(labels: np.ndarray) -> np.ndarray:
    """1 for the digits 0-4, -1 for 5-9."""
    return np.where(labels < 5, 1, -1)


def read() -> tuple[Any, np.ndarray]:
    """All 70 000 rows."""
    parts = [digits("train"), digits("t10k")]
    X = np.vstack([images.reshape(-1, 784) for images, _ in parts]).astype(np.float32) / 255
    return X, low_or_high(np.concatenate([labels for _, labels in parts]))


DATASET = DataSet("MNIST", read, Paper(58100, 5950, 5950, 784, 19.1, 1.72e-7, 0.01))
