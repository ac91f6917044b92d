"""AssetQuantileRegressor."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, RegressorMixin

from asset_svm.estimators.documentation import document
from asset_svm.estimators.learner import Learner
from asset_svm.estimators.scored import check_scored, checked_numbers
from asset_svm.estimators.tables import TableEncoder
from asset_svm.settings import Settings
from asset_svm.settings import checks as check
from asset_svm.tasks import Quantiles, Task
from asset_svm.tasks.quantiles import d2_of
from asset_svm.tasks.units import KINDS, Units

ANSWERS = {
    "loss": ("AssetRegressor", "it is the pinball loss of each quantile", "leave it out"),
    "epsilon": ("AssetRegressor", "the pinball loss has no tube", "leave it out"),
    "intervals": (
        "AssetRegressor",
        "two quantiles are the ends of an interval themselves",
        "set quantiles, for example to (0.05, 0.95)",
    ),
    "quantile": ("QuantileRegressor", "there may be several", "set quantiles, to one number or more"),
    "alpha": (
        "QuantileRegressor",
        "the penalty is weighed by C, and a quantile is no penalty",
        "set C or lam, or quantiles",
    ),
}
"""Whose parameter each is that is none here, why, and what to do."""


@document
class AssetQuantileRegressor(RegressorMixin, Learner):
    """Kernel quantile regression by approximate stochastic subgradients.

    For every quantile q solves lam/2 |coef|^2 + (1/W) sum_i w_i max(q r_i, (q - 1) r_i) with
    r_i = y_i - phi(x_i).coef - b, and phi a Nystroem or random Fourier approximation of the kernel; all
    quantiles in one pass over one map, or cell by cell. Predictions never cross: those of a row are
    put in order, which can only lower the mean pinball loss. With an intercept, the weighted
    q-quantile of y is subtracted first and added back: the same problem in a smaller ball.

    Parameters
    ----------
    %(common)s
    quantiles : float or sequence of float, default=(0.1, 0.5, 0.9)
        Between 0 and 1, in increasing order. A number makes predictions of one axis.
    target_transform : {"standard", "log"} or None, default=None
        Learn targets less their mean and over their standard deviation, or so of their logarithms;
        predictions come back in the units of y. C then means the same whatever those are.

    Attributes
    ----------
    %(attributes)s

    Notes
    -----
    ``score`` is D^2 of the pinball loss, the mean over the quantiles (scikit-learn's
    ``d2_pinball_score``): 1 at best, 0 where the quantiles of y itself would do as well. Of the loss
    itself, ``sklearn.metrics.mean_pinball_loss`` of a column of the predictions.

    Examples
    --------
    >>> import numpy as np
    >>> from asset_svm import AssetQuantileRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(0, 6, (4000, 1))
    >>> y = np.sin(X[:, 0]) + (0.1 + 0.1 * X[:, 0]) * rng.normal(size=4000)
    >>> model = AssetQuantileRegressor(quantiles=(0.1, 0.9), C=10, random_state=0).fit(X, y)
    >>> low, high = model.predict(X).T
    >>> bool(0.78 < np.mean((low <= y) & (y <= high)) < 0.82)
    True
    """

    _answers = ANSWERS
    _several_outputs = False

    def __init__(
        self,
        kernel: str | Callable[[Any, Any], Any] = "rbf",
        *,
        quantiles: float | Sequence[float] = (0.1, 0.5, 0.9),
        gamma: str | float = "scale",
        degree: float = 3,
        coef0: float = 0.0,
        C: float = 1.0,
        lam: float | None = None,
        target_transform: str | None = None,
        approximation: str | BaseEstimator = "nystroem",
        n_components: int | str | None = None,
        landmarks: str | ArrayLike = "uniform",
        fourier: str = "iid",
        rank: int | None = None,
        rank_threshold: float | None = None,
        rank_rule: str = "relative",
        relevance: str | None = None,
        encoder: str | TableEncoder | None = "auto",
        n_cells: int | str | None = None,
        n_partitions: int = 1,
        step: str = "auto",
        step_scale: str | float = "auto",
        gradient_sample: int = 1000,
        fit_intercept: str | bool = "auto",
        intercept_bound: float | None = None,
        average: str | float | int | None = "auto",
        sampling: str = "auto",
        max_iter: int | None = None,
        tol: float | None = None,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 5,
        time_limit: float | None = None,
        memory_limit: float | None = None,
        warm_start: bool = False,
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = None,
        device: str = "cpu",
        precision: str = "float32",
        verbose: int = 0,
    ) -> None:
        check.keep_parameters(self, locals())

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn from one batch, in constant memory, as ``AssetRegressor.partial_fit``.

        Other ``quantiles`` than those of the model are refused.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), optional

        Returns
        -------
        self
        """
        return self._partial_fit(X, y, sample_weight)

    def predict(self, X: Any) -> np.ndarray:
        """The quantiles of y at each row, in increasing order.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        y : ndarray of shape (n_samples, n_quantiles), or (n_samples,)
            The latter where ``quantiles`` is a number.
        """
        return self._predictions(self._decide(X))

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """D^2 of the pinball loss, the mean over the quantiles.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), optional

        Returns
        -------
        score : float
        """
        check_scored(y, sample_weight, numeric=True)
        levels = self._learnt.quantiles
        return d2_of(self.predict(X).reshape(-1, len(levels)), y, levels, sample_weight)

    def coverage(self, X: Any, y: Any, sample_weight: Any = None) -> np.ndarray:
        """The share of the rows at or below each of their quantiles, which should be the quantile.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), optional

        Returns
        -------
        coverage : ndarray of shape (n_quantiles,)
        """
        task = self._learnt
        found = self.predict(X).reshape(-1, task.n_models)
        return task.coverage(found, *checked_numbers(y, sample_weight, len(found)))

    def _shown_gradients(self, gradients: np.ndarray, decisions: np.ndarray) -> np.ndarray:
        """Those of the predictions, which are the decisions of each row in order."""
        found = super()._shown_gradients(gradients, decisions)
        order = np.argsort(decisions, axis=1, kind="stable")
        return np.take_along_axis(found, order[:, :, None], axis=1)

    @property
    def _learnt(self) -> Quantiles:
        """The task of the fitted model."""
        task = self._fitted.task
        assert isinstance(task, Quantiles)
        return task

    def _task(self, settings: Settings, classes: Any = None, before: Task | None = None) -> Task:
        """Learning quantiles, less the offset of ``before``, where a model has begun."""
        centred = settings.free_intercept or settings.n_cells is not None
        task = Quantiles.of(self.quantiles, centred=centred)
        check.check_choice("target_transform", self.target_transform, (None, *KINDS))
        if isinstance(before, Quantiles):
            return replace(before, centred=centred)
        return task

    def _in_units(self, task: Task, y: np.ndarray, weight: np.ndarray) -> tuple[Task, np.ndarray]:
        """The task with the units of its targets, and these in them."""
        assert isinstance(task, Quantiles)
        if task.units is None and self.target_transform is not None:
            task = replace(task, units=Units.of(self.target_transform, y, weight))
        return task, y if task.units is None else task.units.into(y)
