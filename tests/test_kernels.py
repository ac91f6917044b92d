"""Kernels against scikit-learn's, dense and CSR, in blocks."""

import shutil
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process.kernels import Matern
from sklearn.metrics import pairwise
from sklearn.svm import SVC

from asset_svm import AssetClassifier, NonFiniteError
from asset_svm.kernels import FORMULAS, NAMES, Argument, Kernel, landmarks, scale_gamma
from asset_svm.settings.mapping import MapSettings
from asset_svm.solvers.kernel_matrix import kernel_matrix
from emulation.functions import compile_function

PEERS = {
    "rbf": lambda X, Z: pairwise.rbf_kernel(X, Z, gamma=0.3),
    "exponential": lambda X, Z: Matern(1.0 / 0.3, nu=0.5)(X, Z),
    "matern32": lambda X, Z: Matern(1.0 / 0.3, nu=1.5)(X, Z),
    "matern52": lambda X, Z: Matern(1.0 / 0.3, nu=2.5)(X, Z),
    "laplacian": lambda X, Z: pairwise.laplacian_kernel(X, Z, gamma=0.3),
    "poly": lambda X, Z: pairwise.polynomial_kernel(X, Z, gamma=0.3, degree=2, coef0=0.5),
    "sigmoid": lambda X, Z: pairwise.sigmoid_kernel(X, Z, gamma=0.3, coef0=0.5),
    "linear": pairwise.linear_kernel,
}
MATERN = {"exponential": 0.5, "matern32": 1.5, "matern52": 2.5}
EUCLIDEAN = ["rbf", *MATERN]

ARGUMENTS = {
    Argument.PRODUCT: lambda X, Z: X @ Z.T,
    Argument.SQUARED_DISTANCE: lambda X, Z: ((X[:, None] - Z) ** 2).sum(axis=-1),
    Argument.ABSOLUTE_DISTANCE: lambda X, Z: np.abs(X[:, None] - Z).sum(axis=-1),
}


def sparse_rows(rows, columns, seed, index=np.int32):
    X = sp.random(rows, columns, density=0.2, random_state=seed, format="csr")
    X.indices, X.indptr = X.indices.astype(index), X.indptr.astype(index)
    return X


@pytest.mark.parametrize("name", PEERS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("kind", ["dense", "csr", "csr on dense", "dense on csr", "int64 csr"])
def test_kernels_equal_those_of_scikit_learn(name, dtype, kind):
    index = np.int64 if kind == "int64 csr" else np.int32
    X, Z = sparse_rows(50, 30, 0, index), sparse_rows(20, 30, 1, index)
    expected = PEERS[name](X.toarray(), Z.toarray())
    diagonal = np.diag(PEERS[name](X.toarray(), X.toarray()))
    if kind in ("dense", "dense on csr"):
        X = X.toarray()
    if kind in ("dense", "csr on dense"):
        Z = Z.toarray()
    kernel = Kernel(name, 0.3, 2, 0.5)
    values = kernel.against(Z.astype(dtype), dtype)(X.astype(dtype))
    assert values.dtype == dtype
    np.testing.assert_allclose(values, expected, atol=1e-12 if dtype == np.float64 else 2e-6)
    np.testing.assert_allclose(kernel.diagonal(X), diagonal, atol=1e-6)


def test_every_kernel_has_a_peer():
    assert set(PEERS) == set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_a_profile_of_its_argument_is_the_kernel_and_its_derivative_that_of_the_profile(name):
    rng = np.random.default_rng(0)
    X, Z = rng.normal(size=(30, 4)), rng.normal(size=(10, 4))
    kernel = Kernel(name, 0.3, 2, 0.5)
    u = ARGUMENTS[kernel.argument](X, Z)
    kept = u.copy()
    np.testing.assert_allclose(kernel.profile(u), PEERS[name](X, Z), atol=1e-12)
    slope = (kernel.profile(u + 1e-6) - kernel.profile(u - 1e-6)) / 2e-6
    np.testing.assert_allclose(kernel.derivative(u), slope, atol=1e-8)
    np.testing.assert_array_equal(u, kept)


def test_a_function_of_rows_has_no_profile():
    own = Kernel(lambda A, B: A @ B.T)
    assert own.argument is Argument.ROWS and not own.is_reentrant and not own.is_symmetric
    for ask in (own.profile, own.derivative):
        with pytest.raises(ValueError, match="has no profile; use a kernel that has a name"):
            ask(np.ones(3))


@pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++ to compile the source")
@pytest.mark.parametrize("name", [n for n in NAMES if hasattr(FORMULAS[n], "cuda")])
def test_the_source_for_the_card_says_the_same_as_the_profile(name, tmp_path):
    formula = Kernel(name).formula
    call = compile_function(
        tmp_path,
        f"float profile(float t) {{ {formula.cuda} }}",
        'extern "C" void all(double t, double* out) { out[0] = profile(float(t)); }',
    )
    for t in (0.0, -1e-6, -0.01, -1.0, -20.0, -1e3, -1e30, -np.inf):
        np.testing.assert_allclose(call(1, t), formula.profile(np.array([t])), rtol=1e-5, atol=1e-37)


@pytest.mark.parametrize("name", [*EUCLIDEAN, "poly", "linear", "sigmoid"])
def test_landmarks_too_large_to_be_dense_stay_sparse(name, monkeypatch):
    X, Z = sparse_rows(50, 30, 0), sparse_rows(20, 30, 1)
    monkeypatch.setattr(landmarks, "DENSE_LANDMARK_BYTES", 0)
    values = Kernel(name, 0.3, 2, 0.5).against(Z, np.float64)(X)
    np.testing.assert_allclose(values, PEERS[name](X.toarray(), Z.toarray()), atol=1e-12)


def test_a_large_offset_does_not_cancel_the_gaussian_away():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 5))
    expected = pairwise.rbf_kernel(X, X[:10], gamma=0.2)
    moved = (X + 1e4).astype(np.float32)
    exact = pairwise.rbf_kernel(moved.astype(np.float64), moved[:10].astype(np.float64), gamma=0.2)
    values = Kernel("rbf", 0.2).against(moved[:10], np.float32)(moved)
    np.testing.assert_allclose(values, exact, atol=1e-5)
    np.testing.assert_allclose(exact, expected, atol=5e-3)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_sparse_rows_meet_dense_landmarks_that_were_moved(dtype):
    rng = np.random.default_rng(0)
    X = rng.normal(3.0, 1.0, size=(40, 30))
    X[:, 20:] *= rng.uniform(size=(40, 10)) < 0.3
    X = X.astype(dtype)
    against = Kernel("rbf", 0.02).against(X[:10], dtype)
    assert against.shift[:20].all()
    expected = pairwise.rbf_kernel(X.astype(np.float64), X[:10].astype(np.float64), gamma=0.02)
    for rows in (X, sp.csr_matrix(X)):
        np.testing.assert_allclose(against(rows), expected, atol=1e-12 if dtype == np.float64 else 1e-5)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", EUCLIDEAN)
def test_rows_at_infinity_and_those_that_are_no_numbers(name, dtype):
    """Products that overflow: a distance of infinity is a value of 0, and NaN stays to be found."""
    products = np.array([[np.inf, -np.inf, np.nan, -1e30, 0.0]], dtype=dtype)
    values = Kernel(name).formula.finished(products, np.zeros(1), np.zeros(5))
    np.testing.assert_array_equal(values, [[1.0, 0.0, np.nan, 0.0, 1.0]])


def test_huge_columns_do_not_overflow_in_float32():
    X = (np.random.default_rng(0).normal(size=(30, 3)) * 1e30).astype(np.float32)
    gamma = scale_gamma(X)
    values = Kernel("rbf", gamma).against(X, np.float32)(X)
    assert np.isfinite(values).all()
    wide = X.astype(np.float64) * np.sqrt(gamma)
    np.testing.assert_allclose(values, pairwise.rbf_kernel(wide, gamma=1.0), atol=1e-5)


def test_a_callable_sees_matrices_and_its_shape_is_checked():
    X = np.random.default_rng(0).normal(size=(12, 3))
    good = Kernel(lambda A, B: A @ B.T)
    np.testing.assert_allclose(good(X, X[:4]), X @ X[:4].T)
    np.testing.assert_allclose(good.diagonal(X), np.einsum("ij,ij->i", X, X))
    with pytest.raises(ValueError, match=r"returned shape \(12,\)"):
        Kernel(lambda A, B: A[:, 0])(X, X[:4])


@pytest.mark.parametrize("make", [np.asarray, sp.csr_matrix])
def test_gamma_scale_is_that_of_svc(make):
    X = np.random.default_rng(0).normal(size=(60, 7)) * 3 + 1
    y = np.arange(60) % 2
    gamma = SVC(gamma="scale").fit(make(X), y)._gamma
    assert scale_gamma(make(X)) == pytest.approx(gamma)
    assert scale_gamma(make(X.astype(np.float32))) == pytest.approx(gamma, rel=1e-5)


@pytest.mark.parametrize("name", NAMES)
def test_gamma_scale_and_auto_are_one_over_a_length_where_gamma_is(name):
    X = np.random.default_rng(0).normal(size=(60, 7)) * 3 + 1
    spread, power = 7 * X.var(), 0.5 if name in MATERN else 1.0
    found = MapSettings(kernel=name, gamma="scale").kernel_for(X, None).gamma
    assert found == pytest.approx(spread**-power)
    found = MapSettings(kernel=name, gamma="auto").kernel_for(X, None).gamma
    assert found == pytest.approx(7.0**-power)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", [2, 100, 1000])
@pytest.mark.parametrize("make", [np.asarray, sp.csr_matrix])
def test_equal_rows_have_an_exponential_value_of_one_whatever_the_products_round(make, n, dtype):
    """Rows near each other have their own: what counts as equal is a thousandth of their length."""
    rng = np.random.default_rng(0)
    X = (rng.normal(size=(300, n)) + 2.0).astype(dtype)
    if make is sp.csr_matrix:  # sums nonzero by nonzero lose more than those of a matrix product
        X *= rng.uniform(size=X.shape) < 100 / n
    kernel = Kernel("exponential", 0.5)
    values = kernel.against(make(X), dtype)(make(X))
    np.testing.assert_array_equal(np.diag(values), 1.0)
    np.testing.assert_array_equal(np.diag(kernel_matrix(kernel, make(X))), 1.0)
    near = X + (1e-2 * np.sign(rng.normal(size=X.shape))).astype(dtype)
    found = np.diag(kernel.against(make(X), dtype)(make(near)))
    expected = np.exp(-0.5 * np.linalg.norm(near.astype(float) - X, axis=1))
    np.testing.assert_allclose(found, expected, atol=5e-3 if dtype == np.float32 else 1e-9)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_that_are_there_many_times_leave_a_definite_matrix(dtype):
    X = np.repeat(np.random.default_rng(0).normal(size=(20, 50)), 30, axis=0).astype(dtype)
    K = kernel_matrix(Kernel("exponential", 0.1), X).astype(float)
    # LAPACK's own eigenvalues are off by as much as this: 1.2 of 600 eps was seen of one.
    assert np.linalg.eigvalsh(K)[0] > -4 * len(X) * np.finfo(dtype).eps


@pytest.mark.parametrize("make", [np.asarray, sp.csr_matrix])
def test_gamma_scale_counts_a_weight_of_three_as_three_copies(make):
    X = np.random.default_rng(0).normal(size=(20, 4))
    weight = np.array([3.0, 1.0] * 10)
    copies = np.repeat(X, weight.astype(int), axis=0)
    assert scale_gamma(make(X), weight) == pytest.approx(scale_gamma(make(copies)))


@pytest.mark.parametrize("X", [np.zeros((5, 2)), np.full((5, 2), 7.0)])
def test_gamma_scale_of_constant_data_is_one(X):
    assert scale_gamma(X) == 1.0


@pytest.mark.parametrize("name", PEERS)
@pytest.mark.parametrize("kind", ["dense", "csr", "csr on dense", "dense on csr"])
def test_columns_that_no_landmark_has_count_all_the_same(name, kind):
    """Landmarks have few of the columns here; one has an entry in two parts, one a 0, one nothing."""
    X = sparse_rows(50, 300, 0)
    parts, columns, ends = [0.5, 0.25, 1.0, 2.0, 0.0, 3.0], [7, 7, 9, 12, 250, 7], [0, 3, 5, 5, 6]
    Z = sp.csr_matrix((parts, columns, ends), shape=(4, 300))
    assert not Z.has_canonical_format and Z[0, 7] == 0.75
    expected = PEERS[name](X.toarray(), Z.toarray())
    if kind in ("dense", "dense on csr"):
        X = X.toarray()
    if kind in ("dense", "csr on dense"):
        Z = Z.toarray()
    before = Z.copy()
    values = Kernel(name, 0.3, 2, 0.5).against(Z, np.float64)(X)
    np.testing.assert_allclose(values, expected, atol=1e-12)
    assert abs(Z - before).sum() == 0, "landmarks are not touched"


@pytest.mark.parametrize("sparse", [False, True])
def test_landmarks_that_are_all_zero(sparse):
    X, Z = np.eye(4), np.zeros((3, 4))
    values = Kernel("rbf", 0.5).against(sp.csr_matrix(Z) if sparse else Z, np.float64)(X)
    np.testing.assert_allclose(values, np.full((4, 3), np.exp(-0.5)))


@pytest.mark.parametrize("options", [{}, {"n_cells": 2}], ids=str)
def test_a_broken_power_of_a_negative_number_is_called_by_its_name(options):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    y = X[:, 0] > 0
    message = r"^degree=2\.5 of a negative number .* set degree to an integer, or coef0 so high"
    with pytest.raises(NonFiniteError, match=message):
        AssetClassifier("poly", degree=2.5, **options).fit(X, y)
    model = AssetClassifier("poly", degree=2.5, coef0=1.0, C=0.1, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(np.abs(X), y)
    with pytest.raises(NonFiniteError, match=message):
        model.predict(-100.0 * np.abs(X))


@pytest.mark.parametrize("name", ["gauss", "RBF", "precomputed", None])
def test_an_unknown_kernel_is_refused_where_it_is_named(name):
    with pytest.raises(ValueError, match=r"^kernel=.* is not a known kernel; choose one of \"rbf\", "):
        Kernel(name)


@pytest.mark.parametrize("options", [{"n_components": 40}, {"n_cells": 3}], ids=str)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", MATERN)
def test_a_compiled_model_of_a_matern_kernel_decides_as_the_model_does(name, dtype, options):
    X = np.random.default_rng(0).normal(size=(300, 4)).astype(dtype)
    y = np.sin(2 * X[:, 0]) > X[:, 1]
    model = AssetClassifier(name, random_state=0, **options).fit(X, y)
    assert model.gamma_ == pytest.approx(1.0 / np.sqrt(4 * X.var()), rel=1e-5)
    expected = model.decision_function(X)
    found = model.compiled("decision_function")(X)
    np.testing.assert_allclose(found, expected, atol=1e-4 if dtype == np.float32 else 1e-9)
    np.testing.assert_array_equal(model.compiled()(X[0]), model.predict(X[:1])[0])
