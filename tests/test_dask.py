"""On a real cluster of processes: collections in, the same models out, whatever becomes of workers."""

import contextvars
import os
import pickle
import signal
import subprocess
import sys
import time
import weakref
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.exceptions import NotFittedError
from sklearn.metrics.pairwise import rbf_kernel

pytest.importorskip("distributed", reason='needs the extra "dask": pip install "asset-svm[dask]"')

import dask.array as da
import dask.dataframe as dd
import pandas as pd
from dask.delayed import delayed
from distributed import Client, LocalCluster

import asset_svm
from asset_svm import AssetClassifier, AssetRegressor
from asset_svm.backends.cpu import CpuBackend
from asset_svm.dask import (
    ClusterError,
    DaskAssetClassifier,
    DaskAssetRegressor,
    cells,
    cluster,
    loading,
    work,
)
from asset_svm.features import FourierFeatures
from asset_svm.kernels import Kernel
from clusters import two_workers, when_round, when_waiting
from processes import HUNG, running

pytestmark = pytest.mark.dask

SETTINGS = dict(n_components=60, gamma=0.5, max_iter=4, random_state=0)


@pytest.fixture(scope="module")
def client():
    """Two workers, each a process of one thread with a nanny; all on the loopback."""
    with two_workers() as workers, Client(workers) as connected:
        yield connected


@pytest.fixture
def mortals():
    """A cluster whose workers are killed: Dask's nanny does not always start another."""
    with two_workers() as workers, Client(workers, set_as_default=False) as connected:
        yield connected


@pytest.fixture(scope="module")
def blobs():
    rng = np.random.default_rng(0)
    y = np.where(rng.random(4000) < 0.5, 1, -1)
    return (rng.normal(size=(4000, 3)) + 0.8 * y[:, None]).astype(np.float32), y


@pytest.fixture(scope="module")
def two_shards(client, blobs):
    """The model of two partitions, of which several tests expect a twin."""
    return DaskAssetClassifier(**SETTINGS).fit(*chunked(*blobs, 2000))


def chunked(X, y, size):
    return da.from_array(X, chunks=(size, -1)), da.from_array(y, chunks=size)


def same_model(one, other):
    return np.array_equal(one.map_coef_, other.map_coef_) and np.array_equal(
        one.intercept_, other.intercept_
    )


def with_hole(block):
    block = block.copy()
    block[7:8] = None
    return block


# Models -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("step", ["metric", "robust"])
def test_one_partition_gives_the_plain_estimator_bit_for_bit(client, blobs, step):
    X, y = blobs
    plain = AssetClassifier(**SETTINGS, step=step).fit(X, y)
    model = DaskAssetClassifier(**SETTINGS, step=step, client=client).fit(*chunked(X, y, 4000))
    assert same_model(model, plain)
    assert model.objective_ == pytest.approx(plain.objective_, rel=1e-6)
    assert model.n_iter_ == 4 and model.t_ == plain.t_ == 16000 and model.n_shards_ == 1


def test_two_partitions_come_near_it_and_say_so(two_shards, blobs):
    X, y = blobs
    plain = AssetClassifier(**SETTINGS).fit(X, y)
    assert two_shards.n_shards_ == 2 and two_shards.n_rounds_ == len(two_shards.history_) == 10
    assert plain.objective_ < two_shards.objective_ * 1.001 < 1.02 * plain.objective_
    assert two_shards.objective_ - two_shards.dual_gap_ <= plain.objective_
    records = two_shards.history_
    assert [record["round"] for record in records] == list(range(1, 11))
    assert records[-1]["epoch"] == 4 and records[-1]["steps"] == 16000
    assert records[-1]["progressive_objective"] < records[0]["progressive_objective"]
    objective, gap = two_shards.to_local().certify(X, y)
    assert objective == pytest.approx(two_shards.objective_, rel=1e-5) and 0 <= gap < 0.02 * objective


def test_the_model_does_not_depend_on_who_runs_what(client, two_shards, blobs):
    X, y = chunked(*blobs, 2000)
    first = sorted(client.scheduler_info()["workers"])[0]
    placed = client.persist([X, y], workers=[first])
    assert same_model(DaskAssetClassifier(**SETTINGS).fit(*placed), two_shards)
    options = dict(processes=False, dashboard_address="127.0.0.1:0", memory_limit=0)
    options |= dict(n_workers=1, threads_per_worker=2)
    with LocalCluster(**options) as alone, Client(alone, set_as_default=False) as other:
        model = DaskAssetClassifier(**SETTINGS, client=other).fit(X, y)
        assert same_model(model, two_shards)
        assert model.score(X, y) == two_shards.to_local().score(*blobs)


def test_recomputed_rows_change_nothing(client, two_shards, blobs):
    model = DaskAssetClassifier(**SETTINGS, memory_limit=0).fit(*chunked(*blobs, 2000))
    assert same_model(model, two_shards)


def test_shards_of_one_worker_share_its_memory(monkeypatch):
    """What is left is the same whether the rows of the others are mapped yet, or in part, or not."""
    held, whole = [300_000], 1_000_000
    worker = SimpleNamespace(
        memory_manager=SimpleNamespace(memory_limit=whole),
        monitor=SimpleNamespace(get_process_memory=lambda: held[0]),
    )
    monkeypatch.setattr(work, "get_worker", lambda: worker)
    monkeypatch.setattr(work, "_places", weakref.WeakSet())
    left = int(work.SAFE * whole) - held[0]
    assert work._allowance(None) == left and work._allowance(250_000) == 250_000
    rng = np.random.default_rng(0)
    X, phi = rng.normal(size=(500, 3)), FourierFeatures.sample(Kernel("rbf", 0.5), 3, 25, rng)
    size = 500 * phi.dimension * 8
    rows = CpuBackend(memory_limit=size).rows(phi, X)
    place = work.Place(SimpleNamespace(mapped=rows))
    work._places.add(place)
    for mapped in (0, 250, 500):
        rows.fetch(np.arange(mapped)) if mapped else None
        held[0] = 300_000 + mapped * size // 500
        assert work._allowance(None) == left - size
        assert work._allowance(250_000) == 250_000 - size
    worker.memory_manager.memory_limit = None
    monkeypatch.setattr(work, "available_memory", lambda: 10 * size)
    assert work._allowance(None) == 5 * size


def test_shards_that_begin_together_do_not_take_the_same_memory(blobs, two_shards, monkeypatch):
    size, given = 2000 * 59 * 4, []  # 60 landmarks, centred

    def backend(memory_limit):
        given.append(memory_limit)
        time.sleep(0.2)  # time for the other to ask as well
        return CpuBackend(memory_limit=memory_limit)

    monkeypatch.setattr(work, "CpuBackend", backend)
    options = dict(n_workers=1, threads_per_worker=2, processes=False)
    with (
        LocalCluster(**options, dashboard_address="127.0.0.1:0") as one,
        Client(one, set_as_default=False) as other,
    ):
        model = DaskAssetClassifier(**SETTINGS, memory_limit=1.5 * size, client=other)
        assert same_model(model.fit(*chunked(*blobs, 2000)), two_shards)
    assert given == [1.5 * size, 0.5 * size]


def test_partitions_are_joined_into_shards(client, two_shards, blobs):
    """500 rows a partition and two shards: the rows of 2000 a partition."""
    model = DaskAssetClassifier(**SETTINGS, n_shards=2).fit(*chunked(*blobs, 500))
    assert same_model(model, two_shards)
    assert DaskAssetClassifier(**SETTINGS).fit(*chunked(*blobs, 1000)).n_shards_ == 4


def test_empty_partitions_are_as_good_as_absent(client, two_shards, blobs):
    X, y = blobs
    sizes = ((0, 2000, 0, 2000, 0),)
    model = DaskAssetClassifier(**SETTINGS).fit(
        da.from_array(X, chunks=(*sizes, 3)), da.from_array(y, chunks=sizes)
    )
    assert same_model(model, two_shards)


def test_partitions_of_one_class_and_of_very_different_size(client, blobs):
    X, y = blobs
    order = np.argsort(y, kind="stable")
    X, y = X[order], y[order]
    plain = AssetClassifier(**SETTINGS).fit(X, y)
    model = DaskAssetClassifier(**SETTINGS, rounds_per_epoch=20).fit(*chunked(X, y, 1000))
    assert model.to_local().score(X, y) > plain.score(X, y) - 0.01
    sizes = ((3, 1, 3500, 496),)
    shuffled = np.random.default_rng(1).permutation(4000)
    X, y = X[shuffled], y[shuffled]
    model = DaskAssetClassifier(**SETTINGS).fit(
        da.from_array(X, chunks=(*sizes, 3)), da.from_array(y, chunks=sizes)
    )
    assert model.n_shards_ == 4
    assert model.objective_ < 1.02 * plain.objective_


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The model tells no rows apart")
def test_models_of_shards_that_differ_are_averaged_more_often(client, slow_problem, caplog):
    """Partitions of sorted rows need it; for shuffled ones a round an epoch, ten in all, will do."""
    X, y = slow_problem
    settings = SETTINGS | dict(max_iter=12)
    plain = AssetClassifier(**settings).fit(X, y)
    shuffled = DaskAssetClassifier(**settings).fit(*chunked(X, y, 6000))
    assert shuffled.n_rounds_ == 12 and shuffled.objective_ < 1.03 * plain.objective_
    order = np.argsort(y, kind="stable")
    with caplog.at_level("INFO", "asset_svm"):
        by_class = DaskAssetClassifier(**settings).fit(*chunked(X[order], y[order], 6000))
    assert by_class.n_rounds_ == 72 and "The rows of the 2 shards differ" in caplog.text
    once = DaskAssetClassifier(**settings, rounds_per_epoch=1)
    assert by_class.objective_ < once.fit(*chunked(X[order], y[order], 6000)).objective_


def test_sparse_blocks_and_several_classes(client):
    X, y = make_classification(
        1500, 20, n_informative=6, n_classes=3, class_sep=2.0, random_state=0, n_clusters_per_class=1
    )
    X[np.abs(X) < 0.5] = 0
    names = np.array(["a", "bb", "ccc"])[y]
    blocks = da.from_array(X, chunks=(750, -1)).map_blocks(sp.csr_matrix)
    targets = da.from_array(names, chunks=750)
    settings = SETTINGS | dict(gamma="scale", n_components=150)
    model = DaskAssetClassifier(**settings).fit(blocks, targets)
    plain = AssetClassifier(**settings).fit(sp.csr_matrix(X), names)
    assert model.classes_.tolist() == ["a", "bb", "ccc"]
    assert sp.issparse(model.components_)
    decisions = model.decision_function(blocks)
    assert decisions.shape == (1500, 3)
    np.testing.assert_array_equal(
        decisions.compute().argmax(axis=1),
        np.searchsorted(model.classes_, model.predict(blocks).compute()),
    )
    assert model.score(blocks, targets) > plain.score(sp.csr_matrix(X), names) - 0.02


def test_weights_count_as_copies(client, blobs):
    """Mild weights multiply slopes, uneven ones are drawn by: both come near the optimum of (PL)."""
    X, y = blobs
    settings = SETTINGS | dict(max_iter=20, class_weight={1: 2.0})
    for heavy in (3.0, 200.0):
        w = np.where(np.arange(4000) % 7 == 0, heavy, 1.0)
        plain = AssetClassifier(**settings).fit(X, y, w)
        model = DaskAssetClassifier(**settings).fit(*chunked(X, y, 2000), da.from_array(w, chunks=2000))
        assert model.lam_ == pytest.approx(plain.lam_)
        objective, _ = model.to_local().certify(X, y, w)
        assert objective == pytest.approx(model.objective_, rel=1e-4)
        assert model.objective_ < 1.05 * plain.objective_


def test_a_partition_without_weight_is_as_good_as_absent(client, blobs):
    X, y = blobs
    w = np.ones(4000)
    w[:1000] = 0
    sizes = ((1000, 1500, 1500),)
    rows, labels = da.from_array(X, chunks=(*sizes, 3)), da.from_array(y, chunks=sizes)
    model = DaskAssetClassifier(**SETTINGS).fit(rows, labels, da.from_array(w, sizes))
    without = DaskAssetClassifier(**SETTINGS).fit(rows[1000:], labels[1000:])
    assert same_model(model, without)


def test_rows_of_weight_zero_are_as_good_as_absent(client, two_shards, blobs):
    X, y = blobs
    w = np.ones(4100)
    w[2000:2100] = 0
    X, y = np.insert(X, [2000] * 100, 9.0, axis=0), np.insert(y, [2000] * 100, 5)
    sizes = ((2100, 2000),)
    model = DaskAssetClassifier(**SETTINGS).fit(
        da.from_array(X, chunks=(*sizes, 3)), da.from_array(y, chunks=sizes), da.from_array(w, sizes)
    )
    assert same_model(model, two_shards) and model.classes_.tolist() == [-1, 1]
    assert model.component_indices_ is None
    np.testing.assert_array_equal(two_shards.components_, blobs[0][two_shards.component_indices_])


@pytest.mark.filterwarnings("ignore:The model tells no rows apart")
def test_regression_on_dataframes(client, waves):
    X, y = waves
    frame = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "y": y + 5.0})
    lazy = dd.from_pandas(frame, npartitions=2)
    settings = SETTINGS | dict(C=10, max_iter=30)
    model = DaskAssetRegressor(**settings).fit(lazy[["a", "b"]], lazy["y"])
    plain = AssetRegressor(**settings).fit(frame[["a", "b"]], frame["y"])
    assert model.feature_names_in_.tolist() == ["a", "b"]
    predicted = model.predict(lazy[["a", "b"]])
    assert isinstance(predicted, dd.Series)
    found = predicted.compute()
    assert found.index.equals(frame.index)
    np.testing.assert_allclose(found, model.to_local().predict(frame[["a", "b"]]), rtol=1e-12)
    assert model.score(lazy[["a", "b"]], lazy["y"]) > plain.score(frame[["a", "b"]], frame["y"]) - 0.02
    alone = DaskAssetRegressor(**settings, n_shards=1).fit(lazy[["a", "b"]], lazy["y"])
    assert same_model(alone, plain)
    constant = DaskAssetRegressor(epsilon=100.0).fit(lazy[["a", "b"]], lazy["y"])
    assert not constant.map_coef_.any() and constant.n_iter_ == 0


# Cells --------------------------------------------------------------------------------------------

CELLS = dict(gamma=0.5, n_cells=8, C=3.0, random_state=0)


def test_cells_over_workers_are_the_plain_estimators_bit_for_bit(client, blobs, tmp_path):
    X, y = blobs
    plain = AssetClassifier(**CELLS, n_partitions=2).fit(X, y)
    model = DaskAssetClassifier(**CELLS, n_partitions=2).fit(*chunked(X, y, 700))
    decisions = model.decision_function(chunked(X, y, 900)[0]).compute()
    np.testing.assert_array_equal(decisions, plain.decision_function(X))
    assert model.objective_ == plain.objective_ and model.dual_gap_ == plain.dual_gap_
    assert model.n_cells_ == plain.n_cells_ == 8 and model.t_ == plain.t_ and len(model.history_) == 2
    asset_svm.save(model, tmp_path / "cells.asset")
    np.testing.assert_array_equal(asset_svm.load(tmp_path / "cells.asset").predict(X), plain.predict(X))
    assert model.to_local().partial_fit(X[:500], y[:500]).score(X, y) > 0.85


def test_cells_do_not_depend_on_partitions_or_workers(client, blobs):
    first = sorted(client.scheduler_info()["workers"])[0]
    placed = client.persist(chunked(*blobs, 2000), workers=[first])
    model = DaskAssetClassifier(**CELLS, tol=1e-4).fit(*placed)
    other = DaskAssetClassifier(**CELLS, tol=1e-4).fit(*chunked(*blobs, 300))
    decisions = model.decision_function(blobs[0])
    np.testing.assert_array_equal(decisions, other.decision_function(blobs[0]))
    assert model.dual_gap_ <= 1e-4 * model.objective_


def test_cells_of_a_sample_hold_all_rows(client, blobs, monkeypatch):
    """The partition is grown from some rows; each cell is the exact SVM of all rows in it."""
    monkeypatch.setattr(loading, "SAMPLE_ROWS", 600)
    X, y = blobs
    w = np.where(np.arange(4000) % 3 == 0, 2.0, 1.0)
    model = DaskAssetClassifier(**(CELLS | dict(n_cells=40)), tol=1e-6).fit(
        *chunked(X, y, 1000), da.from_array(w, chunks=1000)
    )
    of = model.cells_[0].partition.assign(X)
    assert 20 <= model.n_cells_ <= 60 and np.bincount(of).sum() == 4000
    np.testing.assert_allclose(model.cells_[0].shares, np.bincount(of, weights=w) / w.sum(), rtol=1e-12)
    cell = np.flatnonzero(of == 0)
    K = rbf_kernel(X[cell].astype(float), gamma=0.5)
    # Coordinate ascent on the dual: a reference of its own.
    alpha, f = np.zeros(len(cell)), np.zeros(len(cell))
    for _ in range(3000):
        for i in range(len(cell)):
            new = np.clip(alpha[i] + (1 - y[cell][i] * f[i]), 0, CELLS["C"] * w[cell][i])
            f += (new - alpha[i]) * y[cell][i] * K[:, i]
            alpha[i] = new
    np.testing.assert_allclose(model.decision_function(X[cell]), f, atol=2e-3)


@pytest.mark.slow
def test_cells_too_large_to_be_solved_whole_are_approximated(client, blobs):
    X, y = blobs
    settings = CELLS | dict(memory_limit=1e6, max_iter=5, n_components=100)
    plain = AssetClassifier(**settings).fit(X, y)
    model = DaskAssetClassifier(**settings).fit(*chunked(X, y, 1000))
    assert any(type(cell).__name__ == "Nested" for cell in model.cells_[0].decisions)
    np.testing.assert_array_equal(model.decision_function(X), plain.decision_function(X))


def test_cells_of_sparse_rows_of_names_and_of_a_regression(client, waves):
    X, y = make_classification(1500, 20, n_informative=6, n_classes=3, random_state=0)
    X[np.abs(X) < 0.5] = 0
    names = np.array(["a", "bb", "ccc"])[y]
    blocks = da.from_array(X, chunks=(400, -1)).map_blocks(sp.csr_matrix)
    plain = AssetClassifier(n_cells=5, random_state=0).fit(sp.csr_matrix(X), names)
    model = DaskAssetClassifier(n_cells=5, random_state=0).fit(blocks, da.from_array(names, chunks=400))
    assert (model.predict(blocks).compute() == plain.predict(sp.csr_matrix(X))).mean() > 0.999
    X, y = waves
    frame = dd.from_pandas(pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "y": y + 5.0}), npartitions=3)
    settings = dict(n_cells=4, fit_intercept=True, C=10, random_state=0)
    model = DaskAssetRegressor(**settings).fit(frame[["a", "b"]], frame["y"])
    plain = AssetRegressor(**settings).fit(X, y + 5.0)
    predicted = model.predict(frame[["a", "b"]]).compute()
    np.testing.assert_allclose(predicted, plain.predict(X), rtol=1e-9)


def test_bundles_share_the_work():
    counts = np.array([900, 10, 10, 500, 480, 20])
    of, sizes = cells.bundles(counts, 3)
    assert len(set(of[counts > 400])) == 3 and sizes == [int(counts[of == b].sum()) for b in range(3)]
    assert cells.bundles(counts, 100)[1] == sorted(counts, reverse=True)


# The estimator ------------------------------------------------------------------------------------


def test_what_becomes_local_is_the_plain_estimator(two_shards, blobs):
    X, y = blobs
    local = two_shards.to_local()
    assert type(local) is AssetClassifier and "client" not in local.get_params()
    assert same_model(pickle.loads(pickle.dumps(local)), two_shards)
    np.testing.assert_array_equal(two_shards.predict(chunked(X, y, 999)[0]).compute(), local.predict(X))
    np.testing.assert_array_equal(two_shards.predict(X), local.predict(X))
    assert local.partial_fit(X[:100], y[:100]).t_ > 16000


def test_a_model_file_holds_the_plain_estimator(two_shards, blobs, tmp_path):
    path = tmp_path / "model.asset"
    asset_svm.save(two_shards, path)
    loaded = asset_svm.load(path)
    assert type(loaded) is AssetClassifier and loaded.get_params() == two_shards.to_local().get_params()
    np.testing.assert_array_equal(loaded.predict(blobs[0]), two_shards.predict(blobs[0]))
    with pytest.raises(NotFittedError):
        asset_svm.save(DaskAssetClassifier(), path)


def test_the_parameters_are_those_of_the_plain_estimator_and_of_the_cluster():
    plain, own = AssetClassifier().get_params(), dict(client=None, n_shards=None, rounds_per_epoch=None)
    assert DaskAssetClassifier().get_params() == plain | own
    assert repr(DaskAssetRegressor("linear", epsilon=2, n_shards=3)) == (
        "DaskAssetRegressor(epsilon=2, kernel='linear', n_shards=3)"
    )
    with pytest.raises(TypeError, match="unexpected keyword argument 'shards'"):
        DaskAssetClassifier(shards=3)


def test_clones_share_the_client_and_pickles_have_none(client, blobs):
    model = DaskAssetClassifier(**SETTINGS, client=client)
    assert clone(model).client is client
    assert clone(model).get_params() == model.get_params()
    assert pickle.loads(pickle.dumps(model)).client is None


def test_progress_is_told_by_callbacks_and_task_names(client, blobs):
    callback = pytest.importorskip("sklearn.callback")
    assert hasattr(callback, "ProgressBar")
    epochs, names = [], set()

    def prefixes(dask_scheduler):
        return set(dask_scheduler.task_prefixes)

    class Notes:
        """Counts epochs."""

        max_estimator_depth = 1

        def setup(self, *args, **options):
            pass

        def teardown(self, *args, **options):
            pass

        def on_fit_task_begin(self, *args, **options):
            pass

        def on_fit_task_end(self, estimator, context, **options):
            if context.task_name == "epoch":
                epochs.append(context.task_id)
                names.update(
                    client.run_on_scheduler(lambda dask_scheduler: set(dask_scheduler.task_prefixes))
                )

    DaskAssetClassifier(**SETTINGS).set_callbacks(Notes()).fit(*chunked(*blobs, 2000))
    assert len(epochs) == 4
    assert {"asset_round", "asset_shard", "asset_place", "load_part", "summarise"} <= names


@pytest.mark.parametrize(
    ("change", "parameters", "message"),
    [
        (lambda X, y: (X.compute(), y), {}, "X is a ndarray, not a Dask array or dataframe"),
        (lambda X, y: (X, y.compute()), {}, "y is a ndarray and X a Dask collection"),
        (lambda X, y: (X, y.rechunk(1000)), {}, "y has 4 partitions and X has 2"),
        (lambda X, y: (X.rechunk((2000, 2)), y), {}, r"X.rechunk\(\{1: -1\}\)"),
        (
            lambda X, y: (X, da.from_array(y.compute(), ((1999, 2001),))),
            {},
            "In partition 0, X has 2000",
        ),
        (lambda X, y: (X * np.nan, y), {}, "X contains NaN"),
        (lambda X, y: (X, y * 0), {}, "y has one class"),
        (lambda X, y: (X, y.astype(object).map_blocks(with_hole)), {}, "has no value in row 7"),
        (lambda X, y: (X[:0], y[:0]), {}, "X has no row of positive weight"),
        (lambda X, y: (X, y), {"tol": 0.1}, "tol=0.1 does not work on a cluster"),
        (lambda X, y: (X, y), {"n_components": "auto"}, 'n_components="auto" tries several'),
        (lambda X, y: (X, y), {"landmarks": "margin"}, 'landmarks="margin" needs a first fit'),
        (lambda X, y: (X, y), {"early_stopping": True}, "early_stopping=True does not work"),
        (lambda X, y: (X, y), {"n_shards": 0}, "n_shards=0 is not a positive integer"),
        (lambda X, y: (X, y), {"client": "tcp://127.0.0.1:1"}, "is not a synchronous"),
        (lambda X, y: (X, y), {"class_weight": {1: 0}}, "has a weight of 0"),
    ],
)
def test_bad_input_gives_one_sentence(client, blobs, change, parameters, message):
    model = DaskAssetClassifier(**(SETTINGS | parameters))
    with pytest.raises((ValueError, TypeError), match=message):
        model.fit(*change(*chunked(*blobs, 2000)))
    assert not hasattr(model, "map_coef_")


def test_without_a_client_it_says_how_to_get_one(monkeypatch):
    monkeypatch.setattr("distributed.client._global_clients", {})
    fit = DaskAssetClassifier().fit
    with pytest.raises(ValueError, match="client=None, and this process has no Dask client; make one"):
        contextvars.Context().run(fit, da.ones((4, 2)), da.ones(4))


# Faults -------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def slow_problem():
    """Of which a round, or a cell, is not over at once."""
    X, y = make_classification(12_000, 20, n_informative=10, random_state=0)
    return X.astype(np.float32), y


SLOW = dict(n_components=100, max_iter=4, random_state=0, rounds_per_epoch=5)


def test_a_worker_killed_in_a_round_changes_nothing(mortals, slow_problem):
    expected = DaskAssetClassifier(**SLOW, client=mortals).fit(*chunked(*slow_problem, 6000))
    pids = mortals.run(os.getpid)
    victim = pids[sorted(pids)[0]]
    with when_round(7, lambda: os.kill(victim, signal.SIGKILL)):
        model = DaskAssetClassifier(**SLOW, client=mortals).fit(*chunked(*slow_problem, 6000))
    assert victim not in mortals.run(os.getpid).values()
    assert same_model(model, expected)
    assert model.objective_ == pytest.approx(expected.objective_, rel=1e-9)


@pytest.mark.slow
def test_a_worker_killed_while_it_solves_cells_changes_nothing(mortals, slow_problem):
    settings = dict(n_cells=16, C=10.0, random_state=0, client=mortals)
    X, y = slow_problem
    expected = DaskAssetClassifier(**settings).fit(*chunked(X, y, 3000))
    pids = mortals.run(os.getpid)
    victim = pids[sorted(pids)[0]]
    kill = lambda: os.kill(victim, signal.SIGKILL)  # noqa: E731
    with when_waiting(lambda key: key.startswith("solve_cells"), kill):
        model = DaskAssetClassifier(**settings).fit(*chunked(X, y, 3000))
    assert victim not in mortals.run(os.getpid).values()
    np.testing.assert_array_equal(
        model.decision_function(X[:1000]), expected.decision_function(X[:1000])
    )


@pytest.mark.parametrize(
    "when",
    [
        "summarise",
        pytest.param("asset_round", marks=pytest.mark.slow),
        pytest.param("solve_cells", marks=pytest.mark.slow),
    ],
)
def test_a_restart_of_the_cluster_is_told(slow_problem, when):
    """``client.restart()`` cancels every future and ends every worker."""
    settings = dict(n_cells=16, C=10.0, random_state=0) if when == "solve_cells" else SLOW
    options = dict(n_workers=1, threads_per_worker=1, host="127.0.0.1", silence_logs="CRITICAL")
    with (
        LocalCluster(**options, dashboard_address="127.0.0.1:0") as restarted,
        Client(restarted, set_as_default=False) as connected,
    ):
        model = DaskAssetClassifier(**settings, client=connected)
        told = pytest.raises(ClusterError, match=r"was restarted \(client.restart\)")
        restart = partial(connected.restart, wait_for_workers=False)
        with told, when_waiting(lambda key: key.startswith(when), restart):
            model.fit(*chunked(*slow_problem, 6000))
        assert not hasattr(model, "map_coef_")


@pytest.mark.slow  # a cluster of its own
def test_scattered_rows_cannot_be_computed_again_and_it_says_so(mortals, slow_problem):
    X, y = slow_problem
    pids = mortals.run(os.getpid)
    worker = sorted(pids)[0]
    lost = mortals.scatter(X[:6000], workers=[worker], hash=False)
    rows = da.concatenate(
        [da.from_delayed(lost, (6000, 20), X.dtype), da.from_array(X[6000:], chunks=(6000, -1))]
    )
    told = pytest.raises(ClusterError, match=r"not by client.scatter|Rows that were scattered")
    with told, when_round(2, lambda: os.kill(pids[worker], signal.SIGKILL)):
        DaskAssetClassifier(**SLOW, client=mortals).fit(rows, da.from_array(y, chunks=6000))


def test_a_cluster_without_workers_is_told(blobs, monkeypatch):
    monkeypatch.setattr(cluster, "STARTING", 1.0)
    options = dict(n_workers=0, processes=False, dashboard_address="127.0.0.1:0")
    with LocalCluster(**options) as empty, Client(empty, set_as_default=False) as connected:
        model = DaskAssetClassifier(client=connected)
        with pytest.raises(ClusterError, match="has had no worker for 1 s"):
            model.fit(*chunked(*blobs, 2000))


@pytest.mark.slow
def test_rows_that_no_worker_can_hold_are_told_before_it_is_stopped(client, monkeypatch):
    assert cluster.PAUSE == 0.8, "where Dask stops a worker of its own accord"
    monkeypatch.setattr(cluster, "PAUSE", 0.4)
    wide = da.zeros((110_000, 700), chunks=(10_000, -1), dtype=np.float32)
    y = da.arange(110_000, chunks=10_000) % 2
    with pytest.raises(
        ClusterError, match=r"have to hold 3\d\d MB of rows, and Dask stops it at 429 MB"
    ):
        DaskAssetClassifier(**SETTINGS, n_shards=1).fit(wide, y)


def test_a_worker_that_joins_late_changes_nothing(client, two_shards, blobs):
    with when_round(1, lambda: client.cluster.scale(3)):
        model = DaskAssetClassifier(**SETTINGS).fit(*chunked(*blobs, 2000))
    client.wait_for_workers(3, timeout=HUNG)
    assert same_model(model, two_shards)


def test_an_error_on_a_worker_is_raised_here(client, blobs):
    here = os.getpid()

    def kernel(X, Z):
        if os.getpid() != here:
            raise ZeroDivisionError("not this kernel")
        return np.exp(-((X[:, None] - Z[None]) ** 2).sum(axis=2))

    with pytest.raises(ZeroDivisionError, match="not this kernel"):
        DaskAssetClassifier(**SETTINGS, kernel=kernel).fit(*chunked(*blobs, 2000))


@pytest.fixture
def own_scheduler(tmp_path):
    """A scheduler and a worker as processes of their own, and a client of them."""
    address = str(tmp_path / "scheduler.json")
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    options = ["--scheduler-file", address, "--no-dashboard", "--host", "127.0.0.1"]
    command = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--port", "0", *options]
    with running(command, **quiet) as scheduler:
        while not os.path.exists(address):
            assert scheduler.poll() is None
            time.sleep(0.05)
        command = [sys.executable, "-m", "distributed.cli.dask_worker", "--no-nanny", *options]
        command += ["--nthreads", "1", "--death-timeout", "20"]
        with (
            running(command, **quiet),
            Client(scheduler_file=address, set_as_default=False) as connected,
        ):
            connected.wait_for_workers(1, timeout=HUNG)
            yield scheduler, connected


@pytest.mark.slow
@pytest.mark.parametrize("fault", ["SIGKILL", "SIGSTOP"], ids=["dies", "stands still"])
def test_a_scheduler_that_goes_away_is_told_within_a_minute(own_scheduler, blobs, monkeypatch, fault):
    assert cluster.GRACE + cluster.ANSWER < 30
    scheduler, connected = own_scheduler

    def act():
        scheduler.send_signal(getattr(signal, fault))
        monkeypatch.setattr(cluster, "GRACE", 1.0)  # not before: a busy machine may be slow to answer
        monkeypatch.setattr(cluster, "ANSWER", 1.0)

    model = DaskAssetClassifier(**SETTINGS, rounds_per_epoch=1000, client=connected)
    told = pytest.raises(ClusterError, match=r"The scheduler tcp://127.* does not answer")
    with told, when_round(2, act):
        model.fit(*chunked(*blobs, 2000))
    assert not hasattr(model, "map_coef_")


def test_silence_counts_from_the_last_answer(ticks, monkeypatch):
    """A scheduler that was slow once, and has answered since, is not given up when it is slow again."""
    monkeypatch.setattr(cluster, "GRACE", 2.0)

    def silent(*args, **options):
        raise TimeoutError

    scheduler = SimpleNamespace(address="tcp://127.0.0.1:1", ncores=None)
    watch = cluster.Cluster(
        SimpleNamespace(scheduler=scheduler, status="running", generation=0, sync=silent)
    )
    for _ in range(3):
        assert watch.workers() == {}
    watch.heard()
    for _ in range(3):
        assert watch.workers() == {}
    with pytest.raises(ClusterError, match="does not answer"):
        watch.workers()


def test_a_cluster_that_is_closed_is_told_at_once(blobs):
    options = dict(n_workers=1, processes=False, dashboard_address="127.0.0.1:0")
    with LocalCluster(**options) as closing, Client(closing, set_as_default=False) as connected:
        model = DaskAssetClassifier(**SETTINGS, rounds_per_epoch=1000, client=connected)
        told = pytest.raises(ClusterError, match="does not answer")
        with told, when_round(2, connected.close):
            model.fit(*chunked(*blobs, 2000))


@pytest.mark.parametrize(
    ("relevance", "more"),
    [
        ("columns", dict(max_iter=3, n_components=60)),
        ("directions", dict(n_cells=4)),
        pytest.param("directions", dict(max_iter=3, n_components=60), marks=pytest.mark.slow),
        pytest.param("columns", dict(n_cells=4), marks=pytest.mark.slow),
    ],
)
def test_relevance_is_learnt_from_the_sample_and_rows_are_mapped_where_they_lie(
    client, relevance, more
):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 6)).astype(np.float32)
    y = np.sin(2.0 * X[:, 1]) + 0.5 * X[:, 4]
    rows, targets = da.from_array(X, chunks=(700, -1)), da.from_array(y, chunks=700)
    parameters = dict(C=10.0, epsilon=0.02, random_state=0, **more)
    plain = DaskAssetRegressor(client=client, **parameters).fit(rows, targets)
    model = DaskAssetRegressor(client=client, relevance=relevance, **parameters).fit(rows, targets)
    assert set(np.argsort(model.feature_importances_)[-2:]) == {1, 4}
    assert model.n_features_in_ == 6
    errors = [np.abs(each.predict(rows).compute() - y).mean() for each in (plain, model)]
    assert errors[1] < 0.6 * errors[0]
    local = model.to_local()
    np.testing.assert_allclose(local.predict(X), model.predict(rows).compute(), atol=1e-6)
    np.testing.assert_array_equal(local.relevance_, model.relevance_)
    # All rows are the sample here: the map is the one that one machine learns.
    own = AssetRegressor(relevance=relevance, **parameters).fit(X, y)
    np.testing.assert_allclose(np.abs(own.relevance_), np.abs(model.relevance_), rtol=1e-3, atol=1e-4)


# Tables -------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def table():
    """A frame with everything in it, and numbers that it explains."""
    rng = np.random.default_rng(3)
    n = 3000
    size, town, effect = rng.normal(size=n), rng.integers(0, 120, n), rng.normal(size=120)
    colour, flag = rng.choice(["red", "green", "blue"], n), rng.random(n) < 0.5
    day = pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 500, n), unit="D")
    gaps = (rng.random(n) < 0.2) & (np.arange(n) >= 2000)  # of the last partition alone
    frame = pd.DataFrame(
        {
            "size": np.where(gaps, np.nan, size),
            "colour": pd.Categorical(colour),
            "town": [f"town {k}" for k in town],
            "day": day,
            "flag": pd.array(np.where(rng.random(n) < 0.1, None, flag), dtype="boolean"),
            "count": rng.integers(0, 50, n),
        }
    )
    return frame, size + (colour == "red") + 1.5 * effect[town] + 0.1 * rng.normal(size=n)


def lying(*given, size=1000):
    """Frames, targets and weights as collections, in partitions of so many rows."""
    return [
        in_parts([each[at : at + size] for at in range(0, len(each), size)]) for each in frames(given)
    ]


def frames(given):
    return [each if isinstance(each, pd.DataFrame) else pd.Series(each) for each in given]


def in_parts(parts):
    """A collection of these partitions; the last of them tells what columns are."""
    return dd.from_delayed([delayed(part) for part in parts], meta=parts[-1][:0], verify_meta=False)


def same_encoder(one, other):
    """Whether two encoders make the same numbers, but for rounding."""
    assert one.columns_ == other.columns_ and one.numbers_ == other.numbers_
    assert one.get_feature_names_out().tolist() == other.get_feature_names_out().tolist()
    for (_, mine), (_, theirs) in zip(one.encoding_.parts, other.encoding_.parts, strict=True):
        assert type(mine) is type(theirs)
        for name, value in vars(mine).items():
            if isinstance(value, float | np.ndarray):
                np.testing.assert_allclose(value, getattr(theirs, name), rtol=1e-6, atol=1e-8)
            else:
                assert value == getattr(theirs, name)
    return True


def test_a_mixed_frame_is_encoded_as_on_one_machine(client, table, tmp_path):
    frame, y = table
    labels = np.where(y > 0.8, "high", np.where(y < -0.8, "low", "middle"))
    settings = SETTINGS | dict(gamma="scale", max_iter=8, C=10)
    rows, targets = lying(frame, labels)
    model = DaskAssetClassifier(**settings).fit(rows, targets)
    plain = AssetClassifier(**settings).fit(frame, labels)
    assert same_encoder(model.encoder_, plain.encoder_)
    names = model.encoder_.get_feature_names_out().tolist()
    assert {"size gap", "flag gap", "colour red", "town mean high", "day year sin"} <= set(names)
    assert model.n_features_in_ == 6 and model.feature_names_in_.tolist() == frame.columns.tolist()
    assert model.score(rows, targets) > plain.score(frame, labels) - 0.02 > 0.8
    # Results are told without a row, and of partitions without any.
    lazy = model.predict(rows)
    assert lazy.dtype.kind in "OUT" and model.decision_function(rows)._meta.shape == (0, 3)
    none = rows.map_partitions(lambda part: part[part["count"] < 0], meta=frame[:0])
    both = dd.concat([none, rows])
    local = model.to_local()
    np.testing.assert_array_equal(model.predict(both).compute(), local.predict(frame))
    assert model.decision_function(both).compute().shape == (3000, 3)
    odd = frame[:50].assign(colour="violet", town="nowhere", flag=None, day=pd.NaT)
    found = model.predict(dd.from_pandas(odd, npartitions=2)).compute()
    np.testing.assert_array_equal(found, local.predict(odd))
    asset_svm.save(model, tmp_path / "m.asset")
    np.testing.assert_array_equal(asset_svm.load(tmp_path / "m.asset").predict(odd), found)


def test_quantiles_and_target_means_are_those_of_all_partitions(client, table):
    frame, y = table
    encoder = asset_svm.TableEncoder(numbers="pieces", drop=["day"], categorical=["count"])
    settings = SETTINGS | dict(gamma="scale", encoder=encoder)
    rows, targets = lying(frame, y > 0, size=250)  # more than are joined at once
    model = DaskAssetClassifier(**settings).fit(rows, targets)
    plain = AssetClassifier(**settings).fit(frame, y > 0)
    assert same_encoder(model.encoder_, plain.encoder_) and not hasattr(encoder, "encoding_")
    made = {each["name"]: each["made"] for each in model.encoder_.columns_}
    assert made["town"] == "target means of 120 levels" and made["count"] == "one of 50 levels"
    assert made["size"].startswith("piecewise linear") and made["day"] == "as asked"
    # No row has its own target in its numbers: one shard then has the problem of one machine.
    alone = DaskAssetClassifier(**settings, n_shards=1).fit(rows, targets)
    assert alone.objective_ == pytest.approx(plain.objective_, rel=1e-4)
    arrays = frame[["size", "count"]].to_numpy()  # of which none has names
    rows, targets = da.from_array(arrays, chunks=(700, -1)), da.from_array(y > 0, chunks=700)
    model.set_params(encoder=asset_svm.TableEncoder(numbers="standard")).fit(rows, targets)
    assert not hasattr(model, "feature_names_in_") and model.encoder_.encoding_.names == ("x0", "x1")
    np.testing.assert_array_equal(model.predict(rows).compute(), model.to_local().predict(arrays))


def test_weights_of_tables_count_as_on_one_machine(client, table):
    frame, y = table
    weight = np.random.default_rng(0).integers(0, 4, len(y)).astype(float)
    weight[1000:2000] = 0.0  # a partition without weight
    settings = SETTINGS | dict(gamma="scale")
    model = DaskAssetClassifier(**settings).fit(*lying(frame, y > 0, weight))
    plain = AssetClassifier(**settings).fit(frame, y > 0, weight)
    assert same_encoder(model.encoder_, plain.encoder_)


def test_a_sample_settles_units_and_all_rows_the_columns(client, table, monkeypatch):
    monkeypatch.setattr(loading, "SAMPLE_ROWS", 600)
    frame, y = table
    rows, targets = lying(frame, 1000.0 * y)
    settings = SETTINGS | dict(gamma="scale", C=10, max_iter=20, target_transform="standard")
    model = DaskAssetRegressor(**settings).fit(rows, targets)
    plain = AssetRegressor(**settings).fit(frame, 1000.0 * y)
    assert model.encoder_.columns_ == plain.encoder_.columns_
    one, other = (each._fitted.task.units for each in (model, plain))
    assert one.scale != other.scale and one.scale == pytest.approx(other.scale, rel=0.1)
    assert model.score(rows, targets) > plain.score(frame, 1000.0 * y) - 0.03 > 0.8


def test_numbers_without_gaps_stay_as_they_are(client, table):
    frame, y = table
    numbers = frame[["count"]].assign(size=frame["size"].fillna(0.0), flag=y > 1)
    model = DaskAssetClassifier(**SETTINGS).fit(*lying(numbers, y > 0))
    assert model.encoder_ is None and model.n_features_in_ == 3
    refused = DaskAssetClassifier(**SETTINGS, encoder=None)
    with pytest.raises(ValueError, match=r"In partition 0, X, column 'colour', has text"):
        refused.fit(*lying(frame[["colour", "count"]], y > 0))
    with pytest.raises(ValueError, match="contains NaN"):
        refused.fit(*lying(frame[["size"]], y > 0))
    with pytest.raises(ValueError, match="encoder='some' is not known"):
        DaskAssetClassifier(encoder="some").fit(*lying(frame, y > 0))
    odd = frame[["colour"]].assign(odd=1j)
    with pytest.raises(ValueError, match="In partition 0, The column 'odd' has complex numbers"):
        DaskAssetClassifier().fit(*lying(odd, y > 0))


def test_a_column_of_several_kinds_is_one_of_levels_everywhere(client, table):
    frame, y = table
    numbers = frame[["count"]].assign(size=frame["size"].fillna(0.0))
    whole = numbers.assign(count=numbers["count"].astype(object))
    whole.loc[2000:, "count"] %= 9  # those above are numbers everywhere
    whole.loc[2990:, "count"] = "many"

    rows = in_parts([numbers[:1000], numbers[1000:2000], whole[2000:]])
    settings = SETTINGS | dict(gamma="scale")
    model = DaskAssetClassifier(**settings).fit(rows, lying(numbers, y > 0)[1])
    plain = AssetClassifier(**settings).fit(whole, y > 0)
    assert same_encoder(model.encoder_, plain.encoder_)
    names = model.encoder_.get_feature_names_out().tolist()
    assert {"count 7", "count 30", "count many"} <= set(names)
    np.testing.assert_array_equal(model.predict(rows).compute(), model.to_local().predict(whole))


@pytest.mark.parametrize(
    "more", [dict(max_iter=20, n_components=80), pytest.param(dict(n_cells=3), marks=pytest.mark.slow)]
)
def test_relevance_of_a_table_is_told_by_its_columns(client, table, more):
    frame, y = table
    rows, targets = lying(frame, 1000.0 * y)
    settings = dict(C=10.0, random_state=0, target_transform="standard", relevance="columns", **more)
    model = DaskAssetRegressor(**settings).fit(rows, targets)
    assert model.feature_importances_.shape == (6,)
    assert frame.columns[model.feature_importances_.argmax()] in ("size", "town")
    assert model.feature_importances_[-1] < 0.05 and model.score(rows, targets) > 0.85


def test_a_regression_on_a_cluster_has_units(client, waves):
    X, y = waves
    X, y = X[:2000], 1e4 * y[:2000]
    settings = SETTINGS | dict(C=10, target_transform="standard")
    model = DaskAssetRegressor(**settings).fit(*chunked(X, y, 500))
    plain = AssetRegressor(**settings).fit(X, y)
    rows, targets = chunked(X, y, 500)
    assert model.score(rows, targets) > plain.score(X, y) - 0.02
    assert model._fitted.task.units == plain._fitted.task.units  # all rows are the sample
    assert model.to_local().score(X, y) == pytest.approx(model.score(rows, targets))
    raised = np.exp(y / 1e4)
    log = DaskAssetRegressor(**settings | dict(target_transform="log")).fit(*chunked(X, raised, 500))
    assert (log.predict(rows).compute() > 0).all()
    with pytest.raises(ValueError, match='"log" needs targets above 0, and y has -'):
        log.fit(rows, targets)
