"""Records of what a search has found, for one that may be cut: looks of a race, lines of a grid."""

from __future__ import annotations

from dataclasses import dataclass, field

from asset_svm.arrays import Array
from asset_svm.features.relevance import Learnt
from asset_svm.storage.fields import FLOATS, Fields
from asset_svm.storage.maps import learnt


@dataclass(frozen=True)
class SavedWork:
    """Of a kind of work, how much was done, and what it took."""

    kind: str
    done: float
    took: float


@dataclass(frozen=True, eq=False)
class SavedRelevance:
    """The relevance that a look has learnt from the rows of a part."""

    part: int
    learnt: Learnt


@dataclass(frozen=True, eq=False)
class SavedLook:
    """A look of a race, which need not be made again.

    Parameters
    ----------
    asked : str
        What was looked at.
    decisions : list of arrays of shape (rows, outputs)
        Of the models of each C, on the rows that judge; not numbers where they were of no use.
    seconds, training, swept, at : float
        As of ``Judged``, for every C.
    lots : int
        Those whose rows were made, for models to learn from.
    relevances : list of SavedRelevance
        Those that were learnt in it.
    grown : str
        What the last partition was of.
    failure : str
        Why the last candidate that has failed until then had.
    spent : float
        Of the budget, after it.
    work : list of SavedWork
    readings : array
        What the budget has read from the clock since the look before.
    """

    asked: str
    decisions: list[Array]
    seconds: float
    training: float
    swept: float
    at: float
    lots: int
    relevances: list[SavedRelevance]
    grown: str
    failure: str
    spent: float
    work: list[SavedWork]
    readings: Array


@dataclass(frozen=True, eq=False)
class SavedLine:
    """The scores of all Cs of a gamma and an epsilon, in a round of a grid.

    Parameters
    ----------
    round_number, n_rows : int
    gamma : float
    epsilon : int
        Its number.
    scores : array of shape (Cs, splits)
    fit_seconds, score_seconds : float
    in_time : bool
    """

    round_number: int
    n_rows: int
    gamma: float
    epsilon: int
    scores: Array
    fit_seconds: float
    score_seconds: float
    in_time: bool


@dataclass(frozen=True, eq=False)
class Piece:
    """What was found between two saves.

    Parameters
    ----------
    begin : int
        How much was found before.
    elapsed : float
        The seconds of the search until the save, those of processes before this one too.
    reading : float or None
        Those of reading all rows once, where they are not in memory.
    time_limit : float or None
        What the search had when it found this.
    looks : list of SavedLook
    lines : list of SavedLine
    """

    begin: int
    elapsed: float
    reading: float | None = None
    time_limit: float | None = None
    looks: list[SavedLook] = field(default_factory=list)
    lines: list[SavedLine] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.looks) + len(self.lines)


def piece(f: Fields) -> Piece:
    """What was found between two saves."""
    return Piece(
        f.integer("begin"),
        f.number("elapsed"),
        f.maybe(f.number, "reading"),
        f.maybe(f.number, "time_limit"),
        f.each("looks", "record", _look),
        f.each("lines", "record", _line),
    )


def _look(f: Fields) -> SavedLook:
    decisions = f.each("decisions", "array", (None, None), FLOATS, finite=False)
    alike = len({each.shape for each in decisions}) == 1
    f.check(alike, "are not of the same rows", "decisions")
    return SavedLook(
        f.text("asked"),
        decisions,
        f.number("seconds"),
        f.number("training"),
        f.number("swept", finite=False),
        f.number("at"),
        f.integer("lots"),
        f.each("relevances", "record", _relevance),
        f.text("grown"),
        f.text("failure"),
        f.number("spent"),
        f.each("work", "record", _work),
        f.array("readings", (None,)),
    )


def _relevance(f: Fields) -> SavedRelevance:
    return SavedRelevance(f.integer("part"), f.record("learnt", learnt, None))


def _work(f: Fields) -> SavedWork:
    return SavedWork(f.text("kind"), f.number("done"), f.number("took"))


def _line(f: Fields) -> SavedLine:
    return SavedLine(
        f.integer("round_number"),
        f.integer("n_rows"),
        f.number("gamma"),
        f.integer("epsilon"),
        f.array("scores", (None, None), finite=False),
        f.number("fit_seconds"),
        f.number("score_seconds"),
        f.flag("in_time"),
    )
