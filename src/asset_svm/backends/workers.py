"""Threads that map rows while the loop runs on others.

A run has two kinds of work: rows are mapped, in any order and number at a time, and stepped through,
one after the other. Workers map the rows of the next blocks while the main thread steps through the
last one. Matrix products have one BLAS thread each then:
what each thread computes does not depend on how many there are, so neither do the steps; and
BLAS's own threads, which wait for each other by spinning, took five times as long beside another
process.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

from asset_svm.arrays import Array
from asset_svm.threads.blas import few_threads
from asset_svm.threads.granted import grant


class Workers:
    """``count`` threads that map the rows of the next blocks."""

    def __init__(self, count: int, ahead: ThreadPoolExecutor):
        self.count, self._ahead = count, ahead
        self._due: deque[tuple[Array, Future[Any]]] = deque()

    @property
    def depth(self) -> int:
        """How many blocks should be announced before their turn."""
        return 2 * self.count

    def announce(self, rows: Array, job: Callable[[Array], Any]) -> None:
        """Have a thread do job(rows), after what was announced before."""
        self._due.append((rows, self._ahead.submit(_alone, job, rows)))

    def finished(self) -> Iterator[tuple[Array, Any]]:
        """The rows and results of the jobs, oldest first, each when it is done."""
        while self._due:
            rows, future = self._due.popleft()
            yield rows, future.result()


def _alone(job: Callable[[Array], Any], rows: Array) -> Any:
    """Do job(rows) without a team."""
    with grant(1):  # all threads there are have rows to map
        return job(rows)


@contextmanager
def working(count: int) -> Iterator[Workers | None]:
    """So many workers; None for one, whose work the main thread does."""
    with few_threads(0):
        if count <= 1:
            yield None
            return
        with ThreadPoolExecutor(count) as ahead:
            yield Workers(count, ahead)
