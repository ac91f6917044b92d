"""The probe: rows that are predicted before they are learnt from (progressive validation)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from asset_svm.tasks import Task

PROBE_ROWS = 512
"""The number of rows of a window or batch that are predicted first."""


def progressive_error(task: Task, decide: Callable[[Any], np.ndarray], X: Any, y: Any) -> float:
    """The part of the first rows misclassified, or outside, or the mean error of numbers."""
    decisions, y = decide(X[:PROBE_ROWS]), np.asarray(y[:PROBE_ROWS])
    if task.numeric:
        return float(task.row_losses(decisions, y).mean())
    return 1.0 - float(task.score(decisions, y, None))
