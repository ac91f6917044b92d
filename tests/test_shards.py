"""Shards and rounds without a cluster: against the local backend, and against a written reference."""

import subprocess
import sys
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from asset_svm.backends.cpu import CpuBackend
from asset_svm.data import OneVsRestTargets, RealTargets, ShuffledOrder
from asset_svm.feasible import FeasibleSet
from asset_svm.features import FourierFeatures, NystroemFeatures
from asset_svm.kernels import Kernel
from asset_svm.losses import EpsilonInsensitive, Hinge
from asset_svm.training.certificate import certify_rows, settle_intercept
from asset_svm.training.plan import StepSizes, find_step_sizes
from asset_svm.training.recipe import Recipe
from asset_svm.training.rows import TrainingRows
from asset_svm.training.run import train
from asset_svm.training.shards import (
    Plan,
    RoundCut,
    Rounds,
    Shard,
    ShardSnapshot,
    mean_model,
    run_rounds,
)
from asset_svm.training.stopping import Stopping
from reference.algorithm import averaged_asset

EPOCHS = 4
BACKEND = CpuBackend()


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
    free = step != "strong"
    recipe = Recipe(Hinge(), (1.0 / m,), step=step, free_intercept=free, seed=7, tight_within=0.0)
    metric = BACKEND.find_metric(phi, X, np.ones(m), 7) if step == "metric" else None
    return X, y, phi, metric, recipe


def training_rows(X, y, phi, metric, recipe, seed=7, backend=BACKEND):
    mapped = backend.rows(phi if metric is None else phi.in_metric(metric), X)
    targets = OneVsRestTargets((y > 0).astype(np.intp), 2)
    order = ShuffledOrder(len(y), seed)
    return TrainingRows(mapped, targets, order, np.ones(len(y)), None, 1.0, metric)


def planned(X, y, phi, metric, recipe, n_shards, rounds):
    """A plan made from all rows."""
    sample = training_rows(X, y, phi, metric, recipe)
    steps = len(y) * EPOCHS // n_shards
    sizes = find_step_sizes(BACKEND, recipe, sample, steps, decaying=True)
    mapped = phi if metric is None else phi.in_metric(metric)
    plan = Plan(recipe, mapped, metric, sizes, EPOCHS, rounds, n_shards)
    return plan


def shards_of(plan, X, y, phi, metric, recipe, cuts, backend=BACKEND):
    made = []
    for number, part in enumerate(np.split(np.arange(len(y)), cuts)):
        rows = training_rows(X[part], y[part], phi, metric, recipe, 7 + number, backend)
        made.append(Shard(backend, plan, rows, ShardSnapshot()))
    return made


def solve(plan, shards):
    sizes = np.array([shard.rows.order.n_rows for shard in shards])
    return run_rounds(plan, sizes / sizes.sum(), lambda r, mean: [s.advance(mean) for s in shards])


@pytest.mark.parametrize("dtype", [pytest.param(np.float32, marks=pytest.mark.slow), np.float64])
@pytest.mark.parametrize(
    ("step", "fourier"), [("metric", False), ("metric", True), ("robust", False), ("strong", False)]
)
def test_one_shard_is_the_local_engine_bit_for_bit(step, fourier, dtype):
    parts = problem(step, fourier=fourier, dtype=dtype)
    metric, recipe = parts[3:]
    local = train(BACKEND, recipe, training_rows(*parts), Stopping(EPOCHS))
    plan = planned(*parts, 1, EPOCHS)
    model, history = solve(plan, shards_of(plan, *parts, []))
    coef, intercept = settle_intercept(training_rows(*parts), recipe, model)
    plain = coef if metric is None else metric.apply(coef)
    np.testing.assert_array_equal(plain, local.coef)
    np.testing.assert_array_equal(intercept, local.intercept)
    assert [record["steps"] for record in history] == [r["steps"] for r in local.history]
    for ours, theirs in zip(history, local.history, strict=True):
        assert ours["progressive_loss"] == pytest.approx(theirs["progressive_loss"])


@pytest.mark.parametrize("average", [1.0, 0.5, None])
@pytest.mark.parametrize("shares", [(0.5, 0.5), (0.75, 0.25)])
@pytest.mark.parametrize(("step", "task"), list(product(["robust", "strong"], ["hinge", "tube"])))
def test_a_round_after_every_step_is_averaged_sgd(step, task, shares, average):
    """Two shards of 40 rows, three epochs, in float64, against the reference written in plain numpy."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(80, 3))
    phi = FourierFeatures.sample(Kernel("rbf", 0.5), 3, 9, rng)
    V, m, epochs = phi(X), 40, 3
    y = np.sign(X[:, 0] + 0.3 * rng.normal(size=80)) if task == "hinge" else np.sin(X[:, 0])
    loss, lam = Hinge() if task == "hinge" else EpsilonInsensitive(0.1), 0.02
    bound = 0.2 if step == "robust" else None
    feasible = FeasibleSet(1.1, bound)  # small enough to be felt
    recipe = Recipe(loss, (lam,), step=step, free_intercept=bound is not None, average=average, seed=1)
    plan = Plan(
        recipe, phi, None, StepSizes([feasible], np.array([1.3]), 1.0, 1.0, 1.0), epochs, 120, 2
    )
    shards, parts = [], []
    for number in range(2):
        part = np.arange(number * m, (number + 1) * m)
        targets = RealTargets(y[part])
        order = ShuffledOrder(m, number)
        mapped = BACKEND.rows(phi, X[part])
        rows = TrainingRows(mapped, targets, order, np.ones(m), None, 1.0)
        shards.append(Shard(BACKEND, plan, rows, ShardSnapshot()))
        parts.append((V[part], y[part], order.rows(0, m * epochs)))
    steps = m * epochs
    begin = 1 if average is None else steps - round(average * steps) + 1
    last, averaged = averaged_asset(
        parts, shares, steps, lam=lam, radius=1.1, bound=bound, step=step,
        task="classification" if task == "hinge" else "regression", epsilon=0.1,
        d_x=feasible.size, d_g=1.3, average_from=begin,
    )  # fmt: skip
    model, _ = run_rounds(plan, np.array(shares), lambda r, mean: [s.advance(mean) for s in shards])
    expected = last if average is None else averaged
    np.testing.assert_allclose(model[0][0], expected[0], rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(model[1][0], expected[1], rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("keep", [True, False])
@pytest.mark.parametrize("step", ["metric", "robust"])
def test_a_shard_built_anew_from_its_past_goes_on_bit_for_bit(step, keep):
    """Killed in every round, and rebuilt from a snapshot three rounds old and the models since."""
    parts = problem(step)
    plan = planned(*parts, 2, 12)
    undisturbed, _ = solve(plan, shards_of(plan, *parts, [1000]))
    backend = CpuBackend(memory_limit=None if keep else 0)

    def fresh():
        return shards_of(plan, *parts, [1000], backend)

    shards, means, snapshots = fresh(), [], {}

    def run(r, mean):
        if r % 3 == 0:
            snapshots.update(enumerate(shard.snapshot() for shard in shards))
        elif r > 3:
            for number, rows in enumerate(shard.rows for shard in fresh()):
                shards[number] = Shard(backend, plan, rows, snapshots[number])
                for earlier in means[snapshots[number].rounds :]:
                    shards[number].advance(earlier)
        means.append(mean)
        return [shard.advance(mean) for shard in shards]

    rebuilt, _ = run_rounds(plan, np.array([1000, 2000]) / 3000, run)
    np.testing.assert_array_equal(rebuilt[0], undisturbed[0])
    np.testing.assert_array_equal(rebuilt[1], undisturbed[1])


def test_every_shard_visits_each_of_its_rows_once_an_epoch_whatever_its_size():
    """Of 1, 19 and 2980 rows, in 12 rounds: some rounds of a small shard have no step."""
    parts = problem("robust")
    plan = planned(*parts, 3, 12)
    shards = shards_of(plan, *parts, [1, 20])
    model, history = solve(plan, shards)
    assert np.isfinite(model[0]).all()
    assert [int(shard.driver.state.steps[0]) for shard in shards] == [4, 76, 4 * 2980]
    assert history[-1]["steps"] == 4 * 3000
    for shard in shards:
        np.testing.assert_array_equal(shard.driver.slopes.visits, EPOCHS / 2)


@given(
    steps=st.integers(1, 5000),
    count=st.integers(1, 400),
    size=st.integers(1, 700),
    until=st.integers(1, 3000),
)
def test_blocks_never_straddle_rounds_and_cover_all_steps(steps, count, size, until):
    rounds = Rounds(steps, count)
    cut = RoundCut(size, until, 4 * size, rounds)
    ends, position = {rounds.begin(r) for r in range(count + 1)}, 0
    while position < steps:
        first, end = cut.around(position)
        assert first == position < end
        assert cut.around(end - 1) == (first, end)
        assert not any(first < stop < end for stop in ends)
        position = end
    assert position == steps and max(ends) == steps


def objective_of(model, parts):
    return float(certify_rows(training_rows(*parts), parts[4], model, tight=False).objective[0])


def test_shuffled_shards_come_near_the_local_objective():
    """Within 3 % with 2 and with 6 shards of a problem of 3000 rows, 4 epochs."""
    parts = problem("metric")
    local = train(BACKEND, parts[4], training_rows(*parts), Stopping(EPOCHS))
    for cuts in ([1500], [500, 1000, 1500, 2000, 2500], [100, 200, 1000]):
        plan = planned(*parts, len(cuts) + 1, 20)
        model, _ = solve(plan, shards_of(plan, *parts, cuts))
        assert objective_of(model, parts) < 1.03 * local.certificate.objective[0]


def test_rounds_make_up_for_shards_of_one_class():
    """Rows sorted by class, half on either side: the more rounds, the lower the objective."""
    X, y, phi, metric, recipe = problem("metric")
    order = np.argsort(y, kind="stable")
    parts = (X[order], y[order], phi, metric, recipe)
    found = []
    for rounds in (EPOCHS, 10 * EPOCHS, 100 * EPOCHS):
        plan = planned(*parts, 2, rounds)
        model, _ = solve(plan, shards_of(plan, *parts, [1500]))
        found.append(objective_of(model, parts))
    assert found[0] > found[1] > found[2]


def test_the_mean_of_models_is_weighted():
    models = [(np.array([[2.0]]), np.array([1.0])), (np.array([[4.0]]), np.array([5.0]))]
    coef, intercept = mean_model(models, np.array([0.75, 0.25]))
    assert coef[0, 0] == 2.5 and intercept[0] == 2.0


def test_without_dask_it_says_what_to_install():
    script = "import sys; sys.modules['distributed'] = None; import asset_svm.dask"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert 'run: pip install "asset-svm[dask]"' in done.stderr.splitlines()[-1]
