"""Idle rows first, without features: Algorithm 1 in another order of rows, and nothing else."""

import numpy as np
import pytest

from asset_svm import AssetClassifier
from asset_svm.data import OneVsRestTargets, RealTargets, ShuffledOrder, UniformOrder
from asset_svm.engines.local import LocalEngine, LocalRows
from asset_svm.feasible import FeasibleSet
from asset_svm.features import FourierFeatures, NystroemFeatures
from asset_svm.features.base import evaluator
from asset_svm.kernels import Kernel
from asset_svm.losses import EpsilonInsensitive, Hinge
from asset_svm.problem import DenseRows
from asset_svm.solvers import Average, Cut, Driver, FractionWindow, ModelAxis, NoWindow, SolverState
from asset_svm.steps import MetricStep
from reference.algorithm import asset_in_metric

M, BLOCK, N = 400, 64, 2400


def problem(task, map_name):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(M, 3))
    kernel = Kernel("rbf", 0.3)
    if map_name == "nystroem":
        phi = NystroemFeatures.sample(X, kernel, 30, rng, basis="eigen")
    else:
        phi = FourierFeatures.sample(kernel, 3, 30, rng)
    if task == "classification":
        codes = (X[:, 0] + 0.3 * rng.normal(size=M) > 0).astype(np.intp)
        return X, phi, np.where(codes == 1, 1.0, -1.0), OneVsRestTargets(codes, 2), Hinge()
    y = np.sin(X[:, 0]) + 0.1 * rng.normal(size=M)
    return X, phi, y, RealTargets(y), EpsilonInsensitive(0.2)


def driver(
    task, map_name, *, bound=None, order=ShuffledOrder, keep=True, window=None, form="row", C=10.0
):
    X, phi, y, targets, loss = problem(task, map_name)
    metric = phi.find_metric(phi(X), None, np.random.default_rng(0))
    lam = 1.0 / (C * M)
    feasible = FeasibleSet(loss.radius(lam, float(np.abs(y).max())), bound)
    rule = MetricStep(min(feasible.size, 80.0), 1.3, metric, 0.1, N)
    run = Driver(
        LocalRows(phi.in_metric(metric), X, BLOCK, keep=keep),
        targets,
        order(M, 3),
        ModelAxis.build(loss, [lam], [feasible], [rule]),
        SolverState.zeros(1, phi.dimension, X.dtype),
        Average(window or NoWindow()),
        cut=Cut(BLOCK),
        screen=True,
        form=form,
    )
    return run, (X, phi, y, metric, lam, feasible)


@pytest.mark.parametrize("form", ["row", "blocked"])
@pytest.mark.parametrize("keep", [True, False])
@pytest.mark.parametrize("order", [ShuffledOrder, UniformOrder])
@pytest.mark.parametrize("bound", [None, 5.0])
@pytest.mark.parametrize("map_name", ["nystroem"])
@pytest.mark.parametrize("task", ["classification", "regression"])
def test_it_is_algorithm_1_in_the_order_of_visits(task, map_name, bound, order, keep, form):
    """The naive reference computes every slope at its visit: a row wrongly left out would show."""
    run, (X, phi, y, metric, lam, feasible) = driver(
        task, map_name, bound=bound, order=order, keep=keep, form=form
    )
    visits, reached, idle = [], [], 0
    for _ in range(N // BLOCK):
        run.advance(BLOCK)
        run.settle()
        block = run._block
        drawn = run.order.rows(block.first, block.first + BLOCK)
        np.testing.assert_array_equal(np.sort(block.rows), np.sort(drawn))
        visits.extend(block.rows)
        idle += block.settled
        reached.append((metric.apply(run.state.coef)[0], run.state.intercept[0]))
    assert idle > 40
    T = metric.apply(np.eye(phi.dimension))
    expected = asset_in_metric(
        phi(X), y, visits, lam=lam, radius=feasible.radius, bound=bound, H=np.linalg.inv(T @ T),
        d_x=0.1 * min(feasible.size, 80.0), d_g=1.3, task=task, epsilon=0.2, horizon=N,
        every=BLOCK, reach=1.5,
    )[BLOCK - 1 :: BLOCK]  # fmt: skip
    for (coef, b), (ours, ours_b) in zip(expected, reached, strict=True):
        np.testing.assert_allclose(ours, coef, atol=1e-8 * max(1.0, np.abs(coef).max()))
        assert ours_b == pytest.approx(b, abs=1e-8)


@pytest.mark.parametrize("form", ["row", "blocked"])
def test_the_average_counts_idle_steps_too(form):
    """With so little regularisation that the shrinks between steps do not show."""
    run, _ = driver(
        "classification", "nystroem", bound=5.0, window=FractionWindow(0.5, N), form=form, C=1e12
    )
    total, b_total, weight = 0.0, 0.0, 0.0
    for j in range(1, N + 1):
        run.advance(1)
        if j > N // 2:
            eta = run.axis.eta[0] * (1 - (j - 1) / N)
            total, weight = total + eta * run.state.coef[0], weight + eta
            b_total += eta * run.state.intercept[0]
    coef, intercept = run.model()
    np.testing.assert_allclose(coef[0], total / weight, rtol=1e-9, atol=1e-11)
    assert intercept[0] == pytest.approx(b_total / weight, rel=1e-9)


def test_rows_that_are_never_learnt_from_are_never_lifted():
    run, _ = driver("classification", "nystroem")
    run.advance(N)
    rows = run.rows
    assert rows.seen.all()
    assert 0 < rows.once_lifted.mean() < 0.8


@pytest.mark.parametrize("keep", [True, False])
@pytest.mark.parametrize("map_name", ["nystroem", "fourier"])
def test_products_with_rows_lifted_or_not_are_those_of_the_features(map_name, keep):
    X, phi, *_ = problem("classification", map_name)
    metric = phi.find_metric(phi(X), None, np.random.default_rng(0))
    rows = LocalRows(phi.in_metric(metric), X, BLOCK, keep=keep)
    plain = DenseRows(evaluator(phi.in_metric(metric), X.dtype)(X))
    rng = np.random.default_rng(1)
    coef, beta = rng.normal(size=(3, phi.dimension)), rng.normal(size=(3, M))
    block = rows.open(np.arange(M))
    block.lifted(np.arange(0, M, 3))
    np.testing.assert_allclose(block.margins(coef), plain.margins(coef), atol=1e-7)
    np.testing.assert_allclose(block.sums(beta), plain.sums(beta), atol=1e-6)
    screened = block.screen(coef)
    assert rows.screens
    assert np.isnan(screened[:, ::3]).all()
    np.testing.assert_allclose(screened[:, 1::3], plain.margins(coef)[:, 1::3], atol=1e-7)
    V, positions = block.lifted(np.arange(M))
    np.testing.assert_allclose(V[positions, : phi.dimension], plain.V, atol=1e-8)


def test_small_batches_of_a_stream_are_screened_too():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1500, 3))
    y = np.sign(X[:, 0])
    model = AssetClassifier(n_components=40, gamma=0.3, lam=1e-5, random_state=0)
    for start in range(0, 1500, 100):
        model.partial_fit(X[start : start + 100], y[start : start + 100], classes=[-1, 1])
    assert np.isfinite(model._session.state.drift).all()
    fitted = AssetClassifier(n_components=40, random_state=0).fit(X, y)
    assert np.isfinite(fitted._session.state.drift).all()


def test_short_features_are_lifted_at_once_and_take_their_own_length():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 5))
    linear = NystroemFeatures.sample(X, Kernel("linear"), 50, rng, basis="eigen")
    assert linear.dimension == 5
    engine = LocalEngine(memory_limit=300 * 5 * 8)
    rows = engine.rows(linear, X, screen=True)
    assert rows.kept is not None
    assert rows.kept.shape == (300, 5)
    V, positions = rows.fetch(np.arange(0, 300, 7))
    np.testing.assert_allclose(V[positions], linear(X)[::7], atol=1e-10)
    assert np.isnan(rows.open(np.arange(300)).screen(np.ones((1, 5)))).all()


@pytest.mark.parametrize("C", [1e4, 1e6])
@pytest.mark.parametrize("seed", [0, 1])
def test_the_pilot_finds_the_valley_below_a_plateau(C, seed):
    """With large C long steps are all truncated, and do about as well as each other."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(5000, 8)).astype(np.float32)
    y = np.sin(2 * X[:, 0]) + X[:, 1] > 0.2 * rng.normal(size=5000)
    common = dict(C=C, n_components=200, random_state=seed, fit_intercept=False)
    ours = AssetClassifier(**common).fit(X, y).objective_
    grid = [AssetClassifier(step_scale=c, **common).fit(X, y).objective_ for c in (0.1, 0.01, 0.001)]
    assert ours <= 1.02 * min(grid)
    assert max(grid) > 1.03 * min(grid)  # the choice matters here
