"""The fit of cells: all cells of every partition, side by side, and the model that they make."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing, nullcontext
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from asset_svm import clock
from asset_svm.estimators.base import Encoded
from asset_svm.estimators.cells.decision import CellDecision, CellModels
from asset_svm.estimators.cells.partitions import (
    grow_partition,
    partition_seed,
    resolve_cells,
    shares,
)
from asset_svm.estimators.cells.progress import CellProgress
from asset_svm.estimators.cells.trainer import CellTrainer, FittedCell
from asset_svm.estimators.definite import warn_that_indefinite
from asset_svm.estimators.device import on_host, row_type
from asset_svm.estimators.fitting import FROM_VALIDATION, forget
from asset_svm.estimators.maps import resolve_kernel
from asset_svm.estimators.rows import Rows
from asset_svm.exceptions import warn_caller
from asset_svm.features.cells import Partition
from asset_svm.kernels import Argument, Kernel, formula_type
from asset_svm.memory import available_memory
from asset_svm.solvers.cells import TOLERANCE, CellProblem, CellSolution
from asset_svm.threads.blas import blas_threads
from asset_svm.threads.team import side_by_side


def fit_cells(
    estimator: Any, rows: Rows, encoded: Encoded, seed: int, begun: float, watch: Any = None
) -> None:
    """Train the cells of every partition and store the model on the estimator.

    ``watch`` sees the progress, as that of ``CellProgress`` does.
    """
    if estimator.early_stopping:
        raise ValueError(
            "early_stopping=True looks at one model after every epoch, and cells are solved one "
            "after the other; set early_stopping=False, or n_cells=None."
        )
    if estimator.warm_start:
        raise ValueError(
            "warm_start=True goes on from the steps of an earlier fit, and cells are solved anew, "
            "without steps; set warm_start=False, or n_cells=None."
        )
    card: Any = None
    if estimator._on_card(rows.X) and formula_type(estimator.kernel).argument is not Argument.ROWS:
        card = estimator._backend(rows.X).cells(rows.X)
    else:
        rows = replace(rows, X=on_host(rows.X))
    with nullcontext() if card is None else closing(card):
        forget(estimator, keep=FROM_VALIDATION)
        estimator._offset, estimator._stream_seed = encoded.offset, seed
        kernel, lam = resolve_kernel(estimator, rows.X, rows.uneven), estimator._lam(rows)
        deadline = begun + estimator.time_limit if estimator.time_limit else float("inf")
        problem = cell_problem(estimator, rows, encoded, kernel, lam, rows.weight.sum(), deadline)
        progress = CellProgress(estimator, rows.X, rows.y, begun, watch)
        parts: list[CellModels] = []
        histories: list[dict[str, Any]] = []
        model = partial(public_cells, parts, kernel, encoded.targets.n_models, row_type(rows.X))
        for number in range(estimator.n_partitions):
            models, fitted = _fit_partition(
                estimator, rows, encoded, problem, seed, number, card, progress
            )
            parts.append(models)
            seconds = clock.now() - begun
            histories.append(partition_record(number, fitted, seconds, stopped=progress.stopped))
            progress.partition_end(histories[-1], model)
            if problem.is_late or progress.stopped:
                break
    store_cells(estimator, model(), histories, lam)
    if len(parts) == 1 and len(fitted) == 1 and fitted[0].support is not None:
        estimator.support_ = rows.index[fitted[0].support]
        estimator.n_support_ = estimator._count_by_class(rows.y[fitted[0].support])
    estimator.t_ = estimator.n_iter_ * len(rows.y)
    progress.fit_end(model)


def _fit_partition(
    estimator: Any,
    rows: Rows,
    encoded: Encoded,
    problem: CellProblem,
    seed: int,
    number: int,
    card: Any,
    progress: CellProgress,
) -> tuple[CellModels, list[FittedCell]]:
    """The cells of one partition; ``card`` has the same rows, where a card does the work."""
    host, m = estimator._host_backend(), len(rows.y)
    count = resolve_cells(estimator.n_cells, m)
    partition, groups = grow_partition(rows.X, count, seed, number, card or Partition)
    threads = max(host.n_threads, blas_threads())
    if not problem.kernel.is_reentrant:
        threads = 1
    # Several cells at a time, as memory allows, or, where there are few, several threads in each.
    memory, largest = (card or host).memory(), problem.largest(estimator.memory_limit)
    if card is None:
        problem.check_memory(map(len, groups), largest, available_memory())
    matrix = problem.entry_bytes * min(max(map(len, groups)), largest) ** 2
    outer = max(min(threads, memory // max(matrix, 1)), 1) if len(groups) >= 2 * threads else 1
    train = CellTrainer(
        estimator,
        rows,
        encoded,
        problem,
        groups,
        partition_seed(seed, number),
        largest,
        threads // outer,
    )
    if card is not None:
        solved = _solved_by(card, problem, groups, train.seed, largest)
        train, outer = replace(train, solved=solved, device="cuda"), 1
    progress.partition_begin(number, len(groups))

    def one(cell: int) -> FittedCell:
        with progress.cell(cell):
            return (train.hurried() if progress.stopped else train)(cell)

    fitted = side_by_side(one, range(len(groups)), outer)
    decisions, mean = [f.decision for f in fitted], float(rows.weight.mean())
    return CellModels(partition, decisions, shares(rows.weight, groups), mean, m), fitted


def _solved_by(
    card: Any, problem: CellProblem, groups: list[np.ndarray], seed: int, largest: int
) -> dict[int, CellSolution]:
    """The cells that a card solves whole, all at once."""
    small = [number for number, group in enumerate(groups) if len(group) <= largest]
    found = card.solve(problem, [groups[c] for c in small], [seed + c for c in small])
    return dict(zip(small, found, strict=True))


def cell_problem(
    estimator: Any,
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
        estimator._free_intercept,
        deadline=deadline,
        tol=TOLERANCE if estimator.tol is None else estimator.tol,
    )


def partition_record(
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


def public_cells(
    parts: list[CellModels], kernel: Kernel, n_models: int, dtype: np.dtype
) -> dict[str, Any]:
    """The attributes that make a model of these partitions predict."""
    parts = list(parts)  # others may come after them
    return {
        "_decision": CellDecision(parts, n_models, dtype, alone=not kernel.is_reentrant),
        "_cell_kernel": kernel,
        "cells_": parts,
        "n_cells_": int(np.mean([part.partition.n_cells for part in parts]).round()),
        "gamma_": kernel.gamma,
    }


def store_cells(
    estimator: Any, model: dict[str, Any], histories: list[dict[str, Any]], lam: float
) -> None:
    """The public face of a model of cells, and of how it was found."""
    for name, value in model.items():
        setattr(estimator, name, value)
    estimator.lam_ = lam
    estimator.history_ = histories
    estimator.n_iter_ = max(record["sweeps"] for record in histories)
    estimator.objective_ = float(np.mean([record["objective"] for record in histories]))
    estimator.dual_gap_ = float(np.mean([record["dual_gap"] for record in histories]))


def warn_of_cells(estimator: Any) -> None:
    """Warn where cells were not solved to their tolerance, or are no SVMs."""
    history = estimator.history_
    if not all(record["definite"] for record in history):
        warn_that_indefinite(
            "Some cells end above the objective of coef = 0, or have negative eigenvalues (dual_gap_ "
            "is NaN, since nothing bounds it)",
            ", or, where rounding is the cause, scale the columns of X (StandardScaler) or lower C",
        )
    elif not all(record["converged"] or record["stopped"] for record in history) and (
        estimator.time_limit is None
    ):
        tol = TOLERANCE if estimator.tol is None else estimator.tol
        warn_caller(
            f"Some cells have a duality gap above {tol:g} of their objective after {estimator.n_iter_} "
            "sweeps; raise tol, or lower C.",
            ConvergenceWarning,
        )
