"""Gradients of decisions, against finite differences of the decisions themselves, in float64."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import NotFittedError

from asset_svm import AssetClassifier, AssetRegressor, load, save
from asset_svm.families.cells import Constant, Nested
from asset_svm.features import FourierFeatures, HadamardFeatures
from asset_svm.kernels import NAMES, SPECTRAL, Kernel
from asset_svm.kernels import gradients as module
from asset_svm.kernels.gradients import gradients
from asset_svm.threads.granted import grant

STEP = 1e-5
"""Of central differences: what the third derivative leaves is some 1e-10 of the gradient, what rounding
leaves 1e-11."""


def differences(function, X):
    """(rows, K, n) central differences of a function from rows to (rows,) or (rows, K) numbers."""
    X = np.asarray(X, dtype=float)
    columns = [
        (function(X + step) - function(X - step)) / (2 * STEP) for step in STEP * np.eye(X.shape[1])
    ]
    found = np.stack(columns, axis=-1)
    return found if found.ndim == 3 else found[:, None]


def check(model, X, n_models):
    """That gradients are those of the decisions, to 1e-5 of the largest; they are returned."""
    found = model.gradients(X)
    dense = X.toarray() if sp.issparse(X) else X
    decide = getattr(model, "decision_function", model.predict)
    expected = differences(decide, dense)
    assert found.dtype == np.float64 and expected.shape[1] == n_models
    assert found.shape == (expected.shape if n_models > 1 else (len(dense), dense.shape[1]))
    error = np.abs(found.reshape(expected.shape) - expected).max()
    assert np.abs(expected).max() > 1e-3 and error < 1e-5 * np.abs(expected).max()
    return found


def rows(m=300, n=4, classes=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(m, n))
    return X, np.digitize(X[:, 0] + np.sin(2 * X[:, 1]), np.linspace(-1, 1, classes + 1)[1:-1])


OPTIONS = dict(gamma=0.3, degree=3, coef0=1.0, n_components=40, random_state=0, max_iter=3)
NEW = np.random.default_rng(9).normal(size=(20, 4))


@pytest.mark.parametrize("make", [np.asarray, sp.csr_matrix])
@pytest.mark.parametrize("name", NAMES)
def test_sums_of_every_kernel(name, make, monkeypatch):
    rng = np.random.default_rng(0)
    Z, X, weights = (
        rng.normal(size=(30, 6)) + 3.0,
        rng.normal(size=(50, 6)) + 3.0,
        rng.normal(size=(5, 30)),
    )
    kernel = Kernel(name, 0.1, 3, 1.0)
    expected = differences(lambda A: kernel(A, Z) @ weights.T, X)
    found = gradients(kernel, make(Z), weights, make(X))
    scale = np.abs(expected).max()
    np.testing.assert_allclose(found, expected, atol=1e-7 * scale)
    monkeypatch.setattr(module, "DENSE_LANDMARK_BYTES", 0)
    np.testing.assert_allclose(gradients(kernel, make(Z), weights, X), found, atol=1e-12 * scale)


@pytest.mark.filterwarnings("ignore:.*indefinite|.*not positive")
@pytest.mark.parametrize("kernel", NAMES)
@pytest.mark.parametrize("classes", [2, 4])
def test_classifiers_on_one_map(kernel, classes):
    X, y = rows(classes=classes)
    options = OPTIONS | ({"gamma": 0.01, "coef0": 0.0} if kernel == "sigmoid" else {})
    model = AssetClassifier(kernel, C=0.1 if kernel == "poly" else 1.0, **options).fit(X, y)
    check(model, NEW, 1 if classes == 2 else classes)


@pytest.mark.parametrize("kind", ["iid", "orthogonal", "qmc", "hadamard"])
@pytest.mark.parametrize("kernel", SPECTRAL)
def test_fourier_features_of_every_kind(kernel, kind):
    if kernel == "laplacian" and kind in ("orthogonal", "hadamard"):
        pytest.skip("has no such features")
    rng = np.random.default_rng(0)
    kernel = Kernel(kernel, 0.05)  # frequencies of Cauchy's law are long
    if kind == "hadamard":
        phi = HadamardFeatures.sample(kernel, 4, 41, rng)
    else:
        phi = FourierFeatures.sample(kernel, 4, 41, rng, kind)
    weights = rng.normal(size=(3, 41))
    found = phi.gradients(weights)(sp.csr_matrix(NEW))
    nu = phi.frequencies[:, np.arange(41) % phi.n_frequencies]
    sines = np.sin(NEW @ nu + phi.phases)
    expected = -np.sqrt(2 / 41) * np.einsum("ij,kj,qj->ikq", sines, weights, nu)
    np.testing.assert_allclose(found, expected, atol=1e-9 * np.abs(expected).max())


@pytest.mark.parametrize("kind", ["iid", "hadamard"])
def test_models_of_fourier_features(kind):
    X, y = rows()
    options = OPTIONS | {"approximation": "fourier", "fourier": kind, "fit_intercept": True}
    check(AssetClassifier("rbf", **options).fit(X, y), NEW, 3)
    check(AssetRegressor("matern52", **options).fit(X, X[:, 0] * X[:, 1]), NEW, 1)


@pytest.mark.parametrize("kernel", ["rbf", "exponential", "laplacian", "poly"])
def test_exact_cells_are_the_mean_over_partitions(kernel):
    X, y = rows(400)
    y[X[:, 0] > 0.3] = 2  # some cells have one class
    options = dict(gamma=0.3, coef0=1.0, C=0.5, n_cells=8, n_partitions=2, random_state=0)
    model = AssetClassifier(kernel, fit_intercept=True, **options).fit(X, y)
    assert any(isinstance(d, Constant) for part in model.cells_ for d in part.decisions)
    check(model, NEW, 3)
    assert not np.any(Constant(np.ones(3)).gradients(NEW))


def test_nested_maps_and_classes_that_a_cell_does_not_know():
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(size=(500, 4)), rng.normal(size=(500, 4)) + 6.0])
    y = np.where(X[:, 0] > 3.0, 2 + (X[:, 1] > 6.0), X[:, 1] > 0.0).astype(int)
    model = AssetClassifier(
        gamma=0.3, n_cells=2, n_components=40, memory_limit=0, C=10.0, random_state=0
    ).fit(X, y)
    nested = [d for part in model.cells_ for d in part.decisions if isinstance(d, Nested)]
    assert nested and any(d.columns is not None for d in nested)
    new = np.concatenate([NEW, NEW + 6.0])
    least = model.decision_function(new).min(axis=1)
    assert (least < -1.0).any() and (least == -1.0).any(), "both kinds of absent classes"
    check(model, new, 4)


def test_regression_sparse_rows_and_float32():
    X, _ = rows(n=10)
    X *= np.random.default_rng(1).uniform(size=X.shape) < 0.4
    y = X[:, 0] * X[:, 1]
    for make in (np.asarray, sp.csr_matrix):
        model = AssetRegressor(C=10.0, **OPTIONS).fit(make(X), y)
        found = check(model, sp.csr_matrix(X[:20]), 1)
        np.testing.assert_allclose(model.gradients(X[:20]), found, atol=1e-12)
        single = AssetRegressor(C=10.0, **OPTIONS).fit(make(X).astype(np.float32), y)
        np.testing.assert_allclose(single.gradients(X[:20].astype(np.float32)), found, atol=2e-2)


@pytest.mark.parametrize("kernel", ["rbf", "exponential", "poly", "laplacian"])
def test_landmarks_of_few_nonzeros_stay_sparse(kernel):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(300, 60)) * (rng.uniform(size=(300, 60)) < 0.05)
    y = X[:, 0] + X[:, 1] * X[:, 2]
    model = AssetRegressor(kernel, C=0.1, **OPTIONS).fit(sp.csr_matrix(X), y)
    assert model.components_.nnz < 0.1 * np.prod(model.components_.shape)
    dense = model.components_.toarray()
    weights, own = model.dual_coef_, Kernel(kernel, model.gamma_, 3, 1.0)
    expected = gradients(own, dense, weights, X[:20])[:, 0]
    np.testing.assert_allclose(model.gradients(sp.csr_matrix(X[:20])), expected, atol=1e-12)


def test_models_that_were_compacted_or_come_from_a_file(tmp_path):
    X, y = rows()
    model = AssetClassifier("matern32", rank=15, **OPTIONS).fit(X, y)
    small = model.compact()
    check(small, NEW, 3)
    for number, made in enumerate(
        [
            model,
            small,
            AssetClassifier("exponential", gamma=0.3, n_cells=4, random_state=0).fit(X, y),
            AssetClassifier(approximation="fourier", fourier="hadamard", **OPTIONS).fit(X, y),
        ]
    ):
        save(made, tmp_path / f"{number}.asset")
        np.testing.assert_array_equal(
            load(tmp_path / f"{number}.asset").gradients(NEW), made.gradients(NEW)
        )


def test_terms_at_their_kinks_are_0():
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(7, 100)) + 5.0
    weights = np.ones((1, 7))
    exponential = Kernel("exponential", 0.1)
    others = np.delete(np.arange(7), 2)
    at = gradients(exponential, Z, weights, Z[2:3])
    np.testing.assert_allclose(
        at, gradients(exponential, Z[others], weights[:, others], Z[2:3]), atol=1e-12
    )
    laplacian = gradients(Kernel("laplacian", 0.1), Z[:1], weights[:, :1], Z[:1])
    np.testing.assert_array_equal(laplacian, np.zeros((1, 1, 100)))


@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "poly"])
def test_the_bits_do_not_depend_on_the_number_of_threads(kernel):
    rng = np.random.default_rng(0)
    X, Z, weights = rng.normal(size=(1500, 20)), rng.normal(size=(300, 20)), rng.normal(size=(3, 300))
    found = []
    for threads in (1, 2, 5):
        with grant(threads):
            found.append(gradients(Kernel(kernel, 0.1), Z, weights, X))
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])


def test_rows_far_away_have_no_gradient():
    X, y = rows()
    model = AssetClassifier("exponential", **OPTIONS).fit(X, y)
    assert not model.gradients(np.full((2, 4), 1e300)).any()


def test_what_is_refused():
    X, y = rows()
    with pytest.raises(NotFittedError):
        AssetClassifier().gradients(X)
    model = AssetClassifier(**OPTIONS).fit(X, y)
    with pytest.raises(ValueError, match="X has 3 features, but AssetClassifier is expecting 4"):
        model.gradients(X[:, :3])
    with pytest.raises(ValueError, match="NaN"):
        model.gradients(np.full((1, 4), np.nan))
    for cells in (None, 2):
        own = AssetClassifier(lambda A, B: A @ B.T, n_cells=cells, n_components=None, C=0.1).fit(X, y)
        with pytest.raises(
            ValueError, match=r"is a function of two matrices, .* use a kernel that has a"
        ):
            own.gradients(X)
