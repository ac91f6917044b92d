"""The training of one cell: from its rows to its decision function."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from asset_svm import clock
from asset_svm.backends.device import on_host
from asset_svm.families.cells.constant import Constant
from asset_svm.families.cells.nested import in_columns, nested_settings
from asset_svm.families.decision import Decision
from asset_svm.families.observing import Nobody
from asset_svm.families.one_map import OneMap
from asset_svm.families.one_map.fit import excess, is_apart
from asset_svm.families.rows import Rows
from asset_svm.features.kernel_basis import KernelBasis
from asset_svm.settings import Settings
from asset_svm.solvers.cell_loops import largest_swept, sweep_cells
from asset_svm.solvers.cell_models import CellSolution, Swept
from asset_svm.solvers.cells import CellProblem
from asset_svm.tasks import Task
from asset_svm.threads.team import side_by_side

KEPT_ROWS = 100
"""Rows that a constant cell keeps."""


@dataclass(frozen=True, eq=False)
class FittedCell:
    """A trained cell: its decision function, and what is known of it."""

    decision: Callable[[Any], np.ndarray]
    objective: float
    dual_gap: float
    sweeps: int
    converged: bool
    definite: bool = True
    """Whether the kernel matrix can be positive semi-definite."""
    support: np.ndarray | None = None
    """The rows that are support vectors, where the cell was solved whole."""


@dataclass(frozen=True, eq=False)
class CellTrainer:
    """Trains a cell, by its number.

    Parameters
    ----------
    groups : sequence of arrays, or mapping from cells to arrays
        The rows of each cell.
    seed : int
        Of the partition.
    largest : int
        Rows of a cell up to which it is solved whole; a larger one gets an approximation.
    solved : mapping from cells to CellSolution
        Those that a card, or compiled threads, have solved.
    ended : mapping from cells to the models of each
        Where sweeps have ended that solved not all of them.
    device : {"cpu", "cuda"}
        Where an approximation learns.
    """

    settings: Settings
    task: Task
    rows: Rows
    problem: CellProblem
    groups: Sequence[np.ndarray] | Mapping[int, np.ndarray]
    seed: int
    largest: int
    solved: Mapping[int, CellSolution] = field(default_factory=dict)
    ended: Mapping[int, list[Swept]] = field(default_factory=dict)
    device: str = "cpu"

    def __call__(self, number: int) -> FittedCell:
        """Train the cell with this number."""
        index, y = self.groups[number], self.rows.y
        if len(index) <= self.largest:
            return self._exact(number, index)
        if not self.task.numeric and (y[index] == y[index[0]]).all():
            return self._constant(index)
        if self.problem.is_late:  # a map takes longer, however little time it is given
            rng = np.random.default_rng([self.seed + number, 9])
            return self._exact(number, np.sort(rng.choice(index, size=self.largest, replace=False)))
        return self._approximate(number, index)

    @property
    def largest_begun(self) -> int:
        """Rows of a cell up to which ``begun`` has something to do for it; 0 where it never has."""
        return min(largest_swept(self.problem), self.largest)

    def begun(
        self, numbers: Sequence[int], threads: int, others: int = 0, later: Sequence[int] = ()
    ) -> CellTrainer:
        """One for which so many compiled threads have swept those of these cells that they can.

        The others, up to ``largest`` rows, are swept by so many ``others``, if any, each in its share
        of the time that is left for them and for those that come ``later``.
        """
        small = [number for number in numbers if 0 < len(self.groups[number]) <= self.largest_begun]
        cells, seeds = [self.groups[c] for c in small], [self.seed + c for c in small]
        found = [*zip(small, sweep_cells(self.problem, cells, seeds, threads), strict=True)]
        if others and not self.problem.intercept:
            found += self._swept_in_time([*filter(self._is_large, numbers)], others, later)
        solved: dict[int, CellSolution] = {}
        ended: dict[int, list[Swept]] = {}
        for number, one in found:
            if isinstance(one, CellSolution):
                solved[number] = one
            elif one is not None:
                ended[number] = one
        return replace(self, solved=solved, ended=ended)

    def _is_large(self, number: int) -> bool:
        """Whether a cell is solved whole, but not by compiled threads."""
        return self.largest_begun < len(self.groups[number]) <= self.largest

    def _swept_in_time(
        self, numbers: Sequence[int], threads: int, later: Sequence[int]
    ) -> Iterator[tuple[int, CellSolution | list[Swept] | None]]:
        """Where the sweeps of large cells end: none where the time is up before they begin.

        A sweep goes through the square of the rows, and that is by what cells share the time; what one
        leaves of its share is there for those after it.
        """
        work = np.array([len(self.groups[number]) ** 2 for number in numbers], dtype=float)
        after = sum(len(self.groups[number]) ** 2 for number in filter(self._is_large, later))
        now = clock.now()
        until = now + (self.problem.deadline - now) * np.cumsum(work) / max(work.sum() + after, 1.0)

        def end(place: int) -> CellSolution | list[Swept] | None:
            number = numbers[place]
            if self.problem.is_late:
                return None
            return self.problem.swept(self.groups[number], self.seed + number, float(until[place]))

        return zip(numbers, side_by_side(end, range(len(numbers)), threads), strict=True)

    def hurried(self) -> CellTrainer:
        """One whose time is up: it makes the least of a cell that predicts."""
        return replace(self, problem=replace(self.problem, deadline=-np.inf))

    def _exact(self, number: int, index: np.ndarray) -> FittedCell:
        found = self.solved.get(number)
        if found is None:
            found = self.problem.solve(index, self.seed + number, self.ended.get(number))
        return FittedCell(
            self._decision(found, index),
            float(found.objective.sum()),
            float(found.dual_gap.sum()),
            found.sweeps,
            found.converged,
            found.definite,
            found.rows,
        )

    def _decision(self, found: CellSolution, index: np.ndarray) -> Callable[[Any], np.ndarray]:
        """k(x, support) weights^T + intercept, or a constant where no row counts."""
        intercept = found.intercept + self.task.offset
        if len(found.rows) == 0:
            return Constant(intercept, *self._few(index))
        support = found.support
        if support is None:
            support = on_host(self.rows.X[found.rows])
        return Decision(KernelBasis(self.problem.kernel, support), found.weights, intercept)

    def _constant(self, index: np.ndarray) -> FittedCell:
        """Train a large cell whose rows are all of one class."""
        values = self.problem.targets.block(index[:1])[:, 0]
        return FittedCell(Constant(values, *self._few(index)), 0.0, 0.0, 0, converged=True)

    def _few(self, index: np.ndarray) -> tuple[Any, np.ndarray]:
        """Some rows of a cell and their targets."""
        some = index[:: -(-len(index) // KEPT_ROWS)]
        return on_host(self.rows.X[some]), self.task.targets_of_cell(self.rows.y[some])

    def _approximate(self, number: int, index: np.ndarray) -> FittedCell:
        """A cell that is too large to be solved whole: a model on one map of its rows."""
        problem = self.problem
        share = problem.lam * float(problem.cost[index].sum())
        settings = nested_settings(
            self.settings, problem.kernel, self.seed + number, problem.lam / share, self.device
        )
        if settings.map.number is not None:
            settings = settings.changed(n_components=min(settings.map.number, len(index)))
        if problem.deadline < np.inf:
            settings = settings.changed(time_limit=max(problem.deadline - clock.now(), 1e-3))
        rows = self._nested_rows(index)
        task = self.task.of_cell(known=False, free_intercept=settings.free_intercept)
        trained = OneMap().fit(settings, task.settled(rows.y, rows.weight), rows, clock.now(), Nobody())
        fitted = trained.fitted
        return FittedCell(
            in_columns(self.task, fitted),
            share * fitted.objective,
            share * fitted.dual_gap,
            fitted.n_iter,
            converged=not is_apart(settings, fitted) and excess(settings, trained) is None,
        )

    def _nested_rows(self, index: np.ndarray) -> Rows:
        """The rows of a cell of positive weight, with targets as a model of one cell takes them."""
        rows, weight = self.rows, self.rows.weight[index]
        targets = self.task.targets_of_cell(rows.y[index])
        found = Rows(rows.X[index], targets, weight, weight, np.arange(len(index)))
        return found.take(np.flatnonzero(weight))
