"""The model of a command, and its predictions and scores on a data file, a block at a time."""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from typing import Any, TextIO

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, is_classifier
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MinMaxScaler

from asset_svm.cli.columns import TABLES, reading_again, used_columns
from asset_svm.cli.options import UsageError
from asset_svm.cli.output_scores import OutputScores, Scores, output_names
from asset_svm.cli.outputs import check_output
from asset_svm.cli.quantiles import QuantileScores, column_names
from asset_svm.cli.scores import ClassScores, OutlierScores, RealScores
from asset_svm.data.opening import find_format, open_rows
from asset_svm.data.several_targets import beside, columns_of
from asset_svm.data.source import RowSource
from asset_svm.estimators import (
    AssetClassifier,
    AssetOutlierDetector,
    AssetQuantileRegressor,
    AssetRegressor,
)
from asset_svm.estimators.calibration import CalibratedClassifier
from asset_svm.estimators.files import predict_rows
from asset_svm.estimators.inside import encoder_of, fitted_of, intervals_of, probabilities_of
from asset_svm.exceptions import DataError
from asset_svm.families.labels import whole_labels
from asset_svm.persistence import load, read_provenance
from asset_svm.persistence.transformers import SCALERS
from asset_svm.settings.checks import check_fraction
from asset_svm.storage.atomic import replacing
from asset_svm.tasks import Outputs

Estimator = AssetClassifier | AssetRegressor | AssetQuantileRegressor | AssetOutlierDetector
COVERAGE = 0.9
"""That of the intervals that are scored."""


@dataclass(frozen=True, eq=False)
class ScaledModel:
    """A model of ours, alone or behind a scaler: what the commands train and predict with."""

    estimator: Estimator | CalibratedClassifier
    scaler: BaseEstimator | None = None

    @classmethod
    def of(cls, model: BaseEstimator) -> ScaledModel:
        """From what a file holds; one of other steps is refused."""
        *before, estimator = steps_of(model)
        ours = isinstance(estimator, Estimator | CalibratedClassifier)
        if not ours or len(before) > 1 or any(type(step).__name__ not in SCALERS for step in before):
            raise UsageError(
                f"The model is made of {names_of(model)}; asset takes one of numeric columns, "
                "alone or behind a scaler: predict with this one in Python (asset_svm.load)."
            )
        return cls(estimator, *before)

    @property
    def whole(self) -> BaseEstimator:
        """The estimator, or the pipeline of both, as it is saved."""
        if self.scaler is None:
            return self.estimator
        return Pipeline([("scale", self.scaler), ("svm", self.estimator)])

    @property
    def core(self) -> Estimator:
        """The estimator without its probabilities."""
        model = self.estimator
        return model.estimator if isinstance(model, CalibratedClassifier) else model

    @property
    def regression(self) -> bool:
        """Whether it predicts numbers."""
        return isinstance(self.estimator, AssetRegressor | AssetQuantileRegressor)

    @property
    def quantiles(self) -> tuple[float, ...] | None:
        """The quantiles that it predicts, where it does."""
        if not isinstance(self.estimator, AssetQuantileRegressor):
            return None
        levels: tuple[float, ...] = fitted_of(self.estimator).task.quantiles
        return levels

    @property
    def one_class(self) -> bool:
        """Whether it tells rows that lie outside from the others."""
        return isinstance(self.estimator, AssetOutlierDetector)

    @property
    def columns(self) -> tuple[str, ...] | None:
        """The names of its columns, where they have any."""
        names = getattr(self.estimator, "feature_names_in_", None)
        return None if names is None else tuple(names.tolist())


def steps_of(model: BaseEstimator) -> list[BaseEstimator]:
    """The steps of a pipeline; a model alone is one."""
    return [step for _, step in model.steps] if isinstance(model, Pipeline) else [model]


def names_of(model: BaseEstimator) -> str:
    """The kinds of the steps of a model."""
    return ", ".join(type(step).__name__ for step in steps_of(model))


def same_target(told: dict[str, Any], data: str, format: str | None) -> str | None:
    """The target of a model's training, as its provenance tells it, where it can be one of ``data``.

    A column's name is known in another table, a number in another .npy file; targets that came from
    a file of their own, or with svmlight text, say nothing of another file.
    """
    target, trained, now = told.get("target"), told.get("format"), format or find_format(data)
    if target is None or target.endswith(".npy"):
        return None
    return target if trained == now or (trained in TABLES and now in TABLES) else None


def rows_for(model: ScaledModel, data: str, told: dict[str, Any], **options: Any) -> RowSource:
    """The rows of a file with the columns of a model, encoded or scaled as in its training.

    ``told`` is the provenance of the model.
    """
    width, scaler, encoder = model.estimator.n_features_in_, model.scaler, encoder_of(model.estimator)
    if encoder is not None and not hasattr(encoder, "feature_names_in_"):  # of arrays
        source = open_rows(data, n_features=width, **options).narrowed(width)
        return source.transformed(
            lambda X: encoder.rows(X.toarray() if sp.issparse(X) else X), encoder.encoding_.width
        )
    if encoder is not None:
        notes = encoder.encoding_.notes
        raw, features = reading_again(told, notes), used_columns(notes)
        source = open_rows(data, features=features, raw=raw, **options)
        return source.transformed(encoder.rows, encoder.encoding_.width)
    source = open_rows(data, features=model.columns, n_features=width, **options).narrowed(width)
    if scaler is None:
        return source
    # Columns that are centred are dense, as those of the training were.
    dense = isinstance(scaler, MinMaxScaler) or any(
        getattr(scaler, name, False) for name in ("with_mean", "with_centering")
    )
    return source.transformed(
        lambda X: scaler.transform(X.toarray() if dense and sp.issparse(X) else X)
    )


def _scores_of(
    model: ScaledModel, names: list[str] | None
) -> ClassScores | RealScores | QuantileScores | OutputScores:
    """Scores of no rows yet; ``names`` are those of several outputs."""
    task = fitted_of(model.estimator).task
    if isinstance(task, Outputs):
        return OutputScores(names or output_names(None, len(task.parts)), task)
    if model.quantiles is not None:
        return QuantileScores(model.quantiles)
    return RealScores() if model.regression else ClassScores(model.estimator.classes_)


def score_rows(model: ScaledModel, source: RowSource, names: list[str] | None = None) -> Scores:
    """Score a model on rows with targets; an outlier detector needs none.

    ``names`` are those of several outputs.
    """
    estimator, regression = model.estimator, model.regression
    if isinstance(estimator, AssetOutlierDetector):
        found = OutlierScores(float(estimator.offset_))
        for _, decisions, _ in predict_rows(estimator, source):
            found.add(decisions)
        return found
    scores = _scores_of(model, names)
    task = fitted_of(estimator).task
    outputs = (len(task.parts),) if isinstance(task, Outputs) else ()
    for block, decisions, predicted in predict_rows(estimator, source):
        if block.y is None:
            raise DataError(f"{source.name} has no targets to compare with; see --target.")
        y = whole_labels(block.y, numeric=regression)
        if y.shape[1:] != outputs:
            raise DataError(
                f"{source.name} has targets of the shape {y.shape}, and the model predicts "
                f"{(len(y), *outputs)}; see --target."
            )
        if isinstance(scores, OutputScores) and not regression:
            pairs = zip(columns_of(y), task.classes, strict=True)
            y = beside([_known(own, classes, source.name) for own, classes in pairs])
        elif isinstance(scores, ClassScores):
            y = _known(y, estimator.classes_, source.name)
        elif y.dtype.kind not in "biuf":
            raise DataError(f"{source.name}: the targets are names, and the model predicts numbers.")
        scores.add(y, predicted, decisions)
        if isinstance(scores, RealScores) and (intervals := intervals_of(estimator)) is not None:
            units = fitted_of(estimator).task.units
            scores.add_intervals(y, intervals.around(block.X, decisions[:, 0], units, COVERAGE))
        if isinstance(scores, ClassScores) and hasattr(estimator, "predict_proba"):
            scores.add_probabilities(y, probabilities_of(estimator, decisions))
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
    loaded = ScaledModel.of(load(model))
    if target is None:
        target = same_target(_told(model, loaded), data, format)
    told = _told(model, loaded)
    options |= dict(target=target, format=format, targets=not loaded.one_class)
    rows = rows_for(loaded, data, told, **options)
    return score_rows(loaded, rows, names_of_outputs(loaded, told))


def names_of_outputs(model: ScaledModel, told: dict[str, Any]) -> list[str] | None:
    """The names of the outputs of a model that has several, by its provenance; else None."""
    task = fitted_of(model.estimator).task
    return output_names(told.get("target"), len(task.parts)) if isinstance(task, Outputs) else None


def _told(path: str, model: ScaledModel) -> dict[str, Any]:
    """The provenance of a model; names of columns come from tables, where it does not say so."""
    return {"format": None if model.columns is None else "csv", **read_provenance(path)}


def write_predictions(
    model: str,
    data: str,
    output: str | None,
    *,
    scores: bool,
    probability: bool,
    interval: float | None = None,
    target: str | None,
    format: str | None,
    **options: Any,
) -> None:
    """Write a prediction a line; with ``scores`` or others a CSV with them beside it.

    A model of quantiles or of several outputs writes a CSV with a column each.
    """
    output = None if output == "-" else output
    check_output("-o", output, {"MODEL": model, "DATA": data})
    loaded = ScaledModel.of(load(model))
    estimator = loaded.estimator
    told = _told(model, loaded)
    outputs = names_of_outputs(loaded, told)
    if scores and loaded.quantiles is not None:
        raise UsageError("--scores are what classes are decided by; leave it out.")
    if outputs is not None and (scores or probability):
        name = "--scores" if scores else "--probability"
        raise UsageError(f"{name}: {model} has {len(outputs)} outputs; leave it out.")
    if probability and not hasattr(estimator, "predict_proba"):
        raise UsageError(f"{model} has no probabilities; {_towards_probabilities(estimator)}.")
    intervals = None if interval is None else _intervals_of(estimator, model, interval)
    if target is None and (format or find_format(data)) == "npy":  # a column to leave out
        target = same_target(told, data, format)
    source = rows_for(loaded, data, told, target=target, format=format, targets=False, **options)
    with _opened(output) as out:
        writer = csv.writer(out, lineterminator="\n")
        names = outputs if loaded.quantiles is None else column_names(loaded.quantiles)
        if names is not None:
            writer.writerow(names)
            for _, _, predicted in predict_rows(estimator, source):
                writer.writerows(predicted.reshape(len(predicted), -1).tolist())
            return
        if scores or probability or intervals is not None:
            classes = np.asarray(getattr(estimator, "classes_", ())).tolist()
            several = [f"score_{label}" for label in classes] if len(classes) > 2 else ["score"]
            names = [f"probability_{label}" for label in classes] if probability else []
            names += ["low", "high"] if intervals is not None else []
            writer.writerow(["prediction", *(several if scores else []), *names])
        for block, decisions, predicted in predict_rows(estimator, source):
            columns = [_shown_decisions(estimator, decisions)] if scores else []
            if probability:
                columns.append(probabilities_of(estimator, decisions))
            if intervals is not None:
                columns.append(intervals(block.X, decisions))
            if columns:
                cells = zip(predicted.tolist(), *(part.tolist() for part in columns), strict=True)
                writer.writerows([label, *chain.from_iterable(parts)] for label, *parts in cells)
            else:
                out.write("".join(f"{label}\n" for label in predicted.tolist()))


def _towards_probabilities(estimator: BaseEstimator) -> str:
    """What to do for probabilities of a model that has none."""
    if not is_classifier(estimator):
        return "they are those of classes, and it learns none: leave --probability out"
    if getattr(estimator, "loss", None) == "logistic":
        return (
            "it has pairs of classes: run asset train with --probability, or without --multi-class ovo"
        )
    return "run asset train with --probability, or --loss logistic"


def _intervals_of(
    estimator: BaseEstimator, path: str, coverage: float
) -> Callable[[Any, np.ndarray], np.ndarray]:
    """The function from rows of numbers and their decisions to intervals."""
    found = intervals_of(estimator)
    if found is None:
        raise UsageError(f"{path} has no intervals; train it with asset train --intervals.")
    check_fraction("--interval", coverage, usual=0.9)
    units = fitted_of(estimator).task.units
    return lambda rows, decisions: found.around(rows, decisions[:, 0], units, coverage)


def _shown_decisions(estimator: Any, decisions: np.ndarray) -> np.ndarray:
    """One decision a class, or one for two classes or numbers."""
    shown: np.ndarray = fitted_of(estimator).task.decisions(decisions)
    return shown.reshape(len(decisions), -1)


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
