"""The training of one cell: from its rows to its decision function."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from asset_svm import clock
from asset_svm.estimators.base import Encoded
from asset_svm.estimators.batch import excess, is_apart
from asset_svm.estimators.cells.decision import Constant
from asset_svm.estimators.cells.nested import in_columns, nested_estimator, nested_targets
from asset_svm.estimators.decision import Decision
from asset_svm.estimators.device import on_host
from asset_svm.estimators.parameters import is_integer
from asset_svm.estimators.rows import Rows
from asset_svm.features.nystroem import KernelBasis
from asset_svm.solvers.cells import CellProblem, CellSolution

KEPT_ROWS = 100
"""Rows that a constant cell keeps."""


@dataclass(frozen=True, eq=False)
class FittedCell:
    """A trained cell."""

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
    n_threads : int
        For one cell.
    solved : mapping from cells to CellSolution
        Those that a card has solved.
    device : {"cpu", "cuda"}
        Where an approximation learns.
    """

    estimator: Any
    rows: Rows
    encoded: Encoded
    problem: CellProblem
    groups: Sequence[np.ndarray] | Mapping[int, np.ndarray]
    seed: int
    largest: int
    n_threads: int = 1
    solved: Mapping[int, CellSolution] = field(default_factory=dict)
    device: str = "cpu"

    def __call__(self, number: int) -> FittedCell:
        """The cell with this number."""
        index, y = self.groups[number], self.rows.y
        if len(index) <= self.largest:
            return self._exact(number, index)
        if self.encoded.labels is not None and (y[index] == y[index[0]]).all():
            return self._constant(index)
        return self._approximate(number, index)

    def hurried(self) -> CellTrainer:
        """One whose time is up: it makes the least of a cell that predicts."""
        return replace(self, problem=replace(self.problem, deadline=-np.inf))

    def _exact(self, number: int, index: np.ndarray) -> FittedCell:
        found = self.solved.get(number)
        if found is None:
            found = self.problem.solve(index, self.seed + number, self.n_threads)
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
        intercept = found.intercept + self.encoded.offset
        if len(found.rows) == 0:
            return Constant(intercept, *self._few(index))
        support = on_host(self.rows.X[found.rows])
        return Decision(KernelBasis(self.problem.kernel, support), found.weights, intercept)

    def _constant(self, index: np.ndarray) -> FittedCell:
        """A large cell with one class."""
        values = self.encoded.targets.block(index[:1])[:, 0]
        return FittedCell(Constant(values, *self._few(index)), 0.0, 0.0, 0, converged=True)

    def _few(self, index: np.ndarray) -> tuple[Any, np.ndarray]:
        """Some rows of a cell and their targets."""
        some = index[:: -(-len(index) // KEPT_ROWS)]
        return on_host(self.rows.X[some]), nested_targets(self.rows.y[some], self.encoded)

    def _approximate(self, number: int, index: np.ndarray) -> FittedCell:
        problem, rows = self.problem, self.rows
        share = problem.lam * float(problem.cost[index].sum())
        model = nested_estimator(
            self.estimator, problem.kernel, self.seed + number, problem.lam / share, self.device
        )
        if is_integer(model.n_components):
            model.set_params(n_components=min(model.n_components, len(index)))
        if problem.deadline < np.inf:
            model.set_params(time_limit=max(problem.deadline - clock.now(), 1e-3))
        targets = nested_targets(rows.y[index], self.encoded)
        learnt = model._train(rows.X[index], targets, rows.weight[index])
        return FittedCell(
            in_columns(self.estimator, model, self.encoded),
            share * model.objective_,
            share * model.dual_gap_,
            model.n_iter_,
            converged=not is_apart(model) and excess(model, *learnt) is None,
        )
