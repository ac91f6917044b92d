"""fit and predict on collections: what both estimators share."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any, ClassVar

import dask
import dask.array as da
import numpy as np
import pandas as pd
from dask.delayed import delayed
from distributed import Client, get_client
from sklearn.base import BaseEstimator, clone, is_regressor
from sklearn.utils.validation import check_is_fitted

from asset_svm.dask.cells import fit_cells
from asset_svm.dask.cluster import Cluster
from asset_svm.dask.fit import fit_shards
from asset_svm.dask.loading import load_rows
from asset_svm.dask.partitions import column_names, is_collection
from asset_svm.estimators.callbacks import FitObserver
from asset_svm.estimators.documentation import document
from asset_svm.estimators.encoded import check_encoder
from asset_svm.estimators.inside import copied_with, fitted_of
from asset_svm.estimators.learner import Learner
from asset_svm.estimators.scored import check_scored
from asset_svm.estimators.tables import TableEncoder
from asset_svm.estimators.validation import all_or_nothing, results
from asset_svm.families import Fitted, Trained, family_of
from asset_svm.families.observing import Observer, shown
from asset_svm.families.relevance.family import learnt_of
from asset_svm.families.relevance.fitted import FittedRelevance
from asset_svm.families.relevance.wrapping import WrappedObserver, inner_settings
from asset_svm.settings import Settings
from asset_svm.settings import checks as check

CLUSTER = """\
client : distributed.Client, default=None
    None: the current one.
n_shards : int, default=None
    Neighbouring partitions are joined into so many shards of about as many rows. None: one a
    partition, 128 at most. Fewer are more accurate; as many as there are workers is fastest.
rounds_per_epoch : int, default=None
    How often the models of the shards are averaged. None: once, or 10 times where the rows of a
    sample say that shards differ; fewer where a shard would have less than 1000 steps a round, but
    10 in all."""

OF_CLUSTER = ("client", "n_shards", "rounds_per_epoch")
"""The parameters that plain estimators do not have."""
NOT_HERE = {
    "intervals": (False, "no rows are kept out of a fit"),
    "tol": (None, "the gap is known when the run is over"),
    "early_stopping": (False, "no rows are held out"),
    "time_limit": (None, "workers do not stop in the middle of a round"),
    "warm_start": (False, "every fit begins anew"),
    "device": ("cpu", "workers use their processors"),
}
"""Parameters that a cluster does without: their usual values, and why."""


def on_cluster(cls: Any, words: Callable[[Any], Any] = document) -> Any:
    """Give an estimator the parameters of the plain one, those of a cluster, and the words for both.

    scikit-learn reads the parameters off the signature of the constructor: it is made, not repeated.
    """
    plain = inspect.signature(cls._local.__init__).parameters
    usual = plain["kernel"].default

    def construct(self, kernel=usual, *, client=None, n_shards=None, rounds_per_epoch=None, **others):
        super(cls, self).__init__(kernel, **others)
        self.client = client
        self.n_shards = n_shards
        self.rounds_per_epoch = rounds_per_epoch

    made: Any = construct
    *own, _ = list(inspect.signature(construct).parameters.values())[2:]
    made.__signature__ = inspect.Signature([*plain.values(), *own])
    made.__name__, made.__qualname__ = "__init__", f"{cls.__qualname__}.__init__"
    cls.__init__ = made
    cls = words(cls)
    cls.__doc__ = cls.__doc__.replace("%(cluster)s", CLUSTER)
    return cls


def check_here(estimator: Any, not_here: dict[str, tuple[Any, str]]) -> None:
    """Raise for a parameter that a cluster does without: usual values, and why others cannot be."""
    for name, (usual, why) in not_here.items():
        value = getattr(estimator, name, usual)
        if value != usual:
            raise ValueError(
                f"{name}={value!r} does not work on a cluster, where {why}; set {name}={usual!r}."
            )


class OnCluster(BaseEstimator):
    """What has a client of a cluster for a parameter."""

    def __sklearn_clone__(self):
        # A client is a connection: the clone shares it.
        parameters = self.get_params(deep=False)
        copied = {
            name: value if name == "client" else clone(value, safe=False)
            for name, value in parameters.items()
        }
        return type(self)(**copied)

    def __getstate__(self):
        return {**super().__getstate__(), "client": None}

    def _computed(self, *collections):
        """What these collections are, on the client."""
        with nullcontext() if self.client is None else self.client.as_current():
            return dask.compute(*collections)

    def _connection(self) -> Client:
        client = self.client
        if client is None:
            try:
                client = get_client()
            except ValueError:
                raise ValueError(
                    "client=None, and this process has no Dask client; make one, for example "
                    'distributed.Client("tcp://scheduler:8786"), or Client() for this machine.'
                ) from None
        if not isinstance(client, Client) or client.asynchronous:
            raise ValueError(f"client={client!r} is not a synchronous distributed.Client; pass one.")
        if client.status != "running":
            raise ValueError(f"client={client!r} is {client.status}; connect another.")
        return client


class DaskLearner(OnCluster, Learner):
    """What both estimators share; not for use by itself."""

    _local: ClassVar[type[Learner]]
    _metric: ClassVar[Callable[..., float]]

    def to_local(self) -> Any:
        """The plain estimator: a copy with the same parameters and the same model."""
        parameters = self.get_params(deep=False).items()
        local = self._local(**{name: value for name, value in parameters if name not in OF_CLUSTER})
        local.__dict__.update(results(self))
        return local

    def partial_fit(self, *args, **options):
        """Raise: batches lie in the memory of one machine."""
        raise AttributeError(
            "partial_fit learns from batches in the memory of one machine; use "
            "to_local().partial_fit(X, y)."
        )

    # Prediction -------------------------------------------------------------------------------

    def predict(self, X):
        """Predict the target of every row.

        Parameters
        ----------
        X : Dask array or dataframe of shape (n_samples, n_features)
            Anything else is passed to the plain estimator.

        Returns
        -------
        y : Dask array of shape (n_samples,) or (n_samples, n_outputs), or series for a dataframe
            A dataframe, with a column an output or quantile, where there are several.
        """
        return self._lazily("predict", X)

    def _lazily(self, method, X):
        check_is_fitted(self)
        local = self.to_local()
        if not is_collection(X):
            return getattr(local, method)(X)
        model = delayed(_predictor(local), pure=False)
        nothing = _nothing(local, method)
        if isinstance(nothing, list):
            raise ValueError(
                f"{method} of several columns of classes is a list of arrays, which a collection "
                f"cannot be; use to_local().{method}(X) on rows in memory."
            )
        if isinstance(X, da.Array):
            X = X.rechunk({1: -1})
            if nothing.ndim == 1:
                return X.map_blocks(
                    _apply, model, method, drop_axis=1, dtype=nothing.dtype, meta=nothing
                )
            chunks = (X.chunks[0], (nothing.shape[1],))
            return X.map_blocks(_apply, model, method, chunks=chunks, dtype=nothing.dtype, meta=nothing)
        return X.map_partitions(_apply_labelled, model, method, meta=_labelled(nothing, X._meta))

    def score(self, X, y, sample_weight=None):
        """The plain estimator's score, of collections; targets come to the client, X does not."""
        if not is_collection(X):
            return self.to_local().score(X, y, sample_weight)
        y, predicted, sample_weight = self._computed(y, self.predict(X), sample_weight)
        check_scored(y, sample_weight, numeric=is_regressor(self))
        return self._scored(np.asarray(y), np.asarray(predicted), sample_weight)

    def _scored(self, y, predicted, sample_weight):
        """The score of such predictions."""
        return self._metric(y, predicted, sample_weight=sample_weight)

    # Training ---------------------------------------------------------------------------------

    def _settings(self) -> Settings:
        """The parameters, those of the cluster too, checked and frozen."""
        settings = super()._settings()
        check.check_count("n_shards", self.n_shards, optional=True)
        check.check_count("rounds_per_epoch", self.rounds_per_epoch, optional=True)
        if settings.map.n_components == "auto":
            raise ValueError(
                'n_components="auto" tries several on rows in memory, which a cluster\'s are not; set '
                "n_components to a number."
            )
        left = () if self.n_cells is None else ("tol",)
        check_here(self, {name: each for name, each in NOT_HERE.items() if name not in left})
        return settings

    def _fit_watched(self, X, y, sample_weight=None, *, watch=None, settled=None, **known):
        """Train on all rows while somebody looks on; ``known`` is of use on one machine alone.

        ``settled`` is called with the encoder of a table, and with the summary of its columns.
        """
        trained = self._train(X, y, sample_weight, watch, settled=settled)
        self._warn(*trained)
        return self

    def _train(
        self, X, y, sample_weight, watch=None, *, settled=None, **known
    ) -> tuple[Settings, Trained[Any]]:
        with all_or_nothing(self), shown(self.verbose):
            settings = self._settings()
            family_of(settings).check(settings)
            check_encoder(self.encoder)
            task, observer = self._task(settings), FitObserver(self, X, y, watch)
            cluster = Cluster(self._connection())
            given = isinstance(self.encoder, TableEncoder)
            with cluster.watching():
                data = load_rows(
                    settings,
                    task,
                    cluster,
                    X,
                    y,
                    sample_weight,
                    encoder=clone(self.encoder) if given else self.encoder,
                    in_units=self._in_units,
                )
                if settled is not None and data.encoder is not None:
                    settled(data.encoder, data.table)
                rows, encoder, learnt = data.rows, data.encoder, None
                own: Settings = settings
                looked_at: Observer = observer
                if settings.relevance is not None:
                    learnt = learnt_of(settings, data.task, rows)
                    own, looked_at = inner_settings(settings, learnt), WrappedObserver(observer, learnt)
                    data = data.mapped(cluster, learnt)
                fitted: Fitted
                if own.n_cells is None:
                    options = {"n_shards": self.n_shards, "rounds_per_epoch": self.rounds_per_epoch}
                    fitted = fit_shards(own, cluster, data, looked_at, **options)
                else:
                    fitted = fit_cells(own, cluster, data, looked_at)
            self._take_columns(encoder, X, rows.X.shape[1])
            self._adopt(fitted if learnt is None else FittedRelevance(learnt, fitted))
        return settings, Trained(self._fitted, rows, sampled=True)

    def _take_columns(self, encoder: TableEncoder | None, X: Any, width: int) -> None:
        """Take collections like X: tables as an encoder does, or rows of so many numbers."""
        if encoder is not None:
            self._take_encoder(encoder)
            return
        self.encoder_, self.n_features_in_ = None, width
        self.__dict__.pop("feature_names_in_", None)  # of an earlier fit
        names = column_names(X)
        if names is not None:
            self.feature_names_in_ = names


def _predictor(local):
    """A copy that carries no more than prediction needs: it travels with every graph."""
    return copied_with(local, fitted_of(local).bare())


def _nothing(model, method):
    """What a method returns of no rows, whatever columns they would have."""
    return model._finisher(method)(np.zeros((0, fitted_of(model).task.n_models)))


def _apply(block, model, method):
    """The predictions of a block; of none for an empty one, which the plain estimator refuses."""
    return _nothing(model, method) if block.shape[0] == 0 else getattr(model, method)(block)


def _apply_labelled(frame, model, method):
    return _labelled(_apply(frame, model, method), frame)


def _labelled(values, frame):
    """The values of rows, with the index of these rows."""
    kind = pd.Series if values.ndim == 1 else pd.DataFrame
    return kind(values, index=frame.index)
