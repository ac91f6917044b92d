"""xRFM: a tree of leaves, each kernel ridge regression with the average gradient outer product.

Its default, on the columns that ours have. It stops by held-out rows of its own: a fifth of what it is
given. Its leaves of 60 000 rows are meant for a card of 40 GB; a processor gets leaves of 10 000.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from solvers.base import installed
from tabular.base import Predict, Rows, final
from tabular.encoding import encoder


@dataclass(frozen=True)
class XRFM:
    """Dense rows only."""

    name: str = "xRFM"
    max_leaf_size: int = 10_000

    def missing(self) -> str:
        """A line where it is not installed."""
        return "" if self.version() else "pip install torch xrfm"

    def version(self) -> str | None:
        """Its own."""
        return installed("xrfm", "xRFM")

    def settings(self) -> dict[str, Any]:
        """The size of its leaves."""
        return dict(max_leaf_size=self.max_leaf_size)

    def run(self, rows: Rows, say: Callable[[str], None]) -> dict[str, Any]:
        """It chooses its rounds itself."""
        from xrfm import xRFM

        def fit(X: Any, y: np.ndarray) -> Predict:
            columns = encoder(rows).fit(X)
            X = columns.transform(X)
            classes, targets = (None, y) if rows.regression else np.unique(y, return_inverse=True)
            held = np.random.default_rng(rows.seed).random(len(y)) < 0.2
            model = xRFM(
                device="cpu", max_leaf_size=self.max_leaf_size, random_state=rows.seed,
                n_threads=rows.threads, verbose=False,
            )  # fmt: skip
            model.fit(X[~held], targets[~held], X[held], targets[held])

            def predict(X_held: Any) -> np.ndarray:
                found = np.ravel(model.predict(columns.transform(X_held)))
                return found if classes is None else classes[found.astype(int)]

            return predict

        return final(rows.dense_for(self.name), fit)


METHODS = (XRFM(),)
