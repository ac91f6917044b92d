"""How many threads the linear algebra of a small matrix may use.

LAPACK's factorisations meet at thousands of barriers, where threads wait by spinning. On a machine
that is also doing something else, an eigendecomposition of order 1797 took 14 s on two threads and
0.9 s on one: up to ``LARGEST`` rows, one thread is the safe choice.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from threadpoolctl import threadpool_limits

LARGEST = 2048

_lock = threading.Lock()
_inside = 0
_limit: Any = None


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
            _limit = threadpool_limits(1, user_api="blas")
    try:
        yield
    finally:
        with _lock:
            _inside -= 1
            if _inside == 0:
                _limit.restore_original_limits()
