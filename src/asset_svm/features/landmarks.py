"""Which rows become landmarks."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


def uniform_landmarks(
    n_rows: int, n_landmarks: int, rng: np.random.Generator, weight: Array | None = None
) -> Array:
    """``n_landmarks`` distinct rows, each equally likely; never a row of weight 0.

    Weights beyond 0 do not count: a heavy row is not a more useful landmark for its weight.
    """
    allowed = np.arange(n_rows) if weight is None else np.flatnonzero(weight)
    return np.sort(rng.choice(allowed, size=n_landmarks, replace=False))
