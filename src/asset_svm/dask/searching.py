"""Searches on a cluster: workers look at a sample of the rows, all rows train the best model.

lie       partitions are checked where they lie
sample    some of their rows are joined on the cluster, and known by where they come from
heats     parts of the search, a task each: who is free takes the next one
train     the best parameters, by the estimator of the cluster, on all rows
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar
from uuid import uuid4

import numpy as np
from dask.delayed import Delayed, delayed
from sklearn.base import clone, is_regressor

from asset_svm import clock
from asset_svm.dask.cluster import Cluster
from asset_svm.dask.fitting import OF_CLUSTER, DaskLearner, OnCluster
from asset_svm.dask.lying import Lying, lie
from asset_svm.dask.partitions import Part, is_collection
from asset_svm.estimators.inside import settings_of
from asset_svm.estimators.tables import TableEncoder
from asset_svm.estimators.validation import all_or_nothing, forget, results
from asset_svm.families.observing import logger, shown
from asset_svm.search.base import SearchEstimator
from asset_svm.search.heats import (
    FIRST_ROWS,
    FIRST_SHARE,
    Heat,
    HeatResult,
    going_on,
    heats_of_grid,
    heats_of_race,
    joined_board,
    joined_results,
    next_heat,
    ranked_heats,
    run_heat,
    some_rows,
)
from asset_svm.search.inside import check_parameters, learner_of, races, scorer_of
from asset_svm.search.racing import one_seed
from asset_svm.settings import checks as check

LOOKED_AT = 200_000
"""At most so many rows are looked at."""
SAMPLE_SHARE = 8
"""They take this part of the memory that a worker has for a thread, at most."""
LEAST_SHARE = 0.1
"""The part of a time limit that later heats have in any case."""
NOT_HERE = {
    "probability": (False, "the decisions that a race holds out stay with the workers; calibrate "
                    "to_local().best_estimator_ with CalibratedClassifierCV"),
    "intervals": (False, "no rows are kept out of a fit"),
    "keep_path": (False, "coefficients of candidates stay with the workers"),
}  # fmt: skip
"""Parameters that a search on a cluster does without: their usual values, and why."""


class DaskSearch(OnCluster, SearchEstimator):
    """What searches on a cluster share; not for use by itself."""

    _local: ClassVar[type[SearchEstimator]]
    _trained: ClassVar[type[DaskLearner]]

    def to_local(self) -> Any:
        """The plain search: the same parameters, results and model, which is a plain estimator."""
        local = self._plain()
        local.__dict__.update(results(self))
        if hasattr(self, "best_estimator_"):
            local.best_estimator_ = self.best_estimator_.to_local()
        return local

    def _plain(self, **others: Any) -> SearchEstimator:
        """The plain search with these parameters."""
        given = self.get_params(deep=False).items()
        return self._local(**({name: own for name, own in given if name not in OF_CLUSTER} | others))

    def _checked_search(self) -> SearchEstimator:
        """The plain search, of which and of the final model all is checked that can be."""
        for name, (usual, why) in NOT_HERE.items():
            value = getattr(self, name, usual)
            if value != usual:
                raise ValueError(
                    f"{name}={value!r} does not work on a cluster: {why}. Set {name}={usual!r}."
                )
        if not (self.cv is None or check.is_number(self.cv) or hasattr(self.cv, "split")):
            raise ValueError(
                "cv has pairs of indices, and a search on a cluster looks at a sample of the rows; set "
                "cv to a number of folds, a fraction or a splitter."
            )
        search = self._plain(random_state=one_seed(self.random_state), refit=False, verbose=0)
        check_parameters(search)
        settings_of(self._final(search, {}))
        return search

    def _final(self, search: SearchEstimator, best: dict[str, Any]) -> DaskLearner:
        """The estimator that all rows train."""
        known = learner_of(search).get_params(deep=False) | best
        own = {name: getattr(self, name) for name in OF_CLUSTER}
        return self._trained(**(known | own | {"verbose": self.verbose}))

    # The search -------------------------------------------------------------------------------

    def fit(self, X, y=None, sample_weight=None, groups=None):
        """Search on a sample of the rows, and train the best model on all of them.

        Parameters
        ----------
        X : Dask array or dataframe of shape (n_samples, n_features)
        y : Dask array, series or dataframe
        sample_weight : Dask array or series of shape (n_samples,), optional
            Of the rows that are learnt from; scores do not weigh rows.
        groups : None
            Not on a cluster.

        Returns
        -------
        self
        """
        if groups is not None:
            raise ValueError(
                "groups are not kept together on a cluster, where a sample of the rows is looked at; "
                "leave them out, or search in memory."
            )
        return self._fit_told(X, y, sample_weight, _log_heat)

    def _fit_told(self, X, y, sample_weight, told: Callable[[HeatResult], None]) -> Any:
        """``fit``, while somebody is told of every heat."""
        with all_or_nothing(self), shown(self.verbose):
            begun = clock.now()
            search = self._checked_search()
            forget(self)
            cluster = Cluster(self._connection())
            with cluster.watching():
                found = self._found(search, cluster, X, y, sample_weight, begun, told)
            ranked = ranked_heats(found)
            self.cv_results_, self.scorer_ = joined_results(found), scorer_of(search)
            if races(search):
                self._board = joined_board(found, self.cv_results_)
                self.ensemble_ = [(self._board["candidate"][0], 1.0)]
            self.best_at_edge_ = {} if races(search) else _edges(found)
            self.best_index_ = int(np.argmin(self.cv_results_["rank_test_score"]))
            self.best_params_, self.best_score_ = ranked[0].params, ranked[0].score
            self.n_splits_, self.search_time_ = ranked[0].n_splits, clock.now() - begun
            if self.refit:
                refitted = clock.now()
                best = self._final(search, self.best_params_).fit(X, y, sample_weight)
                self.best_estimator_, self.n_iter_ = best, best.n_iter_
                self.refit_time_ = clock.now() - refitted
                self._take_names(best)
        return self

    def _found(
        self,
        search: SearchEstimator,
        cluster: Cluster,
        X: Any,
        y: Any,
        weight: Any,
        begun: float,
        told: Callable[[HeatResult], None],
    ) -> list[HeatResult]:
        """What all heats have found; notes how many rows were looked at, and how many there are."""
        encoder = search.get_params(deep=False)["encoder"]
        given = clone(encoder) if isinstance(encoder, TableEncoder) else encoder
        numeric = is_regressor(self)
        lying = lie(cluster, X, y, weight, numeric=numeric, encoder=given)
        n_rows, n_features = lying.n_rows, lying.filled[0].n_features
        sparse = lying.filled[0].sparse
        sample, looked = _sampled(cluster, lying, search.random_state)
        self._looked_rows, self._learnt_rows = looked, n_rows
        heats = _Heats(cluster, search, n_rows, begun, told)
        del lying  # whose rows need not lie there while the sample is looked at
        if not races(search):
            first = delayed(grid_heats, pure=False)(search, sample)
            found = heats.run(cluster.gather(cluster.client.compute([first]))[0], sample, 1.0)
            while (more := next_heat(search, found)) is not None:
                found += heats.run([more], sample, 1.0)
            return found
        open_ = heats_of_race(search, n_features, sparse=sparse)
        if len(open_) == 1 or looked <= FIRST_ROWS:
            return heats.run(open_, sample, 1.0)
        few = delayed(some_of, pure=False)(sample, FIRST_ROWS, search.random_state, numeric)
        (few,) = cluster.client.persist([few])
        found = heats.run(open_, few, FIRST_SHARE)
        return found + heats.run(going_on(found), sample, 1.0)

    # The model --------------------------------------------------------------------------------

    def _seen(self, X):
        """X; of collections the estimator of the cluster looks at the columns."""
        return X

    def score(self, X, y, sample_weight=None):
        """The score of the best model; with a ``scoring`` of your own the rows come to the client.

        Parameters
        ----------
        X, y : Dask collections, or anything else for the plain estimator
        sample_weight : Dask array or series of shape (n_samples,), optional

        Returns
        -------
        score : float
        """
        best = self._best("score")
        if is_collection(X) and self.scoring is None:
            return best.score(X, y, sample_weight)
        X, y, sample_weight = self._computed(X, y, sample_weight)
        return self.to_local().score(X, y, sample_weight)


class _Heats:
    """The heats of a search, on the workers that there are.

    Parameters
    ----------
    cluster : Cluster
    search : SearchEstimator
    n_rows : int
        Of the collections.
    begun : float
    told : callable
        Called with the result of every heat, as it comes.
    """

    def __init__(
        self,
        cluster: Cluster,
        search: SearchEstimator,
        n_rows: int,
        begun: float,
        told: Callable[[HeatResult], None],
    ):
        self.cluster, self.search, self.n_rows, self.begun = cluster, search, n_rows, begun
        self.told = told
        self.done, self.id = 0, uuid4().hex[:8]

    def run(self, heats: Sequence[Heat], sample: Delayed, share: float) -> list[HeatResult]:
        """What heats find, in their order; ``share`` is the part of the time that may be over then."""
        threads = list(self.cluster.some_workers().values())
        slots = sum(threads)
        own = {"n_jobs": max(min(slots // len(heats), *threads), 1)}
        limit = self.search.time_limit
        if limit is not None:
            left = max(share * limit - (clock.now() - self.begun), LEAST_SHARE * limit)
            own["time_limit"] = left / -(-len(heats) // slots)
        search = clone(self.search).set_params(**own)
        look = delayed(look_at, pure=False)
        tasks = [
            look(search, heat, sample, self.n_rows, dask_key_name=f"asset_heat-{self.id}-{number}")
            for number, heat in enumerate(heats, self.done)
        ]
        self.done += len(heats)
        return self.cluster.gather(self.cluster.client.compute(tasks), self.told)


def _log_heat(found: HeatResult) -> None:
    logger.info("%s", found)


def _sampled(cluster: Cluster, lying: Lying, seed: int) -> tuple[Delayed, int]:
    """The rows that are looked at, joined where a worker has room for them, and their number."""
    total = lying.n_rows
    each = sum(summary.n_bytes for summary in lying.summaries) / total
    room = int(cluster.thread_memory() / SAMPLE_SHARE / each)
    count = min(total, LOOKED_AT, max(room, FIRST_ROWS))
    rng = np.random.default_rng([seed, 25])
    chosen = np.sort(rng.choice(total, size=count, replace=False))
    return lying.sample_there(cluster, chosen), count


def _edges(found: Sequence[HeatResult]) -> dict[str, str]:
    """The parameters whose best value is the first or last of those to try, of three or more."""
    best, edges = ranked_heats(found)[0].params, {}
    tried = [one for each in found if np.isfinite(each.score) for one in each.results["params"]]
    for name in ("C", "gamma", "epsilon"):
        values = sorted({one[name] for one in tried if name in one})
        if len(values) > 2 and best[name] in (values[0], values[-1]):
            edges[name] = "smallest" if best[name] == values[0] else "largest"
    return edges


# On workers ---------------------------------------------------------------------------------------


def grid_heats(search: SearchEstimator, sample: Part) -> list[Heat]:
    """The heats of a grid on these rows."""
    return heats_of_grid(search, sample.X, sample.y, sample.weight)


def look_at(search: SearchEstimator, heat: Heat, sample: Part, n_rows: int) -> HeatResult:
    """What a heat finds of these rows."""
    return run_heat(search, heat, sample.X, sample.y, sample.weight, n_rows)


def some_of(sample: Part, count: int, seed: int, numeric: bool) -> Part:
    """So many of the rows, of every class some."""
    return sample.take(some_rows(sample.y, count, seed, numeric=numeric))
