"""How much of the card's memory may be taken, and what happens when it is less than thought."""

from __future__ import annotations

from collections.abc import Callable

import torch

from asset_svm.exceptions import warn_caller

RESERVE = 0.08
"""The part of the card's memory that products and other programs are left."""
FEWEST_ROWS = 256


def free_memory(device: torch.device) -> int:
    """Bytes that can still be taken on the card: its free ones, and PyTorch's unused ones."""
    if device.type != "cuda":
        return 1 << 40
    free, total = torch.cuda.mem_get_info(device)
    cached = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
    return max(int(free + cached - RESERVE * total), 0)


def in_chunks(count: int, size: int, work: Callable[[int, int], None]) -> int:
    """work(start, stop) over range(count), at most ``size`` at a time; halved when memory runs out.

    Returns the size that was left; where it is smaller, one warning says so.
    """
    start, left = 0, size
    while start < count:
        stop = min(start + left, count)
        try:
            work(start, stop)
        except torch.OutOfMemoryError:
            if left <= FEWEST_ROWS:
                raise
            torch.cuda.empty_cache()
            left = max(left // 2, FEWEST_ROWS)
            continue
        start = stop
    if left < size:
        warn_of_smaller_blocks(left)
    return left


def warn_of_smaller_blocks(size: int) -> None:
    """Tell that the card's memory ran out and the work goes on."""
    warn_caller(
        f"The card ran out of memory; going on with blocks of {size} rows, slower. Set memory_limit "
        "lower to leave more of it free from the start.",
        RuntimeWarning,
    )


def card_is_there() -> bool:
    """Whether PyTorch finds a card."""
    return torch.cuda.is_available()
