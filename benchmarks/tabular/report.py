"""The records of ``tables.py`` as Markdown: sets by methods, and ours minus LightGBM, paired."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import datasets as data
from asset_svm.pages import Cell, Paragraph, Table
from experiments.base import Record, seconds_shown, shown, titled, values
from tabular import METHODS, asset, auto, lightgbm
from tabular.base import BUSY, SHORT

BETTER = "LightGBM, the better"
OURS = (*(race.name for race in auto.METHODS), asset.WITHOUT.name, asset.WITH.name)
HEAD = (
    "Test error in %, or RMSE of a target that training rows standardise: mean over splits and its "
    "standard error. Settings are chosen by validation rows; then every method is trained on training "
    "and validation rows together, which is the time shown (wall seconds, encoding included; the "
    f"shorter of two below {SHORT:g} s; busy: others had more than {BUSY:.0%} of the machine), and "
    f"looks at the test rows once. {BETTER}: of its two, the one with the lower validation loss."
)


def by_split(records: Sequence[Record], dataset: str, method: str) -> dict[int, Record]:
    """The last record of every split; that of the better LightGBM is one of two."""
    if method != BETTER:
        return {r["seed"]: r for r in records if (r["dataset"], r["solver"]) == (dataset, method)}
    both = [by_split(records, dataset, one.name) for one in lightgbm.METHODS]
    return {
        seed: min((one[seed] for one in both), key=lambda record: record["result"]["validation"])
        for seed in both[0]
        if all(seed in one for one in both)
    }


def tables_of(records: Sequence[Record]) -> list[Paragraph | Table]:
    """Both tables: losses and seconds; ours minus LightGBM, paired."""
    sets = [name for name in data.SETS if any(record["dataset"] == name for record in records)]
    there = [name for name in METHODS if any(record["solver"] == name for record in records)]
    if all(one.name in there for one in lightgbm.METHODS):
        there.insert(there.index(lightgbm.LARGE.name) + 1, BETTER)
    losses = Table(
        ["", *there],
        [[titled(name), *(_cell(records, name, method) for method in there)] for name in sets],
    )
    parts: list[Paragraph | Table] = [losses]
    ours = [name for name in OURS if name in there]
    if BETTER in there and ours:
        rows = [
            [titled(name), *(_difference(records, name, method) for method in ours)] for name in sets
        ]
        parts += [
            Paragraph(f"Ours minus {BETTER}, split by split; below 0 ours is ahead."),
            Table(["", *ours], rows),
        ]
    return parts


def markdown(records: Sequence[Record], machine: dict[str, Any]) -> str:
    """Both tables, with their heads."""
    parts = [Paragraph(HEAD), *tables_of(records)]
    versions = ", ".join(f"{name} {version}" for name, version in machine["versions"].items())
    software = sorted({record["software"] for record in records if record["software"]})
    about = f"{machine['cpu']}, {machine['threads']} threads, commit {machine['commit']}; {versions}"
    parts.append(Paragraph(f"{about}; {', '.join(software)}."))
    return "\n\n".join(part.markdown() for part in parts) + "\n"


def _digits(dataset: str) -> int:
    return 4 if data.SETS[dataset].regression else 2


def _cell(records: Sequence[Record], dataset: str, method: str) -> Cell | None:
    found = list(by_split(records, dataset, method).values())
    if not found:
        return None
    seconds = seconds_shown(values(found, "seconds"))
    if values(found, "others").max(initial=0.0) > BUSY:
        seconds += ", machine busy"
    return Cell(shown(values(found, "loss"), _digits(dataset)), seconds)


def _difference(records: Sequence[Record], dataset: str, method: str) -> str | None:
    ours, theirs = by_split(records, dataset, method), by_split(records, dataset, BETTER)
    pairs = [
        ours[seed]["result"]["loss"] - theirs[seed]["result"]["loss"] for seed in ours.keys() & theirs
    ]
    if not pairs:
        return None
    return ("+" if np.mean(pairs) > 0 else "") + shown(np.array(pairs), _digits(dataset))
