"""The resume section: what ``partial_fit``, ``warm_start``, ``certify`` and ``compact`` need besides.

version      of this section; one that is newer is left out, and the model predicts
one map      map, coef (K, d), map_is_current, session, beginning
cells        seed, beginning, and for every cell of every partition: null, a few rows of a constant
             cell (X, y), or the section of its model on one map with its history
session      the solver, its average, its metric and the last rows (``session``)
beginning    X, y, sample_weight, weight, index, begun, passed: the first rows of a stream
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from asset_svm.families.beginning import Beginning
from asset_svm.families.cells import CellDecision, CellModels, Constant, FittedCells, Nested
from asset_svm.families.one_map import FittedMap
from asset_svm.families.rows import Rows
from asset_svm.persistence.maps import read_map, write_map
from asset_svm.persistence.reading import INTEGERS, Record
from asset_svm.persistence.session import read_session, write_session
from asset_svm.persistence.writing import Writer

VERSION = 1
NEWER = "what its file holds for learning is of a newer asset-svm; install it"
FOUND_ANEW = ("n_components_", "approximation_error_")
"""Facts of a model for prediction that the map tells where it is there."""


def write_resume(
    write: Writer, fitted: FittedMap | FittedCells, name: str, *, map_is_current: bool
) -> dict[str, Any]:
    """What a model goes on from."""
    if isinstance(fitted, FittedCells):
        section = _write_cells(write, fitted, name)
    else:
        section = _write_one_map(write, fitted, name)
        section["map_is_current"] = map_is_current
    return {"version": VERSION, **section}


def read_resume(
    record: Record, fitted: FittedMap | FittedCells, map_key: Any
) -> FittedMap | FittedCells:
    """The model, going on from this section; as it is where the section is of a newer version.

    ``map_key`` is that of the estimator's parameters.
    """
    if record.integer("version", 1) > VERSION:
        return replace(fitted, fixed=NEWER)
    if isinstance(fitted, FittedCells):
        return _read_cells(record, fitted)
    return _read_one_map(record, fitted, map_key if record.flag("map_is_current") else None)


# Families -----------------------------------------------------------------------------------------


def _write_one_map(write: Writer, fitted: FittedMap, name: str) -> dict[str, Any]:
    return {
        "map": write_map(write, fitted.phi, f"{name}.map"),
        "coef": write.array(fitted.coef, f"{name}.coef"),
        "session": write_session(write, fitted.session, f"{name}.session"),
        "beginning": _write_beginning(write, fitted.beginning, f"{name}.beginning"),
    }


def _read_one_map(record: Record, fitted: FittedMap, map_key: Any) -> FittedMap:
    source = fitted.decision.source
    n_columns = source.n_features_in if fitted.landmarks is None else source.components.shape[1]
    phi, K = read_map(record.record("map"), n_columns), fitted.task.n_models
    return replace(
        fitted,
        phi=phi,
        coef=record.array("coef", (K, phi.dimension)),
        session=read_session(record.record("session"), phi, K),
        map_key=map_key,
        beginning=_read_beginning(record.maybe_record("beginning"), n_columns),
        extra={name: value for name, value in fitted.extra.items() if name not in FOUND_ANEW},
        fixed=None,
    )


def _write_cells(write: Writer, fitted: FittedCells, name: str) -> dict[str, Any]:
    def cell(decision: Any, name: str) -> dict[str, Any] | None:
        if not _goes_on(decision):
            return None
        if isinstance(decision, Constant):
            X, y = write.rows(decision.X, f"{name}.X"), write.array(decision.y, f"{name}.y")
            return {"X": X, "y": y}
        records = enumerate(decision.model.history)
        history = [write.mapping(each, f"{name}.history.{i}") for i, each in records]
        return {**_write_one_map(write, decision.model, name), "history": history}

    return {
        "seed": write.number(fitted.seed),
        "beginning": _write_beginning(write, fitted.beginning, f"{name}.beginning"),
        "partitions": [
            {"cells": [cell(d, f"{name}.{i}.{k}") for k, d in enumerate(part.decisions)]}
            for i, part in enumerate(fitted.decision.parts)
        ],
    }


def _read_cells(record: Record, fitted: FittedCells) -> FittedCells:
    parts, sections = fitted.decision.parts, record.records("partitions")
    if len(sections) != len(parts):
        record.refuse(f"has {len(sections)} entries for {len(parts)} partitions", "partitions")
    resumed = [_read_partition(each, part) for each, part in zip(sections, parts, strict=True)]
    decision = CellDecision(resumed, fitted.decision.n_models, fitted.decision.dtype)
    seed, beginning = record.integer("seed"), record.maybe_record("beginning")
    beginning_rows = _read_beginning(beginning, None)
    return replace(fitted, decision=decision, seed=seed, beginning=beginning_rows, fixed=None)


def _read_partition(record: Record, part: CellModels) -> CellModels:
    sections = record.maybe_records("cells")
    if len(sections) != len(part.decisions):
        record.refuse(f"has {len(sections)} entries for {len(part.decisions)} cells", "cells")
    if [each is not None for each in sections] != [_goes_on(each) for each in part.decisions]:
        record.refuse("has not what its cells go on from", "cells")
    decisions = [_read_cell(*each) for each in zip(sections, part.decisions, strict=True)]
    return replace(part, decisions=decisions)


def _goes_on(decision: Any) -> bool:
    """Whether a cell goes on from more than its decision function."""
    return isinstance(decision, Nested) or (isinstance(decision, Constant) and decision.X is not None)


def _read_cell(record: Record | None, decision: Any) -> Any:
    if record is None:
        return decision
    if isinstance(decision, Constant):
        X = record.rows("X", decision.X.shape[1])
        return Constant(decision.values, X, record.labels("y", X.shape[0]))
    model = _read_one_map(record, decision.model, None)
    return replace(decision, model=replace(model, history=record.mappings("history")))


# The first rows of a stream -----------------------------------------------------------------------


def _write_beginning(write: Writer, beginning: Beginning | None, name: str) -> dict[str, Any] | None:
    if beginning is None:
        return None
    rows = beginning.rows
    columns = ("y", "sample_weight", "weight", "index")
    return {
        "X": write.rows(rows.X, f"{name}.X"),
        **{each: write.array(getattr(rows, each), f"{name}.{each}") for each in columns},
        "begun": write.number(beginning.begun),
        "passed": write.number(beginning.passed),
    }


def _read_beginning(record: Record | None, n_columns: int | None) -> Beginning | None:
    if record is None:
        return None
    X = record.rows("X", n_columns)
    m = X.shape[0]
    own, weight = (record.array(each, (m,), low=0) for each in ("sample_weight", "weight"))
    rows = Rows(X, record.labels("y", m), own, weight, record.array("index", (m,), INTEGERS, low=0))
    return Beginning(rows, record.integer("begun"), record.integer("passed"))
