"""Which rows are learnt from and which are scored: from ``cv`` to the splits of a search."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import Any

import numpy as np
from sklearn.model_selection import ShuffleSplit, StratifiedShuffleSplit, check_cv

from asset_svm.arrays import Array
from asset_svm.data import Targets
from asset_svm.families.rows import Rows
from asset_svm.losses import Loss
from asset_svm.settings.checks import is_integer, is_number
from asset_svm.tasks import Task
from asset_svm.training.folds import Splits

DEFAULT_FOLDS = 5
"""The number of folds where ``cv`` is None."""
FEWEST_LEFT = 10
"""A race leaves every split so many rows to learn from, and to score: fewer tell little of gamma."""


@dataclass(frozen=True, eq=False)
class Split:
    """The rows to learn from, and those to score."""

    train: Array
    test: Array


def check_folds(cv: Any) -> None:
    """Raise unless ``cv`` is a number of folds, a fraction, a splitter, or an iterable of splits."""
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


def draw_splits(cv: Any, X: Any, y: Array, groups: Any, seed: int, *, classifier: bool) -> list[Split]:
    """The splits of all rows that were passed to fit."""
    pairs = cv
    if cv is None or is_number(cv) or hasattr(cv, "split"):
        if is_number(cv) and not is_integer(cv):
            splitter = _one_split(float(cv), y, seed, classifier=classifier)
        else:
            splitter = check_cv(DEFAULT_FOLDS if cv is None else cv, y, classifier=classifier)
        pairs = splitter.split(X, y, groups=groups)
    found = []
    for number, pair in enumerate(pairs):
        try:
            train, test = pair
        except (TypeError, ValueError):
            raise ValueError(
                f"cv makes {pair!r} of split {number}, which is not (train, test); give the indices of "
                "rows to learn from and of rows to score, or one fraction of the rows to hold out."
            ) from None
        found.append(Split(_rows(train, len(y)), _rows(test, len(y))))
    if not found:
        raise ValueError("cv makes no split; give at least one.")
    check_filled(found, "rows")
    return found


def _one_split(fraction: float, y: Array, seed: int, *, classifier: bool) -> Any:
    """A splitter that holds out a fraction of the rows, of every class where each has two or more."""
    classifier = classifier and y.ndim == 1
    counts = np.unique(y, return_counts=True)[1] if classifier else np.zeros(1)
    stratified = bool(counts.min() >= 2)
    held, needed = ceil(fraction * len(y)), len(counts) if stratified else 1
    if min(held, len(y) - held) < needed:
        what = f"the {needed} classes need one of each" if stratified else "some are needed for both"
        raise ValueError(
            f"cv={fraction:g} holds out {held} of {len(y)} rows and learns from {len(y) - held}, and "
            f"{what}; choose another fraction, or a number of folds."
        )
    kind = StratifiedShuffleSplit if stratified else ShuffleSplit
    return kind(n_splits=1, test_size=fraction, random_state=seed)


def check_classes(splits: list[Split], y: Array) -> None:
    """Raise where a split learns from one class: no model can.

    Of several outputs some may have one class only.
    """
    for number, split in enumerate(splits):
        each = [np.unique(column) for column in _columns(y[split.train])]
        labels = max(each, key=len)
        if len(labels) == 1:
            raise ValueError(
                f"cv makes a split, number {number}, that learns from rows of one class, "
                f"{labels.tolist()[0]!r}; shuffle the rows, or stratify: cv=StratifiedKFold(5)."
            )


def check_filled(splits: list[Split], what: str) -> None:
    """Raise where a split has none of ``what`` to learn from, or to score."""
    for number, split in enumerate(splits):
        for rows, aim in ((split.train, "learn from"), (split.test, "score")):
            if len(rows) == 0:
                raise ValueError(
                    f"cv makes a split, number {number}, without {what} to {aim}; give every split "
                    "some of both."
                )


def _rows(part: Any, m: int) -> Array:
    part = np.asarray(part)
    if part.ndim != 1 or (len(part) and part.dtype.kind not in "biu"):
        raise ValueError(
            f"cv makes a split of {part!r}, which are no numbers of rows; give their indices."
        )
    if part.dtype == bool:
        return np.flatnonzero(part)
    if len(part) == 0:
        return np.empty(0, dtype=np.intp)
    if part[0] >= 0 and part[-1] < m and (part[1:] > part[:-1]).all():  # as most splitters have them
        return part.astype(np.intp)
    return np.unique(np.arange(m)[part])


def restricted(splits: list[Split], kept: Array, m: int) -> list[Split]:
    """The same splits of some of m rows, numbered anew in the order of ``kept``."""
    place = np.full(m, -1)
    place[kept] = np.arange(len(kept))

    def found(rows: Array) -> Array:
        rows = place[rows]
        return np.sort(rows[rows >= 0])

    return [Split(found(split.train), found(split.test)) for split in splits]


def may_race(splits: list[Split], kept: Array, y: Array, *, classifier: bool) -> bool:
    """Whether splits of the rows ``kept`` can stand for whole ones: none loses its rows, or a class."""
    looked = np.zeros(len(y), dtype=bool)
    looked[kept] = True
    for split in splits:
        train = split.train[looked[split.train]]
        if min(len(train), int(looked[split.test].sum())) < FEWEST_LEFT:
            return False
        if classifier and any(
            len(np.unique(some)) < len(np.unique(own))
            for some, own in zip(_columns(y[train]), _columns(y[split.train]), strict=True)
        ):
            return False
    return True


def _columns(y: Array) -> Array:
    """The columns of targets, of which there may be one."""
    return np.atleast_2d(y.T)


@dataclass(frozen=True, eq=False)
class Encoding:
    """The splits as the backends see them, and what is added to the decisions of each."""

    splits: Splits
    targets: Targets
    loss: Loss
    offset: Array
    """Of shape (splits, outputs), or (splits, 1)."""


def encode(task: Task, rows: Rows, splits: list[Split]) -> Encoding:
    """The weights and targets of every split, as a fit on its own rows would have them."""
    m = len(rows.y)
    weight, target, y_max, offset = np.zeros((len(splits), m)), [], [], []
    for number, split in enumerate(splits):
        y, w = rows.y[split.train], rows.sample_weight[split.train]
        factor = task.class_weights(y, w)
        weight[number, split.train] = w if factor is None else w * factor
        settled = task.settled(y, weight[number, split.train])
        encoded = settled.encode(y)
        y_max.append(encoded.y_max)
        offset.append(encoded.offset)
        if task.numeric:
            target += list(settled.encode(rows.y).targets.block(np.arange(m)))
    if not task.numeric:
        target = list(task.encode(rows.y).targets.block(np.arange(m)))
    found = Splits(weight, np.array(target), task.numeric, np.array(y_max))
    return Encoding(found, encoded.targets, encoded.loss, np.array(offset).reshape(len(splits), -1))


def group_folds(groups: Array) -> int:
    """The folds that keep groups together: five, or as many as there are groups."""
    count = len(np.unique(groups))
    if count < 2:
        raise ValueError(
            "groups has one group of rows with a positive weight, and a search learns from some groups "
            "and judges by others; leave groups out."
        )
    return min(DEFAULT_FOLDS, count)
