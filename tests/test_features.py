"""The maps: limit cases, the paper's formula, singular landmarks, unbiasedness."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import pairwise

from asset_svm import AssetClassifier, load_adult
from asset_svm.features import FourierFeatures, NystroemFeatures
from asset_svm.features.landmarks import uniform_landmarks
from asset_svm.kernels import Kernel
from reference.algorithm import nystroem


def rng(seed=0):
    return np.random.default_rng(seed)


def rows(m=80, n=4, seed=0):
    return rng(seed).normal(size=(m, n))


@pytest.mark.parametrize(
    "name", ["rbf", "exponential", "matern32", "matern52", "laplacian", "poly", "linear"]
)
@pytest.mark.parametrize("basis", ["auto", "eigen"])
def test_all_rows_as_landmarks_reproduce_the_kernel(name, basis):
    X = rows()
    kernel = Kernel(name, 0.5, 2, 1.0)
    phi = NystroemFeatures.sample(X, kernel, len(X), rng(), basis=basis)
    V = phi(X)
    np.testing.assert_allclose(V @ V.T, kernel(X, X), atol=1e-6 * np.abs(kernel(X, X)).max())


def test_the_map_is_the_papers_formula_up_to_a_rotation():
    X = rows()
    phi = NystroemFeatures.sample(X, Kernel("rbf", 0.5), 20, rng(), rule="absolute", threshold=1e-16)
    V = phi(X)
    naive = nystroem(X, X[phi.indices], lambda s, t: np.exp(-0.5 * (s - t) @ (s - t)), 1e-16)
    assert V.shape == naive.shape
    np.testing.assert_allclose(V @ V.T, naive @ naive.T, atol=1e-9)


def test_cholesky_and_eigenvectors_give_the_same_kernel_where_nothing_is_cut():
    X = rows(200, 6)
    one = NystroemFeatures.sample(X, Kernel("rbf", 1.0), 50, rng(), basis="cholesky")
    two = NystroemFeatures.sample(X, Kernel("rbf", 1.0), 50, rng(), basis="eigen")
    assert one.eigenvalues is None and two.eigenvalues is not None
    assert one.dimension == two.dimension == 50
    np.testing.assert_allclose(one(X) @ one(X).T, two(X) @ two(X).T, atol=1e-10)
    assert (np.tril(one.projection, -1) == 0).all()


def test_cholesky_is_refused_where_something_is_cut():
    X = np.repeat(rows(20), 3, axis=0)
    phi = NystroemFeatures.sample(X, Kernel("rbf", 1.0), 60, rng())
    assert phi.eigenvalues is not None
    assert phi.dimension == 20
    with pytest.raises(ValueError, match="nothing is cut"):
        NystroemFeatures.sample(X, Kernel("rbf", 1.0), 60, rng(), basis="cholesky")


def test_a_rank_keeps_the_largest_eigenpairs():
    X = rows()
    kernel = Kernel("rbf", 0.5)
    phi = NystroemFeatures.sample(X, kernel, 30, rng(), rank=5)
    values = np.linalg.eigvalsh(kernel(phi.components, phi.components))[::-1]
    np.testing.assert_allclose(phi.eigenvalues, values[:5])
    assert phi.dimension == 5


def test_thresholds_are_relative_by_default_and_absolute_on_request():
    X = rows(m=300)
    kernel = Kernel("rbf", 0.05)
    relative = NystroemFeatures.sample(X, kernel, 100, rng(), threshold=1e-3)
    values = np.linalg.eigvalsh(kernel(relative.components, relative.components))[::-1]
    assert relative.dimension == np.count_nonzero(values >= 1e-3 * values[0])
    absolute = NystroemFeatures.sample(X, kernel, 100, rng(), threshold=1e-3, rule="absolute")
    assert absolute.dimension == np.count_nonzero(values >= 1e-3) > relative.dimension


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_singular_landmarks_of_adult_keep_rows_inside_the_unit_ball(dtype):
    """sigma = 0.001, s = 1024, many duplicate rows: an absolute threshold would give |v|^2 = 50."""
    X, _, _ = load_adult(dtype=dtype)
    phi = NystroemFeatures.sample(X, Kernel("rbf", 0.001), 1024, rng())
    V = phi(X[:8000]).astype(np.float64)
    assert V.shape[1] < 1024
    assert np.einsum("ij,ij->i", V, V).max() <= 1.001


def test_landmarks_are_distinct_and_never_weightless():
    X, weight = rows(50), np.where(np.arange(50) % 5 == 0, 0.0, 1.0)
    for seed in range(20):
        chosen = uniform_landmarks(X, Kernel("rbf"), 40, rng(seed), weight).indices
        assert len(np.unique(chosen)) == 40
        assert (chosen % 5 != 0).all()
    drawn = [uniform_landmarks(X, Kernel("rbf"), 10, rng(seed)).indices for seed in range(2000)]
    counts = np.bincount(np.concatenate(drawn), minlength=50)
    # 400 expected for each row, standard deviation 18: five of those either way.
    assert np.abs(counts - 400).max() < 90


def test_sparse_rows_give_the_features_of_dense_ones():
    X = sp.random(60, 30, density=0.2, random_state=0, format="csr")
    for name in ("rbf", "laplacian", "poly"):
        kernel = Kernel(name, 0.5, 2, 1.0)
        sparse = NystroemFeatures.sample(X, kernel, 20, rng())
        dense = NystroemFeatures.sample(X.toarray(), kernel, 20, rng())
        assert sp.issparse(sparse.components)
        np.testing.assert_allclose(sparse(X), dense(X.toarray()), atol=1e-9)
    fourier = FourierFeatures.sample(Kernel("rbf", 0.5), 30, 10, rng())
    np.testing.assert_allclose(fourier(X), fourier(X.toarray()), atol=1e-12)


def test_float32_rows_stay_float32():
    X = rows().astype(np.float32)
    assert NystroemFeatures.sample(X, Kernel("rbf", 0.5), 20, rng())(X).dtype == np.float32
    assert FourierFeatures.sample(Kernel("rbf", 0.5), 4, 10, rng())(X).dtype == np.float32


def test_decision_weights_are_the_papers_alpha():
    X = rows()
    phi = NystroemFeatures.sample(X, Kernel("rbf", 0.5), 30, rng())
    coef = rng(1).normal(size=(3, phi.dimension))
    decisions = phi.kernel(X, phi.components) @ phi.decision_weights(coef).T
    np.testing.assert_allclose(decisions, phi(X) @ coef.T, atol=1e-8)


def test_compact_weights_use_d_landmarks_and_are_exact_on_a_low_rank_kernel():
    X = rows(m=60, n=3)
    phi = NystroemFeatures.sample(X, Kernel("linear"), 20, rng())
    assert phi.dimension == 3
    coef = rng(1).normal(size=(2, 3))
    chosen, weights = phi.compact(coef)
    assert weights.shape == (2, 3)
    decisions = phi.kernel(X, phi.components[chosen]) @ weights.T
    np.testing.assert_allclose(decisions, phi(X) @ coef.T, atol=1e-9)


@pytest.mark.parametrize("name", ["rbf", "laplacian"])
def test_fourier_features_are_unbiased(name):
    """The mean over 4000 draws of phi(s).phi(t) is within four standard errors of k(s, t)."""
    X = rows(m=6, n=3)
    expected = getattr(pairwise, f"{name}_kernel")(X, X, gamma=0.4)
    products = []
    for seed in range(4000):
        V = FourierFeatures.sample(Kernel(name, 0.4), 3, 2, rng(seed))(X)
        products.append(V @ V.T)
    mean = np.mean(products, axis=0)
    error = np.std(products, axis=0) / np.sqrt(len(products))
    assert (np.abs(mean - expected) <= 4 * error).all()


def test_fourier_frequencies_follow_the_spectral_density():
    phi = FourierFeatures.sample(Kernel("rbf", 0.7), 3, 20_000, rng())
    # The variance 2 gamma = 1.4, whose estimate from 60 000 normals has standard error 0.008.
    assert phi.frequencies.var() == pytest.approx(1.4, abs=0.04)
    assert 0 <= phi.phases.min() < phi.phases.max() <= 2 * np.pi
    assert phi.phases.mean() == pytest.approx(np.pi, abs=0.06)
    cauchy = FourierFeatures.sample(Kernel("laplacian", 0.7), 3, 20_000, rng())
    # Half of a Cauchy distribution's mass lies within its scale.
    assert np.median(np.abs(cauchy.frequencies)) == pytest.approx(0.7, abs=0.03)


@pytest.mark.parametrize("kernel", [Kernel("poly"), Kernel("linear"), Kernel(lambda X, Z: X @ Z.T)])
def test_fourier_refuses_a_kernel_without_spectral_density(kernel):
    with pytest.raises(ValueError, match="spectral density"):
        FourierFeatures.sample(kernel, 3, 10, rng())


def test_an_indefinite_kernel_works_on_its_positive_part():
    X = rows()
    phi = NystroemFeatures.sample(X, Kernel("sigmoid", 1.0, coef0=-1.0), 40, rng())
    assert (phi.eigenvalues > 0).all()
    assert np.isfinite(phi(X)).all()


def test_a_kernel_without_positive_part_is_refused():
    with pytest.raises(ValueError, match="no positive eigenvalue"):
        NystroemFeatures.sample(rows(), Kernel(lambda X, Z: -X @ Z.T), 10, rng())


def test_float32_and_float64_rows_of_adult_get_the_same_labels():
    """All but 0.1 % of the labels, though the landmarks' kernel matrix is singular."""
    X, y, _ = load_adult()
    model = AssetClassifier(
        gamma=0.001, lam=3.07e-8, n_components=1024, fit_intercept=False, max_iter=3, random_state=0
    ).fit(X[:20_000], y[:20_000])
    narrow = model.predict(X[20_000:])
    wide = model.predict(X[20_000:].astype(np.float64))
    assert np.mean(narrow != wide) <= 0.001


@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float32, 1e-5), (np.float64, 1e-14)])
def test_elementwise_functions_agree_with_numpy(dtype, tolerance):
    from asset_svm.numerics.elementwise import scaled_cosines

    gaussian_values = Kernel("rbf").formula.finished

    rng = np.random.default_rng(0)
    dots = rng.uniform(-20, 1, size=(37, 48)).astype(dtype)
    left, right = rng.uniform(0, 2, size=37), rng.uniform(0, 2, size=45)
    left, right = left.astype(dtype), right.astype(dtype)
    exponent = 2 * dots[:, :45].astype(np.float64) - left[:, None] - right
    ours = gaussian_values(dots.copy(), left, right)
    np.testing.assert_allclose(ours, np.exp(np.minimum(exponent, 0)), rtol=tolerance)
    assert ours.max() <= 1.0
    extreme = np.array([[np.inf, -np.inf, np.nan, -1e30, 0.0]], dtype=dtype)
    np.testing.assert_array_equal(
        gaussian_values(extreme, np.zeros(1), np.zeros(5)), [[1.0, 0.0, np.nan, 0.0, 1.0]]
    )
    turns = rng.uniform(-50, 50, size=(20, 32)).astype(dtype)
    phases = rng.uniform(size=30).astype(dtype)
    angle = 2 * np.pi * (turns[:, :30] + phases).astype(np.float64)
    np.testing.assert_allclose(
        scaled_cosines(turns.copy(), phases, 0.5), 0.5 * np.cos(angle), atol=tolerance / 10
    )


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_products_of_padded_matrices_do_not_depend_on_the_rows_beside(dtype):
    """What "cached or recomputed, bit for bit" rests on."""
    from asset_svm.numerics.padding import padded_columns
    from asset_svm.numerics.row_products import product

    rng = np.random.default_rng(0)
    for depth, width in ((123, 30), (123, 301), (700, 1024), (1, 16)):
        A = rng.normal(size=(512, depth)).astype(dtype)
        P = padded_columns(rng.normal(size=(depth, width)), dtype)
        whole = product(A, P)
        for count in (1, 2, 5, 16, 48, 160, 401):
            rows = rng.permutation(512)[:count]
            np.testing.assert_array_equal(product(A[rows], P), whole[rows])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@given(m=st.integers(0, 30), k=st.sampled_from([0, 1, 2, 7, 255, 256, 257, 600]), n=st.integers(1, 70))
@settings(max_examples=60, deadline=None)
def test_products_are_chains_of_fused_steps(dtype, m, k, n):
    """An inner product of k terms is off by k half units of the last place, and never by more."""
    from asset_svm.numerics.padding import padded_columns
    from asset_svm.numerics.row_products import product

    rng = np.random.default_rng([m, k, n])
    A, P = rng.normal(size=(m, k)).astype(dtype), padded_columns(rng.normal(size=(k, n)), dtype)
    wide = np.longdouble if dtype is np.float64 else np.float64
    exact, found = A.astype(wide) @ P.astype(wide), product(A, P)
    assert found.dtype == dtype and found.shape == exact.shape
    slack = k * np.finfo(dtype).eps * (np.abs(A).astype(wide) @ np.abs(P).astype(wide))
    assert (np.abs(found - exact) <= slack).all()
    if dtype is np.float32 and m and k:
        whole = np.zeros(P.shape[1], dtype)
        for begin in range(0, k, 256):
            chain = np.zeros(P.shape[1], dtype)
            for step in range(begin, min(begin + 256, k)):  # products are exact in a double
                added = chain.astype(np.float64) + np.float64(A[0, step]) * P[step].astype(np.float64)
                chain = added.astype(dtype)
            whole += chain
        off = found[0] != whole  # a sum is rounded twice here, which is seldom another number
        assert off.mean() < 0.1


def test_products_of_odd_values_and_strides():
    from asset_svm.numerics.row_products import product, set_product

    A = np.array([[np.inf, 1.0], [np.nan, 0.0], [1e30, 1e30]], dtype=np.float32)
    P = np.zeros((2, 16), dtype=np.float32)
    P[:, 0] = 1.0
    P[0, 1], P[1, 1] = 1e30, -1e30
    found = product(A, P)
    assert found[0, 0] == np.inf and np.isnan(found[1]).all() and found[2, 0] == np.float32(2e30)
    room = np.full((5, 64), 7.0, dtype=np.float32)
    rows = np.asarray(np.random.default_rng(0).normal(size=(5, 40)), dtype=np.float32)
    set_product(rows[:, 10:12], P, room[:, 16:32])  # parts of larger arrays
    np.testing.assert_array_equal(room[:, 16:32], product(rows[:, 10:12], P))
    assert (room[:, :16] == 7.0).all() and (room[:, 32:] == 7.0).all()
