"""Whether the windows of a file are alike: rows sorted by target are learnt a class at a time.

The correlation ratio of targets and windows, from sums over windows: how much of the variance of the
targets (of the indicators of their classes) lies between windows. 0 for rows in a random order, but for
about one over the rows of a window, and 1 where every window has one target.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from asset_svm.arrays import Array

SORTED = 0.1
"""Rows count as sorted where the ratio is larger."""


@dataclass(eq=False)
class Mixing:
    """Sums of the encoded targets of each model, over all rows and by windows."""

    n_rows: float = 0.0
    sums: Array | float = 0.0
    squares: Array | float = 0.0
    between: Array | float = field(default=0.0)
    """The sum of n mean^2 over windows."""

    def add(self, y: Array) -> None:
        """Take a window into account."""
        total = y.sum(axis=1)
        self.n_rows += y.shape[1]
        self.sums = self.sums + total
        self.squares = self.squares + np.einsum("kn,kn->k", y, y)
        self.between = self.between + total**2 / y.shape[1]

    @property
    def ratio(self) -> float:
        """The part of the variance that lies between windows."""
        mean_square = np.asarray(self.sums) ** 2 / max(self.n_rows, 1.0)
        whole = float(np.sum(self.squares - mean_square))
        return float(np.sum(self.between - mean_square)) / whole if whole > 0.0 else 0.0
