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


def map_seconds(m: int, n: float, s: int, models: float, epochs: int) -> float:
    """The time of one gamma on a map of m rows of n columns to s features, and of steps on it."""
    return 2.0 * m * s * (n + s + 2.0 * models * epochs) / PRODUCTS


def cell_seconds(sizes: Sequence[int], n: float, models: float, part: float, threads: int) -> float:
    """The time of one gamma in cells: kernel matrices, and models that see ``part`` of the rows."""
    total = sum(m * m * (2.0 * n / PRODUCTS + models * part**2 * SWEEPS / LOOPS) for m in sizes)
    return total / max(min(threads, len(sizes)), 1)


def swept_seconds(operations: int, n_cells: int, threads: int) -> float:
    """The time of sweeps that went through so many squares of rows, in so many cells."""
    return operations / LOOPS / max(min(threads, n_cells), 1)


def relevance_seconds(m: int, n: int, models: int, *, turned: bool, in_cells: bool) -> float:
    """The time of learning a relevance from m rows of n columns, by all its rounds.

    Measured on five sets, of 4000 and 16 000 rows: most of it hangs on few rows. ``turned`` is for
    directions.
    """
    fixed = 0.35 + 0.018 * models + 5e-4 * n
    row = 1e-5 + 7e-7 * models + 5e-8 * n * models
    seconds = fixed * min(0.15 + 0.85 * m / 4000.0, 1.0) + row * m
    return seconds * (1.5 if turned else 1.0) * (1.8 if in_cells else 1.0)
