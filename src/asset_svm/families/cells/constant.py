"""A cell that decides the same for every row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True, eq=False)
class Constant:
    """The same decisions everywhere in a cell; a few of its rows, for ``partial_fit`` to go on from."""

    values: np.ndarray
    X: Any = None
    y: np.ndarray | None = None

    def __call__(self, X: Any) -> np.ndarray:
        """Return the (rows, K) decisions."""
        return np.tile(np.asarray(self.values, dtype=np.float64), (X.shape[0], 1))

    def gradients(self, X: Any) -> np.ndarray:
        """Return the (rows, K, n) gradients, which are 0."""
        return np.zeros((X.shape[0], len(self.values), X.shape[1]))
