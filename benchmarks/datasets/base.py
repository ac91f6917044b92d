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
    regression : bool
        Whether y is real.
    categorical : tuple of int
        Columns of X that hold the numbers of categories, and NaN for gaps.
    """

    title: str
    read: Callable[[], tuple[Any, np.ndarray]]
    paper: Paper | None = None
    note: str = ""
    sizes: tuple[int, int] | None = None
    regression: bool = False
    categorical: tuple[int, ...] = ()

    def split(self, X: Any, y: np.ndarray, seed: int) -> tuple[Any, np.ndarray, Any, np.ndarray]:
        """A random split: X, y, X_test, y_test."""
        if self.sizes is None and self.paper is None:
            raise ValueError(f"{self.title} is not among the paper's sets, and has no split of it.")
        train, _, test = self.parts(len(y), seed)
        return X[train], y[train], X[test], y[test]

    def parts(self, count: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Rows to train, validate and test, at random; 60, 20 and 20 % where no sizes are known."""
        if self.sizes is not None:
            train_size, test_size = self.sizes
        elif self.paper is not None:
            train_size, test_size = self.paper.train, self.paper.test
        else:
            train_size, test_size = count * 3 // 5, count // 5
        order = np.random.default_rng(seed).permutation(count)
        return order[:train_size], order[train_size:-test_size], order[-test_size:]
