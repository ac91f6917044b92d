"""The records of ``tables.py`` as a page: for every set, loss against seconds."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

import datasets as data
from asset_svm.pages import Line, Page, Paragraph, Section, line_chart
from experiments.base import Record, titled, values
from tabular import METHODS, auto, lightgbm
from tabular.report import HEAD, by_split, tables_of

RACES = "asset-svm, without a knob"
ABOUT = (
    "Test loss over the seconds of training (mean over splits). The steps are the race of one split "
    "with the longest limit: the best candidate so far, by rows held out from what it has learnt of."
)


def write_page(records: Sequence[Record], machine: dict[str, object], path: Path) -> Path:
    """Write the page; matplotlib draws it."""
    sets = [name for name in data.SETS if any(record["dataset"] == name for record in records)]
    page = Page("Tables: ours beside gradient boosting", HEAD, footer=str(machine.get("cpu", "")))
    page.add(Section("Losses", tables_of(records)))
    for name in sets:
        lines = _lines(records, name)
        if lines:
            unit = "RMSE" if data.SETS[name].regression else "error in %"
            chart = line_chart(lines, "seconds", unit, title=titled(name), x_scale="log")
            page.add(Section(titled(name), [Paragraph(ABOUT), chart]))
    return page.write(path)


def _lines(records: Sequence[Record], name: str) -> list[Line]:
    """A line for the limits of the race, one for LightGBM's sizes, a point for every other method."""
    groups = {
        RACES: [race.name for race in reversed(auto.METHODS)],
        "LightGBM": [one.name for one in lightgbm.METHODS],
    }
    grouped = {method for names in groups.values() for method in names}
    groups |= {method: [method] for method in METHODS if method not in grouped}
    lines = []
    for label, methods in groups.items():
        points = [_point(records, name, method) for method in methods]
        there = sorted(point for point in points if point is not None)
        if there:
            x, y = zip(*there, strict=True)
            lines.append(Line(label, x, y))
    curve = _curve(records, name)
    return [*lines, curve] if lines and curve is not None else lines


def _point(records: Sequence[Record], name: str, method: str) -> tuple[float, float] | None:
    found = list(by_split(records, name, method).values())
    found = [record for record in found if "loss" in record["result"]]
    if not found:
        return None
    return float(np.mean(values(found, "seconds"))), float(np.mean(values(found, "loss")))


def _curve(records: Sequence[Record], name: str) -> Line | None:
    """The race of the first split, as steps."""
    for race in auto.METHODS:
        for record in by_split(records, name, race.name).values():
            curve = record["result"].get("curve")
            if curve:
                x, y = zip(*curve, strict=True)
                return Line("the race of one split, rows held out", x, y, steps=True)
    return None
