"""AssetOutlierDetector."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, OutlierMixin
from sklearn.utils.validation import _num_samples

from asset_svm.estimators.documentation import document
from asset_svm.estimators.learner import Learner
from asset_svm.estimators.tables import TableEncoder
from asset_svm.exceptions import warn_caller
from asset_svm.families.base import Fitted, Trained
from asset_svm.families.rows import Rows
from asset_svm.settings import MapSettings, Settings
from asset_svm.settings import checks as check
from asset_svm.tasks import OneClass, Task

ABSENT: dict[str, Any] = {
    "n_cells": None,
    "n_partitions": 1,
    "fit_intercept": False,
    "intercept_bound": None,
}
"""Parameters of other estimators, with the values that ask for nothing."""
OTHERS = "AssetClassifier and AssetRegressor"
UNJUDGED = "there are no targets that rows could be judged by"
ANSWERS = {
    "C": (OTHERS, "errors have a share of the rows, not a price", "set nu"),
    "lam": (OTHERS, "errors have a share of the rows, not a price", "set nu"),
    "contamination": ("IsolationForest", "it is called as in OneClassSVM", "set nu"),
    "n_cells": (
        OTHERS,
        "one threshold holds for all rows, and each cell would have its own",
        "leave it out, and raise n_components where one map is too coarse",
    ),
    "n_partitions": (OTHERS, "there are no cells", "leave it out"),
    "relevance": (OTHERS, UNJUDGED, "leave it out, and scale the columns by what they matter"),
    "early_stopping": (OTHERS, UNJUDGED, "leave it out, and set max_iter or tol"),
    "fit_intercept": (OTHERS, "the threshold is what it would be", "leave it out"),
    "loss": (OTHERS, "it is the hinge loss of one class", "leave it out"),
    "class_weight": ("AssetClassifier", "there are no classes", "leave it out, or set sample_weight"),
}
"""Whose parameter each is that is none here, why, and what to do."""


@document
class AssetOutlierDetector(OutlierMixin, Learner):
    """One-class support vector machine by approximate stochastic subgradients.

    Solves nu/2 |coef|^2 - nu rho + (1/W) sum_i w_i max(rho - phi(x_i).coef, 0) over coef and rho, with
    phi a Nystroem or random Fourier approximation of the kernel: the problem of
    ``sklearn.svm.OneClassSVM``, whose decisions are these times a constant. Scores are phi(x).coef in
    units of rho, so that the boundary is at about 1 and rows like no other are near 0; the threshold is
    at last the quantile of the scores that leaves a share nu of the rows outside. There are no cells,
    whose thresholds would be their own, and no relevance of columns, since nothing judges it.

    Parameters
    ----------
    %(kernel)s
    %(gamma)s
    %(degree)s
    %(coef0)s
    nu : float, default=0.1
        The share of the training rows that lie outside, by weight: between 0 and 1.
    %(approximation)s
    n_components : int, default=None
        Landmarks s (Nystroem; all rows, with a warning, where there are fewer) or features d (Fourier).
        None: 2048, fewer landmarks where there are fewer rows.
    landmarks : {"uniform", "kmeans", "rpcholesky", "leverage"} or array, default="uniform"
        How landmarks are chosen (Nystroem only): rows at random; centres of clusters; rows by
        randomly pivoted Cholesky or by ridge leverage scores, both of which look at the kernel; or
        points of your own.
    %(fourier)s
    %(rank)s
    %(rank_threshold)s
    %(rank_rule)s
    encoder : "auto", TableEncoder or None, default="auto"
        What makes numbers of a table, as of ``AssetClassifier``, without means of targets.
    %(step)s
    %(step_scale)s
    %(gradient_sample)s
    %(average)s
    %(sampling)s
    %(max_iter)s
    %(tol)s
    %(time_limit)s
    %(memory_limit)s
    %(warm_start)s
    %(random_state)s
    %(n_jobs)s
    %(device)s
    %(precision)s
    %(verbose)s

    Attributes
    ----------
    offset_ : float
        The threshold: decision_function(X) = score_samples(X) - offset_. By all rows of a fit (of more
        than 4 million, or of those that do not fit in memory, by a sample); after partial_fit, by the
        last batch, or the last 1024 rows where it has fewer.
    lam_ : float
        The lambda of the hinge problem whose solution is coef / rho: nu rho, found by a search on some
        of the rows. ``objective_`` and ``dual_gap_`` are that problem's.
    %(map_coef_)s
    intercept_ : ndarray of shape (1,)
        Minus ``offset_``.
    %(dual_coef_)s
    %(components_)s
    %(component_indices_)s
    %(approximation_error_)s
    %(encoder_)s
    %(feature_map_)s
    %(n_components_)s
    %(step_scale_)s
    %(objective_)s
    %(dual_gap_)s
    %(n_iter_)s
    %(t_)s
    %(history_)s
    n_features_in_ : int
    feature_names_in_ : ndarray of str

    Examples
    --------
    >>> import numpy as np
    >>> from asset_svm import AssetOutlierDetector
    >>> X = np.random.default_rng(0).normal(size=(1000, 2))
    >>> model = AssetOutlierDetector(nu=0.05, random_state=0).fit(X)
    >>> model.predict([[0.0, 0.0], [6.0, 6.0]])
    array([ 1, -1])
    >>> round(float((model.predict(X) == -1).mean()), 3)
    0.05
    """

    _answers = ANSWERS
    _methods = ("predict", "decision_function", "score_samples")
    _several_outputs = False

    def __init__(
        self,
        kernel: str | Callable[[Any, Any], Any] = "rbf",
        *,
        gamma: str | float = "scale",
        degree: float = 3,
        coef0: float = 0.0,
        nu: float = 0.1,
        approximation: str | BaseEstimator = "nystroem",
        n_components: int | None = None,
        landmarks: str | ArrayLike = "uniform",
        fourier: str = "iid",
        rank: int | None = None,
        rank_threshold: float | None = None,
        rank_rule: str = "relative",
        encoder: str | TableEncoder | None = "auto",
        step: str = "auto",
        step_scale: str | float = "auto",
        gradient_sample: int = 1000,
        average: str | float | int | None = "auto",
        sampling: str = "auto",
        max_iter: int | None = None,
        tol: float | None = None,
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

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn from one batch, in constant memory.

        The first rows (``n_components`` of them, 256 at least) settle the map, lam and the steps:
        until they are there the model begins anew with all of them whenever they have doubled. The
        threshold follows the last rows, and is settled anew eight times while the rows double. After
        ``fit`` it goes on from the fitted model. Another ``nu``, or another kernel, is another problem,
        and refused.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : Ignored
        sample_weight : array-like of shape (n_samples,), optional

        Returns
        -------
        self
        """
        return self._partial_fit(X, _ones(X), sample_weight)

    def predict(self, X: Any) -> np.ndarray:
        """1 for rows inside, -1 for outliers.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        y : ndarray of shape (n_samples,)
        """
        return self._predictions(self._decide(X))

    def decision_function(self, X: Any) -> np.ndarray:
        """Scores less the threshold: negative for outliers.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        decisions : ndarray of shape (n_samples,)
        """
        return self._fitted.task.decisions(self._decide(X))

    def score_samples(self, X: Any) -> np.ndarray:
        """phi(x).coef: how much a row is like those that were learnt from.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        scores : ndarray of shape (n_samples,)
        """
        return self.decision_function(X) + self.offset_

    def certify(self, X: Any, y: Any = None, sample_weight: Any = None) -> tuple[float, float]:
        """How far this model is from the optimum of the hinge problem with ``lam_`` on given rows.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : Ignored
        sample_weight : array-like of shape (n_samples,), optional

        Returns
        -------
        objective : float
        gap : float
            An upper bound of objective minus optimum.
        """
        return super().certify(X, None, sample_weight)

    # What Learner asks for ----------------------------------------------------------------------

    def _settings(self) -> Settings:
        """The parameters, checked and frozen; landmarks and their number know no targets."""
        params = self.get_params(deep=False)
        mapping = MapSettings.of(params, supervised=False)
        settings = replace(Settings.of(ABSENT | params), map=mapping)
        self._task(settings)
        return settings

    def _task(self, settings: Settings, classes: Any = None, before: Task | None = None) -> Task:
        """Learning one class, with the threshold of ``before``, where a model has begun."""
        task = OneClass.of(self.nu)
        return task.with_threshold(-float(before.offset)) if before is not None else task

    def _adopt(self, fitted: Fitted) -> None:
        """Take a model as that of a fit of this estimator."""
        super()._adopt(fitted)
        self.offset_ = -fitted.task.offset

    def _warn(self, settings: Settings, trained: Trained[Any], *, searched: bool = False) -> None:
        """Warn where the model is not what it should be: too many rows beyond the origin, for one."""
        super()._warn(settings, trained, searched=searched)
        if self.offset_ <= 0.0:
            warn_caller(
                f"The threshold of scores is {self.offset_:.2g}: the rows surround the origin of "
                f"kernel={self.kernel!r}, and no plane has a part 1 - nu of them on the other side; "
                'choose kernel="rbf", for which there always is one, or another nu.',
                UserWarning,
            )

    def _check_rows(
        self, task: Task, X: Any, y: Any, sample_weight: Any, **options: Any
    ) -> tuple[Task, Rows] | None:
        """The task, and checked rows of positive weight; None where there are none."""
        return super()._check_rows(task, X, _ones(X), sample_weight, **options)

    def _finisher(self, method: str) -> Callable[[np.ndarray], np.ndarray]:
        """The function from decisions to what ``method`` returns."""
        if method != "score_samples":
            return super()._finisher(method)
        threshold = self.offset_
        return lambda decisions: decisions.ravel() + threshold


def _ones(X: Any) -> np.ndarray:
    """The target of every row."""
    if X is None:
        raise ValueError("X=None has no rows; pass rows of numbers, or a table.")
    return np.ones(_num_samples(X))
