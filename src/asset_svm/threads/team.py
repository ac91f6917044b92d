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
from contextvars import Context, copy_context
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
_idle: list[Any] = []
"""Threads that wait for work."""


class _Thread(threading.Thread):
    """A thread that does one piece of work after the other."""

    def __init__(self) -> None:
        super().__init__(daemon=True, name="asset-svm-team")
        self.jobs: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self.is_idle = threading.Event()
        self.start()

    def run(self) -> None:
        _idle.append(self)  # by itself: who starts it may be interrupted before it knows of it
        self.is_idle.set()
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

    def by(self, members: int, end: Callable[[], None] | None = None) -> list[Result]:
        """The results, by so many threads; the caller waits, and ends them where Ctrl-C comes to it.

        Ctrl-C may come between any two lines, and after an item was taken from a queue that nobody has
        counted yet: who has ended is known by the members themselves, and one that was not given its
        work for certain is given it again.
        """
        team: list[_Thread] = []
        jobs = [_Member(self, copy_context()) for _ in range(members)]
        try:
            _hire(team, members)
            for thread, job in zip(team, jobs, strict=True):
                thread.jobs.put(job)
            _wait(self.ended, jobs)
        except BaseException as error:
            self.errors[-1] = error
            self.interrupted.set()
            if end is not None:
                end()
            _insist(lambda: self._end(team, jobs))
        return self.found()

    def _end(self, team: list[_Thread], jobs: list[_Member]) -> None:
        """Wait until every thread that was hired has ended its part, which is soon."""
        for thread, job in zip(team, jobs, strict=False):
            if not job.begun:
                thread.jobs.put(job)
        _wait(self.ended, jobs[: len(team)])

    def found(self) -> list[Result]:
        """The results, or the error of the first number that had one."""
        if self.errors:
            error = self.errors[min(self.errors)]
            self.errors.clear()  # which it would hold, and they it
            raise error
        return self.results


class _Member:
    """The part of one thread in some work: what it is called for once, however often."""

    def __init__(self, work: _Work[Any], context: Context):
        self.work, self.context = work, context
        self.begun = self.ended = False

    def __call__(self) -> None:
        if self.begun:
            return
        self.begun = True
        _member.interrupted = self.work.interrupted
        try:
            self.context.run(self.work.take_part)
        finally:
            _member.interrupted = None
            _idle.append(threading.current_thread())  # by itself: Ctrl-C never comes to it
            self.ended = True
            self.work.ended.put(None)


def _wait(ended: SimpleQueue[None], jobs: Iterable[_Member]) -> None:
    """Until all of them have ended: there is an item for each that has not, or more."""
    for job in jobs:
        while not job.ended:
            ended.get()


def _insist(function: Callable[[], None]) -> None:
    """Call a function until it ends by itself, whatever Ctrl-C says."""
    while True:
        try:
            return function()
        except KeyboardInterrupt:
            continue


def side_by_side(
    function: Callable[[int], Result], numbers: Iterable[int], n_threads: int | None = None
) -> list[Result]:
    """function(number) of every number, in threads with one BLAS thread each.

    The threads are as many as are granted, unless their number is given; where it is one, the caller.
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


def _hire(team: list[_Thread], number: int) -> None:
    """Bring a team to so many idle threads, which are started where there are too few."""
    while len(team) < number:
        try:
            team.append(_idle.pop())
        except IndexError:
            _Thread().is_idle.wait()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_idle.clear)
