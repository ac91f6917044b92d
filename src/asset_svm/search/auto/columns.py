"""Rows as candidates see them: encoded, then mapped by a relevance, without the rows that judge."""

from __future__ import annotations

import logging
import warnings
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone

from asset_svm.arrays import Array, Matrix
from asset_svm.encoding.table import Levels, Table
from asset_svm.estimators.tables import TableEncoder
from asset_svm.families.observing import logger
from asset_svm.families.relevance.family import learnt_of
from asset_svm.families.rows import Rows
from asset_svm.features.relevance import Learnt, Moments
from asset_svm.search.auto.parts import Part
from asset_svm.search.auto.shapes import GIVEN, Shape, is_absolute
from asset_svm.search.rows import in_single
from asset_svm.search.splits import Split
from asset_svm.settings import Settings
from asset_svm.tasks import Task

FAR_FROM_ZERO = 3.0
"""Standard deviations from 0, of the mean of a column: beyond, differences of rows lose digits."""
FEW_TOLD = 20_000
"""Rows that tell whether columns are standardised, about."""
KEPT_BYTES = 1 << 30
"""Rows that are kept for the next look take no more, but for those of the last."""


@dataclass(frozen=True, eq=False)
class Given:
    """What a race was given.

    Parameters
    ----------
    X : matrix or None
        Numbers as they are; None where columns are no numbers, or have gaps.
    table : Table or None
        The same as columns; None for sparse rows.
    y : array
        Targets, those of a regression in units of their spread.
    weight : array
        Sample weights.
    task : Task
        Settled by all rows.
    encoders : dict
        What makes numbers of the table, by the name of the encoding, not fitted.
    """

    X: Matrix | None
    table: Table | None
    y: Array
    weight: Array
    task: Task
    encoders: dict[str, TableEncoder]

    @property
    def is_standard(self) -> bool:
        """Whether the numbers have one scale already, and lie around 0."""
        if self.X is None:
            return False
        some = slice(None, None, max(self.X.shape[0] // FEW_TOLD, 1))
        found = Moments.of(self.X[some], self.weight[some], absolute=False)
        return found.alike and bool((np.abs(found.mean) <= FAR_FROM_ZERO * found.deviation).all())


@dataclass(frozen=True, eq=False)
class Prepared:
    """The rows of a look, which of them learn and which judge, and moments of their columns."""

    rows: Rows
    splits: list[Split]
    moments: Moments


@dataclass(frozen=True)
class Lesson:
    """What a relevance is learnt from: so many rows of a part, the first, on one map or in cells."""

    rows: int
    cells: bool


@dataclass(eq=False)
class Columns:
    """Rows of parts, as they are asked for.

    Parameters
    ----------
    given : Given
    parts : list of Part
    settings : callable
        The settings of an estimator with these parameters.
    """

    given: Given
    parts: list[Part]
    settings: Callable[[dict[str, Any]], Settings]
    learnt: dict[Any, Learnt] = field(default_factory=dict, init=False)
    made: dict[tuple[str, int, int], tuple[Any, ...]] = field(default_factory=dict, init=False)
    """Which numbers an encoding makes of a part, by how many rows it was learnt from."""
    kept: OrderedDict[Any, Any] = field(default_factory=OrderedDict, init=False)
    taught: dict[int, Learnt] = field(default_factory=dict, init=False)
    """Relevances by part that need not be learnt: those of a look that is made again."""

    @cached_property
    def numbers(self) -> Matrix:
        """The rows as they are, in float32 where no column loses its differences."""
        assert self.given.X is not None
        return in_single(self.given.X)

    def lots(self, shape: Shape) -> int:
        """How many lots the parts of a shape come in."""
        return 1 if self._together(shape) else len(self.parts)

    def prepared(self, shape: Shape, lot: int, count: int, judging: int, lesson: Lesson) -> Prepared:
        """A lot of a shape, ``count`` rows of each part to learn from and ``judging`` that judge.

        ``lesson`` is what its relevance is learnt from, where it has one.
        """
        return (
            self._whole(shape, count, judging)
            if self._together(shape)
            else self._part(shape, lot, count, judging, lesson)
        )

    def moments(self, shape: Shape, count: int) -> Moments:
        """Those of the columns of a shape, before any relevance maps them, of looks at so many rows."""
        if self._together(shape):
            return self._whole(shape, count, 1).moments
        if ("moments", shape.encoding, 0, count) in self.kept:
            return self._moments(shape, 0, count, None)
        return self._moments(shape, 0, count, self._encoded(shape.encoding, 0, count, 1)[0])

    def is_encoded(self, shape: Shape, count: int, judging: int) -> bool:
        """Whether the numbers of all lots of a shape are kept, before any relevance maps them."""
        plain = replace(shape, relevance=None)
        if self._together(plain):
            keys: list[Any] = [("encoded", shape.encoding, "all")]
        else:
            parts = range(len(self.parts))
            keys = [("encoded", shape.encoding, part, count, judging) for part in parts]
        return all(key in self.kept for key in keys)

    def _together(self, shape: Shape) -> bool:
        """Whether all parts may share their rows: no target has a part in their numbers."""
        if len(self.parts) == 1 or shape.relevance is not None:
            return False
        return shape.encoding == GIVEN or self._targets_unseen

    @cached_property
    def _targets_unseen(self) -> bool:
        """Whether no encoding looks at targets: no category has means of them, or an order by them."""
        assert self.given.table is not None
        found = [each for each in self.given.table.columns if isinstance(each, Levels)]
        most = min(each.max_levels for each in self.given.encoders.values())
        few = all(np.count_nonzero(each.counts()) <= most for each in found)
        return not found or (few and not self.given.task.numeric)

    def _whole(self, shape: Shape, count: int, judging: int) -> Prepared:
        """All rows, of which every part has its own to learn from."""
        given, key = self.given, ("encoded", shape.encoding, "all")
        if key not in self.kept:
            if shape.encoding == GIVEN:
                X = self.numbers
            else:
                assert given.table is not None
                encoder = clone(given.encoders[shape.encoding])
                with telling():
                    encoder.learn(given.table, None, None, named=True)
                X = encoder.rows(given.table)
            self._keep(key, (self._weighted(X, np.arange(len(given.y))), X))
        rows = self.kept[key][0]
        splits = [Split(np.sort(part.learning[:count]), part.judging[:judging]) for part in self.parts]
        return Prepared(rows, splits, self._moments(shape, -1, len(rows.y), rows))

    def _weighted(self, X: Matrix, index: Array) -> Rows:
        """Rows to learn from, by their numbers."""
        y, weight = self.given.y[index], self.given.weight[index]
        factor = self.given.task.class_weights(y, weight)
        return Rows(X, y, weight, weight if factor is None else weight * factor, np.arange(len(y)))

    def _part(self, shape: Shape, part: int, count: int, judging: int, lesson: Lesson) -> Prepared:
        """The rows of a part, those to learn from first."""
        learning, whole = self._encoded(shape.encoding, part, count, judging)
        rows = self._rows(part, count, judging)
        m, together = len(learning.y), whole
        moments = self._moments(shape, part, count, learning)
        if shape.relevance is not None:
            found = self._learnt(shape, part, learning, lesson, count)
            if found.relevance is not None:
                together = found.relevance(whole)
        split = Split(np.arange(m), np.arange(m, len(rows.y)))
        return Prepared(replace(rows, X=together), [split], moments)

    def _index(self, part: int, count: int, judging: int) -> tuple[Array, Array]:
        return self.parts[part].learning[:count], self.parts[part].judging[:judging]

    def _rows(self, part: int, count: int, judging: int) -> Rows:
        """The targets of rows to learn from and to judge, without their numbers."""
        index = np.concatenate(self._index(part, count, judging))
        weight = self.given.weight[index]
        return Rows(None, self.given.y[index], weight, weight, np.arange(len(index)))

    def _encoded(self, encoding: str, part: int, count: int, judging: int) -> tuple[Rows, Matrix]:
        """Rows to learn from, and the numbers of these and, after them, of those that judge."""
        key = "encoded", encoding, part, count, judging
        if key in self.kept:
            self.kept.move_to_end(key)
            return self.kept[key]
        learning, held = self._index(part, count, judging)
        y, weight = self.given.y[learning], self.given.weight[learning]
        if encoding == GIVEN:
            whole = self.numbers[np.concatenate([learning, held])]
        else:
            assert self.given.table is not None
            table, task = self.given.table[learning], self.given.task
            encoder = clone(self.given.encoders[encoding])
            with telling():
                encoder.learn(table, task, (y, weight), named=True)
            self.made[encoding, part, count] = numbers_of(encoder)
            parts = [encoder.rows(table, learning=True, whole=True)]
            parts.append(encoder.rows(self.given.table[held]))
            sparse = sp.issparse(parts[0])
            whole = sp.vstack(parts, format="csr") if sparse else np.concatenate(parts)
        return self._keep(key, (self._weighted(whole[: len(learning)], learning), whole))

    def is_learnt(self, shape: Shape, part: int, lesson: Lesson, count: int) -> bool:
        """Whether the relevance of a shape is known, from this lesson in this part.

        Where ``count`` rows are not encoded yet, they are taken to have the columns of the lesson.
        """
        key = self._lesson(shape, part, lesson, count)
        if shape.encoding != GIVEN and (shape.encoding, part, count) not in self.made:
            return any(known[:-1] == key[:-1] for known in self.learnt)
        return key in self.learnt

    def known(self, shape: Shape, part: int, lesson: Lesson, count: int) -> Learnt | None:
        """The relevance of a shape from this lesson, where it has been learnt."""
        return self.learnt.get(self._lesson(shape, part, lesson, count))

    def _lesson(self, shape: Shape, part: int, lesson: Lesson, count: int) -> tuple[Any, ...]:
        """What a relevance hangs on: more rows may have more levels, and so other columns."""
        made = self.made.get((shape.encoding, part, count), ())
        return replace(shape, cells=lesson.cells), part, lesson.rows, made

    def _learnt(self, shape: Shape, part: int, learning: Rows, lesson: Lesson, looked: int) -> Learnt:
        """The relevance of a shape for looks at so many rows, learnt from rows of a part alone."""
        count = min(lesson.rows, len(learning.y))
        key = self._lesson(shape, part, lesson, looked)
        if key not in self.learnt:
            params: dict[str, Any] = {"kernel": shape.kernel, "relevance": shape.relevance}
            if lesson.cells:
                params["n_cells"] = "auto"
            first = learning if count == len(learning.y) else learning.take(np.arange(count))
            if part in self.taught:
                self.learnt[key] = self.taught.pop(part)
            else:
                self.learnt[key] = learnt_of(self.settings(params), self.given.task, first)
        return self.learnt[key]

    def _moments(self, shape: Shape, part: int, count: int, learning: Rows | None) -> Moments:
        key = "moments", shape.encoding, part, count
        if key not in self.kept:
            assert learning is not None
            found = Moments.of(learning.X, learning.weight, absolute=is_absolute(shape.kernel))
            self._keep(key, found)
        return replace(self.kept[key], absolute=is_absolute(shape.kernel))

    def _keep(self, key: Any, value: Any) -> Any:
        """Keep what was made, and let go of what was not asked for for long."""
        self.kept[key] = value
        while len(self.kept) > 1 and sum(map(_bytes, self.kept.values())) > KEPT_BYTES:
            self.kept.popitem(last=False)
        return value


def numbers_of(encoder: TableEncoder) -> tuple[Any, ...]:
    """Which numbers a fitted encoder makes: pieces, whose ends move with the rows, by count."""
    return tuple(
        (number, len(part.suffixes) if part.kind == "pieces" else tuple(part.suffixes))
        for number, part in encoder.encoding_.parts
    )


class NothingToTellError(ValueError):
    """An encoder finds no column that tells the rows of a part apart."""


@contextmanager
def telling() -> Iterator[None]:
    """An encoder learns inside: nothing is told of columns, and what it refuses ends a candidate."""
    with quiet_columns():
        try:
            yield
        except ValueError as error:
            raise NothingToTellError(str(error)) from None


@contextmanager
def quiet_columns() -> Iterator[None]:
    """Nothing is told of columns inside: the final model tells it once."""
    level = logger.level
    logger.setLevel(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            yield
    finally:
        logger.setLevel(level)


def _bytes(value: Any) -> int:
    if not isinstance(value, tuple):
        return 0
    rows, whole = value
    copied = sp.issparse(whole) and rows.X is not whole  # of dense rows to learn from there is a view
    return sum(X.data.nbytes if sp.issparse(X) else X.nbytes for X in (rows.X, whole)[not copied :])
