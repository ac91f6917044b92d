"""Figure 2: one pass of ASSET_F and ASSET*_F over MNIST-E, error against time, for several d.

On the CPU the digits are deformed as they are needed and never stored; a full run has the paper's 10^6
rows and all its d, a quick one 10^5 rows and every other d. On a card, where there is one, a pass takes
a second, and every run is a full one, over the same rows, which are made once and lie in memory. LASVM,
which the paper sets beside them, takes days on these rows; it is in Table 3 on the smaller sets.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache, partial
from typing import Any

import numpy as np

import datasets
from asset_svm.pages import Line, Paragraph, Part, Section, Table, Value, line_chart
from datasets import mnist_e
from experiments.base import Record, Scale, Task, select
from experiments.machine import has_card
from experiments.paper_numbers import FIGURE2
from solvers.traces import card_trace, stream_trace

name = "figure2"
ALGORITHMS = ("ASSET_F", "ASSET*_F", "ASSET_F, last half")
LOOKS = 20


def tasks(scale: Scale) -> list[Task]:
    """One pass a d; a single run, as in the paper."""
    if not scale.chosen(["mnist_e"]):
        return []
    card = has_card()
    quick = scale.quick and not card
    sizes = (1024, 4096, 16384) if quick else (1024, 2048, 4096, 8192, 16384)
    rows, test = (100_000, 10_000) if quick else (1_000_000, 20_000)
    found = []
    for d in sizes:
        settings: dict[str, Any] = dict(d=d, rows=rows, test=test)
        cost = 3.0 + rows * (2e-5 + d * 2.4e-8)
        if card:
            settings, cost = settings | dict(device="cuda"), 10.0
        run_it = partial(run, **settings)
        found.append(Task(name, "ASSET_F, ASSET*_F", "mnist_e", 0, settings, run_it, cost))
    return found


@lru_cache(maxsize=2)
def _rows(count: int, part: str) -> tuple[np.ndarray, np.ndarray]:
    return mnist_e.rows(count, part)


def run(d: int, rows: int, test: int, device: str = "cpu") -> dict[str, Any]:
    """One pass with both algorithms."""
    paper = datasets.PAPER["mnist_e"]
    settings = (paper.sigma, paper.lam, d, 0, LOOKS)
    if device == "cuda":
        found = card_trace(*_rows(rows, "train"), _rows(test, "test"), *settings)
    else:
        found = stream_trace(mnist_e.stream(rows), rows, mnist_e.rows(test, "test"), *settings)
    return {
        algorithm: dict(
            steps=[point.steps for point in points],
            times=[round(point.seconds, 3) for point in points],
            errors=[round(point.error, 4) for point in points],
        )
        for algorithm, points in found.items()
    }


def section(records: Sequence[Record]) -> Section:
    """A chart an algorithm, and the ends of the curves."""
    found = sorted(select(records, name), key=lambda r: (r["settings"]["rows"], r["settings"]["d"]))
    most = max((record["settings"]["rows"] for record in found), default=0)
    found = select(found, rows=most)
    on_card = select(found, device="cuda")
    found = on_card or found
    clock = "Seconds on one card" if on_card else "CPU seconds"
    parts: list[Part] = [
        Paragraph(
            f"One pass over {most} rows (the paper: 1000000), no row seen twice; as in the paper the "
            f"average of the last 100 iterates, and, beside it, of the last half. {clock} of features "
            "and steps, not of making the digits. "
            f"{datasets.SETS['mnist_e'].note[0].upper()}{datasets.SETS['mnist_e'].note[1:]}."
        )
    ]
    for algorithm in ALGORITHMS:
        lines = [
            Line(
                f"d = {record['settings']['d']}",
                record["result"][algorithm]["times"],
                record["result"][algorithm]["errors"],
            )
            for record in found
        ]
        if lines:
            parts.append(
                line_chart(lines, clock, "test error, %", title=algorithm, x_scale="log", y_scale="log")
            )
    rows: list[list[Value]] = []
    for record in found:
        ends: list[Value] = []
        for algorithm in ALGORITHMS:
            curve = record["result"][algorithm]
            ends += [f"{curve['errors'][-1]:.2f}", f"{min(curve['errors']):.2f}"]
        seconds = record["result"]["ASSET_F"]["times"][-1]
        rows.append([str(record["settings"]["d"]), *ends, f"{seconds:.1f} s"])
    theirs = [FIGURE2["ASSET_F"], None, FIGURE2["ASSET*_F"], None, None, None]
    rows.append(["16384, the paper, 10^6 rows", *theirs, "7.2 h"])
    rows.append(["LASVM, the paper, 10^6 rows", FIGURE2["LASVM"], *[None] * 5, "4.3 days"])
    header = ["d"]
    for algorithm in ALGORITHMS:
        header += [f"{algorithm}, end, %", "smallest"]
    header.append("time")
    parts.append(Table(header, rows))
    return Section("Figure 2: one pass over MNIST-E", parts)
