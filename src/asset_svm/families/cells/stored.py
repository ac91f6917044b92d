"""Cells of rows that do not fit in memory, and so are sorted into their cells on the disk first.

    scan      told before: how many rows, the targets, a sample, from which the partition is grown
    sort      a second pass: every row finds its cell, and goes to the bundle of its cell on the disk
    solve     a bundle at a time is read, and its cells are solved as those of rows in memory are

A cell is a function of its rows, in their order, and of its number. So where the sample has all rows,
the model is that of the rows in memory, bit for bit; with more rows it differs by the partition alone.
Every partition reads the file once. In memory are the sample, two windows or two bundles, the kernel
matrices of ``memory_limit``, and the model.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from asset_svm import clock
from asset_svm.arrays import Array
from asset_svm.data.ahead import ahead
from asset_svm.data.bundles import Bundles, cut_into, require_space, row_bytes
from asset_svm.data.scan import Scanned
from asset_svm.data.several_targets import beside, columns_of
from asset_svm.data.source import Block
from asset_svm.exceptions import DataError
from asset_svm.families.base import Trained
from asset_svm.families.cells.constant import Constant
from asset_svm.families.cells.decision import CellModels
from asset_svm.families.cells.fit import cell_problem, fit_partitions, solve_groups
from asset_svm.families.cells.fitted import FittedCells
from asset_svm.families.cells.partitions import grow_partition, partition_seed
from asset_svm.families.cells.progress import CellProgress
from asset_svm.families.cells.trainer import CellTrainer, FittedCell
from asset_svm.families.decision import Decision
from asset_svm.families.labels import labelled
from asset_svm.families.observing import Observer, logger
from asset_svm.families.one_map.keeping import Keeper
from asset_svm.families.rows import Rows
from asset_svm.families.whole import WholeTask
from asset_svm.features.cells import Partition, grouped
from asset_svm.features.kernel_basis import KernelBasis
from asset_svm.kernels import Kernel
from asset_svm.memory import in_gigabytes, planned_memory
from asset_svm.settings import Settings
from asset_svm.solvers.cells import CellProblem
from asset_svm.storage.cells import SolvedCell
from asset_svm.tasks import Task
from asset_svm.threads.granted import grant

WINDOW_ROWS = 65_536
WINDOW_BYTES = 32 << 20
"""A window has at most so many rows, and takes about so many bytes."""
BUNDLE_SHARE = 16
"""A bundle takes about this part of the memory that is planned."""
FEWEST_SAMPLED = 8
"""Rows of the sample for each cell, at least."""


@dataclass(frozen=True, eq=False)
class _Solved:
    """A cell with the weight of its rows, and how many there are."""

    cell: FittedCell
    weight: float


@dataclass(eq=False)
class StoredCells:
    """One fit of cells from a file.

    Parameters
    ----------
    task : Task
        Not settled yet: a sample of the rows does that.
    keeper : Keeper, optional
        It saves the cells that are solved, and knows those of the run to go on with.
    observer : Observer
        Its ``watch`` is called with records while rows are sorted and cells are solved; True asks to
        stop.
    folder : path
        Where temporary files go.
    """

    settings: Settings
    task: Task
    scanned: Scanned
    keeper: Keeper | None
    observer: Observer
    folder: Any
    known: dict[tuple[int, int], SolvedCell] = field(default_factory=dict, init=False)

    def run(self) -> Trained[FittedCells]:
        """Train the cells of every partition; the rows that are returned are a sample."""
        begun, settings = clock.now(), self.settings
        with grant(settings.n_threads):
            self._prepare(settings.deadline(begun))
            self.progress = CellProgress(settings, begun, self.observer)
            dtype = self.rows.X.dtype
            bare = FittedCells.empty(self.whole.task, self.kernel, dtype, self.seed, self.lam)
            found, fitted = fit_partitions(
                settings, bare, self.n_rows, self.progress, self._train, self.problem
            )
        if len(found.decision.parts) == 1 and len(fitted) == 1 and fitted[0].support is not None:
            count = self.whole.task.count_by_class(self.support_targets)
            found = replace(found, support=fitted[0].support, n_support=count)
        return Trained(found, self.rows, sampled=True)

    def warn(self) -> None:
        """Nothing: the order of the rows changes no cell."""

    # Set-up -------------------------------------------------------------------------------------

    def _prepare(self, deadline: float) -> None:
        """What all cells share, from the scan, or from the run to go on with."""
        settings, summary, keeper = self.settings, self.scanned.summary, self.keeper
        sample = summary.sample if summary.spread is None else summary.spread
        sample = labelled(sample, summary, numeric=self.task.numeric)
        self.whole = WholeTask.of_summary(self.task, summary, sample)
        y = np.asarray(sample.y)
        ones = np.ones(len(y))
        rows = Rows(sample.X, y, ones, self.whole.weights(y, ones), np.arange(len(y)))
        self.rows = rows.take(np.flatnonzero(rows.weight))
        self.total_weight, self.n_rows = self._totals(all_rows=len(y) == summary.n_rows)
        if keeper is not None and keeper.resumed is not None:
            self.seed = keeper.resumed.seed
            self.known = {(cell.partition, cell.number): cell for cell in keeper.cells()}
        else:
            self.seed = settings.draw_seed()
            if keeper is not None:
                keeper.begin_cells(self.seed)
        self.kernel: Kernel = settings.map.kernel_for(self.rows.X, self.rows.uneven)
        self.lam = float(settings.lam_of(self.total_weight))
        self.deadline = deadline
        self.problem = self._problem(self.rows)
        self._check_sample()

    def _totals(self, *, all_rows: bool) -> tuple[float, int]:
        """The weight of all rows, and how many have one."""
        summary, whole = self.scanned.summary, self.whole
        if all_rows:
            return float(self.rows.weight.sum()), len(self.rows.y)
        total, n_rows = whole.total_weight(summary), summary.n_rows
        if whole.factors is not None:
            n_rows = int(summary.targets.class_counts @ (np.asarray(whole.factors) > 0.0))
        return total, n_rows

    def _problem(self, rows: Rows) -> CellProblem:
        encoded = self.whole.encode(rows.y)
        total = self.total_weight
        return cell_problem(self.settings, rows, encoded, self.kernel, self.lam, total, self.deadline)

    def _check_sample(self) -> None:
        """Raise where memory allows too small a sample for so many cells."""
        n_cells, sampled = self.settings.cells_of(self.n_rows), len(self.rows.y)
        if sampled < self.n_rows and sampled < FEWEST_SAMPLED * n_cells:
            raise MemoryError(
                f"{n_cells} cells are grown from a sample of {FEWEST_SAMPLED} rows each at least, and "
                f"memory_limit allows {sampled} rows; set n_cells to at most "
                f"{max(sampled // FEWEST_SAMPLED, 1)}, or raise memory_limit (--memory)."
            )

    # One partition ------------------------------------------------------------------------------

    def _train(self, number: int) -> tuple[CellModels, list[FittedCell]]:
        """The cells of one partition."""
        partition, groups = grow_partition(
            self.rows.X, self.settings.cells_of(self.n_rows), self.seed, number
        )
        found: dict[int, _Solved] = {
            cell: self._again(saved) for (of, cell), saved in self.known.items() if of == number
        }
        wanted = np.array([cell not in found for cell in range(partition.n_cells)])
        if wanted.any():
            sizes = np.array([len(group) for group in groups]) * (self.n_rows / len(self.rows.y))
            with self._sorted(number, partition, np.where(wanted, sizes, 0.0)) as bundles:
                rows = int(bundles.sizes.sum())
                self.progress.partition_begin(number, partition.n_cells, self.n_rows)
                if len(found):
                    self.progress.known(len(found), self.n_rows - rows)
                self._solve(number, bundles, found)
        else:
            self.progress.partition_begin(number, partition.n_cells, self.n_rows)
        decisions = [found[c].cell if c in found else self._nothing() for c in range(partition.n_cells)]
        mean = self.total_weight / self.n_rows
        # The sample had rows in every cell; rounding may have taken a cell its last one.
        weights = np.array([found[c].weight if c in found else mean for c in range(partition.n_cells)])
        shares = weights / self.total_weight
        models = [cell.decision for cell in decisions]
        return CellModels(partition, models, shares, mean, self.n_rows), decisions

    @contextmanager
    def _sorted(self, number: int, partition: Partition, sizes: Array) -> Iterator[Bundles]:
        """The rows of cells on the disk; ``sizes`` are about how many, 0 for cells that are known."""
        summary = self.scanned.summary
        each = row_bytes(self.rows.X, self._coded(self.rows.y))
        planned = planned_memory(self.settings.memory_limit)
        of = cut_into(sizes * each, planned / BUNDLE_SHARE)
        needed = float(sizes.sum()) * each
        self._check_size(float(np.bincount(of, sizes).max()), each, planned)
        require_space(needed, self.folder)
        logger.info("cells: %s of temporary files in %s", in_gigabytes(needed), self.folder)
        more = {"temporary": needed, "folder": str(self.folder)}
        limit = min(WINDOW_BYTES, planned // BUNDLE_SHARE)
        window_rows = summary.window_rows(limit, WINDOW_ROWS)
        wanted, done = sizes > 0.0, 0
        with closing(Bundles(self.folder, int(of[-1]) + 1)) as bundles:
            self.progress.sorting(number, 0, summary.n_rows, **more)
            self.scanned.check_steady()
            windows = ahead(self.scanned.source.windows(window_rows), depth=1)
            with closing(windows) as ready:  # type: ignore[type-var]
                for window in ready:
                    self._sort(window, partition, of, wanted, bundles)
                    done += len(window)
                    self.progress.sorting(number, done, summary.n_rows, **more)
                    if self.progress.stopped:
                        raise KeyboardInterrupt  # there is no model before all rows have found cells
            self.scanned.check_steady()
            if done != summary.n_rows:
                name = self.scanned.source.name
                raise DataError(
                    f"{name} changed on the way: it had {summary.n_rows} rows and now has {done}; "
                    "begin again when it is whole."
                )
            yield bundles

    def _check_size(self, n_rows: float, each: float, room: int) -> None:
        """Raise where so many rows, those of a cell at least, are too many to be read at once."""
        if n_rows * each > room:
            raise MemoryError(
                f"The largest cell of {self.scanned.source.name} has some {n_rows:.0f} rows, which "
                f"take {in_gigabytes(n_rows * each)}, and memory_limit is {in_gigabytes(room)}; raise "
                "n_cells, or raise memory_limit (--memory)."
            )

    def _sort(
        self, window: Block, partition: Partition, of: Array, wanted: Array, bundles: Bundles
    ) -> None:
        """Write a window of rows to the bundles of their cells."""
        block = labelled(window, self.scanned.summary, numeric=self.task.numeric)
        y = np.asarray(block.y)
        cells = partition.assign(block.X)
        kept = wanted[cells]
        if self.whole.factors is not None:
            kept &= self.whole.weights(y, np.ones(len(y))) > 0.0
        X, y = block.X, self._coded(y)
        if not kept.all():
            some = np.flatnonzero(kept)
            X, y, cells = X[some], y[some], cells[some]
        if len(cells):
            bundles.add(X, y, cells, of[cells])

    def _solve(self, number: int, bundles: Bundles, found: dict[int, _Solved]) -> None:
        """Solve the cells of all bundles, one bundle after the other."""
        keeper, planned = self.keeper, planned_memory(self.settings.memory_limit)
        each = row_bytes(self.rows.X, self._coded(self.rows.y))
        self._check_size(float(bundles.sizes.max()), each, planned)
        filled = np.flatnonzero(bundles.sizes).tolist()
        with closing(ahead(bundles.read_each(filled), depth=1)) as ready:  # type: ignore[type-var]
            for _, X, codes, cells in ready:
                solved = self._solve_bundle(number, X, self._decoded(codes), cells)
                found.update(solved)
                if keeper is not None and not self.progress.stopped and not self.problem.is_late:
                    keeper.add_cells(_saved(number, solved), now=False)
        if keeper is not None:
            keeper.add_cells([], now=self.progress.stopped)

    def _solve_bundle(self, number: int, X: Any, y: Array, cells: Array) -> dict[int, _Solved]:
        """Solve the cells of these rows."""
        ones = np.ones(len(y))
        rows = Rows(X, y, ones, self.whole.weights(y, ones), np.arange(len(y)))
        problem = self._problem(rows)
        numbers, of = np.unique(cells, return_inverse=True)
        listed = numbers.tolist()
        groups = dict(zip(listed, grouped(rows.index, of, len(numbers)), strict=True))
        seed, largest = partition_seed(self.seed, number), problem.largest(self.settings.memory_limit)
        train = CellTrainer(self.settings, self.whole.task, rows, problem, groups, seed, largest)
        fitted = solve_groups(train, listed, self.progress)
        if len(y) == self.scanned.summary.n_rows and len(listed) == 1 and fitted[0].support is not None:
            self.support_targets = y[fitted[0].support]  # of the one cell there is
        else:
            fitted = [replace(cell, support=None) for cell in fitted]
        weights = [float(rows.weight[groups[cell]].sum()) for cell in listed]
        return {c: _Solved(f, w) for c, f, w in zip(listed, fitted, weights, strict=True)}

    def _nothing(self) -> FittedCell:
        """A cell without rows."""
        encoded = self.problem.targets
        values = np.full(encoded.n_models, self.whole.task.offset)
        return FittedCell(Constant(values), 0.0, 0.0, 0, converged=True)

    def _again(self, saved: SolvedCell) -> _Solved:
        """A cell that an earlier run has solved."""
        decision: Any = Constant(saved.intercept, saved.some, saved.targets)
        if saved.support is not None:
            assert saved.weights is not None
            decision = Decision(KernelBasis(self.kernel, saved.support), saved.weights, saved.intercept)
        told = saved.objective, saved.dual_gap, saved.sweeps, saved.converged, saved.definite
        return _Solved(FittedCell(decision, *told), saved.weight)

    # Targets on the disk ------------------------------------------------------------------------

    def _coded(self, y: Array) -> Array:
        """Targets as numbers of one size: those of classes, instead of their names."""
        if self.task.numeric:
            return y
        classes = self.whole.task.classes
        several = classes if isinstance(classes, list) else [classes]
        codes = [np.searchsorted(*pair) for pair in zip(several, columns_of(y), strict=True)]
        found = codes[0] if y.ndim == 1 else np.column_stack(codes)
        return found.astype(np.int32)

    def _decoded(self, codes: Array) -> Array:
        """The targets that have these numbers."""
        if self.task.numeric:
            return codes
        classes = self.whole.task.classes
        if codes.ndim == 1:
            return np.asarray(classes[codes])
        return beside([own[column] for own, column in zip(classes, codes.T, strict=True)])


def _saved(partition: int, solved: dict[int, _Solved]) -> list[SolvedCell]:
    """The cells that can be saved: all but approximations, which are learnt again."""
    found = []
    for number, one in solved.items():
        cell, decision = one.cell, one.cell.decision
        if cell.support is not None:  # the one cell there is: there is no part of a run to keep
            continue
        told: Any = (cell.objective, cell.dual_gap, cell.sweeps, cell.converged, cell.definite)
        where = partition, number, one.weight
        if isinstance(decision, Constant):
            some = decision.X, decision.y
            found.append(SolvedCell(*where, None, None, decision.values, *some, *told))
        elif isinstance(decision, Decision):
            sums = decision.source.components, decision.weights, decision.intercept
            found.append(SolvedCell(*where, *sums, None, None, *told))
    return found
