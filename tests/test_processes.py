"""Seeds, threads and processes: the same model, whoever runs it and wherever."""

import os
import pickle
import signal
from concurrent.futures import ThreadPoolExecutor

import joblib
import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.model_selection import cross_val_score

from asset_svm import AssetClassifier, NystroemMap
from small_problems import BINARY, THREE, X, frozen, quick

# Reproducibility ---------------------------------------------------------------------------------


@pytest.mark.parametrize("approximation", ["nystroem", "fourier"])
def test_a_random_state_settles_every_bit(approximation):
    def fit(seed):
        model = AssetClassifier(approximation=approximation, n_components=50, max_iter=20)
        return model.set_params(random_state=seed).fit(X, THREE)

    first = fit(3)
    np.testing.assert_array_equal(fit(3).map_coef_, first.map_coef_)
    np.testing.assert_array_equal(fit(3).intercept_, first.intercept_)
    assert (fit(4).map_coef_ != first.map_coef_).any()
    state = np.random.RandomState(3)
    np.testing.assert_array_equal(fit(state).map_coef_, first.map_coef_)
    assert (fit(state).map_coef_ != first.map_coef_).any()  # the same state, one draw later
    assert (fit(None).map_coef_ != fit(None).map_coef_).any()


def test_fitting_leaves_numpys_global_state_alone():
    np.random.seed(0)  # noqa: NPY002
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    quick(random_state=1, early_stopping=True).fit(X, BINARY)
    NystroemMap(random_state=1).fit(X)
    np.testing.assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_threads_never_change_a_bit(dtype):
    rows = X.astype(dtype)
    alone = AssetClassifier(max_iter=20, random_state=0, n_jobs=1).fit(rows, THREE)
    threaded = AssetClassifier(max_iter=20, random_state=0, n_jobs=2).fit(rows, THREE)
    np.testing.assert_array_equal(threaded.map_coef_, alone.map_coef_)
    np.testing.assert_array_equal(threaded.intercept_, alone.intercept_)


LARGE = frozen(np.random.default_rng(8).normal(size=(1300, 4)))


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix], ids=["dense", "sparse"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("approximation", ["nystroem", "fourier"])
@pytest.mark.parametrize("sampling", ["uniform", "shuffle"])
def test_rows_cached_or_recomputed_give_one_model(sampling, approximation, dtype, form):
    rows, y = form(LARGE.astype(dtype)), np.digitize(LARGE[:, 0], [-0.5, 0.5])
    parameters = {"approximation": approximation, "n_components": 70, "max_iter": 3}
    fits = [
        AssetClassifier(
            sampling=sampling, memory_limit=limit, random_state=0, early_stopping=True, **parameters
        ).fit(rows, y)
        for limit in (None, 0)
    ]
    np.testing.assert_array_equal(fits[0].map_coef_, fits[1].map_coef_)
    np.testing.assert_array_equal(fits[0].intercept_, fits[1].intercept_)
    assert fits[0].step_scale_ == fits[1].step_scale_
    # Taken from features where they are kept, from basis values where they are not.
    rounding = 1e-5 if dtype == np.float32 else 1e-12
    assert fits[0].objective_ == pytest.approx(fits[1].objective_, rel=rounding)


def test_fitting_changes_no_parameter():
    model = AssetClassifier(n_components=None, approximation=NystroemMap())
    before = {k: repr(v) for k, v in model.get_params().items()}
    model.set_params(max_iter=2).fit(X, BINARY).set_params(max_iter=None)
    assert {k: repr(v) for k, v in model.get_params().items()} == before


def test_a_new_fit_leaves_nothing_of_the_old_one():
    model = quick(n_components=20).fit(X, THREE)
    model.set_params(approximation="fourier").fit(X, BINARY)
    fresh = quick(n_components=20, approximation="fourier").fit(X, BINARY)
    assert set(vars(model)) == set(vars(fresh))
    np.testing.assert_array_equal(model.map_coef_, fresh.map_coef_)


# Processes and threads ---------------------------------------------------------------------------


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_predicts_and_fits():
    """Threads were used before the fork; the child must neither hang nor die."""
    model = AssetClassifier(max_iter=10, n_jobs=2, random_state=0).fit(X, THREE)
    expected = model.decision_function(X)
    child = os.fork()
    if child == 0:  # os._exit skips pytest's own clean-up
        signal.alarm(300)  # else a child that hangs would hang the suite
        code = 1
        try:
            same = np.allclose(model.decision_function(X), expected, rtol=0, atol=1e-9)
            again = AssetClassifier(max_iter=10, n_jobs=2, random_state=0).fit(X, THREE)
            code = 0 if same and np.allclose(again.map_coef_, model.map_coef_) else 2
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@pytest.mark.parametrize("backend", ["loky", "threading"])
def test_joblib_backends_give_the_serial_scores(backend):
    model = AssetClassifier(max_iter=20, random_state=0, n_jobs=2)
    serial = cross_val_score(model, X, THREE, cv=4)
    with joblib.parallel_config(backend=backend, n_jobs=2):
        parallel = cross_val_score(model, X, THREE, cv=4)
    np.testing.assert_allclose(parallel, serial, atol=1e-12)


@pytest.mark.parametrize("kernel", ["rbf", "laplacian"])
def test_threads_may_predict_at_once(kernel):
    model = quick(kernel=kernel).fit(X, THREE)
    expected = model.decision_function(X)
    fresh = pickle.loads(pickle.dumps(model))  # nothing prepared: the threads race to do it
    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(lambda _: fresh.decision_function(X), range(64)))
    for result in results:
        np.testing.assert_array_equal(result, expected)


def test_threads_may_fit_at_once():
    expected = quick(kernel="laplacian").fit(X, THREE).map_coef_
    with ThreadPoolExecutor(4) as pool:
        fits = list(pool.map(lambda _: quick(kernel="laplacian").fit(X, THREE).map_coef_, range(8)))
    for coef in fits:
        # To rounding: one fit's factorisation may hold the BLAS threads of another's products.
        np.testing.assert_allclose(coef, expected, rtol=0, atol=1e-10)
