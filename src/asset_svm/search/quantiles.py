"""AssetQuantileRegressorCV."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from sklearn.base import RegressorMixin

from asset_svm.estimators.learner import Learner
from asset_svm.estimators.quantiles import AssetQuantileRegressor
from asset_svm.estimators.vocabulary import FEWER_LOSSES
from asset_svm.search.base import SearchEstimator
from asset_svm.search.documentation import document
from asset_svm.settings import checks as check
from asset_svm.tasks.quantiles import checked_quantiles

MOST_JUDGED = 3
"""Quantiles that all take part in a race: with nine it tries a third of the candidates."""
NO_TUBE = ("AssetRegressorCV", "there is no tube around a quantile", "leave it out")


@document
class AssetQuantileRegressorCV(RegressorMixin, SearchEstimator):
    """The best AssetQuantileRegressor that can be found, without a knob, or by a grid.

    All quantiles of a candidate train together, and are judged together: by the pinball loss of
    predictions in order, the mean over the quantiles. With no part of a grid given, a race over
    encodings of the columns, kernels, learnt relevance, bandwidths, C, one map and cells, which judges
    by the first, the middle and the last where there are more than three (``best_score_`` is theirs).
    Of a grid all values of C, folds and quantiles train at once, on one map of the rows for each gamma.

    Parameters
    ----------
    quantiles : sequence of float, or float, default=(0.1, 0.5, 0.9)
        The quantiles to learn, in increasing order, as of AssetQuantileRegressor.
    %(search)s
    %(others)s

    Attributes
    ----------
    %(attributes)s

    Examples
    --------
    >>> import numpy as np
    >>> from asset_svm import AssetQuantileRegressorCV
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(0, 6, size=(500, 1))
    >>> y = np.sin(X).ravel() + 0.2 * rng.normal(size=500)
    >>> search = AssetQuantileRegressorCV(Cs=5, random_state=0).fit(X, y)
    >>> search.predict(X).shape
    (500, 3)
    >>> search.best_score_ > 0.6
    True
    """

    _model = AssetQuantileRegressor
    _answers: ClassVar = {
        "epsilon": NO_TUBE,
        "epsilons": NO_TUBE,
        "loss": ("AssetRegressor", *FEWER_LOSSES),
    }

    def __init__(
        self,
        kernel="auto",
        *,
        quantiles=(0.1, 0.5, 0.9),
        Cs="auto",
        gammas="auto",
        cv=None,
        scoring=None,
        refit=True,
        time_limit=None,
        ensemble=True,
        search_iter=None,
        keep_path=False,
        gamma="scale",
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

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = False
        return tags

    def _learner(self, **others: Any) -> Learner:
        """The estimator that is searched for: candidates of a race have a tube, which it has not."""
        return super()._learner(**{name: own for name, own in others.items() if name != "epsilon"})

    @property
    def _judged_by(self) -> dict[str, Any]:
        """Of many quantiles the first, the middle and the last: they are as good as all to judge by."""
        if np.size(self.quantiles) <= MOST_JUDGED:
            return {}
        levels = checked_quantiles(self.quantiles)
        return {"quantiles": tuple(levels[k] for k in (0, len(levels) // 2, -1))}

    score = SearchEstimator.score  # by ``scoring``, before the mixin's

    def predict(self, X):
        """The quantiles of y at each row by the best model, refitted on all rows.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        y : ndarray of shape (n_samples, n_quantiles), or (n_samples,)
            In increasing order; the latter where ``quantiles`` is a number.
        """
        return super().predict(X)

    def coverage(self, X, y, sample_weight=None):
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
        return self._best("coverage").coverage(self._seen(X), y, sample_weight)
