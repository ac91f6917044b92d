"""AssetRegressorCV."""

from __future__ import annotations

from functools import partial
from typing import ClassVar

import numpy as np
import scipy.sparse as sp
from sklearn.base import RegressorMixin
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import check_is_fitted

from asset_svm.backends.device import on_host
from asset_svm.data.scan import Scanned
from asset_svm.data.source import RowSource
from asset_svm.estimators.regressor import AssetRegressor
from asset_svm.estimators.validation import all_or_nothing, is_wide
from asset_svm.estimators.vocabulary import FEWER_LOSSES, QUANTILES
from asset_svm.search.base import SearchEstimator
from asset_svm.search.documentation import document
from asset_svm.search.intervals import CrossIntervals
from asset_svm.search.racing import one_seed
from asset_svm.settings import checks as check

FEWEST = 3
"""Rows that intervals are made of, at least: folds leave two of them to learn from."""


@document
class AssetRegressorCV(RegressorMixin, SearchEstimator):
    """The best AssetRegressor that can be found, without a knob, or by a grid.

    With no part of a grid given, a race over encodings of the columns, kernels, learnt relevance,
    bandwidths, C, one map and cells. Of a grid all values of C and folds train at once, on one map of
    the rows for each gamma; a model skips the rows that are held out from it.

    Parameters
    ----------
    %(search)s
    epsilons : list of float, default=None
        Half-widths of the tube to try. None: ``epsilon`` only.
    epsilon : float, default=0.1
    intervals : bool, default=False
        Train the best parameters five times more, each without a fifth of the rows, for
        ``predict_interval``; of one output only. It comes on top of ``time_limit``.
    %(others)s

    Attributes
    ----------
    %(attributes)s

    Examples
    --------
    >>> import numpy as np
    >>> from asset_svm import AssetRegressorCV
    >>> X = np.random.default_rng(0).uniform(0, 6, size=(500, 1))
    >>> y = np.sin(X).ravel()
    >>> AssetRegressorCV(Cs=5, epsilons=[0.01, 0.1], random_state=0).fit(X, y).best_score_ > 0.99
    True
    """

    _model = AssetRegressor
    _answers: ClassVar = {
        **QUANTILES,
        "loss": ("AssetRegressor", *FEWER_LOSSES),
    }

    def __init__(
        self,
        kernel="auto",
        *,
        Cs="auto",
        gammas="auto",
        epsilons=None,
        cv=None,
        scoring=None,
        refit=True,
        time_limit=None,
        ensemble=True,
        search_iter=None,
        keep_path=False,
        gamma="scale",
        epsilon=0.1,
        intervals=False,
        degree=3,
        coef0=0.0,
        approximation="nystroem",
        n_components=None,
        landmarks="uniform",
        fourier="iid",
        rank=None,
        rank_threshold=None,
        rank_rule="relative",
        relevance="auto",
        encoder="auto",
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
        memory_limit=None,
        random_state=None,
        n_jobs=None,
        device="cpu",
        precision="float32",
        verbose=0,
    ):
        check.keep_parameters(self, locals())

    score = SearchEstimator.score  # by ``scoring``, before the mixin's

    def fit(self, X, y=None, sample_weight=None, groups=None):
        """Search, and train the best model on all rows.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features), or row source
            Of a source (``open_rows``) that does not fit in memory a sample is searched, and all rows
            train the best model.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            None with a row source, which brings its own.
        sample_weight : array-like of shape (n_samples,), optional
            Of the rows that are learnt from; scores do not weigh rows, and leave out those of weight 0.
        groups : array-like of shape (n_samples,), optional
            For splitters that keep groups together, such as GroupKFold, and for the folds of intervals.

        Returns
        -------
        self
        """
        check.check_flag("intervals", self.intervals)
        if self.intervals and isinstance(X, RowSource | Scanned):
            raise ValueError(
                "intervals=True trains on folds of rows in memory, and X reads them from a file; pass "
                "arrays, or train AssetRegressor(intervals=True) with what is found."
            )
        if self.intervals and is_wide(y):
            raise ValueError(
                f"intervals=True is for one output, and y has {np.shape(y)[1]} columns; leave it out, "
                "or search for each column."
            )
        if self.intervals:
            self._check_intervals(y, sample_weight, groups)
        with all_or_nothing(self):
            super().fit(X, y, sample_weight, groups)
            if self.intervals:
                self._intervals = self._crossed(X, y, sample_weight, groups)
        return self

    @staticmethod
    def _check_intervals(y, sample_weight, groups):
        """Raise where rows, or groups, are too few to be held out in turn."""
        there = np.ones(len(on_host(y)), dtype=bool)
        if np.ndim(sample_weight) == 1 and len(sample_weight) == len(there):
            there = np.asarray(on_host(sample_weight)) != 0
        if there.sum() < FEWEST:
            raise ValueError(
                f"intervals=True learns from parts of the rows, and {int(there.sum())} have a positive "
                f"weight; it needs {FEWEST} of them."
            )
        if groups is not None and len(set(np.asarray(groups)[there].tolist())) < 2:
            raise ValueError(
                "intervals=True holds out whole groups, and groups has one; leave one of both out."
            )

    def _crossed(self, X, y, sample_weight, groups):
        """The intervals of the best parameters, by rows of positive weight."""
        seed, X = one_seed(self.random_state), X.tocsr() if sp.issparse(X) else X
        y = np.asarray(on_host(y), dtype=np.float64).ravel()
        weight = None
        if sample_weight is not None:  # a number is that of every row
            weight = np.broadcast_to(np.asarray(on_host(sample_weight), dtype=np.float64), y.shape)
            there = np.flatnonzero(weight)
            X, y, weight = _safe_indexing(X, there), y[there], weight[there]
            groups = None if groups is None else np.asarray(groups)[there]
        make = partial(self._learner, random_state=seed, **self.best_params_)
        return CrossIntervals.of(make, X, y, weight, groups, seed)

    def predict_interval(self, X, coverage=0.9):
        """CV+ intervals that hold y with a probability of about ``coverage``, over exchangeable rows.

        Their guarantee is weaker than that of ``AssetRegressor(intervals=True)``, which keeps rows out:
        with alpha = 1 - coverage it is 1 - 2 alpha (0.8 of 0.9), less sqrt(2 / n) for n rows, and for
        parameters that were chosen by other rows. As a rule they hold about ``coverage``; all rows are
        learnt from. They are made of five models with ``best_params_``, each of which has not seen a
        fifth of the rows, and need not have the prediction in their middle. Infinite where rows are
        too few for a coverage.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        coverage : float, default=0.9

        Returns
        -------
        ends : ndarray of shape (n_samples, 2)
        """
        check_is_fitted(self)
        check.check_fraction("coverage", coverage, usual=0.9)
        if "_intervals" not in self.__dict__:
            raise ValueError(
                "predict_interval needs models that have not seen some of the rows, and this search "
                "has kept none; set intervals=True, and call fit."
            )
        return self._intervals.around(self._seen(X), float(coverage))
