"""The door to the inside of a search, for commands."""

from __future__ import annotations

from typing import Any

from asset_svm.search.base import SearchEstimator


def check_parameters(search: SearchEstimator) -> None:
    """Raise for the first parameter of a search that cannot be."""
    search._checked()


def search_watched(search: SearchEstimator, X: Any, y: Any, **options: Any) -> None:
    """Search while somebody looks on; options as for ``SearchEstimator._fit_watched``."""
    search._fit_watched(X, y, None, **options)
