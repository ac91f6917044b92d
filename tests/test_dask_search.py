"""Searches on a real cluster: a sample is looked at in heats, all rows train the best model."""

import logging
import os
import signal
import sys
import warnings

import numpy as np
import pytest

pytest.importorskip("distributed", reason='needs the extra "dask": pip install "asset-svm[dask]"')

import cloudpickle
import dask
import dask.array as da
import dask.dataframe as dd
import pandas as pd
from distributed import Client, WorkerPlugin
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import KFold, PredefinedSplit

from asset_svm import AssetClassifierCV, AssetRegressorCV, load, save
from asset_svm.cli.main import main
from asset_svm.dask import (
    DaskAssetClassifier,
    DaskAssetClassifierCV,
    DaskAssetQuantileRegressorCV,
    DaskAssetRegressorCV,
    searching,
)
from asset_svm.dask import heats as cluster_heats
from asset_svm.dask.exceptions import ClusterError, GivenUpError
from asset_svm.exceptions import NonFiniteError
from asset_svm.search import heats
from asset_svm.search.grid import Grid
from asset_svm.search.heats import HeatResult, joined_table, next_heat, some_rows
from asset_svm.search.results import Line, Table
from clusters import two_workers, when_waiting

pytestmark = pytest.mark.dask

ROWS = 3000
RNG = np.random.default_rng(0)
X = RNG.normal(size=(ROWS, 4)).astype(np.float32)
Y = (np.sin(2.0 * X[:, 0]) + X[:, 1] > 0.0).astype(int)
REALS = X[:, 1] ** 2 + 0.1 * RNG.normal(size=ROWS)
GRID = {"Cs": [1.0, 10.0], "gammas": [0.3, 1.0], "n_components": 40, "search_iter": 3, "max_iter": 2}


@pytest.fixture(scope="module")
def workers():
    with two_workers() as found:
        yield found


@pytest.fixture(scope="module")
def client(workers):
    with Client(workers) as connected:
        yield connected


def chunked(y, size=500):
    return da.from_array(X, chunks=(size, -1)), da.from_array(y, chunks=size)


def test_a_grid_has_the_scores_of_the_plain_search(client):
    here = AssetClassifierCV(**GRID, random_state=0, n_jobs=1).fit(X, Y)
    found = DaskAssetClassifierCV(**GRID, random_state=0).fit(*chunked(Y))
    assert found.best_params_ == here.best_params_ and found.best_score_ == here.best_score_
    scores = {
        (one["C"], one["gamma"]): score
        for one, score in zip(
            here.cv_results_["params"], here.cv_results_["mean_test_score"], strict=True
        )
    }
    assert len(found.cv_results_["params"]) == len(scores) == 4
    for one, score in zip(
        found.cv_results_["params"], found.cv_results_["mean_test_score"], strict=True
    ):
        assert score == scores[one["C"], one["gamma"]]
    assert found.cv_results_["rank_test_score"][found.best_index_] == 1
    assert found.cv_results_["params"][found.best_index_] == found.best_params_


def test_all_rows_train_the_best_model(client):
    found = DaskAssetClassifierCV(**GRID, random_state=0).fit(*chunked(Y))
    best = DaskAssetClassifier(n_components=40, max_iter=2, random_state=0, **found.best_params_)
    best.fit(*chunked(Y))
    assert np.array_equal(found.best_estimator_.map_coef_, best.map_coef_)
    assert found.classes_.tolist() == [0, 1] and found.n_features_in_ == 4
    rows, y = chunked(Y)
    predicted = found.predict(rows).compute()
    assert np.array_equal(predicted, best.predict(rows).compute())
    assert found.score(rows, y) == np.mean(predicted == Y) > 0.9
    assert found.gammas_ == (0.3, 1.0) and found.Cs_.tolist() == [1.0, 10.0]


def test_a_score_is_that_of_the_fit(client):
    found = DaskAssetClassifierCV(**GRID, random_state=0, scoring="roc_auc").fit(*chunked(Y))
    found.set_params(scoring=None)
    area = roc_auc_score(Y, found.decision_function(chunked(Y)[0]).compute())
    assert found.score(*chunked(Y)) == pytest.approx(area, abs=1e-12)
    assert found.to_local().score(X, Y) == pytest.approx(area, abs=1e-12)


def test_a_sample_is_looked_at_where_rows_are_many(client, monkeypatch):
    monkeypatch.setattr(cluster_heats, "LOOKED_AT", 1000)
    found = DaskAssetClassifierCV(**GRID, random_state=0, refit=False).fit(*chunked(Y))
    assert set(found.cv_results_["n_resources"]) == {1000}
    assert not hasattr(found, "best_estimator_")


@pytest.mark.slow
def test_a_race_goes_on_with_the_better_heats_and_hangs_on_no_worker(client, monkeypatch):
    monkeypatch.setattr(searching, "FIRST_ROWS", 600)
    given = dict(random_state=0, n_components=40, relevance=None)
    one = DaskAssetClassifierCV(**given).fit(*chunked(Y))
    rows = np.asarray(one.cv_results_["n_resources"])
    kernels = [each["kernel"] for each in one.cv_results_["params"]]
    late = {kernel for kernel, count in zip(kernels, rows, strict=True) if count > 600}
    assert set(kernels) == {"rbf", "laplacian", "exponential", "linear"} and len(late) == 2
    assert one.best_params_["kernel"] in late and one.best_score_ > 0.9
    assert one.leaderboard_["candidate"][0] == one.ensemble_[0][0]
    board = one.leaderboard_["score"].to_numpy()
    order = np.argsort(one.cv_results_["rank_test_score"])
    assert np.array_equal(board, np.asarray(one.cv_results_["mean_test_score"])[order])
    (address, *_) = client.scheduler_info()["workers"]
    with monkeypatch.context() as patch:  # one worker, as far as heats know
        patch.setattr(cluster_heats.Cluster, "some_workers", lambda self: {address: 1})
        again = DaskAssetClassifierCV(**given).fit(*chunked(Y))
    assert again.best_params_ == one.best_params_ and again.best_score_ == one.best_score_
    assert np.array_equal(again.best_estimator_.map_coef_, one.best_estimator_.map_coef_)


def towns():
    """A frame with a category and gaps, and names of classes."""
    frame = pd.DataFrame(X, columns=["wind", "rain", "heat", "dust"])
    frame["town"] = np.random.default_rng(3).choice(["Rome", "Oslo", "Bern"], ROWS)
    frame.loc[::9, "rain"] = np.nan
    return frame, pd.Series(np.where((Y > 0) ^ (frame["town"] == "Oslo"), "yes", "no"))


def test_a_table_is_searched_as_it_is_and_becomes_a_model_file(client, tmp_path):
    frame, sold = towns()
    table = dd.from_pandas(frame, npartitions=3), dd.from_pandas(sold, npartitions=3)
    found = DaskAssetClassifierCV(random_state=0, kernel="rbf", relevance=None, n_components=60)
    found.fit(*table)
    assert found.best_params_["encoder"] is not None
    assert found.score(*table) > 0.8 and found.classes_.tolist() == ["no", "yes"]
    assert found.best_estimator_.feature_names_in_.tolist() == frame.columns.tolist()
    save(found.to_local().best_estimator_, tmp_path / "towns.asset")
    assert np.array_equal(
        load(tmp_path / "towns.asset").predict(frame), found.to_local().predict(frame)
    )


def test_numbers_and_quantiles_are_searched(client):
    given = dict(Cs=[1.0, 10.0], gammas=[0.3], n_components=40, max_iter=3, random_state=0)
    reals = DaskAssetRegressorCV(**given, epsilons=[0.01, 0.1]).fit(*chunked(REALS))
    here = AssetRegressorCV(**given, epsilons=[0.01, 0.1]).fit(X, REALS)
    assert reals.best_params_ == here.best_params_
    assert reals.score(*chunked(REALS)) == pytest.approx(here.score(X, REALS), abs=0.05)
    levels = DaskAssetQuantileRegressorCV(quantiles=(0.2, 0.8), **given).fit(*chunked(REALS))
    assert levels.predict(chunked(REALS)[0]).compute().shape == (ROWS, 2)
    assert np.allclose(levels.coverage(*chunked(REALS)), [0.2, 0.8], atol=0.1)


def test_a_worker_that_dies_in_a_heat_changes_nothing():
    quiet = DaskAssetClassifierCV(**GRID, random_state=0)
    with two_workers() as own, Client(own) as client:
        expected = quiet.set_params(client=client).fit(*chunked(Y))
        pids = list(client.run(os.getpid).values())

        def kill():
            os.kill(pids[0], signal.SIGKILL)

        with when_waiting(lambda key: key.startswith("asset_heat-"), kill):
            found = clone(quiet).fit(*chunked(Y))
    assert found.best_params_ == expected.best_params_
    assert np.array_equal(found.cv_results_["mean_test_score"], expected.cv_results_["mean_test_score"])
    assert np.array_equal(found.best_estimator_.map_coef_, expected.best_estimator_.map_coef_)


class Deadly(WorkerPlugin):
    """What every worker has from its start, a nanny's next one too: heats of these gammas kill it."""

    def __init__(self, gammas):
        self.gammas, self.name = gammas, "deadly"

    def setup(self, worker):
        from asset_svm.dask import heats as there

        search = there.run_heat

        def deadly(*args, **options):
            if args[1]["gammas"][0] in self.gammas:
                os.kill(os.getpid(), signal.SIGKILL)
            return search(*args, **options)

        there.run_heat = deadly


@pytest.fixture
def two_deaths():
    """A cluster whose scheduler gives up a task with the second worker that dies of it."""
    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    with dask.config.set({"distributed.scheduler.allowed-failures": 1}), two_workers() as own:
        yield own
    cloudpickle.unregister_pickle_by_value(sys.modules[__name__])


def test_a_heat_whose_workers_die_is_given_up_and_the_search_goes_on(two_deaths, caplog):
    quiet = DaskAssetClassifierCV(**(GRID | {"gammas": [0.3, 1.0, 7.0]}), random_state=0)
    plain = AssetClassifierCV(**GRID, random_state=0).fit(X, Y)
    with Client(two_deaths) as client, caplog.at_level(logging.WARNING, "asset_svm"):
        client.register_plugin(Deadly([7.0]))
        found = quiet.set_params(client=client).fit(*chunked(Y))
    assert "heat gammas=7: its workers died again and again" in caplog.text
    assert "the search goes on without it" in caplog.text
    assert found.best_params_ == plain.best_params_
    scores = found.cv_results_["mean_test_score"].reshape(3, 2)
    assert np.isnan(scores[2]).all() and np.isfinite(scores[:2]).all()


def test_heats_that_are_lost_otherwise_end_the_search(client, monkeypatch):
    """As those are whose rows are gone: all others would fail for the same reason."""
    wanted = cluster_heats.Heats._task

    def lost(self, heat, sample, seconds, threads):
        task = wanted(self, heat, sample, seconds, threads)
        if heat["gammas"][0] == 1.0:
            task.cancel()
        return task

    monkeypatch.setattr(cluster_heats.Heats, "_task", lost)
    with pytest.raises(ClusterError, match="Dask gave up asset_heat-") as raised:
        DaskAssetClassifierCV(**GRID, random_state=0).fit(*chunked(Y))
    assert not isinstance(raised.value, GivenUpError)


def test_a_search_of_which_no_heat_is_left_says_why(two_deaths):
    quiet = DaskAssetClassifierCV(**(GRID | {"gammas": [0.3]}), random_state=0)
    with Client(two_deaths) as client:
        client.register_plugin(Deadly([0.3]))
        with pytest.raises(ClusterError, match=r"Dask gave up asset_heat-.* whose workers die"):
            quiet.set_params(client=client).fit(*chunked(Y))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"probability": True}, "probability=True does not work on a cluster"),
        ({"keep_path": True, "Cs": 3}, "keep_path=True does not work on a cluster"),
        ({"cv": [(np.arange(5), np.arange(5, 9))]}, "cv says which rows are held out"),
        ({"cv": PredefinedSplit(np.zeros(ROWS))}, "cv says which rows are held out"),
        ({"refit": "accuracy", "Cs": 3}, "refit"),
        ({"encoder": "foo"}, "encoder='foo' is not known"),
        ({"device": "cuda"}, "device='cuda' does not work on a cluster"),
        ({"Cs": [-1.0]}, "Cs"),
        ({"relevance": "directions", "kernel": "laplacian"}, "adds up the columns"),
    ],
)
def test_what_a_cluster_does_without_is_told_before_rows_are_read(client, options, words):
    with pytest.raises(ValueError, match=words):
        DaskAssetClassifierCV(**options).fit(None, None)


def test_groups_and_rows_in_memory_are_refused(client):
    with pytest.raises(ValueError, match="groups are not kept together"):
        DaskAssetClassifierCV().fit(*chunked(Y), groups=Y)
    with pytest.raises(TypeError, match="not a Dask array or dataframe"):
        DaskAssetClassifierCV().fit(X, Y)


def test_a_fit_that_fails_leaves_the_model_of_before(client):
    found = DaskAssetClassifierCV(**GRID, random_state=0).fit(*chunked(Y))
    before = found.best_estimator_
    one_class = da.from_array(np.zeros(ROWS, dtype=int), chunks=500)
    with pytest.raises(ValueError, match="class"):
        found.fit(chunked(Y)[0], one_class)
    assert found.best_estimator_ is before


def test_a_splitter_of_scikit_learn_is_taken(client):
    splitter = KFold(3, shuffle=True, random_state=0)
    found = DaskAssetClassifierCV(**GRID, cv=splitter, random_state=0, refit=False).fit(*chunked(Y))
    assert found.n_splits_ == 3 and found.classes_.tolist() == [0, 1] and found.n_features_in_ == 4


def test_a_grid_takes_a_table_as_it_is(client):
    frame, sold = towns()
    table = dd.from_pandas(frame, npartitions=3), dd.from_pandas(sold, npartitions=3)
    found = DaskAssetClassifierCV(**GRID, random_state=0).fit(*table)
    here = AssetClassifierCV(**GRID, random_state=0).fit(frame, sold)
    assert found.best_params_ == here.best_params_
    assert found.best_score_ == pytest.approx(here.best_score_, abs=0.01)
    assert found.encoder_.get_feature_names_out().tolist() == (
        here.encoder_.get_feature_names_out().tolist()
    )


def test_a_class_that_a_sample_would_miss_is_in_it(client, monkeypatch):
    monkeypatch.setattr(cluster_heats, "LOOKED_AT", 300)
    rare = Y.copy()
    rare[[1700, 1701, 1702, 2900, 2901, 2902]] = 2
    found = DaskAssetClassifierCV(
        **GRID, class_weight={0: 1, 1: 1, 2: 50}, cv=3, random_state=0, refit=False
    )
    found.fit(*chunked(rare))
    assert found.classes_.tolist() == [0, 1, 2]
    assert 300 <= found.cv_results_["n_resources"][0] <= 306
    even = da.from_array(np.where(rare == 2, 500.0, 1.0), chunks=500)  # as much as other classes have
    found.set_params(class_weight=None).fit(*chunked(rare), even)
    assert found.classes_.tolist() == [0, 1, 2]


@pytest.mark.parametrize(("heats_", "slots", "each"), [(9, 4, 8.0), (7, 4, 12.0), (3, 4, 24.0)])
def test_heats_that_are_sent_together_have_as_many_seconds(monkeypatch, heats_, slots, each):
    own = object.__new__(cluster_heats.Heats)
    own.limit, own.begun, own.races = 24.0, 0.0, True
    monkeypatch.setattr(cluster_heats.clock, "now", lambda: 0.0)
    assert own._share(heats_, slots, 1.0) == each
    assert own._share(100, slots, 1.0) == cluster_heats.LEAST_SECONDS


def test_heats_beside_each_other_leave_the_filters_of_warnings_as_they_were():
    before = list(warnings.filters)
    first, second = heats.quiet(), heats.quiet()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert warnings.filters[0][0] == "ignore"
    second.__exit__(None, None, None)
    assert warnings.filters == before


def test_a_time_limit_ends_a_race_and_says_so(client, monkeypatch):
    begun = []
    wanted = cluster_heats.Heats._task

    def counted(self, heat, sample, seconds, threads):
        begun.append(seconds)
        return wanted(self, heat, sample, seconds, threads)

    monkeypatch.setattr(cluster_heats.Heats, "_task", counted)
    search = DaskAssetClassifierCV(time_limit=1e-3, n_components=40, random_state=0, refit=False)
    with pytest.warns(ConvergenceWarning, match=r"8 of 9 heats have not begun"):
        search.fit(*chunked(Y))
    assert len(begun) == 1 and search.best_score_ > 0.5


def test_the_best_score_is_that_of_the_best_candidate(client):
    given = dict(kernel="rbf", relevance=None, n_components=40, random_state=0, refit=False)
    found = DaskAssetRegressorCV(**given).fit(*chunked(REALS))
    assert found.best_score_ == found.cv_results_["mean_test_score"][found.best_index_]
    assert found.best_score_ == found.leaderboard_["score"][0]
    here = AssetRegressorCV(**given, ensemble=False).fit(X, REALS)
    assert found.best_score_ == here.best_score_ and found.best_params_ == here.best_params_


def test_the_command_tunes_on_a_cluster(workers, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    frame = pd.DataFrame(X, columns=list("abcd")).assign(label=np.where(Y, "yes", "no"))
    for number in range(3):
        frame[number * 1000 : (number + 1) * 1000].to_parquet(f"part-{number}.parquet")
    address = ["--dask", workers.scheduler_address, "--n-components", "40"]
    command = ["tune", "part-*.parquet", "--target", "label", *address, "--kernel", "rbf"]
    assert main([*command, "--relevance", "none", "--report", "page.html"]) == 0
    out, err = capsys.readouterr()
    told = dict(line.split("\t")[:2] for line in out.splitlines() if "\t" in line)
    assert float(told["score"]) > 0.9 and told["saved in"] == "part.asset"
    assert "asset: heat kernel=rbf, relevance=None: score" in err
    assert "asset train 'part-*.parquet'" in out and f"--dask {workers.scheduler_address}" in out
    assert "Race" in (tmp_path / "page.html").read_text()
    assert main(["evaluate", "part.asset", "part-0.parquet", "--target", "label"]) == 0
    assert main([*command, "--probability"]) == 2
    assert "--probability does not go with --dask" in capsys.readouterr().err
    grid = ["tune", "part-*.parquet", *address, "--Cs", "1,10", "--gammas", "0.3,1"]
    assert main([*grid, "--numbers", "pieces"]) == 0
    assert "piecewise linear" in capsys.readouterr().err


# Heats, without a cluster ---------------------------------------------------------------------------


def results(scores):
    """What heats of these gammas have found, with one C and two splits; None has failed."""
    found = []
    for gamma, score in scores.items():
        heat = {"gammas": [gamma]}
        if score is None:
            found.append(HeatResult(heat, ROWS, 0.1, failure="no model"))
            continue
        table = Table(Grid(np.ones(1), (gamma,), None), 2)
        table.lines[0, 0] = Line(np.full((1, 2), score), 0, ROWS, 1.0, 1.0)
        found.append(HeatResult(heat, ROWS, 0.1, score, table=table, n_splits=2))
    return found


def test_gammas_go_beyond_an_end_as_long_as_it_is_the_best():
    search = AssetClassifierCV(Cs=3)
    assert next_heat(search, results({1.0: 0.7, 4.0: 0.8}), 2) == {"gammas": [16.0]}
    assert next_heat(search, results({1.0: 0.8, 4.0: 0.7}), 2) == {"gammas": [0.25]}
    assert next_heat(search, results({1.0: 0.7, 4.0: 0.8, 16.0: 0.75}), 2) is None
    assert next_heat(search, results({1.0: 0.7, 4.0: 0.8, 16.0: None}), 2) is None
    assert next_heat(search, results({0.25: None, 1.0: 0.8, 4.0: 0.7}), 2) is None
    assert next_heat(search, results({1.0: 0.8, 4.0: 0.8}), 2) is None
    assert next_heat(search, results({4.0**k: 0.1 * k for k in range(6)}), 2) is None
    assert next_heat(search, results({1.0: None, 4.0: None}), 2) is None
    assert next_heat(AssetClassifierCV(gammas=[1.0, 4.0]), results({1.0: 0.7, 4.0: 0.8}), 2) is None


def test_tables_of_heats_are_one_in_which_those_that_failed_have_no_score():
    table = joined_table(results({4.0: 0.8, 1.0: None, 0.5: 0.6}))
    assert table.grid.gammas == (0.5, 1.0, 4.0)
    assert np.array_equal(table.means(), [0.6, np.nan, 0.8], equal_nan=True)
    assert table.best_index() == 2


def test_heats_of_a_race_are_what_is_left_open():
    every = heats.heats_of_race(AssetClassifierCV(), 10, sparse=False)
    pairs = {(each["kernel"], each["relevance"]) for each in every}
    assert len(pairs) == len(every) == 9
    assert ("laplacian", "directions") not in pairs and ("linear", "columns") not in pairs
    wide = heats.heats_of_race(AssetClassifierCV(), 5000, sparse=True)
    assert all(each["relevance"] != "directions" for each in wide)
    assert all(each["kernel"] != "laplacian" for each in wide)
    given = heats.heats_of_race(AssetClassifierCV(kernel="rbf", relevance="columns"), 10, sparse=False)
    assert given == [{"kernel": "rbf", "relevance": "columns"}]


def test_every_class_has_rows_in_a_part_of_the_sample():
    y = np.repeat([0, 1, 2], [5000, 30, 3])
    chosen = some_rows(y, 200, 0, numeric=False)
    assert np.bincount(y[chosen])[1] >= 20 and np.bincount(y[chosen])[2] == 3
    assert len(chosen) <= 223 and (np.diff(chosen) > 0).all()
    assert len(some_rows(y, 200, 0, numeric=True)) == 200


@pytest.mark.parametrize(("finite", "kind"), [(True, ValueError), (False, NonFiniteError)])
def test_the_failure_of_all_heats_is_told(finite, kind):
    failed = HeatResult({}, 10, 0.0, failure="nothing to learn", finite=finite)
    with pytest.raises(kind, match="has a score: nothing to learn"):
        heats.ranked_heats([failed])
