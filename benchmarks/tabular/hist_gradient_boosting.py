"""scikit-learn's gradient boosting on histograms, its default; categories as its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

from solvers.base import installed
from tabular.base import Predict, Rows, final


@dataclass(frozen=True)
class HistGradientBoosting:
    """HistGradientBoostingClassifier or HistGradientBoostingRegressor; threads are OpenMP's."""

    name: str = "HistGradientBoosting"

    def missing(self) -> str:
        """Never."""
        return ""

    def version(self) -> str | None:
        """scikit-learn's."""
        return installed("scikit-learn")

    def settings(self) -> dict[str, Any]:
        """None."""
        return {}

    def run(self, rows: Rows, say: Callable[[str], None]) -> dict[str, Any]:
        """Nothing to choose."""
        kind = HistGradientBoostingRegressor if rows.regression else HistGradientBoostingClassifier

        def fit(X: Any, y: np.ndarray) -> Predict:
            categorical = list(rows.categorical) or None
            return kind(categorical_features=categorical, random_state=rows.seed).fit(X, y).predict

        return final(rows.dense_for(self.name), fit)


METHODS = (HistGradientBoosting(),)
