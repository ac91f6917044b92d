"""The heats of a search on a cluster: the rows that they look at, and who runs which.

A heat is a task of Dask; the next one is sent to whoever is free, as long as there is time. The rows
are joined on the cluster, and known by where they come from, so that a lost worker costs time alone.
A heat whose workers die again and again, as those do that it takes too much memory of, is left behind.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any
from uuid import uuid4

import numpy as np
from dask.delayed import Delayed, delayed
from distributed import Future
from sklearn.base import clone

from asset_svm import clock
from asset_svm.arrays import Array
from asset_svm.dask.cluster import Cluster, finished
from asset_svm.dask.exceptions import GivenUpError
from asset_svm.dask.lying import Lying
from asset_svm.dask.partitions import Part
from asset_svm.families.observing import logger
from asset_svm.search.base import SearchEstimator
from asset_svm.search.heats import (
    FIRST_ROWS,
    OF_EVERY_CLASS,
    Heat,
    HeatResult,
    heats_of_grid,
    run_heat,
    some_rows,
)
from asset_svm.search.inside import races

LOOKED_AT = 200_000
"""At most so many rows are looked at, and some of classes that are rare among them."""
SAMPLE_SHARE = 8
"""They take this part of the memory that a worker has for a thread, at most."""
LEAST_SECONDS = 2.0
"""A heat of a race has so much of a time limit, if it has any: less finds nothing."""

Told = Callable[[HeatResult], None]


class Heats:
    """The heats of a search, on the workers that there are.

    Parameters
    ----------
    cluster : Cluster
    search : SearchEstimator
    n_rows : int
        Of the collections.
    in_cells : bool
        Whether models in cells are open.
    begun : float
    told : callable
        Called with the result of every heat, as it comes.
    """

    def __init__(
        self,
        cluster: Cluster,
        search: SearchEstimator,
        n_rows: int,
        in_cells: bool,
        begun: float,
        told: Told,
    ):
        self.cluster, self.search, self.n_rows, self.in_cells = cluster, search, n_rows, in_cells
        self.begun, self.told = begun, told
        self.limit: float = search.get_params(deep=False)["time_limit"] or float("inf")
        self.races, self.sent, self.id = races(search), 0, uuid4().hex[:8]
        self.survived = False
        """Whether a worker has brought a heat to its end."""

    def left(self, share: float = 1.0) -> float:
        """The seconds until this part of the time limit is over."""
        return share * self.limit - (clock.now() - self.begun)

    @property
    def late(self) -> bool:
        """Whether there is no time for another heat."""
        return self.left() < (LEAST_SECONDS if self.races else 0.0)

    def run(self, heats: Sequence[Heat], sample: Delayed, share: float = 1.0) -> list[HeatResult]:
        """What heats find, in their order; ``share`` is the part of the time that may be over then.

        Those that there is no time for are left out, but for the first; one that Dask has given up is
        left behind, unless no other has come to its end until then.
        """
        given_up: GivenUpError | None = None
        waiting = dict(enumerate(heats))
        running: dict[Future, int] = {}
        found: dict[int, HeatResult] = {}
        while waiting or running:
            workers = self.cluster.workers() if running else self.cluster.some_workers()
            slots = sum(workers.values())
            while waiting and len(running) < slots:
                begins = max(self._share(len(waiting) + len(running), slots, share), 0.0)
                if (found or running) and begins < (LEAST_SECONDS if self.races else 1e-9):
                    waiting.clear()
                    break
                number = next(iter(waiting))
                most = min(len(heats), len(waiting) + len(running))
                task = self._task(waiting.pop(number), sample, begins, _threads(workers, most))
                running[task] = number
            for future in finished(list(running)) if running else ():
                number = running.pop(future)
                try:
                    found[number] = self.cluster.result(future)
                    self.survived = True
                except GivenUpError as error:
                    given_up, found[number] = error, _left_behind(heats[number], error)
                self.told(found[number])
        if given_up is not None and not self.survived:
            raise given_up
        return [found[number] for number in sorted(found)]

    def _share(self, heats: int, slots: int, share: float) -> float:
        """The seconds of the next heat, where all that run and wait shall have as many."""
        each = self.left(share) / -(-heats // slots)
        if self.races and each < LEAST_SECONDS:  # fewer of them, in full
            each = min(self.left(share), LEAST_SECONDS)
        return each

    def _task(self, heat: Heat, sample: Delayed, seconds: float, threads: int) -> Future:
        """A heat that a worker will run."""
        limit = None if self.limit == float("inf") else max(seconds, 1e-3)
        search = clone(self.search).set_params(n_jobs=threads, time_limit=limit)
        name = f"asset_heat-{self.id}-{self.sent}"
        self.sent += 1
        look = delayed(look_at, pure=False)
        task = look(search, heat, sample, self.n_rows, self.in_cells, dask_key_name=name)
        return self.cluster.client.compute(task)


def _left_behind(heat: Heat, error: GivenUpError) -> HeatResult:
    """What is told of a heat that Dask has given up."""
    found = HeatResult(heat, 0, 0.0, failure="its workers died again and again")
    logger.warning("%s; the search goes on without it: %s", found, error)
    return found


def _threads(workers: dict[str, int], heats: int) -> int:
    """The threads of a heat, of so many beside each other."""
    return max(min(workers.values()) // -(-heats // len(workers)), 1)


def sampled(cluster: Cluster, lying: Lying, seed: int, *, numeric: bool) -> tuple[Delayed, int]:
    """The rows that are looked at, joined where a worker has room for them, and their number."""
    total = lying.n_rows
    each = sum(summary.n_bytes for summary in lying.summaries) / total
    room = int(cluster.thread_memory() / SAMPLE_SHARE / each)
    count = min(total, LOOKED_AT, max(room, FIRST_ROWS))
    rng = np.random.default_rng([seed, 25])
    chosen = np.sort(rng.choice(total, size=count, replace=False))
    rare = {} if numeric or count == total else _rare_classes(lying, count / total)
    sample = lying.sample_there(cluster, chosen, rare)
    (looked,) = cluster.gather(cluster.client.compute([delayed(rows_of, pure=False)(sample)]))
    return sample, looked


def _rare_classes(lying: Lying, share: float) -> dict[int, Array]:
    """The classes of parts that a sample of this share of the rows may miss, by part."""
    if lying.filled[0].outputs > 1:
        return {}
    totals: dict[Any, int] = {}
    for summary in lying.filled:
        for label, own in zip(summary.values, summary.value_counts, strict=True):
            totals[label] = totals.get(label, 0) + int(own)
    wanted = {
        label: OF_EVERY_CLASS for label, own in totals.items() if share * own < 2 * OF_EVERY_CLASS
    }
    found: dict[int, Array] = {}
    for number, summary in enumerate(lying.summaries):
        here = [
            place
            for place, label in enumerate(summary.values)
            if summary.n_rows and wanted.get(label, 0) > 0
        ]
        for place in here:
            wanted[summary.values[place]] -= int(summary.value_counts[place])
        if here:
            found[number] = summary.values[here]
    return found


# On workers ---------------------------------------------------------------------------------------


def rows_of(sample: Part) -> int:
    """The number of rows."""
    return len(sample.y)


def grid_heats(search: SearchEstimator, sample: Part, n_rows: int) -> list[Heat]:
    """The heats of a grid on these rows."""
    return heats_of_grid(search, sample.X, sample.y, sample.weight, n_rows)


def look_at(
    search: SearchEstimator, heat: Heat, sample: Part, n_rows: int, in_cells: bool
) -> HeatResult:
    """What a heat finds of these rows."""
    return run_heat(search, heat, sample.X, sample.y, sample.weight, n_rows, in_cells=in_cells)


def some_of(sample: Part, count: int, seed: int, numeric: bool) -> Part:
    """So many of the rows, of every class some."""
    return sample.take(some_rows(sample.y, count, seed, numeric=numeric))
