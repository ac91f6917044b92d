"""``asset plan``: what training on a file would take, before it begins.

The first rows of the file are read, and learnt from by the very code that would train, once and twice,
a few of them and more. That gives, in seconds by the clock and of processors,

    read       of a row, once and in every epoch of a stream; once it is looked at, besides
    setup      a s^2 + c s^3     the map from the sample, the metric, the steps
    once       p s + q s^2       of a row, whatever the epochs: features that are kept, the certificate
    epoch      p s + q s^2       of a row and epoch: a step, and its features where they are not kept

of which c is that of two eigendecompositions, and q that of features, which are tried by themselves
with s components and with half as many. So a plan of more components than are tried follows from the
law. Trials are gone through several times, where they are short, and their medians taken: of a machine
that others work on too, the quickest would tell what hardly ever is. The estimate is for it as it is
now: of three trainings beside each other, each takes a third more of processors' time than by itself.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import is_regressor

from asset_svm.arrays import Array
from asset_svm.cli.options import UsageError, parse_count
from asset_svm.cli.tables import show
from asset_svm.cli.train import Training
from asset_svm.data.array_rows import ArrayRows
from asset_svm.data.compression import stripped
from asset_svm.data.scan import Scanned, scan
from asset_svm.data.source import Block, RowSource
from asset_svm.encoding.table import Table
from asset_svm.estimators.files import SAMPLE_ROWS, check_streamed, fit_rows, held_bytes
from asset_svm.estimators.inside import fitted_of
from asset_svm.estimators.learner import Learner
from asset_svm.families.labels import labelled
from asset_svm.families.one_map.fit import DEFAULT_EPOCHS
from asset_svm.families.one_map.windows import STREAM_EPOCHS, WINDOW_BYTES
from asset_svm.memory import available_memory, in_gigabytes
from asset_svm.settings.mapping import resolve_components
from asset_svm.threads.granted import granted

HEAD_ROWS, FEW_ROWS = 65_536, 8192
"""Rows that are learnt from to see what rows cost; a fit to few tells what else there is."""
MOST_COMPONENTS, USUAL = 2048, 512
"""More are not tried out; fewer rows are with more than the usual."""
TEXT_BYTES = 4 << 20
"""Bytes of a text file that tell how long its lines are."""

LIBRARY_BYTES = 290e6
"""What the libraries take."""
MAPPED_ROWS, TRIALS = 4096, 3
STREAMED = 3
"""The epochs of a trial of a stream."""
ENOUGH_SECONDS = 3.0
"""Trials that have taken longer are not gone through again."""
EIGEN_SIZE = 384

Spent = Array
"""Seconds by the clock, and of processors."""


def spent(work: Callable[[], Any]) -> Spent:
    """What some work takes."""
    begun, used = time.perf_counter(), time.process_time()
    work()
    return np.array([time.perf_counter() - begun, time.process_time() - used])


@dataclass(frozen=True, eq=False)
class Tried:
    """What was seen with s components, each in seconds by the clock and of processors."""

    s: int
    setup: Spent
    once: Spent
    epoch: Spent


@dataclass(frozen=True, eq=False)
class Costs:
    """What the parts of a training cost.

    Parameters
    ----------
    read, look : arrays of shape (2,)
        Of a row; ``look`` is what a scan makes of it once it is read.
    tried : Tried
        With the components that were tried.
    cubic : array of shape (2,)
        c of the law of the set-up.
    square : array of shape (2,)
        q of the law of features.
    mapped : (bool, bool)
        Whether a row is mapped once, and whether it is in every epoch.
    """

    read: Spent
    look: Spent
    tried: Tried
    cubic: Spent
    square: Spent
    mapped: tuple[bool, bool]

    def at(self, s: int) -> Tried:
        """The costs with s components."""
        tried, once, epoch = self.tried, *(mapped * self.square for mapped in self.mapped)
        return Tried(
            s,
            _by_law(tried.setup, tried.s, s, self.cubic, 2, 3),
            _by_law(tried.once, tried.s, s, once, 1, 2),
            _by_law(tried.epoch, tried.s, s, epoch, 1, 2),
        )

    def seconds(self, n_rows: int, s: int, epochs: int, *, streamed: bool, threads: int) -> Spent:
        """The seconds of a training, by the clock and of processors.

        Rows that are streamed are read once for the scan, and once an epoch beside the learning.
        """
        cost = self.at(s)
        total = cost.setup + n_rows * (self.read + self.look + cost.once + epochs * cost.epoch)
        if streamed:
            read = np.array([self.read[1] / threads, self.read[1]])
            beside = epochs * n_rows * (cost.epoch + read)
            beside[0] = max(beside[0], epochs * n_rows * self.read[0])
            total = cost.setup + n_rows * (self.read + self.look + cost.once) + beside
        return np.asarray(total)


def _by_law(seen: Spent, at: int, s: int, top: Spent, low: int, high: int) -> Spent:
    """What costs ``seen`` with ``at`` components, of which top at^high grows faster than at^low."""
    fast = np.minimum(top * float(at) ** high, seen)
    return np.asarray((seen - fast) * (s / at) ** low + fast * (s / at) ** high)


@dataclass
class Planning(Training):
    """The options of ``asset plan``: those of training, and how many rows there are."""

    rows: str | None = None

    def run(self) -> None:
        """Look, try, tell."""
        self._check()
        for name in ("n_cells", "relevance"):
            if self.params.get(name) is not None:
                raise UsageError(f"--{name.replace('_', '-')}: a plan is of one map; leave it out.")
        for name in ("probability", "time_limit"):
            if getattr(self, name):
                raise UsageError(
                    f"--{name.replace('_', '-')}: a plan is of one training, to its end; leave it out."
                )
        if self.settings.map.n_components == "auto":
            raise UsageError("--n-components auto: a plan needs a number.")
        source = self._open()
        begun = time.perf_counter()
        head, read = self._head(source)
        n_rows = self._count(source, head)
        model, rows = self._learner(source, head, whole=n_rows <= len(head))
        per_row = rows.n_bytes / len(rows)
        streamed = n_rows * per_row > held_bytes(self.settings.memory_limit)
        if streamed:
            check_streamed(self.settings)
        epochs = (STREAM_EPOCHS if streamed else DEFAULT_EPOCHS).over(n_rows, self.settings.max_iter)
        s = min(resolve_components(self.settings.map.number), n_rows)
        kept = not streamed and n_rows * s * rows.X.dtype.itemsize <= self.settings.host().memory()
        costs = self._try(read, model, rows, s, streamed=streamed, kept=kept)
        seconds = costs.seconds(n_rows, s, epochs, streamed=streamed, threads=granted())
        memory = self._memory(n_rows, per_row, s, rows.X.dtype.itemsize, streamed=streamed, kept=kept)
        way = "read a window at a time" if streamed else "held in memory"
        if kept:
            way += ", with their features"
        at = costs.at(s)
        lines = [
            [
                "rows",
                f"{n_rows}" + ("" if source.n_rows or self.rows or n_rows == len(head) else ", about"),
            ],
            ["columns", str(rows.X.shape[1])],
            ["components", str(s)],
            ["epochs", str(epochs)],
            ["rows are", way],
            ["read, a million rows", f"{1e6 * read[0]:.3g} s"],
            ["set up", f"{at.setup[0]:.3g} s"],
            ["an epoch, a million rows", f"{1e6 * at.epoch[0]:.3g} s"],
            ["time", _time(seconds[0])],
            ["processor time", _time(seconds[1])],
            ["memory", in_gigabytes(memory)],
            ["free memory", in_gigabytes(available_memory())],
            ["looked for", f"{time.perf_counter() - begun:.1f} s"],
        ]
        show("plan", lines)

    # Rows ---------------------------------------------------------------------------------------

    def _head(self, source: RowSource) -> tuple[Block, Spent]:
        """The first rows, and what reading one takes."""
        blocks: list[Block] = []
        count = 0
        rows = source.plain_blocks(None)

        def some(most: int) -> None:
            nonlocal count
            while count < most and (block := next(rows, None)) is not None:
                blocks.append(block)
                count += len(block)

        opening = spent(lambda: some(1))  # files are opened, and libraries loaded
        before = count
        taken = spent(lambda: some(HEAD_ROWS))
        if count == before and not source.rereadable:
            before, taken = 0, opening
        elif count == before:  # all there is
            rows = source.plain_blocks(None)
            count = before = 0
            blocks.clear()
            taken = spent(lambda: some(HEAD_ROWS))
        if not blocks:
            raise UsageError(f"{source.name} has no rows.")
        return Block.joined(blocks)[:HEAD_ROWS], taken / max(count - before, 1)

    def _count(self, source: RowSource, head: Block) -> int:
        """How many rows there are, told, known or estimated."""
        if self.rows is not None:
            return parse_count(self.rows, "--rows")
        if source.n_rows is not None:
            return source.n_rows
        if len(head) < HEAD_ROWS:
            return len(head)
        files = [Path(file) for file in source.files]
        if not files or any(stripped(file) != file for file in files):
            raise UsageError(
                f"{source.name} does not tell how many rows it has before all are read; say so with "
                "--rows COUNT."
            )
        with files[0].open("rb") as file:
            text = file.read(TEXT_BYTES)
        lines = max(text.count(b"\n"), 1)
        return int(sum(file.stat().st_size for file in files) * lines / len(text))

    def _learner(self, source: RowSource, head: Block, *, whole: bool) -> tuple[Learner, Block]:
        """An estimator, and the first rows, or the ``whole`` of them, as it would learn from them."""
        few: RowSource = _Held(head, source)
        scanned = scan(few, sample_rows=SAMPLE_ROWS, hold_bytes=1 << 62, seed=self.seed)
        self.summary = scanned.summary
        model = self._model(self._found_task())
        if isinstance(head.X, Table):
            scanned = self._encoded(scanned, model, means=True, room=1 << 62)
        assert scanned.held is not None
        rows = labelled(scanned.held, scanned.summary, numeric=is_regressor(model))
        order = np.random.default_rng(self.seed).permutation(len(rows))  # a file may be sorted
        rows = Block(rows.X[order], np.asarray(rows.y)[order])
        if _has_one_class(rows, model) and not whole:
            rows = Block(rows.X, np.arange(len(rows)) % 2)
        return model, rows

    # Trials -------------------------------------------------------------------------------------

    def _try(
        self, read: Spent, model: Learner, rows: Block, s: int, *, streamed: bool, kept: bool
    ) -> Costs:
        """What rows cost with so many components, or as many as are tried."""
        top = min(s, MOST_COMPONENTS, max(len(rows) // 2, 2))
        rows = rows[: len(rows) * USUAL // max(top, USUAL)]
        few, m = rows[: min(FEW_ROWS, max(len(rows) // 8, top))], len(rows)
        own = model.set_params(encoder=None, verbose=0, max_iter=1)
        if not streamed:  # mapped rows are kept, or not, as those of all rows would be
            own = own.set_params(memory_limit=None if kept else 1)

        def fit(block: Block, count: int, epochs: int) -> tuple[Spent, list[Array]]:
            """What a fit takes, and moments and rows at the end of its windows, where it has some."""
            if _has_one_class(block, model) and not _has_one_class(rows, model):
                block = Block(block.X, np.arange(len(block)) % 2)
            one, ends = own.set_params(n_components=count, max_iter=epochs), list[Array]()
            if not streamed:
                return spent(lambda: one.fit(block.X, block.y)), ends
            array = ArrayRows(block.X, block.y, dtype=block.X.dtype)
            told = scan(array, sample_rows=SAMPLE_ROWS, hold_bytes=0, seed=self.seed)

            def watch(record: dict[str, Any]) -> bool:
                ends.append(np.array([time.perf_counter(), time.process_time(), record["steps"]]))
                return False

            scanned = Scanned(told.source, told.summary)
            return spent(lambda: fit_rows(one, scanned, watch=watch)), ends

        def try_once() -> list[Spent]:
            """(set-up, a row of one epoch, of each further one), as this trial tells them."""
            if streamed:
                whole, ends = fit(rows, top, STREAMED)
                epoch, done = _streamed(whole, ends, m)
                return [whole - done * epoch, epoch, epoch]
            little, much, twice = (
                fit(*each)[0] for each in ((few, top, 1), (rows, top, 1), (rows, top, 2))
            )
            first_epoch = (much - little) / max(m - len(few), 1)
            return [much - m * first_epoch, first_epoch, (twice - much) / m]

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of models that nobody keeps
            fit(few, max(top // 2, 1), 1)  # compiles
            half, begun = self._mapped(own, rows), time.perf_counter()
            trials = [try_once()]
            while len(trials) < TRIALS and time.perf_counter() - begun < ENOUGH_SECONDS:
                trials.append(try_once())
            whole = self._mapped(own, rows)
        square = np.maximum(whole - 2.0 * half, 0.0) / (0.5 * top**2)
        mapped = (not streamed, not kept)
        # Differences of trials may be anything where other work runs; features take what they take.
        least_once, least_epoch = whole * mapped[0], np.maximum(whole * mapped[1], 1e-12)
        setup, first_epoch, epoch = np.median(trials, axis=0)
        first_epoch = np.maximum(first_epoch, least_once + least_epoch)
        epoch = np.clip(epoch, least_epoch, first_epoch - least_once)
        setup, once = np.maximum(setup, 0.0), first_epoch - epoch
        tried = Tried(top, setup, once, epoch)
        return Costs(read, _look_cost(rows), tried, _eigen_cost(), square, mapped)

    def _mapped(self, model: Learner, rows: Block) -> Spent:
        """What the features of a row take: the median of some trials, on all threads by the clock."""
        phi, some = fitted_of(model).phi, rows.X[:MAPPED_ROWS]
        used = float(np.median([spent(lambda: phi(some))[1] for _ in range(TRIALS)]))
        return np.array([used / granted(), used]) / some.shape[0]

    def _memory(
        self, n_rows: int, per_row: float, s: int, itemsize: int, *, streamed: bool, kept: bool
    ) -> float:
        """The most that the process would hold: what this one did, and what more there would be."""
        total = _peak_memory()
        total += 5 * 8 * max(s**2 - MOST_COMPONENTS**2, 0)  # a matrix, its eigenvectors, their work
        total += 0.0 if streamed else 2.0 * per_row * n_rows  # as blocks, and joined
        total += n_rows * s * itemsize if kept else 0
        return total + (3 * WINDOW_BYTES if streamed else 0)


def _streamed(whole: Spent, ends: list[Array], m: int) -> tuple[Spent, float]:
    """What a row of a stream takes, and how many rows a trial that took ``whole`` has gone through.

    Threads begin in the first epoch, of m rows, and in its first window: where there are later
    windows, they tell. ``ends`` are moments and rows at the ends of windows.
    """
    if not ends:
        return whole / m, float(m)
    last = ends[-1]
    for first in ([end for end in ends if end[2] >= m], ends):
        if first and last[2] > first[0][2]:
            return (last[:2] - first[0][:2]) / (last[2] - first[0][2]), float(last[2])
    return whole / last[2], float(last[2])


class _Held(RowSource):
    """A block as a source, with the names of another."""

    def __init__(self, block: Block, source: RowSource):
        self.block, self.name, self.n_rows = block, source.name, len(block)
        self.n_features, self.feature_names = source.n_features, source.feature_names

    def _read(self, order: Array | None) -> Any:
        yield self.block


def _has_one_class(rows: Block, model: Learner) -> bool:
    """Whether rows have one class where there should be several."""
    y = np.asarray(rows.y)
    return not is_regressor(model) and y.ndim == 1 and bool((y == y[0]).all())


def _look_cost(rows: Block) -> Spent:
    """What a scan makes of a row that is read: its targets, its place in the sample."""
    array = ArrayRows(rows.X, rows.y, dtype=rows.X.dtype)
    return spent(lambda: scan(array, sample_rows=SAMPLE_ROWS, hold_bytes=0, seed=0)) / len(rows)


def _eigen_cost() -> Spent:
    """What two eigendecompositions of s x s take, over s^3: of the map's matrix, and of the metric."""
    A = np.random.default_rng(0).normal(size=(EIGEN_SIZE, EIGEN_SIZE))
    A = A @ A.T
    np.linalg.eigh(A)
    return np.asarray(2.0 * spent(lambda: np.linalg.eigh(A)) / EIGEN_SIZE**3)


def _peak_memory() -> float:
    """The most bytes that this process has had; those of libraries where the system does not tell."""
    try:
        import resource
    except ModuleNotFoundError:  # Windows
        return LIBRARY_BYTES
    seen = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return float(seen) * (1 if sys.platform == "darwin" else 1024)


def _time(seconds: float) -> str:
    """Seconds as people say them."""
    if seconds < 120:
        return f"{seconds:.1f} s"
    if seconds < 7200:
        return f"{seconds / 60:.1f} min"
    return f"{seconds / 3600:.1f} h"
