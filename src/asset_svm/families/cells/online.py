"""Cells that learn online, from one batch after the other: models on one map, one a cell."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from asset_svm.arrays import Array
from asset_svm.backends.device import on_host
from asset_svm.families.beginning import learn
from asset_svm.families.cells.constant import Constant
from asset_svm.families.cells.decision import CellDecision, CellModels
from asset_svm.families.cells.fitted import FittedCells
from asset_svm.families.cells.nested import Nested, nested_settings
from asset_svm.families.cells.partitions import grow_partition, shares
from asset_svm.families.decision import Decision
from asset_svm.families.one_map import FittedMap, OneMap
from asset_svm.families.one_map.fitted import HISTORY, adopted
from asset_svm.families.rows import Rows
from asset_svm.features.cells import grouped
from asset_svm.features.nystroem import CHECK_ROWS, NystroemFeatures
from asset_svm.settings import Settings
from asset_svm.tasks import Task

EPOCHS = 25
"""The epochs that an exact solution stands for."""


def begin_stream(settings: Settings, task: Task, rows: Rows) -> FittedCells:
    """The model of a first batch, which settles the cells."""
    rows = _on_host(settings, rows)
    seed = settings.draw_seed()
    kernel = settings.map.kernel_for(rows.X, rows.uneven)
    nothing = Constant(np.full(task.n_models, task.offset))
    parts = []
    for number in range(settings.n_partitions):
        partition, groups = grow_partition(rows.X, settings.cells_of(len(rows.y)), seed, number)
        parts.append(CellModels(partition, [nothing] * partition.n_cells, shares(rows.weight, groups)))
    lam = settings.lam_of(rows.weight.sum())
    empty = FittedCells.empty(task, kernel, rows.X.dtype, seed, lam, parts)
    return _after(settings, empty, rows)


def go_on(settings: Settings, fitted: FittedCells, rows: Rows) -> FittedCells:
    """The model after one batch more.

    A cell that ``fit`` solved exactly goes on from there, with its support vectors as landmarks.
    """
    if fitted.fixed is not None:
        raise ValueError(f"This model cannot go on learning: {fitted.fixed}.")
    return _after(settings, fitted, _on_host(settings, rows))


def _on_host(settings: Settings, rows: Rows) -> Rows:
    settings.goes_to_card(rows.X)  # says what is missing, or amiss; streams of cells are the host's
    return replace(rows, X=on_host(rows.X))


def _after(settings: Settings, fitted: FittedCells, rows: Rows) -> FittedCells:
    """Route a batch to its cells, and let their models learn from it."""
    task = fitted.task
    task.encode(rows.y)  # says where a class is not known
    total = float(rows.weight.sum())
    objective = gap = 0.0
    parts = []
    for part in fitted.decision.parts:
        decisions = list(part.decisions)
        groups = grouped(np.arange(len(rows.y)), part.partition.assign(rows.X), part.partition.n_cells)
        for cell, index in enumerate(groups):
            if len(index) == 0:
                continue
            model = _learnt(settings, fitted, part, cell, rows, index)
            decisions[cell] = Nested(model, None, task.n_models, task.offset_of_cell)
            share = float(rows.weight[index].sum()) / total / len(fitted.decision.parts)
            objective += share * model.objective
            gap += share * model.dual_gap
        parts.append(CellModels(part.partition, decisions, part.shares, part.mean_weight, part.n_rows))
    batches, steps = fitted.n_iter + 1, fitted.steps + len(rows.y)
    record = {"batch": batches, "steps": steps, "objective": objective, "dual_gap": gap}
    return replace(
        fitted,
        decision=CellDecision(parts, task.n_models, rows.X.dtype, not fitted.kernel.is_reentrant),
        n_iter=batches,
        steps=steps,
        objective=objective,
        dual_gap=gap,
        history=[*fitted.history, record][-HISTORY:],
        support=None,
        n_support=None,
    )


def _learnt(
    settings: Settings, fitted: FittedCells, part: CellModels, cell: int, rows: Rows, index: Array
) -> FittedMap:
    """The model of a cell after the rows of a batch that lie in it."""
    lam = fitted.lam / part.shares[cell]
    own = nested_settings(settings, fitted.kernel, fitted.seed + cell, lam)
    task = fitted.task.of_cell(known=True, free_intercept=own.free_intercept)
    before = _model_of(own, task, fitted, part, cell, rows.X[index])
    targets, weight = fitted.task.targets_of_cell(rows.y[index]), rows.weight[index]
    batch = Rows(rows.X[index], targets, weight, weight, np.arange(len(index)))
    return _one_batch(own, task, before, batch)


def _one_batch(settings: Settings, task: Task, before: FittedMap | None, batch: Rows) -> FittedMap:
    if before is None:
        task = task.settled(batch.y, batch.weight)
    found: FittedMap = learn(OneMap(), settings, task, before, batch, len(batch.y))
    return found


def _model_of(
    settings: Settings, task: Task, fitted: FittedCells, part: CellModels, cell: int, X: Any
) -> FittedMap | None:
    """The model that goes on from a cell's decision; None where there is none.

    An exact solution counts as so many steps as a fit by steps would have taken.
    """
    decision: Any = part.decisions[cell]
    mean_weight, offset = part.mean_weight, fitted.task.offset
    if isinstance(decision, Nested) and decision.columns is None:
        return decision.model
    K = fitted.task.n_models
    phi: Any
    if isinstance(decision, Decision):
        basis = decision.source
        phi = NystroemFeatures.from_landmarks(
            basis.components, basis.kernel, dtype=X.dtype, basis="eigen", probe=X[:CHECK_ROWS]
        )
        gram = basis.kernel(basis.components, basis.components)
        coef, intercept = decision.weights @ gram @ phi.projection, decision.intercept
    elif isinstance(decision, Nested):
        model, columns = decision.model, decision.columns
        assert model.phi is not None and model.coef is not None and columns is not None
        phi = model.phi
        coef, intercept = np.zeros((K, phi.dimension)), np.full(K, -1.0)
        both = np.array([[-1.0], [1.0]]) if len(columns) == 2 else np.ones((1, 1))
        coef[columns] = both * model.coef
        inner = model.decision.intercept + phi.drift(model.coef)
        intercept[columns] = (both * inner[:, None]).ravel()
    else:
        if decision.X is None:
            return None
        weight = np.full(decision.X.shape[0], mean_weight)
        few = Rows(decision.X, decision.y, weight, weight, np.arange(len(weight)))
        return _one_batch(settings, task, None, few)
    steps = EPOCHS * round(part.shares[cell] * part.n_rows)
    return adopted(settings, task, phi, coef, intercept - offset, X.dtype, mean_weight, steps)
