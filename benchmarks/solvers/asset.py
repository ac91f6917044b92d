"""asset-svm: the paper's four algorithms, and its own default, steps in the metric of the data."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from asset_svm import AssetClassifier, AssetRegressor
from solvers.base import Fitted, Problem, installed, timed


@dataclass(frozen=True)
class Asset:
    """An algorithm of the library; without intercept, the average of the last half of the iterates."""

    name: str
    options: dict[str, Any] = field(default_factory=dict)
    epochs: int = 30
    exact: bool = False

    def version(self) -> str | None:
        """Ours."""
        return installed("asset-svm")

    def estimator(self, problem: Problem, seed: int) -> AssetClassifier | AssetRegressor:
        """The unfitted model."""
        options = dict(
            gamma=problem.gamma, lam=problem.lam, n_components=problem.s, fit_intercept=False,
            max_iter=self.epochs, random_state=seed,
        )  # fmt: skip
        if problem.regression:
            return AssetRegressor(**(options | self.options), epsilon=problem.epsilon)
        return AssetClassifier(**(options | self.options))

    def fit(self, problem: Problem, seed: int) -> Fitted:
        """Train."""
        model = self.estimator(problem, seed)
        seconds, _ = timed(lambda: model.fit(problem.X, problem.y))
        decide = model.predict if problem.regression else model.decision_function
        return Fitted(seconds, decide, problem.s, squared_norm=float((model.map_coef_**2).sum()))


DEFAULT = Asset("asset-svm, metric step", dict(step="metric"), epochs=3)
"""What a user gets who sets nothing but the number of epochs."""
_UNIFORM = dict(sampling="uniform", average=0.5)
SOLVERS = (
    Asset("ASSET_M", dict(step="robust", **_UNIFORM)),
    Asset("ASSET*_M", dict(step="strong", **_UNIFORM)),
    Asset("ASSET_F", dict(step="robust", approximation="fourier", **_UNIFORM)),
    Asset("ASSET*_F", dict(step="strong", approximation="fourier", **_UNIFORM)),
    DEFAULT,
)
