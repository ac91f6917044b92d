"""Which rows are learnt from and which are scored: from ``cv`` to the splits of a search."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.model_selection import check_cv, train_test_split

from asset_svm.engines.many import Splits
from asset_svm.estimators.parameters import is_integer, is_number

DEFAULT_FOLDS = 5
FEWEST_LEFT = 10
"""Rows to learn from, and to score, that a race leaves to every split: fewer tell little of gamma."""


@dataclass(frozen=True, eq=False)
class Split:
    """Rows to learn from, and rows to score."""

    train: np.ndarray
    test: np.ndarray


def check_folds(cv: Any) -> None:
    """A number of folds, a fraction, a splitter, or an iterable of splits."""
    named = isinstance(cv, str)
    if not named and (cv is None or hasattr(cv, "split") or np.iterable(cv)):
        return
    if is_number(cv) and (cv >= 2 if is_integer(cv) else 0.0 < cv < 1.0):
        return
    shown = f'"{cv}"' if named else repr(cv)
    raise ValueError(
        f"cv={shown} is no way to split the rows; give a number of folds from 2 on, a fraction of the "
        "rows to hold out, a splitter of sklearn.model_selection, or an iterable of (train, test)."
    )


def draw_splits(cv: Any, y: np.ndarray, seed: int, *, classifier: bool) -> list[Split]:
    """The splits of all rows that were passed to fit."""
    m = len(y)
    if is_number(cv) and not is_integer(cv):
        rows = np.arange(m)
        stratify = None
        if classifier and np.unique(y, return_counts=True)[1].min() >= 2:
            stratify = y
        train, test = train_test_split(rows, test_size=float(cv), random_state=seed, stratify=stratify)
        return [Split(np.sort(train), np.sort(test))]
    splitter = check_cv(DEFAULT_FOLDS if cv is None else cv, y, classifier=classifier)
    found = []
    for train, test in splitter.split(np.empty((m, 0)), y):
        found.append(Split(_rows(train, m), _rows(test, m)))
    if not found:
        raise ValueError("cv makes no split; give at least one.")
    check_filled(found, "rows")
    return found


def check_filled(splits: list[Split], what: str) -> None:
    """Raise where a split has none of ``what`` to learn from, or to score."""
    for number, split in enumerate(splits):
        for rows, aim in ((split.train, "learn from"), (split.test, "score")):
            if len(rows) == 0:
                raise ValueError(
                    f"cv makes a split, number {number}, without {what} to {aim}; give every split "
                    "some of both."
                )


def _rows(part: Any, m: int) -> np.ndarray:
    part = np.asarray(part)
    if part.dtype == bool:
        return np.flatnonzero(part)
    return np.unique(np.arange(m)[part]) if len(part) else np.empty(0, dtype=np.intp)


def restricted(splits: list[Split], kept: np.ndarray, m: int) -> list[Split]:
    """The same splits of some of m rows, numbered anew in the order of ``kept``."""
    place = np.full(m, -1)
    place[kept] = np.arange(len(kept))

    def found(rows: np.ndarray) -> np.ndarray:
        rows = place[rows]
        return np.sort(rows[rows >= 0])

    return [Split(found(split.train), found(split.test)) for split in splits]


def may_race(splits: list[Split], kept: np.ndarray, y: np.ndarray, *, classifier: bool) -> bool:
    """Whether splits of the rows ``kept`` can stand for whole ones: none loses its rows, or a class."""
    looked = np.zeros(len(y), dtype=bool)
    looked[kept] = True
    for split in splits:
        train = split.train[looked[split.train]]
        if min(len(train), int(looked[split.test].sum())) < FEWEST_LEFT:
            return False
        if classifier and len(np.unique(y[train])) < len(np.unique(y[split.train])):
            return False
    return True


@dataclass(frozen=True, eq=False)
class Encoding:
    """The splits as the engines see them, and what is added to the decisions of each."""

    splits: Splits
    targets: Any
    loss: Any
    offset: np.ndarray


def encode(learner: Any, rows: Any, splits: list[Split]) -> Encoding:
    """Weights and targets of every split, as a fit on its own rows would have them."""
    m, labels = len(rows.y), getattr(learner, "classes_", None)
    weight, target, y_max, offset = np.zeros((len(splits), m)), [], [], []
    for number, split in enumerate(splits):
        y, w = rows.y[split.train], rows.sample_weight[split.train]
        factor = learner._class_weights(y, w)
        weight[number, split.train] = w if factor is None else w * factor
        encoded = learner._encode(y, weight[number, split.train], labels)
        y_max.append(encoded.y_max)
        offset.append(encoded.offset)
        if labels is None:
            target.append(np.asarray(rows.y, dtype=np.float64) - encoded.offset)
    if labels is not None:
        whole = learner._encode(rows.y, rows.weight, labels)
        target = list(whole.targets.block(np.arange(m)))
    found = Splits(weight, np.array(target), labels is None, np.array(y_max))
    return Encoding(found, encoded.targets, encoded.loss, np.array(offset))
