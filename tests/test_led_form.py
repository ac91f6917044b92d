"""Rows that are never lifted: the led form against a naive reference, and what it may not change."""

from dataclasses import replace

import numpy as np
import pytest

from asset_svm import AssetClassifier, AssetRegressor
from asset_svm.data import GivenOrder, OneVsRestTargets, RealTargets, ShuffledOrder, UniformOrder
from asset_svm.engines import certification
from asset_svm.engines import task as tasks
from asset_svm.engines.local import LocalEngine, LocalRows
from asset_svm.feasible import FeasibleSet
from asset_svm.features import FourierFeatures, Metric, NystroemFeatures
from asset_svm.features.base import evaluator
from asset_svm.features.metric import LEADING
from asset_svm.kernels import Kernel
from asset_svm.losses import EpsilonInsensitive, Hinge
from asset_svm.problem import DenseRows
from asset_svm.solvers import Average, Cut, Driver, FractionWindow, ModelAxis, NoWindow, SolverState
from asset_svm.steps import MetricStep, led_steps
from reference.algorithm import asset_in_metric, asset_led

M, BLOCK, N, S = 700, 64, 2400, 80


def problem(task, map_name, n_components=S):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(M, 3))
    kernel = Kernel("rbf", 1.0)
    if map_name == "fourier":
        phi = FourierFeatures.sample(kernel, 3, n_components, rng)
    else:
        basis = "eigen" if map_name == "nystroem" else "cholesky"
        phi = NystroemFeatures.sample(X, kernel, n_components, rng, basis=basis)
    if task == "classification":
        codes = (X[:, 0] + 0.3 * rng.normal(size=M) > 0).astype(np.intp)
        return X, phi, np.where(codes == 1, 1.0, -1.0), OneVsRestTargets(codes, 2), Hinge()
    y = np.sin(X[:, 0]) + 0.1 * rng.normal(size=M)
    return X, phi, y, RealTargets(y), EpsilonInsensitive(0.2)


def driver(
    task, map_name, *, bound=None, order=ShuffledOrder, keep=True, window=None, C=10.0, radius=None,
    block=BLOCK, n_components=S, together=1,
):  # fmt: skip
    X, phi, y, targets, loss = problem(task, map_name, n_components)
    V = phi(X)
    metric = phi.find_metric(V, None, np.random.default_rng(0)).measured(V)
    lam = 1.0 / (C * M)
    feasible = FeasibleSet(radius or loss.radius(lam, float(np.abs(y).max())), bound)
    rule = MetricStep(80.0, 1.3, metric, 0.1, N)
    rows = LocalRows(phi.in_metric(metric), X, BLOCK, keep=keep, lead=True)
    assert rows.led
    run = Driver(
        rows,
        targets,
        order(M, 3),
        ModelAxis.build(loss, [lam], [feasible], [rule]),
        SolverState.zeros(1, phi.dimension, X.dtype),
        Average(window or NoWindow()),
        cut=Cut(together * block, part=block if together > 1 else 0),
        form="led",
    )
    return run, (V, y, metric, lam, feasible)


def expected(run, parts, task, bound, block=BLOCK, together=1):
    V, y, metric, lam, feasible = parts
    T = metric.apply(np.eye(V.shape[1]))
    directions = np.linalg.solve(T, metric.leading())
    return asset_led(
        V, y, run.order.rows(0, N), lam=lam, radius=feasible.radius, bound=bound, T=T,
        leading=directions, beyond=metric.beyond, d_x=8.0, d_g=1.3, horizon=N, block=block, reach=1.5,
        task=task, epsilon=0.2, shrink_blocks=together,
    )  # fmt: skip


@pytest.mark.parametrize("together", [1, 4])
@pytest.mark.parametrize("keep", [True, False])
@pytest.mark.parametrize("order", [ShuffledOrder, UniformOrder])
@pytest.mark.parametrize("bound", [None, 5.0])
@pytest.mark.parametrize("map_name", ["nystroem", "cholesky", "fourier"])
@pytest.mark.parametrize("task", ["classification", "regression"])
def test_it_follows_the_reference_block_by_block(task, map_name, bound, order, keep, together):
    run, parts = driver(task, map_name, bound=bound, order=order, keep=keep, together=together, C=100.0)
    assert run.shrink_interval == together * BLOCK
    for coef, b in expected(run, parts, task, bound, together=together)[BLOCK - 1 :: BLOCK]:
        run.advance(BLOCK)
        np.testing.assert_allclose(run.state.coef[0], coef, atol=1e-8 * max(1.0, np.abs(coef).max()))
        assert run.state.intercept[0] == pytest.approx(b, abs=1e-8)
    assert 0.05 < run.take_progress().active[0] / N < 0.95


@pytest.mark.parametrize("together", [1, 4])
def test_iterates_stay_in_the_ball(together):
    run, parts = driver("classification", "nystroem", radius=2.0, together=together, C=100.0)
    iterates = expected(run, parts, "classification", None, together=together)
    coef, _ = iterates[36 * BLOCK - 1]
    assert np.linalg.norm(coef) == pytest.approx(2.0)
    run.advance(36 * BLOCK)
    np.testing.assert_allclose(run.state.coef[0], coef, atol=1e-8)


def test_where_every_direction_leads_it_is_algorithm_1():
    run, (V, y, metric, lam, feasible) = driver("classification", "fourier", n_components=LEADING)
    T = metric.apply(np.eye(V.shape[1]))
    visits = run.order.rows(0, N)
    gained = []
    for _ in range(N // BLOCK):
        run.advance(BLOCK)
        gained.append(metric.apply(run.state.coef)[0])
    assert metric.beyond == pytest.approx(0.0, abs=1e-12)
    reference = asset_in_metric(
        V, y, visits, lam=lam, radius=feasible.radius, H=np.linalg.inv(T @ T), d_x=8.0, d_g=1.3,
        horizon=N, every=BLOCK, reach=1.5,
    )[BLOCK - 1 :: BLOCK]  # fmt: skip
    for ours, (coef, _) in zip(gained, reference, strict=False):
        np.testing.assert_allclose(ours, coef, atol=1e-7 * max(1.0, np.abs(coef).max()))


@pytest.mark.parametrize("together", [1, 4])
@pytest.mark.parametrize("piece", [1, 7, 50])
def test_steps_do_not_depend_on_who_asks_when(piece, together):
    whole, _ = driver("classification", "nystroem", bound=5.0, together=together)
    pieces, _ = driver("classification", "nystroem", bound=5.0, together=together)
    whole.advance(N)
    while pieces.position < N:
        pieces.advance(min(piece, N - pieces.position))
    np.testing.assert_allclose(pieces.state.coef, whole.state.coef, atol=1e-10)
    assert pieces.take_progress().active[0] == whole.take_progress().active[0]


@pytest.mark.parametrize("together", [1, 4])
def test_the_average_is_that_of_the_iterates(together):
    """Of those between shrinks; with so little regularisation that the shrinks do not show."""
    run, parts = driver(
        "classification", "nystroem", bound=5.0, window=FractionWindow(0.5, N), C=1e12, radius=1e9,
        together=together,
    )  # fmt: skip
    iterates = expected(run, parts, "classification", 5.0)
    run.advance(N)
    eta = 1.0 - np.arange(N // 2, N) / N
    late = iterates[N // 2 :]
    coef, intercept = run.model()
    np.testing.assert_allclose(coef[0], eta @ [c for c, _ in late] / eta.sum(), atol=1e-7)
    assert intercept[0] == pytest.approx(eta @ [b for _, b in late] / eta.sum(), rel=1e-7)


@pytest.mark.parametrize("K", [1, 3, 7])
@pytest.mark.parametrize("keep", [True, False])
@pytest.mark.parametrize("map_name", ["nystroem", "cholesky", "fourier"])
def test_products_with_rows_that_are_not_lifted_are_those_of_the_features(map_name, keep, K):
    X, phi, *_ = problem("classification", map_name)
    metric = phi.find_metric(phi(X), None, np.random.default_rng(0))
    rows = LocalRows(phi.in_metric(metric), X, BLOCK, keep=keep, lead=True)
    plain = DenseRows(evaluator(phi.in_metric(metric), X.dtype)(X))
    rng = np.random.default_rng(1)
    chosen = rng.permutation(M)[:300]
    coef, beta = rng.normal(size=(K, phi.dimension)), rng.normal(size=(K, 300))
    block = rows.open(chosen)
    np.testing.assert_allclose(block.margins(coef), plain.margins(coef)[:, chosen], atol=1e-7)
    np.testing.assert_allclose(block.sums(beta), beta @ plain.V[chosen], atol=1e-6)
    np.testing.assert_allclose(block.lead(), phi(X)[chosen] @ metric.leading(), atol=1e-8)
    V, positions = rows.fetch(chosen)
    np.testing.assert_allclose(V[positions, : phi.dimension], plain.V[chosen], atol=1e-8)


@pytest.mark.parametrize(("n_classes", "max_iter"), [(2, 5), (3, 2)])
def test_many_rows_are_led_and_few_are_not_and_the_objective_is_the_same(
    n_classes, max_iter, monkeypatch
):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(6000, 4)).astype(np.float32)
    y = np.digitize(X[:, 0] + np.sin(2 * X[:, 1]), np.linspace(-1.5, 1.5, n_classes + 1)[1:-1])
    forms = []
    original = tasks.Recipe.form_of
    monkeypatch.setattr(
        tasks.Recipe, "form_of", lambda self, rows: forms.append(original(self, rows)) or forms[-1]
    )
    model = AssetClassifier(n_components=300, C=10, gamma=0.5, max_iter=max_iter, random_state=0)
    led = model.fit(X, y).objective_
    monkeypatch.setattr(tasks, "FEWEST_LED", 10_000)
    lifted = model.fit(X, y).objective_
    assert forms == ["led", "row"]
    assert led == pytest.approx(lifted, rel=0.01)
    assert led != lifted


def test_only_many_shuffled_rows_that_are_visited_seldom_are_led():
    recipe, shuffled = tasks.Recipe(Hinge(), (1e-3,), step="metric"), ShuffledOrder(4096, 0)
    even = Metric(np.ones(100), steepest=0.01, length=1.0)  # 128 steps
    assert recipe.leads(shuffled, 6, even)
    assert not recipe.leads(shuffled, 7, even)
    assert not recipe.leads(ShuffledOrder(4095, 0), 1, even)
    assert not recipe.leads(UniformOrder(4096, 0), 1, even)
    assert not recipe.leads(GivenOrder(4096), 1, even)
    assert not replace(recipe, lam=(1e-3,) * 9).leads(shuffled, 2, even)
    assert not recipe.leads(shuffled, 1, replace(even, steepest=0.02))
    assert not replace(recipe, step="robust").leads(shuffled, 1, None)


@pytest.mark.parametrize("map_name", ["nystroem", "cholesky", "fourier"])
def test_how_much_rows_have_in_common_beyond_the_leading_directions(map_name):
    X, phi, *_ = problem("classification", map_name, 200)
    V = phi(X)
    metric = phi.find_metric(V, None, np.random.default_rng(0)).measured(V)
    rows = metric.apply(V)
    directions = np.linalg.qr(metric.invert(metric.leading().T).T)[0]
    rest = rows - rows @ directions @ directions.T
    assert metric.length == pytest.approx((rows**2).sum(axis=1).mean())
    assert metric.beyond == pytest.approx((rest**2).sum(axis=1).mean())
    largest = np.linalg.eigvalsh(rest.T @ rest / M)[-1]
    assert 0.8 * largest < metric.steepest <= largest * (1 + 1e-9)
    assert led_steps(metric) <= 2 * metric.length / (1.5 * metric.steepest)


def waves(rng, m=8000):
    X = rng.uniform(0, 1, (m, 2))
    return X, np.sin(12 * X[:, 0]) * np.cos(12 * X[:, 1]) + 0.02 * rng.normal(size=m), 20.0


def clusters(rng, m=6000):
    centres, own = rng.normal(size=(40, 6)), rng.integers(40, size=m)
    y = rng.normal(size=40)[own]
    return centres[own] + 0.05 * rng.normal(size=(m, 6)), y + 0.05 * rng.normal(size=m), 1.0


def blobs(rng, m=6000):
    X = rng.normal(size=(m, 8))
    return X, np.sin(2 * X[:, 0]) + X[:, 1] + 0.2 * rng.normal(size=m), 0.125


@pytest.mark.parametrize("max_iter", [3, pytest.param(6, marks=pytest.mark.slow)])
@pytest.mark.parametrize("C", [10.0, 1000.0, 1e5])
@pytest.mark.parametrize("problem", [waves, clusters, blobs])
@pytest.mark.parametrize("kind", [AssetClassifier, AssetRegressor])
def test_rows_that_have_much_in_common_beyond_the_leading_directions(
    kind, problem, C, max_iter, monkeypatch
):
    """With blocks of 512 and the row form's steps R2 was -20 (waves) and -0.2 (clusters)."""
    X, y, gamma = problem(np.random.default_rng(0))
    settings = dict(n_components=300, gamma=gamma, C=C, max_iter=max_iter, random_state=0)
    if kind is AssetClassifier:
        y = y > 0
    else:
        settings["epsilon"] = 0.02
    led = kind(**settings).fit(X, y)
    monkeypatch.setattr(tasks, "FEWEST_LED", 10**9)
    lifted = kind(**settings).fit(X, y)
    assert led.score(X, y) > lifted.score(X, y) - 0.01
    assert led.objective_ < 1.1 * lifted.objective_ + 1e-3


@pytest.mark.parametrize("sampling", ["given", "uniform"])
def test_rows_in_an_order_that_may_be_sorted_are_lifted(sampling, monkeypatch):
    X, y, gamma = clusters(np.random.default_rng(0))
    order = np.argsort(y)
    opened = recorded(monkeypatch)
    model = AssetRegressor(n_components=300, gamma=gamma, sampling=sampling, random_state=0)
    model.fit(X[order], y[order])
    assert opened
    assert not any(rows.led for rows in opened)


def test_regression_too(monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(6000, 4)).astype(np.float32)
    y = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * rng.normal(size=6000)
    model = AssetRegressor(n_components=300, gamma=0.5, max_iter=5, random_state=0)
    led = model.fit(X, y).objective_
    monkeypatch.setattr(tasks, "FEWEST_LED", 10_000)
    assert led == pytest.approx(model.fit(X, y).objective_, rel=0.01)


def recorded(monkeypatch):
    """The rows that engines open from now on."""
    opened, original = [], LocalEngine.rows

    def rows(self, phi, X, *, lead):
        opened.append(original(self, phi, X, lead=lead))
        return opened[-1]

    monkeypatch.setattr(LocalEngine, "rows", rows)
    return opened


def test_batches_of_a_stream_are_lifted(monkeypatch):
    """They may all be alike."""
    rng = np.random.default_rng(0)
    X = np.sort(rng.normal(size=(12_000, 3)), axis=0)
    y = np.sign(X[:, 0])
    opened = recorded(monkeypatch)
    model = AssetClassifier(n_components=40, gamma=0.3, lam=1e-5, random_state=0)
    for start in range(0, 12_000, 6000):
        model.partial_fit(X[start : start + 6000], y[start : start + 6000], classes=[-1, 1])
    assert opened
    assert not any(rows.led for rows in opened)


def test_short_features_are_lifted_at_once_and_take_their_own_length():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 5))
    linear = NystroemFeatures.sample(X, Kernel("linear"), 50, rng, basis="eigen")
    assert linear.dimension == 5
    metric = linear.find_metric(linear(X), None, rng)
    engine = LocalEngine(memory_limit=300 * 5 * 8)
    rows = engine.rows(linear.in_metric(metric), X, lead=True)
    assert not rows.led
    assert rows.kept is not None
    assert rows.kept.shape == (300, 5)
    V, positions = rows.fetch(np.arange(0, 300, 7))
    np.testing.assert_allclose(V[positions], metric.apply(linear(X)[::7]), atol=1e-10)


@pytest.mark.filterwarnings("ignore:The duality gap")
@pytest.mark.parametrize("C", [1e4, 1e6])
@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("max_iter", [6, None])
def test_the_pilot_finds_the_valley_below_a_plateau(C, seed, max_iter, monkeypatch):
    """With large C long steps are all truncated, and do about as well as each other."""
    monkeypatch.setattr(certification, "UNFINISHED", np.inf)  # steps alone, not finished by Newton's
    rng = np.random.default_rng(0)
    X = rng.normal(size=(5000, 8)).astype(np.float32)
    y = np.sin(2 * X[:, 0]) + X[:, 1] > 0.2 * rng.normal(size=5000)
    common = dict(C=C, n_components=200, random_state=seed, fit_intercept=False, max_iter=max_iter)
    ours = AssetClassifier(**common).fit(X, y).objective_
    grid = [AssetClassifier(step_scale=c, **common).fit(X, y).objective_ for c in (0.1, 0.01, 0.001)]
    assert ours <= 1.02 * min(grid)
    assert max(grid) > 1.03 * min(grid)  # the choice matters here


@pytest.mark.filterwarnings("ignore:The duality gap")
@pytest.mark.filterwarnings("ignore:The model tells no rows apart")
@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("C", [1e-2, 1e2, 1e6])
@pytest.mark.parametrize("gamma", [0.008, 0.125, 2.0])
def test_it_is_as_good_as_the_row_form_for_any_C_and_gamma(gamma, C, seed, monkeypatch):
    """It is worse where nearly all steps are truncated: the pilot must not take such long ones."""
    monkeypatch.setattr(certification, "UNFINISHED", np.inf)  # steps alone, not finished by Newton's
    X, y, _ = blobs(np.random.default_rng(seed))
    model = AssetClassifier(n_components=300, gamma=gamma, C=C, max_iter=2, random_state=seed)
    opened = recorded(monkeypatch)
    led = model.fit(X, y > 0).objective_
    if gamma == 0.125:
        assert opened[-1].led
    monkeypatch.setattr(tasks, "FEWEST_LED", 10**9)
    assert led <= 1.05 * model.fit(X, y > 0).objective_


@pytest.mark.parametrize("few", [1, 10**9])
def test_steps_do_not_grow_with_C_where_the_regulariser_plays_no_part(few, monkeypatch):
    """Multipliers of D_X = 1 / sqrt(lam) must fall with it."""
    monkeypatch.setattr(tasks, "FEWEST_LED", few)
    X, y, gamma = blobs(np.random.default_rng(0))
    common = dict(n_components=300, gamma=gamma, max_iter=2, random_state=0, fit_intercept=False)
    large, larger = (AssetClassifier(C=C, **common).fit(X, y > 0) for C in (1e6, 1e12))
    assert larger.objective_ == pytest.approx(large.objective_, rel=0.02)
    assert larger.step_scale_ == pytest.approx(large.step_scale_ / 1000, rel=0.2)
