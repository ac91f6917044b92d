"""Which rows learn and which judge: folds; where rows are many, one of them, or one part held out."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
from sklearn.model_selection import KFold, StratifiedKFold

from asset_svm.arrays import Array
from asset_svm.tasks import Task

FEW_ROWS = 6000
"""Up to so many rows all of them judge every candidate, in folds."""
MANY_ROWS = 60_000
"""Up to so many, one of the folds does, and the others judge the best."""
FOLDS = 5
HELD, MOST_HELD = 0.2, 100_000
"""The part of more rows that judges, and how many at most."""


@dataclass(frozen=True, eq=False)
class Part:
    """Rows to learn from, in random order, so that the first of them are a sample; rows that judge."""

    learning: Array
    judging: Array


def draw_parts(task: Task, y: Array, seed: int) -> tuple[list[Part], list[Part]]:
    """The parts of these rows that judge all candidates, and those that judge the best besides.

    Every class of rows to judge is one to learn from.
    """
    m, rng = len(y), np.random.default_rng([seed, 21])
    counts = task.count_by_class(y)
    if m > MANY_ROWS:
        held = min(HELD, MOST_HELD / m)
        if not task.numeric and counts.min() < 2:  # nothing to stratify by
            order = rng.permutation(m)
            pairs = [(order[int(held * m) :], order[: int(held * m)])]
        else:
            pairs = [task.split(y, held, seed)]
    else:
        folds = min(FOLDS, m) if task.numeric else min(FOLDS, max(int(counts.min()), 2), m)
        if m > FEW_ROWS:
            folds = FOLDS
        kind = KFold if y.ndim == 2 or task.numeric or counts.min() < 2 else StratifiedKFold
        splitter = kind(n_splits=folds, shuffle=True, random_state=seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # a class may have fewer rows than folds
            pairs = list(splitter.split(np.zeros((m, 1)), y))
    parts = [Part(rng.permutation(learning), rng.permutation(judging)) for learning, judging in pairs]
    return (parts[:1], parts[1:]) if m > FEW_ROWS else (parts, [])
