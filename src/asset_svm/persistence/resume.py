"""The resume section: what ``partial_fit``, ``warm_start``, ``certify`` and ``compact`` need.

It has a version of its own; a newer one is left out, and the model predicts. That of cells has for
every cell of every partition null, a few rows of a constant cell, or the section of its model on one
map with its history.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from asset_svm.families.beginning import Beginning, Streamed
from asset_svm.families.cells import CellDecision, CellModels, Constant, FittedCells, Nested
from asset_svm.families.one_map import FittedMap
from asset_svm.families.rows import Rows
from asset_svm.features.relevance import Learnt
from asset_svm.storage.fields import INTEGERS, Fields
from asset_svm.storage.maps import feature_map, learnt
from asset_svm.storage.session import session

VERSION = 1
NEWER = "what its file holds for learning is of a newer asset-svm; install it"
FOUND_ANEW = ("n_components_", "approximation_error_")
"""Facts of a model for prediction that the map tells where it is there."""


def resume(f: Fields, fitted: FittedMap | FittedCells, map_key: Any, n: int) -> FittedMap | FittedCells:
    """The model, going on from this section; as it is where the section is of a newer version.

    ``map_key`` is that of the estimator's parameters.
    """
    if f.integer("version", 1, of=lambda _: VERSION) > VERSION:
        return replace(fitted, fixed=NEWER)
    if isinstance(fitted, FittedMap):
        resumed = _one_map(f, fitted, n)
        current = f.flag("map_is_current", of=lambda source: source.map_key == map_key)
        return replace(resumed, map_key=map_key if current else None)
    seed, beginning = f.integer("seed"), _beginning_of(f, n)
    listed = f.items("partitions", of=lambda source: source.decision.parts, inline=True)
    known = listed.beside(fitted.decision.parts)
    parts = [listed.record(number, _partition, part, n) for number, part in known]
    decision = CellDecision(parts, fitted.decision.n_models, fitted.decision.dtype)
    return replace(fitted, decision=decision, seed=seed, beginning=beginning, fixed=None)


def relevant(f: Fields, n: int) -> tuple[Learnt, Beginning | None]:
    """The learnt relevance of a model, and the first rows of a stream that has just begun."""
    return f.record("learnt", learnt, n), _beginning_of(f, n)


def _one_map(f: Fields, fitted: FittedMap, n: int) -> FittedMap:
    phi, K = f.record("map", feature_map, n, of="phi"), fitted.task.n_models
    return replace(
        fitted,
        phi=phi,
        coef=f.array("coef", (K, phi.dimension)),
        session=f.record("session", session, phi, K),
        beginning=_beginning_of(f, n),
        map_key=None,
        extra={name: value for name, value in fitted.extra.items() if name not in FOUND_ANEW},
        fixed=None,
    )


def _beginning_of(f: Fields, n: int) -> Beginning | None:
    """The first rows of a stream that has just begun."""

    def fields(fitted: Streamed) -> dict[str, Any] | None:
        begun = fitted.beginning
        return None if begun is None else {**vars(begun.rows), **vars(begun)}

    return f.maybe(f.record, "beginning", _beginning, n, of=fields)


def _beginning(f: Fields, n: int) -> Beginning:
    X = f.rows("X", n)
    y, m = f.labels("y", X.shape[0]), X.shape[0]
    own, weight = (f.array(each, (m,), low=0) for each in ("sample_weight", "weight"))
    rows = Rows(X, y, own, weight, f.array("index", (m,), INTEGERS, low=0))
    return Beginning(rows, f.integer("begun"), f.integer("passed"))


def _partition(f: Fields, part: CellModels, n: int) -> CellModels:
    listed = f.items("cells", of=_fields_of_cells, inline=True)
    decisions = []
    for number, decision in listed.beside(part.decisions):
        resumed = listed.maybe(listed.record, number, _cell, decision, n)
        fits = (resumed is not None) == _goes_on(decision)
        listed.check(fits, "is not what its cell goes on from", number)
        decisions.append(decision if resumed is None else resumed)
    return replace(part, decisions=decisions)


def _fields_of_cells(part: CellModels) -> list[Any]:
    models = [each.model if isinstance(each, Nested) else each for each in part.decisions]
    return [
        model if _goes_on(each) else None for model, each in zip(models, part.decisions, strict=True)
    ]


def _goes_on(decision: Any) -> bool:
    """Whether a cell goes on from more than its decision function."""
    return isinstance(decision, Nested) or (isinstance(decision, Constant) and decision.X is not None)


def _cell(f: Fields, decision: Any, n: int) -> Nested | Constant:
    if isinstance(decision, Nested):
        model = _one_map(f, decision.model, n)
        return replace(decision, model=replace(model, history=f.each("history", "mapping")))
    f.check(_goes_on(decision), "is not what its cell goes on from")
    X = f.rows("X", n)
    return Constant(decision.values, X, f.labels("y", X.shape[0]))
