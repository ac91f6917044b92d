"""LightGBM: its default, and more and larger trees at a smaller rate; categories as its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from solvers.base import installed
from tabular.base import Predict, Rows, final, hidden, validated


@dataclass(frozen=True)
class LightGBM:
    """LGBMClassifier or LGBMRegressor."""

    name: str
    options: dict[str, Any] = field(default_factory=dict)

    def missing(self) -> str:
        """A line where it is not installed."""
        return "" if self.version() else "pip install lightgbm"

    def version(self) -> str | None:
        """Its own."""
        return installed("lightgbm", "LightGBM")

    def settings(self) -> dict[str, Any]:
        """Its options."""
        return self.options

    def run(self, rows: Rows, say: Callable[[str], None]) -> dict[str, Any]:
        """The validation loss is what the better of two is chosen by."""
        from lightgbm import LGBMClassifier, LGBMRegressor

        kind = LGBMRegressor if rows.regression else LGBMClassifier

        def fit(X: Any, y: np.ndarray) -> Predict:
            model = kind(n_jobs=rows.threads, random_state=rows.seed, verbose=-1, **self.options)
            return model.fit(X, y, categorical_feature=list(rows.categorical) or "auto").predict

        loss, seconds = validated(hidden(rows), fit)
        say(f"validation {loss:.4f} in {seconds:.1f} s")
        return final(rows, fit) | dict(validation=loss, search_seconds=seconds)


DEFAULT = LightGBM("LightGBM, 100 trees")
LARGE = LightGBM("LightGBM, 500 trees", dict(n_estimators=500, num_leaves=127, learning_rate=0.05))
METHODS = (DEFAULT, LARGE)
