"""What one pass over a table tells of its columns, in memory that does not grow with the rows.

Summaries of parts of the rows join to that of all of them. A column may be of other kinds in other
parts, as cells of text files are; it is one of levels then.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from asset_svm.arrays import Array
from asset_svm.encoding.quantiles import SIZE, QuantileSketch
from asset_svm.encoding.table import Column, Levels, Table, gaps, kind_of
from asset_svm.exceptions import DataError

MOST_LEVELS = 200_000
"""Levels that are counted one by one; where there are more, those seen once are forgotten first."""
SKETCH_VALUES = 1 << 22
"""Values of all sketches together, about: many columns have smaller ones."""
DAY = 86_400_000_000
"""Microseconds."""
SENTENCE_ROWS = 1000
"""Names whose words are counted."""
SMALLEST, LARGEST = 1e-300, 1e300
"""Below the one a deviation has no inverse to work with; above the other sums would be infinite."""


def days_of(times: Array) -> Array:
    """Days since 1970 of times, NaN for gaps."""
    days = times.astype("datetime64[us]").astype(np.int64) / DAY
    return np.where(np.isnat(times), np.nan, days)


def check_size(values: Array, name: str) -> None:
    """Raise where numbers are infinite, or would be soon; NaN passes."""
    largest = float(np.fmax.reduce(np.abs(values), initial=0.0))
    if largest > LARGEST:
        what = "infinite numbers" if np.isinf(largest) else f"numbers beyond {LARGEST:g}"
        raise DataError(f"The column {name!r} has {what}; make gaps of them, or leave them out.")


@dataclass(eq=False)
class ColumnSummary:
    """What is known of a column.

    Parameters
    ----------
    n_rows, n_gaps : int
    kinds : set of str
        Of the parts that had a value.
    mean, spread : float
        Of the numbers, or of times in days: mean, and the root of the sum of squares about it, which
        any finite numbers have.
    count : int
        How many numbers or times there were.
    low, high : float
    whole : bool
        Whether all numbers are integers.
    sketch : QuantileSketch
    levels : dict
        Rows of every level.
    sums : dict
        The sum of the targets of the rows of every level, where targets are numbers.
    forgotten : int
        Levels that were too many to be counted.
    words : int
        The most words of one of the first levels.
    clock, weekdays : bool, set
        Of times: whether any is not midnight; the days of the week there are.
    """

    n_rows: int = 0
    n_gaps: int = 0
    kinds: set[str] = field(default_factory=set)
    mean: float = 0.0
    spread: float = 0.0
    count: int = 0
    low: float = np.inf
    high: float = -np.inf
    whole: bool = True
    sketch: QuantileSketch = field(default_factory=QuantileSketch)
    levels: dict[str, int] = field(default_factory=dict)
    sums: dict[str, float] = field(default_factory=dict)
    forgotten: int = 0
    words: int = 0
    clock: bool = False
    weekdays: set[int] = field(default_factory=set)

    @property
    def kind(self) -> str:
        """What the column is: "number", "time" or "levels"; "" where no row has a value."""
        return next(iter(self.kinds)) if len(self.kinds) == 1 else ("levels" if self.kinds else "")

    @property
    def deviation(self) -> float:
        """The standard deviation of the numbers; 0 where it is rounding."""
        deviation = self.spread / float(np.sqrt(max(self.count, 1)))
        return deviation if deviation > max(1e-15 * abs(self.mean), SMALLEST) else 0.0

    @property
    def n_levels(self) -> int:
        """How many levels there are, those that were forgotten counted again."""
        return len(self.levels) + self.forgotten

    def add(self, column: Column, name: str, y: Array | None = None) -> None:
        """Take rows into account, with targets that are numbers."""
        missing = gaps(column)
        self.n_rows += len(missing)
        self.n_gaps += int(missing.sum())
        if missing.all():
            return
        self.kinds.add(kind_of(column))
        if isinstance(column, Levels):
            counts = column.counts()
            seen = np.flatnonzero(counts)
            sums: Array = np.zeros(len(counts))
            if y is not None:
                there = column.codes >= 0
                sums = np.bincount(column.codes[there], y[there], minlength=len(counts))
            self._count(
                {column.names[code]: int(counts[code]) for code in seen},
                {column.names[code]: float(sums[code]) for code in seen},
            )
            if len(self.levels) <= SENTENCE_ROWS:
                self.words = max(
                    self.words, *(column.names[code].count(" ") + 1 for code in seen[:100])
                )
            return
        values = column[~missing]
        if values.dtype.kind == "M":
            whole_days = values.astype("datetime64[D]")
            self.clock = self.clock or bool((whole_days != values).any())
            self.weekdays |= set(np.unique((whole_days.astype(np.int64) + 3) % 7).tolist())
            values = days_of(values)
        values = values.astype(np.float64)
        check_size(values, name)
        unit = np.ldexp(1.0, np.frexp(np.abs(values).max())[1] - 1)  # in it they have squares
        inside = values / unit
        mean = float(inside.mean())
        spread = float(np.sqrt(((inside - mean) ** 2).sum()))
        self._join_moments(len(values), float(mean * unit), float(spread * unit))
        self.low, self.high = min(self.low, float(values.min())), max(self.high, float(values.max()))
        self.whole = self.whole and bool((values == np.rint(values)).all())
        self.sketch.add(values)

    def join(self, other: ColumnSummary) -> None:
        """Take what another summary has seen into account."""
        self.n_rows, self.n_gaps = self.n_rows + other.n_rows, self.n_gaps + other.n_gaps
        self.kinds |= other.kinds
        self._join_moments(other.count, other.mean, other.spread)
        self.low, self.high = min(self.low, other.low), max(self.high, other.high)
        self.whole = self.whole and other.whole
        self.sketch.join(other.sketch)
        self.forgotten += other.forgotten
        self._count(other.levels, other.sums)
        self.words = max(self.words, other.words)
        self.clock, self.weekdays = self.clock or other.clock, self.weekdays | other.weekdays

    def _join_moments(self, count: int, mean: float, spread: float) -> None:
        """Moments of parts join without loss (Chan, Golub, LeVeque)."""
        if count == 0:
            return
        total, apart = self.count + count, mean - self.mean
        between = abs(apart) * np.sqrt(self.count / total * count)
        self.spread = float(np.hypot(np.hypot(self.spread, spread), between))
        self.mean += apart * count / total
        self.count = total

    def _count(self, counts: dict[str, int], sums: dict[str, float]) -> None:
        for name, count in counts.items():
            self.levels[name] = self.levels.get(name, 0) + count
            self.sums[name] = self.sums.get(name, 0.0) + sums[name]
        least = 1
        while len(self.levels) > MOST_LEVELS:
            kept = {name: count for name, count in self.levels.items() if count > least}
            self.forgotten += len(self.levels) - len(kept)
            self.levels, least = kept, 2 * least
            self.sums = {name: self.sums[name] for name in kept}


@dataclass(eq=False)
class TableSummary:
    """What is known of the columns of a table."""

    names: tuple[str, ...] = ()
    columns: list[ColumnSummary] = field(default_factory=list)

    @classmethod
    def of(cls, table: Table, y: Array | None = None) -> TableSummary:
        """That of a table in memory, with targets that are numbers."""
        found = cls()
        found.add(table, y)
        return found

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return self.columns[0].n_rows if self.columns else 0

    def add(self, table: Table, y: Array | None = None) -> None:
        """Take rows into account, with targets that are numbers."""
        if not self.columns:
            size = int(np.clip(SKETCH_VALUES // max(len(table.names), 1) // 16, 256, SIZE))
            self.names = table.names
            self.columns = [ColumnSummary(sketch=QuantileSketch(size)) for _ in table.names]
        for name, summary, column in zip(self.names, self.columns, table.columns, strict=True):
            summary.add(column, name, y)

    def join(self, other: TableSummary) -> None:
        """Take what another summary has seen into account."""
        if not other.columns:
            return
        if not self.columns:
            self.names, self.columns = other.names, other.columns
            return
        for mine, theirs in zip(self.columns, other.columns, strict=True):
            mine.join(theirs)

    def mixed(self) -> Sequence[str]:
        """Columns that had another kind in some part: their cells are text, all of them."""
        return [
            name for name, each in zip(self.names, self.columns, strict=True) if len(each.kinds) > 1
        ]
