"""Looking on while cells are solved: callbacks, whoever watches, the log.

Cells are told of by the threads that solve them, one thread at a time.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Any

from asset_svm import clock
from asset_svm.families.observing import Observer, Parts, logger
from asset_svm.settings import Settings

INTERVAL = 0.1
"""Seconds between two records: cells may be many and quick, and a terminal is slow."""


class CellProgress:
    """Counts the cells of one fit.

    Parameters
    ----------
    begun : float
        When the fit began, by ``clock.now``.
    observer : Observer
        Its ``watch`` is called with a record when a partition is grown, then every now and then, and
        when it is solved; True asks to stop.

    Attributes
    ----------
    stopped : bool
        Whether somebody has asked to stop: cells that have not begun are made short work of, and no
        other partition begins.
    """

    def __init__(self, settings: Settings, begun: float, observer: Observer):
        self.settings, self.begun, self.watch = settings, begun, observer.watch
        self.callbacks = observer.partitions(settings.n_partitions)
        self.stopped = False
        self._lock, self._number, self._solved, self._cells = Lock(), 0, 0, 0
        self._rows_solved = self._rows = 0
        self._told_at = self._begun_at = begun

    def sorting(self, number: int, done: int, total: int, **more: Any) -> None:
        """Tell that so many rows of a file have been sorted into the cells of a partition."""
        if done == 0 or done == total or clock.now() - self._told_at >= INTERVAL:
            self._told_at = clock.now()
            record = {"sorted": done, "rows": total, **self._where(number), **more}
            if self.watch is not None:
                self.stopped |= bool(self.watch(record))

    def partition_begin(self, number: int, n_cells: int, n_rows: int = 0) -> None:
        """Tell that a partition has so many cells, none of them solved, of so many rows if known."""
        self._number, self._solved, self._cells = number, 0, n_cells
        self._rows_solved, self._rows, self._begun_at = 0, n_rows, clock.now()
        self.callbacks.partition_begin(n_cells)
        self._tell()

    def known(self, n_cells: int, n_rows: int) -> None:
        """Tell that so many cells with so many rows were solved by a run that was cut."""
        self._solved, self._rows_solved = n_cells, n_rows
        self._tell()

    def lots(self, n_cells: int, few: int) -> Iterator[range]:
        """Cells that are begun together: all, unless somebody looks on, or time may run out.

        Then they are ``few``, and twice as many whenever it took less than ``INTERVAL``.
        """
        looked_at = self.watch is not None or self.callbacks.registered
        size = few if looked_at or self.settings.time_limit is not None else n_cells
        start = 0
        while start < n_cells:
            begun = clock.now()
            yield range(start, min(start + size, n_cells))
            start += size
            size *= 2 if clock.now() - begun < INTERVAL else 1

    @contextmanager
    def cell(self, number: int, n_rows: int = 0) -> Iterator[None]:
        """Tell that a cell begins, and, at the end, that it is solved."""
        with self._lock:
            self.callbacks.cell_begin(number)
        yield
        with self._lock:
            self._solved += 1
            self._rows_solved += n_rows
            self.stopped |= self.callbacks.cell_end(number)
            if self._solved < self._cells and clock.now() - self._told_at >= INTERVAL:
                self._tell()

    def partition_end(self, record: dict[str, Any], parts: Parts) -> None:
        """Its ``record`` is that of the history; ``parts`` makes the model so far."""
        self._solved = self._cells  # those without rows are nobody's work
        self._rows_solved = self._rows
        self._tell()
        if self.settings.verbose:
            numbers = ", ".join(f"{k} {v:.6g}" for k, v in record.items() if k != "partition")
            logger.info("partition %d: %s", self._number + 1, numbers)
        self.stopped |= self.callbacks.partition_end(parts)

    def fit_end(self, parts: Parts) -> None:
        """Tell that the fit has ended; ``parts`` makes the model."""
        self.callbacks.fit_end(parts)

    def _tell(self) -> None:
        self._told_at = clock.now()
        if self.watch is None:
            return
        record = {"solved": self._solved, "cells": self._cells, **self._where(self._number)}
        if self._rows:
            record |= {"rows_solved": self._rows_solved, "rows": self._rows}
            record["solving"] = self._told_at - self._begun_at
        self.stopped |= bool(self.watch(record))

    def _where(self, number: int) -> dict[str, Any]:
        """Of which partition, and when."""
        seconds = self._told_at - self.begun
        return {
            "partition": number + 1,
            "partitions": self.settings.n_partitions,
            "seconds": seconds,
        }
