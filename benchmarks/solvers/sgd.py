"""What people glue together today: a feature map of scikit-learn and its averaged SGD.

alpha = lam, no bias; the classifier's schedule of steps for regression too, whose own default leaves
R2 far below.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sklearn.kernel_approximation import Nystroem, RBFSampler
from sklearn.linear_model import SGDClassifier, SGDRegressor
from sklearn.pipeline import make_pipeline

from solvers.base import Fitted, Problem, installed, timed


@dataclass(frozen=True)
class FeaturesSGD:
    """A pipeline of scikit-learn; ``features`` is one of its kernel approximations."""

    name: str
    features: Any
    epochs: int = 20
    exact: bool = False

    def version(self) -> str | None:
        """scikit-learn's."""
        return installed("scikit-learn")

    def fit(self, problem: Problem, seed: int) -> Fitted:
        """Train."""
        features = self.features(gamma=problem.gamma, n_components=problem.s, random_state=seed)
        options = dict(
            alpha=problem.lam, max_iter=self.epochs, tol=None, average=True, fit_intercept=False,
            learning_rate="optimal", random_state=seed,
        )  # fmt: skip
        if problem.regression:
            loss = "epsilon_insensitive"
            last = SGDRegressor(loss=loss, epsilon=problem.epsilon, **options)
        else:
            last = SGDClassifier(loss="hinge", **options)
        model = make_pipeline(features, last)
        seconds, _ = timed(lambda: model.fit(problem.X, problem.y))
        decide = model.predict if problem.regression else model.decision_function
        return Fitted(seconds, decide, problem.s, squared_norm=float((last.coef_**2).sum()))


SOLVERS = (
    FeaturesSGD("Nystroem + SGD", Nystroem),
    FeaturesSGD("RBFSampler + SGD", RBFSampler),
)
