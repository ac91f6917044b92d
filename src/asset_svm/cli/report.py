"""The page about a training run: settings, data, relevance, convergence, errors, the machine."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from asset_svm.cli.columns import columns_section
from asset_svm.cli.output_scores import OutputScores, Scores
from asset_svm.cli.progress import running_error
from asset_svm.cli.quantiles import QuantileScores
from asset_svm.cli.relevance import relevance_section
from asset_svm.cli.scores import ClassScores, OutlierScores, RealScores, centre_of
from asset_svm.cli.scoring import ScaledModel
from asset_svm.cli.tables import (
    MOST_CLASSES,
    class_lines,
    model_lines,
    score_lines,
)
from asset_svm.data.scan import Summary, TargetSummary
from asset_svm.data.several_targets import SeveralTargets
from asset_svm.pages import (
    Facts,
    Figure,
    Line,
    Page,
    Paragraph,
    Part,
    Section,
    Table,
    Value,
    heat_map,
    histogram,
    line_chart,
)
from asset_svm.persistence import machine
from asset_svm.persistence.composed import changed_parameters

Array = npt.NDArray[Any]
MOST_OUTPUTS = 8
"""So many outputs have figures of their own."""
MOST_POINTS = 200
MOST_VALUES = 20_000
"""The most values of a histogram; beyond, a sample of the rows is shown."""


def report_page(
    title: str,
    subtitle: str,
    model: ScaledModel,
    summary: Summary | None,
    scores: Scores | None,
    scored_on: str,
    *,
    before: Sequence[Section] = (),
    after: Sequence[Section] = (),
) -> Page:
    """A page about a model and its rows.

    Parameters
    ----------
    title, subtitle : str
    model : ScaledModel
    summary : Summary or None
        What is known of the rows; None after a single pass.
    scores : Scores or None
        Those of the rows of ``scored_on``.
    before, after : sequences of Section
        What comes before the model, and after the rows.
    """
    told = machine()
    page = Page(title, subtitle, f"asset-svm {told['asset_svm']}, {told['saved']}")
    facts = [] if summary is None else _data(summary, model.columns, targets=not model.one_class)
    data = [Section("Data", facts)] if facts else []
    columns = columns_section(model.estimator)
    for section in (
        *before,
        model_section(model),
        *data,
        *columns,
        *relevance_section(model),
        *after,
    ):
        page.add(section)
    if scores is not None and scores.n_rows:
        page.add(errors_section(scores, scored_on))
    page.add(machine_section())
    return page


def training_page(
    model: ScaledModel,
    summary: Summary | None,
    records: Sequence[dict[str, Any]],
    seconds: float,
    scores: Scores | None,
    path: Path,
    scored_on: str,
) -> Page:
    """The page about a training run, which has told these records on its way."""
    curves = _curves(records, regression=model.regression, one_class=model.one_class)
    return report_page(
        f"Training report: {path.name}",
        f"{type(model.core).__name__}, trained in {seconds:.1f} s",
        model,
        summary,
        scores,
        scored_on,
        after=[Section("Convergence", curves)] if curves else [],
    )


def model_section(model: ScaledModel) -> Section:
    """The section about the model, and its parameters that are not at their defaults."""
    parts: list[Part] = [Facts(dict(model_lines(model)))]
    changed = changed_parameters(model.core)
    if changed:
        rows: list[list[Value]] = [[name, str(value)] for name, value in changed.items()]
        parts.append(Table(["parameter", "value"], rows, "Parameters that are not at their defaults"))
    return Section("Model and settings", parts)


def errors_section(scores: Scores, scored_on: str) -> Section:
    """The section about the errors on some rows, or the scores of those that have no targets."""
    facts = Facts(dict(score_lines(scores)))
    begun: list[Part] = [Paragraph(f"On the rows of {scored_on}."), facts]
    if isinstance(scores, OutlierScores):
        return Section("Scores", [*begun, _of_scores(scores)])
    if isinstance(scores, OutputScores):
        named = list(zip(scores.names, scores.parts, strict=True))
        for name, part in named[:MOST_OUTPUTS]:
            begun += [Paragraph(f"Output {name}."), *_figures(part)]
        if len(named) > MOST_OUTPUTS:
            begun.append(Paragraph(f"And {len(named) - MOST_OUTPUTS} more outputs."))
        return Section("Errors", begun)
    return Section("Errors", [*begun, *_figures(scores)])


def _figures(scores: ClassScores | RealScores | QuantileScores) -> list[Part]:
    if isinstance(scores, QuantileScores):
        return scores.parts
    return _of_classes(scores) if isinstance(scores, ClassScores) else _of_numbers(scores)


def machine_section() -> Section:
    """The section about the machine."""
    computer = {**machine(), "processor": platform.processor() or platform.machine()}
    return Section("Machine", [Facts({**computer, "cores": os.cpu_count()})])


def _data(summary: Summary, names: tuple[str, ...] | None, *, targets: bool) -> list[Part]:
    told = summary.targets
    facts: dict[str, Value] = {
        "rows": summary.n_rows,
        "features": summary.n_features,
        "bytes in memory": summary.n_bytes,
    }
    if targets:
        facts["targets"] = (
            f"{len(told.parts)} columns" if isinstance(told, SeveralTargets) else _range(told)
        )
    if names is not None:
        shown = ", ".join(str(name) for name in names[:MOST_CLASSES])
        facts["columns"] = shown + (", ..." if len(names) > MOST_CLASSES else "")
    parts: list[Part] = [Facts(facts)]
    if isinstance(told, SeveralTargets):
        each: list[list[Value]] = [
            [number + 1, _range(part), "" if part.counts is None else len(part.counts)]
            for number, part in enumerate(told.parts)
        ]
        return [*parts, Table(["target", "values", "different"], each)]
    classes = told.classes if targets else None
    if classes is not None and len(classes) <= MOST_CLASSES:
        counts = told.class_counts
        rows: list[list[Value]] = [
            [str(label), int(count), f"{100 * count / summary.n_rows:.2f} %"]
            for label, count in zip(classes.tolist(), counts, strict=True)
        ]
        parts.append(Table(["target", "rows", "part"], rows))
    return parts


def _range(targets: TargetSummary) -> str:
    return "names" if targets.kind == "names" else f"{targets.low:.6g} to {targets.high:.6g}"


def _curves(
    records: Sequence[dict[str, Any]], *, regression: bool, one_class: bool = False
) -> list[Figure]:
    """Objective over epochs, error over time; what the loop saw of rows before it learnt from them."""
    if not records:
        return []
    chosen = [records[i] for i in np.unique(np.linspace(0, len(records) - 1, MOST_POINTS, dtype=int))]
    over = "epoch" if "epoch" in records[0] else "batch"
    figures = []
    lines = [
        Line(label, [r[over] for r in chosen if key in r], [r[key] for r in chosen if key in r])
        for key, label in (("progressive_objective", "objective"), ("progressive_loss", "loss"))
        if any(key in r for r in chosen)
    ]
    caption = "On rows just before they were learnt from."
    if lines:
        figures.append(line_chart(lines, over, "value", title="Convergence", caption=caption))
    errors = [running_error(r, regression=regression, one_class=one_class) for r in chosen]
    factor, unit = (1.0, "") if regression else (100.0, ", %")
    line = Line("", [r["seconds"] for r in chosen], [factor * error for error, _ in errors])
    what = f"{errors[-1][1]}{unit}"
    title = "Rows outside over time" if one_class else "Error over time"
    figures.append(line_chart([line], "seconds", what, title=title, caption=caption))
    return figures


def _of_classes(scores: ClassScores) -> list[Part]:
    labels = [str(label) for label in scores.classes.tolist()]
    cells: list[list[Value]] = [[*line] for line in class_lines(scores)]
    parts: list[Part] = [Table(["class", "rows", "precision", "recall"], cells)]
    parts.append(
        heat_map(scores.confusion, labels, labels, "predicted", "true", title="Confusion", by_row=True)
    )
    if scores.bins is None or scores.auc is None:
        return parts
    groups = {labels[k]: _values(scores.bins[k]) for k in (0, 1)}
    parts.append(
        histogram(groups, "decision", title="Decisions", caption=_sampled(scores), marks=[0.0])
    )
    negative, positive = scores.roc()
    some = np.unique(np.linspace(0, len(negative) - 1, MOST_POINTS, dtype=int))
    curve = [Line("model", negative[some], positive[some]), Line("chance", [0, 1], [0, 1], dashed=True)]
    title = f"ROC, area {scores.auc:.4f}"
    parts.append(line_chart(curve, "false positive rate", "true positive rate", title=title))
    mean, part = scores.calibration()
    line = Line("", mean, part)
    title = f"Part of class {labels[1]} by decision"
    parts.append(
        line_chart([line], "decision", "part", title=title, caption="Ten groups of equal size.")
    )
    return parts


def _of_scores(scores: OutlierScores) -> Figure:
    """Histogram of scores, the threshold marked."""
    caption = f"Rows left of {scores.threshold:.4g} lie outside."
    if scores.n_rows > MOST_VALUES:
        caption += f" {MOST_VALUES} drawn from all rows."
    values, marks = {"scores": _values(scores.bins)}, [scores.threshold]
    return histogram(values, "score", title="Scores", caption=caption, marks=marks)


def _of_numbers(scores: RealScores) -> list[Part]:
    y, predicted = scores.sample.T
    residuals = predicted - y
    order = np.argsort(predicted)
    groups = np.array_split(order, min(20, len(order)))
    mean = [float(predicted[g].mean()) for g in groups]
    low, middle, high = ([float(np.quantile(residuals[g], q)) for g in groups] for q in (0.1, 0.5, 0.9))
    caption = "Median and the middle 80 %, in groups of equally many rows."
    band = Line("residual", mean, middle, low, high)
    title = "Residuals by prediction"
    return [
        histogram({"residuals": residuals}, "prediction less target", title="Residuals", marks=[0.0]),
        line_chart([band], "prediction", "prediction less target", title=title, caption=caption),
    ]


def _values(counts: Array) -> Array:
    """Decisions that have these counts in the bins of ``scores``; a sample where they are many."""
    used = np.flatnonzero(counts)
    chosen = counts[used]
    if chosen.sum() > MOST_VALUES:
        rng = np.random.default_rng(0)
        chosen = rng.multinomial(MOST_VALUES, chosen / chosen.sum())
    return np.repeat(centre_of(used), chosen)


def _sampled(scores: ClassScores) -> str:
    assert scores.bins is not None
    if scores.bins.sum(axis=1).max() <= MOST_VALUES:
        return ""
    return f"Of classes with more rows, {MOST_VALUES} drawn from them."
