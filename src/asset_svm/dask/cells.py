"""Cells over the workers of a cluster: every row goes to the worker that solves its cell.

    grow      the partition of the input space, from the sample, sent to every worker
    find      the cell of every row, where the row lies; the sizes of all cells come to the client
    route     each part is cut into bundles of cells, and the pieces of a bundle meet on one worker
    solve     the cells of a bundle, each by itself, as on one machine
    gather    the cells, as the plain estimator has them

A cell is a function of its rows, in their order, and of its number: which worker solves it, and with
which others, is of no consequence. All of this is one graph of Dask's, which computes again by itself
what a dead worker had.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from dask.delayed import Delayed, delayed

from asset_svm import clock
from asset_svm.arrays import Array
from asset_svm.dask.cluster import Cluster, finished
from asset_svm.dask.loading import Loaded
from asset_svm.dask.partitions import Part, join
from asset_svm.families.cells import CellModels, Constant, FittedCells
from asset_svm.families.cells.fit import cell_problem, fit_partitions
from asset_svm.families.cells.partitions import grow_partition, partition_seed
from asset_svm.families.cells.progress import CellProgress
from asset_svm.families.cells.trainer import CellTrainer, FittedCell
from asset_svm.families.observing import Observer
from asset_svm.families.rows import Rows
from asset_svm.families.whole import WholeTask
from asset_svm.features.cells import Partition, grouped
from asset_svm.kernels import Kernel
from asset_svm.settings import Settings
from asset_svm.solvers.cells import CellProblem
from asset_svm.threads.blas import few_threads

BUNDLES = 4
"""The bundles for each thread of the cluster: more even out what cells cost, and are more to send."""


@dataclass(frozen=True, eq=False)
class CellWork:
    """What a worker must know to solve the cells of one partition.

    Parameters
    ----------
    largest : int
        Rows of a cell up to which it is solved whole: the same on every worker.
    """

    settings: Settings
    whole: WholeTask
    kernel: Kernel
    lam: float
    total_weight: float
    largest: int
    seed: int

    def __call__(self, part: Part, cells: Array) -> list[tuple[int, FittedCell]]:
        """Solve the cells of these rows; they come with their numbers."""
        weight, encoded = self.whole.weights(part.y, part.weight), self.whole.encode(part.y)
        rows = Rows(part.X, part.y, part.weight, weight, np.arange(len(part.y)))
        problem = cell_problem(self.settings, rows, encoded, self.kernel, self.lam, self.total_weight)
        numbers, of = np.unique(cells, return_inverse=True)
        groups = dict(zip(numbers.tolist(), grouped(rows.index, of, len(numbers)), strict=True))
        task = self.whole.task
        train = CellTrainer(self.settings, task, rows, problem, groups, self.seed, self.largest)
        with few_threads(0):
            begun = train.begun(list(groups), 1)
            return [(number, begun(number)) for number in groups]


# On workers ---------------------------------------------------------------------------------------


def find_cells(part: Part, partition: Partition, dtype: Any) -> Array:
    """The cell of every row of a part."""
    with few_threads(0):
        return partition.assign(part.X.astype(dtype, copy=False)).astype(np.int32)


def weigh_cells(part: Part, cells: Array, n_cells: int, whole: WholeTask) -> Array:
    """The rows and the weight of each cell in a part."""
    weight = whole.weights(part.y, part.weight)
    count = np.bincount(cells, minlength=n_cells).astype(np.float64)
    return np.array([count, np.bincount(cells, weights=weight, minlength=n_cells)])


def route_rows(part: Part, cells: Array, bundle_of: Array, count: int) -> list[Any]:
    """The rows of a part for each bundle, with their cells."""
    pieces = grouped(np.arange(len(cells)), bundle_of[cells], count)
    return [(part.take(rows), cells[rows]) for rows in pieces]


def meet_rows(pieces: list[tuple[Part, Array]], dtype: Any) -> tuple[Part, Array]:
    """The rows of a bundle from all parts, in the order of the parts."""
    return join([part for part, _ in pieces], dtype), np.concatenate([cells for _, cells in pieces])


def solve_cells(work: CellWork, met: tuple[Part, Array]) -> list[tuple[int, FittedCell]]:
    """The cells of a bundle, with their numbers."""
    return work(*met)


def add_up(tables: list[Array]) -> Array:
    """The sum of tables."""
    return np.sum(tables, axis=0)


# On the client ------------------------------------------------------------------------------------


def fit_cells(settings: Settings, cluster: Cluster, data: Loaded, observer: Observer) -> FittedCells:
    """Train the cells of every partition.

    Cells come in bundles. Once the observer asks to stop, no other partition begins.
    """
    begun, seed, rows = clock.now(), data.seed, data.rows
    kernel = settings.map.kernel_for(rows.X, rows.uneven)
    problem = cell_problem(settings, rows, data.encoded, kernel, data.lam, data.total_weight)
    largest = problem.largest(settings.memory_limit)
    work = CellWork(settings, data.whole, kernel, data.lam, data.total_weight, largest, seed)
    progress = CellProgress(settings, begun, observer)

    def train(number: int) -> tuple[CellModels, list[FittedCell]]:
        partition, _ = grow_partition(rows.X, settings.cells_of(data.n_rows), seed, number)
        own = replace(work, seed=partition_seed(seed, number))
        progress.partition_begin(number, partition.n_cells)
        return _PartitionRun(cluster, data, partition, own, problem).solve(progress)

    bare = FittedCells.empty(data.task, kernel, data.dtype, seed, data.lam)
    return fit_partitions(settings, bare, data.n_rows, progress, train)[0]


class _PartitionRun:
    """The cells of one partition."""

    def __init__(
        self, cluster: Cluster, data: Loaded, partition: Partition, work: CellWork, problem: CellProblem
    ):
        self.cluster, self.data, self.partition, self.work = cluster, data, partition, work
        self.problem = problem
        filled = [k for k, s in enumerate(data.summaries) if s.n_rows]
        self.loaded = [data.loaded[k] for k in filled]

    def solve(self, progress: CellProgress) -> tuple[CellModels, list[FittedCell]]:
        """Solve all cells; they come in the order of their numbers."""
        client, data, n_cells = self.cluster.client, self.data, self.partition.n_cells
        tree, work = delayed(self.partition, pure=False), delayed(self.work, pure=False)
        find = delayed(find_cells, pure=False)
        cells = client.persist([find(part, tree, data.dtype) for part in self.loaded])
        counts, weights = self._sizes(cells)
        self.problem.check_memory(counts, self.work.largest, self.cluster.thread_memory())
        bundle_of, sizes = bundles(counts, BUNDLES * sum(self.cluster.some_workers().values()))
        bundled = self._routed(cells, bundle_of, len(sizes))
        solve = delayed(solve_cells, pure=False)
        left = client.compute([solve(work, rows) for rows in bundled])
        del cells, bundled
        found: dict[int, FittedCell] = {}
        while left:
            self.cluster.workers()
            for future in finished(left):
                bundle = self.cluster.result(future)
                left.remove(future)
                for number, cell in bundle:
                    with progress.cell(number):
                        found[number] = cell
        fitted = [found.get(number) or self._nothing() for number in range(n_cells)]
        mean = data.total_weight / data.n_rows
        # The sample had rows in every cell; rounding may have taken a cell its last one.
        shares = np.maximum(weights, mean) / data.total_weight
        decisions = [cell.decision for cell in fitted]
        return CellModels(self.partition, decisions, shares, mean, data.n_rows), fitted

    def _sizes(self, cells: list[Delayed]) -> Array:
        """The rows and the weights of all cells."""
        weigh = delayed(weigh_cells, pure=False)
        pairs = zip(self.loaded, cells, strict=True)
        tables = [weigh(part, of, self.partition.n_cells, self.data.whole) for part, of in pairs]
        (total,) = self.cluster.gather(
            self.cluster.client.compute([delayed(add_up, pure=False)(tables)])
        )
        return np.asarray(total)

    def _routed(self, cells: list[Delayed], bundle_of: Array, count: int) -> list[Delayed]:
        """The rows of each bundle."""
        route, meet = delayed(route_rows, nout=count, pure=False), delayed(meet_rows, pure=False)
        to = delayed(bundle_of, pure=False)
        pairs = zip(self.loaded, cells, strict=True)
        pieces = [route(part, of, to, count) for part, of in pairs]
        return [meet([piece[b] for piece in pieces], self.data.dtype) for b in range(count)]

    def _nothing(self) -> FittedCell:
        """A cell without rows."""
        encoded = self.data.encoded
        values = np.full(encoded.targets.n_models, encoded.offset)
        return FittedCell(Constant(values), 0.0, 0.0, 0, converged=True)


def bundles(counts: Array, most: int) -> tuple[Array, list[int]]:
    """The bundle of each cell, and the rows of each bundle: about as much work in each.

    Largest cells first, each to the bundle with the least to do; a cell costs the square of its rows.
    """
    count = min(most, len(counts))
    work, bundle_of = np.zeros(count), np.zeros(len(counts), dtype=np.int32)
    for cell in np.argsort(-counts, kind="stable"):
        least = int(work.argmin())
        bundle_of[cell] = least
        work[least] += counts[cell] ** 2
    return bundle_of, [int(n) for n in np.bincount(bundle_of, weights=counts, minlength=count)]
