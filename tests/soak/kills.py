"""Runs with ``--checkpoint``, killed at random moments and resumed: the model is always the same.

In a short soak a moment is the n-th time that a file is written to, put on the disk, renamed or
removed, whatever the machine is doing; in any other it is one of the clock's, and may be any.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import Any

from asset_svm.cli.main import main
from asset_svm.storage import atomic
from killed_runs import (
    CELLS,
    GRIDS,
    SEARCHES,
    assert_same_model,
    begin,
    command,
    ended,
    kill,
    small_windows,
    write_rows,
)
from soak.attack import Attack, Case

EVENTS = Path("events")
"""Has a byte for each event of a run that was let to its end."""
PIECE = 4096
"""Bytes that are written at once, so that there are moments in the middle of a file."""


def die_at(number: int | None) -> None:
    """Let this process end at the so-manieth event of its files; None: count them."""
    seen, log = 0, None if number is not None else EVENTS.open("wb", buffering=0)

    def event() -> None:
        nonlocal seen
        seen += 1
        if log is not None:
            log.write(b".")
        if seen == number:
            os.kill(os.getpid(), signal.SIGKILL)

    def eventful(method: Callable[..., Any]) -> Callable[..., Any]:
        def watched(*args: Any, **options: Any) -> Any:
            event()
            return method(*args, **options)

        return watched

    write = atomic.NamedOutput.write
    atomic.NamedOutput.write = lambda self, content: write(self, memoryview(content)[:PIECE])
    for owner, name in (
        (atomic.NamedOutput, "write"),
        (atomic.os, "fsync"),
        (Path, "replace"),
        (Path, "unlink"),
    ):
        setattr(owner, name, eventful(getattr(owner, name)))


class Kills(Attack):
    """A case is one kill; what comes to its end in spite of them is compared, and run again."""

    name, count, short = "kills", 1000, 100
    prefix = ""

    def prepare(self) -> None:
        """The model of a run that nobody killed, and how long such a run takes."""
        write_rows()
        with small_windows():
            assert main(command(f"{self.prefix}whole")) == 0
            begun = time.monotonic()
            assert os.waitpid(begin(f"{self.prefix}second", partial(die_at, None)), 0)[1] == 0
        self.seconds, self.events = time.monotonic() - begun, EVENTS.stat().st_size
        self._compare("second")

    def _compare(self, name: str) -> None:
        assert_same_model(f"{self.prefix}{name}.asset", f"{self.prefix}whole.asset")

    def session(self) -> AbstractContextManager[Any]:
        """Nine windows in a file."""
        return small_windows()

    def run(self, case: Case) -> str:
        """Run until it is killed; the last run of ten cases is let to its end."""
        run = f"run{case.number // 10}"
        name, finished = f"{self.prefix}{run}", 0
        while not self._killed(name, case):
            self._compare(run)
            finished += 1
        if case.number % 10 < 9:
            return "killed" if finished == 0 else "killed, after a whole run with the same model"
        assert os.waitpid(begin(name), 0)[1] == 0
        self._compare(run)
        left = os.listdir(name) if Path(name).exists() else []
        assert not left, "a finished run leaves its checkpoint"
        assert not [each for each in os.listdir() if each.endswith(".tmp")], "a file of a killed run"
        return "killed, and then a whole run with the same model"

    def _killed(self, name: str, case: Case) -> bool:
        """Run, and kill it on the way; False where it came to its end before."""
        if self.fixed:
            number = int(case.rng.integers(1, 0.6 * self.events))
            return ended(begin(name, partial(die_at, number)))
        child = begin(name)
        time.sleep(case.rng.uniform(0.0, 0.6 * self.seconds))
        return kill(child)


class CellKills(Kills):
    """The same of cells that are trained from a file larger than memory."""

    name, count, short = "cell-kills", 1000, 50
    prefix = CELLS


class SearchKills(Kills):
    """The same of races over a file larger than memory."""

    name, count, short = "search-kills", 200, 20
    prefix = SEARCHES


class GridKills(Kills):
    """The same of grids."""

    name, count, short = "grid-kills", 200, 20
    prefix = GRIDS
