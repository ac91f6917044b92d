"""objective_ and dual_gap_: the gap bounds the true suboptimality, against exact solvers."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from asset_svm import AssetClassifier, AssetRegressor
from asset_svm.backends.cpu import CpuBackend
from asset_svm.features import Metric, NystroemFeatures
from asset_svm.kernels import Kernel
from asset_svm.losses import EpsilonInsensitive, Hinge
from asset_svm.problem import CertificateSums, best_dual
from reference import exact
from reference.algorithm import primal

CASES = [
    (intercept, C, epochs, seed)
    for intercept in (True, False)
    for C in (0.1, 10.0)
    for epochs, seed in ((1, 0), (10, 1), (200, 2))
]


class DenseRows:
    """Products with features that lie in memory."""

    def __init__(self, V):
        self.V = V.astype(np.float64)

    def exact_margins(self, coef):
        return coef @ self.V.T

    def exact_sums(self, beta):
        return np.stack([np.minimum(beta, 0.0) @ self.V, np.maximum(beta, 0.0) @ self.V])


def objective(loss, lam, coef, intercept, V, y, weight):
    """The value of (PL) at one (coef, intercept)."""
    values = loss.value(y, V @ coef + intercept)
    return 0.5 * lam * coef @ coef + weight @ values / weight.sum()


def optimum(V, y, lam, loss, intercept):
    if not intercept:
        return exact.without_intercept(V, y, lam, loss)[1]
    if loss == "hinge":
        return exact.classification(V, y, lam)[2]
    return exact.regression(V, y, lam, loss)[2]


@pytest.mark.parametrize(("intercept", "C", "epochs", "seed"), CASES)
def test_the_gap_of_a_classifier_bounds_the_true_one(blobs, intercept, C, epochs, seed):
    X, y = blobs
    X, y = X[:200], y[:200]
    model = AssetClassifier(
        gamma=0.5,
        C=C,
        n_components=30,
        fit_intercept=intercept,
        step="robust",
        max_iter=epochs,
        random_state=seed,
    ).fit(X, y)
    V = model.feature_map_(X)
    best = optimum(V, y, model.lam_, "hinge", intercept)
    suboptimality = model.objective_ - best
    assert -1e-9 <= suboptimality <= model.dual_gap_ + 1e-9
    naive = primal(V, y, np.ones(200), model.lam_, model.map_coef_[0], model.intercept_[0])
    assert model.objective_ == pytest.approx(naive, rel=1e-9)


@pytest.mark.parametrize(("intercept", "C", "epochs", "seed"), CASES)
def test_the_gap_of_a_regressor_bounds_the_true_one(waves, intercept, C, epochs, seed):
    X, y = waves
    X, y = X[:200], y[:200]
    model = AssetRegressor(
        gamma=0.5,
        C=C,
        epsilon=0.05,
        n_components=30,
        fit_intercept=intercept,
        step="robust",
        max_iter=epochs,
        random_state=seed,
    ).fit(X, y)
    V = model.feature_map_(X)
    best = optimum(V, y, model.lam_, 0.05, intercept)
    assert -1e-9 <= model.objective_ - best <= model.dual_gap_ + 1e-9
    naive = primal(
        V, y, np.ones(200), model.lam_, model.map_coef_[0], model.intercept_[0], "regression", 0.05
    )
    assert model.objective_ == pytest.approx(naive, rel=1e-9)


def test_the_gap_closes_as_the_run_goes_on(blobs):
    X, y = blobs
    gaps = [
        AssetClassifier(gamma=0.5, n_components=30, max_iter=n, random_state=0).fit(X, y)
        for n in (2, 20, 400)
    ]
    relative = [model.dual_gap_ / model.objective_ for model in gaps]
    assert relative[0] > 2 * relative[2]
    assert relative[2] < 0.05


def test_a_weight_of_k_has_the_optimum_of_k_copies():
    """The exact optimum of the weighted (PL) equals that of the copies, to 1e-6."""
    rng = np.random.default_rng(0)
    V = rng.normal(size=(60, 4))
    y = np.where(rng.random(60) < 0.5, 1.0, -1.0)
    weight = rng.integers(1, 4, size=60)
    copies = np.repeat(np.arange(60), weight)
    lam = 1.0 / (2.0 * weight.sum())
    coef, b, value = exact.classification(V, y, lam, weight)
    copied, copied_b, copied_value = exact.classification(V[copies], y[copies], lam)
    np.testing.assert_allclose(coef, copied, atol=1e-6)
    assert b == pytest.approx(copied_b, abs=1e-6)
    ours = objective(Hinge(), lam, coef, b, V, y, weight.astype(float))
    assert ours == pytest.approx(value) == pytest.approx(copied_value, abs=1e-6)
    target = V @ rng.normal(size=4)
    one = exact.regression(V, target, lam, 0.1, weight)
    two = exact.regression(V[copies], target[copies], lam, 0.1)
    np.testing.assert_allclose(one[0], two[0], atol=1e-6)


@given(seed=st.integers(0, 10_000), intercept=st.booleans(), regression=st.booleans())
def test_any_slopes_give_a_lower_bound(seed, intercept, regression):
    """Weak duality for arbitrary slopes in range, NaN among them, weights, K = 2."""
    rng = np.random.default_rng(seed)
    V = rng.normal(size=(30, 3))
    weight = rng.uniform(0.1, 3, size=30)
    lam = np.array([0.05, 0.5])
    loss = EpsilonInsensitive(0.1) if regression else Hinge()
    y = rng.normal(size=(2, 30)) if regression else np.sign(rng.normal(size=(2, 30)))
    slopes = rng.uniform(-1, 1, size=(2, 30)) if regression else -y * rng.random((2, 30))
    slopes[:, ::7] = np.nan
    coef, b = rng.normal(size=(2, 3)), rng.normal(size=2) * intercept
    sums = CertificateSums.zeros(*coef.shape)
    sums.add(loss, (coef, b), DenseRows(V), y, weight, slopes)
    found = sums.certificate(lam, coef, free_intercept=intercept)
    for k in range(2):
        mine = objective(loss, lam[k], coef[k], b[k], V, y[k], weight)
        assert found.objective[k] == pytest.approx(mine)
        bound = mine - found.dual_gap[k]
        for _ in range(30):
            other = rng.normal(size=3) * rng.choice([0.01, 0.1, 1, 10])
            value = objective(loss, lam[k], other, rng.normal() * intercept, V, y[k], weight)
            assert value >= bound - 1e-9


def test_the_best_factors_are_the_best_of_a_fine_grid():
    rng = np.random.default_rng(0)
    grid = np.linspace(0, 1, 101)
    for _ in range(20):
        parts, linear = rng.normal(size=(2, 5)), rng.uniform(0, 2, size=2)
        sums = rng.uniform(0.1, 1, size=2)
        values = [
            linear @ p - 0.5 / 0.3 * np.sum((p @ parts) ** 2)
            for p in (np.array([s, t]) for s in grid for t in grid)
        ]
        assert best_dual(0.3, parts, linear, sums, False) >= max(values) - 1e-9


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("C", [0.1, 10.0, 100.0])
@pytest.mark.parametrize("task", ["classification", "regression"])
def test_certify_is_tight_where_average_slopes_say_little(blobs, waves, intercept, C, task):
    """The bound lies below the exact optimum, and within 1 % of it."""
    X, y = blobs if task == "classification" else waves
    X, y = X[:300], y[:300]
    kind = AssetClassifier if task == "classification" else AssetRegressor
    model = kind(
        gamma=0.5, C=C, n_components=20, fit_intercept=intercept, max_iter=30, random_state=0
    ).fit(X, y)
    loss = "hinge" if task == "classification" else 0.1
    best = optimum(model.feature_map_(X), y, model.lam_, loss, intercept)
    value, gap = model.certify(X, y)
    assert value == pytest.approx(model.objective_, rel=1e-6)
    assert -1e-9 <= value - best <= gap + 1e-9
    assert gap <= value - best + 0.01 * best


def test_certify_takes_weights_and_several_classes():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 2))
    y = np.digitize(X[:, 0], [-0.5, 0.5])
    weight = rng.integers(1, 4, size=400)
    model = AssetClassifier(gamma=0.5, n_components=20, random_state=0, sampling="uniform")
    model.fit(X, y, sample_weight=weight)
    value, gap = model.certify(X, y, sample_weight=weight)
    assert value == pytest.approx(model.objective_, rel=1e-6)
    V = model.feature_map_(X)
    best = sum(
        exact.classification(V, np.where(y == k, 1.0, -1.0), model.lam_, weight)[2] for k in range(3)
    )
    assert -1e-9 <= value - best <= gap + 1e-9
    assert gap <= value - best + 0.01 * best
    copies = np.repeat(np.arange(400), weight)
    np.testing.assert_allclose(model.certify(X[copies], y[copies]), (value, gap), rtol=1e-4, atol=1e-3)


def test_the_bound_is_computed_unasked_where_it_is_cheap(blobs):
    X, y = np.tile(blobs[0], (20, 1)), np.tile(blobs[1], 20)
    model = AssetClassifier(gamma=0.5, C=100.0, n_components=10, max_iter=10, random_state=0).fit(X, y)
    assert model.dual_gap_ == pytest.approx(model.certify(X, y)[1], rel=0.2, abs=1e-4)
    assert model.dual_gap_ < 0.05 * model.objective_


def test_tol_stops_by_the_tight_bound(blobs):
    X, y = blobs
    model = AssetClassifier(
        gamma=0.5, C=100.0, n_components=30, tol=0.02, max_iter=200, random_state=0
    ).fit(X, y)
    assert model.n_iter_ < 200
    assert model.dual_gap_ <= 0.02 * model.objective_
    best = exact.classification(model.feature_map_(X), y, model.lam_)[2]
    assert model.objective_ <= 1.02 * best


def test_with_an_intercept_the_factors_balance_the_slopes():
    """Only points with s sums_0 = t sums_1 are points of the dual; the best of them, and no other."""
    rng = np.random.default_rng(1)
    for _ in range(20):
        parts, linear = rng.normal(size=(2, 5)), rng.uniform(0, 2, size=2)
        sums = rng.uniform(0.1, 1, size=2)
        line = [r * sums.min() / sums for r in np.linspace(0, 1, 2001)]
        values = [linear @ p - 0.5 / 0.3 * np.sum((p @ parts) ** 2) for p in line]
        assert best_dual(0.3, parts, linear, sums, True) == pytest.approx(max(values), abs=1e-5)


def rough_rows(seed, task):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(50, 2)).astype(np.float32)
    if task == "classification":
        return X, np.where(X[:, 0] * X[:, 1] + 0.3 * rng.normal(size=50) > 0, 1.0, -1.0)
    return X, np.sin(2 * X[:, 0]) + 0.1 * rng.normal(size=50)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize(("task", "gamma"), [("classification", 0.02), ("regression", 0.5)])
def test_bounds_hold_for_float32_rows_too(seed, intercept, task, gamma):
    """Of the problem with the features as they are, solved in float64 by others."""
    X, y = rough_rows(seed, task)
    kind = AssetClassifier if task == "classification" else AssetRegressor
    options = dict(gamma=gamma, n_components=20, fit_intercept=intercept, random_state=0)
    model = kind(C=1e2, max_iter=300, **options).fit(X, y)
    V = model.feature_map_(X).astype(np.float64)
    loss, offset = ("hinge", 0.0) if task == "classification" else (0.1, model._fitted.task.offset)
    features, targets = V, y - offset
    if not intercept:  # rows and their mirror images: the best b is 0
        features, targets = np.vstack([V, -V]), np.concatenate([targets, -targets])
    best = optimum(features, targets, model.lam_, loss, True)
    value, gap = model.certify(X, y)
    b = model.intercept_[0] - offset + model.feature_map_.drift(model.map_coef_)[0]
    assert model.objective_ - model.dual_gap_ <= best * (1.0 + 2e-6)
    assert value - gap <= best * (1.0 + 2e-6)
    exactly = objective(
        Hinge() if loss == "hinge" else EpsilonInsensitive(loss),
        model.lam_, model.map_coef_[0], b, V, y - offset, np.ones(50),
    )  # fmt: skip
    assert value == pytest.approx(exactly, rel=2e-6)  # steps in the metric round features again


@pytest.mark.parametrize("K", [1, 6])
def test_products_of_certificates_are_those_of_float64(K):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3)).astype(np.float32)
    phi = NystroemFeatures.sample(X, Kernel("rbf", 0.3), 40, rng)
    metric = Metric.of_columns(phi(X), None, np.full(phi.dimension, 1e-6))
    rows = CpuBackend().rows(phi.in_metric(metric), X)
    V = np.concatenate([rows.fetch(np.arange(300))[0][rows.fetch(np.arange(300))[1], : phi.dimension]])
    V = V.astype(np.float64)
    coef, beta = rng.normal(size=(K, phi.dimension)), rng.normal(size=(K, 300))
    for chosen in (np.arange(300), rng.permutation(300)[:123]):
        for scarce in (beta[:, chosen], np.where(rng.random((K, len(chosen))) < 0.05, 1.0, 0.0)):
            block = rows.open(chosen)
            exact_sums = [np.minimum(scarce, 0) @ V[chosen], np.maximum(scarce, 0) @ V[chosen]]
            found = block.exact_sums(scarce)
            np.testing.assert_allclose(found, exact_sums, rtol=0, atol=1e-10)
            margins = block.exact_margins(coef)
            np.testing.assert_allclose(margins, coef @ V[chosen].T, rtol=0, atol=1e-10)
