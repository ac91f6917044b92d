"""Shards and rounds without a cluster: against the local engine, and against a written reference."""

from dataclasses import replace

import numpy as np
import pytest

from asset_svm.data import GivenOrder, OneVsRestTargets, RealTargets, ShuffledOrder
from asset_svm.engines.averaging import (
    Plan,
    RoundCut,
    Rounds,
    Shard,
    Snapshot,
    StepSizes,
    find_step_sizes,
    mean_model,
    run_rounds,
)
from asset_svm.engines.local import LocalEngine
from asset_svm.engines.task import Recipe, Stopping, TrainingRows
from asset_svm.engines.training import find_metric, train
from asset_svm.feasible import FeasibleSet
from asset_svm.features import FourierFeatures, NystroemFeatures
from asset_svm.kernels import Kernel
from asset_svm.losses import EpsilonInsensitive, Hinge
from asset_svm.solvers import Cut

EPOCHS = 4
ENGINE = LocalEngine()


def problem(step, *, dtype=np.float32, m=3000, fourier=False):
    """Rows, a map of them, and a recipe."""
    rng = np.random.default_rng(0)
    y = np.where(rng.random(m) < 0.5, 1.0, -1.0)
    X = (rng.normal(size=(m, 3)) + 0.7 * y[:, None]).astype(dtype)
    kernel = Kernel("rbf", 0.5)
    if fourier:
        phi = FourierFeatures.sample(kernel, 3, 40, rng)
    else:
        phi = NystroemFeatures.sample(X, kernel, 40, rng, basis="eigen")
    recipe = Recipe(Hinge(), (1.0 / m,), step=step, free_intercept=step != "strong", seed=7)
    metric = find_metric(phi, X, np.ones(m), 7) if step == "metric" else None
    return X, y, phi, metric, recipe


def training_rows(X, y, phi, metric, recipe, seed=7, engine=ENGINE):
    mapped = engine.rows(phi if metric is None else phi.in_metric(metric), X, screen=recipe.screens)
    targets = OneVsRestTargets((y > 0).astype(np.intp), 2)
    order = ShuffledOrder(len(y), seed)
    return TrainingRows(mapped, targets, order, np.ones(len(y)), None, 1.0, metric)


def planned(X, y, phi, metric, recipe, n_shards, rounds):
    """A plan, and the rows that were lifted to make it."""
    sample = training_rows(X, y, phi, metric, recipe)
    sizes = find_step_sizes(ENGINE, recipe, sample, 1.0, len(y) * EPOCHS // n_shards)
    mapped = phi if metric is None else phi.in_metric(metric)
    plan = Plan(recipe, mapped, metric, sizes, EPOCHS, rounds, n_shards)
    return plan, np.flatnonzero(sample.mapped.once_lifted)


def shards_of(plan, X, y, phi, metric, recipe, lifted, cuts, engine=ENGINE):
    made = []
    for number, part in enumerate(np.split(np.arange(len(y)), cuts)):
        before = Snapshot.before(len(part), np.flatnonzero(np.isin(part, lifted)))
        rows = training_rows(X[part], y[part], phi, metric, recipe, 7 + number, engine)
        made.append(Shard(engine, plan, rows, before))
    return made


def solve(plan, shards):
    sizes = np.array([shard.rows.order.n_rows for shard in shards])
    return run_rounds(plan, sizes / sizes.sum(), lambda r, mean: [s.advance(mean) for s in shards])


@pytest.mark.parametrize("rounds", [1, 4, 40])
@pytest.mark.parametrize(
    ("step", "fourier"), [("metric", False), ("metric", True), ("robust", False), ("strong", False)]
)
def test_one_shard_is_the_local_engine_bit_for_bit(step, fourier, rounds):
    parts = problem(step, fourier=fourier)
    X, y, phi, metric, recipe = parts
    local = train(ENGINE, recipe, training_rows(*parts), Stopping(EPOCHS))
    plan, lifted = planned(*parts, 1, rounds)
    (coef, intercept), history = solve(plan, shards_of(plan, *parts, lifted, []))
    plain = coef if metric is None else metric.apply(coef)
    np.testing.assert_array_equal(plain, local.coef)
    np.testing.assert_array_equal(intercept, local.intercept)
    assert len(history) == rounds and history[-1]["steps"] == local.steps
