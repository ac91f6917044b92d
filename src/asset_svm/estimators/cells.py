"""Estimators of cells: a partition of the input space, and models of their own in every cell.

A cell is the exact SVM of its rows; one that is too large for that, and every cell of a stream, is an
estimator of the same class and parameters, without cells, on the rows of the cell. With a card, it
finds the cells, solves the exact ones and decides; what is stored is the same.
"""

from __future__ import annotations

import copy
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from asset_svm.engines.cells import CellFunctions, CellProblem, CellSolution, side_by_side
from asset_svm.engines.workers import blas_threads
from asset_svm.estimators.decision import Decision, finite
from asset_svm.estimators.device import on_host, row_type
from asset_svm.estimators.maps import resolve_kernel
from asset_svm.estimators.parameters import is_integer
from asset_svm.features.cells import Partition, grouped
from asset_svm.features.nystroem import CHECK_ROWS, KernelBasis, NystroemFeatures
from asset_svm.features.threads import few_threads
from asset_svm.kernels import Kernel

FEW_ROWS = 256
"""Fewer are decided by one thread."""
EPOCHS = 25
"""That an exact solution stands for."""
KEPT_ROWS = 100
"""Rows that a constant cell keeps."""
CELL_ROWS = 1000
"""Rows of a cell where ``n_cells="auto"``."""


@dataclass(eq=False)
class CellModels:
    """One partition, and the decision function of each of its cells."""

    partition: Partition
    decisions: list[Callable[[Any], np.ndarray]]
    shares: np.ndarray
    """The part of the weight of all rows that lies in each cell."""
    mean_weight: float = 1.0
    """Of a row."""
    n_rows: int = 0
    """That were solved at once."""

    def functions(self, engine: Any, n_models: int) -> CellFunctions:
        """The functions of the cells as an engine of a card takes them."""
        count = len(self.decisions)
        landmarks: list[Any] = [None] * count
        weights = [np.empty((n_models, 0))] * count
        intercept, others, kernel = np.zeros((count, n_models)), {}, Kernel("linear")
        for cell, decision in enumerate(self.decisions):
            if isinstance(decision, Nested):
                others[cell] = partial(decision.by, engine)
            elif isinstance(decision, Constant):
                intercept[cell] = decision.values
            else:
                assert isinstance(decision, Decision)
                kernel, landmarks[cell] = decision.source.kernel, decision.source.components
                weights[cell], intercept[cell] = decision.weights, decision.intercept
        return CellFunctions(self.partition, kernel, landmarks, weights, intercept, others)


@dataclass(eq=False)
class CellDecision:
    """The mean decision over several partitions: each costs one descent and one cell."""

    parts: list[CellModels]
    n_models: int
    dtype: np.dtype
    alone: bool = False
    """Whether one thread of the host decides: a user's kernel may not be made for several at a time."""
    _prepared: dict[Any, Any] = field(default_factory=dict, init=False, repr=False)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_prepared": {}}

    def on_card(self, engine: Any, X: Any) -> np.ndarray:
        """The (rows, K) decisions, computed on a card."""
        dtype = row_type(X)
        key = (dtype, engine.precision)
        if key not in self._prepared:
            parts = [part.functions(engine, self.n_models) for part in self.parts]
            self._prepared[key] = engine.cell_decision(parts, X.shape[1], dtype)
        return finite(self._prepared[key](X))

    def __call__(self, X: Any) -> np.ndarray:
        """The (rows, K) decisions, in the type of X."""
        out = np.zeros((X.shape[0], self.n_models), dtype=X.dtype)
        if X.shape[0] < FEW_ROWS or self.alone:
            self._add(X, out)
            return out / len(self.parts)
        threads = blas_threads()
        size = -(-X.shape[0] // threads)

        def add(start: int) -> None:
            self._add(X[start : start + size], out[start : start + size])

        side_by_side(add, range(0, X.shape[0], size), threads)
        return out / len(self.parts)

    def _add(self, X: Any, out: np.ndarray) -> None:
        every = np.arange(X.shape[0])
        for part in self.parts:
            cells = part.partition.assign(X)
            for cell, rows in enumerate(grouped(every, cells, part.partition.n_cells)):
                if len(rows):
                    out[rows] += part.decisions[cell](X[rows])

    def unchecked(self, dtype: np.dtype) -> Callable[[Any], np.ndarray]:
        """A function from rows of this type to decisions."""
        return self


@dataclass(frozen=True, eq=False)
class Constant:
    """The same decisions everywhere in a cell; a few of its rows, for ``partial_fit`` to go on from."""

    values: np.ndarray
    X: Any = None
    y: np.ndarray | None = None

    def __call__(self, X: Any) -> np.ndarray:
        """The (rows, K) decisions."""
        return np.tile(self.values.astype(X.dtype), (X.shape[0], 1))


@dataclass(frozen=True, eq=False)
class Nested:
    """The decision of an estimator of one cell, in the columns of all classes.

    Parameters
    ----------
    model : estimator
    columns : array of int, optional
        The classes that the model knows, where they are not all: the others score -1.
    n_models : int
    offset : float
        What was subtracted from the targets.
    """

    model: Any
    columns: np.ndarray | None
    n_models: int
    offset: float

    def __call__(self, X: Any) -> np.ndarray:
        """The (rows, K) decisions."""
        return self._placed(self.model._decision(X))

    def by(self, engine: Any, X: Any) -> np.ndarray:
        """The (rows, K) decisions, computed where the engine works."""
        return self._placed(self.model._decision.by(engine, X))

    def _placed(self, found: np.ndarray) -> np.ndarray:
        if self.columns is None:
            return found + found.dtype.type(self.offset)
        out = np.full((len(found), self.n_models), -1.0, dtype=found.dtype)
        if len(self.columns) == 2:  # one decision between two of the classes
            out[:, self.columns] = np.hstack([-found, found])
        else:
            out[:, self.columns] = found
        return out


def shares(rows: Any, groups: list[np.ndarray]) -> np.ndarray:
    """The part of the weight of all rows that each group has."""
    return np.array([rows.weight[index].sum() for index in groups]) / rows.weight.sum()


def resolve_cells(n_cells: Any, m: int) -> int:
    """``n_cells`` as a number for m rows."""
    return max(1, round(m / CELL_ROWS)) if n_cells == "auto" else min(int(n_cells), m)


def fit_cells(
    estimator: Any, rows: Any, encoded: Any, kernel: Kernel, seed: int, begun: float, card: Any = None
) -> None:
    """Train the cells of every partition and store the result on the estimator.

    ``card`` has the cells of the same rows, where a card does the work.
    """
    lam = estimator._lam(rows)
    deadline = begun + estimator.time_limit if estimator.time_limit else float("inf")
    problem = cell_problem(estimator, rows, encoded, kernel, lam, rows.weight.sum(), deadline)
    count = resolve_cells(estimator.n_cells, len(rows.y))
    threads = max(estimator._host_engine().n_threads, blas_threads())
    if callable(kernel.name):
        threads = 1  # a user's function may not be made for several at a time
    parts, histories = [], []
    for number in range(estimator.n_partitions):
        rng = np.random.default_rng([seed, 5, number])
        with few_threads(0):
            partition, cells = (card or Partition).grow(rows.X, count, rng)
        groups = grouped(np.arange(len(rows.y)), cells, partition.n_cells)
        # Several cells at a time, as memory allows, or, where there are few, several threads in each.
        memory = (card or estimator._host_engine()).memory()
        matrix = problem.entry_bytes * min(max(map(len, groups)), problem.largest(memory)) ** 2
        outer = max(min(threads, memory // max(matrix, 1)), 1) if len(groups) >= 2 * threads else 1
        train = cell_trainer(
            estimator, rows, encoded, problem, groups, partition_seed(seed, number), threads // outer,
            problem.largest(memory), card,
        )  # fmt: skip
        fitted = side_by_side(train, range(len(groups)), 1 if card else outer)
        decisions, mean = [f.decision for f in fitted], float(rows.weight.mean())
        parts.append(CellModels(partition, decisions, shares(rows, groups), mean, len(rows.y)))
        histories.append(partition_record(number, fitted, time.perf_counter() - begun))
        if time.perf_counter() > deadline:
            break
    store_cells(estimator, parts, histories, kernel, lam, encoded.targets.n_models, row_type(rows.X))
    if deadline == float("inf"):
        warn_of_gaps(histories, problem.tol)


def cell_problem(
    estimator: Any,
    rows: Any,
    encoded: Any,
    kernel: Kernel,
    lam: float,
    total_weight: float,
    deadline: float = float("inf"),
) -> CellProblem:
    """What the cells of these rows share; ``total_weight`` is that of all rows there are."""
    return CellProblem(
        kernel,
        rows.X,
        encoded.targets,
        encoded.loss,
        rows.weight / (lam * total_weight),
        lam,
        estimator._free_intercept,
        deadline=deadline,
        **({} if estimator.tol is None else {"tol": estimator.tol}),
    )


def partition_seed(seed: int, number: int) -> int:
    """The seed of a partition; its cells add their numbers."""
    return seed + 7919 * number


def partition_record(number: int, fitted: Sequence[FittedCell], seconds: float) -> dict[str, Any]:
    """What the history tells of a partition."""
    return {
        "partition": number,
        "cells": len(fitted),
        "seconds": seconds,
        "objective": float(sum(f.objective for f in fitted)),
        "dual_gap": float(sum(f.dual_gap for f in fitted)),
        "sweeps": max(f.sweeps for f in fitted),
        "converged": all(f.converged for f in fitted),
    }


def store_cells(
    estimator: Any,
    parts: list[CellModels],
    histories: list[dict[str, Any]],
    kernel: Kernel,
    lam: float,
    n_models: int,
    dtype: np.dtype,
) -> None:
    """The public face of a model of cells."""
    estimator._decision = CellDecision(parts, n_models, dtype, alone=callable(kernel.name))
    estimator.cells_, estimator._cell_kernel = parts, kernel
    estimator.n_cells_ = int(np.mean([part.partition.n_cells for part in parts]).round())
    estimator.gamma_ = kernel.gamma
    estimator.lam_ = lam
    estimator.history_ = histories
    estimator.n_iter_ = max(record["sweeps"] for record in histories)
    estimator.objective_ = float(np.mean([record["objective"] for record in histories]))
    estimator.dual_gap_ = float(np.mean([record["dual_gap"] for record in histories]))


def warn_of_gaps(histories: list[dict[str, Any]], tol: float) -> None:
    """Warn where cells were not solved to their tolerance."""
    if not all(record["converged"] for record in histories):
        sweeps = max(record["sweeps"] for record in histories)
        warnings.warn(
            f"Some cells have a duality gap above {tol:g} of their objective after {sweeps} sweeps; "
            "raise tol, or lower C.",
            ConvergenceWarning,
            stacklevel=3,
        )


@dataclass(frozen=True, eq=False)
class FittedCell:
    """A trained cell."""

    decision: Callable[[Any], np.ndarray]
    objective: float
    dual_gap: float
    sweeps: int
    converged: bool


def cell_trainer(
    estimator: Any,
    rows: Any,
    encoded: Any,
    problem: CellProblem,
    groups: Sequence[np.ndarray] | Mapping[int, np.ndarray],
    seed: int,
    n_threads: int,
    largest: int,
    card: Any = None,
) -> Callable[[int], FittedCell]:
    """A function that trains a cell on its group of rows, with so many threads, or on a card.

    Cells of more than ``largest`` rows get an approximation.
    """
    targets = plain_targets(rows, encoded)
    solved: dict[int, CellSolution] = {}
    if card is not None:
        small = [number for number in range(len(groups)) if len(groups[number]) <= largest]
        found = card.solve(problem, [groups[c] for c in small], [seed + c for c in small])
        solved = dict(zip(small, found, strict=True))

    def few(index: np.ndarray) -> tuple[Any, np.ndarray]:
        """Some rows of a cell and their targets."""
        some = index[:: -(-len(index) // KEPT_ROWS)]
        return on_host(rows.X[some]), targets[some]

    def exact(number: int, index: np.ndarray) -> FittedCell:
        found = solved.get(number) or problem.solve(index, seed + number, n_threads)
        return FittedCell(
            _decision(problem.kernel, rows.X, found, encoded.offset, few(index)),
            float(found.objective.sum()),
            float(found.dual_gap.sum()),
            found.sweeps,
            found.converged,
        )

    def approximate(number: int, index: np.ndarray) -> FittedCell:
        share = problem.lam * float(problem.cost[index].sum())
        where = "cpu" if card is None else "cuda"
        model = nested(estimator, problem.kernel, seed + number, problem.lam / share, where)
        if is_integer(model.n_components):
            model.set_params(n_components=min(model.n_components, len(index)))
        if problem.deadline < np.inf:
            model.set_params(time_limit=max(problem.deadline - time.perf_counter(), 1e-3))
        model.fit(rows.X[index], targets[index], sample_weight=rows.weight[index])
        return FittedCell(
            in_columns(estimator, model, encoded),
            share * model.objective_,
            share * model.dual_gap_,
            model.n_iter_,
            converged=True,
        )

    def constant(index: np.ndarray) -> FittedCell:
        """A large cell with one class."""
        values = encoded.targets.block(index[:1])[:, 0]
        return FittedCell(Constant(values, *few(index)), 0.0, 0.0, 0, converged=True)

    def train(number: int) -> FittedCell:
        index = groups[number]
        if len(index) <= largest:
            return exact(number, index)
        if encoded.labels is not None and (rows.y[index] == rows.y[index[0]]).all():
            return constant(index)
        return approximate(number, index)

    return train


def _decision(
    kernel: Kernel, X: Any, found: CellSolution, offset: float, few: tuple[Any, np.ndarray]
) -> Callable[[Any], np.ndarray]:
    """k(x, support) weights^T + intercept, or a constant where no row counts."""
    intercept = found.intercept + offset
    if len(found.rows) == 0:
        return Constant(intercept, *few)
    return Decision(KernelBasis(kernel, on_host(X[found.rows])), found.weights, intercept)


def nested(estimator: Any, kernel: Kernel, seed: int, lam: float, device: str = "cpu") -> Any:
    """An estimator like this one for the rows of one cell."""
    settings = {
        "n_cells": None,
        "device": device,
        "lam": lam,
        "random_state": seed,
        "n_jobs": 1,
        "verbose": 0,
    }
    settings |= {"gamma": kernel.gamma, "fit_intercept": estimator._free_intercept, "warm_start": False}
    if "class_weight" in estimator.get_params(deep=False):
        settings["class_weight"] = None  # in the weights of the rows already
    return clone(estimator).set_params(**settings)


def plain_targets(rows: Any, encoded: Any) -> np.ndarray:
    """The targets as an estimator of one cell takes them."""
    return rows.y if encoded.labels is not None else rows.y - encoded.offset


def in_columns(estimator: Any, model: Any, encoded: Any) -> Nested:
    """The decision of a nested model, in the columns of the estimator."""
    classes, columns = getattr(estimator, "classes_", None), None
    if classes is not None and len(model.classes_) < len(classes):
        columns = np.searchsorted(classes, model.classes_)
    return Nested(model, columns, encoded.targets.n_models, encoded.offset)


def partial_fit_cells(estimator: Any, rows: Any, encoded: Any, seed: int) -> None:
    """Route a batch to its cells, and let their estimators learn from it.

    The first batch settles the cells. A cell that ``fit`` solved exactly goes on from there, with its
    support vectors as landmarks.
    """
    if not hasattr(estimator, "cells_"):
        _begin_stream(estimator, rows, encoded, seed)
    targets, every = plain_targets(rows, encoded), np.arange(len(rows.y))
    known = {} if encoded.labels is None else {"classes": estimator.classes_}
    total = float(rows.weight.sum())
    objective = gap = 0.0
    parts = []
    for part in estimator.cells_:
        decisions = list(part.decisions)
        groups = grouped(every, part.partition.assign(rows.X), part.partition.n_cells)
        for cell, index in enumerate(groups):
            if len(index) == 0:
                continue
            lam = estimator.lam_ / part.shares[cell]
            fresh = nested(estimator, estimator._cell_kernel, seed + cell, lam)
            model = _learner(estimator, fresh, part, cell, rows.X[index], encoded)
            model.partial_fit(rows.X[index], targets[index], sample_weight=rows.weight[index], **known)
            decisions[cell] = Nested(model, None, encoded.targets.n_models, encoded.offset)
            share = float(rows.weight[index].sum()) / total / len(estimator.cells_)
            objective += share * model.objective_
            gap += share * model.dual_gap_
        parts.append(CellModels(part.partition, decisions, part.shares, part.mean_weight, part.n_rows))
    estimator.cells_ = parts
    alone = callable(estimator._cell_kernel.name)
    estimator._decision = CellDecision(parts, encoded.targets.n_models, rows.X.dtype, alone)
    estimator.objective_, estimator.dual_gap_ = objective, gap


def _begin_stream(estimator: Any, rows: Any, encoded: Any, seed: int) -> None:
    """Partitions of the first batch, with nothing learnt yet."""
    kernel = resolve_kernel(estimator, rows.X, rows.uneven)
    count = resolve_cells(estimator.n_cells, len(rows.y))
    nothing = Constant(np.full(encoded.targets.n_models, encoded.offset))
    parts = []
    for number in range(estimator.n_partitions):
        rng = np.random.default_rng([seed, 5, number])
        partition, cells = Partition.grow(rows.X, count, rng)
        groups = grouped(np.arange(len(rows.y)), cells, partition.n_cells)
        parts.append(CellModels(partition, [nothing] * partition.n_cells, shares(rows, groups)))
    estimator.cells_, estimator._cell_kernel = parts, kernel
    estimator.n_cells_ = int(np.mean([part.partition.n_cells for part in parts]).round())
    estimator.gamma_, estimator.lam_, estimator.history_ = kernel.gamma, estimator._lam(rows), []


def _learner(estimator: Any, fresh: Any, part: CellModels, cell: int, X: Any, encoded: Any) -> Any:
    """The estimator that goes on from a cell's decision, a copy; ``fresh`` where there is none.

    An exact solution counts as so many steps as a fit by steps would have taken.
    """
    decision: Any = part.decisions[cell]
    mean_weight = part.mean_weight
    if isinstance(decision, Nested) and decision.columns is None:
        return copy.copy(decision.model)
    K = encoded.targets.n_models
    if isinstance(decision, Decision):
        basis = decision.source
        phi = NystroemFeatures.from_landmarks(
            basis.components, basis.kernel, dtype=X.dtype, basis="eigen", probe=X[:CHECK_ROWS]
        )
        gram = basis.kernel(basis.components, basis.components)
        coef, intercept = decision.weights @ gram @ phi.projection, decision.intercept
    elif isinstance(decision, Nested):
        model, phi = decision.model, decision.model.feature_map_
        coef, intercept = np.zeros((K, phi.dimension)), np.full(K, -1.0)
        both = np.array([[-1.0], [1.0]]) if len(model.classes_) == 2 else np.ones((1, 1))
        coef[decision.columns] = both * model.coef_
        intercept[decision.columns] = (both * model.intercept_[:, None]).ravel()
    else:
        known = X if decision.X is None else decision.X
        if is_integer(fresh.n_components):
            fresh.set_params(n_components=min(fresh.n_components, known.shape[0]))
        if decision.X is not None:
            weight = np.full(known.shape[0], mean_weight)
            labels = {} if encoded.labels is None else {"classes": estimator.classes_}
            fresh.partial_fit(known, decision.y, sample_weight=weight, **labels)
        return fresh
    fresh.n_features_in_ = estimator.n_features_in_
    if encoded.labels is not None:
        fresh.classes_ = estimator.classes_
    steps = EPOCHS * round(part.shares[cell] * part.n_rows)
    plain = replace(encoded, offset=0.0)
    fresh.resume(phi, coef, intercept - encoded.offset, plain, X.dtype, mean_weight, steps)
    return fresh
