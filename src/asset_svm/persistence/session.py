"""The session of a model that goes on learning (``training.stream.OnlineSession``).

session    recipe, state, average, recent, metric, progress, gradient_bounds (K,), scale, mean_weight,
           horizon, y_max, kappa, bulk, scale_size, batches, rows_seen, next_estimate
recipe     loss (its kind, and epsilon), lam, step, step_scale, average, free_intercept,
           intercept_bound, gradient_sample, form, seed, tight_within
state      ``STATE``, over K models of d coefficients
average    window (its kind and numbers), step, opened, segments: begin, end, total (K, d),
           weight (K,), intercept_total (K,)
recent     X, y (K, m), weight (m,): the last m rows
metric     scale, directions, rest
progress   steps, loss, errors, active (K,)
"""

from __future__ import annotations

from typing import Any, get_args

from asset_svm.features import Metric
from asset_svm.losses import LOSSES, loss_of
from asset_svm.persistence.reading import FLOATS, Record
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
from asset_svm.solvers.tallies import Progress
from asset_svm.training.recipe import Recipe, StepKind
from asset_svm.training.stream import OnlineSession, Recent


def write_session(write: Writer, session: Any, name: str) -> dict[str, Any]:
    """What a stream has come to."""
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


def read_session(record: Record, phi: Any, n_models: int) -> OnlineSession:
    """The session of so many models on the features of phi."""
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
    kind = told.text("kind", tuple(known.kind for known in LOSSES))
    loss = loss_of(kind, lambda: told.number("epsilon", 0.0))
    lam = record.items("lam")
    if len(lam) != n_models or not all(type(each) in (int, float) and each > 0 for each in lam):
        record.refuse(f"is not a positive number for each of {n_models} models", "lam")
    average: Any = record.value("average")
    if average not in (None, "auto") and type(average) not in (int, float):
        record.refuse("is no window", "average")
    step: Any = record.text("step", get_args(StepKind))
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
