"""Every loss: definitions as properties, kinks by name, and solvers that nobody here wrote."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import expit
from sklearn.datasets import make_moons
from sklearn.linear_model import HuberRegressor, LogisticRegression
from sklearn.metrics import log_loss
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import LinearSVC, LinearSVR
from sklearn.utils.estimator_checks import parametrize_with_checks

from asset_svm import AssetClassifier, AssetRegressor, NystroemMap, load, save
from asset_svm.cli.main import main
from asset_svm.losses import LOSSES as LOSS_TYPES
from asset_svm.losses import (
    EpsilonInsensitive,
    Hinge,
    Huber,
    Logistic,
    Pinball,
    SquaredEpsilonInsensitive,
    SquaredHinge,
    axis_arguments,
    best_intercept,
    loop_arguments,
    scalar_excess,
    scalar_slope,
)
from asset_svm.tasks import Classification

reals = st.floats(-100, 100, allow_nan=False)
CLASSES = (Hinge(), SquaredHinge(), Logistic())
NUMBERS = (
    EpsilonInsensitive(0.5),
    SquaredEpsilonInsensitive(0.0),
    SquaredEpsilonInsensitive(0.5),
    Huber(0.5),
    Huber(3.0),
    Pinball((0.5,)),
    Pinball((0.1,)),
    Pinball((0.75,)),
)
EVERY = pytest.mark.parametrize("loss", [*CLASSES, *NUMBERS], ids=str)
X_MOONS, Y_MOONS = make_moons(400, noise=0.25, random_state=0)
RNG = np.random.default_rng(0)
X_SINE = RNG.uniform(0.0, 6.0, (400, 1))
Y_SINE = np.sin(X_SINE[:, 0]) + 0.2 * RNG.standard_t(3, 400)


def target(loss, y):
    return float(np.where(y >= 0, 1.0, -1.0)) if loss in CLASSES else y


# Definitions ----------------------------------------------------------------------------------------


def test_every_loss_is_tested_here():
    assert {type(loss) for loss in (*CLASSES, *NUMBERS)} == set(LOSS_TYPES)


@EVERY
@given(y=reals, f=reals, other=reals)
def test_slopes_satisfy_the_subgradient_inequality(loss, y, f, other):
    y = target(loss, y)
    rise = loss.slope(y, f) * (other - f)
    size = 1.0 + abs(rise) + loss.value(y, f)
    assert loss.value(y, other) >= loss.value(y, f) + rise - 1e-12 * size


@EVERY
@given(y=reals, f=reals)
def test_compiled_slopes_and_values_equal_those_of_the_losses(loss, y, f):
    y = target(loss, y)
    near = {"rel": 1e-14, "abs": 1e-300}
    assert scalar_slope(*loop_arguments(loss), y, f) == pytest.approx(loss.slope(y, f), **near)
    excess = scalar_excess(*loop_arguments(loss), y, f)
    assert max(excess, 0.0) == pytest.approx(loss.value(y, f), **near)


@EVERY
@given(y=reals, f=reals, fraction=st.floats(0.0, 1.0))
def test_conjugates_satisfy_fenchel_and_young(loss, y, f, fraction):
    y = target(loss, y)
    touching = loss.slope(y, f)
    size = 1.0 + abs(touching * f) + abs(touching * y) + loss.value(y, f)
    met = loss.value(y, f) + loss.conjugate(y, touching)
    assert met == pytest.approx(touching * f, abs=1e-11 * size)
    slope = fraction * touching
    assert loss.value(y, f) + loss.conjugate(y, slope) >= slope * f - 1e-11 * size


@EVERY
@given(y=reals, f=reals, share=st.floats(0.0, 1.0))
def test_the_conjugate_of_a_part_of_a_slope_is_at_most_that_part_of_it(loss, y, f, share):
    """The bound of a run shrinks its slopes, and takes their conjugates for linear (``problem``)."""
    y = target(loss, y)
    slope = loss.slope(y, f)
    whole = loss.conjugate(y, slope)
    assert loss.conjugate(y, share * slope) <= share * whole + 1e-9 * (1.0 + abs(whole) + slope**2)


@EVERY
@given(y=reals, f=reals)
def test_the_loss_is_a_function_of_how_far_a_margin_is_beyond_its_kink(loss, y, f):
    """h(t) - tilt t; t falls by ``side`` times what f gains."""
    y = target(loss, y)
    side, t = (np.asarray(part, dtype=np.float64).reshape(1) for part in loss.kink(y, f))
    if loss.is_smooth:
        h, p, width = loss.rounded(t)
        penalty = loss.penalty(p)
        # Fenchel and Young again, of h: h(t) = p t - h*(p)
        assert h[0] == pytest.approx(p[0] * (t[0] - penalty[0]), rel=1e-9, abs=1e-9)
        assert (width > 0.0).all()
    else:
        h, p = np.maximum(t, 0.0), (t > 0.0).astype(float)
    assert loss.value(y, f) == pytest.approx(h[0] - loss.tilt * t[0], rel=1e-12, abs=1e-9)
    if t[0] != 0.0:
        assert loss.slope(y, f) == pytest.approx(-side[0] * (p[0] - loss.tilt), rel=1e-12, abs=1e-12)


@EVERY
@given(y=st.lists(reals, min_size=1, max_size=6), cost=st.floats(0.1, 10.0))
def test_the_box_holds_every_solution(loss, y, cost):
    """At a solution the losses sum up to at most those of f = 0: here one row has all of that."""
    y = np.array([target(loss, each) for each in y])
    low, high = loss.box(y, np.full(len(y), cost))
    assert (low <= 0.0).all() and (high >= 0.0).all()
    if np.isinf(loss.steepest):
        t = np.sqrt(loss.value(y, np.zeros(len(y))).sum())
        for i, side in enumerate(loss.kink(y, np.zeros(len(y)))[0]):
            assert low[i] - 1e-9 <= side * 2.0 * cost * t <= high[i] * (1 + 1e-12) + 1e-9
    else:
        for f in (-1e3, 0.0, 1e3):
            beta = -cost * loss.slope(y, np.full(len(y), f))
            assert (low <= beta + 1e-12).all() and (beta <= high + 1e-12).all()


@EVERY
def test_the_best_intercept_is_the_best(loss):
    rng = np.random.default_rng(1)
    y = rng.normal(size=31) if loss in NUMBERS else np.sign(rng.normal(size=31) + 0.3)
    g, weight = rng.normal(size=31), rng.uniform(0.1, 2.0, 31)
    b = best_intercept(loss, y, g, weight)
    grid = np.linspace(-6.0, 6.0, 4001)
    values = [weight @ loss.value(y, g + each) for each in grid]
    assert weight @ loss.value(y, g + b) <= min(values) + 1e-9


@EVERY
def test_solutions_are_inside_the_ball_and_the_bound_of_the_intercept(loss):
    """Of five rows in two columns, solved by scipy from several starts."""
    rng = np.random.default_rng(2)
    V, lam = rng.normal(size=(5, 2)), 0.05
    y = rng.normal(size=5) if loss in NUMBERS else np.array([1.0, -1.0, 1.0, 1.0, -1.0])

    def objective(x):
        return 0.5 * lam * x[:2] @ x[:2] + loss.value(y, V @ x[:2] + x[2]).mean()

    best = min(
        (
            minimize(objective, start, method="Nelder-Mead", options={"maxiter": 4000, "xatol": 1e-9})
            for start in (np.zeros(3), np.ones(3), -np.ones(3))
        ),
        key=lambda found: found.fun,
    ).x
    radius = loss.radius(lam, np.abs(y).max())
    assert np.linalg.norm(best[:2]) <= radius * (1 + 1e-6)
    reach = radius * np.linalg.norm(V, axis=1).max()
    assert abs(best[2]) <= loss.intercept_bound(np.abs(y).max(), reach) + 1e-6


def test_kinks_by_name():
    """At a kink the slope is 0, where 0 is one; smooth losses have none."""
    pinball, square, tube = Pinball((0.2,)), SquaredHinge(), SquaredEpsilonInsensitive(0.5)
    assert pinball.slope(2.0, 2.0) == 0.0 and pinball.value(2.0, 2.0) == 0.0
    assert pinball.slope(2.0, 1.9) == -0.2 and pinball.slope(2.0, 2.1) == pytest.approx(0.8)
    assert pinball.value(2.0, 1.0) == pytest.approx(0.2) and pinball.value(2.0, 3.0) == pytest.approx(
        0.8
    )
    assert square.slope(1.0, 1.0) == 0.0 and square.slope(-1.0, -1.0) == 0.0
    assert square.slope(1.0, 0.5) == -1.0 and square.value(1.0, 0.5) == 0.25
    assert tube.slope(1.0, 0.5) == 0.0 and tube.slope(1.0, 0.0) == -1.0 and tube.value(1.0, 0.0) == 0.25
    huber = Huber(0.5)
    assert (
        huber.slope(1.0, 0.5) == -1.0 and huber.slope(1.0, 0.0) == -1.0 and huber.slope(1.0, 1.0) == 0.0
    )
    assert huber.value(1.0, 0.5) == 0.25 and huber.value(1.0, 0.0) == 0.75
    assert Logistic().slope(1.0, 0.0) == -0.5 and Logistic().value(1.0, 0.0) == pytest.approx(
        np.log(2.0)
    )
    assert Logistic().value(1.0, -1e4) == 1e4 and Logistic().slope(1.0, 1e4) == 0.0


def test_quantiles_of_an_axis_come_round_again():
    loss = Pinball((0.1, 0.9))
    y, f = np.zeros((4, 3)), np.full((4, 3), -1.0)
    np.testing.assert_allclose(loss.value(y, f)[:, 0], [0.1, 0.9, 0.1, 0.9])
    np.testing.assert_allclose(axis_arguments(loss, 4)[1], [0.1, 0.9, 0.1, 0.9])
    assert loss.of_model(3) == Pinball((0.9,)) and Hinge().of_model(3) == Hinge()


# Bounds ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"n_cells": 1},
        {"n_cells": 1, "fit_intercept": True},
        {"n_cells": 2, "C": 1e3, "gamma": 0.01},
        {"step": "robust", "max_iter": 60},
        {"approximation": "fourier", "n_components": 100, "fit_intercept": False},
    ],
    ids=str,
)
@pytest.mark.parametrize("loss", ["squared_hinge", "logistic", "squared_epsilon_insensitive", "huber"])
def test_the_bound_is_below_the_objective_and_near_it(loss, options):
    classes = loss in ("squared_hinge", "logistic")
    if loss == "logistic" and "n_cells" in options:
        pytest.skip("logistic cells are refused")
    kind, X, y = (AssetClassifier, X_MOONS, Y_MOONS) if classes else (AssetRegressor, X_SINE, Y_SINE)
    ours = kind(loss=loss, **{"gamma": 1.0, "random_state": 0, **options}).fit(X, y)
    assert 0.0 <= ours.dual_gap_ < (0.15 if "step" in options else 0.02) * ours.objective_
    if "n_cells" not in options:
        objective, gap = ours.certify(X, y)
        assert objective == pytest.approx(ours.objective_, rel=1e-3)
        assert 0.0 <= gap < (0.15 if "step" in options else 0.01) * objective


# Exact solvers --------------------------------------------------------------------------------------


def features(X, y, **options):
    """The rows of the map of a fit, by which scikit-learn's linear models solve (PL) too."""
    made = NystroemMap(gamma=1.0, n_components=60, random_state=0, **options).fit(X)
    return made, made.transform(X)


def test_logistic_regression_on_features_is_that_of_scikit_learn():
    made, V = features(X_MOONS, Y_MOONS)
    exact = LogisticRegression(C=2.0, tol=1e-10, max_iter=10_000).fit(V, Y_MOONS)
    ours = AssetClassifier(loss="logistic", approximation=made, C=2.0, random_state=0).fit(
        X_MOONS, Y_MOONS
    )
    np.testing.assert_allclose(ours.predict_proba(X_MOONS), exact.predict_proba(V), atol=0.01)
    f = exact.decision_function(V)
    signs = 2.0 * Y_MOONS - 1.0
    optimum = np.logaddexp(0.0, -signs * f).mean() + exact.coef_[0] @ exact.coef_[0] / (2 * 2.0 * 400)
    assert optimum - 1e-7 <= ours.objective_ <= 1.002 * optimum
    assert ours.objective_ - ours.dual_gap_ <= optimum + 1e-7


def test_the_squared_hinge_on_features_is_that_of_liblinear():
    """LinearSVC penalises the intercept, too: without one both pose the same problem."""
    made, V = features(X_MOONS, Y_MOONS)
    exact = LinearSVC(loss="squared_hinge", C=2.0, fit_intercept=False, tol=1e-8, max_iter=100_000)
    f = exact.fit(V, Y_MOONS).decision_function(V)
    ours = AssetClassifier(
        loss="squared_hinge", approximation=made, C=2.0, fit_intercept=False, random_state=0
    ).fit(X_MOONS, Y_MOONS)
    assert np.abs(ours.decision_function(X_MOONS) - f).max() < 0.05
    optimum = np.maximum(1.0 - (2 * Y_MOONS - 1) * f, 0.0) ** 2
    optimum = optimum.mean() + exact.coef_[0] @ exact.coef_[0] / (2 * 2.0 * 400)
    assert ours.objective_ == pytest.approx(optimum, rel=2e-3)


def test_the_squared_tube_on_features_is_that_of_liblinear():
    made, V = features(X_SINE, Y_SINE)
    exact = LinearSVR(
        loss="squared_epsilon_insensitive", epsilon=0.1, C=2.0, fit_intercept=False, tol=1e-8,
        max_iter=100_000,
    ).fit(V, Y_SINE)  # fmt: skip
    ours = AssetRegressor(
        loss="squared_epsilon_insensitive", approximation=made, C=2.0, fit_intercept=False,
        random_state=0,
    ).fit(X_SINE, Y_SINE)  # fmt: skip
    assert np.abs(ours.predict(X_SINE) - exact.predict(V)).max() < 0.02


def test_huber_on_a_line_is_that_of_scikit_learn():
    """Its scale is free, so it is given what it found: epsilon times that; no penalty to speak of."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(300, 3))
    y = X @ [1.0, -2.0, 0.5] + 3.0 + 0.3 * rng.standard_t(2, 300)
    exact = HuberRegressor(epsilon=1.35, alpha=0.0, tol=1e-10, max_iter=10_000).fit(X, y)
    for options in ({}, {"n_cells": 1}):
        ours = AssetRegressor(
            "linear", loss="huber", epsilon=1.35 * exact.scale_, C=1e4, fit_intercept=True,
            random_state=0, **options,
        ).fit(X, y)  # fmt: skip
        np.testing.assert_allclose(ours.predict(X), exact.predict(X), atol=0.02)


@pytest.mark.parametrize("loss", ["squared_hinge", "squared_epsilon_insensitive", "huber"])
def test_a_cell_is_the_kernel_machine_that_scipy_finds(loss):
    """(PL) over f = K beta with a penalty beta K beta / 2, by L-BFGS: it is smooth."""
    classes = loss == "squared_hinge"
    X, y = (X_MOONS[:120], 2.0 * Y_MOONS[:120] - 1.0) if classes else (X_SINE[:120], Y_SINE[:120])
    own = {"squared_hinge": SquaredHinge(), "huber": Huber(0.1)}.get(
        loss, SquaredEpsilonInsensitive(0.1)
    )
    K, C = rbf_kernel(X, gamma=1.0) + 1e-9 * np.eye(120), 2.0
    factor = np.linalg.cholesky(K)

    def objective(x):
        f = factor @ x[:-1] + x[-1]
        slope = C * own.slope(y, f)
        value = 0.5 * x[:-1] @ x[:-1] + C * own.value(y, f).sum()
        return value, np.append(x[:-1] + factor.T @ slope, slope.sum())

    options = {"maxiter": 20_000, "maxfun": 20_000, "ftol": 1e-15, "gtol": 1e-9}
    found = minimize(objective, np.zeros(121), jac=True, method="L-BFGS-B", options=options)
    kind = AssetClassifier if classes else AssetRegressor
    ours = kind(loss=loss, gamma=1.0, C=C, n_cells=1, fit_intercept=True, tol=1e-6, random_state=0)
    ours.fit(X, y)
    assert ours.objective_ == pytest.approx(found.fun / (C * 120), rel=1e-4)
    f = ours.decision_function(X) if classes else ours.predict(X)
    assert np.abs(f - (factor @ found.x[:-1] + found.x[-1])).max() < 0.02


# Probabilities --------------------------------------------------------------------------------------


def test_probabilities_of_the_logistic_loss_are_those_of_the_data():
    """y = 1 with probability expit(2 sin x): 4000 rows tell it to a few hundredths."""
    rng = np.random.default_rng(4)
    X = rng.uniform(0.0, 6.0, (4000, 1))
    truth = expit(2.0 * np.sin(X[:, 0]))
    y = rng.random(4000) < truth
    ours = AssetClassifier(loss="logistic", C=1.0, n_components=100, random_state=0).fit(X, y)
    found = ours.predict_proba(X)
    assert found.shape == (4000, 2) and np.allclose(found.sum(axis=1), 1.0)
    assert np.sqrt(np.mean((found[:, 1] - truth) ** 2)) < 0.04
    assert log_loss(y, found) < log_loss(y, truth) + 0.01
    assert found[:, 1].mean() == pytest.approx(y.mean(), abs=0.01)


def test_of_several_classes_probabilities_add_up():
    y = np.array(["a", "b", "c"])[np.digitize(X_MOONS[:, 0], [0.0, 1.0])]
    ours = AssetClassifier(loss="logistic", n_components=50, random_state=0).fit(X_MOONS, y)
    found = ours.predict_proba(X_MOONS)
    assert found.shape == (400, 3) and np.allclose(found.sum(axis=1), 1.0)
    np.testing.assert_array_equal(ours.classes_[found.argmax(axis=1)], ours.predict(X_MOONS))


def test_logarithms_of_probabilities_are_there_too():
    ours = AssetClassifier(loss="logistic", n_components=30, random_state=0).fit(X_MOONS, Y_MOONS)
    found = ours.predict_log_proba(X_MOONS)
    np.testing.assert_allclose(np.exp(found), ours.predict_proba(X_MOONS))
    np.testing.assert_allclose(found[:, 1] - found[:, 0], ours.decision_function(X_MOONS), rtol=1e-5)
    with pytest.raises(AttributeError, match=r"'predict_log_proba': .*loss=\"logistic\""):
        AssetClassifier().predict_log_proba  # noqa: B018


def test_rows_far_from_all_classes_have_the_probabilities_of_the_nearest():
    task = Classification(classes=np.arange(3), loss_name="logistic")
    decisions = np.array([[-900.0, -800.0, -1000.0], [40.0, 90.0, 50.0], [-1.0, -2.0, 0.5]])
    found = np.exp(task.log_probabilities(decisions))
    np.testing.assert_allclose(found.sum(axis=1), 1.0)
    np.testing.assert_allclose(found[0], [0.0, 1.0, 0.0], atol=1e-40)
    np.testing.assert_allclose(found[2], expit(decisions[2]) / expit(decisions[2]).sum())


def test_pairs_promise_no_probabilities_before_a_fit():
    ours = AssetClassifier(loss="logistic", multi_class="ovo", n_components=20, random_state=0)
    assert not hasattr(ours, "predict_proba")
    assert hasattr(ours.fit(X_MOONS, Y_MOONS), "predict_proba")  # two classes are one pair
    assert not hasattr(ours.fit(X_MOONS, np.arange(400) % 3), "predict_proba")


def test_other_losses_say_how_to_get_probabilities():
    ours = AssetClassifier(n_components=20, max_iter=2, random_state=0).fit(X_MOONS, Y_MOONS)
    assert not hasattr(ours, "predict_proba")
    with pytest.raises(AttributeError, match=r'CalibratedClassifierCV.*or set loss="logistic"'):
        ours.predict_proba  # noqa: B018


def test_a_loss_that_is_set_after_a_fit_is_that_of_the_next_one():
    ours = AssetClassifier(n_components=20, random_state=0).fit(X_MOONS, Y_MOONS)
    ours.set_params(loss="logistic")
    with pytest.raises(ValueError, match=r"after a fit with the hinge loss, .*; call fit"):
        ours.predict_proba(X_MOONS)
    with pytest.raises(ValueError, match="loss='logistic' was set after a fit with loss='hinge'"):
        ours.partial_fit(X_MOONS[:50], Y_MOONS[:50])
    assert ours.fit(X_MOONS, Y_MOONS).predict_proba(X_MOONS).shape == (400, 2)


# Refusals, files, commands --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "parameters", "said"),
    [
        (
            AssetClassifier,
            {"loss": "logistic", "n_cells": 2},
            'set n_cells=None, or loss="squared_hinge"',
        ),
        (AssetClassifier, {"loss": "huber"}, 'loss="huber"'),
        (AssetRegressor, {"loss": "hinge"}, 'loss="hinge"'),
        (AssetRegressor, {"loss": "huber", "epsilon": 0.0}, "set epsilon above 0"),
    ],
)
def test_losses_that_cannot_be(kind, parameters, said):
    with pytest.raises(ValueError, match=said):
        kind(**parameters).fit(X_MOONS, Y_MOONS)


@pytest.mark.parametrize(
    ("kind", "loss", "options"),
    [
        (AssetClassifier, "squared_hinge", {}),
        (AssetClassifier, "squared_hinge", {"n_cells": 2}),
        (AssetClassifier, "logistic", {}),
        (AssetRegressor, "squared_epsilon_insensitive", {"n_cells": 2}),
        (AssetRegressor, "huber", {}),
    ],
)
def test_a_model_file_predicts_and_goes_on_bit_for_bit(kind, loss, options, tmp_path):
    X, y = (X_MOONS, Y_MOONS) if kind is AssetClassifier else (X_SINE, Y_SINE)
    ours = kind(loss=loss, n_jobs=1, random_state=0, **options).fit(X, y)
    save(ours, tmp_path / "m.asset", resumable=True)
    read = load(tmp_path / "m.asset")
    assert read.loss == loss
    for each in (read, ours):
        each.partial_fit(X[:50], y[:50])
    np.testing.assert_array_equal(read._decide(X), ours._decide(X))
    if loss == "logistic":
        np.testing.assert_array_equal(read.predict_proba(X), ours.predict_proba(X))


@pytest.mark.filterwarnings("ignore:.* changed nothing")
@parametrize_with_checks(
    [
        AssetClassifier(loss="logistic", max_iter=30),
        AssetClassifier(loss="squared_hinge", max_iter=30),
        AssetRegressor(loss="squared_epsilon_insensitive", max_iter=30),
        AssetRegressor(loss="huber", n_cells=3),
    ],
    # Newton's method ends a fit of a smooth loss, and where it is unique weights are copies.
    expected_failed_checks=lambda each: (
        {}
        if each.loss == "logistic"
        else dict.fromkeys(
            (
                "check_sample_weight_equivalence_on_dense_data",
                "check_sample_weight_equivalence_on_sparse_data",
            ),
            "the method is stochastic",
        )
    ),
)
def test_scikit_learn_checks_pass(estimator, check, monkeypatch):
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")
    check(estimator)


def test_commands_take_a_loss(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    cells = np.column_stack([X_MOONS, Y_MOONS])
    np.savetxt("moons.csv", cells, delimiter=",", header="a,b,y", comments="")
    assert main(["train", "moons.csv", "--loss", "logistic", "--test", "moons.csv"]) == 0
    assert "test log loss" in capsys.readouterr().out
    assert main(["predict", "moons.asset", "moons.csv", "--probability"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("prediction,probability_0") and len(lines) == 401
    assert main(["train", "moons.csv", "--loss", "huber", "-o", "h.asset"]) == 0
    assert "AssetRegressor" in capsys.readouterr().out
    assert main(["train", "moons.csv", "--loss", "best"]) == 2
    assert "loss" in capsys.readouterr().err
