"""How much memory there is, and how much of it a model may count on.

Two questions with two answers. What is free decides what is kept and what is computed anew: speed, and
never a bit of the model. What a model is made of (its number of components, which cells are solved
whole, whether the rows of a file are held or streamed) is decided by ``memory_limit``, or by
``PLANNED`` where there is none, so that the same rows give the same model whatever else the machine is
doing. Where that does not fit, there is an error that names both numbers.
"""

from __future__ import annotations

import os
from pathlib import Path

PLANNED = 8 << 30
"""Bytes that a model may count on without a ``memory_limit``."""


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


def planned_memory(memory_limit: float | None) -> int:
    """Bytes that a model with this limit may count on."""
    return PLANNED if memory_limit is None else int(memory_limit)


def require_memory(needed: float, free: float, what: str, advice: str) -> None:
    """Raise unless so many bytes are free."""
    if needed > free:
        raise MemoryError(
            f"{what} {in_gigabytes(needed)}, and {in_gigabytes(free)} are free; {advice}."
        )


def in_gigabytes(size: float) -> str:
    """The number of bytes as people say it."""
    return f"{size / 1e9:.2f} GB" if size >= 1e8 else f"{size / 1e6:.2f} MB"
