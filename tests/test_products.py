"""Products that skip zeros: equal to matrix products, and a row's own affair."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import pairwise
from threadpoolctl import threadpool_limits

from asset_svm import AssetClassifier
from asset_svm.features import FourierFeatures, base
from asset_svm.kernels import Kernel
from asset_svm.numerics import products
from asset_svm.numerics.products import FEW, FEWEST_COLUMNS, times


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
    for rows in (np.asarray(X, order=order), sp.csr_matrix(X)):
        found = times(rows, Z)
        assert found.dtype == dtype
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_row_is_rounded_in_one_way_whatever_stands_beside_it(dtype):
    rng = np.random.default_rng(0)
    X = rows_of_density(rng, 512, 123, rng.uniform(0, 2 * FEW, size=512), dtype)
    X *= rng.normal(size=X.shape).astype(dtype)
    Z = rng.normal(size=(123, 256)).astype(dtype)
    few = np.count_nonzero(X, axis=1) <= FEW * 123
    assert 0.2 < few.mean() < 0.8
    whole = times(X, Z)
    for count in (16, 48, 160, 400):
        rows = rng.permutation(512)[:count]
        np.testing.assert_array_equal(times(X[rows], Z), whole[rows])
    for one in np.flatnonzero(~few)[:20]:
        rows = np.r_[np.flatnonzero(few)[:15], one]
        np.testing.assert_array_equal(times(X[rows], Z), whole[rows])


def test_zeros_are_skipped_where_they_are_many_and_only_there(monkeypatch):
    rng = np.random.default_rng(0)
    seen = []
    real = products._chosen_times
    monkeypatch.setattr(
        products,
        "_chosen_times",
        lambda X, chosen, Z, out: (seen.append(chosen), real(X, chosen, Z, out)),
    )
    X = rows_of_density(rng, 4, 50, [0.0, FEW, FEW + 0.1, 1.0], np.float32)
    times(X, np.ones((50, FEWEST_COLUMNS), dtype=np.float32))
    np.testing.assert_array_equal(seen.pop(), [True, True, False, False])
    times(X[2:], np.ones((50, FEWEST_COLUMNS), dtype=np.float32))
    times(X, np.ones((50, FEWEST_COLUMNS - 1), dtype=np.float32))
    assert not seen


def test_what_is_not_finite_is_not_skipped():
    X = np.zeros((3, 20), dtype=np.float32)
    X[0, 3], X[1, 4], X[2, 5] = np.nan, np.inf, 1.0
    found = times(X, np.ones((20, 128), dtype=np.float32))
    assert np.isnan(found[0]).all() and np.isposinf(found[1]).all() and (found[2] == 1).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_gaussians_of_rows_with_many_zeros_are_as_exact_as_others(dtype):
    """One-hot columns beside a column with a large offset, and one that is 0 in a third of the rows."""
    rng = np.random.default_rng(0)
    X = np.zeros((300, 40))
    X[np.arange(300), rng.integers(0, 38, size=300)] = 1.0
    X[:, 38] = 2000 + rng.integers(0, 30, size=300)
    X[:, 39] = rng.uniform(50, 51, size=300) * (rng.uniform(size=300) > 0.34)
    X = X.astype(dtype)
    Z = X[:200]
    expected = pairwise.rbf_kernel(X.astype(np.float64), Z.astype(np.float64), gamma=0.01)
    against = Kernel("rbf", 0.01).against(Z, dtype)
    np.testing.assert_allclose(against(X), expected, atol=1e-12 if dtype == np.float64 else 2e-5)
    assert against.shift[38] > 1000, "a column without zeros is moved"
    assert (against.shift[:38] == 0).all() and against.shift[39] == 0, "zeros stay zeros"


def test_the_fourier_map_skips_zeros_too():
    rng = np.random.default_rng(0)
    X = rows_of_density(rng, 60, 30, np.full(60, 0.2), np.float64)
    phi = FourierFeatures.sample(Kernel("rbf", 0.01), 30, 256, rng)
    expected = np.sqrt(2 / 256) * np.cos(X @ phi.frequencies + phi.phases)
    np.testing.assert_allclose(phi(X), expected, atol=1e-9)
    np.testing.assert_allclose(phi(sp.csr_matrix(X)), expected, atol=1e-9)


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("kind", ["dense", "csr"])
def test_many_rows_are_decided_by_threads_as_by_one(threads, kind, monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 7)).astype(np.float32) * (rng.uniform(size=(2000, 7)) < 0.5)
    X = sp.csr_matrix(X) if kind == "csr" else X
    y = rng.integers(0, 3, size=2000)
    model = AssetClassifier(n_components=150, max_iter=1, random_state=0).fit(X, y)
    monkeypatch.setattr(base, "BLOCK_ROWS", 128)
    with threadpool_limits(1, user_api="blas"):
        alone = model.decision_function(X)
    used = []
    real = base.side_by_side
    monkeypatch.setattr(base, "side_by_side", lambda f, n, t: (used.append(t), real(f, n, t))[1])
    monkeypatch.setattr(base, "blas_threads", lambda: threads)
    np.testing.assert_array_equal(model.decision_function(X), alone)
    np.testing.assert_array_equal(model.decision_function(X[:300]), alone[:300])
    assert used == [threads], "a few blocks are not worth a team"


def test_a_users_kernel_is_called_by_one_thread(monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 3))
    model = AssetClassifier(
        kernel=lambda A, B: pairwise.rbf_kernel(A, B), n_components=20, max_iter=1, random_state=0
    ).fit(X, X[:, 0] > 0)
    monkeypatch.setattr(base, "BLOCK_ROWS", 64)
    monkeypatch.setattr(base, "side_by_side", None)
    assert model.decision_function(X).shape == (600,)
