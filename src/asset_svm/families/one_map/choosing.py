"""The choice of a map: its components counted where nobody says how many, then drawn."""

from __future__ import annotations

from functools import partial
from typing import Any

from asset_svm.backends.base import Backend
from asset_svm.families.one_map.components import find_components
from asset_svm.families.one_map.maps import draw_map
from asset_svm.families.one_map.margin import margin_sampler
from asset_svm.families.rows import Rows
from asset_svm.features import FeatureMap
from asset_svm.settings import Settings
from asset_svm.tasks import Task


def choose_map(
    settings: Settings,
    backend: Backend,
    rows: Rows,
    task: Task,
    seed: int,
    deadline: float = float("inf"),
) -> tuple[FeatureMap, list[dict[str, Any]] | None]:
    """The map for these rows, and a record of each trial that led to it, where there were any."""
    count, records = None, None
    if isinstance(settings.approximation, str) and settings.map.n_components == "auto":
        count, records = find_components(settings, backend, rows, task, seed, deadline)
    margin = partial(margin_sampler, settings, backend, rows, task, seed)
    phi = draw_map(settings, backend, rows.X, rows.uneven, seed, n_components=count, margin=margin)
    return phi, records
