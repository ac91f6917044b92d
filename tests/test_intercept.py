"""A free intercept: features are centred, the best intercept ends a fit, large targets do no harm."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import make_moons
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC, SVR

from asset_svm import AssetClassifier, AssetRegressor, AssetRegressorCV, NystroemMap
from asset_svm.features import NystroemFeatures
from asset_svm.kernels import Kernel
from asset_svm.losses import EpsilonInsensitive, Hinge, best_intercept


@pytest.fixture(scope="module")
def moons():
    X, y = make_moons(500, noise=0.3, random_state=0)
    X.setflags(write=False)
    return X, y


def people(n=600):
    """Years, heights and weights, and what depends on them."""
    rng = np.random.default_rng(0)
    X = np.column_stack(
        [rng.integers(1950, 2020, n), rng.normal(1.75, 0.1, n), rng.normal(75.0, 12.0, n)]
    )
    return X, (X[:, 2] - 75) / 12 + (X[:, 0] - 1985) / 20 + 0.3 * rng.normal(size=n)


# Columns that are not centred ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "kernel",
    [
        {"kernel": "linear"},
        {"kernel": "poly", "degree": 2, "gamma": 0.01},
        {"kernel": "poly", "degree": 3, "gamma": 0.01},
    ],
    ids=["linear", "poly 2", "poly 3"],
)
@pytest.mark.parametrize("offset", [10.0, 100.0])
def test_an_offset_of_the_columns_costs_no_accuracy(moons, kernel, offset):
    X, y = moons
    if offset == 100.0 and kernel["kernel"] == "poly":
        pytest.skip("SVC itself does not converge")
    ours = AssetClassifier(**kernel, random_state=0).fit(X + offset, y)
    assert (
        ours.score(X + offset, y)
        >= SVC(**kernel, tol=0.01).fit(X + offset, y).score(X + offset, y) - 0.01
    )
    assert ours.dual_gap_ < 0.02 * ours.objective_


def test_years_heights_and_weights_are_learnt_as_by_exact_solvers():
    X, y = people()
    regressor = AssetRegressor(kernel="linear", random_state=0).fit(X, y)
    assert regressor.score(X, y) >= SVR(kernel="linear").fit(X, y).score(X, y) - 0.01
    assert regressor.dual_gap_ < 0.02 * regressor.objective_
    classes = (y > 0).astype(int)
    classifier = AssetClassifier(kernel="linear", random_state=0).fit(X, classes)
    exact = SVC(kernel="linear").fit(X, classes)
    assert classifier.score(X, classes) >= exact.score(X, classes) - 0.01


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_flag_beside_years_is_learnt_from_rows_of_any_type(dtype):
    """The year's square is 10^7 times the variance of the flag: more than float32 holds."""
    rng = np.random.default_rng(0)
    flag = rng.integers(0, 2, 600)
    X = np.column_stack([rng.integers(1950, 2021, 600), flag]).astype(dtype)
    y = flag + 0.01 * (X[:, 0] - 1985) + 0.05 * rng.normal(size=600)
    model = AssetRegressor(kernel="linear", random_state=0).fit(X, y)
    assert model.score(X, y) > 0.98
    assert model.feature_map_.wide == (dtype == np.float32)
    function = model.compiled()
    np.testing.assert_allclose([function(row) for row in X[:5]], model.predict(X[:5]), rtol=1e-6)
    found = AssetRegressorCV(kernel="linear", cv=3, Cs=[1.0], random_state=0).fit(X, y)
    assert found.best_score_ > 0.98


def test_a_stream_of_such_columns_is_learnt_too():
    X, y = people(3000)
    model = AssetRegressor(kernel="linear", C=1.0, random_state=0)
    for start in range(0, 3000, 300):
        model.partial_fit(X[start : start + 300], y[start : start + 300])
    assert model.score(X, y) > 0.9


@pytest.mark.parametrize("approximation", ["nystroem", "fourier"])
def test_decisions_are_those_of_uncentred_kernel_values(moons, approximation):
    X, y = moons
    model = AssetClassifier(
        gamma=0.5, approximation=approximation, n_components=60, random_state=0
    ).fit(X, y)
    phi, inner = model.feature_map_, model.map_coef_
    assert phi.centre is not None
    b = model.intercept_ + phi.drift(inner)
    expected = (phi(X) @ inner.T + b).ravel()
    np.testing.assert_allclose(model.decision_function(X), expected, rtol=1e-9, atol=1e-9)
    if approximation == "nystroem":
        K = np.exp(-0.5 * ((X[:, None] - model.components_) ** 2).sum(axis=2))
        plain = (K @ model.dual_coef_.T + model.intercept_).ravel()
        np.testing.assert_allclose(model.decision_function(X), plain, rtol=1e-9, atol=1e-9)


def test_a_centred_map_with_all_rows_as_landmarks_is_the_centred_kernel(moons):
    X = moons[0][:60]
    kernel = Kernel("rbf", 0.5)
    phi = NystroemFeatures.from_landmarks(X, kernel, centred=True, basis="eigen")
    V, H = phi(X), np.eye(60) - 1 / 60
    np.testing.assert_allclose(V @ V.T, H @ kernel(X, X) @ H, atol=1e-9)
    np.testing.assert_allclose(V.sum(axis=0), 0.0, atol=1e-7)


@pytest.mark.parametrize("options", [{"step": "robust"}, {"step": "strong"}, {"intercept_bound": 5.0}])
def test_the_papers_steps_and_a_bound_of_the_users_are_for_features_as_they_are(moons, options):
    X, y = moons
    model = AssetClassifier(**options, max_iter=3, n_components=30, random_state=0).fit(X, y)
    assert model.feature_map_.centre is None


def test_a_warm_start_goes_on_from_the_intercept_it_ended_at(moons):
    X, y = moons
    model = AssetClassifier(gamma=1.0, n_components=50, warm_start=True, random_state=0).fit(X, y)
    before, objective = model.decision_function(X), model.objective_
    model.set_params(max_iter=1).fit(X, y)
    assert model.objective_ < 1.05 * objective
    assert np.abs(model.decision_function(X) - before).mean() < 0.1


def test_a_bound_of_the_users_holds_whatever_would_be_better(moons):
    X, y = moons
    for bound in (0.01, 1.0):
        model = AssetClassifier("linear", intercept_bound=bound, random_state=0).fit(X + 3.0, y)
        assert abs(model.intercept_[0]) <= bound


def test_a_map_of_ones_own_far_from_0_is_solved_too(moons):
    X, y = moons
    options = dict(kernel="poly", degree=3, gamma=1.0, coef0=1.0)
    phi = NystroemMap(n_components=100, random_state=0, **options)
    model = AssetClassifier(approximation=phi, random_state=0).fit(X + 10.0, y)
    assert model.feature_map_.centre is None
    assert model.dual_gap_ < 0.02 * model.objective_


def test_compaction_far_from_0_keeps_what_tells_rows_apart(moons):
    X, y = moons
    model = AssetClassifier("poly", gamma=1.0, coef0=1.0, random_state=0).fit(X + 100.0, y)
    assert model.compact().score(X + 100.0, y) >= model.score(X + 100.0, y) - 0.01


def test_compaction_of_a_centred_model_keeps_its_decisions(moons):
    X, y = moons
    model = AssetClassifier(gamma=0.5, n_components=100, random_state=0).fit(X, y)
    small = model.compact()
    assert len(small.components_) < 100
    np.testing.assert_allclose(small.decision_function(X), model.decision_function(X), atol=1e-3)


# The intercept ---------------------------------------------------------------------------------------

FLAT = {
    "gamma of 1e-8": (lambda X: X, {"gamma": 1e-8}),
    "a constant column of 1e6": (lambda X: np.column_stack([X, np.full(len(X), 1e6)]), {}),
    "columns of 1e-6": (lambda X: 1e-6 * X, {"kernel": "linear"}),
}


@pytest.mark.parametrize("case", FLAT)
def test_flat_kernels_tell_classes_apart_as_exact_solvers_do(moons, case):
    change, options = FLAT[case]
    X, y = change(moons[0]), moons[1]
    exact = SVC(**options).fit(X, y).score(X, y)
    assert exact > 0.75
    assert AssetClassifier(**options, random_state=0).fit(X, y).score(X, y) >= exact - 0.02


def test_early_stopping_ends_at_a_good_intercept_too(moons):
    X, y = moons
    model = AssetClassifier(gamma=1e-8, early_stopping=True, random_state=0).fit(X, y)
    assert model.score(X, y) > 0.75


weights = st.lists(st.floats(0.01, 10.0), min_size=2, max_size=30)


@settings(max_examples=60, deadline=None)
@given(weights, st.integers(0, 10**6), st.sampled_from([Hinge(), EpsilonInsensitive(0.3)]))
def test_no_other_intercept_is_better(weight, seed, loss):
    rng = np.random.default_rng(seed)
    n, weight = len(weight), np.array(weight)
    y = rng.choice([-1.0, 1.0], n) if isinstance(loss, Hinge) else rng.normal(size=n)
    margins = rng.normal(size=n)
    best = best_intercept(loss, y, margins, weight)

    def total(b):
        return float(weight @ loss.value(y, margins + b))

    others = [best - 1.0, best + 1.0, best - 1e-3, best + 1e-3, *(y - margins), *rng.normal(size=5)]
    assert all(total(best) <= total(b) + 1e-9 for b in others)


def test_the_middle_is_taken_where_an_interval_is_best():
    y, margins = np.array([1.0, 1.0, -1.0, -1.0]), np.array([0.1, -0.1, 0.2, -0.2])
    # Every b from -1 + 0.2 to 1 - 0.1 has all rows inside their margins: the sum is flat there.
    assert best_intercept(Hinge(), y, margins, np.ones(4)) == pytest.approx(0.5 * (0.9 - 0.8))
    assert best_intercept(EpsilonInsensitive(1.0), np.zeros(3), np.zeros(3), np.ones(3)) == 0.0


def test_rows_of_no_weight_do_not_move_the_middle_of_the_best_intercepts():
    y, margins = np.array([1.0, -1.0, 1.0]), np.array([1.0, -2.0, 0.8])
    weight = np.array([1.0, 1.0, 0.0])
    expected = best_intercept(Hinge(), y[:2], margins[:2], weight[:2])
    assert best_intercept(Hinge(), y, margins, weight) == expected == 0.5


def test_a_fit_ends_at_the_best_intercept_for_its_coef(moons):
    X, y = moons
    model = AssetClassifier(gamma=1.0, C=10.0, n_components=80, random_state=0).fit(X, y)
    margins = model.decision_function(X) - model.intercept_
    best = best_intercept(Hinge(), np.where(y == 1, 1.0, -1.0), margins, np.ones(len(y)))
    assert model.intercept_[0] == pytest.approx(best, abs=1e-9)


# Large C ---------------------------------------------------------------------------------------------


def board(n, seed):
    rng = np.random.default_rng(seed)
    X = rng.uniform(0.0, 8.0, (n, 2))
    return X, (np.floor(X).sum(axis=1) % 2).astype(int)


def test_a_large_C_with_a_smooth_kernel_is_solved():
    X, y = board(1000, 0)
    ours = AssetClassifier(gamma=0.3, C=1e5, random_state=0).fit(X, y)
    assert ours.dual_gap_ < 0.05 * ours.objective_
    tested = board(3000, 1)
    exact = SVC(gamma=0.3, C=1e5, tol=0.1).fit(X, y).score(*tested)
    assert ours.score(*tested) >= exact - 0.02


def test_a_model_that_is_known_to_be_far_off_is_told_of(monkeypatch):
    X, y = board(500, 0)
    monkeypatch.setattr("asset_svm.training.certificate.UNFINISHED", np.inf)  # nothing is finished
    model = AssetClassifier(gamma=0.3, C=1e5, n_components=200, max_iter=2, random_state=0)
    with pytest.warns(ConvergenceWarning, match="another model fits these rows much better"):
        model.fit(X, y)


# A target far from all others ------------------------------------------------------------------------


def outlier(size):
    rng = np.random.default_rng(0)
    X = rng.uniform(-3.0, 3.0, (500, 2))
    y = 2.0 * np.sin(X[:, 0]) + X[:, 1] + 0.3 * rng.normal(size=500)
    y[7] = size
    return X, y, np.arange(500) != 7


@pytest.mark.parametrize("size", [1e4, -1e8, 1e12])
@pytest.mark.parametrize("C", [1.0, 100.0])
def test_one_target_far_away_does_not_spoil_the_others(size, C):
    X, y, others = outlier(size)
    ours = AssetRegressor(gamma=1.0, C=C, random_state=0).fit(X, y)
    exact = SVR(gamma=1.0, C=C).fit(X, y)
    assert ours.score(X[others], y[others]) >= exact.score(X[others], y[others]) - 0.01
    # The objective is that of the targets as they are.
    regulariser = 0.5 * ours.lam_ * float(ours.map_coef_[0] @ ours.map_coef_[0])
    losses = np.maximum(np.abs(y - ours.predict(X)) - 0.1, 0.0)
    assert ours.objective_ == pytest.approx(regulariser + losses.mean(), rel=1e-6)


def test_many_targets_far_away_spoil_nothing_and_raise_no_alarm():
    rng = np.random.default_rng(21)
    X = rng.normal(size=(500, 6))
    y = X[:, 0] + np.sin(X[:, 1])
    far = y.copy()
    far[:200] = 1e9 * rng.normal(size=200)
    assert AssetRegressor(random_state=0).fit(X, far).score(X[200:], y[200:]) > 0.95
    far[:200] = 1e6
    weight = np.where(np.arange(500) < 200, 1e-9, 1.0)
    model = AssetRegressor(random_state=0).fit(X, far, sample_weight=weight)
    assert model.score(X[200:], y[200:]) > 0.95


def test_a_stream_survives_such_a_target():
    X, y, others = outlier(1e12)
    model = AssetRegressor(gamma=1.0, random_state=0)
    for _ in range(4):
        for start in range(0, 500, 125):
            model.partial_fit(X[start : start + 125], y[start : start + 125])
    assert model.score(X[others], y[others]) > 0.9
