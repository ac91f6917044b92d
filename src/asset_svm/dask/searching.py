"""Searches on a cluster: workers look at a sample of the rows, all rows train the best model.

lie       partitions are checked where they lie
sample    some of their rows are joined on the cluster, and known by where they come from
heats     parts of the search, a task each: who is free takes the next one
train     the best parameters, by the estimator of the cluster, on all rows
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from dask.delayed import delayed
from sklearn.base import clone, is_regressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import PredefinedSplit

from asset_svm import clock
from asset_svm.dask.cluster import Cluster
from asset_svm.dask.fitting import OF_CLUSTER, DaskLearner, OnCluster, check_here
from asset_svm.dask.heats import Heats, Told, grid_heats, sampled, some_of
from asset_svm.dask.lying import lie
from asset_svm.dask.partitions import is_collection
from asset_svm.estimators.encoded import check_encoder
from asset_svm.estimators.inside import settings_of
from asset_svm.estimators.tables import TableEncoder
from asset_svm.estimators.validation import all_or_nothing, forget, results
from asset_svm.exceptions import warn_caller
from asset_svm.families.observing import logger, shown
from asset_svm.memory import planned_memory
from asset_svm.search.all_rows import CELL_BYTES
from asset_svm.search.base import SearchEstimator
from asset_svm.search.heats import (
    FIRST_ROWS,
    HeatResult,
    going_on,
    heats_of_race,
    joined_board,
    joined_results,
    joined_table,
    next_heat,
    ranked_heats,
)
from asset_svm.search.inside import check_parameters, learner_of, races, scorer_of
from asset_svm.search.racing import one_seed
from asset_svm.settings import checks as check

FIRST_SHARE = 0.4
"""The part of a time limit that the first heats of a race have, where others follow."""
NOT_HERE = {
    "probability": (False, "the decisions that a race holds out stay with the workers"),
    "intervals": (False, "no rows are kept out of a fit"),
    "keep_path": (False, "coefficients of candidates stay with the workers"),
}
"""Parameters that a search on a cluster does without: their usual values, and why."""


class DaskSearch(OnCluster, SearchEstimator):
    """What searches on a cluster share; not for use by itself."""

    _local: ClassVar[type[SearchEstimator]]
    _trained: ClassVar[type[DaskLearner]]

    @property
    def _races(self) -> bool:
        return races(self._plain())

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
        """The search of all heats, of which and of the final model all is checked that can be."""
        check_here(self, NOT_HERE)
        if not (self.cv is None or check.is_number(self.cv) or hasattr(self.cv, "split")) or (
            isinstance(self.cv, PredefinedSplit)
        ):
            raise ValueError(
                "cv says which rows are held out, and a search on a cluster looks at a sample of them; "
                "set cv to a number of folds, a fraction or another splitter."
            )
        check_parameters(self._plain())
        check_encoder(self.encoder)
        check.check_flag("ensemble", self.ensemble)
        search = self._plain(
            random_state=one_seed(self.random_state), refit=False, ensemble=False, verbose=0
        )
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

    def _fit_told(self, X, y, sample_weight, told: Told) -> Any:
        """``fit``, while somebody is told of every heat."""
        with all_or_nothing(self), shown(self.verbose):
            begun = clock.now()
            search = self._checked_search()
            forget(self)
            cluster = Cluster(self._connection())
            with cluster.watching():
                found, cut = self._found(search, cluster, X, y, sample_weight, begun, told)
            best = ranked_heats(found)[0]
            for name, value in best.seen.items():
                setattr(self, name, value)
            if races(search):
                self.cv_results_, self.scorer_ = joined_results(found), scorer_of(search)
                self._board = joined_board(found, self.cv_results_)
                self.ensemble_ = [(self._board["candidate"][0], 1.0)]
                self.best_index_ = int(np.argmin(self.cv_results_["rank_test_score"]))
                self.best_params_, self.best_score_ = best.params, best.score
                self.best_at_edge_ = {}
            else:
                table = joined_table(found)
                table.late |= cut
                self._store(table, scorer_of(search))
                if not table.late:
                    self._tell_of_edges()
            self._default_score = self.scoring is None
            self.n_splits_, self.search_time_ = best.n_splits, clock.now() - begun
            if self.refit:
                refitted = clock.now()
                model = self._final(search, self.best_params_).fit(X, y, sample_weight)
                self.best_estimator_, self.n_iter_ = model, model.n_iter_
                self.refit_time_ = clock.now() - refitted
                self._take_names(model)
                if not races(search):
                    self.encoder_ = model.encoder_
        return self

    def _found(
        self,
        search: SearchEstimator,
        cluster: Cluster,
        X: Any,
        y: Any,
        weight: Any,
        begun: float,
        told: Told,
    ) -> tuple[list[HeatResult], bool]:
        """What all heats have found, and whether some were left out for want of time.

        Notes how many rows were looked at, and how many there are.
        """
        encoder = search.get_params(deep=False)["encoder"]
        given = clone(encoder) if isinstance(encoder, TableEncoder) else encoder
        numeric, seed = is_regressor(self), search.get_params(deep=False)["random_state"]
        lying = lie(cluster, X, y, weight, numeric=numeric, encoder=given)
        n_rows, n_features = lying.n_rows, lying.filled[0].n_features
        sparse, n_bytes = lying.filled[0].sparse, sum(s.n_bytes for s in lying.summaries)
        sample, looked = sampled(cluster, lying, seed, numeric=numeric)
        self._looked_rows, self._learnt_rows = looked, n_rows
        logger.info("looking at %d of %d rows", looked, n_rows)
        del lying  # whose rows need not lie there while the sample is looked at
        in_cells = n_bytes <= CELL_BYTES * planned_memory(self.memory_limit)
        heats = Heats(cluster, search, n_rows, in_cells, begun, told)
        if not races(search):
            make = delayed(grid_heats, pure=False)(search, sample, n_rows)
            open_ = cluster.gather(cluster.client.compute([make]))[0]
            found = heats.run(open_, sample)
            while (more := next_heat(search, found, len(open_))) and not heats.late:
                found += heats.run([more], sample)
            return found, len(found) < len(open_)
        open_ = heats_of_race(search, n_features, sparse=sparse)
        if len(open_) == 1 or looked <= FIRST_ROWS:
            found = heats.run(open_, sample)
        else:
            few = delayed(some_of, pure=False)(sample, FIRST_ROWS, seed, numeric)
            (few,) = cluster.client.persist([few])
            found = heats.run(open_, few, FIRST_SHARE)
            later = going_on(found)
            open_ = [*open_, *later]
            if not heats.late:
                found += heats.run(later, sample)
        missing = len(open_) - len(found)
        if missing:
            warn_caller(
                f"time_limit={self.time_limit:g} ended the search early: {missing} of {len(open_)} "
                "heats have not begun; raise it, or add workers.",
                ConvergenceWarning,
            )
        return found, missing > 0

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
        if is_collection(X) and self._default_score:
            return best.score(X, y, sample_weight)
        X, y, sample_weight = self._computed(X, y, sample_weight)
        return self.to_local().score(X, y, sample_weight)


def _log_heat(found: HeatResult) -> None:
    logger.info("%s", found)
