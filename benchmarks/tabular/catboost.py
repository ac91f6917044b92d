"""CatBoost, its default (1000 trees); categories as its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from solvers.base import installed
from tabular.base import Predict, Rows, final


@dataclass(frozen=True)
class CatBoost:
    """CatBoostClassifier or CatBoostRegressor."""

    name: str = "CatBoost"

    def missing(self) -> str:
        """A line where it is not installed."""
        return "" if self.version() else "pip install catboost"

    def version(self) -> str | None:
        """Its own."""
        return installed("catboost", "CatBoost")

    def settings(self) -> dict[str, Any]:
        """None."""
        return {}

    def run(self, rows: Rows, say: Callable[[str], None]) -> dict[str, Any]:
        """Nothing to choose."""
        from catboost import CatBoostClassifier, CatBoostRegressor

        kind = CatBoostRegressor if rows.regression else CatBoostClassifier
        options = dict(
            thread_count=rows.threads, random_seed=rows.seed, verbose=False, allow_writing_files=False
        )

        def fit(X: Any, y: np.ndarray) -> Predict:
            model = kind(**options).fit(self._words(X, rows), y, cat_features=list(rows.categorical))
            return lambda held: model.predict(self._words(held, rows))

        return final(rows, fit)

    def _words(self, X: Any, rows: Rows) -> Any:
        """It takes no category that is a float."""
        if not rows.categorical:
            return X
        words = X.astype(object)
        words[:, rows.categorical] = X[:, rows.categorical].astype(str)
        return words


METHODS = (CatBoost(),)
