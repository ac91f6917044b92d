"""AssetRegressor."""

from __future__ import annotations

from dataclasses import replace

from sklearn.base import RegressorMixin

from asset_svm.data.source import RowSource
from asset_svm.estimators.callbacks import with_callbacks
from asset_svm.estimators.documentation import document
from asset_svm.estimators.files import fit_rows
from asset_svm.estimators.learner import Learner
from asset_svm.estimators.scored import ScoresTargets
from asset_svm.settings import checks as check
from asset_svm.tasks import Regression


@document
class AssetRegressor(ScoresTargets, RegressorMixin, Learner):
    """Kernel support vector regression by approximate stochastic subgradients.

    Solves lam/2 |coef|^2 + (1/W) sum_i w_i max(|y_i - phi(x_i).coef - b| - epsilon, 0), with phi a
    Nystroem or random Fourier approximation of the kernel. With an intercept, the weighted median of
    y is subtracted first and added back: the same problem in a smaller ball.

    Parameters
    ----------
    %(common)s
    epsilon : float, default=0.1
        The half-width of the tube inside which errors do not count.

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

    def __init__(
        self,
        kernel="rbf",
        *,
        gamma="scale",
        degree=3,
        coef0=0.0,
        C=1.0,
        lam=None,
        epsilon=0.1,
        approximation="nystroem",
        n_components=None,
        landmarks="uniform",
        fourier="iid",
        rank=None,
        rank_threshold=None,
        rank_rule="relative",
        n_cells=None,
        n_partitions=1,
        step="auto",
        step_scale="auto",
        gradient_sample=1000,
        fit_intercept="auto",
        intercept_bound=None,
        average="auto",
        sampling="auto",
        max_iter=None,
        tol=None,
        early_stopping=False,
        validation_fraction=0.1,
        n_iter_no_change=5,
        time_limit=None,
        memory_limit=None,
        warm_start=False,
        random_state=None,
        n_jobs=None,
        device="cpu",
        precision="float32",
        verbose=0,
    ):
        check.keep_parameters(self, locals())

    @with_callbacks
    def fit(self, X, y=None, sample_weight=None):
        """Train on all rows.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features), or RowSource
            A source (``asset_svm.open_rows``) brings its targets, and may be larger than memory.
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), optional

        Returns
        -------
        self
        """
        if isinstance(X, RowSource):
            return fit_rows(self, X, y, sample_weight)
        self._warn(*self._train(X, y, sample_weight))
        return self

    def partial_fit(self, X, y, sample_weight=None):
        """Learn from one batch, in constant memory.

        The first rows (``n_components`` of them, 256 at least) settle the map, lam and the steps:
        until they are there the model begins anew with all of them whenever they have doubled. Between
        later calls only ``verbose``, ``n_jobs`` and ``memory_limit`` may be changed to any effect.
        After ``fit`` it goes on from the fitted model.

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

    def predict(self, X):
        """phi(x).coef + b.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        y : ndarray of shape (n_samples,)
        """
        return self._fitted_task().predict(self._decide(X))

    def _finisher(self, method):
        check.check_choice("method", method, ("predict",))
        return self._fitted_task().predict

    def _task(self, settings, classes=None, before=None):
        centred = settings.free_intercept or settings.n_cells is not None
        task = Regression.of(self.epsilon, centred=centred)
        return task if before is None else replace(task, offset=before.offset)
