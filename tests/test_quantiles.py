"""Quantiles: exact solvers that nobody here wrote, coverage, order, files, streams, commands."""

import csv
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.base import clone
from sklearn.linear_model import QuantileRegressor
from sklearn.metrics import d2_pinball_score, mean_pinball_loss
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import SVR
from sklearn.utils.estimator_checks import parametrize_with_checks

from asset_svm import AssetQuantileRegressor, load, open_rows, save
from asset_svm.cli.main import main
from asset_svm.cli.quantiles import QuantileScores
from asset_svm.data.scan import scan
from asset_svm.estimators.files import fit_rows
from asset_svm.tasks import Quantiles
from asset_svm.tasks.quantiles import in_order, weighted_quantiles

RNG = np.random.default_rng(0)
X = RNG.uniform(0.0, 6.0, (600, 1))
Y = np.sin(X[:, 0]) + (0.1 + 0.1 * X[:, 0]) * RNG.normal(size=600)
WEIGHT = RNG.uniform(0.2, 3.0, 600)
LEVELS = (0.1, 0.5, 0.9)
for array in (X, Y, WEIGHT):
    array.setflags(write=False)


def model(**parameters):
    return AssetQuantileRegressor(**{"C": 10.0, "random_state": 0, **parameters})


def pinball(fitted, levels=LEVELS, rows=X, y=Y):
    return np.mean([mean_pinball_loss(y, f, alpha=q) for q, f in zip(levels, fitted.T, strict=True)])


# Exact solvers --------------------------------------------------------------------------------------


@pytest.mark.parametrize("q", [0.15, 0.5, 0.8])
@pytest.mark.parametrize("options", [{"n_cells": 1}, {}], ids=["cell", "map"])
def test_without_a_penalty_it_is_the_linear_program_of_scikit_learn(q, options):
    """kernel="linear" and C = 1e4: the penalty is nothing beside the losses."""
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(200, 3))
    y = rows @ [1.0, -2.0, 0.5] + 3.0 + rng.standard_t(3, 200) * np.exp(0.3 * rows[:, 0])
    exact = QuantileRegressor(quantile=q, alpha=0.0, solver="highs").fit(rows, y)
    ours = model(kernel="linear", quantiles=q, C=1e4, fit_intercept=True, **options).fit(rows, y)
    wanted = mean_pinball_loss(y, exact.predict(rows), alpha=q)
    assert wanted <= mean_pinball_loss(y, ours.predict(rows), alpha=q) <= 1.005 * wanted


def test_the_median_is_the_support_vector_regression_without_a_tube():
    """The pinball loss of 1/2 is |y - f| / 2."""
    exact = SVR(gamma=0.5, C=5.0, epsilon=0.0, tol=1e-6).fit(X, Y).predict(X)
    for options in ({"n_cells": 1, "tol": 1e-5}, {}):
        ours = model(gamma=0.5, quantiles=0.5, fit_intercept=True, **options).fit(X, Y)
        assert np.sqrt(np.mean((ours.predict(X) - exact) ** 2)) < 0.02 * np.std(exact)


@pytest.mark.parametrize("q", [0.1, 0.7])
def test_a_cell_solves_the_dual_with_its_lopsided_box(q):
    """D = beta y - beta K beta / 2 over (q - 1) C <= beta <= q C, by L-BFGS-B of scipy."""
    rows, y, C = X[:150], Y[:150], 2.0
    K, shifted = rbf_kernel(rows, gamma=1.0), y - weighted_quantiles(y, np.ones(150), (q,))[0]
    found = minimize(
        lambda beta: (0.5 * beta @ K @ beta - beta @ shifted, K @ beta - shifted),
        np.zeros(150),
        jac=True,
        method="L-BFGS-B",
        bounds=[((q - 1.0) * C, q * C)] * 150,
        options={"maxiter": 10_000, "ftol": 1e-14, "gtol": 1e-10},
    )
    ours = model(gamma=1.0, quantiles=q, C=C, n_cells=1, fit_intercept=False, tol=1e-4).fit(rows, y)
    optimum = -found.fun / (C * 150)
    assert ours.objective_ - ours.dual_gap_ - 1e-9 <= optimum <= ours.objective_ + 1e-9
    assert ours.objective_ == pytest.approx(optimum, rel=1e-3)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"n_cells": 3},
        {"n_cells": 1, "fit_intercept": True},
        {"approximation": "fourier", "n_components": 100},
        {"step": "robust", "max_iter": 40},
        {"fit_intercept": False},
    ],
    ids=str,
)
def test_the_bound_is_below_the_objective_and_near_it(options):
    ours = model(**options).fit(X, Y)
    assert 0.0 <= ours.dual_gap_ < 0.02 * ours.objective_
    if "n_cells" not in options:
        objective, gap = ours.certify(X, Y)
        assert objective == pytest.approx(ours.objective_, rel=1e-3)
        assert 0.0 <= gap < 0.02 * objective


def test_quantiles_of_one_pass_are_those_of_passes_of_their_own():
    for options in ({}, {"n_cells": 2}):
        together = model(**options).fit(X, Y)
        alone = [model(quantiles=q, **options).fit(X, Y) for q in LEVELS]
        assert together.objective_ == pytest.approx(sum(each.objective_ for each in alone), rel=5e-3)
        apart = together.predict(X) - np.column_stack([each.predict(X) for each in alone])
        assert np.sqrt(np.mean(apart**2)) < 0.03 * np.std(Y)


# Coverage and order ---------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, {"n_cells": 2, "fit_intercept": True}], ids=str)
def test_a_free_intercept_leaves_the_share_of_the_rows_below(options):
    """At an optimum at most a share q of the rows is strictly below, and at least q at or below."""
    levels = tuple(k / 10 for k in range(1, 10))
    ours = model(quantiles=levels, **options).fit(X, Y)
    np.testing.assert_allclose(ours.coverage(X, Y), levels, atol=0.02)


def test_coverage_on_new_rows():
    """Of 2000 rows a share of 0.9 has a standard error of 0.007, and 600 trained it (0.012)."""
    rng = np.random.default_rng(3)
    new = rng.uniform(0.0, 6.0, (2000, 1))
    y = np.sin(new[:, 0]) + (0.1 + 0.1 * new[:, 0]) * rng.normal(size=2000)
    np.testing.assert_allclose(model().fit(X, Y).coverage(new, y), LEVELS, atol=0.05)


@pytest.mark.parametrize(
    ("y", "weight", "said"),
    [
        (np.column_stack([Y, Y]), None, "1d array"),
        (np.where(Y > 1.0, np.nan, Y), None, "y contains NaN"),
        (Y, -1.0, "sample_weight has a negative value"),
        (Y[:9], None, "X has 600 rows and y has 9"),
    ],
)
def test_coverage_looks_at_the_targets(y, weight, said):
    model = AssetQuantileRegressor(n_components=20, max_iter=2, random_state=0).fit(X, Y)
    with pytest.raises(ValueError, match=said):
        model.coverage(X, y, weight)
    np.testing.assert_array_equal(model.coverage(X, Y[:, None]), model.coverage(X, Y))


@pytest.mark.parametrize("transform", [None, "log"])
def test_gradients_are_those_of_the_predictions_in_order(transform):
    """Few rows and little penalty: the models of near quantiles cross."""
    rng = np.random.default_rng(3)
    rows, y = rng.uniform(0.0, 6.0, (60, 2)), np.exp(rng.normal(size=60))
    model = AssetQuantileRegressor(
        "rbf", quantiles=(0.45, 0.5, 0.55), C=1e4, gamma=1.0, target_transform=transform, random_state=0
    ).fit(rows, y)
    rows = rng.uniform(0.0, 6.0, (300, 2))
    crossed = (np.diff(model._decide(rows), axis=1) < 0.0).any(axis=1)
    clear = np.diff(model.predict(rows), axis=1).min(axis=1) > 3e-3  # away from the kinks
    assert (clear & crossed).sum() > 5
    shift = 1e-5
    expected = np.stack(
        [
            (model.predict(rows + shift * e) - model.predict(rows - shift * e)) / (2.0 * shift)
            for e in np.eye(2)
        ],
        axis=2,
    )
    found = model.gradients(rows)
    scale = np.abs(expected[clear]).max()
    np.testing.assert_allclose(found[clear], expected[clear], atol=1e-3 * scale)


@pytest.mark.parametrize("changed", [dict(quantiles=(0.2, 0.3)), dict(target_transform="standard")])
def test_what_a_model_is_cannot_change_between_batches(changed):
    model = AssetQuantileRegressor(n_components=20, random_state=0).partial_fit(X, Y)
    before = model.predict(X)
    with pytest.raises(ValueError, match=r"was set after a fit with .*; call fit, or set it back"):
        model.set_params(**changed).partial_fit(X, Y)
    np.testing.assert_array_equal(model.predict(X), before)
    model.set_params(quantiles=[0.1, 0.5, 0.9], target_transform=None).partial_fit(X, Y)
    assert model.fit(X, Y).set_params(**changed).fit(X, Y).predict(X).ndim == 2


def test_predictions_never_cross_and_order_never_costs():
    """Fifteen rows a cell, and quantiles beside each other: the models themselves do cross."""
    levels = tuple(np.linspace(0.1, 0.9, 17).tolist())
    ours = model(quantiles=levels, C=1e3, gamma=5.0, n_cells=40).fit(X, Y)
    raw = ours._decide(X)
    assert (np.diff(raw, axis=1) < 0.0).any()
    found = ours.predict(X)
    assert (np.diff(found, axis=1) >= 0.0).all()
    task = Quantiles.of(levels, centred=False)
    y = np.broadcast_to(Y, raw.T.shape)
    before, after = task.loss.value(y, raw.T).sum(axis=0), task.loss.value(y, found.T).sum(axis=0)
    assert (after <= before + 1e-12).all() and (after < before - 1e-12).any()


def test_weights_are_copies_of_rows():
    counts = np.random.default_rng(2).integers(0, 3, 200)
    rows, y = X[:200], Y[:200]
    options = {"n_cells": 1, "fit_intercept": True, "tol": 1e-6, "gamma": 1.0}
    weighted = model(**options).fit(rows, y, counts)
    copied = model(**options).fit(np.repeat(rows, counts, axis=0), np.repeat(y, counts))
    np.testing.assert_allclose(weighted.predict(rows), copied.predict(rows), atol=0.02)


def test_weighted_quantiles_by_hand():
    y, weight = np.array([3.0, 1.0, 2.0]), np.array([1.0, 1.0, 2.0])
    np.testing.assert_array_equal(weighted_quantiles(y, weight, (0.2, 0.5, 0.75, 0.9)), [1, 2, 2, 3])


def test_the_score_is_the_mean_of_scikit_learns():
    ours = model().fit(X, Y)
    found = ours.predict(X)
    for weight in (None, WEIGHT):
        wanted = [
            d2_pinball_score(Y, found[:, k], alpha=q, sample_weight=weight)
            for k, q in enumerate(LEVELS)
        ]
        assert ours.score(X, Y, weight) == pytest.approx(np.mean(wanted))
    shares = np.average(Y[:, None] <= found, axis=0, weights=WEIGHT)
    np.testing.assert_allclose(ours.coverage(X, Y, WEIGHT), shares)


def test_a_quantile_of_logarithms_is_one_of_the_numbers():
    y = np.exp(Y)
    in_logs, plain = (
        model(target_transform="log").fit(X, y),
        model(target_transform="standard").fit(X, Y),
    )
    np.testing.assert_allclose(np.log(in_logs.predict(X)), plain.predict(X), atol=1e-6)


# Shapes and parameters ------------------------------------------------------------------------------


def test_a_number_makes_predictions_of_one_axis():
    assert model(quantiles=0.3).fit(X, Y).predict(X).shape == (600,)
    assert model(quantiles=np.array(0.3)).fit(X, Y).predict(X).shape == (600,)
    assert model(quantiles=[0.3]).fit(X, Y).predict(X).shape == (600, 1)
    assert model().fit(X, Y).predict(X[:7]).shape == (7, 3)
    assert model().fit(X, Y).gradients(X[:7]).shape == (7, 3, 1)
    one = model().fit(X, Y)
    np.testing.assert_allclose(one.compiled()(X[0]), one.predict(X[:1])[0], rtol=1e-6)


@pytest.mark.parametrize(
    ("quantiles", "said"),
    [
        (0.0, "quantiles=0.0 has 0.0, which is not between 0 and 1"),
        ((0.1, 1.0), "has 1.0, which is not between 0 and 1"),
        ((), "quantiles is empty; name some"),
        ((0.5, 0.1), "is not in increasing order, or has one twice"),
        ((0.5, 0.5), "is not in increasing order, or has one twice"),
        ("high", "has 'high', which is not between 0 and 1"),
        ((True,), "has True, which is not between 0 and 1"),
        (np.nan, "has nan, which is not between 0 and 1"),
    ],
)
def test_quantiles_that_cannot_be(quantiles, said):
    with pytest.raises(ValueError, match=said):
        model(quantiles=quantiles).fit(X, Y)


def test_constants_are_told_of():
    with pytest.warns(UserWarning, match="half of its predictions lie within"):
        model(C=1e-9).fit(X, Y)


ONE_AXIS = "predictions have a column a quantile, which a quantile that is a number has not"
EXPECTED = {
    **dict.fromkeys(
        ("check_regressors_train", "check_estimator_sparse_array", "check_estimator_sparse_matrix"),
        ONE_AXIS,
    ),
    "check_sample_weight_equivalence_on_dense_data": "the method is stochastic",
    "check_sample_weight_equivalence_on_sparse_data": "the method is stochastic",
}


@pytest.mark.filterwarnings("ignore:.* changed nothing")
@parametrize_with_checks(
    [
        AssetQuantileRegressor(max_iter=30),
        AssetQuantileRegressor(quantiles=0.5, n_cells=3),
        AssetQuantileRegressor(quantiles=0.5, max_iter=30),
    ],
    expected_failed_checks=lambda each: {
        name: why
        for name, why in EXPECTED.items()
        if why != ONE_AXIS or not isinstance(each.quantiles, float)
    },
)
def test_scikit_learn_checks_pass(estimator, check, monkeypatch):
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")
    check(estimator)


# Files and streams ----------------------------------------------------------------------------------

WAYS = [
    {},
    {"n_cells": 3},
    {"quantiles": 0.3},
    {"n_cells": 2, "memory_limit": 1e6},
    {"target_transform": "standard", "relevance": "columns"},
]


@pytest.mark.parametrize("options", WAYS, ids=str)
def test_a_model_file_predicts_and_goes_on_bit_for_bit(options, tmp_path):
    ours = model(**options).fit(X, Y)
    save(ours, tmp_path / "m.asset")
    read = load(tmp_path / "m.asset")
    np.testing.assert_array_equal(read.predict(X), ours.predict(X))
    assert read.get_params() == ours.get_params()
    save(ours, tmp_path / "m.asset", resumable=True)
    read = load(tmp_path / "m.asset")
    for each in (read, ours):
        each.partial_fit(X[:100], Y[:100])
    np.testing.assert_array_equal(read.predict(X), ours.predict(X))


@pytest.mark.parametrize("n_cells", [None, 3])
def test_a_stream_learns_quantiles(n_cells):
    rng = np.random.default_rng(4)
    rows = rng.uniform(0.0, 6.0, (6000, 1))
    y = np.sin(rows[:, 0]) + (0.1 + 0.1 * rows[:, 0]) * rng.normal(size=6000)
    ours = model(n_cells=n_cells, n_components=100)
    for start in range(0, 6000, 500):
        ours.partial_fit(rows[start : start + 500], y[start : start + 500])
    np.testing.assert_allclose(ours.coverage(rows, y), LEVELS, atol=0.05)
    assert pinball(ours.predict(X)) < 1.1 * pinball(model().fit(rows, y).predict(X))


def test_rows_of_a_file_that_does_not_fit_in_memory(tmp_path):
    rng = np.random.default_rng(5)
    rows = rng.uniform(0.0, 6.0, (20_000, 1)).astype(np.float32)
    y = np.sin(rows[:, 0]) + (0.1 + 0.1 * rows[:, 0]) * rng.normal(size=20_000)
    np.save(tmp_path / "x.npy", rows)
    np.save(tmp_path / "y.npy", y)
    source = open_rows(str(tmp_path / "x.npy"), target=str(tmp_path / "y.npy"))
    scanned = scan(source, sample_rows=4096, hold_bytes=1000, seed=0)
    assert scanned.held is None
    ours = fit_rows(model(n_components=100, max_iter=3), scanned)
    np.testing.assert_allclose(ours.coverage(rows, y), LEVELS, atol=0.03)


def test_warm_starts_and_clones():
    ours = model(warm_start=True, max_iter=5).fit(X, Y)
    before = ours.objective_
    assert ours.fit(X, Y).objective_ <= before * 1.01
    assert clone(ours).get_params() == ours.get_params()
    assert ours.set_params(quantiles=(0.2, 0.8)).fit(X, Y).predict(X).shape == (600, 2)


# Commands -------------------------------------------------------------------------------------------


@pytest.fixture
def table(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, part in (("train", slice(0, 400)), ("test", slice(400, None))):
        cells = np.column_stack([X[part], Y[part]])
        np.savetxt(f"{name}.csv", cells, delimiter=",", header="a,y", comments="")


def test_train_predict_evaluate_and_report(table, capsys):
    given = ["--quantiles", "0.1,0.5,0.9", "--C", "10", "--test", "test.csv", "--report", "page.html"]
    assert main(["train", "train.csv", *given]) == 0
    told = dict(line.split("\t") for line in capsys.readouterr().out.splitlines() if "\t" in line)
    assert told["quantiles"] == "0.1, 0.5, 0.9"
    assert main(["predict", "train.asset", "test.csv"]) == 0
    rows = list(csv.DictReader(capsys.readouterr().out.splitlines()))
    found = np.array([[float(row[name]) for name in ("q0.1", "q0.5", "q0.9")] for row in rows])
    assert found.shape == (200, 3) and (np.diff(found, axis=1) >= 0.0).all()
    assert float(told["test mean pinball loss"]) == pytest.approx(pinball(found, y=Y[400:]), rel=1e-4)
    share = np.mean(Y[400:] <= found[:, 2])
    assert told["test rows at or below q0.9"] == f"{100 * share:.2f} %"
    page = Path("page.html").read_text()
    assert "Coverage" in page and "AssetQuantileRegressor" in page
    assert main(["evaluate", "train.asset", "test.csv"]) == 0
    assert f"rows at or below q0.9\t{100 * share:.2f} %" in capsys.readouterr().out
    assert main(["train", "train.csv", "--quantiles", "0.5", "--online", "-o", "online.asset"]) == 0
    assert load("online.asset").quantiles == [0.5]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--quantiles", "0.9,0.1"], "is not in increasing order"),
        (["--quantiles", "a,b"], "--quantiles a,b: write Q,... with numbers."),
        (["--quantiles", "0.5", "--task", "classification"], "--quantiles are of numbers"),
        (["--quantiles", "0.5", "--epsilon", "1"], "--epsilon does not go with --quantiles"),
        (["--quantiles", "0.5", "--auto"], "train without --auto"),
    ],
)
def test_options_that_do_not_go_together(table, capsys, options, said):
    assert main(["train", "train.csv", *options]) == 2
    assert said in capsys.readouterr().err


def test_scores_of_blocks_are_those_of_all_rows():
    found = in_order(np.random.default_rng(6).normal(size=(600, 3)))
    scores = QuantileScores(LEVELS)
    for part in np.array_split(np.arange(600), 7):
        scores.add(Y[part], found[part], found[part])
    wanted = [mean_pinball_loss(Y, f, alpha=q) for q, f in zip(LEVELS, found.T, strict=True)]
    np.testing.assert_allclose(scores.pinball, wanted)
    np.testing.assert_allclose(scores.coverage, np.mean(Y[:, None] <= found, axis=0))
