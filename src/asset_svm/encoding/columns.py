"""What becomes of a column: numbers of its values, by what was settled once.

    Scaled      (x - centre) / scale
    Clipped     z / sqrt(1 + (z / 3)^2) of the same, by median and quartiles: far values are near 3
    Ranked      the part of the rows below x, of variance 1
    Pieces      clip((x - a_b) / (a_(b+1) - a_b), 0, 1), one for each interval [a_b, a_(b+1)] between
                quantiles, over their common spread: a function that is linear in each is linear in them
    OneHot      1 where the row has the level; rare levels share a column
    Steps       1 where the level comes after the k-th, in the order of their mean targets, over their
                common spread: near levels are near each other
    Means       of the targets of the rows of a level, drawn to the mean of all by few rows
    Cycles      cosine and sine of the day of the year, of the week, and of the time of the day

Piecewise linear: Gorishniy, Rubachev, Babenko, "On Embeddings for Numerical Features in Tabular Deep
Learning", NeurIPS 2022. A gap is the median, and 1 in a column of its own where training rows had gaps.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np

from asset_svm.arrays import Array
from asset_svm.encoding.summary import days_of
from asset_svm.encoding.table import NO_LEVEL, Column, Levels

CLIP = 3.0
"""What robust values stay below."""
FAR = 1e15
"""What scaled values stay below: float32 has their squares."""
GAP = "gap"
RARE = "other"
PERIODS = {"year": 365.2425, "week": 7.0, "day": 1.0}
"""Days."""


class ColumnEncoder(Protocol):
    """A function of a column."""

    kind: ClassVar[str]
    """What records call it."""

    @property
    def suffixes(self) -> Sequence[str]:
        """What comes behind the column's name in those of the numbers; "" is nothing."""

    def __call__(self, column: Column) -> Array:
        """(rows, width) numbers."""

    def slopes(self, column: Column) -> Array:
        """(rows, width) derivatives by the value of the column; NaN where it is no number."""


def numbers_of(column: Column) -> Array:
    """Numbers, or times in days, with NaN for gaps."""
    assert not isinstance(column, Levels)
    return days_of(column) if column.dtype.kind == "M" else column.astype(np.float64)


@dataclass(frozen=True, eq=False)
class Number:
    """What encoders of numbers share.

    Parameters
    ----------
    fill : float
        What a gap is.
    gap : bool
        Whether there is a column that tells gaps.
    """

    fill: float
    gap: bool

    def parts(self) -> Sequence[str]:
        """The suffixes without that of a gap."""
        return [""]

    @property
    def suffixes(self) -> Sequence[str]:
        """What comes behind the column's name."""
        return [*self.parts(), *([GAP] if self.gap else [])]

    def map(self, x: Array) -> Array:
        """(rows, parts) numbers of values without gaps."""
        raise NotImplementedError

    def derivative(self, x: Array) -> Array:
        """(rows, parts) derivatives of those."""
        raise NotImplementedError

    def __call__(self, column: Column) -> Array:
        """(rows, width) numbers."""
        values = numbers_of(column)
        missing = np.isnan(values)
        found = self.map(np.where(missing, self.fill, values))
        return np.column_stack([found, missing]) if self.gap else found

    def slopes(self, column: Column) -> Array:
        """(rows, width) derivatives; a gap has none."""
        values = numbers_of(column)
        missing = np.isnan(values)
        found = self.derivative(np.where(missing, self.fill, values))
        found = np.where(missing[:, None], np.nan, found)
        return np.column_stack([found, np.zeros(len(values))]) if self.gap else found


@dataclass(frozen=True, eq=False)
class Scaled(Number):
    """(x - centre) / scale, 1e15 at most."""

    kind: ClassVar[str] = "scaled"
    centre: float
    scale: float

    def map(self, x: Array) -> Array:
        """The scaled values."""
        with np.errstate(over="ignore"):
            return np.clip((x - self.centre) / self.scale, -FAR, FAR)[:, None]

    def derivative(self, x: Array) -> Array:
        """1 / scale."""
        return np.full((len(x), 1), 1.0 / self.scale)


@dataclass(frozen=True, eq=False)
class Clipped(Number):
    """(x - centre) / scale, far values drawn to 3."""

    kind: ClassVar[str] = "clipped"
    centre: float
    scale: float

    def map(self, x: Array) -> Array:
        """The clipped values."""
        z = self._scaled(x)
        return np.asarray(z / np.hypot(1.0, z / CLIP))[:, None]

    def derivative(self, x: Array) -> Array:
        """That of z / sqrt(1 + (z / 3)^2)."""
        return np.asarray(np.hypot(1.0, self._scaled(x) / CLIP) ** -3.0 / self.scale)[:, None]

    def _scaled(self, x: Array) -> Array:
        with np.errstate(over="ignore"):
            return np.clip((x - self.centre) / self.scale, -FAR, FAR)


@dataclass(frozen=True, eq=False)
class Ranked(Number):
    """The part of the rows below x, linear between quantiles, centred and of variance 1.

    Parameters
    ----------
    edges, parts_below : arrays
        Values in order, and the part of the rows below each.
    centre, scale : float
    """

    kind: ClassVar[str] = "ranked"
    edges: Array
    below: Array
    centre: float
    scale: float

    def map(self, x: Array) -> Array:
        """The ranks."""
        return np.asarray((np.interp(x, self.edges, self.below) - self.centre) / self.scale)[:, None]

    def derivative(self, x: Array) -> Array:
        """The slope of the interval; 0 beyond the ends."""
        piece = np.searchsorted(self.edges, x, side="right") - 1
        inside = (piece >= 0) & (piece < len(self.edges) - 1)
        at = np.clip(piece, 0, len(self.edges) - 2)
        slope = (self.below[at + 1] - self.below[at]) / (self.edges[at + 1] - self.edges[at])
        return np.asarray(np.where(inside, slope / self.scale, 0.0))[:, None]


@dataclass(frozen=True, eq=False)
class Pieces(Number):
    """Positions in the intervals between edges, over a common scale.

    Parameters
    ----------
    edges : array
        Increasing; one more than there are pieces.
    scale : float
    """

    kind: ClassVar[str] = "pieces"
    edges: Array
    scale: float

    def parts(self) -> Sequence[str]:
        """A piece by where it ends, with as many digits as tell it from others."""
        ends = self.edges[1:]
        for digits in (6, 9, 12, 17):
            names = [f"<={end:.{digits}g}" for end in ends]
            if len(set(names)) == len(names):
                break
        return names

    def map(self, x: Array) -> Array:
        """The positions."""
        width = np.diff(self.edges)
        found = np.clip((x[:, None] - self.edges[:-1]) / width, 0.0, 1.0)
        return np.asarray(found / self.scale)

    def derivative(self, x: Array) -> Array:
        """1 / (width scale) in the piece of x, 0 in others."""
        piece = np.searchsorted(self.edges, x, side="right") - 1
        found = np.zeros((len(x), len(self.edges) - 1))
        inside = np.flatnonzero((piece >= 0) & (piece < found.shape[1]))
        found[inside, piece[inside]] = 1.0 / (np.diff(self.edges)[piece[inside]] * self.scale)
        return found


@dataclass(frozen=True, eq=False)
class Cycles:
    """Cosine and sine of times, by these periods.

    Parameters
    ----------
    periods : tuple of str
        Of ``PERIODS``.
    """

    kind: ClassVar[str] = "cycles"
    periods: tuple[str, ...]

    @property
    def suffixes(self) -> Sequence[str]:
        """Two for each period."""
        return [f"{period} {part}" for period in self.periods for part in ("cos", "sin")]

    def _angles(self, column: Column) -> tuple[Array, Array]:
        days = numbers_of(column)
        return days, np.array([2.0 * np.pi / PERIODS[period] for period in self.periods])

    def __call__(self, column: Column) -> Array:
        """(rows, width) numbers; a gap is the middle of the circle."""
        days, rate = self._angles(column)
        angle = np.where(np.isnan(days), 0.0, days)[:, None] * rate
        found = np.stack([np.cos(angle), np.sin(angle)], axis=2).reshape(len(days), -1)
        return np.where(np.isnan(days)[:, None], 0.0, found)

    def slopes(self, column: Column) -> Array:
        """(rows, width) derivatives by days."""
        days, rate = self._angles(column)
        angle = days[:, None] * rate
        found = np.stack([-np.sin(angle) * rate, np.cos(angle) * rate], axis=2)
        return found.reshape(len(days), -1)


class _OfLevels:
    """What encoders of levels share: a number of each level that is known, one for all others."""

    names: tuple[str, ...]

    def codes(self, column: Column) -> Array:
        """The number of each row's level: ``len(names)`` if it is not known, NO_LEVEL for a gap."""
        assert isinstance(column, Levels)
        return column.coded_by(
            {name: number for number, name in enumerate(self.names)}, len(self.names)
        )

    def slopes(self, column: Column) -> Array:
        """NaN: levels have no order."""
        return np.full((len(column), len(self.suffixes)), np.nan)

    @property
    def suffixes(self) -> Sequence[str]:
        """What comes behind the column's name."""
        raise NotImplementedError


@dataclass(frozen=True, eq=False)
class OneHot(_OfLevels):
    """A column of 0 and 1 for each level.

    Parameters
    ----------
    names : tuple of str
        Levels that have a column of their own.
    other : bool
        Whether there is a column for all others: rare ones, and those that training rows have not.
        Without it such a level is 0 in every column.
    gap : bool
        Whether there is a column for gaps; without it a gap is 0 in every column.
    """

    kind: ClassVar[str] = "one-hot"
    names: tuple[str, ...]
    other: bool
    gap: bool

    @property
    def suffixes(self) -> Sequence[str]:
        """The levels."""
        return [*self.names, *([RARE] if self.other else []), *([GAP] if self.gap else [])]

    def places(self, column: Column) -> Array:
        """The column in which each row has its 1; -1 where it has none."""
        codes, known = self.codes(column), len(self.names)
        places = np.where(codes < known, codes, known if self.other else -1)
        gap = known + self.other if self.gap else -1
        return np.asarray(np.where(codes == NO_LEVEL, gap, places))

    def __call__(self, column: Column) -> Array:
        """(rows, width) numbers."""
        places = self.places(column)
        found = np.zeros((len(places), len(self.suffixes)))
        there = np.flatnonzero(places >= 0)
        found[there, places[there]] = 1.0
        return found


@dataclass(frozen=True, eq=False)
class Steps(_OfLevels):
    """Levels in an order: 1 for each that the row's comes after.

    Parameters
    ----------
    names : tuple of str
        In their order.
    middle : int
        How many levels come before one that is not known, or a gap.
    scale : float
    """

    kind: ClassVar[str] = "steps"
    names: tuple[str, ...]
    middle: int
    scale: float

    @property
    def suffixes(self) -> Sequence[str]:
        """What each level comes after."""
        return [f"> {name}" for name in self.names[:-1]]

    def __call__(self, column: Column) -> Array:
        """(rows, width) numbers."""
        codes = self.codes(column)
        known = (codes >= 0) & (codes < len(self.names))
        places = np.where(known, codes, self.middle)
        found = places[:, None] > np.arange(len(self.names) - 1)
        return np.asarray(found / self.scale)


@dataclass(frozen=True, eq=False)
class Means(_OfLevels):
    """The mean targets of a level, over their spread.

    Parameters
    ----------
    names : tuple of str
        Levels whose means are known.
    means : array of shape (folds + 1, len(names) + 2, outputs)
        Those of all rows but the ones of a fold, and of all rows, last; of each level, of one that is
        not known, and of a gap. Scaled.
    outputs : tuple of str
        What the means are of.
    """

    kind: ClassVar[str] = "means"
    names: tuple[str, ...]
    means: Array
    outputs: tuple[str, ...]

    @property
    def suffixes(self) -> Sequence[str]:
        """The outputs."""
        return [f"mean {output}".strip() for output in self.outputs]

    def __call__(self, column: Column, folds: Array | None = None) -> Array:
        """(rows, outputs) means; rows of a fold have those of rows of other folds."""
        codes = self.codes(column)  # NO_LEVEL is the last
        return np.asarray(self.means[-1 if folds is None else folds, codes])
