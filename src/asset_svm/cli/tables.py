"""Tables of scores and models, on standard output: drawn on a terminal, lines of text elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from asset_svm.cli.columns import note_lines
from asset_svm.cli.options import UsageError
from asset_svm.cli.output_scores import OutputScores, Scores
from asset_svm.cli.quantiles import QuantileScores
from asset_svm.cli.relevance import importance_lines, relevance_lines
from asset_svm.cli.scores import ClassScores, OutlierScores
from asset_svm.cli.scoring import ScaledModel, names_of
from asset_svm.estimators.inside import encoder_of, fitted_of, intervals_of
from asset_svm.persistence import load, read_provenance
from asset_svm.persistence.composed import changed_parameters
from asset_svm.tasks import Outputs

MOST_CLASSES = 20
"""The most classes of a confusion matrix that is shown."""


def show(title: str, rows: list[list[str]], header: Sequence[str] = ("", "")) -> None:
    """Show a table: the first column has names, the others values. Nothing in it is markup."""
    console = Console()
    if not console.is_terminal:
        print("\t".join([title, *header[1:]] if any(header[1:]) else [title]))
        for row in rows:
            print("\t".join(row))
        return
    table = Table(title=Text(title))
    for i, name in enumerate(header):
        table.add_column(Text(name), justify="left" if i == 0 else "right")
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    console.print(table)


def score_lines(scores: Scores) -> list[list[str]]:
    """The scores, as lines of a name and a value."""
    if isinstance(scores, OutputScores):
        return scores.lines
    if isinstance(scores, ClassScores):
        lines = [["rows", str(scores.n_rows)], ["error", f"{100 * scores.error:.3f} %"]]
        if scores.auc is not None:
            lines.append(["AUC", f"{scores.auc:.5f}"])
        if scores.log_loss is not None:
            lines.append(["log loss", f"{scores.log_loss:.5f}"])
        return lines
    if isinstance(scores, OutlierScores):
        return [
            ["rows", str(scores.n_rows)],
            ["outside", f"{scores.n_outside} ({100 * scores.outside:.3f} %)"],
        ]
    if isinstance(scores, QuantileScores):
        return scores.lines
    lines = [
        ["rows", str(scores.n_rows)],
        ["RMSE", f"{scores.rmse:.6g}"],
        ["MAE", f"{scores.mae:.6g}"],
        ["R2", f"{scores.r2:.5f}"],
    ]
    if scores.inside is not None:
        rows = max(scores.n_rows, 1)
        lines.append(["rows in 90 % intervals", f"{100 * scores.inside / rows:.2f} %"])
        lines.append(["mean width of these", f"{scores.width / rows:.6g}"])
    return lines


def show_scores(title: str, scores: Scores) -> None:
    """Show all that is known of a model on some rows."""
    show(title, score_lines(scores))
    if isinstance(scores, OutputScores):
        for name, part in zip(scores.names, scores.parts, strict=True):
            if isinstance(part, ClassScores):
                show(f"classes of {name}", class_lines(part), ["class", "rows", "precision", "recall"])
    if not isinstance(scores, ClassScores):
        return
    show("classes", class_lines(scores), ["class", "rows", "precision", "recall"])
    labels = [str(label) for label in scores.classes.tolist()]
    if len(labels) <= MOST_CLASSES:
        counted = zip(labels, scores.confusion.tolist(), strict=True)
        rows = [[label, *map(str, counts)] for label, counts in counted]
        show("confusion", rows, ["true \\ predicted", *labels])


def class_lines(scores: ClassScores) -> list[list[str]]:
    """The label, rows, precision and recall of every class."""
    counts = scores.confusion.sum(axis=1)
    numbers = zip(scores.classes.tolist(), counts, scores.precision, scores.recall, strict=True)
    return [[str(label), str(n), f"{p:.4f}", f"{r:.4f}"] for label, n, p, r in numbers]


def show_model(path: str) -> None:
    """Show what a model file holds."""
    loaded, size = load(path), Path(path).stat().st_size
    changed: dict[str, Any] = {}
    shares: list[list[str]] = []
    columns: list[list[str]] = []
    try:
        model = ScaledModel.of(loaded)
    except UsageError:  # of other steps
        lines = [["model", names_of(loaded)]]
    else:
        resumable = "yes" if fitted_of(model.core).fixed is None else "no"
        lines, changed = [*model_lines(model), ["resumable", resumable]], changed_parameters(model.core)
        shares, columns = importance_lines(model), note_lines(model.estimator)
    show(path, [*lines, ["bytes", str(size)]])
    if columns:
        show("columns", columns, ["column", "kind", "becomes"])
    if shares:
        show("importance", shares, ["column", "share"])
    if changed:
        show("parameters", [[name, str(value)] for name, value in changed.items()])
    told = read_provenance(path)
    show("provenance", [[name, str(value)] for name, value in told.items()])


def model_lines(model: ScaledModel) -> list[list[str]]:
    """What is told of a model, as lines of a name and a value."""
    estimator = model.core
    lines = [["model", type(estimator).__name__], ["features", str(estimator.n_features_in_)]]
    task = fitted_of(estimator).task
    classes = task.classes
    if isinstance(task, Outputs):
        lines.append(["outputs", str(len(task.parts))])
        if classes is not None:
            counts = ", ".join(str(len(each)) for each in classes[:MOST_CLASSES])
            more = "" if len(classes) <= MOST_CLASSES else ", ..."
            lines.append(["classes", f"{counts}{more} of each output"])
    elif classes is not None:
        shown = ", ".join(map(str, classes[:MOST_CLASSES].tolist()))
        more = "" if len(classes) <= MOST_CLASSES else ", ..."
        lines.append(["classes", f"{len(classes)}: {shown}{more}"])
    if model.one_class:
        lines.append(["share outside", f"{estimator.nu:g}"])
        lines.append(["threshold of scores", f"{estimator.offset_:.6g}"])
    if model.quantiles is not None:
        lines.append(["quantiles", ", ".join(f"{q:g}" for q in model.quantiles)])
    if model.estimator is not estimator:
        lines.append(["probabilities", "sigmoids of decisions of rows held out"])
    encoder = encoder_of(estimator)
    if encoder is not None:
        lines.append(["numbers a row", str(encoder.encoding_.width)])
    units = getattr(task, "units", None)
    if units is not None:
        lines.append(["target units", f"{units.scale:.6g}, from {units.mean:.6g} on ({units.kind})"])
    intervals = intervals_of(estimator)
    if intervals is not None:
        lines.append(["intervals", f"from {len(intervals.scores)} rows kept out"])
    if model.scaler is not None:
        lines.append(["scaling", type(model.scaler).__name__])
    landmarks = getattr(estimator, "components_", None)
    if landmarks is not None:
        lines.append(["landmarks", str(landmarks.shape[0])])
    for name, attribute in (
        ("cells", "n_cells_"),
        ("rank", "n_components_"),
        ("epochs", "n_iter_"),
        ("steps", "t_"),
    ):
        if hasattr(estimator, attribute):
            lines.append([name, str(getattr(estimator, attribute))])
    members = getattr(estimator, "blend_", None)
    if members is not None:  # which solves no problem of its own
        weights = ", ".join(f"{member['weight']:.3g}" for member in members)
        return [*lines, ["mean of", f"{len(members)} models, of weights {weights}"]]
    return [
        *lines,
        *relevance_lines(model),
        ["lam", f"{estimator.lam_:.6g}"],
        ["objective", f"{estimator.objective_:.6g}"],
        ["duality gap", f"{estimator.dual_gap_:.3g}"],
    ]
