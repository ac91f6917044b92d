"""The heads of a task of a model file: what is read off decisions."""

from __future__ import annotations

from itertools import pairwise

from asset_svm.runtime.links import (
    Classes,
    Head,
    Numbers,
    OneClassOnly,
    Outliers,
    Quantiles,
    Units,
)
from asset_svm.storage.fields import Fields


def heads_of(f: Fields) -> tuple[tuple[Head, ...], bool]:
    """The heads of a task, and whether it has several outputs."""
    if f.text("kind") == "outputs":
        heads = [_head(part) for part in f.objects("parts")]
        f.check(heads and sum(head.width for head in heads), "have no decision", "parts")
        return tuple(heads), True
    head = _head(f)
    f.check(head.width, "has fewer than two classes", "classes")
    return (head,), False


def _head(f: Fields) -> Head:
    kind = f.text("kind", ("classification", "regression", "quantiles", "one class"))
    if kind == "one class":
        return Outliers(f.number("offset"))
    if kind == "classification":
        classes = f.labels("classes")
        listed = classes.tolist()
        in_order = listed and all(one < other for one, other in pairwise(listed))
        f.check(in_order, "is not in order, or has a class twice", "classes")
        logistic = f.has("loss") and f.text("loss") == "logistic"
        if len(listed) == 1:
            return OneClassOnly(classes, logistic)
        multi_class = f.text("multi_class", ("ovr", "ovo")) if f.has("multi_class") else "ovr"
        return Classes(classes, multi_class == "ovo", logistic)
    units = _units(f.object("units")) if f.has("units") and f.get("units") is not None else None
    if kind == "regression":
        return Numbers(units)
    levels = tuple(f.each("quantiles", "number", 0.0))
    f.check(levels, "has none", "quantiles")
    return Quantiles(levels, f.flag("alone"), units)


def _units(f: Fields) -> Units:
    return f.text("kind", ("standard", "log")), f.number("mean"), f.number("scale", 0.0)
