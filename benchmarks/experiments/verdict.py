"""Is every number at least as good as the paper's? From the records of Figure 1 and Table 3.

The yardstick is the standard error of an error rate on one split, sqrt(p (1 - p) / test rows).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

import datasets
from asset_svm.pages import Cell, Paragraph, Section, Table, Value
from experiments import figure1, table3
from experiments.base import (
    PAPER_SETS,
    Record,
    Scale,
    Task,
    its_rows,
    mean_and_error,
    select,
    shown,
    titled,
    values,
)
from experiments.paper_numbers import TABLE3, TABLE3_SIZES

name = "verdict"


def tasks(scale: Scale) -> list[Task]:
    """None of its own."""
    return []


def section(records: Sequence[Record]) -> Section:
    """A line a set and s."""
    rows = [
        row
        for dataset in PAPER_SETS
        for s in TABLE3_SIZES
        if (row := _row(records, dataset, s)) is not None
    ]
    text = (
        "ASSET_M after a fixed number of epochs, with the average of the last half of its iterates "
        "(the runs of Figure 1): the verdict is on this number. Beside it the smallest test error that "
        "a run with the average of the last 100 passed on its way (the runs of Table 3), as the "
        "paper's were stopped on the test error; the library's default; and the exact solution of the "
        "same problem on the same landmarks, with its duality gap. The yardstick is the standard error "
        "of one split, sqrt(p (1 - p) / test rows)."
    )
    header = [
        "", "the paper's Table 3, %", "error of a split", "ASSET_M, fixed epochs, %",
        "smallest on the way, %", "metric step, fixed epochs, %", "exact on (PL), %", "verdict",
    ]  # fmt: skip
    parts = [Paragraph(text), Table(header, rows)] if rows else []
    return Section("Is every number at least as good as the paper's?", parts)


def _row(records: Sequence[Record], dataset: str, s: int) -> list[Value] | None:
    entry = datasets.SETS[dataset]
    fixed = select(records, figure1.name, dataset=dataset, solver="ASSET_M", s=s)
    watched = select(records, table3.name, dataset=dataset, solver="ASSET_M", s=s)
    exact = select(records, table3.name, dataset=dataset, solver=table3.EXACT_PL, s=s)
    default = select(records, table3.name, dataset=dataset, solver=table3.OURS, s=s)
    if not fixed:
        return None
    ours = values(fixed, "error")
    paper = TABLE3[dataset, s]["ASSET_M"][1]
    unit = split_error(paper, entry.sizes[1] if entry.sizes else datasets.PAPER[dataset].test)
    solved: Value = None
    if exact:
        gaps = values(exact, "gap") / values(exact, "objective")
        solved = Cell(shown(values(exact, "error")), f"gap {100 * gaps.max():.1f} %")
    return [
        f"{titled(dataset)}, s = {s}",
        Cell(f"{paper}", its_rows(dataset)),
        f"{unit:.2f}",
        Cell(shown(ours), f"{fixed[0]['settings']['epochs']} epochs"),
        Cell(shown(values(watched, "smallest")), f"in {watched[0]['settings']['epochs']} epochs")
        if watched
        else None,
        Cell(shown(values(default, "error")), f"{table3.DEFAULT.epochs} epochs") if default else None,
        solved,
        verdict(ours, exact, paper, unit, entry.note),
    ]


def split_error(percent: float, rows: int) -> float:
    """The standard error of an error rate on so many test rows, in points."""
    return 100.0 * float(np.sqrt(percent / 100 * (1 - percent / 100) / rows))


def verdict(ours: np.ndarray, exact: list[Record], paper: float, unit: float, note: str) -> Cell:
    """Whether a number is at least as good as the paper's within two standard errors, or why not."""
    mean, _ = mean_and_error(ours)
    if mean <= paper + 0.005:
        return Cell("at least as good", tone="good")
    if mean <= paper + 2 * unit:
        return Cell("within two standard errors", tone="good")
    bound, _ = mean_and_error(values(exact, "error"))
    if bound > paper + 2 * unit and mean <= bound + 2 * unit:
        return Cell("not on these features", f"the exact solution has {bound:.2f} %")
    if note:
        return Cell("other data", note)
    reached = "" if np.isnan(bound) else f"; the exact solution has {bound:.2f} %"
    return Cell("worse", f"by {mean - paper:.2f} points{reached}", "bad")
