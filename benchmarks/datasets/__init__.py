"""The data sets of the benchmarks: one small file each, which defines ``DATASET``.

    X, y = load("ijcnn")                              all rows
    X, y, X_test, y_test = paper_split("ijcnn", 0)    a split of the paper's sizes

A new set is a new file in this folder; its name is that of the file.
"""

from __future__ import annotations

from functools import lru_cache
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

import numpy as np

from datasets.base import DataSet, Paper
from datasets.files import DataMissingError

__all__ = [
    "PAPER",
    "SETS",
    "DataMissingError",
    "DataSet",
    "Paper",
    "load",
    "paper_split",
    "standard_split",
]

_PARTS = {"base", "files", "deformation"}

SETS: dict[str, DataSet] = {
    module.name: import_module(f"datasets.{module.name}").DATASET
    for module in iter_modules(__path__)
    if module.name not in _PARTS
}
"""All sets, by name."""

PAPER: dict[str, Paper] = {name: part.paper for name, part in SETS.items() if part.paper is not None}
"""The paper's Table 2."""


@lru_cache(maxsize=1)
def load(name: str) -> tuple[Any, np.ndarray]:
    """All rows of a set, float32; binary sets with y in {-1, 1}."""
    return SETS[name].read()


@lru_cache(maxsize=1)
def paper_split(name: str, seed: int) -> tuple[Any, np.ndarray, Any, np.ndarray]:
    """A random split of all rows with the paper's sizes: X, y, X_test, y_test."""
    return SETS[name].split(*load(name), seed)


@lru_cache(maxsize=1)
def standard_split(name: str, seed: int) -> tuple[Any, np.ndarray, Any, np.ndarray]:
    """A random 4/5 to train and 1/5 to test, columns and y standardised on the former: regression."""
    X, y = load(name)
    order = np.random.default_rng(seed).permutation(len(y))
    train, test = order[: len(y) * 4 // 5], order[len(y) * 4 // 5 :]
    mean, spread = X[train].mean(axis=0), X[train].std(axis=0)
    X = ((X - mean) / np.maximum(spread, 1e-12)).astype(np.float32)
    y = (y - y[train].mean()) / y[train].std()
    return X[train], y[train], X[test], y[test]
