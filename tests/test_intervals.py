"""Intervals around a regression: the rank by hand, coverage by simulation, units, files, commands."""

import csv
import math
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone

from asset_svm import AssetRegressor, ModelFileError, load, open_rows, save
from asset_svm.cli.main import main
from asset_svm.estimators.inside import intervals_of
from asset_svm.estimators.intervals import Intervals
from asset_svm.families.one_map.windows import WindowFit
from asset_svm.persistence import model_of, parts_of


def drawn(n, seed):
    """Noise that grows with the second column."""
    rng = np.random.default_rng(seed)
    rows = rng.uniform(0.0, 6.0, (n, 2))
    return rows, np.sin(rows[:, 0]) + (0.1 + 0.1 * rows[:, 1]) * rng.normal(size=n)


X, Y = drawn(600, 0)
X.setflags(write=False)
Y.setflags(write=False)


def model(**parameters):
    usual = {"C": 10.0, "intervals": True, "n_components": 60, "random_state": 0}
    return AssetRegressor(**{**usual, **parameters})


def inside(ends, y):
    return (ends[:, 0] <= y) & (y <= ends[:, 1])


# The rank -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("n", "coverage", "place"),
    [
        (9, 0.9, 9),
        (9, 0.91, None),
        (8, 0.9, None),
        (19, 0.9, 18),
        (99, 0.95, 95),
        (1, 0.5, 1),
        (0, 0.5, None),
    ],
)
def test_the_factor_is_the_score_of_the_right_rank(n, coverage, place):
    found = Intervals(None, 1.0, np.arange(1.0, n + 1.0)).factor(coverage)
    assert found == (math.inf if place is None else place)


@pytest.mark.parametrize("coverage", [0.5, 0.8, 0.9])
def test_a_new_score_is_below_the_factor_as_often_as_promised(coverage):
    """n = 19 scores of any law: the rank of a twentieth is uniform, so that it is exact."""
    rng, n = np.random.default_rng(1), 19
    scores = rng.standard_cauchy((20_000, n + 1)) ** 2
    hits = [Intervals(None, 1.0, np.sort(row[:n])).factor(coverage) >= row[n] for row in scores]
    exact = math.ceil((n + 1) * coverage) / (n + 1)
    assert np.mean(hits) == pytest.approx(exact, abs=4 * math.sqrt(exact * (1 - exact) / 20_000))


# Coverage -------------------------------------------------------------------------------------------


def test_coverage_over_simulations():
    """Of 30 fits, each with 100 rows kept out: 0.9 to 0.9 + 1/101, standard error 0.03 / sqrt(30)."""
    shares = []
    for seed in range(30):
        rows, y = drawn(500, [1, seed])
        new, wanted = drawn(400, [2, seed])
        ours = model(validation_fraction=0.2, n_components=30, max_iter=5, random_state=seed)
        shares.append(inside(ours.fit(rows, y).predict_interval(new, 0.9), wanted).mean())
    assert np.mean(shares) == pytest.approx(0.905, abs=0.02)


def test_a_useless_model_has_honest_intervals_too():
    """Noise of heavy tails has nothing to predict."""
    rng = np.random.default_rng(3)
    shares = []
    for seed in range(20):
        rows, y = rng.normal(size=(300, 2)), rng.standard_t(2, 300)
        ours = model(C=1.0, validation_fraction=0.3, n_components=20, max_iter=3, random_state=seed)
        ends = ours.fit(rows[:250], y[:250]).predict_interval(rows[250:], 0.8)
        shares.append(inside(ends, y[250:]).mean())
    assert np.mean(shares) == pytest.approx(0.8, abs=0.04)


def test_intervals_are_wide_where_the_noise_is():
    ends = model().fit(X, Y).predict_interval(X)
    width = ends[:, 1] - ends[:, 0]
    assert np.corrcoef(width, X[:, 1])[0, 1] > 0.7
    assert width[X[:, 1] > 5].mean() > 2.0 * width[X[:, 1] < 1].mean()


def test_more_coverage_is_wider_and_holds_the_prediction():
    ours = model().fit(X, Y)
    found = [ours.predict_interval(X, coverage) for coverage in (0.5, 0.8, 0.95)]
    for narrow, wide in pairwise(found):
        assert (narrow[:, 0] >= wide[:, 0]).all() and (narrow[:, 1] <= wide[:, 1]).all()
    predicted = ours.predict(X)
    assert inside(found[0], predicted).all()


def test_too_few_rows_kept_out_make_infinite_intervals():
    ours = model(validation_fraction=0.05).fit(X[:160], Y[:160])  # 8 rows: enough for 8/9
    assert np.isinf(ours.predict_interval(X, 0.9)).all()
    assert np.isfinite(ours.predict_interval(X, 0.88)).all()


# What a fit does ------------------------------------------------------------------------------------


def test_the_default_changes_nothing_and_says_what_to_set():
    plain = model(intervals=False).fit(X, Y)
    with pytest.raises(
        ValueError, match="has seen all rows of its fit; set intervals=True, and call fit"
    ):
        plain.predict_interval(X)
    assert len(plain.predict(X)) == 600 and intervals_of(plain) is None


def test_the_rows_kept_out_have_no_part_in_the_model():
    """Whatever their targets are: the same predictions, other intervals."""
    ours = model().fit(X, Y)
    assert len(intervals_of(ours).scores) == 60
    seed = np.random.RandomState(0).randint(np.iinfo(np.int32).max)
    held = np.random.default_rng([seed, 7]).permutation(600)[:60]
    y = Y.copy()
    y[held] += 100.0
    other = model().fit(X, y)
    np.testing.assert_array_equal(other.predict(X), ours.predict(X))
    apart = other.predict_interval(X), ours.predict_interval(X)
    assert (np.diff(apart[0], axis=1) > 10 * np.diff(apart[1], axis=1)).all()


def test_learning_on_ends_the_intervals():
    ours = model().fit(X, Y).partial_fit(X[:100], Y[:100])
    with pytest.raises(ValueError, match="this model has changed since its fit"):
        ours.predict_interval(X)


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        ({"warm_start": True}, "warm_start=True does not go with intervals=True"),
        ({"intervals": "yes"}, "intervals=.* is not a truth value"),
        ({"validation_fraction": 0.999}, "none would be left to learn from"),
    ],
)
def test_parameters_that_cannot_be(parameters, said):
    with pytest.raises(ValueError, match=said):
        model(**parameters).fit(X[:50], Y[:50])


def test_coverages_that_cannot_be():
    ours = model().fit(X, Y)
    for coverage in (0.0, 1.0, "most"):
        with pytest.raises(ValueError, match=r"coverage=.* is not between 0 and 1; .* such as 0\.9"):
            ours.predict_interval(X, coverage)


def test_a_failed_fit_leaves_the_intervals_of_the_one_before():
    ours = model().fit(X, Y)
    before = ours.predict_interval(X)
    with pytest.raises(ValueError, match="NaN"):
        ours.fit(np.full_like(X, np.nan), Y)
    np.testing.assert_array_equal(ours.predict_interval(X), before)


def test_rows_of_weight_zero_are_none():
    weight = np.ones(600)
    weight[::3] = 0.0
    ours = model().fit(X, Y, weight)
    y = np.where(weight > 0.0, Y, 1e3)
    np.testing.assert_array_equal(
        model().fit(X, y, weight).predict_interval(X), ours.predict_interval(X)
    )
    assert len(intervals_of(ours).scores) < 60


def test_one_weight_for_all_rows_is_none():
    np.testing.assert_array_equal(
        model().fit(X, Y, 2.0).predict_interval(X),
        model().fit(X, Y, np.full(600, 2.0)).predict_interval(X),
    )


def test_weights_of_rows_kept_out_only_are_told_of():
    told = set()
    for row in range(40):
        weight = np.zeros(40)
        weight[row] = 1.0
        try:
            model(validation_fraction=0.5, n_components=1, max_iter=1).fit(X[:40], Y[:40], weight)
        except ValueError as error:
            told.add(str(error))
    assert told == {
        "intervals=True keeps 20 of n_samples=40 rows out, among them all of positive weight; give "
        "more rows a weight, or set intervals=False."
    }


# Ways that rows take --------------------------------------------------------------------------------


def test_intervals_of_logarithms_are_above_zero_and_cover():
    y = np.exp(Y)
    ours = model(target_transform="log", validation_fraction=0.3).fit(X, y)
    new, wanted = drawn(1000, 5)
    ends = ours.predict_interval(new)
    assert (ends > 0.0).all()
    assert inside(ends, np.exp(wanted)).mean() == pytest.approx(0.9, abs=0.06)


@pytest.mark.parametrize(
    "options",
    [{"n_cells": 3, "n_components": None}, {"relevance": "columns"}, {"early_stopping": True}],
    ids=str,
)
def test_other_models_have_them(options):
    new, wanted = drawn(1000, 6)
    ours = model(validation_fraction=0.3, **options).fit(X, Y)
    assert inside(ours.predict_interval(new), wanted).mean() == pytest.approx(0.9, abs=0.06)


def test_sparse_rows_lists_and_tables():
    dense = model().fit(X, Y).predict_interval(X)
    sparse = model().fit(sp.csr_matrix(X), Y).predict_interval(sp.csr_matrix(X))
    np.testing.assert_allclose(sparse, dense, rtol=0.05, atol=0.05)
    np.testing.assert_array_equal(model().fit(X.tolist(), Y.tolist()).predict_interval(X), dense)
    names = np.array(["a", "b", "c"])[(X[:, 1] // 2).astype(int)]
    table = pd.DataFrame({"x": X[:, 0], "kind": names})
    ours = model(validation_fraction=0.3).fit(table, Y)
    assert inside(ours.predict_interval(table), Y).mean() == pytest.approx(0.9, abs=0.06)


def test_files_in_memory_and_by_windows(tmp_path, monkeypatch):
    rows, y = drawn(12_000, 7)
    np.save(tmp_path / "x.npy", rows.astype(np.float32))
    np.save(tmp_path / "y.npy", y)
    new, wanted = drawn(2000, 8)
    source = open_rows(str(tmp_path / "x.npy"), target=str(tmp_path / "y.npy"))
    windows, run = [], WindowFit.run
    monkeypatch.setattr(WindowFit, "run", lambda self: windows.append(1) or run(self))
    for limit in (None, 2e5):
        ours = model(memory_limit=limit, max_iter=3).fit(source)
        assert bool(windows) == (limit is not None)
        n = len(intervals_of(ours).scores)
        assert abs(n - 1200) < 150  # drawn row by row: five standard deviations are 165
        assert inside(ours.predict_interval(new), wanted).mean() == pytest.approx(0.9, abs=0.04)


def test_the_two_parts_of_a_source_are_all_of_its_rows(tmp_path):
    np.save(tmp_path / "x.npy", np.arange(5000.0)[:, None])
    np.save(tmp_path / "y.npy", np.arange(5000.0))
    source = open_rows(str(tmp_path / "x.npy"), target=str(tmp_path / "y.npy"))
    kept, out = (source.part(0.2, 3, kept=each).read().y for each in (True, False))
    np.testing.assert_array_equal(np.sort(np.concatenate([kept, out])), np.arange(5000.0))
    np.testing.assert_array_equal(source.part(0.2, 3, kept=True).read().y, kept)  # the second time too
    assert abs(len(out) - 1000) < 150


# Model files and commands ---------------------------------------------------------------------------


@pytest.mark.parametrize("resumable", [False, True])
@pytest.mark.parametrize(
    "options", [{}, {"relevance": "columns"}, {"target_transform": "log"}], ids=str
)
def test_a_model_file_keeps_them(options, resumable, tmp_path):
    y = np.exp(Y)
    ours = model(**options).fit(X, y)
    save(ours, tmp_path / "m.asset", resumable=resumable)
    read = load(tmp_path / "m.asset")
    for coverage in (0.5, 0.9, 0.99):
        np.testing.assert_array_equal(
            read.predict_interval(X, coverage), ours.predict_interval(X, coverage)
        )
    assert clone(read).intervals is True


def test_a_damaged_file_is_refused():
    record, arrays = parts_of(model().fit(X, Y))
    name = next(name for name in arrays if name.endswith("intervals.scores"))
    with pytest.raises(ModelFileError, match="are not in order"):
        model_of(record, {**arrays, name: arrays[name][::-1].copy()}, "m.asset")
    with pytest.raises(ModelFileError, match="out of their range"):
        model_of(record, {**arrays, name: arrays[name] - 1e3}, "m.asset")


@pytest.fixture
def table(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, part in (("train", slice(0, 450)), ("test", slice(450, None))):
        cells = np.column_stack([X[part], Y[part]])
        np.savetxt(f"{name}.csv", cells, delimiter=",", header="a,b,y", comments="")


@pytest.mark.parametrize("scale", ["auto", "standard"])
def test_commands(table, capsys, scale):
    given = ["--intervals", "--C", "10", "--scale", scale, "--validation-fraction", "0.3"]
    assert main(["train", "train.csv", *given, "--test", "test.csv"]) == 0
    told = dict(line.split("\t") for line in capsys.readouterr().out.splitlines() if "\t" in line)
    assert main(["predict", "train.asset", "test.csv", "--interval", "0.9"]) == 0
    rows = list(csv.DictReader(capsys.readouterr().out.splitlines()))
    ends = np.array([[float(row["low"]), float(row["high"])] for row in rows])
    share = inside(ends, Y[450:]).mean()
    assert told["test rows in 90 % intervals"] == f"{100 * share:.2f} %"
    assert share == pytest.approx(0.9, abs=0.12)  # of 150 rows, with about 135 kept out
    assert inside(ends, np.array([float(row["prediction"]) for row in rows])).all()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["train", "train.csv", "--intervals", "--online"], "--online does not go with --intervals"),
        (["train", "train.csv", "--intervals", "--task", "classification"], "are of numbers"),
        (["train", "train.csv", "--intervals", "--auto"], "train without --auto"),
        (["train", "train.csv", "--intervals", "--quantiles", "0.5"], "--intervals does not go with"),
    ],
)
def test_options_that_do_not_go_together(table, capsys, arguments, said):
    assert main(arguments) == 2
    assert said in capsys.readouterr().err


def test_a_model_without_them_says_how_to_get_them(table, capsys):
    assert main(["train", "train.csv", "--max-iter", "2"]) == 0
    assert main(["predict", "train.asset", "test.csv", "--interval", "0.9"]) == 2
    assert "train it with asset train --intervals" in capsys.readouterr().err
    assert main(["predict", "train.asset", "test.csv", "--probability"]) == 2
    assert "it learns none: leave --probability out." in " ".join(capsys.readouterr().err.split())
