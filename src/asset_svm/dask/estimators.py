"""The plain estimators, with their rows on a cluster."""

from __future__ import annotations

import numpy as np
from sklearn.metrics import accuracy_score, r2_score

from asset_svm.dask.fitting import DaskLearner, on_cluster
from asset_svm.dask.partitions import is_collection
from asset_svm.estimators import AssetClassifier, AssetQuantileRegressor, AssetRegressor
from asset_svm.estimators.scored import checked_numbers, every_right
from asset_svm.estimators.validation import is_wide
from asset_svm.tasks.quantiles import d2_of


@on_cluster
class DaskAssetClassifier(DaskLearner, AssetClassifier):
    """``AssetClassifier`` for Dask arrays and dataframes.

    Parameters
    ----------
    %(common)s
    class_weight : dict, "balanced" or None, default=None
        Multiplies ``sample_weight`` by the weight of the row's class; no weight may be 0.
    multi_class : {"ovr", "ovo"}, default="ovr"
        How more than two classes are separated, as of AssetClassifier.
    %(cluster)s

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    %(attributes)s
    n_shards_ : int
    n_rounds_ : int
        ``history_`` has a record of each.

    Examples
    --------
    >>> import dask.array as da
    >>> from distributed import Client
    >>> from sklearn.datasets import make_moons
    >>> from asset_svm.dask import DaskAssetClassifier
    >>> X, y = make_moons(2000, noise=0.1, random_state=0)
    >>> rows, targets = da.from_array(X, chunks=(500, 2)), da.from_array(y, chunks=500)
    >>> with Client(n_workers=2, processes=False, dashboard_address=None) as client:
    ...     model = DaskAssetClassifier(C=10, client=client, random_state=0).fit(rows, targets)
    ...     predicted = model.predict(rows).compute()
    >>> float((predicted == y).mean()) > 0.99
    True
    """

    _local = AssetClassifier
    _metric = staticmethod(accuracy_score)

    def decision_function(self, X):
        """phi(x).coef + b.

        Parameters
        ----------
        X : Dask array or dataframe of shape (n_samples, n_features)
            Anything else is passed to the plain estimator.

        Returns
        -------
        decisions : Dask array of shape (n_samples,) for two classes, else (n_samples, n_classes)
            Of several outputs with two classes each, (n_samples, n_outputs).
        """
        return self._lazily("decision_function", X)

    def _scored(self, y, predicted, sample_weight):
        """The part of the rows of which every output is predicted."""
        if is_wide(y):
            return every_right(y, predicted, sample_weight)
        return super()._scored(y, predicted, sample_weight)


@on_cluster
class DaskAssetRegressor(DaskLearner, AssetRegressor):
    """``AssetRegressor`` for Dask arrays and dataframes.

    Parameters
    ----------
    %(common)s
    epsilon : float, default=0.1
        The half-width of the tube inside which errors do not count.
    %(cluster)s

    Attributes
    ----------
    %(attributes)s
    n_shards_ : int
    n_rounds_ : int
        ``history_`` has a record of each.

    Examples
    --------
    >>> import dask.array as da
    >>> import numpy as np
    >>> from distributed import Client
    >>> from asset_svm.dask import DaskAssetRegressor
    >>> X = np.random.default_rng(0).normal(size=(2000, 2))
    >>> y = np.sin(X[:, 0]) + X[:, 1]
    >>> rows, targets = da.from_array(X, chunks=(500, 2)), da.from_array(y, chunks=500)
    >>> with Client(n_workers=2, processes=False, dashboard_address=None) as client:
    ...     model = DaskAssetRegressor(C=10, client=client, random_state=0).fit(rows, targets)
    >>> model.to_local().score(X, y) > 0.95
    True
    """

    _local = AssetRegressor
    _metric = staticmethod(r2_score)


@on_cluster
class DaskAssetQuantileRegressor(DaskLearner, AssetQuantileRegressor):
    """``AssetQuantileRegressor`` for Dask arrays and dataframes.

    Parameters
    ----------
    %(common)s
    quantiles : sequence of float, or float, default=(0.1, 0.5, 0.9)
        The quantiles to learn, in increasing order, as of AssetQuantileRegressor.
    target_transform : {"standard", "log"} or None, default=None
        As of AssetQuantileRegressor.
    %(cluster)s

    Attributes
    ----------
    %(attributes)s
    n_shards_ : int
    n_rounds_ : int
        ``history_`` has a record of each.

    Examples
    --------
    >>> import dask.array as da
    >>> import numpy as np
    >>> from distributed import Client
    >>> from asset_svm.dask import DaskAssetQuantileRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(2000, 2))
    >>> y = X[:, 0] + rng.normal(size=2000)
    >>> rows, targets = da.from_array(X, chunks=(500, 2)), da.from_array(y, chunks=500)
    >>> with Client(n_workers=2, processes=False, dashboard_address=None) as client:
    ...     model = DaskAssetQuantileRegressor(client=client, random_state=0).fit(rows, targets)
    >>> model.to_local().predict(X[:5]).shape
    (5, 3)
    """

    _local = AssetQuantileRegressor

    def _scored(self, y, predicted, sample_weight):
        """D^2 of the pinball loss, the mean over the quantiles."""
        levels = self._learnt.quantiles
        return d2_of(predicted.reshape(len(y), -1), y, levels, sample_weight)

    def coverage(self, X, y, sample_weight=None):
        """The share of the rows at or below each of their quantiles, which should be the quantile.

        Parameters
        ----------
        X, y : Dask collections, or anything else for the plain estimator
        sample_weight : Dask array or series of shape (n_samples,), optional

        Returns
        -------
        coverage : ndarray of shape (n_quantiles,)
        """
        if not is_collection(X):
            return self.to_local().coverage(X, y, sample_weight)
        y, predicted, sample_weight = self._computed(y, self.predict(X), sample_weight)
        found = np.asarray(predicted).reshape(len(y), -1)
        return self._learnt.coverage(found, *checked_numbers(y, sample_weight, len(found)))
