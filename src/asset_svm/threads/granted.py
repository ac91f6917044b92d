"""How many threads a task may take: what ``n_jobs`` says, or else what the process may use.

    granted()         the threads that whoever is running may take; a member of a team has its share
    grant(count)      inside, so many
    count_threads(n)  what n_jobs = n comes to

Without ``n_jobs`` that is what the process may use: processors by affinity and cgroup (``joblib``), and
no more than BLAS may take, whether an environment variable or threadpoolctl says so. joblib's workers
share the machine among them: a process of its own is told its share by the limit of BLAS, and one that
has none, or a thread, has one.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache

import joblib
from joblib.parallel import get_active_backend

from asset_svm.threads.blas import allowed_blas_threads

MOST, MORE = 64, 4
"""More threads than this, and than so many for each processor, help nobody."""

_granted: ContextVar[int | None] = ContextVar("asset_svm_granted", default=None)


def granted() -> int:
    """The number of threads that the caller may take."""
    count = _granted.get()
    return usable_threads() if count is None else count


@contextmanager
def grant(count: int) -> Iterator[None]:
    """Inside, tasks may take so many threads."""
    token = _granted.set(max(count, 1))
    try:
        yield
    finally:
        _granted.reset(token)


def usable_threads() -> int:
    """The threads that this process, or this worker of joblib's, may use."""
    processors = _processors()
    count = min(processors, allowed_blas_threads() or processors)
    return 1 if count == processors and _is_in_joblib() else count


def count_threads(n_jobs: int | None) -> int:
    """The number of threads that n_jobs asks for, by joblib's convention but for None.

    -1 is all processors, whatever BLAS is limited to; None is as many as the process may use, or what
    ``joblib.parallel_config`` says.
    """
    if n_jobs is None and hasattr(joblib, "parallel_config"):  # before, nothing told 1 from nothing
        n_jobs = get_active_backend()[1]
    if n_jobs is None:
        return usable_threads()
    if n_jobs > 0:
        return min(n_jobs, max(MOST, MORE * _processors()))
    every = usable_threads() if _is_in_joblib() else _processors()
    return max(every + 1 + n_jobs, 1)


def _processors() -> int:
    """The processors that the process may use: looked up anew where its affinity has changed."""
    affinity = frozenset(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None
    return _counted(joblib.cpu_count, affinity)


@lru_cache(maxsize=8)
def _counted(count: Callable[[], int], affinity: frozenset[int] | None) -> int:
    return count()


def _is_in_joblib() -> bool:
    """Whether this is a task that joblib runs beside others."""
    return bool(get_active_backend()[0].nesting_level)
