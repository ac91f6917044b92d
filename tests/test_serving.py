"""Prediction as it is used: compiled functions, threads, processes."""

import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import scipy.sparse as sp
from joblib import Parallel, delayed

from asset_svm import AssetClassifier, AssetRegressor, save

RNG = np.random.default_rng(0)
X = RNG.normal(size=(400, 5))
BINARY = np.where(X[:, 0] * X[:, 1] > 0, "yes", "no")
THREE = np.digitize(X[:, 0], [-0.5, 0.5])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("approximation", ["nystroem", "fourier"])
@pytest.mark.parametrize("y", [BINARY, THREE], ids=["binary", "three"])
def test_a_compiled_function_predicts_what_the_model_predicts(y, approximation, dtype):
    rows = X.astype(dtype)
    model = AssetClassifier(n_components=40, approximation=approximation, max_iter=5, random_state=0)
    model.fit(rows, y)
    predict, decide = model.compiled(), model.compiled("decision_function")
    np.testing.assert_array_equal(predict(rows), model.predict(rows))
    np.testing.assert_allclose(decide(rows), model.decision_function(rows), rtol=1e-4, atol=1e-4)
    assert predict(rows[3]) == model.predict(rows[3:4])[0]
    np.testing.assert_allclose(decide(rows[3]), model.decision_function(rows[3:4])[0], atol=1e-4)
    assert predict(list(rows[3])) == predict(rows[3])


def test_a_compiled_function_of_a_regressor_and_of_a_compact_model():
    model = AssetRegressor(n_components=40, max_iter=5, random_state=0).fit(X, X[:, 0])
    np.testing.assert_allclose(model.compiled()(X), model.predict(X), rtol=1e-10)
    small = model.compact()
    np.testing.assert_allclose(small.compiled()(X), small.predict(X), rtol=1e-10)
    with pytest.raises(ValueError, match='method="decision_function"'):
        model.compiled("decision_function")


def test_a_compiled_function_outlives_changes_of_its_model():
    model = AssetClassifier(n_components=40, max_iter=5, random_state=0).fit(X, BINARY)
    predict, before = model.compiled(), model.predict(X)
    model.fit(X, np.where(BINARY == "yes", "no", "yes"))
    np.testing.assert_array_equal(predict(X), before)


def _score(model, rows, y):
    return model.fit(rows, y).score(rows, y)


@pytest.mark.parametrize("backend", [pytest.param("loky", marks=pytest.mark.slow), "threading"])
def test_models_fit_side_by_side_as_alone(backend):
    models = [AssetClassifier(n_components=30, max_iter=5, random_state=i, n_jobs=2) for i in range(4)]
    alone = [_score(model, X, THREE) for model in models]
    together = Parallel(n_jobs=2, backend=backend)(delayed(_score)(m, X, THREE) for m in models)
    assert together == alone


def test_many_threads_predict_with_one_model():
    model = AssetClassifier(n_components=60, max_iter=5, random_state=0).fit(X, THREE)
    expected = model.decision_function(X)
    fresh = pickle.loads(pickle.dumps(model))  # nothing prepared yet
    with ThreadPoolExecutor(8) as pool:
        for found in pool.map(lambda _: fresh.decision_function(X), range(32)):
            np.testing.assert_array_equal(found, expected)


def test_sparse_rows_give_the_model_of_dense_ones():
    rows = np.where(RNG.random(size=X.shape) < 0.5, X, 0.0)
    models = [
        AssetClassifier(n_components=30, gamma=0.2, max_iter=5, random_state=0).fit(form, BINARY)
        for form in (rows, sp.csr_matrix(rows))
    ]
    np.testing.assert_allclose(
        models[0].decision_function(rows), models[1].decision_function(rows), atol=1e-6
    )


# Elsewhere: a file, a new process, a container ----------------------------------------------------

READ_ONLY = """
import errno, os
from numba.core import caching

def refused(self):
    raise OSError(errno.EROFS, os.strerror(errno.EROFS))

for kind in vars(caching).values():
    if isinstance(kind, type) and "ensure_cache_path" in vars(kind):
        kind.ensure_cache_path = refused
"""
"""Neither the source nor a home can be written to."""
PREDICT = """
import sys
import numpy as np
import asset_svm
X = np.load("X.npy")
np.save("found.npy", asset_svm.load("m.asset").decision_function(X))
"""
UNNEEDED = (
    "sklearn.calibration", "sklearn.linear_model", "sklearn.metrics", "sklearn.model_selection",
    "sklearn.pipeline", "sklearn.svm", "asset_svm.search", "asset_svm.training.folds",
    "asset_svm.backends.cuda", "asset_svm.dask", "asset_svm.cli",
)  # fmt: skip


@pytest.fixture
def elsewhere(tmp_path):
    """A process that loads a model and predicts, and what it said to standard error."""
    pytest.importorskip("safetensors")
    model = AssetClassifier(n_components=30, max_iter=2, random_state=0).fit(X, BINARY)
    save(model, tmp_path / "m.asset")
    np.save(tmp_path / "X.npy", X)

    def run(before="", after=""):
        done = subprocess.run(
            [sys.executable, "-c", before + PREDICT + after],
            cwd=tmp_path, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        np.testing.assert_array_equal(np.load(tmp_path / "found.npy"), model.decision_function(X))
        return done.stderr

    return run


@pytest.mark.slow
def test_where_nothing_can_be_cached_predictions_are_compiled_anew_and_that_is_said_once(elsewhere):
    said = elsewhere(READ_ONLY)
    assert said.count("Compiled code cannot be cached") == 1
    assert "NUMBA_CACHE_DIR" in said and len(said.splitlines()) == 1


def test_a_loaded_model_predicts_without_what_it_does_not_need(elsewhere):
    said = elsewhere(after=f"print(*sorted(set(sys.modules) & set({UNNEEDED})), file=sys.stderr)")
    assert said.split() == []
