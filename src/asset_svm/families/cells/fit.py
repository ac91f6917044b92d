"""The fit of cells: all cells of every partition, side by side, and the model that they make."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing, nullcontext
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from asset_svm import clock
from asset_svm.backends.device import on_host, row_type
from asset_svm.exceptions import warn_caller
from asset_svm.families.base import Fitted, Trained
from asset_svm.families.cells.decision import CellModels
from asset_svm.families.cells.fitted import FittedCells
from asset_svm.families.cells.nested import Nested
from asset_svm.families.cells.partitions import grow_partition, partition_seed, shares
from asset_svm.families.cells.progress import CellProgress
from asset_svm.families.cells.trainer import CellTrainer, FittedCell
from asset_svm.families.definite import warn_that_indefinite
from asset_svm.families.observing import Observer
from asset_svm.families.rows import Rows
from asset_svm.features.cells import Partition
from asset_svm.kernels import Argument, Kernel, formula_type
from asset_svm.memory import available_memory
from asset_svm.settings import Settings
from asset_svm.solvers.cell_models import CellSolution
from asset_svm.solvers.cells import TOLERANCE, CellProblem
from asset_svm.tasks import Encoded, Task
from asset_svm.threads.granted import granted
from asset_svm.threads.team import side_by_side

OF_STEPS = (
    "approximation", "n_components", "landmarks", "fourier", "rank", "rank_threshold", "rank_rule",
    "step", "step_scale", "gradient_sample", "intercept_bound", "average", "sampling", "max_iter",
)  # fmt: skip
"""Parameters of a map and of steps, which cells that are solved exactly do without."""


def fit_cells(
    settings: Settings,
    task: Task,
    rows: Rows,
    begun: float,
    observer: Observer,
    before: Fitted | None = None,
    drawn: Any = None,
) -> Trained[FittedCells]:
    """Train the cells of every partition; parameters as in ``Family.fit``, the last two of no use."""
    seed, deadline = settings.draw_seed(), settings.deadline(begun)
    card: Any = None
    own = formula_type(settings.map.kernel).argument is Argument.ROWS
    if settings.goes_to_card(rows.X) and not own:
        card = settings.card().cells(rows.X)
    else:
        rows = replace(rows, X=on_host(rows.X))
    with nullcontext() if card is None else closing(card):
        kernel = settings.map.kernel_for(rows.X, rows.uneven)
        encoded, lam = task.encode(rows.y), settings.lam_of(rows.weight.sum())
        problem = cell_problem(settings, rows, encoded, kernel, lam, rows.weight.sum(), deadline)
        progress = CellProgress(settings, begun, observer)
        train = partial(_fit_partition, settings, task, rows, problem, seed, card, progress)
        bare = FittedCells.empty(task, kernel, row_type(rows.X), seed, lam)
        found, fitted = fit_partitions(settings, bare, len(rows.y), progress, train, problem)
    if len(found.decision.parts) == 1 and len(fitted) == 1 and fitted[0].support is not None:
        support = fitted[0].support
        count = task.count_by_class(rows.y[support])
        found = replace(found, support=rows.index[support], n_support=count)
    return Trained(found, rows)


def fit_partitions(
    settings: Settings,
    bare: FittedCells,
    n_rows: int,
    progress: CellProgress,
    train: Callable[[int], tuple[CellModels, list[FittedCell]]],
    problem: CellProblem | None = None,
) -> tuple[FittedCells, list[FittedCell]]:
    """The model of all partitions, and the cells of the last one.

    Parameters
    ----------
    bare : FittedCells
        The model without any partition.
    n_rows : int
        All rows there are.
    train : callable
        Trains the cells of a partition, by its number.
    problem : CellProblem, optional
        Its deadline ends the run, and a partition that it would cut short is not begun; None where
        cells that have begun are always solved.
    """
    parts: list[CellModels] = []
    history: list[dict[str, Any]] = []

    def model() -> FittedCells:
        return bare.joined(parts, history, n_rows)

    begun = clock.now() if settings.n_partitions > 1 else 0.0
    for number in range(settings.n_partitions):
        models, fitted = train(number)
        parts.append(models)
        seconds, stopped = clock.now() - progress.begun, progress.stopped and problem is not None
        history.append(_partition_record(number, fitted, seconds, stopped=stopped))
        progress.partition_end(history[-1], model)
        if progress.stopped or number + 1 == settings.n_partitions:
            break
        if problem is not None and _is_last(number + 1, begun, problem):
            break
    progress.fit_end(model)
    return model(), fitted


def _is_last(count: int, begun: float, problem: CellProblem) -> bool:
    """Whether there is no time for one more partition, which cut short would spoil the mean."""
    now = clock.now()
    return now + (now - begun) / count > problem.deadline


def _fit_partition(
    settings: Settings,
    task: Task,
    rows: Rows,
    problem: CellProblem,
    seed: int,
    card: Any,
    progress: CellProgress,
    number: int,
) -> tuple[CellModels, list[FittedCell]]:
    """The cells of one partition; ``card`` has the same rows, where a card does the work."""
    m = len(rows.y)
    partition, groups = grow_partition(rows.X, settings.cells_of(m), seed, number, card or Partition)
    largest = problem.largest(settings.memory_limit)
    train = CellTrainer(
        settings,
        task,
        rows,
        problem,
        groups,
        partition_seed(seed, number),
        largest,
    )
    progress.partition_begin(number, len(groups), m)
    if card is not None:
        solved = _solved_by(card, problem, groups, train.seed, largest)
        done = _fit_lot(replace(train, solved=solved, device="cuda"), range(len(groups)), 1, progress)
        fitted = [done[number] for number in range(len(groups))]
    else:
        fitted = solve_groups(train, range(len(groups)), progress)
    decisions, mean = [f.decision for f in fitted], float(rows.weight.mean())
    return CellModels(partition, decisions, shares(rows.weight, groups), mean, m), fitted


def solve_groups(train: CellTrainer, cells: Sequence[int], progress: CellProgress) -> list[FittedCell]:
    """Train these cells on the host, as many at a time as there are threads, and memory allows."""
    settings, problem = train.settings, train.problem
    sizes = [len(train.groups[cell]) for cell in cells]
    threads = granted() if problem.kernel.is_reentrant else 1
    problem.check_memory(sizes, train.largest, available_memory())
    matrix = problem.entry_bytes * min(max(sizes), train.largest) ** 2
    fitting = max(min(threads, settings.host().memory() // max(matrix, 1)), 1)
    # Several cells at a time, as memory allows, or, where there are few, several threads in each.
    outer = fitting if len(cells) >= 2 * threads else 1
    # With little time every cell is swept before any goes on from where its sweeps ended.
    others = outer if problem.hurries and len(cells) > 1 else 0
    few, fitted = threads if train.largest_begun else len(cells), dict[int, FittedCell]()
    waiting: list[tuple[CellTrainer, int]] = []
    for part in progress.lots(len(cells), few):
        lot = cells[part.start : part.stop]
        now = train.hurried() if progress.stopped else train
        begun = now.begun(lot, fitting, others, cells[part.stop :])
        if others:
            waiting += [(begun, cell) for cell in lot if cell in begun.ended]
            lot = [cell for cell in lot if cell not in begun.ended]
        fitted |= _fit_lot(begun, lot, outer, progress)
    fitted |= _fit_waiting(waiting, outer, progress)
    return [fitted[cell] for cell in cells]


def _fit_lot(
    train: CellTrainer, lot: Sequence[int], threads: int, progress: CellProgress
) -> dict[int, FittedCell]:
    """Train some cells: in turn those that are solved already, the others side by side."""
    hard = [cell for cell in lot if cell not in train.solved]
    found = _fit_waiting([(train, cell) for cell in hard], threads, progress)
    return found | {cell: _fit_one(train, cell, progress) for cell in lot if cell not in found}


def _fit_waiting(
    cells: Sequence[tuple[CellTrainer, int]], threads: int, progress: CellProgress
) -> dict[int, FittedCell]:
    """Train cells that sweeps have not solved, side by side, each by its trainer."""
    done = side_by_side(lambda place: _fit_one(*cells[place], progress), range(len(cells)), threads)
    return {cell: fitted for (_, cell), fitted in zip(cells, done, strict=True)}


def _fit_one(train: CellTrainer, cell: int, progress: CellProgress) -> FittedCell:
    """Train one cell, and tell of it."""
    with progress.cell(cell, len(train.groups[cell])):
        return (train.hurried() if progress.stopped else train)(cell)


def _warn_of_unused(settings: Settings, n_cells: int) -> None:
    """Warn of parameters that change nothing: they serve cells that are too large, and streams."""
    asked = list(settings.asked(*OF_STEPS))
    if asked:
        warn_caller(
            f"{', '.join(asked)} changed nothing: each of the {n_cells} cells is small enough to be "
            "solved exactly, without map and steps; leave such parameters out, or set n_cells=None.",
            UserWarning,
        )


def _solved_by(
    card: Any, problem: CellProblem, groups: list[np.ndarray], seed: int, largest: int
) -> dict[int, CellSolution]:
    """The cells that a card solves whole, all at once."""
    small = [number for number, group in enumerate(groups) if len(group) <= largest]
    found = card.solve(problem, [groups[c] for c in small], [seed + c for c in small])
    return dict(zip(small, found, strict=True))


def cell_problem(
    settings: Settings,
    rows: Rows,
    encoded: Encoded,
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
        settings.free_intercept,
        deadline=deadline,
        tol=TOLERANCE if settings.tol is None else settings.tol,
    )


def _partition_record(
    number: int, fitted: Sequence[FittedCell], seconds: float, *, stopped: bool
) -> dict[str, Any]:
    """What the history tells of a partition; ``stopped``: somebody asked to cut it short."""
    return {
        "partition": number,
        "cells": len(fitted),
        "seconds": seconds,
        "objective": float(sum(f.objective for f in fitted)),
        "dual_gap": float(sum(f.dual_gap for f in fitted)),
        "sweeps": max(f.sweeps for f in fitted),
        "converged": all(f.converged for f in fitted),
        "definite": all(f.definite for f in fitted),
        "stopped": stopped,
    }


def warn_of_cells(settings: Settings, fitted: FittedCells) -> None:
    """Warn where cells were not solved to their tolerance, or are no SVMs; of parameters not used."""
    history = fitted.history
    if all(not isinstance(d, Nested) for part in fitted.decision.parts for d in part.decisions):
        _warn_of_unused(settings, fitted.decision.parts[0].partition.n_cells)
    if not all(record["definite"] for record in history):
        warn_that_indefinite(
            "Some cells end above the objective of coef = 0, or have negative eigenvalues (dual_gap_ "
            "is NaN, since nothing bounds it)",
            ", or, where rounding is the cause, scale the columns of X (StandardScaler) or lower C",
        )
    elif not all(record["converged"] or record["stopped"] for record in history) and (
        settings.time_limit is None
    ):
        tol = TOLERANCE if settings.tol is None else settings.tol
        warn_caller(
            f"Some cells have a duality gap above {tol:g} of their objective after {fitted.n_iter} "
            "sweeps; raise tol, or lower C.",
            ConvergenceWarning,
        )
