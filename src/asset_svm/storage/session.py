"""Records of where learning is: the session of a stream, and the snapshot of a run.

There are K models of d coefficients; None is any number.
"""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from typing import Any, get_args

from asset_svm.feasible import FeasibleSet
from asset_svm.features import FeatureMap
from asset_svm.losses import LOSSES, Loss, Pinball, loss_of
from asset_svm.solvers import (
    Average,
    CountWindow,
    FinalWindow,
    FractionWindow,
    NoWindow,
    SolverState,
)
from asset_svm.solvers.average import Segment, Window
from asset_svm.solvers.tallies import Progress, Slopes
from asset_svm.storage.fields import FLOATS, Fields
from asset_svm.storage.maps import metric
from asset_svm.training.plan import StepSizes
from asset_svm.training.recipe import Recipe, StepKind
from asset_svm.training.stream import OnlineSession, Recent


def quantiles(f: Fields) -> tuple[float, ...]:
    """Quantiles in order."""
    found = tuple(f.each("quantiles", "number", 0.0))
    rising = all(one < other for one, other in pairwise((0.0, *found, 1.0)))
    f.check(found and rising, "are not numbers between 0 and 1 in order", "quantiles")
    return found


def _loss(f: Fields) -> Loss:
    """A loss; early files have no epsilon where there is none."""
    kind = f.text("kind", tuple(loss.kind for loss in LOSSES))
    if kind == Pinball.kind:
        return Pinball(quantiles(f))
    read = partial(f.number, "epsilon", 0.0, of="parameter")
    found = read() if f.has("epsilon", "parameter") else None
    return loss_of(kind, lambda: read() if found is None else found)


def _recipe(f: Fields, K: int | None) -> Recipe:
    loss, lam = f.record("loss", _loss), tuple(f.each("lam", "number"))
    fits = len(lam) == (K or len(lam)) and min(lam) > 0
    f.check(fits, f"is not a positive number for each of {K} models", "lam")
    step = f.text("step", get_args(StepKind))
    step_scale = f.maybe(f.number, "step_scale", 0.0)
    average = f.value("average")
    fits = average in (None, "auto") or type(average) in (int, float)
    f.check(fits, "is no window", "average")
    return Recipe(
        loss=loss,
        lam=lam,
        step=step,
        step_scale=step_scale,
        average=average,
        free_intercept=f.flag("free_intercept"),
        intercept_bound=f.maybe(f.number, "intercept_bound", 0.0),
        form=f.text("form", ("row", "blocked")),
        gradient_sample=f.integer("gradient_sample", 1),
        seed=f.integer("seed"),
        tight_within=f.number("tight_within"),
    )


def _state(f: Fields, K: int | None, d: int | None) -> SolverState:
    direction = f.array("direction", (K, d), FLOATS)
    K, d = direction.shape
    return SolverState(
        direction=direction,
        scale=f.array("scale", (K,)),
        intercept=f.array("intercept", (K,)),
        steps=f.array("steps", (K,), ("i8",), low=0),
        total=f.array("total", (K, d)),
        weight=f.array("weight", (K,)),
        intercept_total=f.array("intercept_total", (K,)),
        pending=f.array("pending", (K, d), (direction.dtype.str,)),
        pending_weight=f.array("pending_weight", (K,)),
        shrink_due=f.array("shrink_due", (K,)),
    )


def _window(f: Fields) -> Window:
    kinds = {"none": NoWindow, "fraction": FractionWindow, "final": FinalWindow, "count": CountWindow}
    kind = f.kind(kinds)
    if kind == "fraction":
        return FractionWindow(f.number("fraction", 0.0), f.maybe(f.integer, "total"))
    if kind == "final":
        return FinalWindow(f.number("fraction", 0.0), f.integer("total"))
    if kind == "count":
        count, total = f.integer("count", 1), f.maybe(f.integer, "total")
        return CountWindow(count, total, f.flag("every_step"))
    return NoWindow()


def _segment(f: Fields, K: int, d: int) -> Segment:
    begin, end, total = f.integer("begin"), f.integer("end"), f.array("total", (K, d))
    return Segment(begin, end, total, f.array("weight", (K,)), f.array("intercept_total", (K,)))


def _average(f: Fields, K: int, d: int) -> Average:
    window, step, opened = f.record("window", _window), f.integer("step"), f.integer("opened")
    return Average(window, step, opened, f.each("segments", "record", _segment, K, d, inline=True))


def _recent(f: Fields, K: int, n: int) -> Recent:
    X = f.maybe(f.rows, "X", n)
    m = 0 if X is None else X.shape[0]
    return Recent(X, f.array("y", (K, m)), f.array("weight", (m,)))


def _progress(f: Fields, K: int) -> Progress:
    steps = f.integer("steps")
    loss, errors, active = (f.array(each, (K,), finite=False) for each in ("loss", "errors", "active"))
    return Progress(steps, loss, errors, active)


def session(f: Fields, phi: FeatureMap, K: int | None = None) -> OnlineSession:
    """What a stream of so many models on the features of phi has come to."""
    recipe, d = f.record("recipe", _recipe, K), phi.dimension
    K = len(recipe.lam)
    state = f.record("state", _state, K, d)
    average = f.record("average", _average, K, d)
    recent = f.record("recent", _recent, K, phi.n_features_in)
    more = dict(
        metric=f.maybe(f.record, "metric", metric, d),
        progress=f.maybe(f.record, "progress", _progress, K),
        gradient_bounds=f.maybe(f.array, "gradient_bounds", (K,)),
        scale=f.maybe(f.number, "scale"),
        mean_weight=f.number("mean_weight", 0.0),
        horizon=f.integer("horizon"),
        y_max=f.numbers("y_max", K, 0.0),
        kappa=f.number("kappa", 0.0),
        bulk=f.numbers("bulk", K, finite=False),
        scale_size=f.number("scale_size", finite=False),
        batches=f.integer("batches"),
        rows_seen=f.integer("rows_seen"),
        next_estimate=f.integer("next_estimate"),
    )
    made = OnlineSession(recipe=recipe, phi=phi, state=state, **more)
    made.average, made.recent = average, recent
    return made


def _set(f: Fields) -> FeasibleSet:
    return FeasibleSet(f.number("radius", 0.0), f.maybe(f.number, "bound", 0.0))


def _sizes(f: Fields, K: int) -> StepSizes:
    sets, bounds = f.each("sets", "record", _set), f.array("bounds", (K,))
    kappa, bulk = f.number("kappa", 0.0), f.numbers("bulk", K, finite=False)
    return StepSizes(sets, bounds, kappa, bulk, f.number("scale"))


def _slopes(f: Fields, K: int) -> Slopes:
    total = f.array("total", (K, None), ("f4",))
    return Slopes(total, f.array("visits", (total.shape[1],), ("f4",)))


def snapshot(f: Fields, d: int) -> dict[str, Any]:
    """The fields of a ``training.run.Snapshot``."""
    state = f.record("state", _state, None, d)
    K = len(state.direction)
    counts = ("stage", "done", "renewed", "next_check", "position")
    return {
        "state": state,
        "sizes": f.record("sizes", _sizes, K),
        "average": f.record("average", _average, K, d),
        "slopes": f.record("slopes", _slopes, K),
        "between_stages": f.flag("between_stages"),
        "history": f.each("history", "mapping"),
        "seconds": f.number("seconds"),
        **{each: f.integer(each) for each in counts},
    }
