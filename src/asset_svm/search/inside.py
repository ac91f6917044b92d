"""The door to the inside of a search, for commands."""

from __future__ import annotations

from typing import Any

from asset_svm.estimators.learner import Learner
from asset_svm.search.base import SearchEstimator


def check_parameters(search: SearchEstimator) -> None:
    """Raise for the first parameter of a search that cannot be."""
    search._checked()


def learner_of(search: SearchEstimator) -> Learner:
    """The estimator that is searched for, with the parameters it shares with the search."""
    return search._learner()


def search_watched(search: SearchEstimator, X: Any, y: Any, **options: Any) -> None:
    """Search while somebody looks on; options as for ``SearchEstimator._fit_watched``."""
    search._fit_watched(X, y, None, **options)


def races(search: SearchEstimator) -> bool:
    """Whether a search is a race: nothing of a grid is given."""
    return search._races


def leaderboard(search: SearchEstimator) -> dict[str, list[Any]]:
    """The columns of ``leaderboard_``, which needs pandas."""
    return search._board


def learnt_rows(search: SearchEstimator) -> int:
    """The rows that the best model of a race has learnt from: fewer than all where time was short."""
    return search._learnt_rows
