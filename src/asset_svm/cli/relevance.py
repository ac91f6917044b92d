"""What is told of a learnt relevance: lines and tables of a model, a section of a report."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from asset_svm.cli.scoring import ScaledModel
from asset_svm.pages import (
    Cell,
    Figure,
    Line,
    Paragraph,
    Part,
    Rule,
    Section,
    Table,
    Value,
    bar_chart,
    line_chart,
)

MOST_COLUMNS = 20
"""The most columns whose importance is shown."""


def has_relevance(model: ScaledModel) -> bool:
    """Whether relevance was learnt, whatever came of it."""
    return hasattr(model.core, "relevance_history_")


def has_importances(model: ScaledModel) -> bool:
    """Whether columns have importances: a mean of models has those of its members, and no rounds."""
    return hasattr(model.core, "feature_importances_")


def relevance_lines(model: ScaledModel) -> list[list[str]]:
    """The shape, and the round that was chosen; nothing of a model without relevance."""
    if not has_relevance(model):
        return []
    weights, history = model.core.relevance_, model.core.relevance_history_
    if weights is None:
        shape = "rows as they are: " + ("no gain" if history else "too few rows to tell")
    elif weights.ndim == 1:
        shape = "columns"
    else:
        shape = f"directions ({weights.shape[0]} of {weights.shape[1]})"
    lines = [["relevance", shape]]
    chosen = next((record for record in history if record["chosen"]), None)
    if chosen is None:
        return lines if weights is None else [*lines, ["relevance round", "none: too few rows"]]
    if weights is not None:
        standard = "" if chosen["round"] else " (standardised columns)"
        lines.append(["relevance round", f"{chosen['round']}{standard}"])
    return [*lines, [f"held-out {_measure(model)}", f"{chosen['validation_score']:.5f}"]]


def importance_lines(model: ScaledModel) -> list[list[str]]:
    """The most important columns and their shares, and what the others have together."""
    if not has_importances(model):
        return []
    shares = model.core.feature_importances_
    order = _leading(shares)
    lines = [
        [name, f"{100 * shares[j]:.2f} %"] for j, name in zip(order, _names(model, order), strict=True)
    ]
    others = len(shares) - len(order)
    if others:
        rest = max(1.0 - float(shares[order].sum()), 0.0)
        lines.append([f"{others} others", f"{100 * rest:.2f} %"])
    return lines


def relevance_section(model: ScaledModel) -> list[Section]:
    """The section of a report about it; none for a model without relevance."""
    if not has_importances(model):
        return []
    shares = model.core.feature_importances_
    order = _leading(shares)
    parts: list[Part] = [
        Paragraph(
            "The importance of a column is its part in the mean squared gradient of the decisions, in "
            "units of its standard deviation."
        ),
        bar_chart(
            100 * shares[order],
            _names(model, order),
            "importance, %",
            title="Importance of the columns",
            caption="" if len(order) == len(shares) else f"The first {len(order)} of {len(shares)}.",
        ),
    ]
    if not has_relevance(model):
        return [Section("Relevance", parts)]
    history = model.core.relevance_history_
    if history:
        parts += [_rounds(model, history), _quick_fits(model, history)]
    else:
        parts.append(Paragraph("There were too few rows to judge any round."))
    return [Section("Relevance", parts)]


def _measure(model: ScaledModel) -> str:
    return "R2" if model.regression else "accuracy"


def _leading(shares: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The most important columns, the first one first."""
    return np.argsort(-shares, kind="stable")[:MOST_COLUMNS]


def _names(model: ScaledModel, columns: npt.NDArray[Any]) -> list[str]:
    names = model.columns
    return [f"column {j}" if names is None else " ".join(names[j].split()) for j in columns.tolist()]


def _rounds(model: ScaledModel, history: list[dict[str, Any]]) -> Figure:
    """The score of every round, a line a shape; both begin with standardised columns."""
    most = max(record["rows"] for record in history)
    whole = [record for record in history if record["rows"] == most]  # fewer tell bandwidths alone
    first = _best([record for record in whole if record["shape"] and record["round"] == 0])
    plain = _best([record for record in whole if record["shape"] is None])
    lines = []
    for shape in ("columns", "directions"):
        later = [record for record in whole if record["shape"] == shape and record["round"] > 0]
        if later:
            x, y = ([r[key] for r in (*first, *later)] for key in ("round", "validation_score"))
            lines.append(Line(shape, x, y))
    if not lines:  # no round had a gradient to learn from
        lines = [Line("standardised columns", [0], [record["validation_score"] for record in first])]
    return line_chart(
        lines,
        "round",
        f"held-out {_measure(model)}",
        title="Rounds",
        caption="Of quick fits, on rows that none of them saw. Round 0: standardised columns.",
        whole_x=True,
        rules=[Rule("rows as they are", record["validation_score"]) for record in plain],
    )


def _best(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The record with the smallest loss, if there is any."""
    return sorted(records, key=lambda record: float(record["validation_loss"]))[:1]


def _quick_fits(model: ScaledModel, history: list[dict[str, Any]]) -> Table:
    """Every quick fit; the loss of classes is one less the accuracy, and needs no column."""
    header = ["rows", "round", _measure(model), "bandwidth", "learnt from", "seconds"]
    rows: list[list[Value]] = []
    for record in history:
        as_they_are = record["chosen"] and model.core.relevance_ is None
        if as_they_are or record["shape"] is None:
            mapped = "as they are"
        else:
            mapped = "standardised" if record["round"] == 0 else record["shape"]
        rows.append(
            [
                Cell(mapped, "chosen" if record["chosen"] else ""),
                record["round"],
                f"{record['validation_score']:.4f}",
                f"{record['bandwidth']:.3g}",
                record["rows"],
                f"{record['seconds']:.2f}",
            ]
        )
        if model.regression:
            rows[-1].insert(3, f"{record['validation_loss']:.4f}")
    if model.regression:
        header.insert(3, "loss")
    return Table(header, rows, "Quick fits, and what held-out rows say of them")
