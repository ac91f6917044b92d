"""Table 2: the data sets and parameters, as they are here and as the paper has them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp

import datasets
from asset_svm.pages import Cell, Section, Table, Value
from experiments.base import PAPER_SETS, Record, Scale, Task, select

name = "table2"


def tasks(scale: Scale) -> list[Task]:
    """One a set."""
    names = scale.chosen([*PAPER_SETS, "mnist_e"])
    return [Task(name, "-", dataset, 0, {}, partial(describe, dataset), 3.0) for dataset in names]


def describe(dataset: str) -> dict[str, Any]:
    """What one of the splits looks like."""
    X, y, X_test, _ = datasets.paper_split(dataset, 0)
    filled = X.nnz if sp.issparse(X) else int(np.count_nonzero(X))
    return dict(
        train=len(y),
        test=X_test.shape[0],
        features=X.shape[1],
        density=100.0 * filled / (X.shape[0] * X.shape[1]),
        positive=100.0 * float(np.mean(y > 0)),
    )


def section(records: Sequence[Record]) -> Section:
    """The table."""
    rows: list[list[Value]] = []
    for dataset in (*PAPER_SETS, "mnist_e"):
        entry, paper = datasets.SETS[dataset], datasets.PAPER[dataset]
        found = select(records, name, dataset=dataset)
        here = found[0]["result"] if found else None
        theirs = f"paper {paper.train} / {paper.test}"
        if dataset == "mnist_e":
            size = Cell("made when asked for", theirs)
        else:
            size = Cell(f"{here['train']} / {here['test']}", theirs) if here else Cell("", theirs)
        rows.append(
            [
                entry.title,
                size,
                Cell(str(here["features"]) if here else "", f"paper {paper.features}"),
                Cell(f"{here['density']:.1f} %" if here else "", f"paper {paper.density} %"),
                f"{paper.lam:.3g}",
                f"{paper.sigma:g}",
                entry.note or "as in the paper",
            ]
        )
    header = ["set", "rows train / test", "features", "not zero", "lam", "sigma", "remark"]
    caption = "lam and sigma are the paper's; splits are random, a new one each repeat"
    return Section("Table 2: data and parameters", [Table(header, rows, caption)])
