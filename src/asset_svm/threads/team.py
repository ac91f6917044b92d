"""Threads that work side by side for one that waits for them.

Ctrl-C reaches the main thread alone. What may take long calls ``check_interrupt`` every now and then:
it raises in the threads of a team too, once Ctrl-C has come to the thread that waits for them.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import TypeVar

from asset_svm.threads.blas import few_threads

Result = TypeVar("Result")

_member = threading.local()
"""``interrupted``: the event that ends the work of this thread, where it is one of a team."""


def side_by_side(
    function: Callable[[int], Result], numbers: Iterable[int], n_threads: int
) -> list[Result]:
    """function(number) of every number, in threads with one BLAS thread each."""
    with few_threads(0):
        if n_threads <= 1:
            return [function(number) for number in numbers]
        # A member that has a team of its own waits for it, and ends when that does.
        interrupted = getattr(_member, "interrupted", None) or threading.Event()
        context = copy_context()  # what numpy is told by errstate

        def work(number: int) -> Result:
            check_interrupt()
            return context.copy().run(function, number)

        with ThreadPoolExecutor(n_threads, initializer=_join, initargs=(interrupted,)) as pool:
            try:
                return list(pool.map(work, numbers))
            except KeyboardInterrupt:
                interrupted.set()
                raise


def check_interrupt() -> None:
    """Raise KeyboardInterrupt in a thread whose team is to end."""
    interrupted = getattr(_member, "interrupted", None)
    if interrupted is not None and interrupted.is_set():
        raise KeyboardInterrupt


def _join(interrupted: threading.Event) -> None:
    _member.interrupted = interrupted
