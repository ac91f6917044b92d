"""The same random_state, rows and versions: the same model, whatever the machine is doing beside."""

from itertools import count
from types import SimpleNamespace

import joblib
import numpy as np
import pytest
from sklearn.datasets import make_moons
from threadpoolctl import threadpool_limits

from asset_svm import (
    AssetClassifier,
    AssetClassifierCV,
    AssetRegressor,
    FourierMap,
    clock,
    memory,
    open_rows,
)
from asset_svm.families.one_map import components
from asset_svm.settings import Settings

PARTS = (
    "map_coef_",
    "intercept_",
    "components_",
    "approximation_error_",
    "step_scale_",
    "n_iter_",
    "t_",
)


def fingerprint(model, X):
    """A hash of everything that a model is."""
    decide = getattr(model, "decision_function", model.predict)
    return joblib.hash([decide(X), *(getattr(model, name, None) for name in PARTS)])


def moons(m, seed=0, **options):
    return make_moons(m, noise=0.2, random_state=seed, **options)


@pytest.fixture
def leave(monkeypatch):
    """A container whose limit leaves so many bytes."""
    return lambda size: monkeypatch.setattr(memory, "_container_memory", lambda: size)


# Free memory --------------------------------------------------------------------------------------


LITTLE = 1_000_000
ENOUGH = 4_000_000
"""For the 3.84 MB of 400 rows: their kernel matrix and the interior-point method's two."""


@pytest.mark.parametrize(
    ("model", "left"),
    [
        (AssetClassifier(max_iter=4), LITTLE),
        (AssetClassifier(max_iter=4, approximation="fourier", n_components=512), LITTLE),
        (AssetRegressor(max_iter=4, step="robust"), LITTLE),
        (AssetClassifier(n_cells=1), ENOUGH),
        (AssetClassifier(n_cells=1, fit_intercept=True), ENOUGH),
    ],
    ids=["nystroem", "fourier", "robust", "exact", "exact with an intercept"],
)
def test_free_memory_changes_no_model(model, left, leave):
    X, y = moons(400)
    model.set_params(random_state=0)
    expected = fingerprint(model.fit(X, y), X)
    leave(left)
    assert fingerprint(model.fit(X, y), X) == expected


def test_default_features_are_2048_however_little_is_free(leave):
    leave(1000)
    assert FourierMap().fit(np.eye(50)).features_.dimension == 2048


def test_free_memory_changes_no_search(leave):
    X, y = moons(300)
    search = AssetClassifierCV(Cs=[0.1, 1.0], gammas=[1.0], n_cells=1, cv=2, random_state=0)
    expected = search.fit(X, y).cv_results_["mean_test_score"]
    leave(2_500_000)
    np.testing.assert_array_equal(search.fit(X, y).cv_results_["mean_test_score"], expected)


def test_free_memory_changes_no_number_of_components(leave):
    rows = SimpleNamespace(X=np.zeros((100_000, 2), dtype=np.float32), y=np.zeros(100_000), uneven=None)
    model = AssetClassifier(n_components="auto", approximation="fourier")
    expected = components._most(Settings.of(model.get_params()), rows)
    leave(1 << 20)
    assert components._most(Settings.of(model.get_params()), rows) == expected
    smaller = model.set_params(memory_limit=1e9)
    assert components._most(Settings.of(smaller.get_params()), rows) < expected


def test_a_file_is_held_or_streamed_whatever_is_free(tmp_path, leave):
    X, y = moons(2000)
    path = tmp_path / "rows.npy"
    np.save(path, np.column_stack([X, y]))
    model = AssetClassifier(n_components=64, max_iter=3, random_state=0)
    expected = fingerprint(model.fit(open_rows(path)), X)
    leave(100_000)
    assert fingerprint(model.fit(open_rows(path)), X) == expected
    leave(10_000)
    with pytest.raises(MemoryError, match=r"10000 bytes are free .*set memory_limit"):
        model.fit(open_rows(path))
    model.set_params(memory_limit=10_000).fit(open_rows(path))  # streamed


@pytest.mark.parametrize("searched", [False, True])
def test_cells_that_do_not_fit_are_an_error_that_names_both_numbers(searched, leave):
    X, y = moons(400)
    model = AssetClassifier(n_cells=1)
    if searched:
        model = AssetClassifierCV(Cs=[1.0], n_cells=1, cv=2)
        X = X.astype(np.float32)
    leave(1_000_000)
    with pytest.raises(
        MemoryError, match=r"400 rows takes 3\.\d+ MB, and 1\.00 MB are free; raise n_c"
    ):
        model.fit(X, y)
    model.set_params(memory_limit=1e6).fit(X, y)


def test_a_search_of_components_that_outgrows_the_memory_says_so(leave):
    X, y = moons(700)
    leave(5_000_000)
    with pytest.raises(MemoryError, match=r"n_components=512.* takes 6.29 MB, and 5.00 MB are free"):
        AssetClassifier(n_components="auto", gamma=100.0, random_state=0).fit(X, y)


# The clock ----------------------------------------------------------------------------------------


def test_the_clock_does_not_end_a_run_with_a_tolerance(monkeypatch):
    X, y = moons(500)
    model = AssetClassifier(n_components=480, gamma=30.0, tol=0.02, random_state=0)
    found = []
    for pace in (0.0, 1000.0):
        ticks = count()
        monkeypatch.setattr(clock, "now", lambda p=pace, t=ticks: p * next(t))
        model.fit(X, y)
        found.append((model.n_iter_, model.dual_gap_, fingerprint(model, X)))
    assert found[0] == found[1]


# Threads ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "model",
    [
        AssetClassifier(max_iter=2, n_components=500),
        AssetClassifier(max_iter=2, n_components=100, landmarks="rpcholesky"),
        AssetClassifier(max_iter=2, n_components=300, kernel="linear"),
        AssetClassifier(max_iter=2, n_components=300, approximation="fourier"),
        AssetRegressor(max_iter=2, n_components=300, step="robust"),
        AssetClassifier(n_cells=2),
    ],
    ids=["metric", "rpcholesky", "linear", "fourier", "robust", "cells"],
)
def test_the_number_of_cpus_changes_no_model(model):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1500, 5)).astype(np.float32)
    y = (np.sin(2 * X[:, 0]) + X[:, 1] ** 2 > 0.7).astype(int) + (X[:, 2] > 0.5)
    model.set_params(random_state=0)
    found = set()
    for threads in (1, 5):
        with threadpool_limits(threads, "blas"):
            model.set_params(n_jobs=threads).fit(X, y)
        with threadpool_limits(1, "blas"):
            found.add(fingerprint(model, X[:16]))
    assert len(found) == 1


def test_the_number_of_cpus_changes_no_stream():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1500, 5))
    y = (np.sin(2 * X[:, 0]) + X[:, 1] ** 2 > 0.7).astype(int)
    found = set()
    for threads in (1, 5):
        model = AssetClassifier(n_components=300, random_state=0, n_jobs=threads)
        with threadpool_limits(threads, "blas"):
            for part in np.split(np.arange(1500), 3):
                model.partial_fit(X[part], y[part], classes=[0, 1])
        with threadpool_limits(1, "blas"):
            found.add(fingerprint(model, X[:16]))
    assert len(found) == 1
