"""The kinds of Fourier features: unbiased, of the right density, better than independent ones."""

import numpy as np
import pytest
import scipy.linalg as la
import scipy.sparse as sp
from scipy import stats
from sklearn.gaussian_process.kernels import Matern
from sklearn.metrics import pairwise

from asset_svm import AssetClassifier, AssetRegressor, FourierMap
from asset_svm.features import FourierFeatures, HadamardFeatures
from asset_svm.kernels import Kernel
from asset_svm.numerics.hadamard import project_dense

KINDS = ["iid", "orthogonal", "qmc", "hadamard"]
PAIRED = KINDS[1:]
MATERN = {"exponential": 0.5, "matern32": 1.5, "matern52": 2.5}


def draw(kind, kernel, n, d, seed=0):
    rng = np.random.default_rng(seed)
    if kind == "hadamard":
        return HadamardFeatures.sample(kernel, n, d, rng)
    return FourierFeatures.sample(kernel, n, d, rng, kind)


def frobenius_error(phi, kernel, X):
    """|K - V V^T|_F / |K|_F for the rows V = phi(X)."""
    V, K = phi(X).astype(np.float64), kernel(X, X)
    return np.linalg.norm(K - V @ V.T) / np.linalg.norm(K)


def rows(m, n, seed=0):
    return np.random.default_rng(seed).normal(size=(m, n))


@pytest.mark.parametrize("d", [1, 6])
@pytest.mark.parametrize(
    ("kind", "name"),
    [(k, "rbf") for k in PAIRED if k != "hadamard"]
    + [("qmc", "laplacian"), ("iid", "laplacian")]
    + [(k, name) for name in MATERN for k in KINDS if k != "hadamard"],
)
def test_features_are_unbiased(kind, name, d):
    """The mean of phi(s).phi(t) over 1000 draws is within 4.5 standard errors of k(s, t)."""
    X = rows(5, 3)
    if name in MATERN:
        expected = Matern(1.0 / 0.4, nu=MATERN[name])(X, X)
    else:
        expected = getattr(pairwise, f"{name}_kernel")(X, X, gamma=0.4)
    products = [V @ V.T for V in (draw(kind, Kernel(name, 0.4), 3, d, seed)(X) for seed in range(1000))]
    error = np.std(products, axis=0) / np.sqrt(len(products))
    assert (np.abs(np.mean(products, axis=0) - expected) <= 4.5 * error + 1e-12).all()


@pytest.mark.parametrize("name", ["rbf", *MATERN])
def test_structured_features_are_nearly_unbiased_for_long_rows(name):
    """n = 100, p = 128: the mean over 500 draws is within 0.02 of k, of which 0.01 are its noise."""
    X, kernel = rows(6, 100), Kernel(name, 0.07 if name in MATERN else 0.005)
    products = [V @ V.T for V in (draw("hadamard", kernel, 100, 64, s)(X) for s in range(500))]
    assert np.abs(np.mean(products, axis=0) - kernel(X, X)).max() < 0.02


@pytest.mark.parametrize("kind", KINDS)
def test_the_approximation_converges(kind):
    X, kernel = rows(100, 20), Kernel("rbf", 0.02)
    errors = [
        np.mean([frobenius_error(draw(kind, kernel, 20, d, s), kernel, X) for s in range(3)])
        for d in (64, 512, 4096)
    ]
    # 1/sqrt(d) at least: a factor of 2.8 each, less the noise of three draws.
    assert errors[0] > 2.0 * errors[1] > 4.0 * errors[2]


@pytest.mark.parametrize("kind", PAIRED)
@pytest.mark.parametrize("n", [8, 100])
def test_better_frequencies_approximate_better_than_independent_ones(kind, n):
    X, kernel = rows(150, n), Kernel("rbf", 0.25 / n)

    def error(kind):
        return np.mean([frobenius_error(draw(kind, kernel, n, 1024, s), kernel, X) for s in range(3)])

    assert error(kind) < 0.7 * error("iid")


@pytest.mark.parametrize("kind", PAIRED)
def test_pairs_of_features_have_norm_one(kind):
    V = draw(kind, Kernel("rbf", 0.5), 6, 50)(rows(20, 6))
    np.testing.assert_allclose(np.einsum("ij,ij->i", V, V), 1.0, atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_frequencies_follow_the_gaussian_density(kind):
    """Lengths and coordinates, by Kolmogorov and Smirnov's test at one in a thousand."""
    nu = draw(kind, Kernel("rbf", 0.7), 64, 4000).frequencies / np.sqrt(1.4)
    assert nu.shape == (64, 4000 if kind == "iid" else 2000)
    assert stats.kstest(nu[3], "norm").pvalue > 1e-3
    assert stats.kstest((nu**2).sum(axis=0), "chi2", args=(64,)).pvalue > 1e-3


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", MATERN)
def test_frequencies_of_a_matern_kernel_follow_students_law(name, kind):
    """One chi^2 a frequency: |nu|^2 / n is Fisher's F of n and 2 smoothness degrees of freedom."""
    freedom = int(2 * MATERN[name])
    nu = draw(kind, Kernel(name, 0.7), 64, 4000).frequencies / 0.7
    assert stats.kstest(nu[3], "t", args=(freedom,)).pvalue > 1e-3
    assert stats.kstest((nu**2).mean(axis=0), "f", args=(64, freedom)).pvalue > 1e-3


LONG = [
    (k, name)
    for name in ("exponential", "laplacian")
    for k in KINDS
    if name in MATERN or k in ("iid", "qmc")
]


@pytest.mark.parametrize(("kind", "name"), LONG)
@pytest.mark.parametrize("make", [np.asarray, sp.csr_matrix])
def test_long_frequencies_leave_float32_features_their_digits(kind, name, make):
    """They are 16 to 1000 times as long as most: products in float32 would be off by 1e-4 and more."""
    X = rows(50, 100).astype(np.float32)
    phi = draw(kind, Kernel(name, 0.1 if name in MATERN else 0.01), 100, 4000)
    long, frequencies = phi.long_frequencies()
    assert 0 < len(long) < 0.06 * phi.n_frequencies and frequencies.shape == (100, len(long))
    found, exact = (phi(make(X).astype(t)) for t in (np.float32, np.float64))
    assert found.dtype == np.float32
    error = np.sqrt(2000) * np.abs(found - exact)
    assert error[:, long].max() < 3e-6 and error.max() < 2e-4
    plain = phi.turns(np.float32)(X)[:, long] - phi.turns(np.float64)(X.astype(float))[:, long]
    assert 2 * np.pi * np.abs(plain).max() > 1e-4


@pytest.mark.parametrize("kind", ["orthogonal", "hadamard"])
def test_frequencies_are_orthogonal_in_blocks(kind):
    nu = draw(kind, Kernel("rbf", 0.7), 64, 256).frequencies
    for start in (0, 64):
        block = nu[:, start : start + 64]
        gram = block.T @ block
        np.testing.assert_allclose(gram, np.diag(gram.diagonal()), atol=1e-9)


def test_structured_features_of_short_rows_converge_too():
    """Two columns of very unequal size: differences of rows lie along one axis."""
    X, kernel = rows(100, 2) * [3.0, 0.1], Kernel("rbf", 0.5)
    assert frobenius_error(draw("hadamard", kernel, 2, 4096), kernel, X) < 0.05


def test_structured_features_are_the_cosines_of_their_frequencies():
    for n, d in [(1, 3), (5, 40), (16, 16), (100, 33)]:
        X = rows(37, n)
        phi = draw("hadamard", Kernel("rbf", 0.3), n, d)
        f = phi.n_frequencies
        nu = phi.frequencies[:, np.arange(d) % f]
        np.testing.assert_allclose(phi(X), np.sqrt(2 / d) * np.cos(X @ nu + phi.phases), atol=1e-12)


@pytest.mark.parametrize("p", [1, 2, 4, 8, 32, 64, 128])
def test_the_transform_is_the_hadamard_matrix(p):
    X, out = rows(19, p), np.empty((19, p))
    signs = np.ones((1, 1, p))
    project_dense(X, signs, np.ones(p), out)
    np.testing.assert_allclose(out, X @ la.hadamard(p), atol=1e-10)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kind", KINDS)
def test_a_row_is_rounded_in_one_way_whatever_rows_stand_beside_it(kind, dtype):
    X = rows(160, 50).astype(dtype)
    basis = draw(kind, Kernel("rbf", 0.1), 50, 96).basis(dtype)
    whole = basis(X)
    some = np.random.default_rng(1).permutation(160)[:48]
    np.testing.assert_array_equal(basis(X[some]), whole[some])
    if kind == "hadamard":
        np.testing.assert_array_equal(basis(X[:1]), whole[:1])


@pytest.mark.parametrize("kind", KINDS)
def test_sparse_rows_have_the_features_of_dense_ones(kind):
    X = sp.random(50, 30, density=0.2, random_state=0, format="csr")
    phi = draw(kind, Kernel("rbf", 0.5), 30, 20)
    np.testing.assert_allclose(phi(X), phi(X.toarray()), atol=1e-12)
    assert phi(X.astype(np.float32)).dtype == np.float32


@pytest.mark.parametrize("kind", ["orthogonal", "hadamard"])
def test_a_density_of_preferred_directions_is_refused(kind):
    with pytest.raises(ValueError, match=f'fourier="{kind}" needs a spectral density that is the same'):
        FourierMap(kernel="laplacian", fourier=kind).fit(rows(20, 3))
    with pytest.raises(ValueError, match="no spectral density"):
        FourierMap(kernel="poly", fourier=kind).fit(rows(20, 3))


def test_sobol_sequences_end_somewhere():
    with pytest.raises(ValueError, match='fourier="qmc" has no sequence for 30000 features'):
        FourierFeatures.sample(Kernel("rbf"), 30_000, 2, np.random.default_rng(0), "qmc")


@pytest.mark.parametrize(
    "kind",
    [
        "iid",
        "hadamard",
        *(pytest.param(kind, marks=pytest.mark.slow) for kind in ("orthogonal", "qmc")),
    ],
)
def test_estimators_learn_with_every_kind(kind, blobs, waves):
    settings = {"approximation": "fourier", "fourier": kind, "gamma": 0.5, "n_components": 201}
    X, y = blobs
    model = AssetClassifier(**settings, random_state=0).fit(X, y)
    assert model.score(X, y) > 0.85
    again = AssetClassifier(**settings, random_state=0).fit(X, y)
    np.testing.assert_array_equal(model.map_coef_, again.map_coef_)
    assert model.map_coef_.shape == (1, 201)
    online = AssetClassifier(**settings, random_state=0)
    for start in range(0, 600, 100):
        online.partial_fit(X[start : start + 100], y[start : start + 100], classes=[-1, 1])
    assert online.score(X, y) > 0.8
    X, y = waves
    assert AssetRegressor(**settings, C=10, random_state=0).fit(X, y).score(X, y) > 0.9


@pytest.mark.parametrize("kind", KINDS)
def test_kept_and_recomputed_rows_give_the_same_model(kind, blobs):
    X, y = blobs
    settings = {"approximation": "fourier", "fourier": kind, "n_components": 60, "max_iter": 3}
    kept = AssetClassifier(**settings, random_state=0).fit(X, y)
    anew = AssetClassifier(**settings, random_state=0, memory_limit=0).fit(X, y)
    np.testing.assert_array_equal(kept.map_coef_, anew.map_coef_)
