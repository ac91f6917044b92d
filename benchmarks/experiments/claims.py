"""What the paper says in words, checked on the records of the other experiments."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from asset_svm.pages import Cell, Paragraph, Part, Section, Table, Value
from experiments import figure1, table3
from experiments.base import PAPER_SETS, Record, Scale, Task, mean_and_error, select, titled, values
from solvers import SOLVERS

name = "claims"


def tasks(scale: Scale) -> list[Task]:
    """None of its own."""
    return []


def section(records: Sequence[Record]) -> Section:
    """Three claims."""
    parts: list[Part] = [
        Paragraph(
            "ASSET and ASSET* alike for small lam: differences of their test errors on the same "
            "splits, in points, after the same number of epochs."
        ),
        _alike(records),
        Paragraph(
            "ASSET_F needs a larger d than ASSET_M: the smallest d tried with which ASSET_F is as good "
            "as ASSET_M is with a given s."
        ),
        _dimension(records),
        Paragraph(
            "Prediction: s kernel values against as many as the exact solver has support vectors, and "
            "what one test row took here."
        ),
        _prediction(records),
    ]
    return Section("The claims of the text", parts)


def _alike(records: Sequence[Record]) -> Table:
    rows: list[list[Value]] = []
    for dataset in PAPER_SETS:
        for s in table3.SIZES:
            cells: list[Value] = []
            for first, second in (("ASSET_M", "ASSET*_M"), ("ASSET_F", "ASSET*_F")):
                pair = [_by_seed(records, dataset, solver, s) for solver in (first, second)]
                common = sorted(set(pair[0]) & set(pair[1]))
                mean, error = mean_and_error(np.array([pair[1][k] - pair[0][k] for k in common]))
                spread = "" if np.isnan(error) else f" ± {error:.2f}"
                cells.append(f"{mean:+.2f}{spread}" if common else None)
            if any(cells):
                rows.append([f"{titled(dataset)}, s = {s}", *cells])
    return Table(["", "ASSET*_M - ASSET_M", "ASSET*_F - ASSET_F"], rows)


def _by_seed(records: Sequence[Record], dataset: str, solver: str, s: int) -> dict[int, float]:
    found = select(records, figure1.name, dataset=dataset, solver=solver, s=s)
    return {record["seed"]: record["result"]["error"] for record in found}


def _dimension(records: Sequence[Record]) -> Table:
    given = (16, 64, 256)
    rows: list[list[Value]] = []
    for dataset in PAPER_SETS:
        means = {
            solver: {
                s: mean_and_error(values(found, "error"))[0]
                for s in figure1.SIZES
                if (found := select(records, figure1.name, dataset=dataset, solver=solver, s=s))
            }
            for solver in ("ASSET_M", "ASSET_F")
        }
        if not means["ASSET_F"]:
            continue
        cells: list[Value] = []
        for s in given:
            goal = means["ASSET_M"].get(s)
            enough = [d for d, error in means["ASSET_F"].items() if goal is not None and error <= goal]
            most = max(means["ASSET_F"])
            found_d = f"d = {min(enough)}" if enough else f"more than {most}"
            cells.append(Cell(found_d, f"{goal:.2f} %") if goal is not None else None)
        rows.append([titled(dataset), *cells])
    return Table(["", *(f"as good as ASSET_M with s = {s}" for s in given)], rows)


def _prediction(records: Sequence[Record]) -> Table:
    rows: list[list[Value]] = []
    for dataset in PAPER_SETS:
        for solver in SOLVERS.values():
            exact = select(records, table3.name, dataset=dataset, solver=solver.name)
            if not solver.exact or not exact:
                continue
            vectors = values(exact, "basis").mean()
            cells: list[Value] = [
                f"{vectors:.0f}",
                f"{1e6 * values(exact, 'row_seconds').mean():.0f} us",
            ]
            for s in table3.SIZES:
                ours = select(records, table3.name, dataset=dataset, solver=table3.OURS, s=s)
                if not ours:
                    cells.append(None)
                    continue
                micros = 1e6 * values(ours, "row_seconds").mean()
                cells.append(Cell(f"{s / vectors:.3f}", f"{micros:.1f} us"))
            rows.append([f"{titled(dataset)}, {solver.name}", *cells])
    header = ["", "support vectors", "a row", *(f"s / vectors, s = {s}" for s in table3.SIZES)]
    return Table(header, rows)
