"""How long this process has compiled: time that no limit counts, for it is spent once on a machine.

numba tells of it (``numerics.compiling`` passes it on); this module needs nothing, so that whoever
reads a clock need not import a compiler.
"""

from __future__ import annotations

import threading
import time


class CompileTime:
    """The seconds in which at least one thread compiled."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._under_way, self._begun, self._spent = 0, 0.0, 0.0

    def begin(self) -> None:
        """A function begins to be compiled, perhaps inside another."""
        with self._lock:
            if self._under_way == 0:
                self._begun = time.perf_counter()
            self._under_way += 1

    def end(self) -> None:
        """A function is compiled."""
        with self._lock:
            self._under_way -= 1
            if self._under_way == 0:
                self._spent += time.perf_counter() - self._begun

    def working_time(self) -> float:
        """``time.perf_counter`` without these seconds: it stands still while somebody compiles."""
        with self._lock:
            now = self._begun if self._under_way else time.perf_counter()
            return now - self._spent


compile_time = CompileTime()
