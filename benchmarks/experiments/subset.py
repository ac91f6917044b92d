"""Everybody on the same 4000 rows: exact solvers and cutting planes end there within seconds.

On all rows, the programs the paper compares with take minutes to days (its Table 3), which is for a
full run. Here they are beside the others on the first 4000 training rows of one split and (at most)
10 000 of its test rows, with the paper's sigma and its C, so that lam = 1 / (4000 C).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import datasets
from asset_svm.pages import Figure, Line, Paragraph, Part, Rule, Section, Table, line_chart
from experiments.base import PAPER_SETS, Record, Scale, Task, mean_and_error, select, titled, values
from experiments.comparison import rows_of
from solvers import SOLVERS, Problem
from solvers.asset import Asset

name = "subset"
ROWS, TEST_ROWS = 4000, 10_000
SIZES = (8, 32, 128, 512)
CURVES = ("ASSET_M", "CPNY", "CPSP")
"""At every s; the others at the largest alone."""
EPOCHS = 100
"""Of the paper's algorithms: rows are few."""


def tasks(scale: Scale) -> list[Task]:
    """All solvers on one set after the other."""
    found = []
    for dataset in scale.chosen(PAPER_SETS):
        for s in SIZES:
            if scale.quick and dataset == "adult" and s < SIZES[-1]:
                continue  # the cutting planes would only be stopped, even with s = 8
            for solver in CURVES if s < SIZES[-1] else SOLVERS:
                settings: dict[str, Any] = {} if SOLVERS[solver].exact else dict(s=s)
                if _is_the_papers(solver):
                    settings["epochs"] = EPOCHS
                run_it = partial(run, solver, dataset, limit=scale.limit, **settings)
                cost = 1.0 if s < SIZES[-1] else 4.0
                found.append(Task(name, solver, dataset, 0, settings, run_it, cost, scale.limit))
    return found


def _is_the_papers(solver: str) -> bool:
    return solver.startswith("ASSET")


def run(solver: str, dataset: str, limit: float, s: int = 0, epochs: int = 0) -> dict[str, Any]:
    """Train on the first rows of a split."""
    X, y, X_test, y_test = datasets.paper_split(dataset, 0)
    paper = datasets.PAPER[dataset]
    rows, test = slice(min(ROWS, len(y))), slice(TEST_ROWS)
    lam = paper.lam * paper.train / len(y[rows])
    algorithm = SOLVERS[solver]
    if isinstance(algorithm, Asset) and epochs:
        algorithm = replace(algorithm, epochs=epochs)
    fitted = algorithm.fit(Problem(X[rows], y[rows], paper.sigma, lam, s, limit=limit), 0)
    return dict(error=fitted.error(X_test[test], y_test[test]), seconds=fitted.seconds)


def section(records: Sequence[Record]) -> Section:
    """A table, and a chart a set."""
    found = [record for record in records if record["experiment"] == name]
    if not found:
        return Section("", [])
    s = SIZES[-1]
    parts: list[Part] = [
        Paragraph(
            f"On all rows the programs that the paper compares with (CPNY and CPSP: svm_perf_learn; "
            f"SVM-Light; LASVM) take minutes to days. Here everybody has the same {ROWS} training rows "
            f"of one split and at most {TEST_ROWS} of its test rows, the paper's sigma, and its C, so "
            f"that lam = 1 / ({ROWS} C). Test error, and CPU time of training; the paper's algorithms "
            f"with {EPOCHS} epochs and the average of the last half. The paper has no numbers of "
            "this size."
        ),
        Table(
            [f"{ROWS} rows, s = {s}", *(titled(dataset) for dataset in PAPER_SETS)],
            rows_of(found, tuple(SOLVERS), s, "not run"),
        ),
    ]
    drawn = select(found, s=SIZES[0])
    parts += [chart(found, dataset) for dataset in PAPER_SETS if select(drawn, dataset=dataset)]
    return Section(f"Everybody on {ROWS} rows", parts)


def chart(records: Sequence[Record], dataset: str) -> Figure:
    """Error against s, with the exact solution as the floor."""
    lines = []
    for solver in CURVES:
        found = select(records, dataset=dataset, solver=solver)
        sizes = sorted({record["settings"]["s"] for record in found})
        if sizes:
            means = [mean_and_error(values(select(found, s=s), "error"))[0] for s in sizes]
            lines.append(Line(solver, sizes, means))
    exact = select(records, dataset=dataset, solver="SVC / SVR")
    floor = [Rule("SVC, exact", mean_and_error(values(exact, "error"))[0])] if exact else []
    return line_chart(
        lines, "s", "test error, %", title=f"{datasets.SETS[dataset].title}, {ROWS} rows",
        caption=datasets.SETS[dataset].note, x_scale="log2", rules=floor,
    )  # fmt: skip
