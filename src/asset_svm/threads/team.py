"""Threads that work side by side for one that waits for them, and then wait for more.

Starting sixteen threads takes milliseconds, in which a batch of rows could be predicted: those that
have done their work are kept, and belong to nobody. Who needs some takes the idle ones, or starts new
ones, so that teams at work at the same time have nothing in common.

Ctrl-C reaches the main thread alone. What may take long calls ``check_interrupt`` every now and then:
it raises in the threads of a team too, once Ctrl-C has come to the thread that waits for them.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable
from contextvars import copy_context
from functools import partial
from itertools import count
from queue import SimpleQueue
from typing import Any, Generic, TypeVar

from asset_svm.arrays import Array
from asset_svm.threads.blas import few_threads
from asset_svm.threads.counter import ENOUGH, new_counter
from asset_svm.threads.granted import grant, granted

Result = TypeVar("Result")

_member = threading.local()
"""``interrupted``: the event that ends the work of this thread, where it is one of a team."""
_idle: list[_Thread] = []


class _Thread(threading.Thread):
    """A thread that does one piece of work after the other."""

    def __init__(self) -> None:
        super().__init__(daemon=True, name="asset-svm-team")
        self.jobs: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self.start()

    def run(self) -> None:
        while True:
            self.jobs.get()()


class _Work(Generic[Result]):
    """function(number) of every number, shared by the members of a team."""

    def __init__(self, function: Callable[[int], Result], numbers: list[int], members: int):
        self.function, self.numbers = function, numbers
        self.share = granted() // max(members, 1)  # threads that each of them may take in turn
        self.results: list[Any] = [None] * len(numbers)
        self.errors: dict[int, BaseException] = {}
        self.next = count()
        # A member that has a team of its own waits for it, and ends when that does.
        outer = getattr(_member, "interrupted", None)
        self.interrupted: threading.Event = outer or threading.Event()
        self.ended: SimpleQueue[None] = SimpleQueue()

    def take_part(self) -> None:
        """Take numbers until there are none, or somebody failed."""
        with grant(self.share):
            while not self.errors:
                place = next(self.next)
                if place >= len(self.numbers):
                    break
                try:
                    check_interrupt()
                    self.results[place] = self.function(self.numbers[place])
                except BaseException as error:
                    self.errors[place] = error

    def as_member(self) -> None:
        """Take part in a thread of the team."""
        _member.interrupted = self.interrupted
        try:
            self.take_part()
        finally:
            _member.interrupted = None
            self.ended.put(None)

    def by(self, members: int, end: Callable[[], None] | None = None) -> list[Result]:
        """The results, by so many threads; the caller waits, and ends them where Ctrl-C comes to it."""
        posted, team = 0, _hire(members)
        try:
            for thread in team:
                thread.jobs.put(partial(copy_context().run, self.as_member))
                posted += 1
            while posted:
                self.ended.get()
                posted -= 1
        except BaseException as error:
            self.errors[-1] = error
            self.interrupted.set()
            if end is not None:
                end()
            for _ in range(posted):
                self.ended.get()
        _idle.extend(team)
        return self.found()

    def found(self) -> list[Result]:
        """The results, or the error of the first number that had one."""
        if self.errors:
            raise self.errors[min(self.errors)]
        return self.results


def side_by_side(
    function: Callable[[int], Result], numbers: Iterable[int], n_threads: int | None = None
) -> list[Result]:
    """function(number) of every number, in threads with one BLAS thread each.

    The threads are as many as are granted, unless their number is given; one is the caller itself.
    """
    every = list(numbers)
    threads = min(granted() if n_threads is None else n_threads, len(every))
    work = _Work(function, every, threads)
    with few_threads(0):
        if threads > 1:
            return work.by(threads)
        work.take_part()
        return work.found()


def together(function: Callable[[Array], object], n_threads: int | None = None) -> None:
    """function(counter) in every thread of a team: compiled code, which takes its numbers by itself.

    The caller waits, so that Ctrl-C ends the work after the pieces that are being worked on.
    """
    counter = new_counter()

    def end() -> None:
        counter[0] = ENOUGH

    def run(_: int) -> None:
        try:
            function(counter)
        except BaseException:
            end()
            raise

    threads = granted() if n_threads is None else n_threads
    with few_threads(0):
        if getattr(_member, "interrupted", None) is not None and threads == 1:
            run(0)
        else:
            _Work(run, list(range(threads)), threads).by(threads, end)


def check_interrupt() -> None:
    """Raise KeyboardInterrupt in a thread whose team is to end."""
    interrupted = getattr(_member, "interrupted", None)
    if interrupted is not None and interrupted.is_set():
        raise KeyboardInterrupt


def _hire(number: int) -> list[_Thread]:
    """So many threads, idle ones first."""
    team: list[_Thread] = []
    while len(team) < number:
        try:
            team.append(_idle.pop())
        except IndexError:
            team.append(_Thread())
    return team


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_idle.clear)
