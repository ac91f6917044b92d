"""``benchmarks/tables.py``: the staged search, what it asks, and the table made of its records."""

import gzip
import json
import os
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

import datasets
import tables
from datasets.base import DataSet
from datasets.files import RemoteFile, read_table
from processes import running
from tabular import METHODS, Rows, asset, lightgbm, report, staged
from tabular.base import beside, final, hidden
from tabular.encoding import encoder, total_deviation, total_variance

# The search --------------------------------------------------------------------------------------


def ask_about(best, asked):
    """A loss that is lowest at ``best``, and grows by every parameter that differs from it."""

    def ask(candidate, every):
        asked.append((candidate, every))
        away = 1 + abs(np.log(candidate.factor / best.factor)) + abs(np.log(candidate.C / best.C))
        away += 10 * (candidate.shape != best.shape)
        return away + (candidate.size != best.size) + (candidate.epsilon != best.epsilon)

    return ask


@pytest.mark.parametrize("regression", [False, True])
@pytest.mark.parametrize(
    "best",
    [
        staged.Candidate("rbf", None, cells=False, factor=1.0, C=100.0, size=1),
        staged.Candidate("exponential", "directions", cells=True, factor=64.0, C=1.0),
        staged.Candidate("rbf", "columns", cells=True, factor=8.0, C=30.0, size=2),
        staged.Candidate("laplacian", "columns", cells=True, factor=4.0, C=1000.0, size=1),
    ],
    ids=str,
)
def test_the_search_finds_the_best_setting_and_asks_nothing_twice(best, regression):
    asked = []
    shapes = staged.shapes(staged.KERNELS, staged.RELEVANCES)
    assert len(shapes) == 3 * 3 * 2 - 2, "the laplacian has no directions"
    found = staged.staged_search(shapes, ask_about(best, asked), n_rows=16_384, regression=regression)
    assert found == best
    assert len(asked) == len(set(asked))
    few = [candidate for candidate, every in asked if not every]
    kept = {candidate.shape for candidate in few if candidate.C == 1000.0}
    assert len(kept) == 2
    assert len(few) == 2 * len(shapes) + sum(4 * len(shape.factors()) - 2 for shape in kept)
    assert not any(candidate.size for candidate in few)
    assert {c.epsilon for c, _ in asked} == ({0.05, 0.01} if regression else {0.05})
    narrower = [c for c, every in asked if every and not c.size and c.factor > best.factor]
    assert len(narrower) <= 4, "one step and half a step beyond the best, and what was thought best"
    assert len(asked) - len(few) <= 3 + 1 + 4 + 2 * 2 + regression


def test_the_exact_model_of_all_rows_is_tried_where_the_library_has_it():
    asked = []
    best = staged.Candidate("rbf", None, cells=True, factor=4.0, C=10.0, size=2)
    shapes = staged.shapes(["rbf"], [None])
    found = staged.staged_search(shapes, ask_about(best, asked), n_rows=16_385, regression=False)
    assert found == replace(best, size=0) and not any(c.size == 2 for c, _ in asked)
    assert best.options(12_000, 1.0, 1.0, regression=False)["n_cells"] == 1
    large = replace(best, size=1).options(12_000, 1.0, 1.0, regression=False)
    assert (large["n_cells"], large["n_partitions"]) == (6, 4)


def test_a_larger_model_may_have_a_bandwidth_of_its_own():
    asked = []
    small, large = (
        staged.Candidate("rbf", None, cells=True, factor=f, size=s) for f, s in ((4, 0), (8, 2))
    )

    def ask(candidate, every):
        best = large if candidate.size == 2 else small
        return ask_about(best, asked)(candidate, every) - 0.9 * (candidate.size == 2)

    shapes = staged.shapes(["rbf"], [None])
    assert staged.staged_search(shapes, ask, n_rows=1000, regression=False) == large


def test_of_settings_that_are_alike_the_simplest_is_taken():
    asked = []

    def ask(candidate, every):
        asked.append(candidate)
        return 1.0 - 0.001 * np.log(candidate.C) - 0.001 * candidate.size

    shapes = staged.shapes(["rbf"], [None])
    found = staged.staged_search(shapes, ask, n_rows=1000, regression=False)
    assert found.size == 0 and any(candidate.size for candidate in asked)
    assert max(candidate.C for candidate in asked) > found.C


def test_a_factor_of_one_is_as_wide_as_standardised_rows():
    X = np.random.default_rng(0).normal(size=(500, 7)) * np.arange(1, 8)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    scale = total_variance(X), total_deviation(X)
    assert scale == pytest.approx((7, 7))
    found = [
        staged.Candidate(kernel, None, cells=False, factor=4.0).options(500, *scale, regression=False)
        for kernel in staged.KERNELS
    ]
    assert [options["gamma"] for options in found] == pytest.approx([4 / 7, 2 / 7**0.5, 2 / 7])
    assert all("epsilon" not in options for options in found)
    sparse = sp.csr_matrix(np.where(X > 1, X, 0))
    assert total_variance(sparse) == pytest.approx(total_variance(sparse.toarray()))
    assert total_deviation(sparse) == pytest.approx(total_deviation(sparse.toarray()))


# Rows --------------------------------------------------------------------------------------------


def made(regression, m=260):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(m, 3)).astype(np.float32)
    f = np.sin(2 * X[:, 0])
    return X, f + 0.1 * rng.normal(size=m) if regression else np.where(f > 0, 3, 7)


def made_rows(regression):
    X, y = made(regression)
    train, validation, test = np.split(np.arange(len(y)), [160, 210])
    return Rows(X, y, train, validation, test, regression, threads=1)


def test_what_is_chosen_cannot_see_test_targets():
    rows = made_rows(regression=True)
    seen = hidden(rows)
    assert np.ptp(seen.y[rows.test]) == 0 and np.array_equal(
        seen.y[rows.learning], rows.y[rows.learning]
    )


def test_the_final_model_has_training_and_validation_rows_and_is_scored_on_the_others():
    rows = made_rows(regression=False)
    given = []

    def fit(X, y):
        given.append(X)
        return lambda held: np.where(held[:, 0] < 10, rows.y[rows.test], 0)

    assert final(rows, fit)["loss"] == 0.0
    assert len(given) == 2, "a short time is measured twice"
    assert all(np.array_equal(X, rows.X[:210]) for X in given)


@pytest.mark.skipif(not Path("/proc/stat").exists(), reason="tells other processes by /proc/stat")
def test_the_work_of_other_processes_is_noticed():
    spin = "import time\nend = time.monotonic() + 60\nwhile time.monotonic() < end: pass"
    with running([sys.executable, "-c", spin]):
        share, result = beside(lambda: time.sleep(1.0) or 7)
    assert result == 7
    assert share > 0.2 / os.cpu_count(), "one core of them, or what is left of it"


def test_raw_columns_are_read_and_encoded(tmp_path, monkeypatch):
    monkeypatch.setenv("ASSET_DATA", str(tmp_path))
    text = "size,kind,y\n1,b,2\n3,?,4\n?,a,6\n5,b,8\n"
    (tmp_path / "made.csv.gz").write_bytes(gzip.compress(text.encode()))
    X, y = read_table(RemoteFile("made.csv.gz"), "y", (1,), gap="?")
    assert y.tolist() == ["2", "4", "6", "8"]
    np.testing.assert_array_equal(X, np.float32([[1, 1], [3, np.nan], [np.nan, 0], [5, 1]]))
    rows = Rows(X, y, *[np.arange(4)] * 3, categorical=(1,))
    encoded = encoder(rows).fit_transform(X)
    assert encoded.dtype == np.float32 and encoded.shape == (4, 2 + 3)
    assert encoded[2, 0] == pytest.approx(0), "the gap is the median, 3, which is the mean here"
    np.testing.assert_array_equal(encoded[:, 2:], [[0, 1, 0], [0, 0, 1], [1, 0, 0], [0, 1, 0]])


def test_parts_are_the_papers_where_it_has_them_and_else_three_fifths():
    train, validation, test = datasets.SETS["ijcnn"].parts(141_691, 0)
    assert (len(train), len(validation), len(test)) == (113_352, 14_170, 14_169)
    parts = datasets.SETS["abalone"].parts(4177, 1)
    assert [len(part) for part in parts] == [2506, 836, 835]
    assert np.array_equal(np.sort(np.concatenate(parts)), np.arange(4177))


# Relevance ---------------------------------------------------------------------------------------


class Mapped:
    """An estimator of tomorrow: least squares that knows a relevance, and says what it was given."""

    fitted = ()

    def __init__(self, relevance=None, **options):
        self.relevance, self.options = relevance, options

    def fit(self, X, y):
        type(self).fitted += (self,)
        self.shape, self.first = X.shape, X[0].copy()
        weights = np.array([2.0, 1.0, 0.5])
        self.relevance_ = dict(columns=weights, directions=np.diag(weights)[::-1]).get(self.relevance)
        self.coef = np.linalg.lstsq(X, y, rcond=None)[0]
        return self

    def predict(self, X):
        return X @ self.coef


def test_a_relevance_is_learnt_once_and_settings_are_tried_on_mapped_rows(monkeypatch):
    monkeypatch.setattr(Mapped, "fitted", ())
    monkeypatch.setattr(asset, "AssetRegressor", Mapped)
    rows, lines = made_rows(regression=True), []
    result = asset.WITH.run(rows, lines.append)
    assert len([line for line in lines if "learnt on" in line]) == 2 * 5
    learning = [model for model in Mapped.fitted if model.relevance is not None]
    assert len(learning) in (10, 10 + 2), "and perhaps the final model, which learns its own"
    asked = len([line for line in lines if " rows: " in line])
    assert 32 + 36 + 3 + 1 + 1 <= asked <= 32 + 44 + 3 + 5 + 2 + 1
    plain = encoder(rows).fit(rows.X[rows.train]).transform(rows.X[:1])[0]
    firsts = {tuple(np.round(model.first, 4)) for model in Mapped.fitted[:-2] if not model.relevance}
    wanted = (plain, plain * [2, 1, 0.5], np.diag([2.0, 1.0, 0.5])[::-1] @ plain)
    assert firsts == {tuple(np.round(row.astype(np.float32), 4)) for row in wanted}
    assert Mapped.fitted[-1].shape == (210, 3)
    assert result["validation"] > 0 and result["chosen"].startswith(result["options"]["kernel"])


def test_sparse_rows_stay_sparse_under_weighted_columns():
    X = sp.random(20, 5, 0.3, "csr", np.float32, random_state=0)
    weights = np.arange(5.0)
    found = asset.mapped(X, weights)
    assert sp.issparse(found) and found.dtype == np.float32
    np.testing.assert_allclose(found.toarray(), asset.mapped(X.toarray(), weights))


def test_what_rows_do_not_allow_is_left_out_with_a_line(monkeypatch):
    monkeypatch.setattr(staged, "KERNELS", ["rbf", "laplacian"])
    wide = sp.csr_matrix((10, 2000), dtype=np.float32)
    rows = Rows(wide, np.zeros(10), *[np.arange(3)] * 3)
    lines = []
    left = asset.WITH.shapes(rows, lines.append)
    assert {(shape.kernel, shape.relevance) for shape in left} == {("rbf", None), ("rbf", "columns")}
    assert [line.split(", ")[0] for line in lines] == [
        'left out: kernel="laplacian"',
        'left out: relevance="directions"',
    ]


# The command -------------------------------------------------------------------------------------


@pytest.fixture
def command(tmp_path, monkeypatch):
    """The command on two small sets that are made here, without LightGBM."""
    for name, regression in (("waves", True), ("sides", False)):
        entry = DataSet(name, lambda kind=regression: made(kind), regression=regression)
        monkeypatch.setitem(datasets.SETS, name, entry)
    monkeypatch.setattr(tables, "AS_PUBLISHED", dict(waves=False, sides=True))
    monkeypatch.setattr(tables, "_TOLD", set())
    monkeypatch.setattr(lightgbm, "installed", lambda *names: None)
    methods = "asset-svm;HistGradientBoosting;LightGBM, 100 trees"

    def run(*options):
        return tables.main(
            ["--out", str(tmp_path / "tables.jsonl"), "--methods", methods, "--threads", "1", *options]
        )

    yield run
    datasets.load.cache_clear()


def test_the_command_runs_what_is_missing_and_prints_the_table(command, tmp_path, capsys):
    assert command("--splits", "1", "--sets", "waves") == 0
    first = capsys.readouterr().out
    assert first.count("LightGBM, 100 trees is left out; it needs: pip install lightgbm") == 1
    assert "waves 1 asset-svm | rbf, no relevance, s=1024, c=0.25, C=10, 156 rows: 0." in first
    assert command("--splits", "2") == 0
    second = capsys.readouterr().out
    assert "waves 1 " not in second and "waves 2 asset-svm | chosen: " in second
    lines = [json.loads(line) for line in (tmp_path / "tables.jsonl").read_text().splitlines()]
    assert len(lines) == 2 * 2 * 2
    for line in lines:
        # Far below what a constant has, 1 and about 50: 52 test rows.
        assert line["result"]["loss"] < (0.7 if line["dataset"] == "waves" else 25)
        assert line["result"]["seconds"] > 0 and line["software"]
    assert "|  | asset-svm | HistGradientBoosting |" in second
    assert second.count("± ") == 2 * 2 * 2, "two sets, two methods: losses and seconds"
    assert command("--report", "--quick") == 0
    assert "waves" not in capsys.readouterr().out, "nothing was run of so few rows"


def test_a_method_that_fails_is_told_kept_and_run_again(command, tmp_path, capsys, monkeypatch):
    def fail(rows, say):
        raise MemoryError("no room")

    options = ("--splits", "1", "--sets", "sides", "--methods", "HistGradientBoosting")
    with monkeypatch.context() as patch:
        patch.setattr(type(METHODS["HistGradientBoosting"]), "run", staticmethod(fail))
        assert command(*options) == 0
    assert "sides 1 HistGradientBoosting | failed: no room" in capsys.readouterr().out
    assert command(*options) == 0
    assert "sides 1 HistGradientBoosting | test " in capsys.readouterr().out


def test_an_unknown_name_ends_the_command(command):
    with pytest.raises(SystemExit, match="no data set 'nonsense'; there are waves, sides"):
        command("--sets", "nonsense")


def test_differences_are_paired_with_the_lightgbm_that_validation_rows_prefer():
    def entry(solver, seed, loss, validation=None):
        result = dict(loss=loss, seconds=1.0, validation=validation, others=0.5 * (loss == 9.0))
        return dict(solver=solver, dataset="letter", seed=seed, result=result, software=solver)

    records = [
        entry(lightgbm.DEFAULT.name, 0, 5.0, 4.0), entry(lightgbm.LARGE.name, 0, 3.0, 4.5),
        entry(lightgbm.DEFAULT.name, 1, 6.0, 4.0), entry(lightgbm.LARGE.name, 1, 4.0, 3.0),
        entry(asset.WITHOUT.name, 0, 2.0), entry(asset.WITHOUT.name, 1, 3.0),
        entry(asset.WITHOUT.name, 2, 9.0),
    ]  # fmt: skip
    better = report.by_split(records, "letter", report.BETTER)
    assert {seed: r["result"]["loss"] for seed, r in better.items()} == {0: 5.0, 1: 4.0}
    text = report.markdown(records, dict(cpu="made", threads=1, commit="0", versions={}))
    assert "| letter | -2.00 ± 1.00 |" in text, "-3 and -1; the third split has no pair"
    assert text.count("machine busy)") == 1, "in one split of ours"
