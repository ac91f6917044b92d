"""Whether a model is any better than a constant, by a sample of the rows it learnt from.

Columns or targets of very unequal scales are the usual cause: the kernel then sees one column alone, or
C bounds the decisions far below the targets. The fit ends well all the same, so that a warning tells.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from asset_svm.backends.device import on_host
from asset_svm.exceptions import warn_caller
from asset_svm.families.base import Fitted
from asset_svm.settings import Settings

LOOKED_AT = 1000
"""Training rows that are decided at most."""
FEWEST_ROWS = 100
"""A constant may well be all that fewer rows tell."""
UNEQUAL = 10.0
"""Times the spread of the narrowest column: where the widest has more, it is named."""


def warn_of_constant(
    settings: Settings,
    fitted: Fitted,
    X: Any,
    y: np.ndarray,
    weight: np.ndarray,
    names: Any = None,
    *,
    searched: bool = False,
) -> None:
    """Warn where a fitted model tells none of these rows, or next to none, apart.

    ``names`` are those of the columns. Where it was ``searched`` for, larger C and other gamma did no
    better: only columns are to blame.
    """
    count = len(y)
    if count < FEWEST_ROWS:
        return
    chosen = np.linspace(0, count - 1, min(count, LOOKED_AT)).astype(int)
    X, y = on_host(X[chosen]), np.asarray(y)[chosen]
    C = settings.C if settings.lam is None else None
    told = fitted.task.constancy(fitted.decision(X), y, weight[chosen], C)
    if told is None:
        return
    what, causes, advice = told.seen, told.causes, told.advice
    columns = _columns(X, names)
    if searched:
        causes, advice = [], []
    if columns is None and searched:
        return
    if columns is not None:
        causes, advice = [columns, *causes], ["scale the columns of X (StandardScaler)", *advice]
    sentences = "".join(f" {cause[:1].upper()}{cause[1:]}." for cause in causes)
    advised = f"{', '.join(advice[:-1])}, or {advice[-1]}" if len(advice) > 1 else advice[0]
    warn_caller(
        f"The model tells no rows apart: {what}.{sentences} To mend it, {advised}.", UserWarning
    )


def _columns(X: Any, names: Any) -> str | None:
    """Which column is the widest and which the narrowest, where they differ by much."""
    if sp.issparse(X):
        mean = np.asarray(X.mean(axis=0), dtype=np.float64).ravel()
        square = np.asarray(X.multiply(X).mean(axis=0), dtype=np.float64).ravel()
        spread = np.sqrt(np.maximum(square - mean**2, 0.0))
    else:
        spread = np.asarray(X, dtype=np.float64).std(axis=0)
    varied = np.flatnonzero(spread > 0.0)
    if len(varied) < 2:
        return None
    wide, narrow = varied[np.argmax(spread[varied])], varied[np.argmin(spread[varied])]
    if spread[wide] <= UNEQUAL * spread[narrow]:
        return None

    def name(column: int) -> str:
        return f"column {column}" if names is None else f"column {str(names[column])!r}"

    times = spread[wide] / spread[narrow]
    return f"{name(wide)} has {times:.2g} times the standard deviation of {name(narrow)}"
