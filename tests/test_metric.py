"""Steps in the metric of the data: the metric itself, the loops in it, what it is for."""

from itertools import product

import numpy as np
import pytest
import scipy.linalg as la

from asset_svm import AssetClassifier, AssetRegressor, NystroemMap
from asset_svm.backends.cpu import CpuBackend
from asset_svm.data import GivenOrder, UniformOrder
from asset_svm.feasible import FeasibleSet
from asset_svm.features import FourierFeatures, Metric, NystroemFeatures
from asset_svm.features.base import evaluator
from asset_svm.kernels import Kernel
from asset_svm.losses import EpsilonInsensitive, Hinge
from asset_svm.solvers import Average, Cut, Driver, ModelAxis, NoWindow, SolverState
from asset_svm.solvers.row_form import step_length
from asset_svm.solvers.tallies import Slopes
from asset_svm.steps import MetricStep
from reference import exact
from reference.algorithm import asset_in_metric
from test_loops import D, M, ManyTargets, Rows, problem


def sample(m=400, d=12, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(m, d)) * np.logspace(0, -3, d) @ la.qr(rng.normal(size=(d, d)))[0]


def metrics(V):
    return {
        "diagonal": Metric.of_columns(V),
        "low rank": Metric.of_directions(V, 4, np.random.default_rng(0)),
        "full rank": Metric.of_directions(V, V.shape[1], np.random.default_rng(0)),
    }


@pytest.mark.parametrize("form", ["diagonal", "low rank", "full rank"])
def test_the_change_of_basis_is_symmetric_invertible_and_at_least_one(form):
    metric = metrics(sample())[form]
    T = metric.apply(np.eye(12))
    np.testing.assert_allclose(T, T.T, atol=1e-12)
    np.testing.assert_allclose(metric.invert(T), np.eye(12), atol=1e-10)
    assert np.linalg.eigvalsh(T).min() >= 1 - 1e-9
    flow = metric.shrink(np.eye(12), np.full(12, 0.01))
    np.testing.assert_allclose(flow, la.expm(-0.01 * T @ T), atol=1e-10)


def test_mean_squares_are_evened_to_their_square_roots():
    V = np.array([[1.0, 0.1], [-1.0, 0.1]])
    np.testing.assert_allclose(Metric.of_columns(V).scale, [1.0, np.sqrt(10.0)])
    V = sample()
    evened = metrics(V)["full rank"].apply(V)
    sigma = np.sqrt(np.linalg.eigvalsh(V.T @ V / len(V))[::-1])
    after = np.linalg.eigvalsh(evened.T @ evened / len(V))[::-1]
    np.testing.assert_allclose(after, np.sort(sigma * sigma.max())[::-1], rtol=1e-5)


def test_directions_are_the_top_eigenvectors_of_the_weighted_second_moments():
    V = sample()
    weight = np.random.default_rng(1).uniform(0.5, 2, len(V))
    metric = Metric.of_directions(V, 3, np.random.default_rng(0), weight)
    _, vectors = np.linalg.eigh((V * weight[:, None]).T @ V)
    overlap = np.abs(np.sum(metric.directions * vectors[:, :-4:-1], axis=0))
    np.testing.assert_allclose(overlap, 1.0, atol=1e-4)


def test_columns_without_mass_do_no_harm():
    V = np.zeros((5, 3))
    np.testing.assert_array_equal(Metric.of_columns(V).scale, 1.0)
    V[:, 0] = 1.0
    assert np.isfinite(Metric.of_columns(V).scale).all()


CHOICES = [
    ("classification", "regression"),  # task
    (None, 0.05, 3.0),  # bound
    (None, 0.3),  # radius
    (None, 200),  # horizon
    ("diagonal", "low rank"),  # kind
    (np.inf, 1.5),  # reach
    (1, 5),  # K
]
# A quarter of all cases; the others are slow.
CASES = [
    pytest.param(
        *(values[i] for values, i in zip(CHOICES, chosen, strict=True)),
        marks=[] if sum(chosen[:-1]) % 4 == 2 * chosen[-1] else [pytest.mark.slow],
    )
    for chosen in product(*(range(len(values)) for values in CHOICES))
]


@pytest.mark.parametrize("form", ["row", "blocked"])
@pytest.mark.parametrize(("task", "bound", "radius", "horizon", "kind", "reach", "K"), CASES)
def test_loops_in_the_metric_follow_the_naive_reference(
    task, bound, radius, horizon, kind, reach, K, form
):
    V, y = problem(task, K)
    V = V * np.logspace(0, -1.5, V.shape[1])
    metric = Metric.of_columns(V)
    if kind == "low rank":
        metric = Metric.of_directions(V, 3, np.random.default_rng(0))
    loss = Hinge() if task == "classification" else EpsilonInsensitive(0.05)
    lam = 1.0 / (10.0 * M)
    radius = radius or loss.radius(lam, float(np.abs(y).max()))
    feasible = FeasibleSet(radius, bound)
    rule = MetricStep(feasible.size, 1.3, metric, 0.5, horizon or 0, reach)
    driver = Driver(
        Rows(metric.apply(V)),
        ManyTargets(y),
        UniformOrder(M, seed=5),
        ModelAxis.build(loss, [lam] * K, [feasible] * K, [rule] * K),
        SolverState.zeros(K, V.shape[1], V.dtype),
        Average(NoWindow()),
        cut=Cut(64),
        form=form,
    )
    T = metric.apply(np.eye(V.shape[1]))
    for k in range(K):
        expected = asset_in_metric(
            V, y[k], driver.order.rows(0, 200), lam=lam, radius=radius, bound=bound,
            H=np.linalg.inv(T @ T), d_x=0.5 * feasible.size, d_g=1.3, task=task, epsilon=0.05,
            horizon=horizon, every=64, reach=reach,
        )  # fmt: skip
        if k == 0:
            reached = []
            for _ in range(200):
                driver.advance(1)
                reached.append((metric.apply(driver.state.coef), driver.state.intercept.copy()))
        for (coef, b), (coefs, intercepts) in zip(expected, reached, strict=True):
            np.testing.assert_allclose(coefs[k], coef, atol=1e-9 * max(1.0, np.abs(coef).max()))
            assert intercepts[k] == pytest.approx(b, abs=1e-9)


@pytest.mark.parametrize("form", ["row", "blocked"])
@pytest.mark.parametrize("bound", [None, 50.0])
@pytest.mark.parametrize("task", ["classification", "regression"])
def test_a_truncated_step_passes_the_kink_by_half_of_the_way_and_reports_its_slope(task, bound, form):
    V, y = problem(task, 1)
    loss = Hinge() if task == "classification" else EpsilonInsensitive(0.05)
    feasible = FeasibleSet(1e3, bound)
    rule = MetricStep(1e3, 1.0, Metric.identity(D), 1.0, 10**4, reach=1.5)
    driver = Driver(
        Rows(V), ManyTargets(y), GivenOrder(M),
        ModelAxis.build(loss, [1e-12], [feasible], [rule]),
        SolverState.zeros(1, D, V.dtype), Average(NoWindow()), cut=Cut(64), form=form,
    )  # fmt: skip
    driver.slopes = Slopes.zeros(1, M)
    driver.advance(1)
    f = V[0] @ driver.state.coef[0] + driver.state.intercept[0]
    at_zero = loss.value(y[0, :1], np.zeros(1))[0]
    assert f * np.sign(y[0, 0]) == pytest.approx(1.5 * at_zero, rel=1e-9)
    length = 1.5 * at_zero / (V[0] @ V[0] + (bound is not None))
    assert driver.slopes.mean(np.array([0]))[0, 0] == pytest.approx(
        -np.sign(y[0, 0]) * length / rule.scale, rel=1e-6
    )


def test_folding_the_metric_into_the_maps_multiplies_their_features():
    X = np.random.default_rng(0).normal(size=(300, 4))
    maps = [
        NystroemFeatures.sample(X, Kernel("rbf", 0.5), 30, np.random.default_rng(0), basis="eigen"),
        NystroemFeatures.sample(X, Kernel("rbf", 5.0), 30, np.random.default_rng(0)),
        FourierFeatures.sample(Kernel("rbf", 0.5), 4, 30, np.random.default_rng(0)),
    ]
    assert maps[1].eigenvalues is None
    for phi in maps:
        metric = phi.find_metric(phi(X), None, np.random.default_rng(0))
        mapped = evaluator(phi.in_metric(metric), np.float64)(X)
        np.testing.assert_allclose(mapped, metric.apply(phi(X)), atol=1e-9)
        coef = np.random.default_rng(1).normal(size=(2, 30))
        np.testing.assert_allclose(
            mapped @ coef.T, phi(X) @ metric.apply(coef).T, atol=1e-8 * np.abs(coef).max()
        )


@pytest.mark.parametrize("approximation", ["nystroem", "fourier"])
@pytest.mark.parametrize("intercept", [True, False])
def test_twenty_epochs_in_the_metric_come_closer_than_two_hundred_of_the_papers(
    blobs, approximation, intercept
):
    X, y = blobs[0][:300], blobs[1][:300]
    common = dict(
        approximation=approximation, n_components=30, gamma=1.0, C=10.0, random_state=0,
        fit_intercept=intercept,
    )  # fmt: skip
    ours = AssetClassifier(step="metric", max_iter=20, **common).fit(X, y)
    paper = AssetClassifier(step="robust", step_scale=1.0, max_iter=200, **common).fit(X, y)
    V = ours.feature_map_(X)
    if intercept:
        best = exact.classification(V, y, ours.lam_)[2]
    else:
        best = exact.without_intercept(V, y, ours.lam_, "hinge")[1]
    assert best - 1e-9 <= ours.objective_ < paper.objective_
    assert ours.objective_ <= 1.05 * best


def test_regression_in_the_metric_is_close_to_the_exact_optimum(waves):
    X, y = waves
    model = AssetRegressor(gamma=0.5, C=10.0, epsilon=0.05, max_iter=20, random_state=0).fit(X, y)
    best = exact.regression(model.feature_map_(X), y, model.lam_, 0.05)[2]
    assert best - 1e-9 <= model.objective_ <= 1.03 * best


def test_a_new_metric_between_batches_leaves_the_model_as_it_was():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 3))
    y = np.sign(X[:, 0])
    model = AssetClassifier(approximation=NystroemMap(n_components=20, gamma=0.5), random_state=0)
    for start in range(0, 400, 100):
        model.partial_fit(X[start : start + 100], y[start : start + 100], classes=[-1, 1])
    session = model._fitted.session
    coef, intercept = session.model
    before = session.metric
    session.recent = session.recent.joined(X[200:] * 1.5, np.ones((1, 200)), np.ones(200))
    session._estimate_metric(CpuBackend())
    assert np.abs(session.metric.scale - before.scale).max() > 0.01
    np.testing.assert_allclose(session.model[0], coef, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(session.model[1], intercept)


def test_the_steps_are_those_of_the_theory_page():
    metric = Metric.identity(2)
    known = MetricStep(6.0, 2.0, metric, 0.1, horizon=100)
    lengths = [step_length(known.scale, known.power, known.horizon, j) for j in (1, 51, 101)]
    assert lengths == pytest.approx([0.03, 0.015, 0.0])
    online = MetricStep(6.0, 2.0, metric, 0.1)
    assert step_length(online.scale, online.power, online.horizon, 4) == pytest.approx(0.15)


def test_a_landmark_far_from_all_rows_does_not_lengthen_the_steps_on_it():
    """Its direction is invisible to a sample without it: the eigenvalues are the least that counts."""
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(size=(300, 3)), [[50.0, 0.0, 0.0]]])
    landmarks = X[[*range(40), 300]]
    phi = NystroemFeatures.from_landmarks(landmarks, Kernel("rbf", 0.5), basis="eigen")
    ordinary = phi(X[:300])
    metric = phi.find_metric(ordinary, None, rng)
    lone = np.abs(phi(X[300:])).argmax()
    assert np.mean(ordinary[:, lone] ** 2) < 1e-12
    sigma = np.sqrt(np.maximum(np.mean(ordinary**2, axis=0), phi.eigenvalues / 41))
    np.testing.assert_allclose(metric.scale[lone], np.sqrt(sigma.max() / np.sqrt(1 / 41)), rtol=1e-6)
