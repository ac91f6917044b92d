"""Dask clusters of tests, and what is done to them at a given moment of a fit."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import dask
import pytest
from distributed import Future, LocalCluster

from asset_svm.dask import cells, cluster, heats


@contextmanager
def two_workers() -> Iterator[LocalCluster]:
    """Two workers, each a process of one thread with a nanny; all on the loopback."""
    options = {"distributed.worker.daemon": True, "distributed.admin.log-format": "%(message)s"}
    with (
        dask.config.set(options),
        LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            host="127.0.0.1",
            dashboard_address="127.0.0.1:0",
            memory_limit="1GiB",
            silence_logs="CRITICAL",
        ) as workers,
    ):
        yield workers  # fmt: skip


@contextmanager
def when_waiting(is_due: Callable[[str], bool], act: Callable[[], Any]) -> Iterator[None]:
    """Do something when a fit inside begins to wait for such a task, by its key; one must come."""
    finished, done = cluster.finished, []

    def watched(futures: Sequence[Future]) -> set[Future]:
        if not done and any(is_due(str(future.key)) for future in futures):
            done.append(True)
            act()
        return finished(futures)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cluster, "finished", watched)
        patch.setattr(cells, "finished", watched)
        patch.setattr(heats, "finished", watched)
        yield
    assert done, "no such task was waited for"


def when_round(number: int, act: Callable[[], Any]) -> Any:
    """Do something when this round, or a later one, is being run."""

    def is_due(key: str) -> bool:
        return key.startswith("asset_round-") and int(key.split("-")[2]) >= number

    return when_waiting(is_due, act)
