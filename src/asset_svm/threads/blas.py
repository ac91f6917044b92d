"""How many threads the linear algebra of a small matrix may use.

LAPACK's factorisations meet at thousands of barriers, where threads wait by spinning. On a machine
that is also doing something else, an eigendecomposition of order 1797 took 14 s on two threads and
0.9 s on one: up to ``LARGEST`` rows, one thread is the safe choice.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any
from weakref import WeakSet

from threadpoolctl import ThreadpoolController

LARGEST = 2048

_lock = threading.Lock()
_all_inside: WeakSet[_Inside] = WeakSet()
_before: Any = None
"""The limits outside, to go back to; None where nobody is inside."""
_limit = 1
"""That of those inside."""


@lru_cache(maxsize=1)
def _libraries(n_modules: int) -> Any:
    return ThreadpoolController()


def blas() -> Any:
    """The linear algebra libraries of this process.

    They are looked for again, which takes some 10 ms, only if a module was imported since.
    """
    return _libraries(len(sys.modules))


def allowed_blas_threads() -> int | None:
    """The threads that a matrix product may take outside ``few_threads``; None where none can tell."""
    with _lock:
        if _before is not None:
            count: int | None = _before.get_original_num_threads().get("blas")
            return count
    counts = [info["num_threads"] for info in blas().info() if info["user_api"] == "blas"]
    return max(counts, default=None)


class _Inside:
    """One caller that is inside ``few_threads``, and the threads it would have."""

    def __init__(self, threads: int):
        self.threads = threads


def _take_over() -> None:
    """Let any thread change the limits next.

    Later threadpoolctls obey the first thread that changes them, and in silence no other: here the
    first to enter and the last to leave may be two.
    """
    for library in blas().lib_controllers:
        if hasattr(library, "clear_controlling_thread"):
            library.clear_controlling_thread(force=True)


@contextmanager
def few_threads(order: int, threads: int = 1) -> Iterator[None]:
    """One BLAS thread inside, for matrices of up to ``LARGEST`` rows; threads may enter together.

    More where ``threads`` says so, as long as nobody else is inside who would have fewer.

    Ctrl-C may come between any two lines: who is inside stands in a set, and leaves it once more
    where it has left already; what the limits were is known before they change.
    """
    global _before, _limit
    if order > LARGEST:
        yield
        return
    me = _Inside(threads)
    try:
        with _lock:
            _all_inside.add(me)
            least = min(each.threads for each in _all_inside)
            if _before is None or least < _limit:
                _before = _before or blas().limit(limits=None)
                _take_over()
                blas().limit(limits=least, user_api="blas")
                _limit = least
        yield
    finally:
        with _lock:
            _all_inside.discard(me)
            if not _all_inside and _before is not None:
                _take_over()
                _before.restore_original_limits()
                _take_over()
                _before = None


def _after_fork() -> None:
    """In a child process no other thread is left to leave."""
    global _lock, _before
    _lock = threading.Lock()
    _all_inside.clear()
    if _before is not None:
        _take_over()
        _before.restore_original_limits()
        _before = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
