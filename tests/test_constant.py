"""Models that are no better than a constant, and kernels that are no kernels, are told of."""

import re

import numpy as np
import pytest
from sklearn.datasets import make_moons
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import StandardScaler

from asset_svm import AssetClassifier, AssetClassifierCV, AssetRegressor
from asset_svm.cli.main import main

FORMS = [{}, {"n_cells": 2}]


def people(m=600, seed=0):
    """Ages, which matter, and incomes, which do not and are a thousand times as large."""
    rng = np.random.default_rng(seed)
    X = np.c_[rng.integers(18, 80, m), rng.lognormal(10.5, 0.8, m)]
    return X, ((X[:, 0] > 45) ^ (rng.random(m) < 0.1)).astype(int)


def houses(m=400, seed=0):
    X = np.random.default_rng(seed).normal(size=(m, 3))
    return X, 2e5 + 1e5 * (X[:, 0] + np.sin(X[:, 1]))


@pytest.mark.parametrize("form", FORMS)
def test_a_classifier_that_sees_one_column_alone_tells_so(form):
    X, y = people()
    with pytest.warns(UserWarning, match="tells no rows apart") as told:
        model = AssetClassifier(random_state=0, **form).fit(X, y)
    constant = DummyClassifier().fit(X, y).score(X, y)
    assert model.score(X, y) < constant + 0.05
    said = str(told[0].message)
    assert re.search(r"Column 1 has \d.* times the standard deviation of column 0\.", said)
    assert "StandardScaler" in said and told[0].filename == __file__ and len(told) == 1


@pytest.mark.parametrize("form", FORMS)
def test_scaled_columns_are_fitted_in_silence(form):
    X, y = people()
    X = StandardScaler().fit_transform(X)
    assert AssetClassifier(random_state=0, **form).fit(X, y).score(X, y) > 0.85


@pytest.mark.parametrize("form", FORMS)
def test_a_regressor_whose_C_is_far_below_the_targets_tells_so(form):
    X, y = houses()
    with pytest.warns(UserWarning, match=r"targets spread over 1\.7e\+05 times C=1\..*raise C"):
        model = AssetRegressor(random_state=0, **form).fit(X, y)
    assert model.score(X, y) < DummyRegressor().fit(X, y).score(X, y) + 0.05
    assert AssetRegressor(C=1e5, random_state=0, **form).fit(X, y).score(X, y) > 0.9


def test_a_tube_wider_than_the_targets_is_told_of():
    X, y = houses()
    with pytest.warns(UserWarning, match=r"epsilon=0\.1 of each other.*To mend it, lower epsilon"):
        AssetRegressor(random_state=0).fit(X, 1e-7 * y)


def test_constants_that_are_right_are_fitted_in_silence():
    X, y = houses()
    AssetRegressor(random_state=0).fit(X, np.full(len(y), 3.0))
    rare = (np.arange(len(y)) % 40 == 0).astype(int)
    assert AssetClassifier(C=1e-3, random_state=0).fit(X, rare).score(X, rare) == 0.975
    AssetClassifier(C=1e-6, random_state=0).fit(X[:60], (np.arange(60) % 3 == 0).astype(int))


def test_one_target_far_away_is_no_reason_to_warn():
    X, y = houses()
    y = (y - 2e5) / 1e5
    y[0] = 1e6
    AssetRegressor(random_state=0).fit(X, y)


def test_a_search_blames_columns_alone():
    X, y = people()
    options = dict(Cs=[0.1, 1.0], cv=3, gammas=None, random_state=0)
    with pytest.warns(UserWarning, match=r"To mend it, scale the columns of X \(StandardScaler\)\.$"):
        AssetClassifierCV(**options).fit(X, y)
    noise = np.random.default_rng(0).integers(0, 2, len(y))
    AssetClassifierCV(**options | {"Cs": [1e-6]}).fit(StandardScaler().fit_transform(X), noise)


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("streamed", [False, True])
def test_the_command_names_the_columns(tmp_path, streamed, monkeypatch, capsys):
    X, y = people()
    monkeypatch.chdir(tmp_path)
    table = np.c_[X, y]
    np.savetxt("people.csv", table, delimiter=",", header="age,income,bought", comments="", fmt="%g")
    more = ["--checkpoint", "run"] if streamed else []
    few = ["--n-components", "100", "--max-iter", "5", "-o", "m.asset"]
    assert main(["train", "people.csv", "--target", "bought", *few, *more, "--scale", "none"]) == 0
    told = capsys.readouterr().err
    assert told.count("asset: The model tells no rows apart") == 1
    assert re.search("Column 'income' has .* deviation of column 'age'", told)


@pytest.mark.parametrize("form", [{}, {"n_cells": 1}])
def test_a_kernel_that_is_not_definite_is_told_of_on_one_map_and_in_cells(form):
    X, y = make_moons(300, noise=0.2, random_state=0)
    with pytest.warns(ConvergenceWarning, match="as no positive semi-definite kernel matrix does"):
        AssetClassifier("sigmoid", random_state=0, **form).fit(X, y)


def test_a_sigmoid_that_is_nearly_linear_is_none():
    X, y = make_moons(300, noise=0.2, random_state=0)
    AssetClassifier("sigmoid", gamma=1e-3, C=100.0, random_state=0).fit(X, y)


def test_targets_of_any_type_are_looked_at():
    X = np.random.default_rng(0).normal(size=(300, 2))
    for y in (X[:, 0] > 0, np.where(X[:, 0] > 0, 100, -100).astype(np.int8)):
        assert AssetRegressor(C=100.0, max_iter=5, random_state=0).fit(X, y).score(X, y) > 0.3
