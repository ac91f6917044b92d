"""Which rows learn and which judge: one part of the rows held out, or folds where rows are few."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from sklearn.model_selection import KFold, StratifiedKFold

from asset_svm.arrays import Array
from asset_svm.tasks import Task

FEW_ROWS = 6000
"""Up to so many rows all of them judge, in folds."""
FOLDS = 5
HELD, MOST_HELD = 0.2, 20_000
"""The part of more rows that judges, and how many at most."""


@dataclass(frozen=True, eq=False)
class Part:
    """Rows to learn from, in random order, so that the first of them are a sample; rows that judge."""

    learning: Array
    judging: Array


def draw_parts(task: Task, y: Array, seed: int) -> list[Part]:
    """The parts of these rows; every class of rows to judge is one to learn from."""
    m, rng = len(y), np.random.default_rng([seed, 21])
    counts = task.count_by_class(y)
    if m > FEW_ROWS:
        held = min(HELD, MOST_HELD / m)
        if not task.numeric and counts.min() < 2:  # nothing to stratify by
            order = rng.permutation(m)
            pairs = [(order[int(held * m) :], order[: int(held * m)])]
        else:
            pairs = [task.split(y, held, seed)]
    else:
        folds = min(FOLDS, m) if task.numeric else min(FOLDS, max(int(counts.min()), 2), m)
        kind = KFold if y.ndim == 2 or task.numeric or counts.min() < 2 else StratifiedKFold
        splitter = kind(n_splits=folds, shuffle=True, random_state=seed)
        pairs = list(splitter.split(np.zeros((m, 1)), y))
    return [Part(rng.permutation(learning), np.asarray(judging)) for learning, judging in pairs]
