"""DaskAssetClassifier and DaskAssetRegressor: the plain estimators, with their rows on a cluster."""

from __future__ import annotations

from sklearn.metrics import accuracy_score, r2_score

from asset_svm.dask.fitting import DaskLearner, on_cluster
from asset_svm.estimators import AssetClassifier, AssetRegressor


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
    >>> from asset_svm.dask import DaskAssetClassifier
    >>> client = Client(n_workers=2, threads_per_worker=1)          # doctest: +SKIP
    >>> model = DaskAssetClassifier(client=client).fit(X, y)        # doctest: +SKIP
    >>> model.predict(X).compute()                                  # doctest: +SKIP
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
        """
        return self._lazily("decision_function", X)


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
    """

    _local = AssetRegressor
    _metric = staticmethod(r2_score)
