"""Snap ML: a linear SVM on Fourier features, regularizer = 1/C, no bias; float32 rows."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from solvers.base import Fitted, Problem, installed, signs, timed


@dataclass(frozen=True)
class SnapML:
    """Its kernel SVM; classification of dense rows only."""

    name: str = "Snap ML"
    exact: bool = False

    def version(self) -> str | None:
        """Its own."""
        return installed("snapml", "Snap ML")

    def fit(self, problem: Problem, seed: int) -> Fitted:
        """Train."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it looks for the processor's features where they are not
            from snapml import SupportVectorMachine

        if problem.regression or sp.issparse(problem.X):
            raise NotImplementedError("Snap ML's kernel SVM classifies dense rows only.")
        model = SupportVectorMachine(
            kernel="rbf", gamma=problem.gamma, n_components=problem.s, regularizer=1.0 / problem.C,
            loss="hinge", fit_intercept=False, random_state=seed,
        )  # fmt: skip
        X, y = np.ascontiguousarray(problem.X, dtype=np.float32), signs(problem.y)
        seconds, _ = timed(lambda: model.fit(X, y))

        def decide(rows: np.ndarray) -> np.ndarray:
            rows = np.ascontiguousarray(rows, dtype=np.float32)
            return np.ravel(model.decision_function(rows)).astype(np.float64)

        return Fitted(seconds, decide, problem.s, squared_norm=float((model.coef_**2).sum()))


SOLVERS = (SnapML(),)
