"""Regression, which the paper derives and does not measure: the four algorithms against SVR.

Columns and targets standardised, gamma = 1/n, C = 10, epsilon = 0.1, s = 512, no intercept (SVR has
one), 4/5 of the rows to train. A full run has all sets.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import datasets
from asset_svm.pages import Cell, Paragraph, Section, Table, Value
from experiments.base import Record, Scale, Task, seconds_shown, select, shown, values
from solvers import SOLVERS, Problem
from solvers.asset import Asset

name = "regression"
SETS = ("abalone", "cal_housing", "kin40k", "protein")
SOLVED_BY = (
    "ASSET_M", "ASSET*_M", "ASSET_F", "ASSET*_F", "asset-svm, metric step", "Nystroem + SGD",
    "RBFSampler + SGD", "Nystroem + LinearSVC / SVR", "SVC / SVR", "SVC / SVR (intelex)", "ThunderSVM",
)  # fmt: skip
C, EPSILON, COMPONENTS = 10.0, 0.1, 512


def tasks(scale: Scale) -> list[Task]:
    """All solvers on one split after the other."""
    found = []
    for dataset in scale.chosen(SETS[:2] if scale.quick else SETS):
        for seed in range(min(scale.repeats, 10)):
            for solver in SOLVED_BY:
                if seed > 0 and (SOLVERS[solver].exact or "Linear" in solver):
                    continue
                epochs = 30 if solver.startswith("ASSET") else 0
                settings = dict(s=COMPONENTS, C=C, epsilon=EPSILON, epochs=epochs)
                run_it = partial(run, solver, dataset, seed, epochs)
                found.append(Task(name, solver, dataset, seed, settings, run_it, 2.0))
    return found


def run(solver: str, dataset: str, seed: int, epochs: int) -> dict[str, Any]:
    """Train on one split."""
    X, y, X_test, y_test = datasets.standard_split(dataset, seed)
    problem = Problem(X, y, 1.0 / X.shape[1], 1.0 / (C * len(y)), COMPONENTS, EPSILON)
    algorithm = SOLVERS[solver]
    if isinstance(algorithm, Asset) and epochs:
        algorithm = replace(algorithm, epochs=epochs)
    fitted = algorithm.fit(problem, seed)
    return dict(r2=fitted.r2(X_test, y_test), seconds=fitted.seconds, basis=fitted.basis)


def section(records: Sequence[Record]) -> Section:
    """R2 and time."""
    sets = [dataset for dataset in SETS if select(records, name, dataset=dataset)]
    rows: list[list[Value]] = []
    for solver in SOLVED_BY:
        cells: list[Value] = []
        for dataset in sets:
            found = select(records, name, solver=solver, dataset=dataset)
            times = seconds_shown(values(found, "seconds"))
            cells.append(Cell(shown(values(found, "r2"), 3), times) if found else None)
        version = SOLVERS[solver].version()
        missing = Cell(solver, "not installed" if version is None else "full run only", "quiet")
        rows.append([solver if any(cells) else missing, *cells])
    text = (
        f"R2 on held-out rows and CPU time of training; s = {COMPONENTS}, C = {C:g}, "
        f"epsilon = {EPSILON:g}, gamma = 1/n, columns and targets standardised; the four algorithms "
        "of the paper with 30 epochs and the average of the last half. The paper has no numbers to "
        "compare with. Exact solvers are of one split."
    )
    return Section("Regression", [Paragraph(text), Table(["", *sets], rows)])
