"""Products that skip zeros: equal to matrix products, and a row's own affair."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import pairwise

from asset_svm import AssetClassifier
from asset_svm.kernels import Kernel, landmarks, sums
from asset_svm.kernels.landmarks import FEWEST_LANDMARKS
from asset_svm.numerics.products import csr_times, nonzeros_times
from asset_svm.threads import blocks
from asset_svm.threads.granted import grant, granted


@pytest.fixture(autouse=True)
def on_zen(monkeypatch):
    """What is tested does not depend on the kind of CPU at hand."""
    monkeypatch.setattr(landmarks, "FEW_NONZEROS", 0.3)


def rows_of_density(rng, m, n, density, dtype):
    """Rows of which row i has a share density[i] of nonzeros, all entries integers."""
    X = np.zeros((m, n), dtype=dtype)
    for i in range(m):
        X[i, rng.permutation(n)[: round(float(density[i]) * n)]] = 1
    X *= rng.integers(1, 9, size=X.shape).astype(dtype)
    return X


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    m=st.integers(0, 70),
    n=st.integers(1, 40),
    width=st.integers(1, 200),
    dtype=st.sampled_from([np.float32, np.float64]),
    order=st.sampled_from("CF"),
)
def test_rows_of_any_density_give_the_exact_product(seed, m, n, width, dtype, order):
    rng = np.random.default_rng(seed)
    X = rows_of_density(rng, m, n, rng.uniform(size=m), dtype)
    Z = rng.integers(-9, 9, size=(n, width)).astype(dtype)
    expected = X.astype(np.int64) @ Z.astype(np.int64)  # sums of small integers are not rounded
    for found in (nonzeros_times(np.asarray(X, order=order), Z), csr_times(sp.csr_matrix(X), Z)):
        assert found.dtype == dtype
        np.testing.assert_array_equal(found, expected)
    place = rng.permutation(n).astype(np.int32)
    place[rng.uniform(size=n) < 0.5] = -1
    there = place >= 0
    expected = X[:, there].astype(np.int64) @ Z[place[there]].astype(np.int64)
    np.testing.assert_array_equal(csr_times(sp.csr_matrix(X), Z, place), expected)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", [123, 450])
@pytest.mark.parametrize("s", [128, 1024])
def test_a_row_is_rounded_in_one_way_whatever_stands_beside_it(dtype, n, s):
    rng = np.random.default_rng(0)
    density = np.where(rng.uniform(size=512) < 0.05, 1.0, 0.1)
    X = rows_of_density(rng, 512, n, density, dtype) * rng.normal(size=(512, n)).astype(dtype)
    Z = X[density < 1.0][:s] if s < 400 else rows_of_density(rng, s, n, np.full(s, 0.1), dtype)
    against = Kernel("rbf", 0.1 / n).against(Z, dtype)
    assert against.transposed.skips
    whole = against(X)
    for count in (1, 16, 48, 160, 400):
        rows = rng.permutation(512)[:count]
        np.testing.assert_array_equal(against(X[rows]), whole[rows])


@pytest.mark.filterwarnings("ignore:The model tells no rows apart")
@pytest.mark.parametrize(
    ("approximation", "kernel"),
    [("nystroem", name) for name in ("rbf", "laplacian", "poly", "linear")]
    + [("fourier", name) for name in ("rbf", "laplacian")],
)
@pytest.mark.parametrize("dtype", [np.float32, pytest.param(np.float64, marks=pytest.mark.slow)])
def test_rows_of_mixed_density_give_one_model_kept_or_recomputed(approximation, kernel, dtype):
    rng = np.random.default_rng(0)
    density = np.where(rng.uniform(size=2500) < 0.06, 1.0, 0.1)
    X = rows_of_density(rng, 2500, 450, density, dtype)
    y = X[:, :40].sum(axis=1) > 8
    fits = [
        AssetClassifier(
            approximation=approximation, kernel=kernel, gamma=1e-4, n_components=128, max_iter=2,
            memory_limit=limit, random_state=0,
        ).fit(X, y)
        for limit in (None, 0)
    ]  # fmt: skip
    np.testing.assert_array_equal(fits[0].map_coef_, fits[1].map_coef_)
    assert fits[0].score(X, y) > 0.6


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_zeros_are_skipped_where_they_are_many_and_only_there(kernel):
    rng = np.random.default_rng(0)

    def skips(s, share):
        Z = rows_of_density(rng, s, 50, np.full(s, share), np.float32)
        return Kernel(kernel, 1e-3).against(Z, np.float32).transposed.skips

    assert skips(FEWEST_LANDMARKS, 0.3)
    assert not skips(FEWEST_LANDMARKS, 0.4)
    assert not skips(FEWEST_LANDMARKS - 1, 0.3)


def test_what_is_not_finite_is_not_skipped():
    X = np.zeros((3, 20), dtype=np.float32)
    X[0, 3], X[1, 4], X[2, 5] = np.nan, np.inf, 1.0
    found = nonzeros_times(X, np.ones((20, 128), dtype=np.float32))
    assert np.isnan(found[0]).all() and np.isposinf(found[1]).all() and (found[2] == 1).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_gaussians_of_rows_with_many_zeros_are_as_exact_as_others(dtype):
    """One-hot columns, a column with a large offset, and two of two thirds, of which one counts."""
    rng = np.random.default_rng(0)
    X = np.zeros((300, 41))
    X[np.arange(300), rng.integers(0, 38, size=300)] = 1.0
    X[:, 38] = 2000 + rng.integers(0, 30, size=300)
    X[:, 39] = rng.uniform(50, 51, size=300) * (rng.uniform(size=300) > 0.34)
    X[:, 40] = rng.uniform(0, 1, size=300) * (rng.uniform(size=300) > 0.34)
    X = X.astype(dtype)
    Z = X[:200]
    expected = pairwise.rbf_kernel(X.astype(np.float64), Z.astype(np.float64), gamma=0.01)
    against = Kernel("rbf", 0.01).against(Z, dtype)
    np.testing.assert_allclose(against(X), expected, atol=1e-12 if dtype == np.float64 else 5e-6)
    assert against.transposed.skips
    assert against.shift[38] > 1000 and against.shift[39] > 10, "what would cancel is moved"
    assert (against.shift[:38] == 0).all() and against.shift[40] == 0, "zeros stay zeros"


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("kind", ["dense", "csr", "laplacian"])
@pytest.mark.parametrize("classes", [2, 3, 7])
def test_many_rows_are_decided_by_threads_as_by_one(threads, kind, classes, monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 7)).astype(np.float32) * (rng.uniform(size=(2000, 7)) < 0.5)
    X = sp.csr_matrix(X) if kind == "csr" else X
    y = rng.integers(0, classes, size=2000)
    kernel = "laplacian" if kind == "laplacian" else "rbf"
    model = AssetClassifier(kernel=kernel, n_components=150, max_iter=1, random_state=0).fit(X, y)
    monkeypatch.setattr(blocks, "BLOCK_ROWS", 128)
    alone = model.set_params(n_jobs=1).decision_function(X)
    used = []
    watch_teams(monkeypatch, blocks if kind != "dense" else sums, used)
    model.set_params(n_jobs=threads)
    np.testing.assert_array_equal(model.decision_function(X), alone)
    np.testing.assert_array_equal(model.decision_function(X[300:1300]), alone[300:1300])
    teams = [] if kind == "dense" and threads == 1 else [threads, threads]
    assert used == teams
    np.testing.assert_array_equal(model.decision_function(X[:100]), alone[:100])
    assert used == teams, "a few rows are not worth a team"


def watch_teams(monkeypatch, module, used):
    """Have ``used`` told how many threads each team of a module has."""
    name = "side_by_side" if module is blocks else "together"
    real = getattr(module, name)
    monkeypatch.setattr(module, name, lambda *given: (used.append(granted()), real(*given))[1])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("share", [1.0, 0.1])
@pytest.mark.parametrize("kernel", ["rbf", "exponential", "matern32", "matern52"])
def test_compiled_sums_are_those_of_kernel_values(dtype, share, kernel):
    rng = np.random.default_rng(0)
    X = (rng.normal(size=(700, 9)) * (rng.uniform(size=(700, 9)) < share)).astype(dtype)
    X[:, 4] = 3.0
    values = Kernel(kernel, 0.2).against(X[:200], dtype)
    for K in (1, 4, 5, 20):
        weights, intercept = rng.normal(size=(K, 200)), rng.normal(size=K)
        found = sums.KernelSums.of(values, weights, intercept)
        expected = values(X).astype(np.float64) @ weights.T + intercept
        np.testing.assert_allclose(found(X), expected, atol=1e-12 if dtype == np.float64 else 2e-5)
        np.testing.assert_array_equal(found(X[5:37]), found(X)[5:37])
        np.testing.assert_allclose(found(X[5:6])[0], found(X)[5], rtol=1e-4, atol=1e-5)
        assert found(X[:0]).shape == (0, K)


def test_a_users_kernel_is_called_by_one_thread(monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 3))
    model = AssetClassifier(
        kernel=lambda A, B: pairwise.rbf_kernel(A, B), n_components=20, max_iter=1, random_state=0
    ).fit(X, X[:, 0] > 0)
    monkeypatch.setattr(blocks, "BLOCK_ROWS", 64)
    monkeypatch.setattr(blocks, "side_by_side", None)
    assert model.decision_function(X).shape == (600,)


def test_what_numpy_is_told_reaches_the_threads(monkeypatch):
    with np.errstate(over="ignore"), grant(2):
        found = blocks.map_in_blocks(
            lambda X: X * X, np.full((6000, 1), 1e300), 1, np.float64, reentrant=True
        )
    assert np.isposinf(found).all()
    with pytest.raises(FloatingPointError), np.errstate(over="raise"), grant(2):
        blocks.map_in_blocks(lambda X: X * X, np.full((6000, 1), 1e300), 1, np.float64, reentrant=True)
