"""The compiled loops follow the naive reference, step by step."""

from itertools import product

import numpy as np
import pytest

import asset_svm.training.recipe as recipe_module
from asset_svm import AssetClassifier
from asset_svm.data import GivenOrder, OneVsRestTargets, RealTargets, UniformOrder
from asset_svm.exceptions import NonFiniteError
from asset_svm.feasible import FeasibleSet
from asset_svm.losses import EpsilonInsensitive, Hinge
from asset_svm.solvers import Average, CountWindow, Cut, Driver, FractionWindow, ModelAxis, NoWindow
from asset_svm.solvers.row_form import step_length
from asset_svm.solvers.state import SolverState
from asset_svm.steps import RobustStep, StrongStep
from asset_svm.threads.granted import grant
from reference.algorithm import asset

M, D = 40, 7


class Rows:
    """Mapped rows that are simply there."""

    in_memory = True

    def __init__(self, V):
        self.V, self.dimension, self.dtype = V, V.shape[1], V.dtype

    def fetch(self, rows):
        return self.V, rows


class ManyTargets:
    """Targets of K models, one row each."""

    def __init__(self, y):
        self.y, self.n_models = y, len(y)

    def block(self, rows):
        return self.y[:, rows]


def problem(task, K, seed=0):
    rng = np.random.default_rng(seed)
    V = rng.normal(size=(M, D)) / np.sqrt(D)
    if task == "classification":
        return V, np.sign(rng.normal(size=(K, M)) + 2 * (V @ rng.normal(size=(D, K))).T)
    return V, (V @ rng.normal(size=(D, K))).T + 0.1 * rng.normal(size=(K, M))


def build(V, y, *, task, step, C, radius=None, bound=None, form="row", block=16, window, weight=None):
    lam = 1.0 / (C * M)
    loss = Hinge() if task == "classification" else EpsilonInsensitive(0.05)
    radius = loss.radius(lam, float(np.abs(y).max())) if radius is None else radius
    feasible = FeasibleSet(radius, bound)
    rule = RobustStep(feasible.size, 1.3) if step == "robust" else StrongStep(lam)
    K = len(y)
    axis = ModelAxis.build(loss, [lam] * K, [feasible] * K, [rule] * K)
    driver = Driver(
        Rows(V),
        ManyTargets(y),
        UniformOrder(M, seed=5),
        axis,
        SolverState.zeros(K, V.shape[1], V.dtype),
        Average(window),
        cut=Cut(block),
        form=form,
        weight=weight,
    )
    reference = dict(
        lam=lam, radius=radius, bound=bound, task=task, epsilon=0.05, step=step, weight=weight
    )
    return driver, reference | dict(d_x=feasible.size, d_g=1.3)


CASES = [
    (task, step, bound, radius, C)
    for task, (step, bound), radius, C in product(
        ("classification", "regression"),
        (("robust", None), ("robust", 3.0), ("robust", 0.05), ("strong", None)),
        (None, 0.3),
        (0.01, 1.0, 1e5),
    )
]


@pytest.mark.parametrize("form", ["row", "blocked"])
@pytest.mark.parametrize("K", [1, 5])
@pytest.mark.parametrize(("task", "step", "bound", "radius", "C"), CASES)
def test_loops_follow_the_naive_reference(task, step, bound, radius, C, K, form):
    """Projection active (radius 0.3) and not, b clipped (bound 0.05) and not, every iterate."""
    V, y = problem(task, K)
    N, first = 120, 61
    driver, options = build(
        V,
        y,
        task=task,
        step=step,
        C=C,
        radius=radius,
        bound=bound,
        form=form,
        window=FractionWindow(0.5, N),
    )
    order = driver.order.rows(0, N)
    expected = [asset(V, y[k], order, average_from=first, **options) for k in range(K)]
    for t in range(N):
        driver.advance(1)
        for k in range(K):
            coef, b = expected[k][0][t]
            scale = max(1.0, np.linalg.norm(coef))
            np.testing.assert_allclose(driver.state.coef[k], coef, atol=1e-9 * scale)
            assert driver.state.intercept[k] == pytest.approx(b, abs=1e-9 * max(1, abs(b)))
    coef, intercept = driver.model()
    for k in range(K):
        average, b_average = expected[k][1][-1]
        scale = max(1.0, np.linalg.norm(average))
        np.testing.assert_allclose(coef[k], average, atol=1e-9 * scale)
        assert intercept[k] == pytest.approx(b_average, abs=1e-9 * max(1, abs(b_average)))


def test_the_cases_clip_project_and_restart():
    """The grid above exercises what it claims: a check of the test itself."""
    V, y = problem("classification", 1)
    clipped, options = build(
        V, y, task="classification", step="robust", C=1.0, bound=0.05, window=NoWindow()
    )
    iterates, _ = asset(V, y[0], clipped.order.rows(0, 120), **options)
    assert any(abs(b) == 0.05 for _, b in iterates)
    loose, options = build(
        V, y, task="classification", step="robust", C=1.0, bound=3.0, window=NoWindow()
    )
    iterates, _ = asset(V, y[0], loose.order.rows(0, 120), **options)
    assert any(0.05 < abs(b) < 3.0 for _, b in iterates)
    free, options = build(
        V, y, task="classification", step="robust", C=1e5, radius=0.3, window=NoWindow()
    )
    iterates, _ = asset(V, y[0], free.order.rows(0, 120), **options)
    norms = np.array([np.linalg.norm(coef) for coef, _ in iterates])
    assert np.isclose(norms, 0.3, atol=1e-12).any()


@pytest.mark.parametrize("form", ["row", "blocked"])
@pytest.mark.parametrize("step", ["robust", "strong"])
def test_block_size_never_changes_the_iterates(form, step):
    V, y = problem("classification", 2)
    models = []
    for block in (1, 3, 16, 64, 500):
        driver, _ = build(
            V,
            y,
            task="classification",
            step=step,
            C=10.0,
            form=form,
            block=block,
            window=FractionWindow(0.5, 400),
        )
        driver.advance(400)
        models.append(driver.model()[0])
    for model in models[1:]:
        np.testing.assert_allclose(model, models[0], rtol=0, atol=1e-9 * np.abs(models[0]).max())


@pytest.mark.parametrize("form", ["row", "blocked"])
@pytest.mark.parametrize(("step", "C"), [("robust", 10.0), ("robust", 0.01), ("strong", 10.0)])
def test_float32_follows_float64_over_ten_thousand_steps(form, step, C):
    rng = np.random.default_rng(3)
    V = rng.normal(size=(M, D)) / np.sqrt(D)
    y = np.where(rng.random((1, M)) < 0.5, 1.0, -1.0)
    N = 10_000
    options = dict(task="classification", step=step, C=C, form=form, block=128)
    if step == "robust":
        options["bound"] = 2.0
    wide, _ = build(V, y, window=FractionWindow(1.0, N), **options)
    narrow, _ = build(V.astype(np.float32), y, window=FractionWindow(1.0, N), **options)
    wide.advance(N)
    narrow.advance(N)
    for one, other in zip(narrow.model(), wide.model(), strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-4 * max(1.0, np.abs(other).max()))


@pytest.mark.parametrize("form", ["row", "blocked"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(("step", "C"), [("strong", 0.01), ("strong", 100.0), ("robust", 0.01)])
def test_folded_averages_keep_their_digits(dtype, form, step, C):
    """Where c decays, unfolded Abel sums lose every digit; averaged from the first step on."""
    V, y = problem("classification", 1)
    N = 3000
    driver, options = build(
        V.astype(dtype),
        y,
        task="classification",
        step=step,
        C=C,
        form=form,
        window=FractionWindow(1.0, N),
    )
    driver.advance(N)
    _, averages = asset(V, y[0], driver.order.rows(0, N), **options)
    tolerance = 1e-11 if dtype == np.float64 else 1e-4
    scale = np.abs(averages[-1][0]).max()
    np.testing.assert_allclose(driver.model()[0][0], averages[-1][0], rtol=0, atol=tolerance * scale)


@pytest.mark.parametrize("form", ["row", "blocked"])
def test_a_skipped_row_leaves_the_model_and_its_step_count_alone(form):
    V, y = problem("classification", 1)
    weight = np.where(np.arange(M) % 3 == 0, -1.0, np.where(np.arange(M) % 3 == 1, 1.0, 2.5))
    driver, options = build(
        V,
        y,
        task="classification",
        step="robust",
        C=10.0,
        bound=1.0,
        form=form,
        weight=weight,
        window=NoWindow(),
    )
    driver.advance(200)
    order = driver.order.rows(0, 200)
    iterates, _ = asset(V, y[0], order, **options)
    np.testing.assert_allclose(driver.state.coef[0], iterates[-1][0], atol=1e-9)
    assert driver.state.steps[0] == np.count_nonzero(weight[order] >= 0) < 200


def test_yielding_models_never_changes_the_iterates():
    V, y = problem("classification", 2)
    options = dict(task="classification", step="robust", C=10.0, bound=1.0)
    silent, _ = build(V, y, window=FractionWindow(0.5, 300), **options)
    silent.advance(300)
    watched, _ = build(V, y, window=FractionWindow(0.5, 300), **options)
    for steps in [*range(7, 300, 7), 300]:
        watched.advance(steps - watched.position)
        watched.model()
    np.testing.assert_array_equal(silent.state.coef, watched.state.coef)
    np.testing.assert_allclose(silent.model()[0], watched.model()[0], rtol=1e-13)


def test_checkpoints_average_exactly_the_last_k_iterates():
    V, y = problem("classification", 1)
    driver, options = build(V, y, task="classification", step="robust", C=10.0, window=CountWindow(10))
    order = driver.order.rows(0, 120)
    for steps in (40, 80, 120):
        driver.advance(40)
        coef, _ = driver.model()
        _, averages = asset(V, y[0], order[:steps], average_from=steps - 9, **options)
        np.testing.assert_allclose(coef[0], averages[-1][0], atol=1e-9)


def test_threads_over_models_change_nothing(monkeypatch):
    monkeypatch.setattr("asset_svm.solvers.driver.WORTH_A_THREAD", 1)
    V, y = problem("classification", 5)
    results = []
    for threads in (1, 4):
        driver, _ = build(
            V, y, task="classification", step="robust", C=10.0, window=FractionWindow(0.5, 500)
        )
        with grant(threads):
            driver.advance(500)
        results.append(driver.model()[0])
    np.testing.assert_array_equal(*results)


@pytest.mark.parametrize("turn", [1, 7, 10_000])
@pytest.mark.parametrize("radius", [None, 0.3])
def test_models_that_take_turns_equal_models_by_themselves(turn, radius, monkeypatch):
    monkeypatch.setattr("asset_svm.solvers.row_steps.TURN", turn)
    V, y = problem("classification", 3)
    options = dict(task="classification", step="robust", C=10.0, bound=1.0, radius=radius, block=64)
    together, _ = build(V, y, window=FractionWindow(0.5, 500), **options)
    together.advance(500)
    for k in range(3):
        alone, _ = build(V, y[k : k + 1], window=FractionWindow(0.5, 500), **options)
        alone.advance(500)
        np.testing.assert_allclose(together.model()[0][k], alone.model()[0][0], atol=1e-9)
        assert together.state.intercept[k] == pytest.approx(alone.state.intercept[0], abs=1e-9)


def test_a_nonfinite_iterate_is_raised_and_never_returned():
    V, y = problem("classification", 1)
    V = V.copy()
    V[3, 2] = np.inf
    driver, _ = build(V, y, task="classification", step="robust", C=1.0, window=NoWindow())
    with pytest.raises(NonFiniteError, match="no longer finite"):
        driver.advance(200)


def test_targets_and_orders_serve_the_driver_they_were_written_for():
    codes = np.array([0, 2, 1, 0])
    np.testing.assert_array_equal(
        OneVsRestTargets(codes, 3).block(np.array([1, 3])), [[-1, 1], [-1, -1], [1, -1]]
    )
    np.testing.assert_array_equal(OneVsRestTargets(codes[:1], 2).block(np.array([0])), [[-1]])
    np.testing.assert_array_equal(RealTargets(np.arange(4.0)).block(np.array([2])), [[2.0]])
    np.testing.assert_array_equal(GivenOrder(3).rows(2, 7), [2, 0, 1, 2, 0])


@pytest.mark.parametrize("power", [0.0, 0.25, 2.0])
def test_the_loops_have_steps_of_any_power_of_j(power):
    assert [step_length(3.0, power, 0, j) for j in (1, 7)] == pytest.approx([3.0, 3.0 / 7**power])


def test_many_models_go_through_blocks_together_as_they_do_row_by_row(monkeypatch):
    """By matrix products that they share: other sums, the same steps, whatever the threads."""
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(40), 8)
    X = 1.5 * rng.normal(size=(40, 6))[y] + rng.normal(size=(len(y), 6))
    options = dict(n_components=60, max_iter=6, random_state=0)

    def decisions(n_jobs):
        return AssetClassifier(n_jobs=n_jobs, **options).fit(X, y).decision_function(X)

    row_by_row = decisions(1)
    monkeypatch.setattr(recipe_module, "MANY_MODELS", 40)
    together = decisions(1)
    np.testing.assert_allclose(together, row_by_row, rtol=1e-6, atol=1e-9)
    assert not np.array_equal(together, row_by_row)
    np.testing.assert_array_equal(decisions(3), together)
