"""Predictions and scores of a model file on a data file, a block at a time."""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TextIO

import numpy as np
from sklearn.pipeline import Pipeline

from asset_svm.cli.scores import ClassScores, RealScores, Scores
from asset_svm.data.opening import open_rows
from asset_svm.data.source import RowSource
from asset_svm.estimators.passing import predict_rows, whole_labels
from asset_svm.exceptions import DataError
from asset_svm.persistence import load, read_provenance
from asset_svm.storage.atomic import replacing


def split_model(model: Any) -> tuple[Any, Any]:
    """(scaler or None, estimator)."""
    if isinstance(model, Pipeline):
        return model.steps[0][1], model.steps[-1][1]
    return None, model


def rows_for(model: Any, data: str, **options: Any) -> RowSource:
    """The rows of a file with the columns of a model, scaled as in its training."""
    scaler, estimator = split_model(model)
    names = getattr(estimator, "feature_names_in_", None)
    source = open_rows(
        data,
        features=None if names is None else tuple(names.tolist()),
        n_features=estimator.n_features_in_,
        **options,
    )
    source = source.narrowed(estimator.n_features_in_)
    return source if scaler is None else source.transformed(scaler.transform)


def score_rows(model: Any, source: RowSource) -> Scores:
    """Score a model on rows with targets."""
    estimator = split_model(model)[1]
    scores: Scores = RealScores() if estimator._y_numeric else ClassScores(estimator.classes_)
    for block, decisions, predicted in predict_rows(estimator, source):
        if block.y is None:
            raise DataError(f"{source.name} has no targets to compare with; see --target.")
        y = whole_labels(estimator, block.y)
        if isinstance(scores, ClassScores):
            y = _known(y, estimator.classes_, source.name)
        elif y.dtype.kind not in "biuf":
            raise DataError(f"{source.name}: the targets are names, and the model predicts numbers.")
        scores.add(y, predicted, decisions)
    return scores


def _known(y: np.ndarray, classes: np.ndarray, name: str) -> np.ndarray:
    if classes.dtype.kind in "UO" and y.dtype.kind not in "UO":
        y = y.astype(str)
    unknown = ~np.isin(y, classes)
    if unknown.any():
        raise DataError(
            f"{name} has the class {y[unknown][0].item()!r}, which the model does not know; its "
            f"classes are {', '.join(map(str, classes[:10].tolist()))}."
        )
    return y


def evaluate_file(model: str, data: str, *, target: str | None = None, **options: Any) -> Scores:
    """Score a model file on a data file."""
    loaded = load(model)
    if target is None:
        target = _trained_target(model, loaded)
    return score_rows(loaded, rows_for(loaded, data, target=target, **options))


def _trained_target(path: str, model: Any) -> str | None:
    """The column that was the target in training, of tables."""
    named = hasattr(split_model(model)[1], "feature_names_in_")
    return read_provenance(path).get("target") if named else None


def write_predictions(
    model: str, data: str, output: str | None, *, scores: bool, target: str | None, **options: Any
) -> None:
    """Write a prediction a line; with ``scores`` a CSV of predictions and decisions."""
    loaded = load(model)
    estimator = split_model(loaded)[1]
    source = rows_for(loaded, data, target=target, **options)
    with _opened(output) as out:
        writer = csv.writer(out, lineterminator="\n")
        if scores:
            writer.writerow(["prediction", *_score_names(estimator)])
        for _, decisions, predicted in predict_rows(estimator, source):
            if scores:
                cells = zip(predicted.tolist(), decisions.tolist(), strict=True)
                writer.writerows([label, *row] for label, row in cells)
            else:
                out.write("".join(f"{label}\n" for label in predicted.tolist()))


def _score_names(estimator: Any) -> list[str]:
    classes = getattr(estimator, "classes_", None)
    if classes is None or len(classes) == 2:
        return ["score"]
    return [f"score_{label}" for label in classes.tolist()]


@contextmanager
def _opened(output: str | None) -> Iterator[TextIO]:
    if output is None or output == "-":
        yield sys.stdout
        sys.stdout.flush()
        return
    with replacing(output) as file:
        text = io.TextIOWrapper(file, encoding="utf-8", newline="")
        yield text
        text.flush()
        text.detach()
