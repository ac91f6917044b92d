"""What a data set is, and the paper's Table 2."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Paper:
    """A line of the paper's Table 2: sizes of the split, features and their density, lam and sigma."""

    train: int
    validation: int
    test: int
    features: int
    density: float
    lam: float
    sigma: float


@dataclass(frozen=True)
class DataSet:
    """A data set.

    Parameters
    ----------
    title : str
        As the paper spells it.
    read : function
        All rows: X (float32, dense or CSR) and y.
    paper : Paper, optional
        Its line of Table 2.
    note : str
        In what it differs from the paper's; shown beside every number.
    sizes : (train, test), optional
        Where the rows at hand are not those of the paper.
    """

    title: str
    read: Callable[[], tuple[Any, np.ndarray]]
    paper: Paper | None = None
    note: str = ""
    sizes: tuple[int, int] | None = None

    def split(self, X: Any, y: np.ndarray, seed: int) -> tuple[Any, np.ndarray, Any, np.ndarray]:
        """A random split: X, y, X_test, y_test."""
        if self.sizes is not None:
            train_size, test_size = self.sizes
        elif self.paper is not None:
            train_size, test_size = self.paper.train, self.paper.test
        else:
            raise ValueError(f"{self.title} is not among the paper's sets, and has no split of it.")
        order = np.random.default_rng(seed).permutation(len(y))
        train, test = order[:train_size], order[-test_size:]
        return X[train], y[train], X[test], y[test]
