"""The machine at hand: V cached in memory or recomputed, BLAS for the map, threads for the models.

Rows are always mapped in blocks of one fixed shape (the last is filled up by repeating a row):
matrix products round differently for other shapes, and so a cached row equals a recomputed one bit
for bit.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from asset_svm.features import Evaluable
from asset_svm.solvers import MappedRows

Array = npt.NDArray[Any]
Matrix = Any

BLOCK_SIZE = 512
"""Rows mapped and stepped through at a time: large enough for a matrix product, small enough for
the block of V to stay in a cache."""


def available_memory() -> int:
    """Bytes that can be taken without swapping, as far as the system tells (else 4 GiB)."""
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return min(int(line.split()[1]) * 1024, _container_memory())
    except OSError:
        pass
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
    except (AttributeError, ValueError, OSError):
        return 4 << 30


def _container_memory() -> int:
    """What a container's limit (cgroup v2) leaves; a number beyond any memory where there is none."""
    folder = Path("/sys/fs/cgroup")
    try:
        limit = int((folder / "memory.max").read_text())
        return max(limit - int((folder / "memory.current").read_text()), 0)
    except (OSError, ValueError):
        return 1 << 62


class ComputedRows:
    """phi of rows of X, mapped when they are asked for."""

    def __init__(self, phi: Evaluable, X: Matrix, block_size: int):
        self.X, self.block_size = X, block_size
        self.dimension, self.dtype = phi.dimension, np.dtype(X.dtype)
        self._phi = phi.evaluator(X.dtype)

    def map(self, rows: Array) -> Array:
        """phi of these rows, at most a block of them."""
        filled = np.full(self.block_size, rows[0] if len(rows) else 0)
        filled[: len(rows)] = rows
        return self._phi(self.X[filled])[: len(rows)]

    def fetch(self, rows: Array) -> tuple[Array, Array]:
        """The mapped rows, in order."""
        size = self.block_size
        parts = [self.map(rows[start : start + size]) for start in range(0, len(rows), size)]
        return parts[0] if len(parts) == 1 else np.concatenate(parts), np.arange(len(rows))


class CachedRows:
    """phi of all rows of X, mapped once."""

    def __init__(self, V: Array):
        self.V, self.dimension, self.dtype = V, V.shape[1], V.dtype

    @classmethod
    def map(cls, rows: ComputedRows, seconds: float = float("inf")) -> CachedRows | None:
        """Map all rows; None as soon as it is plain that this will take longer than ``seconds``."""
        m, begun = rows.X.shape[0], time.perf_counter()
        V = np.empty((m, rows.dimension), dtype=rows.dtype)
        for start in range(0, m, rows.block_size):
            index = np.arange(start, min(start + rows.block_size, m))
            V[start : start + len(index)] = rows.map(index)
            spent = time.perf_counter() - begun
            if spent > 0.1 * seconds and spent * m / (start + len(index)) > seconds:
                return None
        return cls(V)

    def fetch(self, rows: Array) -> tuple[Array, Array]:
        """The whole of V and the rows themselves."""
        return self.V, rows


@dataclass(frozen=True)
class LocalEngine:
    """How this machine is used.

    Parameters
    ----------
    n_threads : int
        Threads that models are spread over.
    memory_limit : int, optional
        Bytes that V may take; by default half of what is available.
    block_size : int
    """

    n_threads: int = 1
    memory_limit: int | None = None
    block_size: int = BLOCK_SIZE

    def rows(self, phi: Evaluable, X: Matrix, seconds: float = float("inf")) -> MappedRows:
        """Map the rows of X: at once where V fits in memory, else whenever they are visited.

        Not at once, either, where that would take longer than ``seconds``.
        """
        computed = ComputedRows(phi, X, min(self.block_size, max(X.shape[0], 1)))
        limit = available_memory() // 2 if self.memory_limit is None else self.memory_limit
        size = X.shape[0] * phi.dimension * np.dtype(X.dtype).itemsize
        return (CachedRows.map(computed, seconds) if size <= limit else None) or computed

    @contextmanager
    def pool(self, n_models: int) -> Iterator[ThreadPoolExecutor | None]:
        """Threads for the models of a block, where there is more than one of each."""
        threads = min(self.n_threads, n_models)
        if threads <= 1:
            yield None
            return
        with ThreadPoolExecutor(threads) as pool:
            yield pool
