"""What a search costs, guessed before it begins from the numbers of rows and models.

Good to a factor of three or so: how many sweeps a cell takes depends on C and gamma.
"""

from __future__ import annotations

from collections.abc import Sequence

PRODUCTS = 5e10
"""Operations of matrix products a second."""
LOOPS = 5e9
"""Operations a second of the sweeps over a cell."""
SWEEPS = 100.0
"""Times m^2: the operations that sweeps take for a model of m rows."""


def map_seconds(m: int, n: int, s: int, models: int, epochs: int) -> float:
    """Of one gamma: the map of m rows of n columns to s features, and steps on it."""
    return 2.0 * m * s * (n + s + 2.0 * models * epochs) / PRODUCTS


def cell_seconds(sizes: Sequence[int], n: int, models: int, part: float, threads: int) -> float:
    """Of one gamma: the kernel matrices of cells, and models that each see a part of their rows."""
    total = sum(m * m * (2.0 * n / PRODUCTS + models * part**2 * SWEEPS / LOOPS) for m in sizes)
    return total / max(min(threads, len(sizes)), 1)
