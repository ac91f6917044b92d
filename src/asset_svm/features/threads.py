"""How many threads the linear algebra of a small matrix may use.

LAPACK's factorisations meet at thousands of barriers, where threads wait by spinning. On a machine
that is also doing something else, an eigendecomposition of order 1797 took 14 s on two threads and
0.9 s on one: up to ``LARGEST`` rows, one thread is the safe choice.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

from threadpoolctl import ThreadpoolController

LARGEST = 2048

_lock = threading.Lock()
_inside = 0
_limit: Any = None


@lru_cache(maxsize=1)
def _libraries(n_modules: int) -> Any:
    return ThreadpoolController()


def blas() -> Any:
    """The linear algebra libraries of this process.

    They are looked for again, which takes some 10 ms, only if a module was imported since.
    """
    return _libraries(len(sys.modules))


@contextmanager
def few_threads(order: int) -> Iterator[None]:
    """One BLAS thread inside, for matrices of up to ``LARGEST`` rows; threads may enter together."""
    global _inside, _limit
    if order > LARGEST:
        yield
        return
    with _lock:
        _inside += 1
        if _inside == 1:
            _limit = blas().limit(limits=1, user_api="blas")
    try:
        yield
    finally:
        with _lock:
            _inside -= 1
            if _inside == 0:
                _limit.restore_original_limits()
