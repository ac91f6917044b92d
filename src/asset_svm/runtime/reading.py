"""From a model file to its description; every field is checked as it is read (``storage.fields``).

docs/files.md has the records. What learning goes on from is passed over.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from asset_svm.arrays import Array
from asset_svm.runtime.decisions import fitted
from asset_svm.runtime.description import Description, Finite, Fold, Folds, Isotonic, Sigmoid
from asset_svm.runtime.heads import heads_of
from asset_svm.runtime.legacy import upgraded
from asset_svm.runtime.links import (
    Classes,
    Numbers,
    OneClassOnly,
    Outliers,
    Quantiles,
    Shares,
    Sigmoids,
    back,
)
from asset_svm.runtime.parts import (
    Intervals,
    Mean,
    Part,
)
from asset_svm.runtime.steps import Encode, Step
from asset_svm.runtime.transformers import TRANSFORMERS, transformer, width_of
from asset_svm.storage import container
from asset_svm.storage.fields import FLOATS, Fields, shown, told
from asset_svm.storage.tables import encoding

ESTIMATORS: dict[str, tuple[type[Any], ...]] = {
    "classifier": (Classes, OneClassOnly),
    "regressor": (Numbers,),
    "quantile regressor": (Quantiles,),
    "outlier detector": (Outliers,),
}
"""The heads of each kind of estimator."""
SPREAD_ERROR = "is no model of one quantile"
BEHIND_ERROR = "a TableEncoder behind another step is not served; put it first"


def read(path: str | Path) -> Description:
    """The description of the model in a file."""
    version, header, tensors = container.read_any(path, "model")
    with told(path):
        if version == 1:
            header = upgraded(header)
        return described(Fields(header, tensors, path).object("model"))


def described(f: Fields) -> Description:
    """The description of a model of its record, which predicts."""
    found = _any(f)
    if not isinstance(found, Description):
        f.refuse("is no model that predicts")
    return found


def _any(f: Fields) -> Description | tuple[Step, ...]:
    """A model, or the steps of transformers."""
    kind = f.text("kind")
    if kind in ESTIMATORS:
        return _estimator(f, kind)
    if kind == "calibrated":
        return _calibrated(f)
    if kind == "CalibratedClassifierCV":
        return _folds(f)
    if kind == "Pipeline":
        return _pipeline(f)
    if kind == "passthrough":
        return ()
    if kind == "TableEncoder":
        return (_encoder(f),)
    if kind in TRANSFORMERS:
        return (transformer(f, _steps),)
    f.refuse(f"is {shown(kind)}, which this asset-svm does not know", "kind")


def _steps(f: Fields) -> tuple[Step, ...]:
    """The steps of a part of a ColumnTransformer."""
    found = _any(f)
    if isinstance(found, Description):
        f.refuse("is a model, not a transformer")
    if any(isinstance(step, Encode) for step in found):
        raise ValueError("a TableEncoder of some columns is not served; put it before the model alone")
    return found


def _columns(f: Fields) -> tuple[int, tuple[str, ...] | None]:
    """How many columns there are, and their names."""
    count, names = f.integer("n_columns", 1), f.maybe(f.each, "column_names", "text")
    fits = names is None or len(names) == count
    f.check(fits, f"has {len(names or ())} names for {count} columns", "column_names")
    return count, None if names is None else tuple(names)


def _pipeline(f: Fields) -> Description | tuple[Step, ...]:
    steps: list[Step] = []
    columns: tuple[int, tuple[str, ...] | None] | None = None
    for each in f.objects("steps"):
        record = each.object("step")
        found = _any(record)
        if columns is None and "n_columns" in record.fields:
            columns = _columns(record)
        if isinstance(found, Description):
            known = width_of(steps)
            fits = known in (None, found.n_columns)
            record.check(fits, f"takes {found.n_columns} columns, and {known} come out before it")
            if not steps:
                return replace(found, intervals=None)
            if any(isinstance(step, Encode) for step in found.steps):
                raise ValueError(BEHIND_ERROR)
            count, names = columns if columns is not None else (found.n_columns, found.names)
            # Steps make small numbers of large ones, which float32 would not tell apart.
            return Description(
                found.kind, count, names, (*steps, *found.front), found.decide, found.heads,
                found.several, np.dtype(np.float64),
            )  # fmt: skip
        steps += found
        if any(isinstance(step, Encode) for step in steps[1:]):
            raise ValueError(BEHIND_ERROR)
    return tuple(steps)


# Estimators -----------------------------------------------------------------------------------------


def _estimator(f: Fields, kind: str) -> Description:
    n_columns, names = _columns(f)
    heads, several = heads_of(f.object("task"))
    learnt = all(isinstance(head, ESTIMATORS[kind]) for head in heads)
    f.check(learnt, f"is not that of a {kind}", "task")
    K = sum(head.width for head in heads)
    front: tuple[Step, ...] = ()
    n = n_columns
    if f.has("encoder") and f.get("encoder") is not None:
        encode = _encoder(f.object("encoder"))
        front, n = (encode,), encode.width
    decide: Part
    if f.has("members"):
        members = [fitted(each, K, n) for each in f.objects("members")]
        weights = f.array("weights", (len(members),))
        decide = Mean(tuple(one for one, _ in members), weights)
        dtype = np.result_type(*(of for _, of in members))
    else:
        decide, dtype = fitted(f, K, n)
    f.check(decide.width == K, f"has {decide.width} decisions instead of {K}", "model")
    intervals = None
    if kind == "regressor" and f.has("intervals"):
        f.check(K == 1, f"are of a model of {K} outputs", "intervals")
        intervals = _intervals(f.object("intervals"), n)
    return Description(kind, n_columns, names, front, Finite(decide), heads, several, dtype, intervals)


def _intervals(f: Fields, n: int) -> Intervals:
    """The intervals of a regression of n columns."""
    record = f.object("spread")
    spread = _estimator(record, record.text("kind", ("quantile regressor",)))
    head = spread.heads[0]
    if not isinstance(head, Quantiles) or head.width != 1 or spread.front:
        f.refuse(SPREAD_ERROR, "spread")
    f.check(spread.n_columns == n, f"takes {spread.n_columns} columns instead of {n}", "spread")
    units, scores = head.units, f.array("scores", (None,), low=0)
    f.check(bool((np.diff(scores) >= 0.0).all()), "are not in order", "scores")
    return Intervals(spread.decide, lambda ops, x: back(ops, units, x), f.number("unit", 0.0), scores)


def _encoder(f: Fields) -> Encode:
    found = f.record("encoding", encoding)
    names = f.maybe(f.each, "column_names", "text")
    fits = f.integer("n_columns", 1) == len(found.notes) and names in (None, list(found.names))
    f.check(fits, "are not those of encoding", "column_names")
    parameters = f.mapping("parameters")
    asked = parameters.get("categorical")
    asked = [asked] if isinstance(asked, str | int) else list(asked) if asked is not None else []
    categorical = frozenset(found.names[each] if isinstance(each, int) else each for each in asked)
    dtype = np.dtype(parameters.get("dtype", np.float32))
    f.check(dtype in (np.float32, np.float64), f"is {dtype}", "parameters.dtype")
    return Encode(found, dtype, names is not None, categorical)


# Probabilities --------------------------------------------------------------------------------------


def _calibrated(f: Fields) -> Description:
    record = f.object("estimator")
    inner = _estimator(record, record.text("kind", ("classifier",)))
    head = inner.heads[0]
    if not isinstance(head, Classes) or inner.several:
        f.refuse("is no classifier of one output", "estimator")
    count = len(head.classes)
    shape = (1 if count == 2 else count,)
    sigmoids = Sigmoids(head, f.array("slope", shape), f.array("offset", shape))
    return Description(
        inner.kind, inner.n_columns, inner.names, inner.front, inner.decide, (sigmoids,), False,
        inner.dtype,
    )  # fmt: skip


def _folds(f: Fields) -> Description:
    classes, method = f.labels("classes"), f.text("method", ("sigmoid", "isotonic"))
    members = tuple(_fold(each, classes, method) for each in f.objects("models"))
    widths = {fold.model.n_columns for fold in members}
    f.check(len(widths) == 1, "are none, or of different columns", "models")
    first = members[0].model
    return Description(
        "classifier", first.n_columns, first.names, (), Folds(members, len(classes)),
        (Shares(classes),), False, first.dtype,
    )  # fmt: skip


def _fold(f: Fields, classes: Array, method: str) -> Fold:
    model = described(f.object("estimator"))
    head = model.heads[0]
    if model.several or not isinstance(head, Classes | Sigmoids):
        f.refuse("is no classifier with decisions", "estimator")
    own, listed = head.classes.tolist(), classes.tolist()
    f.check(set(own) <= set(listed), "has classes that are not known", "estimator")
    calibrators = [_calibrator(each, method) for each in f.objects("calibrators")]
    count = 1 if len(own) == 2 else len(own)
    f.check(len(calibrators) == count, f"are {len(calibrators)} for {len(own)} classes", "calibrators")
    return Fold(model, calibrators, np.array([listed.index(each) for each in own]))


def _calibrator(f: Fields, method: str) -> Sigmoid | Isotonic:
    if method == "sigmoid":
        return Sigmoid(f.number("a"), f.number("b"))
    x = f.array("x", (None,), FLOATS)
    y = f.array("y", (len(x),), FLOATS)
    f.check(len(x) and (np.diff(x) > 0.0).all(), "is not in order", "x")
    ends = (f.number("low"), f.number("high"))
    return Isotonic(x.astype(np.float64), y.astype(np.float64), ends)
