"""One pass over a source: how many rows there are, of what kind, and a uniform sample of them.

What a run has to know before its first step, in memory that does not grow with the file. Rows that
all fit in a given number of bytes are kept on the way, and need not be read again.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack, closing
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from asset_svm import clock
from asset_svm.arrays import Array, Matrix
from asset_svm.data.fingerprint import Fingerprint, Steady, fingerprinted
from asset_svm.data.several_targets import SeveralTargets
from asset_svm.data.source import Block, RowSource, widened
from asset_svm.encoding.summary import TableSummary
from asset_svm.encoding.table import Table
from asset_svm.exceptions import DataError

MOST_CLASSES = 100
"""More different targets are no classes, unless the user says so."""
MOST_LABELS = 1000
"""Targets of more different values are not counted one by one."""
SLACK = 1.25
"""Rows that are kept on the way, for each of the sample."""


@dataclass
class TargetSummary:
    """What the targets are.

    Parameters
    ----------
    kind : {"", "numbers", "names"}
    counts : dict or None
        Rows of each target; None where there are more than ``MOST_LABELS``.
    low, high : float
        Of numbers.
    whole : bool
        Whether all numbers are integers.
    """

    kind: str = ""
    counts: dict[Any, int] | None = field(default_factory=dict)
    low: float = np.inf
    high: float = -np.inf
    whole: bool = True

    def add(self, y: Array, name: str) -> None:
        """Take the targets of a block into account."""
        found = TargetSummary("names" if y.dtype.kind in "UO" else "numbers")
        if found.kind == "numbers":
            found.low, found.high = float(y.min()), float(y.max())
            found.whole = bool((y == np.rint(y)).all())
        if self.counts is not None:
            labels, counts = np.unique(y, return_counts=True)
            found.counts = dict(zip(labels.tolist(), counts.tolist(), strict=True))
        self.join(found, name)

    def join(self, other: TargetSummary, name: str) -> None:
        """Take the targets of other rows into account."""
        if not other.kind:
            return
        if self.kind and other.kind != self.kind:
            raise DataError(f"{name}: targets are {self.kind} first, and {other.kind} later.")
        self.kind = other.kind
        self.low, self.high = min(self.low, other.low), max(self.high, other.high)
        self.whole = self.whole and other.whole
        if self.counts is not None and other.counts is not None:
            for label, count in other.counts.items():
                self.counts[label] = self.counts.get(label, 0) + count
        if self.counts is None or other.counts is None or len(self.counts) > MOST_LABELS:
            self.counts = None

    def changed(self, low: Any, high: Any) -> TargetSummary:
        """The same numbers after a function that makes these ends of theirs."""
        return replace(self, low=float(low), high=float(high), whole=False, counts=None)

    @property
    def classes(self) -> Array | None:
        """The different targets in order, integers where they are whole; None if too many."""
        if self.counts is None:
            return None
        labels = np.array(sorted(self.counts))
        return labels.astype(np.int64) if self.kind == "numbers" and self.whole else labels

    @property
    def class_counts(self) -> Array:
        """The number of rows of each of ``classes``."""
        assert self.counts is not None
        return np.array([self.counts[label] for label in sorted(self.counts)], dtype=np.float64)

    @property
    def classifies(self) -> bool:
        """Whether these look like classes: at most 100 different names or integers."""
        few = self.counts is not None and len(self.counts) <= MOST_CLASSES
        return few and (self.kind == "names" or self.whole)


def summary_of(y: Array) -> TargetSummary | SeveralTargets:
    """What is to be known of targets like these, before any have been seen."""
    if y.ndim == 1:
        return TargetSummary()
    return SeveralTargets([TargetSummary() for _ in range(y.shape[1])])


@dataclass
class Summary:
    """What a pass over the rows told.

    Parameters
    ----------
    n_rows, n_features, n_bytes : int
        ``n_bytes`` is what all rows would take in memory.
    targets : TargetSummary or SeveralTargets
    sample : Block
        Rows drawn uniformly without replacement, in a random order.
    table : TableSummary or None
        What the columns are, where blocks are tables.
    spread : Block or None
        More rows, drawn uniformly too, in the order of the file: cells are grown from them.
    """

    n_rows: int
    n_features: int
    n_bytes: int
    targets: TargetSummary | SeveralTargets
    sample: Block
    table: TableSummary | None = None
    spread: Block | None = None

    @property
    def whole(self) -> Block | None:
        """All rows in their order, where the sample for cells has them."""
        return self.spread if self.spread is not None and len(self.spread) == self.n_rows else None

    def window_rows(self, n_bytes: int, most: int) -> int:
        """Rows that fit in so many bytes, at most ``most``."""
        per_row = max(self.n_bytes / self.n_rows, 1.0)
        return int(np.clip(n_bytes / per_row, 256, most))


@dataclass(frozen=True, eq=False)
class Scanned:
    """A source, its summary, all of its rows where they fit in memory, and what its files were.

    ``steady`` is what they were when they were first looked at, without reading them for it;
    ``seconds`` is what the pass took.
    """

    source: RowSource
    summary: Summary
    held: Block | None = None
    files: Fingerprint | None = None
    steady: Steady | None = None
    seconds: float = 0.0

    def check_steady(self) -> None:
        """Raise where a file changed since it was scanned."""
        if self.steady is not None:
            self.steady.check()

    def transformed(self, function: Callable[[Any], Matrix]) -> Scanned:
        """The same scan with ``function`` applied to the X of every block."""
        before = self.summary
        sample = Block(function(before.sample.X), before.sample.y)
        spread = before.spread and Block(function(before.spread.X), before.spread.y)
        n, per_row = int(sample.X.shape[1]), sample.n_bytes / max(len(sample), 1)
        summary, width = replace(before, sample=sample, spread=spread, n_features=n, table=None), None
        if before.table is not None:  # what rows take says nothing of what their numbers will
            summary, width = replace(summary, n_bytes=int(per_row * before.n_rows)), n
        held = None if self.held is None else Block(function(self.held.X), self.held.y)
        source = self.source.transformed(function, width)
        return replace(self, source=source, summary=summary, held=held)

    def with_targets(self, function: Callable[[Array], Array]) -> Scanned:
        """The same scan of numbers with an increasing ``function`` applied to every target."""

        def changed(block: Block) -> Block:
            return Block(block.X, None if block.y is None else function(block.y))

        before = self.summary
        targets = before.targets.changed(*function(np.array([before.targets.low, before.targets.high])))
        sample, spread = changed(before.sample), before.spread and changed(before.spread)
        summary = replace(before, targets=targets, sample=sample, spread=spread)
        held = None if self.held is None else changed(self.held)
        source = self.source.with_targets(function)
        return replace(self, source=source, summary=summary, held=held)


class _Sample:
    """The rows with the smallest of as many random keys: uniform, in one pass.

    ``size`` tells how many there are to be of so many rows that take so many bytes; as a share of the
    rows it may only fall.
    """

    def __init__(self, size: Callable[[int, int], int], seed: int):
        self.size, self.rng = size, np.random.default_rng([seed, 5])
        self.keys, self.places, self.blocks = np.empty(0), np.empty(0, dtype=np.int64), list[Block]()
        self.n_rows = self.n_bytes = 0
        self.limit = 1.0

    def add(self, block: Block) -> None:
        keys, before = self.rng.random(len(block)), self.n_rows
        self.n_rows, self.n_bytes = before + len(block), self.n_bytes + block.n_bytes
        chosen = np.flatnonzero(keys < self.limit)
        if len(chosen) == 0:
            return
        self.keys = np.concatenate([self.keys, keys[chosen]])
        self.places = np.concatenate([self.places, before + chosen])
        self.blocks.append(block[chosen])
        # More than there are to be: of the rows to come fewer may be so small than on the average.
        kept = int(SLACK * self._wanted)
        if len(self.keys) > 1.5 * kept:
            self._keep(kept)

    @property
    def _wanted(self) -> int:
        return self.size(self.n_rows, self.n_bytes)

    def _keep(self, count: int) -> Block:
        order = np.argsort(self.keys)[:count]
        self.blocks = [Block.joined(self.blocks)[order]]
        self.keys, self.places = self.keys[order], self.places[order]
        if len(order) == count:
            self.limit = float(self.keys[-1])
        return self.blocks[0]

    def take(self) -> Block:
        """The sample in the order of the keys, which is random."""
        return self._keep(self._wanted)


def scan(
    source: RowSource,
    *,
    sample_rows: int,
    hold_bytes: int,
    seed: int,
    spread: Callable[[int, int], int] | None = None,
    observe: Callable[[Matrix], Any] | None = None,
    too_large: Callable[[], Any] | None = None,
    free: Callable[[], int] | None = None,
    fingerprint: bool = False,
) -> Scanned:
    """Read the source once.

    Parameters
    ----------
    sample_rows : int
        Rows of the sample.
    hold_bytes : int
        Rows are held in memory where they all take no more.
    spread : callable, optional
        The size, from rows and bytes, of a larger sample in the order of the rows; none where they are
        held.
    observe : callable, optional
        Called with the X of every block.
    too_large : callable, optional
        Called once it is known that the rows take more than ``hold_bytes``.
    free : callable, optional
        The bytes of memory that can still be taken: rows that are held are copied once more.
    fingerprint : bool
        Whether to tell what the files were.
    """
    sample, table = _Sample(spread or (lambda n_rows, n_bytes: sample_rows), seed), TableSummary()
    targets: TargetSummary | SeveralTargets | None = None
    n_rows = n_features = n_bytes = 0
    held: list[Block] | None = []
    steady, begun = Steady.of(source.files), clock.now()
    with ExitStack() as stack:
        files = stack.enter_context(fingerprinted(source.files)) if fingerprint else None
        for block in stack.enter_context(closing(source.blocks())):  # type: ignore[type-var]
            if block.y is None:
                raise DataError(f"{source.name} has no targets; say where they are with target=.")
            if targets is None:
                targets = summary_of(block.y)
            targets.add(block.y, source.name)
            n_rows, n_bytes = n_rows + len(block), n_bytes + block.n_bytes
            n_features = max(n_features, block.X.shape[1])
            sample.add(block)
            if isinstance(block.X, Table):
                plain = block.y.ndim == 1 and block.y.dtype.kind in "fiu"
                table.add(block.X, block.y if plain else None)
            if observe is not None:
                observe(block.X)
            if held is not None:
                held.append(block)
                if n_bytes > hold_bytes:
                    held = None
                    if too_large is not None:
                        too_large()
                    if not source.rereadable:
                        raise DataError(
                            f"{source.name} has more rows than fit in {hold_bytes} bytes and cannot be "
                            "read twice; learn online (--online), raise the memory limit, or save it "
                            "to a file."
                        )
                elif free is not None and n_bytes > (left := free()):
                    raise MemoryError(
                        f"{source.name} is held in memory up to {hold_bytes} bytes of rows, and {left} "
                        f"bytes are free after {n_bytes} of them; set memory_limit (--memory) lower, "
                        "and rows are read a window at a time."
                    )
        told = None if files is None else files()
    steady.check()
    n_features = source.n_features or max(n_features, 1)
    drawn, whole, more = sample.take(), None, None
    drawn = Block(widened(drawn.X, n_features), drawn.y)
    columns = table if table.columns else None
    assert targets is not None
    if spread is not None:
        if held is None or columns is not None:  # what is made of a table may be larger
            more = drawn[np.argsort(sample.places)]
        drawn = drawn[: min(sample_rows, len(drawn))]
    summary = Summary(n_rows, n_features, n_bytes, targets, drawn, columns, more)
    if held is not None:
        whole = Block.joined(held)
        whole = Block(widened(whole.X, n_features), whole.y)
    seconds = clock.now() - begun
    return Scanned(source.narrowed(n_features), summary, whole, told, steady, seconds)
