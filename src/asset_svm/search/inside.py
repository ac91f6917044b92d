"""The door to the inside of a search, for commands."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from asset_svm.data.scan import Scanned
from asset_svm.data.source import RowSource
from asset_svm.estimators.learner import Learner
from asset_svm.search.base import SearchEstimator
from asset_svm.search.journal import Journal
from asset_svm.storage.checkpoint import Checkpoint, SavedRun


def check_parameters(search: SearchEstimator) -> None:
    """Raise for the first parameter of a search that cannot be."""
    search._checked()


def learner_of(search: SearchEstimator) -> Learner:
    """The estimator that is searched for, with the parameters it shares with the search."""
    return search._learner()


def search_watched(
    search: SearchEstimator, X: Any, y: Any, *, weight: Any = None, **options: Any
) -> None:
    """Search while somebody looks on; options as for ``SearchEstimator._fit_watched``."""
    search._fit_watched(X, y, weight, **options)


def scanned_for(search: SearchEstimator, source: RowSource, seed: int, *, fingerprint: bool) -> Scanned:
    """One pass over the rows that a search looks at, and learns from."""
    return search._looked_at(source, None, None, seed, fingerprint=fingerprint).scanned


def journal_of(
    search: SearchEstimator,
    checkpoint: Checkpoint,
    scanned: Scanned,
    resumed: SavedRun | None,
    seed: int,
) -> Journal:
    """The journal of a search over these rows; ``resumed`` is the one to go on with, if any."""
    return Journal.of(search, checkpoint, scanned, resumed, seed=seed, races=races(search))


def gammas_of(search: SearchEstimator) -> Any:
    """What a grid has for ``gammas``: None where they are not searched."""
    return search._gammas


def table_of(search: SearchEstimator) -> Any:
    """The table of a grid whose model others train; None of a race."""
    return search.__dict__.get("_table")


def scorer_of(search: SearchEstimator) -> Any:
    """What a search scores models by."""
    return search._checked()[2]


def races(search: SearchEstimator) -> bool:
    """Whether a search is a race: nothing of a grid is given."""
    return search._races


def leaderboard(search: SearchEstimator) -> dict[str, list[Any]]:
    """The columns of ``leaderboard_``, which needs pandas."""
    return search._board


def learnt_rows(search: SearchEstimator) -> int:
    """The rows that the best model of a race has learnt from: fewer than all where time was short."""
    return search._learnt_rows


def search_told(search: SearchEstimator, X: Any, y: Any, told: Callable[[Any], None]) -> None:
    """Search on a cluster while somebody is told of every heat."""
    search._fit_told(X, y, None, told)


def looked_rows(search: SearchEstimator) -> int:
    """The rows that a search on a cluster has looked at: a sample of those that train the model."""
    return search._looked_rows
