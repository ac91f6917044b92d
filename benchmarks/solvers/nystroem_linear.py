"""Nystroem features and LIBLINEAR: exact on (PL), C as it is, no bias."""

from __future__ import annotations

from dataclasses import dataclass

from sklearn.kernel_approximation import Nystroem
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC, LinearSVR

from solvers.base import Fitted, Problem, installed, timed


@dataclass(frozen=True)
class NystroemLinear:
    """A pipeline of scikit-learn."""

    name: str = "Nystroem + LinearSVC / SVR"
    tol: float = 1e-4
    max_iter: int = 1000
    exact: bool = False

    def version(self) -> str | None:
        """scikit-learn's."""
        return installed("scikit-learn")

    def fit(self, problem: Problem, seed: int) -> Fitted:
        """Train."""
        features = Nystroem(gamma=problem.gamma, n_components=problem.s, random_state=seed)
        options = dict(C=problem.C, tol=self.tol, max_iter=self.max_iter, random_state=seed)
        if problem.regression:
            last = LinearSVR(epsilon=problem.epsilon, fit_intercept=False, **options)
        else:
            last = LinearSVC(loss="hinge", fit_intercept=False, **options)
        model = make_pipeline(features, last)
        seconds, _ = timed(lambda: model.fit(problem.X, problem.y))
        decide = model.predict if problem.regression else model.decision_function
        return Fitted(seconds, decide, problem.s)


SOLVERS = (NystroemLinear(),)
