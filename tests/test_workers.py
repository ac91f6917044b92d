"""Rows mapped by threads beside the loop: the same model, bit for bit, and errors that surface."""

import threading

import numpy as np
import pytest
from scipy import sparse
from threadpoolctl import threadpool_limits

from asset_svm import AssetClassifier, AssetRegressor
from asset_svm.backends.cpu import CpuBackend
from asset_svm.features import NystroemFeatures
from asset_svm.kernels import Kernel
from asset_svm.threads.granted import grant

M = 3000


@pytest.fixture(scope="module")
def problem():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(M, 6)).astype(np.float32)
    return X, np.sin(2 * X[:, 0]) + X[:, 1] > 0.3 * rng.normal(size=M)


@pytest.mark.parametrize("memory_limit", [None, 0])
@pytest.mark.parametrize("sampling", ["shuffle", "uniform", "given"])
@pytest.mark.parametrize("step", ["metric", "robust"])
@pytest.mark.parametrize("approximation", ["nystroem", "fourier"])
def test_the_model_is_the_same_with_any_number_of_threads(
    problem, approximation, step, sampling, memory_limit
):
    X, y = problem

    def fit(n_jobs):
        model = AssetClassifier(
            approximation=approximation, step=step, sampling=sampling, memory_limit=memory_limit,
            n_jobs=n_jobs, n_components=64, max_iter=3, random_state=0,
        )  # fmt: skip
        with threadpool_limits(1):
            return model.fit(X, y)

    alone = fit(1)
    for n_jobs in (2, 5):
        beside = fit(n_jobs)
        np.testing.assert_array_equal(alone.map_coef_, beside.map_coef_)
        assert alone.objective_ == beside.objective_
        assert alone.dual_gap_ == beside.dual_gap_


def test_sparse_rows_and_several_models_too(problem):
    X, _ = problem
    rows = sparse.csr_matrix(np.where(np.abs(X) > 1, X, 0))
    y = np.digitize(X[:, 0], [-0.5, 0.5])
    with threadpool_limits(1):
        alone, beside = (
            AssetClassifier(n_jobs=n, n_components=50, max_iter=2, random_state=0).fit(rows, y)
            for n in (1, 3)
        )
    np.testing.assert_array_equal(alone.map_coef_, beside.map_coef_)


def test_an_error_in_a_thread_is_raised_where_fit_was_called(problem):
    X, _ = problem
    phi = NystroemFeatures.sample(X, Kernel("rbf", 0.3), 40, np.random.default_rng(0))
    backend = CpuBackend()
    rows = backend.rows(phi, X)
    caller = threading.get_ident()

    def failing(values):
        if threading.get_ident() != caller:
            raise ZeroDivisionError("in a thread")
        return phi.basis(X.dtype)(values)

    rows.basis = failing
    with grant(2), backend.working(rows):
        rows.expect(np.arange(100))
        with pytest.raises(ZeroDivisionError, match="in a thread"):
            rows.open(np.arange(100))
    assert rows.workers is None


def test_rows_that_were_announced_and_never_opened_are_there_afterwards(problem):
    X, _ = problem
    phi = NystroemFeatures.sample(X, Kernel("rbf", 0.3), 40, np.random.default_rng(0))
    backend = CpuBackend()
    rows = backend.rows(phi, X)
    with grant(2), backend.working(rows):
        for start in range(0, 400, 100):
            rows.expect(np.arange(start, start + 100))
    V, positions = rows.fetch(np.arange(400))
    np.testing.assert_array_equal(V[positions], phi(X[:400]))


def test_a_callable_kernel_is_called_by_the_calling_thread_alone(problem):
    X, y = problem
    callers = set()

    def kernel(A, B):
        callers.add(threading.get_ident())
        return np.asarray(A @ B.T)

    AssetRegressor(kernel=kernel, n_components=20, n_jobs=3, max_iter=2).fit(X, y.astype(float))
    assert callers == {threading.get_ident()}
