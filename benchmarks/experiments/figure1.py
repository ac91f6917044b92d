"""Figure 1: test error against s, for the algorithms on features, with exact solvers as the floor.

The paper ran 1000 epochs. Here the average of the last half of the iterates (which the paper's
Theorem 2 covers) takes the place of most of them: 100 epochs in a full run, 30 in a quick one
(COVTYPE, whose epochs are long, 10; with landmarks on IJCNN from s = 512 on and on MNIST at s = 1024,
which converge slowest, 100). Errors are after this fixed number of epochs; nothing stops on the test
error.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

import datasets
from asset_svm.pages import Figure, Line, Paragraph, Part, Rule, Section, Table, Value, line_chart
from experiments.base import (
    PAPER_SETS,
    SHORT,
    Record,
    Scale,
    Task,
    mean_and_error,
    select,
    shown,
    titled,
    values,
)
from experiments.paper_numbers import TABLE3, TABLE3_SIZES
from solvers import SOLVERS, Problem
from solvers.asset import Asset

name = "figure1"
OURS = ("ASSET_M", "ASSET_F", "ASSET*_M", "ASSET*_F")
PEERS = ("CPNY", "CPSP")
"""On one split; for s = 512 and 1024 their numbers are those of Table 3."""
FLOOR = ("SVC / SVR", "SVC / SVR (intelex)", "SVM-Light")
SIZES = tuple(2**k for k in range(1, 11))


def tasks(scale: Scale) -> list[Task]:
    """All s of all algorithms, on one split after the other."""
    found = []
    for dataset in scale.chosen(PAPER_SETS):
        large = dataset == "covtype"
        for seed in scale.seeds(dataset):
            for s in SIZES:
                if scale.quick and large and s not in (2, 16, 128, 512, 1024):
                    continue
                for solver in OURS:
                    # The starred ones are like the others (the paper does not draw them either).
                    if scale.quick and "*" in solver and (s < 512 or large):
                        continue
                    epochs = _quick_epochs(solver, dataset, s) if scale.quick else 100
                    settings = dict(s=s, epochs=epochs)
                    found.append(_task(solver, dataset, seed, settings, epochs))
                for solver in PEERS:
                    if (
                        seed > 0
                        or s in TABLE3_SIZES
                        or (scale.quick and dataset not in SHORT.get(solver, ()))
                    ):
                        continue
                    found.append(_task(solver, dataset, seed, dict(s=s), 20, scale.limit))
    return found


def _quick_epochs(solver: str, dataset: str, s: int) -> int:
    """30; fewer where epochs are long, more where 30 end far from the optimum."""
    if dataset == "covtype":
        return 10
    slow = (dataset, s) in (("ijcnn", 512), ("ijcnn", 1024), ("mnist", 1024))
    return 100 if slow and solver.endswith("_M") else 30


def _task(
    solver: str,
    dataset: str,
    seed: int,
    settings: dict[str, Any],
    epochs: int,
    limit: float | None = None,
) -> Task:
    paper = datasets.PAPER[dataset]
    s = settings["s"]
    cost = 0.3 + paper.train * s * (paper.features / 40 + s / 40 + epochs) / 2.5e9
    run_it = partial(run, solver, dataset, seed, **settings, limit=limit)
    return Task(name, solver, dataset, seed, settings, run_it, cost, limit)


def run(
    solver: str, dataset: str, seed: int, s: int, epochs: int = 0, limit: float | None = None
) -> dict[str, Any]:
    """Train on one split."""
    X, y, X_test, y_test = datasets.paper_split(dataset, seed)
    paper = datasets.PAPER[dataset]
    algorithm = SOLVERS[solver]
    if isinstance(algorithm, Asset):
        algorithm = replace(algorithm, epochs=epochs)
    fitted = algorithm.fit(Problem(X, y, paper.sigma, paper.lam, s, limit=limit), seed)
    return dict(error=fitted.error(X_test, y_test), seconds=fitted.seconds)


def section(records: Sequence[Record]) -> Section:
    """A chart a set, and the numbers."""
    parts: list[Part] = [
        Paragraph(
            "Test error after a fixed number of epochs, mean and standard error over random splits. "
            "The paper draws this as curves without giving their values, but for s = 512 and 1024 "
            "(its Table 3), which the dashed line joins. Horizontal lines are exact solvers, of one "
            "split. CPNY and CPSP: one split, with s = 512 and 1024 those of Table 3 below."
        )
    ]
    parts += [
        chart(records, dataset) for dataset in PAPER_SETS if select(records, name, dataset=dataset)
    ]
    missing = [solver for solver in PEERS if SOLVERS[solver].version() is None]
    names = [f"{solver} (not installed)" if solver in missing else solver for solver in (*OURS, *PEERS)]
    rows: list[list[Value]] = []
    for dataset in PAPER_SETS:
        for s in SIZES:
            found = select(records, name, dataset=dataset, s=s)
            if not found:
                continue
            errors = [
                shown(values(_runs(records, dataset, solver, s), "error")) or None
                for solver in (*OURS, *PEERS)
            ]
            splits = len({record["seed"] for record in found})
            rows.append([f"{titled(dataset)}, s = {s}", _epochs_of(found), splits, *errors])
    parts.append(Table(["", "epochs", "splits", *names], rows, "Test error, %"))
    notes = {datasets.SETS[d].title: datasets.SETS[d].note for d in PAPER_SETS if datasets.SETS[d].note}
    parts += [Paragraph(f"{title}: {note}.", "quiet") for title, note in notes.items()]
    return Section("Figure 1: accuracy against the dimension of the approximation", parts)


def _epochs_of(found: Sequence[Record]) -> str:
    """How long these ran; by the kind of features where they did not run equally long."""
    lengths = {
        kind: next(r["settings"]["epochs"] for r in found if r["solver"].endswith(kind))
        for kind in ("_M", "_F")
        if any(r["solver"].endswith(kind) for r in found)
    }
    if len(set(lengths.values())) == 1:
        return str(next(iter(lengths.values())))
    return ", ".join(f"{kind} {epochs}" for kind, epochs in lengths.items())


def _runs(records: Sequence[Record], dataset: str, solver: str, s: int) -> list[Record]:
    """Those of this point: the cutting planes with the paper's s are in Table 3 already."""
    experiment = "table3" if solver in PEERS and s in TABLE3_SIZES else name
    return select(records, experiment, dataset=dataset, solver=solver, s=s)


def chart(records: Sequence[Record], dataset: str) -> Figure:
    """Error against s on one set."""
    lines = []
    for solver in ("ASSET_M", "ASSET_F", *PEERS):
        found = {s: _runs(records, dataset, solver, s) for s in SIZES}
        sizes = [s for s in SIZES if found[s]]
        if not sizes:
            continue
        numbers = [mean_and_error(values(found[s], "error")) for s in sizes]
        means = np.array([mean for mean, _ in numbers])
        spread = np.nan_to_num([error for _, error in numbers])
        lines.append(Line(solver, sizes, means, means - spread, means + spread))
    marks = [TABLE3[dataset, s]["ASSET_M"][1] for s in TABLE3_SIZES]
    lines.append(Line("the paper's ASSET_M", list(TABLE3_SIZES), marks, dashed=True))
    return line_chart(
        lines,
        "s",
        "test error, %",
        title=datasets.SETS[dataset].title,
        caption=datasets.SETS[dataset].note,
        x_scale="log2",
        rules=floor(records, dataset),
    )


def floor(records: Sequence[Record], dataset: str) -> list[Rule]:
    """The error of the exact solvers that were run on this set."""
    rules = []
    for solver in FLOOR:
        found = select(records, "table3", dataset=dataset, solver=solver)
        if found:
            rules.append(Rule(solver, mean_and_error(values(found, "error"))[0]))
    return rules
