"""AssetRegressor."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, RegressorMixin

from asset_svm.data.source import RowSource
from asset_svm.estimators.documentation import document
from asset_svm.estimators.learner import Learner
from asset_svm.estimators.scored import ScoresTargets
from asset_svm.estimators.tables import TableEncoder
from asset_svm.estimators.validation import all_or_nothing
from asset_svm.estimators.vocabulary import QUANTILES
from asset_svm.settings import Settings
from asset_svm.settings import checks as check
from asset_svm.tasks import Outputs, Regression, Task, with_outputs
from asset_svm.tasks.units import KINDS, Units


@document
class AssetRegressor(ScoresTargets, RegressorMixin, Learner):
    """Kernel support vector regression by approximate stochastic subgradients.

    Solves lam/2 |coef|^2 + (1/W) sum_i w_i max(|y_i - phi(x_i).coef - b| - epsilon, 0), with phi a
    Nystroem or random Fourier approximation of the kernel. With an intercept, the weighted median of
    y is subtracted first and added back: the same problem in a smaller ball. Several outputs, columns
    of y, are learnt in one pass over one map.

    Parameters
    ----------
    %(common)s
    epsilon : float, default=0.1
        The half-width of the tube inside which errors do not count; in the units of
        ``target_transform``, where there is one. Of "huber", the error beyond which the loss is
        straight.
    loss : str, default="epsilon_insensitive"
        "epsilon_insensitive", max(|r| - epsilon, 0) of the errors r = y - f;
        "squared_epsilon_insensitive", its square, which asks for the mean of y at x where the others
        ask for its median; "huber", |r| - epsilon / 2 beyond epsilon and r^2 / (2 epsilon) within.
    target_transform : {"standard", "log"} or None, default=None
        Learn targets less their mean and over their standard deviation, or so of their logarithms;
        predictions come back in the units of y. C and epsilon then mean the same whatever those are,
        and for each of several outputs.
    intervals : bool, default=False
        Keep ``validation_fraction`` of the rows out of the fit, for ``predict_interval``; of one
        output only.

    Attributes
    ----------
    %(attributes)s

    Examples
    --------
    >>> import numpy as np
    >>> from asset_svm import AssetRegressor
    >>> X = np.linspace(0, 6, 500)[:, None]
    >>> y = np.sin(X).ravel()
    >>> AssetRegressor(C=10, epsilon=0.01, random_state=0).fit(X, y).score(X, y) > 0.99
    True
    """

    _answers = QUANTILES

    def __init__(
        self,
        kernel: str | Callable[[Any, Any], Any] = "rbf",
        *,
        gamma: str | float = "scale",
        degree: float = 3,
        coef0: float = 0.0,
        C: float = 1.0,
        lam: float | None = None,
        epsilon: float = 0.1,
        loss: str = "epsilon_insensitive",
        target_transform: str | None = None,
        intervals: bool = False,
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

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Train on all rows, or, with ``intervals``, on all but some.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features), or RowSource
            A source (``asset_svm.open_rows``) brings its targets, and may be larger than memory.
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), optional
            Weights have no part in the coverage of intervals, but that a row of weight 0 is none.

        Returns
        -------
        self
        """
        check.check_flag("intervals", self.intervals)
        if not self.intervals or (y is None and not isinstance(X, RowSource)):
            return self._fit_plainly(X, y, sample_weight)
        if self.warm_start:
            raise ValueError(
                "warm_start=True does not go with intervals=True: the model of an earlier fit may have "
                "seen the rows that are kept out; set one of them to False."
            )
        from asset_svm.estimators.intervals import fit_with_intervals

        with all_or_nothing(self):
            self._intervals = fit_with_intervals(self, X, y, sample_weight)
        return self

    def _fit_plainly(self, X: Any, y: Any, sample_weight: Any) -> Self:
        """Train on all of these rows."""
        return super().fit(X, y, sample_weight)

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn from one batch, in constant memory.

        The first rows (``n_components`` of them, 256 at least) settle the map, lam and the steps:
        until they are there the model begins anew with all of them whenever they have doubled. Between
        later calls only ``verbose``, ``n_jobs`` and ``memory_limit`` may be changed to any effect;
        another ``loss`` or ``target_transform`` is refused. After ``fit`` it goes on from the fitted
        model.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
        sample_weight : array-like of shape (n_samples,), optional

        Returns
        -------
        self
        """
        return self._partial_fit(X, y, sample_weight)

    def predict(self, X: Any) -> np.ndarray:
        """phi(x).coef + b.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        y : ndarray of shape (n_samples,) or (n_samples, n_outputs)
        """
        return self._predictions(self._decide(X))

    def predict_interval(self, X: Any, coverage: float = 0.9) -> np.ndarray:
        """Intervals that hold y with a probability of at least ``coverage``, over exchangeable rows.

        Split-conformal, scaled by a model of the size of errors. The probability is one over all rows,
        those kept out included, not one for each x; where the rows kept out are too few for a
        coverage (fewer than coverage / (1 - coverage)), intervals are infinite.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        coverage : float, default=0.9

        Returns
        -------
        ends : ndarray of shape (n_samples, 2)
        """
        fitted = self._fitted  # where there is none, ``__getattr__`` tells
        check.check_fraction("coverage", coverage, usual=0.9)
        intervals = self.__dict__.get("_intervals")
        if intervals is None:
            why = (
                "this model has changed since its fit, and so have its errors on the rows kept out"
                if self.intervals is True
                else "this model has seen all rows of its fit"
            )
            raise ValueError(
                f"predict_interval needs rows that a model has not seen, and {why}; set "
                "intervals=True, and call fit."
            )
        from asset_svm.estimators.intervals import numbers_of

        decisions = self._decide(X)[:, 0]
        units = getattr(fitted.task, "units", None)
        return intervals.around(numbers_of(self, X), decisions, units, float(coverage))

    def _task(self, settings: Settings, classes: Any = None, before: Task | None = None) -> Task:
        """Learning numbers, less the offset of ``before``, where a model has begun."""
        centred = settings.free_intercept or settings.n_cells is not None
        task = Regression.of(self.epsilon, centred=centred, loss=self.loss)
        check.check_choice("target_transform", self.target_transform, (None, *KINDS))
        if before is None:
            return task

        def begun(own: Any) -> Regression:
            return replace(task, offset=own.offset, units=own.units, loss_name=own.loss_name)

        return with_outputs(before, begun)

    def _in_units(self, task: Task, y: np.ndarray, weight: np.ndarray) -> tuple[Task, np.ndarray]:
        """The task with the units of its targets, and these in them."""
        if isinstance(task, Outputs):
            if self.intervals is True:
                raise ValueError(
                    f"intervals=True is for one output, and y has {len(task.parts)} columns; leave it "
                    "out, or fit an estimator for each column."
                )
            parts = zip(task.parts, y.T, strict=True)
            each = [self._in_units(part, own, weight) for part, own in parts]
            return Outputs(tuple(part for part, _ in each)), np.column_stack([own for _, own in each])  # type: ignore[misc]
        assert isinstance(task, Regression)
        if task.units is None and self.target_transform is not None:
            task = replace(task, units=Units.of(self.target_transform, y, weight))
        return task, y if task.units is None else task.units.into(y)
