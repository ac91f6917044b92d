"""MNIST-E: elastically deformed digits, made when they are asked for; any number, never stored.

    for X, y in stream(1_000_000): ...        blocks of at most 1000 rows, in constant memory
    X, y = rows(50_000)

Block k is a function of (seed, part, k) alone: a longer stream begins with the shorter one, and every
run of every algorithm sees the same rows in the same order. Originals are the 60 000 training digits
of MNIST, for the part "train" as well as for "test", as in the paper, whose split was one of deformed
digits; test digits are deformations of their own.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import Any

import numpy as np
from joblib import cpu_count

from datasets.base import DataSet, Paper
from datasets.deformation import deform
from datasets.mnist import digits, low_or_high

BLOCK = 1000
PARTS = {"train": 0, "validation": 1, "test": 2}


@lru_cache(maxsize=1)
def _originals() -> tuple[np.ndarray, np.ndarray]:
    images, labels = digits("train")
    return images.astype(np.float32) / 255, low_or_high(labels)


def stream(count: int, part: str = "train", seed: int = 0) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Blocks of rows (X, y), ``count`` rows in all."""
    for number in range(-(-count // BLOCK)):
        X, y = _block(number, part, seed)
        size = min(BLOCK, count - number * BLOCK)
        yield X[:size], y[:size]


def _block(number: int, part: str, seed: int) -> tuple[np.ndarray, np.ndarray]:
    images, labels = _originals()
    rng = np.random.default_rng([seed, PARTS[part], number])
    chosen = rng.integers(len(labels), size=BLOCK)
    return deform(images[chosen], rng).reshape(BLOCK, -1), labels[chosen]


def rows(count: int, part: str = "train", seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """The same in memory, made by all cores."""
    X, y = np.empty((count, 784), dtype=np.float32), np.empty(count, dtype=np.int64)

    def fill(number: int) -> None:
        place = slice(number * BLOCK, min((number + 1) * BLOCK, count))
        size = place.stop - place.start
        block, labels = _block(number, part, seed)
        X[place], y[place] = block[:size], labels[:size]

    _originals()  # read once, before threads ask for them
    with ThreadPoolExecutor(cpu_count()) as pool:
        list(pool.map(fill, range(-(-count // BLOCK))))
    return X, y


def read() -> tuple[Any, np.ndarray]:
    """The first 100 000 rows; ``rows`` and ``stream`` have more."""
    return rows(100_000)


DATASET = DataSet(
    "MNIST-E",
    read,
    Paper(1_000_000, 20_000, 20_000, 784, 25.6, 1.00e-8, 0.01),
    note="deformed here, by about 0.8 pixels; the paper's own deformed digits were others",
    sizes=(80_000, 20_000),
)
