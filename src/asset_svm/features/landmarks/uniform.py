"""The paper's landmarks: rows at random."""

from __future__ import annotations

from typing import Any

import numpy as np

from asset_svm.arrays import Array
from asset_svm.features.landmarks.base import Landmarks, allowed_rows
from asset_svm.kernels import Kernel


def uniform_landmarks(
    X: Any, kernel: Kernel, count: int, rng: np.random.Generator, weight: Array | None = None
) -> Landmarks:
    """Choose ``count`` distinct rows, each equally likely."""
    return Landmarks.of_rows(X, rng.choice(allowed_rows(X, weight), size=count, replace=False))
