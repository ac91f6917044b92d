"""DaskAssetClassifier and DaskAssetRegressor: the plain estimators, with their rows on a cluster."""

from __future__ import annotations

from sklearn.metrics import accuracy_score, r2_score

from asset_svm.dask.fitting import DaskLearner, document
from asset_svm.estimators import AssetClassifier, AssetRegressor


@document
class DaskAssetClassifier(DaskLearner, AssetClassifier):
    """``AssetClassifier`` for Dask arrays and dataframes.

    Parameters
    ----------
    %(common)s
    class_weight : dict, "balanced" or None, default=None
        Multiplies ``sample_weight`` by the weight of the row's class; no weight may be 0.
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

    def __init__(
        self,
        kernel="rbf",
        *,
        gamma="scale",
        degree=3,
        coef0=0.0,
        C=1.0,
        lam=None,
        approximation="nystroem",
        n_components=None,
        landmarks="uniform",
        fourier="iid",
        rank=None,
        rank_threshold=None,
        rank_rule="relative",
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
        class_weight=None,
        warm_start=False,
        random_state=None,
        n_jobs=None,
        verbose=0,
        client=None,
        n_shards=None,
        rounds_per_epoch=None,
    ):
        super().__init__(
            kernel=kernel,
            gamma=gamma,
            degree=degree,
            coef0=coef0,
            C=C,
            lam=lam,
            approximation=approximation,
            n_components=n_components,
            landmarks=landmarks,
            fourier=fourier,
            rank=rank,
            rank_threshold=rank_threshold,
            rank_rule=rank_rule,
            step=step,
            step_scale=step_scale,
            gradient_sample=gradient_sample,
            fit_intercept=fit_intercept,
            intercept_bound=intercept_bound,
            average=average,
            sampling=sampling,
            max_iter=max_iter,
            tol=tol,
            early_stopping=early_stopping,
            validation_fraction=validation_fraction,
            n_iter_no_change=n_iter_no_change,
            time_limit=time_limit,
            memory_limit=memory_limit,
            warm_start=warm_start,
            random_state=random_state,
            n_jobs=n_jobs,
            verbose=verbose,
            class_weight=class_weight,
        )
        self._place(client, n_shards, rounds_per_epoch)

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


@document
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
        verbose=0,
        client=None,
        n_shards=None,
        rounds_per_epoch=None,
    ):
        super().__init__(
            kernel=kernel,
            gamma=gamma,
            degree=degree,
            coef0=coef0,
            C=C,
            lam=lam,
            approximation=approximation,
            n_components=n_components,
            landmarks=landmarks,
            fourier=fourier,
            rank=rank,
            rank_threshold=rank_threshold,
            rank_rule=rank_rule,
            step=step,
            step_scale=step_scale,
            gradient_sample=gradient_sample,
            fit_intercept=fit_intercept,
            intercept_bound=intercept_bound,
            average=average,
            sampling=sampling,
            max_iter=max_iter,
            tol=tol,
            early_stopping=early_stopping,
            validation_fraction=validation_fraction,
            n_iter_no_change=n_iter_no_change,
            time_limit=time_limit,
            memory_limit=memory_limit,
            warm_start=warm_start,
            random_state=random_state,
            n_jobs=n_jobs,
            verbose=verbose,
            epsilon=epsilon,
        )
        self._place(client, n_shards, rounds_per_epoch)
