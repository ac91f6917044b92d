"""The plain searches, with their rows on a cluster."""

from __future__ import annotations

from typing import Any

from asset_svm.dask.estimators import (
    DaskAssetClassifier,
    DaskAssetQuantileRegressor,
    DaskAssetRegressor,
)
from asset_svm.dask.fitting import on_cluster
from asset_svm.dask.partitions import is_collection
from asset_svm.dask.searching import DaskSearch
from asset_svm.search import AssetClassifierCV, AssetQuantileRegressorCV, AssetRegressorCV
from asset_svm.search.documentation import document

IN_HEATS = """\
A sample of the rows, 200 000 at most, is looked at in heats, each a task of Dask: of a race a kernel
    and a relevance each, on few rows first, of which the best third go on with all of the sample; of a
    grid a gamma each. The best parameters are trained on all rows, on the cluster. What is found does
    not depend on the number of workers, but with ``time_limit``, which is that of the search: the model
    comes after it. There are no means of several models (``ensemble``), and workers' threads stand for
    ``n_jobs``."""


def in_heats(cls: type) -> type:
    """Fill %(heats)s, and what ``document`` of searches fills, in the docstring of a class."""
    cls.__doc__ = (cls.__doc__ or "").replace("%(heats)s", IN_HEATS)
    return document(cls)


def searches(cls: Any) -> Any:
    """Give a search the parameters of the plain one, those of a cluster, and the words for both."""
    return on_cluster(cls, in_heats)


@searches
class DaskAssetClassifierCV(DaskSearch, AssetClassifierCV):
    """``AssetClassifierCV`` for Dask arrays and dataframes.

    %(heats)s

    Parameters
    ----------
    %(search)s
    probability : bool, default=False
        Not on a cluster.
    class_weight : dict, "balanced" or None, default=None
        As of AssetClassifierCV.
    multi_class : {"ovr", "ovo"}, default="ovr"
        As of AssetClassifier.
    %(others)s
    %(cluster)s

    Attributes
    ----------
    %(attributes)s
    classes_ : ndarray of shape (n_classes,), or list of them, one an output

    Examples
    --------
    >>> import dask.array as da
    >>> from distributed import Client
    >>> from sklearn.datasets import make_moons
    >>> from asset_svm.dask import DaskAssetClassifierCV
    >>> X, y = make_moons(1000, noise=0.1, random_state=0)
    >>> rows, targets = da.from_array(X, chunks=(250, 2)), da.from_array(y, chunks=250)
    >>> with Client(n_workers=2, processes=False, dashboard_address=None) as client:
    ...     search = DaskAssetClassifierCV(Cs=[1, 100], gammas=[1.0, 10.0], client=client)
    ...     search = search.set_params(random_state=0).fit(rows, targets)
    >>> search.to_local().score(X, y) > 0.99
    True
    """

    _local = AssetClassifierCV
    _trained = DaskAssetClassifier
    score = DaskSearch.score


@searches
class DaskAssetRegressorCV(DaskSearch, AssetRegressorCV):
    """``AssetRegressorCV`` for Dask arrays and dataframes.

    %(heats)s

    Parameters
    ----------
    %(search)s
    epsilons : list of float, default=None
        As of AssetRegressorCV.
    epsilon : float, default=0.1
        As of AssetRegressorCV.
    intervals : bool, default=False
        Not on a cluster.
    %(others)s
    %(cluster)s

    Attributes
    ----------
    %(attributes)s

    Examples
    --------
    >>> import dask.array as da
    >>> import numpy as np
    >>> from distributed import Client
    >>> from asset_svm.dask import DaskAssetRegressorCV
    >>> X = np.random.default_rng(0).normal(size=(1000, 2))
    >>> y = np.sin(X[:, 0]) + X[:, 1]
    >>> rows, targets = da.from_array(X, chunks=(250, 2)), da.from_array(y, chunks=250)
    >>> with Client(n_workers=2, processes=False, dashboard_address=None) as client:
    ...     search = DaskAssetRegressorCV(Cs=[1, 100], gammas=[0.1, 1.0], client=client)
    ...     search = search.set_params(random_state=0).fit(rows, targets)
    >>> search.to_local().score(X, y) > 0.95
    True
    """

    _local = AssetRegressorCV
    _trained = DaskAssetRegressor
    fit = DaskSearch.fit  # a plain one checks its intervals first
    score = DaskSearch.score


@searches
class DaskAssetQuantileRegressorCV(DaskSearch, AssetQuantileRegressorCV):
    """``AssetQuantileRegressorCV`` for Dask arrays and dataframes.

    %(heats)s

    Parameters
    ----------
    quantiles : sequence of float, or float, default=(0.1, 0.5, 0.9)
        The quantiles to learn, in increasing order.
    %(search)s
    %(others)s
    %(cluster)s

    Attributes
    ----------
    %(attributes)s

    Examples
    --------
    >>> import dask.array as da
    >>> import numpy as np
    >>> from distributed import Client
    >>> from asset_svm.dask import DaskAssetQuantileRegressorCV
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(1000, 2))
    >>> y = X[:, 0] + rng.normal(size=1000)
    >>> rows, targets = da.from_array(X, chunks=(250, 2)), da.from_array(y, chunks=250)
    >>> with Client(n_workers=2, processes=False, dashboard_address=None) as client:
    ...     search = DaskAssetQuantileRegressorCV(Cs=[1, 10], gammas=[0.1], client=client)
    ...     search = search.set_params(random_state=0).fit(rows, targets)
    >>> search.to_local().predict(X[:5]).shape
    (5, 3)
    """

    _local = AssetQuantileRegressorCV
    _trained = DaskAssetQuantileRegressor
    score = DaskSearch.score

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
        best = self._best("coverage")
        return (best if is_collection(X) else best.to_local()).coverage(X, y, sample_weight)
