"""Table 3: time to reach the error of the Nystroem peer, and everybody's time and error.

As in the paper, ASSET_M and ASSET*_M are looked at ten times an epoch, at the average of the last 100
iterates. Here they then run on to a fixed number of epochs, so that the error there and the smallest
on the way can be told apart: the paper stopped on the test error. The peer whose error is to be
reached is CPNY, the paper's, where it ended on every split of a row, else the averaged SGD on
scikit-learn's Nystroem features (20 epochs).

``EXACT_PL`` solves the same (PL), with the same landmarks, to a duality gap that is shown: what no
algorithm on these features can be expected to beat but by stopping early.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

import datasets
from asset_svm.pages import Cell, Paragraph, Part, Section, Table, Value
from asset_svm.training.recipe import StepKind
from experiments.base import (
    PAPER_SETS,
    SHORT,
    Record,
    Scale,
    Task,
    its_rows,
    seconds_shown,
    select,
    shown,
    titled,
    values,
)
from experiments.comparison import rows_of
from experiments.paper_numbers import TABLE3, TABLE3_SIZES
from solvers import SOLVERS, Problem
from solvers.asset import DEFAULT, Asset
from solvers.traces import trace

name = "table3"
TRACED: dict[str, StepKind] = {"ASSET_M": "robust", "ASSET*_M": "strong"}
SIZES = TABLE3_SIZES
GOAL, TARGET = "CPNY", "Nystroem + SGD"
EXACT_PL = "exact on (PL)"
OURS = DEFAULT.name
PEERS = tuple(solver for solver in SOLVERS if not isinstance(SOLVERS[solver], Asset))

_QUICK = {
    "Nystroem + LinearSVC / SVR": ("ijcnn",),
    "RBFSampler + SGD": ("adult", "mnist", "ccat", "ijcnn"),
    "Snap ML": ("adult", "mnist", "ijcnn"),
    "SVC / SVR": ("ijcnn",),
    "SVC / SVR (intelex)": ("adult", "mnist", "ccat", "ijcnn"),
    EXACT_PL: ("adult", "mnist", "ccat", "ijcnn"),
}
"""Where the slow peers run in a quick run: on one split, and on features with the smaller s.

CPNY, whose error is the goal, has every split and both s where it is ``SHORT``. On the other sets it
takes minutes (the paper: 5 minutes to 8 hours), as do the other programs: these are in ``subset``.
"""
_SECONDS = {"SVC / SVR": 60.0, "SVC / SVR (intelex)": 15.0, "Nystroem + LinearSVC / SVR": 30.0}


def tasks(scale: Scale) -> list[Task]:
    """All solvers on one split after the other."""
    found = []
    for dataset in scale.chosen(PAPER_SETS):
        epochs = (5 if dataset == "covtype" else 20) if scale.quick else 50
        for seed in scale.seeds(dataset):
            for s in SIZES:
                found += [_task(solver, dataset, seed, dict(s=s), 3.0) for solver in (TARGET, OURS)]
                watched = dict(s=s, epochs=epochs, average=100)
                found += [_task(solver, dataset, seed, watched, 3.0) for solver in TRACED]
                if _wanted(EXACT_PL, dataset, seed, s, scale):
                    found.append(_task(EXACT_PL, dataset, seed, dict(s=s), 12.0))
                for solver in PEERS:
                    if SOLVERS[solver].exact or solver == TARGET:
                        continue
                    if _wanted(solver, dataset, seed, s, scale):
                        cost = _SECONDS.get(solver, 5.0)
                        found.append(_task(solver, dataset, seed, dict(s=s), cost, scale.limit))
            for solver in PEERS:
                if SOLVERS[solver].exact and _wanted(solver, dataset, seed, SIZES[0], scale):
                    cost = _SECONDS.get(solver, 60.0)
                    found.append(_task(solver, dataset, seed, {}, cost, scale.limit))
    return found


def _wanted(solver: str, dataset: str, seed: int, s: int, scale: Scale) -> bool:
    """Exact solvers (and CPSP, as slow) run on one split, in a quick run only on some sets."""
    if solver == EXACT_PL:
        # On every split where the paper's number is out of reach otherwise: chance is no explanation.
        return dataset in _QUICK[EXACT_PL] and (seed == 0 or (dataset == "mnist" and s == 1024))
    if not scale.quick:
        return seed == 0 or not (SOLVERS[solver].exact or solver == "CPSP")
    if solver in SHORT:
        return dataset in SHORT[solver]
    if seed > 0 or dataset not in _QUICK.get(solver, ()):
        return False
    return s == SIZES[0] or solver in ("RBFSampler + SGD", "Snap ML")


def _task(
    solver: str, dataset: str, seed: int, settings: dict[str, Any], seconds: float,
    limit: float | None = None,
) -> Task:  # fmt: skip
    share = 8.0 if dataset == "covtype" else 1.0
    run_it = partial(run, solver, dataset, seed, **settings, limit=limit)
    return Task(name, solver, dataset, seed, settings, run_it, seconds * share, limit)


def run(
    solver: str, dataset: str, seed: int, s: int = 0, epochs: int = 0, average: int = 0,
    limit: float | None = None,
) -> dict[str, Any]:  # fmt: skip
    """Train on one split."""
    X, y, X_test, y_test = datasets.paper_split(dataset, seed)
    paper = datasets.PAPER[dataset]
    problem = Problem(X, y, paper.sigma, paper.lam, s, limit=limit)
    if solver in TRACED:
        found = trace(problem, (X_test, y_test), TRACED[solver], seed, epochs)
        return dict(
            steps=[point.steps for point in found],
            times=[round(point.seconds, 4) for point in found],
            errors=[round(point.error, 4) for point in found],
            error=found[-1].error,
            smallest=min(point.error for point in found),
            seconds=found[-1].seconds,
        )
    if solver == EXACT_PL:
        model = replace(DEFAULT, epochs=25).estimator(problem, seed)
        model.fit(X, y)
        objective, gap = model.certify(X, y)
        error = 100.0 * (1.0 - model.score(X_test, y_test))
        return dict(error=error, objective=objective, gap=gap)
    fitted = SOLVERS[solver].fit(problem, seed)
    begun = time.process_time()
    error = fitted.error(X_test, y_test)
    per_row = (time.process_time() - begun) / X_test.shape[0]
    return dict(error=error, seconds=fitted.seconds, basis=fitted.basis, row_seconds=per_row)


def section(records: Sequence[Record]) -> Section:
    """The paper's table, and the peers'."""
    parts: list[Part] = [
        Paragraph(
            "ASSET_M and ASSET*_M exactly as in the paper: steps with D_X as it is, average of the "
            "last 100 iterates, ten looks an epoch. Times are CPU seconds of training, the map "
            "included. The peer whose error is to be reached is CPNY, as in the paper, where it was "
            "run on all these splits, else the averaged SGD on scikit-learn's Nystroem features "
            "(20 epochs)."
        ),
        _traced(records),
        Paragraph(
            "Everybody's test error on all rows, and CPU time of training. Exact solvers use no s; "
            "their number is of one split. SVC, SVR and their kin have a bias, which cannot be "
            "switched off; LASVM has one, as it ends far from the optimum without. A run that was "
            "stopped says after how many CPU seconds."
        ),
        *(_everybody(records, s) for s in SIZES),
    ]
    return Section("Table 3: time to reach the error of the Nystroem peer", parts)


def goals(
    records: Sequence[Record], dataset: str, s: int, seeds: Sequence[int]
) -> tuple[str, dict[int, float]]:
    """The peer to be reached, one for all these splits, and its error on each of them."""
    reached: dict[int, float] = {}
    for solver in (GOAL, TARGET):
        found = select(records, name, solver=solver, dataset=dataset, s=s)
        reached = {record["seed"]: float(record["result"]["error"]) for record in found}
        if set(reached) >= set(seeds):
            return solver, reached
    return TARGET, reached


def seconds_to(record: Record, error: float) -> float | None:
    """When a traced run first had an error as small as this."""
    for seconds, reached in zip(record["result"]["times"], record["result"]["errors"], strict=True):
        if reached <= error + 1e-9:
            return float(seconds)
    return None


def _traced(records: Sequence[Record]) -> Table:
    rows: list[list[Value]] = []
    for dataset in PAPER_SETS:
        for s in SIZES:
            for solver in TRACED:
                found = select(records, name, dataset=dataset, solver=solver, s=s)
                if not found:
                    continue
                peer, errors = goals(records, dataset, s, [record["seed"] for record in found])
                watched = [record for record in found if record["seed"] in errors]
                times = [seconds_to(record, errors[record["seed"]]) for record in watched]
                reached = np.array([t for t in times if t is not None])
                paper = TABLE3[dataset, s][solver]
                rows.append(
                    [
                        f"{titled(dataset)}, s = {s}, {solver}",
                        Cell(shown(np.array([errors[r["seed"]] for r in watched])), peer),
                        seconds_shown(reached) or "not reached",
                        f"{len(reached)} of {len(times)}",
                        Cell(shown(values(found, "error")), f"{found[0]['settings']['epochs']} epochs"),
                        shown(values(found, "smallest")),
                        seconds_shown(values(found, "seconds")),
                        Cell(f"{paper[0]:.0f} s, {paper[1]} %", its_rows(dataset)),
                    ]
                )
    header = ["", "peer's error, %", "seconds to it", "reached", "error at the end, %",
              "smallest on the way, %", "whole run", "the paper's Table 3"]  # fmt: skip
    return Table(header, rows)


def _everybody(records: Sequence[Record], s: int) -> Table:
    mine = [record for record in records if record["experiment"] == name]
    rows = rows_of(mine, (OURS, *PEERS), s, "in a full run; on 4000 rows below")
    for solver in ("ASSET_M", "CPSP", "CPNY", "LASVM", "SVM-Light"):
        quoted = [TABLE3[dataset, s][solver] for dataset in PAPER_SETS]
        label = Cell(f"{solver}, the paper", "2012, its machine")
        cells = [
            Cell(f"{error} %", f"{seconds:.0f} s {its_rows(dataset)}".rstrip())
            for dataset, (seconds, error) in zip(PAPER_SETS, quoted, strict=True)
        ]
        rows.append([label, *cells])
    titles = [titled(dataset) for dataset in PAPER_SETS]
    return Table([f"s = {s}", *titles], rows)
