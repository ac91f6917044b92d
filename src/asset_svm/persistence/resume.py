"""The resume section: what ``partial_fit``, ``warm_start``, ``certify`` and ``compact`` need besides.

version      of this section; one that is newer is left out, and the model predicts
one map      map, coef (K, d), map_is_current, session, beginning
cells        seed, beginning, and for every cell of every partition: null, a few rows of a constant
             cell (X, y), or the section of its model on one map with its history
session      recipe, mean_weight, state, horizon, average, recent, y_max, gradient_bounds, kappa,
             bulk, scale, scale_size, batches, metric, rows_seen, next_estimate, progress: as in
             ``training.stream.OnlineSession``
beginning    X, y, sample_weight, weight, index, begun, passed: the first rows of a stream
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy.typing as npt

from asset_svm.families.beginning import Beginning
from asset_svm.families.cells import CellDecision, CellModels, Constant, FittedCells, Nested
from asset_svm.families.one_map import FittedMap
from asset_svm.families.rows import Rows
from asset_svm.features import Metric
from asset_svm.losses import EpsilonInsensitive, Hinge
from asset_svm.persistence.maps import read_map, write_map
from asset_svm.persistence.reading import FLOATS, INTEGERS, Record
from asset_svm.persistence.writing import Writer
from asset_svm.solvers import (
    Average,
    CountWindow,
    FinalWindow,
    FractionWindow,
    NoWindow,
    SolverState,
)
from asset_svm.solvers.average import Segment
from asset_svm.solvers.driver import Progress
from asset_svm.training.recipe import Recipe
from asset_svm.training.stream import OnlineSession, Recent

Array = npt.NDArray[Any]
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
        "session": _write_session(write, fitted.session, f"{name}.session"),
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
        session=_read_session(record.record("session"), phi, K),
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


# The session --------------------------------------------------------------------------------------


def _write_session(write: Writer, session: Any, name: str) -> dict[str, Any]:
    numbers = (
        "mean_weight", "horizon", "y_max", "kappa", "bulk", "scale_size", "batches", "rows_seen",
        "next_estimate",
    )  # fmt: skip
    recent, progress = session.recent, session.progress
    return {
        "recipe": _write_recipe(write, session.recipe),
        "state": _write_state(write, session.state, f"{name}.state"),
        "average": _write_average(write, session.average, f"{name}.average"),
        "recent": {
            "X": write.rows(recent.X, f"{name}.recent.X"),
            "y": write.array(recent.y, f"{name}.recent.y"),
            "weight": write.array(recent.weight, f"{name}.recent.weight"),
        },
        "metric": _write_metric(write, session.metric, f"{name}.metric"),
        "progress": None
        if progress is None
        else {
            "steps": write.number(progress.steps),
            **{
                each: write.array(getattr(progress, each), f"{name}.progress.{each}")
                for each in ("loss", "errors", "active")
            },
        },
        "gradient_bounds": write.array(session.gradient_bounds, f"{name}.gradient_bounds"),
        "scale": write.maybe(session.scale),
        **{each: write.number(getattr(session, each)) for each in numbers},
    }


def _read_session(record: Record, phi: Any, n_models: int) -> OnlineSession:
    recipe = _read_recipe(record.record("recipe"), n_models)
    state = _read_state(record.record("state"), n_models, phi.dimension)
    session = OnlineSession(
        recipe, phi, record.number("mean_weight", 0.0), state, record.integer("horizon")
    )
    session.average = _read_average(record.record("average"), n_models, phi.dimension)
    session.recent = _read_recent(record.record("recent"), n_models, phi.n_features_in)
    session.metric = _read_metric(record.maybe_record("metric"), phi.dimension)
    session.progress = _read_progress(record.maybe_record("progress"), n_models)
    session.gradient_bounds = record.maybe_array("gradient_bounds", (n_models,))
    session.y_max, session.kappa = record.number("y_max", 0.0), record.number("kappa", 0.0)
    session.bulk, session.scale = record.number("bulk", finite=False), record.maybe_number("scale")
    session.scale_size = record.number("scale_size", finite=False)
    session.batches, session.rows_seen = record.integer("batches"), record.integer("rows_seen")
    session.next_estimate = record.integer("next_estimate")
    return session


def _write_recipe(write: Writer, recipe: Recipe) -> dict[str, Any]:
    loss = recipe.loss
    told = {"kind": loss.kind, "epsilon": write.number(loss.parameter)}
    numbers = ("gradient_sample", "seed", "tight_within")
    return {
        "loss": told,
        "lam": [write.number(each) for each in recipe.lam],
        "step": recipe.step,
        "step_scale": write.maybe(recipe.step_scale),
        "average": write.value(recipe.average, "average"),
        "free_intercept": bool(recipe.free_intercept),
        "intercept_bound": write.maybe(recipe.intercept_bound),
        "form": recipe.form,
        **{each: write.number(getattr(recipe, each)) for each in numbers},
    }


def _read_recipe(record: Record, n_models: int) -> Recipe:
    told = record.record("loss")
    loss: Any = Hinge()
    if told.text("kind", ("hinge", "epsilon insensitive")) != "hinge":
        loss = EpsilonInsensitive(told.number("epsilon", 0.0))
    lam = record.items("lam")
    if len(lam) != n_models or not all(type(each) in (int, float) and each > 0 for each in lam):
        record.refuse(f"is not a positive number for each of {n_models} models", "lam")
    average: Any = record.value("average")
    if average not in (None, "auto") and type(average) not in (int, float):
        record.refuse("is no window", "average")
    step: Any = record.text("step", ("robust", "strong", "metric"))
    form: Any = record.text("form", ("row", "blocked"))
    return Recipe(
        loss=loss,
        lam=tuple(lam),
        step=step,
        step_scale=record.maybe_number("step_scale", 0.0),
        average=average,
        free_intercept=record.flag("free_intercept"),
        intercept_bound=record.maybe_number("intercept_bound", 0.0),
        gradient_sample=record.integer("gradient_sample", 1),
        form=form,
        seed=record.integer("seed"),
        tight_within=record.number("tight_within"),
    )


STATE = {
    "direction": ("K", "d"), "scale": ("K",), "intercept": ("K",), "steps": ("K",),
    "total": ("K", "d"), "weight": ("K",), "intercept_total": ("K",), "pending": ("K", "d"),
    "pending_weight": ("K",), "shrink_due": ("K",),
}  # fmt: skip


def _write_state(write: Writer, state: SolverState, name: str) -> dict[str, Any]:
    return {each: write.array(getattr(state, each), f"{name}.{each}") for each in STATE}


def _read_state(record: Record, n_models: int, dimension: int) -> SolverState:
    sizes = {"K": n_models, "d": dimension}
    direction = record.array("direction", (n_models, dimension), FLOATS)
    types = {"direction": FLOATS, "pending": (direction.dtype.str,), "steps": ("i8",)}
    arrays = {
        each: record.array(each, tuple(sizes[axis] for axis in shape), types.get(each, ("f8",)))
        for each, shape in STATE.items()
    }
    if (arrays["steps"] < 0).any():
        record.refuse("has a number below 0", "steps")
    return SolverState(**arrays)


def _write_average(write: Writer, average: Average, name: str) -> dict[str, Any]:
    window: Any = average.window
    fields: dict[str, Any] = {"kind": "none"}
    if isinstance(window, FractionWindow | FinalWindow):
        kind = "final" if isinstance(window, FinalWindow) else "fraction"
        fields = {"kind": kind, "fraction": window.fraction, "total": window.total}
    elif isinstance(window, CountWindow):
        fields = {"kind": "count", "count": window.count, "total": window.total}
        fields["every_step"] = window.every_step
    return {
        "window": fields,
        "step": write.number(average.step),
        "opened": write.number(average.opened),
        "segments": [
            {
                "begin": write.number(each.begin),
                "end": write.number(each.end),
                "total": write.array(each.total, f"{name}.{i}.total"),
                "weight": write.array(each.weight, f"{name}.{i}.weight"),
                "intercept_total": write.array(each.intercept_total, f"{name}.{i}.intercept_total"),
            }
            for i, each in enumerate(average.segments)
        ],
    }


def _read_average(record: Record, n_models: int, dimension: int) -> Average:
    window = record.record("window")
    kind = window.text("kind", ("none", "fraction", "final", "count"))
    found: Any = NoWindow()
    if kind == "fraction":
        found = FractionWindow(window.number("fraction", 0.0), window.maybe_integer("total"))
    elif kind == "final":
        found = FinalWindow(window.number("fraction", 0.0), window.integer("total"))
    elif kind == "count":
        every = window.flag("every_step")
        found = CountWindow(window.integer("count", 1), window.maybe_integer("total"), every)
    segments = [
        Segment(
            each.integer("begin"),
            each.integer("end"),
            each.array("total", (n_models, dimension)),
            each.array("weight", (n_models,)),
            each.array("intercept_total", (n_models,)),
        )
        for each in record.records("segments")
    ]
    return Average(found, record.integer("step"), record.integer("opened"), segments)


def _read_recent(record: Record, n_models: int, n_columns: int) -> Recent:
    X = record.maybe_rows("X", n_columns)
    m = 0 if X is None else X.shape[0]
    return Recent(X, record.array("y", (n_models, m)), record.array("weight", (m,)))


def _read_progress(record: Record | None, n_models: int) -> Progress | None:
    if record is None:
        return None
    sums = (record.array(each, (n_models,), finite=False) for each in ("loss", "errors", "active"))
    return Progress(record.integer("steps"), *sums)


def _write_metric(write: Writer, metric: Metric | None, name: str) -> dict[str, Any] | None:
    if metric is None:
        return None
    return {
        "scale": write.array(metric.scale, f"{name}.scale"),
        "directions": write.array(metric.directions, f"{name}.directions"),
        "rest": write.number(metric.rest),
    }


def _read_metric(record: Record | None, dimension: int) -> Metric | None:
    if record is None:
        return None
    directions = record.maybe_array("directions", (dimension, None))
    count = dimension if directions is None else directions.shape[1]
    scale = record.array("scale", (count,))
    if not (scale > 0.0).all() or count == 0:
        record.refuse("has an entry that is not positive", "scale")
    return Metric(scale, directions, record.number("rest", 0.0))
