"""asset-svm by the staged search, without relevance, and with relevance where validation rows want it.

A relevance is learnt whatever gamma and C are, so that the search learns each once for one map and once
for cells, and tries settings on the mapped rows; the final model learns its own, inside its time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import scipy.sparse as sp

from asset_svm import AssetClassifier, AssetRegressor
from solvers.base import installed
from tabular import staged
from tabular.base import Predict, Rows, final, timed
from tabular.encoding import our_encoder, total_deviation, total_variance

FEW_ROWS = 15_000
"""Training rows of the first two stages; as many validation rows."""
MOST_COLUMNS = 1000
"""With more, a matrix of directions is larger than the rows it could be learnt from."""


class Trials:
    """Losses of candidates on validation rows; each is fitted once, whoever asks."""

    def __init__(self, rows: Rows):
        self.rows = rows
        columns = our_encoder(rows)
        self.X = columns.fit_transform(rows.X[rows.train], rows.y[rows.train])
        self.held = columns.transform(rows.X[rows.validation])
        self.scale = total_variance(self.X), total_deviation(self.X)
        self.losses: dict[tuple[staged.Candidate, int], tuple[float, float]] = {}
        self._relevances: dict[tuple[str, str, bool, int], np.ndarray] = {}
        self._mapped: tuple[Any, Any, Any] = (None, None, None)

    def ask(self, candidate: staged.Candidate, every: bool, say: Callable[[str], None]) -> float:
        """``staged.Ask``, with a line about it."""
        count = len(self.rows.train) if every else min(FEW_ROWS, len(self.rows.train))
        key = candidate, count
        if key not in self.losses:
            X, held = self._columns(candidate, count, say)
            train = self.rows.train[:count]
            chosen = self.rows.validation[: None if every else FEW_ROWS]
            model = estimator(
                self.rows, candidate.options(count, *self.scale, regression=self.regression)
            )
            seconds, _ = timed(lambda: model.fit(X[:count], self.rows.y[train]))
            loss = self.rows.loss(model.predict(held[: len(chosen)]), chosen)
            self.losses[key] = loss, seconds
        loss, seconds = self.losses[key]
        say(f"{candidate}, {count} rows: {loss:.4f} in {seconds:.1f} s")
        return loss

    @property
    def regression(self) -> bool:
        """What the rows say."""
        return self.rows.regression

    def _columns(
        self, candidate: staged.Candidate, count: int, say: Callable[[str], None]
    ) -> tuple[Any, Any]:
        """Training and validation rows, mapped by the candidate's relevance."""
        if candidate.relevance is None:
            return self.X, self.held
        key = candidate.kernel, candidate.relevance, candidate.cells, count
        if key not in self._relevances:
            # Rounds in cells are made for models of cells; what comes after them is as short as can be.
            options = candidate.shape.options(count, *self.scale, regression=self.regression)
            quick = options | dict(relevance=candidate.relevance)
            if not candidate.cells:
                quick |= dict(n_components=512, max_iter=3)
            model = estimator(self.rows, quick)
            seconds, _ = timed(lambda: model.fit(self.X[:count], self.rows.y[self.rows.train[:count]]))
            self._relevances[key] = model.relevance_
            family = "cells" if candidate.cells else "one map"
            title = f"{candidate.kernel}, {candidate.relevance}, {family}"
            say(f"{title}: learnt on {count} rows in {seconds:.1f} s")
        if self._mapped[0] != key:
            relevance = self._relevances[key]
            self._mapped = key, mapped(self.X, relevance), mapped(self.held, relevance)
        return self._mapped[1], self._mapped[2]


def mapped(X: Any, relevance: np.ndarray) -> Any:
    """The rows of weighted columns, or along weighted directions."""
    relevance = np.asarray(relevance, dtype=X.dtype)
    if relevance.ndim == 2:
        return X @ relevance.T
    return X.multiply(relevance).tocsr() if sp.issparse(X) else X * relevance


def estimator(rows: Rows, options: dict[str, Any]) -> AssetClassifier | AssetRegressor:
    """Ours, for these rows."""
    kind = AssetRegressor if rows.regression else AssetClassifier
    return kind(random_state=rows.seed, n_jobs=rows.threads, **options)


@lru_cache(maxsize=1)
def trials(rows: Rows) -> Trials:
    """Those of these rows, which both methods ask."""
    return Trials(rows)


@dataclass(frozen=True)
class Asset:
    """AssetClassifier or AssetRegressor."""

    name: str
    relevances: tuple[str | None, ...]

    def missing(self) -> str:
        """Nothing: it is ours."""
        return ""

    def version(self) -> str | None:
        """Ours."""
        return installed("asset-svm")

    def settings(self) -> dict[str, Any]:
        """The grid."""
        return dict(
            kernels=staged.KERNELS, relevances=self.relevances, few_rows=FEW_ROWS,
            factors=(staged.MAP_FACTORS, staged.CELL_FACTORS), costs=staged.COSTS,
            epsilons=staged.EPSILONS, half_steps=staged.HALF_STEPS, alike=staged.ALIKE,
            large_cell=staged.LARGE_CELL, larger_steps=staged.LARGER_STEPS,
        )  # fmt: skip

    def run(self, rows: Rows, say: Callable[[str], None]) -> dict[str, Any]:
        """The staged search, then the final model."""
        tried = self.shapes(rows, say)
        judged: dict[tuple[staged.Candidate, bool], float] = {}

        def ask(candidate: staged.Candidate, every: bool) -> float:
            judged[candidate, every] = trials(rows).ask(candidate, every, say)
            return judged[candidate, every]

        search_seconds, best = timed(
            lambda: staged.staged_search(
                tried, ask, n_rows=len(rows.learning), regression=rows.regression
            )
        )
        options = best.options(len(rows.learning), *trials(rows).scale, regression=rows.regression)
        if best.relevance is not None:
            options["relevance"] = best.relevance

        def fit(X: Any, y: np.ndarray) -> Predict:
            columns = our_encoder(rows)
            model = estimator(rows, options).fit(columns.fit_transform(X, y), y)
            return lambda held: model.predict(columns.transform(held))

        say(f"chosen: {best}")
        return final(rows, fit) | dict(
            validation=judged[best, True], search_seconds=search_seconds, chosen=str(best),
            options=options,
        )  # fmt: skip

    def shapes(self, rows: Rows, say: Callable[[str], None]) -> list[staged.Candidate]:
        """Those that the rows allow; says which are left out."""
        kernels, relevances, left_out = list(staged.KERNELS), list(self.relevances), {}
        if sp.issparse(rows.X):
            kernels.remove("laplacian")
            left_out['kernel="laplacian"'] = "it would make landmarks dense"
        if "directions" in relevances and rows.X.shape[1] > MOST_COLUMNS:
            relevances.remove("directions")
            left_out['relevance="directions"'] = f"more than {MOST_COLUMNS} columns"
        for what, why in left_out.items():
            say(f"left out: {what}, {why}")
        return staged.shapes(kernels, relevances)


WITHOUT = Asset("asset-svm", (None,))
WITH = Asset("asset-svm, relevance", staged.RELEVANCES)
METHODS = (WITHOUT, WITH)
