"""Losses, pairs of classes, several outputs: what works together, and what says that it does not."""

import csv
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC
from sklearn.utils import get_tags

from asset_svm import (
    AssetClassifier,
    AssetClassifierCV,
    AssetOutlierDetector,
    AssetQuantileRegressor,
    AssetRegressor,
    load,
    open_rows,
    save,
)
from asset_svm.cli.main import main
from asset_svm.dual import tight_bound
from asset_svm.losses import (
    Hinge,
    Logistic,
    SquaredHinge,
    best_intercept,
    is_seen,
    scalar_excess,
    scalar_slope,
)
from asset_svm.search.auto.blend import SquaredLosses

X, Y = load_iris(return_X_y=True)
X = (X - X.mean(axis=0)) / X.std(axis=0)
BOTH = np.column_stack([Y, X[:, 0] > 0.0])
LABELS = np.column_stack([X[:, 0] > 0.0, Y == 1]).astype(int)
REALS = np.column_stack([X[:, 0] * X[:, 1], 100.0 * np.sin(X[:, 2])])
OF_CLASSES = [Hinge(), SquaredHinge(), Logistic()]
NAMES = ["hinge", "squared_hinge", "logistic"]
PAIRS = list(combinations(range(3), 2))
reals = st.floats(-30, 30, allow_nan=False)


# Rows that a model of a pair does not see ---------------------------------------------------------


@pytest.mark.parametrize("loss", OF_CLASSES, ids=NAMES)
@given(f=reals)
def test_a_target_of_0_costs_nothing_and_pulls_nowhere(loss, f):
    y, f = np.zeros(1), np.array([f])
    assert loss.value(y, f) == 0.0 == loss.slope(y, f)
    assert scalar_excess(loss.code, 0.0, 0.0, f[0]) <= 0.0 == scalar_slope(loss.code, 0.0, 0.0, f[0])
    low, high = loss.box(y, np.ones(1))
    assert low == high == 0.0 == loss.conjugate(y, np.zeros(1))
    assert not is_seen(loss.code, 0.0) and is_seen(loss.code, -1.0)
    assert loss.kink(y, f)[0] == 0.0


@pytest.mark.parametrize("loss", OF_CLASSES, ids=NAMES)
def test_rows_that_are_not_seen_change_no_intercept_and_no_bound(loss):
    rng = np.random.default_rng(0)
    V, y, weight = rng.normal(size=(60, 4)), rng.choice([-1.0, 0.0, 1.0], 60), rng.uniform(1, 2, 60)
    seen, coef = y != 0.0, rng.normal(size=4)
    f = V @ coef
    part = best_intercept(loss, y[seen], f[seen], weight[seen])
    assert best_intercept(loss, y, f, weight) == part
    share = weight[seen].sum() / weight.sum()
    for free in (False, True):
        every = tight_bound(loss, 0.1, coef, 0.3, lambda: iter([(V, y, weight)]), free_intercept=free)
        some = tight_bound(
            loss, 0.1 / share, coef, 0.3, lambda: iter([(V[seen], y[seen], weight[seen])]),
            free_intercept=free,
        )  # fmt: skip
        np.testing.assert_allclose(every[:2], share * np.array(some[:2]), rtol=2e-3)


def decisions_of_pairs(solver, V):
    """Those of a solver that learns from the rows of two classes at a time."""
    found = []
    for first, second in PAIRS:
        rows = (first == Y) | (second == Y)
        found.append(solver.fit(V[rows], Y[rows]).decision_function(V))
    return np.column_stack(found)


def test_pairs_on_one_map_are_those_of_exact_solvers():
    options = {
        "multi_class": "ovo",
        "gamma": 0.2,
        "n_components": 30,
        "max_iter": 300,
        "random_state": 0,
    }
    model = AssetClassifier(loss="logistic", C=2.0, **options).fit(X, Y)
    exact = LogisticRegression(C=2.0, tol=1e-10, max_iter=10_000)
    found, wanted = model._decide(X), decisions_of_pairs(exact, model.feature_map_(X))
    np.testing.assert_allclose(expit(found), expit(wanted), atol=0.01)
    model = AssetClassifier(loss="squared_hinge", C=2.0, fit_intercept=False, **options).fit(X, Y)
    exact = LinearSVC(loss="squared_hinge", C=2.0, fit_intercept=False, tol=1e-8, max_iter=100_000)
    found, wanted = model._decide(X), decisions_of_pairs(exact, model.feature_map_(X))
    np.testing.assert_allclose(found, wanted, atol=0.05)


@pytest.mark.parametrize("loss", NAMES)
def test_certificates_of_pairs_bound_the_gap_to_a_longer_run(loss):
    options = {"loss": loss, "multi_class": "ovo", "n_components": 30, "C": 2.0, "random_state": 0}
    short = AssetClassifier(max_iter=3, **options).fit(X, Y)
    objective, gap = short.certify(X, Y)
    longer = AssetClassifier(max_iter=500, **options).fit(X, Y)
    best = longer.certify(X, Y)
    assert objective - gap <= best[0] and best[0] - best[1] <= objective
    assert best[1] <= 0.01 * best[0]


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_exact_pairs_are_cells_of_their_rows_alone(loss, intercept):
    options = dict(
        loss=loss, gamma=0.2, C=2.0, n_cells=1, fit_intercept=intercept, tol=1e-8, random_state=0
    )
    model = AssetClassifier(multi_class="ovo", **options).fit(X, Y)
    np.testing.assert_allclose(
        model._decide(X), decisions_of_pairs(AssetClassifier(**options), X), atol=2e-3
    )


# Losses of several outputs ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options", [{"n_components": 30, "max_iter": 300}, {"n_cells": 1, "tol": 1e-7}]
)
@pytest.mark.parametrize("loss", ["squared_epsilon_insensitive", "huber"])
def test_numbers_of_several_outputs_are_those_of_each(loss, options):
    model = AssetRegressor(loss=loss, C=2.0, random_state=0, **options).fit(X, REALS)
    alone = [AssetRegressor(loss=loss, C=2.0, random_state=0, **options).fit(X, y) for y in REALS.T]
    wanted = np.column_stack([each.predict(X) for each in alone])
    np.testing.assert_allclose(model.predict(X), wanted, atol=0.01 * REALS.std())
    assert model.objective_ == pytest.approx(sum(each.objective_ for each in alone), rel=2e-3)


@pytest.mark.parametrize("loss", ["squared_hinge", "logistic"])
def test_classes_of_several_outputs_are_those_of_each(loss):
    options = {"loss": loss, "C": 2.0, "n_components": 30, "max_iter": 300, "random_state": 0}
    model = AssetClassifier(**options).fit(X, BOTH)
    for own, y in zip(model.decision_function(X), BOTH.T, strict=True):
        alone = AssetClassifier(**options).fit(X, y).decision_function(X)
        np.testing.assert_allclose(own, alone, atol=0.05)


def test_probabilities_of_several_outputs():
    options = {"loss": "logistic", "C": 2.0, "n_components": 30, "random_state": 0}
    model = AssetClassifier(**options).fit(X, BOTH)
    first, second = model.predict_proba(X)
    assert (first.shape, second.shape) == ((150, 3), (150, 2))
    np.testing.assert_allclose(first.sum(axis=1), 1.0)
    found = np.column_stack([first.argmax(axis=1), second.argmax(axis=1)])
    assert (found == model.predict(X)).all()
    labels = AssetClassifier(**options).fit(X, LABELS)
    each = labels.predict_proba(X)
    assert ((each > 0.5) == labels.predict(X)).all()
    np.testing.assert_allclose(each, expit(labels.decision_function(X)), rtol=1e-6)


def test_pairs_have_no_probabilities_and_say_so():
    options = {"loss": "logistic", "multi_class": "ovo", "max_iter": 5, "random_state": 0}
    for y in (Y, BOTH):
        model = AssetClassifier(**options).fit(X, y)
        assert not hasattr(model, "predict_proba")
        with pytest.raises(AttributeError, match=r'CalibratedClassifierCV.*leave multi_class at "ovr"'):
            model.predict_proba(X)
    two = AssetClassifier(**options).fit(X, Y == 1)  # one pair is no other problem
    assert two.predict_proba(X).shape == (150, 2)


@pytest.mark.parametrize("y", [Y, BOTH], ids=["one", "two"])
@pytest.mark.parametrize("loss", NAMES)
def test_model_files_go_on_with_the_loss_and_the_pairs(tmp_path, loss, y):
    model = AssetClassifier(loss=loss, multi_class="ovo", max_iter=5, random_state=0).fit(X, y)
    save(model, tmp_path / "m.asset", resumable=True)
    read = load(tmp_path / "m.asset")
    assert (read.predict(X) == model.predict(X)).all() and read.certify(X, y) == model.certify(X, y)
    for each in (model, read):
        each.set_params(loss="hinge", multi_class="ovr")  # those of the next fit
        with pytest.raises(ValueError, match="was set after a fit with"):
            each.partial_fit(X, y)
        assert each.certify(X, y)[1] >= 0.0  # as a problem of the loss and the pairs of the model
        each.set_params(loss=loss, multi_class="ovo").partial_fit(X, y)
    assert (read._decide(X) == model._decide(X)).all() and model._fitted.task.paired


# Searches -----------------------------------------------------------------------------------------


def test_means_of_several_outputs_are_judged_by_all_of_them():
    decisions, y = np.arange(6.0).reshape(3, 2), np.ones((3, 2))
    assert SquaredLosses(y)(decisions).tolist() == [0.5, 2.5, 12.5]
    assert SquaredLosses(y[:, 0])(decisions[:, :1]).tolist() == [1.0, 1.0, 9.0]


def test_races_of_pairs_and_of_class_columns_end_in_one_model():
    rows = np.random.default_rng(0).normal(size=(200, 3))
    y = (rows[:, 0] > 0.0).astype(int) + (rows[:, 1] * rows[:, 2] > 0.0)
    for options, wanted in (
        ({"multi_class": "ovo"}, y),
        ({}, np.column_stack([y, rows[:, 0] > 0.0])),
    ):
        search = AssetClassifierCV(random_state=0, **options).fit(rows, wanted)
        assert search.score(rows, wanted) > 0.9 and len(search.ensemble_) == 1


# What has one output ------------------------------------------------------------------------------


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    table = pd.DataFrame(X, columns=list("abcd"))
    table.assign(u=REALS[:, 0], v=REALS[:, 1]).to_csv("reals.csv", index=False)
    table.assign(k=Y, l=BOTH[:, 1]).to_csv("classes.csv", index=False)
    return tmp_path


def test_intervals_are_of_one_output(here):
    model = AssetRegressor(intervals=True, random_state=0)
    for arguments in ((X, REALS), (open_rows("reals.csv", target="u,v"),)):
        with pytest.raises(ValueError, match=r"intervals=True is for one output, and y has 2 columns"):
            model.fit(*arguments)
    model.fit(X, REALS[:, :1].ravel())
    assert model.predict_interval(X).shape == (150, 2)


def test_quantiles_are_of_one_output():
    with pytest.raises(ValueError, match=r"y has 2 columns, and quantiles are those of one"):
        AssetQuantileRegressor().fit(X, REALS)
    with pytest.raises(ValueError, match=r"y has 2 columns, and quantiles are those of one"):
        AssetQuantileRegressor(target_transform="standard").partial_fit(X, REALS)
    assert not get_tags(AssetQuantileRegressor()).target_tags.multi_output
    assert not get_tags(AssetOutlierDetector()).target_tags.multi_output
    assert AssetOutlierDetector(random_state=0).fit(X, REALS).predict(X).shape == (150,)


def test_commands(here, capsys):
    several = ["train", "reals.csv", "--target", "u,v", "-o", "m.asset"]
    for option, said in (
        (["--intervals"], "intervals=True is for one output"),
        (["--quantiles", "0.1,0.9"], "quantiles are those of one"),
    ):
        assert main([*several, *option]) != 0
        assert said in capsys.readouterr().err
    assert main([*several, "--loss", "huber", "--epsilon", "0.5", "--C", "10"]) == 0
    assert main(["evaluate", "m.asset", "reals.csv"]) == 0
    assert "R2 of u" in capsys.readouterr().out
    train = ["train", "classes.csv", "--target", "k,l", "-o", "c.asset", "--loss", "logistic"]
    assert main([*train, "--multi-class", "ovo", "--C", "10"]) == 0
    assert main(["evaluate", "c.asset", "classes.csv"]) == 0
    assert "error of any" in capsys.readouterr().out
    assert main(["predict", "c.asset", "classes.csv", "--probability"]) != 0
    assert "has 2 outputs" in capsys.readouterr().err
    assert main(train) == 0
    assert main(["predict", "c.asset", "classes.csv", "--probability"]) != 0
    assert "--probability: c.asset has 2 outputs" in capsys.readouterr().err
    capsys.readouterr()
    assert main(["predict", "c.asset", "classes.csv"]) == 0
    rows = list(csv.reader(capsys.readouterr().out.splitlines()))
    assert rows[0] == ["k", "l"] and len(rows) == 151
