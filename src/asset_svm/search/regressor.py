"""AssetRegressorCV."""

from __future__ import annotations

from typing import ClassVar

from sklearn.base import RegressorMixin

from asset_svm.estimators.regressor import AssetRegressor
from asset_svm.estimators.vocabulary import FEWER_LOSSES, QUANTILES
from asset_svm.search.base import SearchEstimator
from asset_svm.search.documentation import document
from asset_svm.settings import checks as check


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
        "intervals": (
            "AssetRegressor",
            "a search fits its best model to all rows",
            "fit that estimator with the parameters that are found",
        ),
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
