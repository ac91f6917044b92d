"""The choice of a map, and of its components, counted by trials where n_components="auto".

Twice as many components, as long as held-out rows are predicted better for it:

    s = 256: a quick fit, its losses on the held-out rows
    twice as many: better than the best so far by more than a standard error of the difference, row by
    row? Go on until they are not (among up to 1024, where a trial is cheap, until twice not)
    the fit on all rows has the best

A trial sees at most ``TRIAL_ROWS`` rows. Doubling ends before the mapped rows of the fit outgrow
``memory_limit`` (8 GiB without one, whatever is free), before the time left is too short for one more
trial and the fit, and at ``MOST``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from asset_svm import clock
from asset_svm.arrays import Array
from asset_svm.backends.base import Backend
from asset_svm.families.one_map.margin import draw_map_of
from asset_svm.families.one_map.trial import some_of, trial
from asset_svm.families.rows import Rows
from asset_svm.features import FeatureMap
from asset_svm.memory import available_memory, planned_memory, require_memory
from asset_svm.settings import Settings
from asset_svm.settings.landmarks import largest_count
from asset_svm.tasks import Task

FIRST, MOST = 256, 16_384
TRIAL_ROWS = 100_000
PATIENT = 1024
"""Up to so many components one failure is forgiven: too few to begin with can look like enough."""
GROWTH = 3.0
"""What twice the components cost, in time: between 2 (kernel values) and 4 (features)."""
FACTOR_BYTES = 24
"""Times s^2: what the kernel matrix of s landmarks and its factor take."""


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
    return draw_map_of(settings, backend, rows, task, seed, count), records


def find_components(
    settings: Settings,
    backend: Backend,
    rows: Rows,
    task: Task,
    seed: int,
    deadline: float = float("inf"),
) -> tuple[int, list[dict[str, Any]]]:
    """The number of components, and a record of each trial."""
    most = _most(settings, rows)
    if most <= FIRST:
        return most, []
    kept, out = task.split(rows.y, settings.validation_fraction, seed)
    some = rows.take(kept)
    some = some.take(some_of(len(some.y), TRIAL_ROWS, np.random.default_rng([seed, 6])))
    encoded = task.settled(some.y, some.weight).encode(some.y)
    X_out, y_out, weight = rows.X[out], rows.y[out], rows.weight[out] / rows.weight[out].sum()
    most = min(most, len(some.y))
    count, chosen, least, failures = FIRST, FIRST, None, 0
    lam = settings.lam_of(rows.weight.sum())
    records: list[dict[str, Any]] = []
    while True:
        require_memory(
            FACTOR_BYTES * count**2,
            available_memory(),
            f'n_components={count}, the next that n_components="auto" tries, takes',
            "set n_components to a number, or memory_limit to what it may take",
        )
        begun = clock.now()
        phi = draw_map_of(settings, backend, some, task, seed, count)
        decisions = trial(settings, backend, phi, some, encoded, lam, seed).by(backend, X_out)
        seconds = clock.now() - begun
        score = task.score(decisions, y_out, weight)
        records.append({"n_components": count, "validation_score": score, "seconds": seconds})
        losses = task.row_losses(decisions, y_out)
        if least is None or clearly_less(losses, least, weight):
            chosen, least, failures = count, losses, 0
        else:
            failures += 1
        ahead = GROWTH * seconds * (1.0 + 2.0 * len(rows.y) / len(some.y))
        late = clock.now() + ahead > deadline
        if failures > (count <= PATIENT) or count == most or late:
            return chosen, records
        count = min(2 * count, most)


def clearly_less(losses: Array, others: Array, weight: Array, errors: float = 1.0) -> bool:
    """Whether the mean loss is smaller by more than so many standard errors of the difference.

    ``weight`` adds up to 1.
    """
    gain = others - losses
    mean = float(weight @ gain)
    return mean > errors * float(np.sqrt(weight**2 @ (gain - mean) ** 2))


def _most(settings: Settings, rows: Rows) -> int:
    """The largest number of components that memory, rows and ``MOST`` allow."""
    row_bytes = len(rows.y) * rows.X.dtype.itemsize
    # s row_bytes + FACTOR_BYTES s^2 <= memory
    root = np.sqrt(row_bytes**2 + 4.0 * FACTOR_BYTES * planned_memory(settings.memory_limit))
    fitting = int((root - row_bytes) / (2 * FACTOR_BYTES))
    most = min(MOST, max(fitting, FIRST))
    if settings.is_nystroem:
        most = min(most, largest_count(settings.map.kernel, rows.X, rows.uneven))
    return most
