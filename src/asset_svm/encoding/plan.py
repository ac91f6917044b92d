"""Which functions become of which columns, by their summaries and by what is asked for."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from asset_svm.arrays import Array
from asset_svm.encoding.columns import (
    Clipped,
    ColumnEncoder,
    Cycles,
    Means,
    OneHot,
    Pieces,
    Ranked,
    Scaled,
    Steps,
)
from asset_svm.encoding.encoding import FOLDS, Encoding, Note, folds_of
from asset_svm.encoding.summary import ColumnSummary, TableSummary
from asset_svm.encoding.table import Levels, Table

NUMBERS = ("standard", "robust", "quantile", "pieces")
CAPPED = 3
"""Times that counts are cut to the size of a piece, which cutting makes smaller."""
RANKS = 256
"""Quantiles that ranks are linear between."""
RARE = 0.001
"""The part of the rows below which a level is joined with others, and so many rows at most."""
MOST_RARE = 10
IDENTIFIERS = 20
"""So many levels or more, each of one row, are names of rows."""
SENTENCE = 5
"""Words from which on a text is one."""
SENTENCES = "it has sentences, of which no words are learnt"
SMOOTHING, STEP_SMOOTHING = 10.0, 20.0
"""Rows of the mean of all that the mean of a level has besides its own; where it gives the order."""
FEWEST_STEPS = 3
"""Levels that have an order: two are as far from each other either way."""
SPARSE_WIDTH, SPARSE_PART = 512, 0.1
"""From so many numbers a row on rows are CSR where fewer than this part are not 0."""
MADE = {
    "standard": "standardised",
    "robust": "scaled by quartiles, far values clipped",
    "quantile": "ranks",
    "pieces": "piecewise linear between quantiles",
}


@dataclass(frozen=True)
class Options:
    """What is asked for.

    Parameters
    ----------
    numbers : {"standard", "robust", "quantile", "pieces"}
    n_pieces : int
        At most so many of each column.
    max_levels : int
        Columns of more levels have target means, or the most frequent levels and one for all others.
    """

    numbers: str
    n_pieces: int
    max_levels: int


@dataclass(eq=False)
class Plan:
    """What is made of each column; target means are to be filled in.

    Parameters
    ----------
    summary : TableSummary
    options : Options
    means : bool
        Whether there are targets to take means of.
    steps : bool
        Whether these are numbers, by whose means levels have an order.
    dropped : set of str
        Columns that were asked to be left out.
    """

    summary: TableSummary
    options: Options
    means: bool
    steps: bool = False
    dropped: Collection[str] = ()
    notes: list[Note] = field(default_factory=list)
    parts: list[tuple[int, ColumnEncoder | tuple[str, ...]]] = field(default_factory=list)
    """Names of levels stand for means that are not known yet."""

    def __post_init__(self) -> None:
        for number, (name, each) in enumerate(
            zip(self.summary.names, self.summary.columns, strict=True)
        ):
            made, encoders = ("as asked", []) if name in self.dropped else self._of(each)
            self.notes.append(Note(name, each.kind, made, bool(encoders)))
            self.parts += [(number, encoder) for encoder in encoders]

    @property
    def lacks_means(self) -> bool:
        """Whether target means are to be filled in, by a pass over the rows."""
        return any(isinstance(part, tuple) for _, part in self.parts)

    def _of(self, each: ColumnSummary) -> tuple[str, list[ColumnEncoder | tuple[str, ...]]]:
        if each.kind == "":
            return "no row has a value", []
        if each.kind == "levels":
            return self._of_levels(each)
        gap = each.n_gaps > 0
        if each.deviation == 0.0:
            if not gap:
                return "every row has the same value", []
            return "told by its gaps alone", [Pieces(each.low, True, np.array([each.low]), 1.0)]
        number = number_encoder(each, self.options)
        if each.kind == "number":
            return MADE[self.options.numbers] + _told(each), [number]
        periods = periods_of(each)
        words = ", ".join(["time", *(f"the {period}" for period in periods)])
        cycles: list[ColumnEncoder | tuple[str, ...]] = [Cycles(periods)] if periods else []
        return f"{words}{_told(each)}", [number, *cycles]

    def _of_levels(self, each: ColumnSummary) -> tuple[str, list[ColumnEncoder | tuple[str, ...]]]:
        options, n_levels = self.options, each.n_levels
        there = each.n_rows - each.n_gaps
        if n_levels == 1 and each.n_gaps == 0:
            return "every row has the same value", []
        if n_levels >= IDENTIFIERS and n_levels == there:
            return "it names rows: a level a row", []
        if n_levels > options.max_levels and each.words >= SENTENCE and n_levels > 0.5 * there:
            return SENTENCES, []
        by_count = sorted(each.levels, key=lambda name: (-each.levels[name], name))
        rare = min(RARE * each.n_rows, MOST_RARE)
        if n_levels > options.max_levels and self.means:
            known = tuple(sorted(name for name in by_count if each.levels[name] > 1))
            return f"target means of {n_levels} levels{_told(each)}", [known]
        kept = [name for name in by_count if each.levels[name] >= rare][: options.max_levels]
        other = len(kept) < n_levels
        made = f"one of {n_levels} levels" + (
            f", {n_levels - len(kept)} of them joined" if other else ""
        )
        one_hot = OneHot(tuple(sorted(kept)), other, each.n_gaps > 0)
        if not self.steps or len(kept) < FEWEST_STEPS:
            return made + _told(each), [one_hot]
        return f"{made}, and their order{_told(each)}", [one_hot, steps_of(each, kept)]

    def encoding(self, means: Mapping[int, Means] | None = None) -> Encoding:
        """The functions, with the means of columns of these numbers."""
        parts = tuple(
            (number, means[number] if isinstance(part, tuple) and means is not None else part)
            for number, part in self.parts
        )
        width, full = 0, 0.0
        for _, part in parts:
            size = len(part.suffixes)  # type: ignore[union-attr]
            width += size
            full += 1.0 if isinstance(part, OneHot) else size
        sparse = width >= SPARSE_WIDTH and full < SPARSE_PART * width
        return Encoding(tuple(self.notes), parts, sparse)  # type: ignore[arg-type]


def _told(each: ColumnSummary) -> str:
    return f", {each.n_gaps} gaps" if each.n_gaps else ""


def number_encoder(each: ColumnSummary, options: Options) -> Scaled | Clipped | Ranked | Pieces:
    """The function of a column of numbers, or of times in days."""
    fill, gap = float(each.sketch.quantiles([0.5])[0]), each.n_gaps > 0
    if options.numbers == "standard":
        return Scaled(fill, gap, each.mean, each.deviation)
    if options.numbers == "robust":
        low, high = each.sketch.quantiles([0.25, 0.75])
        scale = float(high - low) / 1.349  # that of a normal distribution
        return Clipped(fill, gap, fill, scale if scale > 0.0 else each.deviation)
    values, ranks = each.sketch.cumulated()
    counts = np.diff(ranks, prepend=0)
    if options.numbers == "quantile":
        edges = edges_of(each, RANKS)
        below = np.interp(edges, values, (ranks - 0.5 * counts) / ranks[-1])
        plain = np.interp(values, edges, below)
        mean, variance = _moments(plain[:, None], counts)
        scale = max(float(np.sqrt(variance[0])), each.deviation / (each.high - each.low))
        return Ranked(fill, gap, edges, below, float(mean[0]), scale)
    edges = edges_of(each, options.n_pieces)
    variance = _moments(Pieces(fill, gap, edges, 1.0).map(values), counts)[1]
    # A value too rare for the sketch is an edge all the same.
    least = each.deviation / (each.high - each.low)
    return Pieces(fill, gap, edges, max(float(np.sqrt(variance.sum())), least))


def steps_of(each: ColumnSummary, names: Sequence[str]) -> Steps:
    """The levels in the order of their mean targets, drawn to the mean of all by few rows."""
    counts = np.array([each.levels[name] for name in names], dtype=np.float64)
    sums = np.array([each.sums[name] for name in names])
    means = (sums + STEP_SMOOTHING * sums.sum() / counts.sum()) / (counts + STEP_SMOOTHING)
    order = np.lexsort((names, means))
    below = np.cumsum(counts[order]) / counts.sum()
    variance = float((below[:-1] * (1.0 - below[:-1])).sum())
    middle = int(np.searchsorted(below, 0.5))
    return Steps(tuple(names[k] for k in order), middle, float(np.sqrt(variance)))


def edges_of(each: ColumnSummary, n_pieces: int) -> Array:
    """Different quantiles from the smallest value to the largest; all values, where they are few.

    A value that many rows share counts no more than a piece: nine rows of ten with 0 would leave a
    tenth of the edges to the rest.
    """
    values, ranks = each.sketch.cumulated()
    values, first = np.unique(values, return_index=True)
    if len(values) > n_pieces + 1:
        counts = np.diff(np.append(first_ranks(ranks, first), ranks[-1])).astype(np.float64)
        for _ in range(CAPPED):
            counts = np.minimum(counts, counts.sum() / n_pieces)
        below = np.cumsum(counts) - 0.5 * counts
        places = np.searchsorted(below, np.linspace(0.0, counts.sum(), n_pieces + 1))
        values = values[np.minimum(places, len(values) - 1)]
    return np.unique(np.concatenate([[each.low], values, [each.high]]))


def first_ranks(ranks: Array, first: Array) -> Array:
    """How many values lie before each of these places."""
    return np.where(first > 0, ranks[first - 1], 0)


def _moments(values: Array, counts: Array) -> tuple[Array, Array]:
    share = counts / counts.sum()
    mean = share @ values
    return mean, share @ (values - mean) ** 2


def periods_of(each: ColumnSummary) -> tuple[str, ...]:
    """The cycles that times may follow: those that they go through."""
    span = each.high - each.low
    return tuple(
        period
        for period, there in (
            ("year", span > 60.0),
            ("week", len(each.weekdays) > 1 and span > 3.0),
            ("day", each.clock),
        )
        if there
    )


class MeansFit:
    """Sums of targets by level and fold, from blocks of rows.

    Parameters
    ----------
    plan : Plan
    outputs : tuple of str
        What the columns of targets are called.
    """

    def __init__(self, plan: Plan, outputs: tuple[str, ...]):
        self.outputs = outputs  # and not the plan, whose summary is too much to send about
        self.known = {number: part for number, part in plan.parts if isinstance(part, tuple)}
        self.places = Encoding(tuple(plan.notes), ())
        shape = FOLDS, 1 + len(outputs)
        self.sums = {number: np.zeros((len(each) + 2, *shape)) for number, each in self.known.items()}

    def add(self, table: Table, Y: Array, weight: Array, *, whole: bool = False) -> None:
        """Take rows with targets Y (rows, outputs) into account; ``whole``: there are no others."""
        table = self.places.ordered(table)
        folds = folds_of(table, whole=whole)
        values = np.column_stack([np.ones(len(Y)), Y]) * weight[:, None]
        for number, names in self.known.items():
            column, total = table.column(self.places.names[number]), self.sums[number]
            assert isinstance(column, Levels)
            codes = column.coded_by({name: code for code, name in enumerate(names)}, len(names))
            places = (codes % total.shape[0]) * FOLDS + folds  # a gap is the last
            flat = total.reshape(-1, total.shape[2])
            for k in range(values.shape[1]):
                flat[:, k] += np.bincount(places, values[:, k], minlength=len(flat))

    def join(self, other: MeansFit) -> None:
        """Take the sums of other rows into account."""
        for number, total in other.sums.items():
            self.sums[number] += total

    def finish(self) -> dict[int, Means]:
        """The means, smoothed, centred, and of variance 1 over the rows."""
        return {number: self._means(number) for number in self.known}

    def _means(self, number: int) -> Means:
        total = self.sums[number]  # levels, folds, 1 + outputs
        whole = total.sum(axis=1, keepdims=True)
        each = np.concatenate([whole - total, whole], axis=1)  # without each fold, and all
        prior = each[..., 1:].sum(axis=0) / np.maximum(each[..., :1].sum(axis=0), 1e-300)
        means = (each[..., 1:] + SMOOTHING * prior) / (each[..., :1] + SMOOTHING)
        means = np.moveaxis(means - prior, 1, 0)  # folds + 1, levels, outputs
        share = total[..., 0].T / max(float(total[..., 0].sum()), 1e-300)
        scale = np.sqrt(np.einsum("fl,flk->k", share, means[:-1] ** 2))
        means = means / np.where(scale > 0.0, scale, 1.0)
        return Means(self.known[number], means, self.outputs)
