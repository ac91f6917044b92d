"""What a search costs, guessed before it begins from the numbers of rows and models.

Good to a factor of three or so: how many sweeps a cell takes depends on C and gamma.
"""

from __future__ import annotations

from collections.abc import Sequence

PRODUCTS = 5e10
"""The operations of matrix products in a second."""
LOOPS = 5e9
"""The operations of sweeps over a cell in a second."""
SWEEPS = 100.0
"""The sweeps for a model of m rows take so many times m^2 operations."""


def map_seconds(m: int, n: int, s: int, models: float, epochs: int) -> float:
    """The time of one gamma on a map of m rows of n columns to s features, and of steps on it."""
    return 2.0 * m * s * (n + s + 2.0 * models * epochs) / PRODUCTS


def cell_seconds(sizes: Sequence[int], n: int, models: float, part: float, threads: int) -> float:
    """The time of one gamma in cells: kernel matrices, and models that see ``part`` of the rows."""
    total = sum(m * m * (2.0 * n / PRODUCTS + models * part**2 * SWEEPS / LOOPS) for m in sizes)
    return total / max(min(threads, len(sizes)), 1)
