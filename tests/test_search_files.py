"""Searches over rows of a source: a sample is looked at, all rows train the best model."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import KFold

from asset_svm import (
    AssetClassifier,
    AssetClassifierCV,
    AssetQuantileRegressorCV,
    AssetRegressorCV,
    open_rows,
)
from asset_svm.cli.main import main
from asset_svm.data.raw import RawOptions
from asset_svm.estimators.files import fit_rows, scan_for
from asset_svm.search import all_rows
from asset_svm.search.all_rows import HeldRows, SourceRows
from asset_svm.tasks import Classification

ROWS = 3000
SMALL = 60_000.0
"""A memory limit that rows of these tests do not fit in, but samples of them."""
GRID = {"Cs": [1.0, 10.0], "gammas": [0.3, 1.0], "n_components": 40, "search_iter": 3, "max_iter": 2}
SAMPLED = 1000


@pytest.fixture(autouse=True)
def few_looked_at(monkeypatch):
    """Samples are of 1000 rows, in place of twenty thousand."""
    monkeypatch.setattr("asset_svm.estimators.files.SAMPLE_ROWS", SAMPLED // 2)
    monkeypatch.setattr("asset_svm.estimators.files.RELEVANCE_ROWS", SAMPLED // 2)
    monkeypatch.setitem(all_rows.SAMPLING, "looked_at", SAMPLED)
    monkeypatch.setattr("asset_svm.estimators.files.SAMPLE_SHARE", 1)


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(ROWS, 4))
    return X, (np.sin(2.0 * X[:, 0]) + X[:, 1] > 0.0).astype(float)


@pytest.fixture(scope="module")
def npy(rows, tmp_path_factory):
    path = tmp_path_factory.mktemp("rows") / "rows.npy"
    np.save(path, np.column_stack(rows))
    return path


@pytest.fixture(scope="module")
def frame(rows):
    X, y = rows
    rng = np.random.default_rng(1)
    found = pd.DataFrame(X, columns=["wind", "rain", "heat", "dust"])
    found["heat"] = 1000.0 * found["heat"]
    found["town"] = rng.choice(["Rome", "Oslo", "Bern"], ROWS)
    found["sold"] = np.where((y > 0.0) ^ (found["town"] == "Oslo"), "yes", "no")
    found.loc[rng.random(ROWS) < 0.05, "rain"] = np.nan
    return found


@pytest.fixture(scope="module")
def csv(frame, tmp_path_factory):
    path = tmp_path_factory.mktemp("table") / "towns.csv"
    frame.to_csv(path, index=False)
    return path


def test_rows_that_fit_in_memory_are_searched_as_arrays_are(npy):
    held = open_rows(npy).read()
    X, y = held.X, held.y
    own = AssetClassifierCV(**GRID, random_state=0).fit(X, y.astype(int))
    found = AssetClassifierCV(**GRID, random_state=0).fit(open_rows(npy))
    assert found.best_params_ == own.best_params_
    assert np.array_equal(found.cv_results_["mean_test_score"], own.cv_results_["mean_test_score"])
    assert np.array_equal(
        found.best_estimator_.decision_function(X), own.best_estimator_.decision_function(X)
    )


def test_a_grid_is_searched_on_a_sample_and_all_rows_train_the_best(rows, npy):
    X, y = rows
    search = AssetClassifierCV(**GRID, random_state=0, memory_limit=SMALL).fit(open_rows(npy))
    assert set(search.cv_results_["n_resources"]) <= set(range(SAMPLED + 1))
    assert search.classes_.tolist() == [0, 1]
    assert search.score(X, y) > 0.9
    best = AssetClassifier(
        n_components=40, max_iter=2, memory_limit=SMALL, random_state=0, **search.best_params_
    )
    scanned = scan_for(open_rows(npy), **all_rows.SAMPLING, memory_limit=SMALL, random_state=0)
    assert scanned.held is None and scanned.summary.n_rows == ROWS
    assert len(scanned.summary.spread.y) == SAMPLED
    fit_rows(best, scanned)
    assert np.array_equal(search.decision_function(X), best.decision_function(X))


def test_a_race_looks_at_a_sample_and_all_rows_train_the_best(rows, npy):
    X, y = rows
    search = AssetClassifierCV(random_state=0, memory_limit=SMALL, kernel="rbf", n_components=40)
    search.fit(open_rows(npy))
    assert max(search.cv_results_["n_resources"]) < SAMPLED
    assert search._learnt_rows == ROWS
    assert search.best_estimator_.history_[-1]["steps"] >= 3 * ROWS  # epochs of all rows
    assert search.score(X, y) > 0.9


@pytest.mark.parametrize("ensemble", [False, True])
def test_a_table_is_raced_over_as_it_is(csv, frame, ensemble, monkeypatch):
    if ensemble:
        monkeypatch.setattr("asset_svm.search.racing.choose_members", first_two)
    search = AssetClassifierCV(
        random_state=0, memory_limit=SMALL, kernel="rbf", n_components=40, ensemble=ensemble
    )
    search.fit(open_rows(csv, target="sold", raw=RawOptions()))
    assert len(search.ensemble_) == (2 if ensemble else 1)
    assert search._learnt_rows == ROWS
    X = frame.drop(columns="sold")
    assert search.feature_names_in_.tolist() == X.columns.tolist()
    assert search.score(X, frame["sold"]) > 0.85
    backwards = X[X.columns[::-1]]
    assert np.array_equal(search.predict(backwards), search.predict(X))


def first_two(outcome, n_rows, seconds, seed):
    from asset_svm.search.auto.final import Members

    encoding = outcome.best.candidate.shape.encoding
    ranked = [outcome.history[number] for number in outcome.finalists]
    judged = [each for each in ranked if each.candidate.shape.encoding == encoding][:2]
    return Members(judged, np.array([0.6, 0.4]), np.array([0.6, 0.4]))


def test_numbers_of_any_scale_are_encoded_on_the_way(rows, tmp_path):
    X, y = rows
    wild = X * [1.0, 1000.0, 1e-3, 1.0] + [0.0, 5000.0, 0.0, 0.0]
    np.save(tmp_path / "wild.npy", np.column_stack([wild, y]))
    search = AssetClassifierCV(
        random_state=0, memory_limit=SMALL, kernel="rbf", n_components=40, relevance=None
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # of names of columns, above all
        search.fit(open_rows(tmp_path / "wild.npy"))
        assert search.best_params_["encoder"] is not None
        assert search.score(wild, y.astype(int)) > 0.9
    assert not hasattr(search, "feature_names_in_")


def test_numbers_and_quantiles_of_a_file(rows, tmp_path):
    X, _ = rows
    y = 100.0 + 10.0 * np.sin(2.0 * X[:, 0])
    np.save(tmp_path / "y.npy", np.column_stack([X, y]))
    options = dict(random_state=0, memory_limit=SMALL, kernel="rbf", n_components=60)
    assert AssetRegressorCV(**options).fit(open_rows(tmp_path / "y.npy")).score(X, y) > 0.9
    quantiles = AssetQuantileRegressorCV(**GRID | {"Cs": [10.0]}, random_state=0, memory_limit=SMALL)
    quantiles.fit(open_rows(tmp_path / "y.npy"))
    assert quantiles.predict(X).shape == (ROWS, 3)
    assert quantiles.score(X, y) > 0.4


def test_a_class_that_the_sample_has_not_is_learnt(rows, tmp_path):
    X, y = rows
    labels = y.astype(int)
    labels[:2] = 7
    np.save(tmp_path / "rare.npy", np.column_stack([X, labels]))
    source = open_rows(tmp_path / "rare.npy")
    search = AssetClassifierCV(**GRID, random_state=0, memory_limit=SMALL).fit(source)
    sample = scan_for(source, **all_rows.SAMPLING, memory_limit=SMALL, random_state=0).summary.spread
    assert 7 not in sample.y
    assert search.classes_.tolist() == [0, 1, 7]
    assert search.decision_function(X).shape == (ROWS, 3)
    raced = AssetClassifierCV(random_state=0, memory_limit=SMALL, probability=True)
    with pytest.raises(ValueError, match="no 7 among their classes"):
        raced.fit(source)


def test_probabilities_come_from_the_decisions_of_the_sample(rows, npy):
    X, y = rows
    search = AssetClassifierCV(
        random_state=0, memory_limit=SMALL, kernel="rbf", n_components=40, probability=True
    )
    shares = search.fit(open_rows(npy)).predict_proba(X)
    assert np.mean((shares[:, 1] > 0.5) == y) > 0.9


def test_time_that_is_short_leaves_fewer_rows(npy):
    source = SourceRows.scan(open_rows(npy), None, None, **all_rows.SAMPLING, memory_limit=SMALL)
    y = source.sample(numeric=False).y
    task = Classification().settled(y, np.ones(len(y)))
    few = source.some(200, task, y, 0)
    assert isinstance(few, HeldRows) and few.n_rows == 200 and few.reading is None
    assert set(np.unique(few.y)) == {0, 1}
    more = source.some(2000, task, y, 0)
    assert isinstance(more, SourceRows) and 1850 < more.n_rows < 2150
    model = AssetClassifier(n_components=40, max_iter=2, random_state=0, memory_limit=SMALL)
    more.teach(model)
    assert model.history_[-1]["steps"] == 2 * more.n_rows


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (dict(cv=[(np.arange(10), np.arange(10, 20))]), "pairs of indices"),
        (dict(tol=1e-3), "tol=0.001 needs all rows in memory"),
    ],
)
def test_what_a_file_cannot_have_is_told(npy, options, message):
    with pytest.raises(ValueError, match=message):
        AssetClassifierCV(random_state=0, memory_limit=SMALL, **options).fit(open_rows(npy))


def test_a_source_brings_its_own_targets(npy, rows):
    with pytest.raises(ValueError, match="brings its own targets"):
        AssetClassifierCV().fit(open_rows(npy), rows[1])
    with pytest.raises(ValueError, match="intervals=True trains on folds of rows in memory"):
        AssetRegressorCV(intervals=True).fit(open_rows(npy))


def test_a_splitter_splits_the_sample(npy):
    search = AssetClassifierCV(**GRID, cv=KFold(3), random_state=0, memory_limit=SMALL)
    assert search.fit(open_rows(npy)).n_splits_ == 3


# The command ------------------------------------------------------------------------------------------


def tune(capsys, *arguments):
    code = main(["tune", *map(str, arguments)])
    return code, capsys.readouterr()


COMMON = ("--target", "sold", "--memory", "120KB", "--kernel", "rbf", "--n-components", "40")


def test_the_command_races_over_a_file_larger_than_memory(csv, frame, tmp_path, capsys):
    model = tmp_path / "towns.asset"
    code, told = tune(
        capsys, csv, *COMMON, "--probability", "-o", model, "--report", tmp_path / "page.html"
    )
    assert code == 0, told.err
    assert f"rows looked at\t{SAMPLED} of {ROWS}" in told.out
    assert "rows learnt from" not in told.out
    assert "epoch 1/" in told.err or "rows/s" in told.err  # the final model tells how it goes on
    assert "asset train" in told.out
    assert (tmp_path / "page.html").stat().st_size > 10_000
    assert main(["evaluate", str(model), str(csv), "--target", "sold"]) == 0
    error = capsys.readouterr().out
    assert "error" in error


def test_the_command_searches_a_grid_over_a_file_larger_than_memory(csv, tmp_path, capsys):
    options = ("--Cs", "1,10", "--gammas", "0.1,0.3", "-o", tmp_path / "grid.asset")
    code, told = tune(capsys, csv, *COMMON, *options)
    assert code == 0, told.err
    assert f"rows looked at\t{SAMPLED} of {ROWS}" in told.out
    code, told = tune(capsys, csv, *COMMON, *options, "--probability")
    assert code == 2 and "--probability trains on folds of rows in memory" in told.err
