"""Predictions and scores of a model file on a data file, a block at a time."""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain
from typing import Any, TextIO

import numpy as np
import scipy.sparse as sp
from sklearn.base import is_regressor
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MinMaxScaler

from asset_svm.cli.options import UsageError
from asset_svm.cli.outputs import check_output
from asset_svm.cli.scores import ClassScores, RealScores, Scores
from asset_svm.data.opening import find_format, open_rows
from asset_svm.data.source import RowSource
from asset_svm.estimators import AssetClassifier, AssetRegressor
from asset_svm.estimators.calibration import CalibratedClassifier
from asset_svm.estimators.files import predict_rows
from asset_svm.exceptions import DataError
from asset_svm.families.labels import whole_labels
from asset_svm.persistence import load, read_provenance
from asset_svm.persistence.transformers import SCALERS
from asset_svm.storage.atomic import replacing

TABLES = ("csv", "tsv", "parquet")


def split_model(model: Any) -> tuple[Any, Any]:
    """(scaler or None, estimator, which may be a CalibratedClassifier)."""
    *before, estimator = steps_of(model)
    if not is_plain(model):
        raise UsageError(
            f"The model is made of {', '.join(names_of(model))}; asset takes one of numeric columns, "
            "alone or behind a scaler: predict with this one in Python (asset_svm.load)."
        )
    return (before[0] if before else None), estimator


def steps_of(model: Any) -> list[Any]:
    """Those of a pipeline; a model alone is one."""
    return [step for _, step in model.steps] if isinstance(model, Pipeline) else [model]


def names_of(model: Any) -> list[str]:
    """The kinds of its steps."""
    return [type(step).__name__ for step in steps_of(model)]


def is_plain(model: Any) -> bool:
    """Whether it is a model of ours, alone or behind a scaler."""
    *before, estimator = steps_of(model)
    ours = isinstance(estimator, AssetClassifier | AssetRegressor | CalibratedClassifier)
    return ours and len(before) <= 1 and all(type(step).__name__ in SCALERS for step in before)


def core_of(estimator: Any) -> Any:
    """The AssetClassifier or AssetRegressor itself."""
    return estimator.estimator if isinstance(estimator, CalibratedClassifier) else estimator


def same_target(told: dict[str, Any], data: str, format: str | None) -> str | None:
    """The target of a model's training, as its provenance tells it, where it can be one of ``data``.

    A column's name is known in another table, a number in another .npy file; targets that came from
    a file of their own, or with svmlight text, say nothing of another file.
    """
    target, trained, now = told.get("target"), told.get("format"), format or find_format(data)
    if target is None or target.endswith(".npy"):
        return None
    return target if trained == now or (trained in TABLES and now in TABLES) else None


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
    if scaler is None:
        return source
    # Columns that are centred are dense, as those of the training were.
    dense = isinstance(scaler, MinMaxScaler) or any(
        getattr(scaler, name, False) for name in ("with_mean", "with_centering")
    )
    return source.transformed(
        lambda X: scaler.transform(X.toarray() if dense and sp.issparse(X) else X)
    )


def score_rows(model: Any, source: RowSource) -> Scores:
    """Score a model on rows with targets."""
    estimator = split_model(model)[1]
    scores: Scores = RealScores() if is_regressor(estimator) else ClassScores(estimator.classes_)
    for block, decisions, predicted in predict_rows(estimator, source):
        if block.y is None:
            raise DataError(f"{source.name} has no targets to compare with; see --target.")
        y = whole_labels(block.y, numeric=is_regressor(estimator))
        if isinstance(scores, ClassScores):
            y = _known(y, estimator.classes_, source.name)
        elif y.dtype.kind not in "biuf":
            raise DataError(f"{source.name}: the targets are names, and the model predicts numbers.")
        scores.add(y, predicted, decisions)
        if isinstance(scores, ClassScores) and isinstance(estimator, CalibratedClassifier):
            scores.add_probabilities(y, estimator.probabilities(decisions))
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


def evaluate_file(
    model: str, data: str, *, target: str | None = None, format: str | None = None, **options: Any
) -> Scores:
    """Score a model file on a data file."""
    loaded = load(model)
    if target is None:
        target = same_target(_told(model, loaded), data, format)
    return score_rows(loaded, rows_for(loaded, data, target=target, format=format, **options))


def _told(path: str, model: Any) -> dict[str, Any]:
    """The provenance of a model; names of columns come from tables, where it does not say so."""
    named = hasattr(split_model(model)[1], "feature_names_in_")
    return {"format": "csv" if named else None, **read_provenance(path)}


def write_predictions(
    model: str,
    data: str,
    output: str | None,
    *,
    scores: bool,
    probability: bool,
    target: str | None,
    format: str | None,
    **options: Any,
) -> None:
    """Write a prediction a line; with ``scores`` or ``probability`` a CSV with them beside it."""
    output = None if output == "-" else output
    check_output("-o", output, {"MODEL": model, "DATA": data})
    loaded = load(model)
    estimator = split_model(loaded)[1]
    if probability and not isinstance(estimator, CalibratedClassifier):
        raise UsageError(f"{model} has no probabilities; train it with asset train --probability.")
    if target is None and (format or find_format(data)) == "npy":  # a column to leave out
        target = same_target(_told(model, loaded), data, format)
    source = rows_for(loaded, data, target=target, format=format, targets=False, **options)
    with _opened(output) as out:
        writer = csv.writer(out, lineterminator="\n")
        if scores or probability:
            names = _score_names(estimator) if scores else []
            names += [f"probability_{label}" for label in estimator.classes_] if probability else []
            writer.writerow(["prediction", *names])
        for _, decisions, predicted in predict_rows(estimator, source):
            columns = [decisions] if scores else []
            columns += [estimator.probabilities(decisions)] if probability else []
            if columns:
                cells = zip(predicted.tolist(), *(part.tolist() for part in columns), strict=True)
                writer.writerows([label, *chain.from_iterable(parts)] for label, *parts in cells)
            else:
                out.write("".join(f"{label}\n" for label in predicted.tolist()))


def _score_names(estimator: Any) -> list[str]:
    classes = getattr(estimator, "classes_", None)
    if classes is None or len(classes) == 2:
        return ["score"]
    return [f"score_{label}" for label in classes.tolist()]


@contextmanager
def _opened(output: str | None) -> Iterator[TextIO]:
    if output is None:
        if sys.stdout is None:
            raise UsageError("Standard output is closed; name a file with -o.")
        yield sys.stdout
        sys.stdout.flush()
        return
    with replacing(output) as file:
        text = io.TextIOWrapper(file, encoding="utf-8", newline="")
        yield text
        text.flush()
        text.detach()
