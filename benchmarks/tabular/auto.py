"""asset-svm without a knob: the race of both searches, columns as they came.

The race holds rows out by itself: it is given training and validation rows together, once, and its time
is all there is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from asset_svm import AssetClassifierCV, AssetRegressorCV, TableEncoder
from solvers.base import installed
from tabular.base import Predict, Rows, final


@dataclass(frozen=True)
class Race:
    """AssetClassifierCV or AssetRegressorCV with a time limit, or without, and nothing else."""

    seconds: float | None

    @property
    def name(self) -> str:
        """What tables call it."""
        return "asset-svm" if self.seconds is None else f"asset-svm, {self.seconds:g} s"

    def missing(self) -> str:
        """Nothing: it is ours."""
        return ""

    def version(self) -> str | None:
        """Ours."""
        return installed("asset-svm")

    def settings(self) -> dict[str, Any]:
        """The limit."""
        return dict(time_limit=self.seconds)

    def run(self, rows: Rows, say: Callable[[str], None]) -> dict[str, Any]:
        """One race on training and validation rows."""
        kind = AssetRegressorCV if rows.regression else AssetClassifierCV
        told: dict[str, Any] = {}

        def fit(X: Any, y: np.ndarray) -> Predict:
            encoder = TableEncoder(categorical=list(rows.categorical)) if rows.categorical else "auto"
            search = kind(
                time_limit=self.seconds, encoder=encoder, random_state=rows.seed, n_jobs=rows.threads
            )
            search.fit(X, y)
            told.update(
                chosen="; ".join(f"{weight:.2f} {name}" for name, weight in search.ensemble_),
                looks=len(search.cv_results_["params"]),
                search_seconds=search.search_time_,
                curve=best_so_far(search.leaderboard_, regression=rows.regression),
            )
            return search.predict

        result = final(rows, fit)
        say(f"chosen: {told['chosen']}")
        return result | told


def best_so_far(board: Any, *, regression: bool) -> list[tuple[float, float]]:
    """Seconds, and the loss on rows held out of the best candidate until then, where it changes.

    Of regressions the score is R2 of targets that have a spread of 1.
    """
    ordered = board.sort_values("at")
    score = ordered["score"].cummax()
    loss = np.sqrt(np.maximum(1.0 - score, 0.0)) if regression else 100.0 * (1.0 - score)
    changes = score.diff().fillna(1.0) > 0.0
    return [
        (round(float(at), 3), float(each))
        for at, each in zip(ordered["at"][changes], loss[changes], strict=True)
    ]


METHODS = (Race(60.0), Race(10.0), Race(30.0), Race(180.0))
