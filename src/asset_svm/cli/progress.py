"""What is seen of a run while it goes: a bar on a terminal, lines elsewhere; and Ctrl-C."""

from __future__ import annotations

import math
import signal
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from asset_svm import clock
from asset_svm.memory import in_gigabytes

SECONDS = 5.0
"""Seconds between two lines where there is no terminal."""


class Interrupt:
    """The first Ctrl-C asks the run to end after its window or epoch, a second one kills it.

    ``at_once``: the first one does, where there is nothing to keep before the end of a run.
    """

    def __init__(self, *, at_once: bool = False) -> None:
        self.asked, self.at_once = False, at_once

    def _handle(self, number: int, frame: Any) -> None:
        if self.asked or self.at_once:
            raise KeyboardInterrupt
        self.asked = True
        print("asset: stopping; Ctrl-C again to quit at once.", file=sys.stderr)

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Catch Ctrl-C inside."""
        before = signal.signal(signal.SIGINT, self._handle)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)


def running_error(
    record: dict[str, Any], *, regression: bool, one_class: bool = False
) -> tuple[float, str]:
    """(error, its name) of rows just before they were learnt from.

    A stream predicts some rows of every window. In memory the loop itself counts: rows on the wrong
    side of a model that sees them, one-vs-rest or in pairs where there are several, or the mean loss
    of a regression. Of one class it is the part of the rows that lies outside.
    """
    if one_class:
        return float(record.get("progressive_error", record["active"])), "outside"
    if "progressive_error" in record:
        return float(record["progressive_error"]), "mean |error|" if regression else "error"
    if regression:
        return float(record["progressive_loss"]), "mean loss"
    return float(record["sign_errors"]), "error"


class Watcher:
    """Who is called with the progress of something, and returns whether to stop.

    A terminal sees what ``_drawn`` draws; elsewhere there is a line now and then.
    """

    def __init__(self, *, at_once: bool = False) -> None:
        self.console, self.interrupt = Console(stderr=True), Interrupt(at_once=at_once)
        self.begun = self.shown_at = clock.now()

    @contextmanager
    def shown(self) -> Iterator[Self]:
        """Show what goes on inside."""
        with self.interrupt.watched(), self._drawn() if self.console.is_terminal else nullcontext():
            yield self

    def _drawn(self) -> AbstractContextManager[Any]:
        """What a terminal sees."""
        raise NotImplementedError

    def _say(self, line: str, *, now: bool) -> None:
        """Print a line where there is no terminal: ``now``, or if the last one is some time ago."""
        if now or clock.now() - self.shown_at >= SECONDS:
            self.shown_at = clock.now()
            print(line, file=sys.stderr, flush=True)


class Display(Watcher):
    """Shows the records of a run.

    Parameters
    ----------
    regression, one_class : bool
    what : str
        What is done.
    at_once : bool
        Whether the first Ctrl-C kills the run.

    Attributes
    ----------
    records : list of dict
        Those of epochs, windows or batches, of which curves are drawn.
    """

    def __init__(
        self,
        *,
        regression: bool,
        one_class: bool = False,
        what: str = "training",
        at_once: bool = False,
    ):
        super().__init__(at_once=at_once)
        self.regression, self.one_class, self.what = regression, one_class, what
        self.records: list[dict[str, Any]] = []
        self.bar: Progress | None = None
        self.task: TaskID | None = None

    @contextmanager
    def _drawn(self) -> Iterator[None]:
        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.fields[told]}"),
            TimeRemainingColumn(),
        )
        with Progress(*columns, console=self.console) as self.bar:
            self.task = self.bar.add_task("setting up", total=None, told="")
            yield

    def __call__(self, record: dict[str, Any]) -> bool:
        """Show a record, and return True after Ctrl-C."""
        told, done, total = self.told(record)
        if self.bar is not None and self.task is not None:
            self.bar.update(self.task, description=self.what, completed=done, total=total, told=told)
        else:
            line = told if self.what == "training" else f"{self.what}: {told}"
            self._say(line, now=done == total and "sorted" not in record)
        return self.interrupt.asked

    def told(self, record: dict[str, Any]) -> tuple[str, Any, Any]:
        """What a record says, how much is done, and of how much."""
        if "sorted" in record:
            told, done, total = _told_of_sorting(record), record["sorted"], record["rows"]
            if done == 0 and record["partition"] == 1:
                size = in_gigabytes(record["temporary"])
                self._note(f"up to {size} of temporary files in {record['folder']}")
        elif "cells" in record:
            told, total = _told_of_cells(record), record["partitions"]
            done = record["partition"] - 1 + record["solved"] / record["cells"]
        else:
            self.records.append(record)
            told, total = self._told(record), record.get("epochs")
            done = record.get("epoch", record.get("batch"))
        return told, done, total

    def _note(self, sentence: str) -> None:
        """Say something once, above the bar where there is one."""
        if self.bar is not None:
            self.bar.console.print(f"asset: {sentence}", highlight=False, soft_wrap=True)
        else:
            print(f"asset: {sentence}", file=sys.stderr, flush=True)

    def _told(self, record: dict[str, Any]) -> str:
        steps, seconds = record["steps"], max(record.get("seconds", 0.0), 1e-9)
        parts = []
        if "epochs" in record:
            parts.append(f"epoch {round(record['epoch'], 2):.12g}/{record['epochs']}")
        parts += [f"{steps} rows", f"{steps / seconds:.0f} rows/s"]
        objective = record.get("objective", record.get("progressive_objective"))
        if objective is not None:
            parts.append(f"objective {objective:.4g}")
        error, what = running_error(record, regression=self.regression, one_class=self.one_class)
        if math.isfinite(error):
            parts.append(f"{what} {error:.4g}" if self.regression else f"{what} {100 * error:.2f} %")
        return ", ".join(parts)


def _told_of_sorting(record: dict[str, Any]) -> str:
    parts = [
        f"{record['sorted']}/{record['rows']} rows sorted into cells",
        f"{record['seconds']:.1f} s",
    ]
    return ", ".join([*_partition_of(record), *parts])


def _told_of_cells(record: dict[str, Any]) -> str:
    seconds = record["seconds"]
    parts = [*_partition_of(record), f"{record['solved']}/{record['cells']} cells"]
    done = record.get("rows_solved", 0)
    if done:
        parts += [f"{done} rows", f"{done / max(seconds, 1e-9):.0f} rows/s"]
    parts.append(f"{seconds:.1f} s")
    if 0 < done < record["rows"] and "solving" in record:
        left = record["solving"] * (record["rows"] - done) / done
        parts.append(f"{left:.0f} s left")
    return ", ".join(parts)


def _partition_of(record: dict[str, Any]) -> list[str]:
    if record["partitions"] == 1:
        return []
    return [f"partition {record['partition']}/{record['partitions']}"]
