"""scikit-learn's SVC and SVR (LIBSVM): exact, C as it is, always with a bias."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.svm import SVC, SVR

from solvers.base import Fitted, Problem, installed, timed


@dataclass(frozen=True)
class ScikitLearn:
    """SVC or SVR, by the problem."""

    name: str = "SVC / SVR"
    tol: float = 1e-3
    exact: bool = True

    def version(self) -> str | None:
        """scikit-learn's."""
        return installed("scikit-learn")

    def classes(self) -> tuple[Any, Any]:
        """The two estimators."""
        return SVC, SVR

    def fit(self, problem: Problem, seed: int) -> Fitted:
        """Train; the seed changes nothing."""
        classifier, regressor = self.classes()
        options = dict(C=problem.C, gamma=problem.gamma, tol=self.tol, cache_size=1000)
        if problem.regression:
            model = regressor(**options, epsilon=problem.epsilon)
        else:
            model = classifier(**options)
        seconds, _ = timed(lambda: model.fit(problem.X, problem.y))
        decide = model.predict if problem.regression else model.decision_function
        vectors = len(np.asarray(model.support_))
        return Fitted(seconds, decide, vectors, float(np.ravel(model.intercept_)[0]))


SOLVERS = (ScikitLearn(),)
