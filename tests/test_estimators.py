"""The estimators as a scikit-learn user meets them: what a fit gives, inputs, tools, the defaults."""

import importlib.util
import logging
import pickle
import subprocess
import sys
from unittest import mock

import joblib
import numpy as np
import pytest
import scipy.sparse as sp
from sklearn import config_context, datasets
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.frozen import FrozenEstimator
from sklearn.metrics import accuracy_score, r2_score
from sklearn.metrics.pairwise import pairwise_kernels
from sklearn.model_selection import GridSearchCV, KFold, StratifiedKFold, cross_val_score
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR

import asset_svm
from asset_svm import (
    AssetClassifier,
    AssetQuantileRegressor,
    AssetRegressor,
    AssetRegressorCV,
    FourierMap,
    NystroemMap,
)
from asset_svm.estimators import validation
from asset_svm.families import beginning
from asset_svm.training import stream as online_engine
from small_problems import BINARY, REALS, THREE, WEIGHTS, X, frozen, quick

# The package -------------------------------------------------------------------------------------

HEAVY = "sklearn numba numpy scipy joblib pandas polars rich typer torch dask pyarrow matplotlib"


def modules_after(program):
    program = f"import sys; {program}; print(*{{name.split('.')[0] for name in sys.modules}})"
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    return set(done.stdout.split())


def test_importing_the_package_imports_nothing_heavy():
    modules = modules_after("import asset_svm")
    assert "asset_svm" in modules
    assert not modules & set(HEAVY.split())


def test_what_is_for_deployment_is_there_once_the_package_is_imported():
    modules = modules_after("import asset_svm; asset_svm.runtime.load; asset_svm.export.to_onnx")
    assert not modules & {"sklearn", "numba", "scipy", "onnx", "safetensors"}
    assert {"export", "runtime"} <= set(dir(asset_svm))


def test_importing_an_estimator_imports_no_extra():
    """Beyond what scikit-learn's callbacks import themselves, where they are present."""
    extras = {"pandas", "polars", "rich", "typer", "torch", "dask", "pyarrow", "matplotlib"}
    present = importlib.util.find_spec("sklearn.callback") is not None
    theirs = "import sklearn.callback" if present else "import sklearn.base"
    before = f"{theirs}; before = {{*sys.modules}}"
    ours = "from asset_svm import AssetClassifier, FourierMap, RelevanceDisplay"
    added = modules_after(f"{before}; {ours}; [sys.modules.pop(name) for name in before]")
    assert "numba" in added
    assert not added & extras


def test_every_public_name_resolves_and_is_listed():
    assert asset_svm.__all__ == sorted(asset_svm.__all__)
    assert len(set(asset_svm.__all__)) == len(asset_svm.__all__)
    for name in asset_svm.__all__:
        assert getattr(asset_svm, name).__name__ == name
        assert name in dir(asset_svm)
    with pytest.raises(AttributeError, match="no_such_name"):
        asset_svm.no_such_name  # noqa: B018


OURS = {
    "certify", "compact", "compiled", "coverage", "decision_function", "fit", "gradients",
    "partial_fit", "predict", "predict_interval", "predict_log_proba", "predict_proba", "score",
    "set_fit_request", "set_partial_fit_request", "set_score_request", "set_callbacks",
    "get_metadata_routing", "get_params", "set_params",
}  # fmt: skip


@pytest.mark.parametrize(
    "kind", [AssetClassifier, AssetQuantileRegressor, AssetRegressor, AssetRegressorCV]
)
def test_an_estimator_has_no_public_names_but_parameters_and_methods_for_users(kind):
    """A subclass may have attributes of its own: what the library needs itself is no public name."""
    names = {name for name in dir(kind()) if not name.startswith("_") and not name.endswith("_")}
    assert names - set(kind().get_params()) <= OURS


# What a fit gives --------------------------------------------------------------------------------


def test_scores_are_those_of_scikit_learn():
    classifier, regressor = AssetClassifier(C=10, random_state=0), AssetRegressor(C=10)
    assert classifier.fit(X, BINARY) is classifier
    accuracy = accuracy_score(BINARY, classifier.predict(X))
    assert classifier.score(X, BINARY) == accuracy > 0.95
    regressor.fit(X, REALS)
    assert regressor.score(X, REALS) == r2_score(REALS, regressor.predict(X)) > 0.95
    assert not hasattr(regressor, "decision_function")


def test_two_classes_make_one_model():
    model = quick().fit(X, np.where(BINARY, "yes", "no"))
    assert model.classes_.tolist() == ["no", "yes"]
    assert model.map_coef_.shape == (1, model.feature_map_.dimension)
    assert model.intercept_.shape == (1,)
    decisions = model.decision_function(X)
    assert decisions.shape == (240,)
    assert (model.predict(X) == np.where(decisions > 0, "yes", "no")).all()


def test_many_classes_share_one_map_and_the_largest_decision_wins():
    model = quick(n_components=50).fit(X, THREE)
    assert model.components_.shape == (50, 3)
    assert model.dual_coef_.shape == (3, 50)
    assert model.intercept_.shape == (3,)
    decisions = model.decision_function(X)
    assert decisions.shape == (240, 3)
    assert (model.predict(X) == model.classes_[decisions.argmax(axis=1)]).all()


@pytest.mark.parametrize("step", ["robust", "strong"])
def test_the_model_of_a_class_is_the_binary_model_of_that_class(step):
    """One pass over the same rows in the same order: the same iterates as alone."""
    together = quick(step=step, gamma=0.5).fit(X, THREE)
    for k, label in enumerate(together.classes_):
        alone = quick(step=step, gamma=0.5).fit(X, label == THREE)
        np.testing.assert_array_equal(alone.component_indices_, together.component_indices_)
        np.testing.assert_allclose(alone.map_coef_[0], together.map_coef_[k], rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(alone.intercept_[0], together.intercept_[k], atol=1e-12)


@pytest.mark.filterwarnings("ignore:The kernel matrix of the landmarks")
@pytest.mark.parametrize("rows", [X, sp.csr_matrix(X)], ids=["dense", "sparse"])
@pytest.mark.parametrize(
    ("kernel", "name"),
    [
        ("rbf", "rbf"),
        ("laplacian", "laplacian"),
        ("poly", "poly"),
        ("sigmoid", "sigmoid"),
        ("linear", "linear"),
    ],
)
@pytest.mark.parametrize("kind", [AssetClassifier, AssetRegressor])
def test_decisions_are_kernel_values_times_dual_coef(kind, kernel, name, rows):
    y = THREE if kind is AssetClassifier else REALS
    gamma = 0.05 if kernel == "sigmoid" else 0.5
    model = quick(kind, kernel=kernel, gamma=gamma, degree=2, coef0=0.5, n_components=40)
    model.fit(rows, y)
    used = {
        "rbf": {"gamma": gamma},
        "laplacian": {"gamma": gamma},
        "poly": {"gamma": gamma, "degree": 2, "coef0": 0.5},
        "sigmoid": {"gamma": gamma, "coef0": 0.5},
        "linear": {},
    }[kernel]
    values = pairwise_kernels(rows, model.components_, metric=name, **used)
    expected = values @ model.dual_coef_.T + model.intercept_
    actual = model.decision_function(rows) if kind is AssetClassifier else model.predict(rows)
    np.testing.assert_allclose(actual.reshape(expected.shape), expected, atol=1e-6, rtol=1e-6)


def test_decisions_are_features_times_coef():
    for approximation in ("nystroem", "fourier"):
        model = quick(approximation=approximation, n_components=60).fit(X, THREE)
        expected = model.feature_map_(X) @ model.map_coef_.T + model.intercept_
        np.testing.assert_allclose(model.decision_function(X), expected, atol=1e-6)


def test_gamma_means_what_it_means_in_svc():
    for gamma in ("scale", "auto", 0.25):
        svc = SVC(gamma=gamma).fit(X, BINARY)
        ours = quick(gamma=gamma).fit(X, BINARY)
        assert ours.gamma_ == pytest.approx(svc._gamma, rel=1e-12)


@pytest.mark.parametrize("rows", [X, sp.csr_matrix(X)], ids=["dense", "sparse"])
@pytest.mark.parametrize("early_stopping", [False, True], ids=["all rows", "early stopping"])
@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "zero weights"])
def test_components_are_the_rows_that_component_indices_name(weighted, early_stopping, rows):
    """Indices refer to the X that was passed, whatever rows were put aside."""
    weight = np.where(np.arange(240) % 3 == 0, 0.0, 1.0) if weighted else None
    model = quick(n_components=30, early_stopping=early_stopping)
    model.fit(rows, BINARY, sample_weight=weight)
    assert model.component_indices_.shape == (30,)
    assert len(set(model.component_indices_.tolist())) == 30
    named = rows[model.component_indices_]
    components = model.components_
    if sp.issparse(rows):
        assert sp.issparse(components)
        named, components = named.toarray(), components.toarray()
    np.testing.assert_array_equal(components, named)


def test_the_maps_name_their_landmarks_too():
    weight = np.where(np.arange(240) % 3 == 0, 0.0, 1.0)
    fitted = NystroemMap(n_components=30, random_state=0).fit(X, sample_weight=weight)
    np.testing.assert_array_equal(fitted.components_, X[fitted.component_indices_])
    assert (fitted.component_indices_ % 3 != 0).all()


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("step", ["auto", "robust", "strong"])
def test_objective_is_the_value_of_the_problem_at_the_model(step, weighted):
    weight = WEIGHTS if weighted else np.ones(240)
    classifier = quick(step=step).fit(X, THREE, weight)
    value = 0.0
    for k, label in enumerate(classifier.classes_):
        signs = np.where(label == THREE, 1.0, -1.0)
        losses = np.maximum(1 - signs * classifier.decision_function(X)[:, k], 0)
        norm = classifier.map_coef_[k] @ classifier.map_coef_[k]
        value += 0.5 * classifier.lam_ * norm + np.average(losses, weights=weight)
    assert classifier.lam_ == pytest.approx(1 / weight.sum())
    assert classifier.objective_ == pytest.approx(value, rel=1e-6)
    assert 0 <= classifier.dual_gap_ <= classifier.objective_

    regressor = quick(AssetRegressor, step=step, epsilon=0.2).fit(X, REALS, weight)
    losses = np.maximum(np.abs(REALS - regressor.predict(X)) - 0.2, 0)
    value = 0.5 * regressor.lam_ * np.sum(regressor.map_coef_**2) + np.average(losses, weights=weight)
    assert regressor.objective_ == pytest.approx(value, rel=1e-6)


def test_counts_and_history_tell_what_was_run():
    model = quick(max_iter=7).fit(X, BINARY)
    assert model.n_iter_ == len(model.history_) == 7
    assert model.t_ == 7 * 240
    assert [record["epoch"] for record in model.history_] == list(range(1, 8))
    assert [record["steps"] for record in model.history_] == [240 * e for e in range(1, 8)]
    seconds = [record["seconds"] for record in model.history_]
    assert seconds == sorted(seconds)
    assert all(np.isfinite(record["progressive_objective"]) for record in model.history_)


def test_small_data_get_a_hundred_thousand_steps_by_default():
    model = AssetClassifier(random_state=0).fit(X, BINARY)
    assert 100_000 <= model.t_ < 100_000 + 240
    assert model.t_ == model.n_iter_ * 240


def test_a_callable_kernel_equals_the_named_one():
    def gaussian(A, B):
        return pairwise_kernels(A, B, metric="rbf", gamma=0.5)

    for rows in (X, sp.csr_matrix(X)):
        called = quick(kernel=gaussian).fit(rows, BINARY).decision_function(rows)
        named = quick(gamma=0.5).fit(rows, BINARY).decision_function(rows)
        np.testing.assert_allclose(called, named, atol=1e-6)


# Inputs ------------------------------------------------------------------------------------------


def with_indices(matrix, dtype):
    matrix = matrix.copy()
    for name in ("indices", "indptr", "row", "col"):
        if hasattr(matrix, name) and not isinstance(getattr(type(matrix), name, None), property):
            setattr(matrix, name, getattr(matrix, name).astype(dtype))
    if hasattr(matrix, "coords"):  # scipy 1.13 and later have it for row and col
        matrix.coords = tuple(c.astype(dtype) for c in matrix.coords)
    return matrix


SPARSE_ROWS = frozen(np.where(np.abs(X) > 0.7, X, 0.0))


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
@pytest.mark.parametrize(
    "form", [sp.csr_matrix, sp.csc_matrix, sp.coo_matrix, sp.csr_array, sp.csc_array, sp.coo_array]
)
@pytest.mark.parametrize("approximation", ["nystroem", "fourier"])
def test_sparse_rows_give_the_decisions_of_dense_ones(approximation, form, dtype):
    sparse = with_indices(form(SPARSE_ROWS), dtype)
    parameters = {"approximation": approximation, "n_components": 60}
    for kind, y in ((AssetClassifier, THREE), (AssetRegressor, REALS)):
        dense = quick(kind, **parameters).fit(SPARSE_ROWS, y)
        model = quick(kind, **parameters).fit(sparse, y)
        expected = dense._decide(SPARSE_ROWS)
        np.testing.assert_allclose(model._decide(sparse), expected, atol=1e-6)
        np.testing.assert_allclose(model._decide(SPARSE_ROWS), expected, atol=1e-6)
        np.testing.assert_allclose(dense._decide(sparse), expected, atol=1e-6)


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_the_compiled_laplacian_takes_both_kinds_of_indices(dtype):
    sparse = with_indices(sp.csr_matrix(SPARSE_ROWS), dtype)
    model = quick(kernel="laplacian").fit(sparse, BINARY)
    expected = quick(kernel="laplacian").fit(SPARSE_ROWS, BINARY).decision_function(SPARSE_ROWS)
    np.testing.assert_allclose(model.decision_function(sparse), expected, atol=1e-6)


def test_fitting_leaves_sparse_rows_alone():
    sparse = sp.csr_matrix(SPARSE_ROWS)
    before = sparse.copy()
    quick().fit(sparse, BINARY).predict(sparse)
    assert (sparse != before).nnz == 0
    assert sparse.indices.dtype == before.indices.dtype


@pytest.mark.parametrize("rows", [X, sp.csr_matrix(X)], ids=["dense", "sparse"])
@pytest.mark.parametrize("approximation", ["nystroem", "fourier"])
def test_float32_stays_float32(approximation, rows):
    single = rows.astype(np.float32)
    transformer = NystroemMap() if approximation == "nystroem" else FourierMap(n_components=50)
    assert transformer.fit(single).transform(single).dtype == np.float32
    assert transformer.transform(rows).dtype == np.float64
    model = quick(approximation=approximation, n_components=50).fit(single, THREE)
    assert model._fitted.session.state.direction.dtype == np.float32
    regressor = quick(AssetRegressor, approximation=approximation, n_components=50)
    assert regressor.fit(single, REALS)._fitted.session.state.direction.dtype == np.float32
    online = quick(approximation=approximation, n_components=50)
    online.partial_fit(single, THREE, np.unique(THREE)).partial_fit(single, THREE)
    assert online._fitted.session.state.direction.dtype == np.float32


def test_float32_and_float64_agree():
    single = X.astype(np.float32)
    wide = quick(C=10, max_iter=100).fit(X, THREE).predict(X)
    assert (quick(C=10, max_iter=100).fit(single, THREE).predict(single) == wide).mean() > 0.98


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_data_frames_give_their_names(library):
    frames = pytest.importorskip(library)
    names = ["height", "width", "age"]
    frame = frames.DataFrame({name: X[:, i] for i, name in enumerate(names)})
    y = frames.Series(THREE.tolist())
    model = quick().fit(frame, y)
    assert model.feature_names_in_.tolist() == names
    plain = quick().fit(X, THREE)
    np.testing.assert_array_equal(model.map_coef_, plain.map_coef_)
    np.testing.assert_array_equal(model.predict(frame), plain.predict(X))
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame[["width", "height", "age"]])
    online = quick().partial_fit(frame, y, classes=np.unique(THREE))
    assert online.feature_names_in_.tolist() == names


def test_columns_and_rows_in_any_memory_order_give_one_model():
    expected = quick().fit(X, BINARY).map_coef_
    np.testing.assert_array_equal(quick().fit(np.asfortranarray(X), BINARY).map_coef_, expected)
    np.testing.assert_array_equal(quick().fit(X.tolist(), BINARY.tolist()).map_coef_, expected)
    np.testing.assert_array_equal(quick().fit(np.repeat(X, 2, axis=0)[::2], BINARY).map_coef_, expected)


# Smaller models ----------------------------------------------------------------------------------


def test_a_compact_model_predicts_from_d_kernel_values():
    single = X.astype(np.float32)
    model = quick(gamma=0.01, max_iter=50, C=10).fit(single, THREE)
    d = model.feature_map_.dimension
    assert d < 240
    small = model.compact()
    assert small.components_.shape == (d, 3)
    assert small.dual_coef_.shape == (3, d)
    np.testing.assert_array_equal(small.components_, single[small.component_indices_])
    change = np.abs(small.decision_function(single) - model.decision_function(single))
    assert small.compact_error_ == pytest.approx(change.max(), rel=1e-6, abs=1e-6)  # all landmarks
    assert (small.predict(single) == model.predict(single)).mean() > 0.99
    values = pairwise_kernels(X, small.components_.astype(float), metric="rbf", gamma=0.01)
    expected = values @ small.dual_coef_.T + small.intercept_
    np.testing.assert_allclose(small.decision_function(X), expected, atol=1e-5)


def test_a_compact_model_is_a_copy_that_cannot_learn():
    model = quick(gamma=0.01).fit(X.astype(np.float32), BINARY)
    before = model.decision_function(X)
    small = pickle.loads(pickle.dumps(model.compact()))
    with pytest.raises(ValueError, match=r"compact.*; .+\.$"):
        small.partial_fit(X, BINARY)
    np.testing.assert_array_equal(model.decision_function(X), before)
    model.partial_fit(X[:3], BINARY[:3])
    small.fit(X, BINARY)  # a new fit begins anew
    np.testing.assert_array_equal(small.map_coef_, quick(gamma=0.01).fit(X, BINARY).map_coef_)
    assert not hasattr(small, "compact_error_")


def test_a_compact_model_is_exact_where_nothing_is_cut():
    model = quick(gamma=5.0, n_components=40).fit(X, BINARY)
    assert model.feature_map_.dimension == 40
    small = model.compact()
    assert small.compact_error_ < 1e-8
    np.testing.assert_allclose(small.decision_function(X), model.decision_function(X), atol=1e-8)


def test_compacting_what_cannot_be_compacted_says_why():
    with pytest.raises(ValueError, match=r"fourier.*; .+\.$"):
        quick(approximation="fourier", n_components=20).fit(X, BINARY).compact()
    twice = quick(gamma=0.01).fit(X.astype(np.float32), BINARY).compact()
    with pytest.raises(ValueError, match=r"compact.*; .+\.$") as caught:
        twice.compact()
    assert "fourier" not in str(caught.value)


@pytest.mark.parametrize("approximation", ["nystroem", "fourier"])
def test_the_size_of_a_model_does_not_depend_on_the_number_of_rows(approximation):
    rng = np.random.default_rng(0)
    sizes = []
    for m in (500, 8000):
        rows = rng.normal(size=(m, 4))
        model = quick(approximation=approximation, n_components=64, gamma=1.0, max_iter=2)
        sizes.append(len(pickle.dumps(model.fit(rows, rows[:, 0] > 0))))
    assert sizes[1] == pytest.approx(sizes[0], rel=0.02)


# scikit-learn's tools ----------------------------------------------------------------------------


@pytest.mark.parametrize("approximation", ["nystroem", "fourier"])
def test_a_pickle_predicts_and_goes_on_learning(approximation, tmp_path):
    model = quick(approximation=approximation, n_components=40).fit(X, THREE)
    model.predict(X)  # what predict caches must not hinder the pickle
    joblib.dump(model, tmp_path / "model")
    for copy in (pickle.loads(pickle.dumps(model)), joblib.load(tmp_path / "model")):
        np.testing.assert_array_equal(copy.decision_function(X), model.decision_function(X))
        again = pickle.loads(pickle.dumps(model)).partial_fit(X, THREE)
        np.testing.assert_array_equal(copy.partial_fit(X, THREE).map_coef_, again.map_coef_)


def test_a_clone_has_the_parameters_and_nothing_else():
    model = quick(C=7, class_weight={0: 2.0, 1: 1.0}).fit(X, BINARY)
    copy = clone(model)
    assert copy.get_params() == model.get_params()
    assert set(vars(copy)) == set(vars(quick()))


@pytest.mark.filterwarnings("ignore:The model tells no rows apart")
def test_a_grid_search_finds_the_better_parameters():
    grid = {"gamma": [1e-4, 0.5], "C": [10.0], "approximation": ["nystroem", "fourier"]}
    search = GridSearchCV(quick(n_components=60, max_iter=50), grid, cv=3).fit(X, BINARY)
    assert search.best_params_["gamma"] == 0.5
    assert search.score(X, BINARY) > 0.9
    nested = GridSearchCV(
        quick(AssetRegressor, approximation=NystroemMap(random_state=0)),
        {"approximation__n_components": [2, 60]},
        cv=3,
    ).fit(X, REALS)
    assert nested.best_params_["approximation__n_components"] == 60


def test_a_pipeline_scales_and_classifies():
    pipeline = make_pipeline(StandardScaler(), quick(C=10, max_iter=50))
    assert pipeline.fit(X * [1, 1e4, 1e-4], BINARY).score(X * [1, 1e4, 1e-4], BINARY) > 0.9
    mapped = make_pipeline(StandardScaler(), FourierMap(n_components=300, random_state=0), SVR())
    assert mapped.fit(X, REALS).score(X, REALS) > 0.9


@pytest.mark.parametrize("y", [BINARY, THREE], ids=["two classes", "three classes"])
def test_calibration_gives_probabilities(y):
    calibrated = CalibratedClassifierCV(quick(C=10, max_iter=50), ensemble=False, cv=3).fit(X, y)
    probability = calibrated.predict_proba(X)
    np.testing.assert_allclose(probability.sum(axis=1), 1.0)
    assert calibrated.score(X, y) > 0.9
    held = CalibratedClassifierCV(FrozenEstimator(quick(C=10).fit(X, y)), ensemble=False)
    assert held.fit(X, y).score(X, y) > 0.8


def test_sample_weight_is_routed_through_a_pipeline():
    weight = np.where(np.arange(240) % 2, 0.0, 1.0)
    with config_context(enable_metadata_routing=True):
        asking = quick().set_fit_request(sample_weight=True)
        pipeline = make_pipeline(StandardScaler().set_fit_request(sample_weight=False), asking)
        pipeline.fit(X, BINARY, sample_weight=weight)
        scaled = StandardScaler().fit_transform(X)
        expected = quick().fit(scaled, BINARY, sample_weight=weight).map_coef_
        np.testing.assert_array_equal(pipeline[-1].map_coef_, expected)
        maps = make_pipeline(
            NystroemMap(n_components=30, random_state=0).set_fit_request(sample_weight=True),
            quick(kernel="linear").set_fit_request(sample_weight=False),
        ).fit(X, BINARY, sample_weight=weight)
        assert (maps[0].component_indices_ % 2 == 0).all()
        scores = cross_val_score(
            quick().set_fit_request(sample_weight=True).set_score_request(sample_weight=True),
            X,
            BINARY,
            params={"sample_weight": np.ones(240)},
        )
    assert scores.mean() > 0.7


def test_maps_write_data_frames_with_their_names():
    frames = pytest.importorskip("pandas")
    names = [f"nystroemmap{i}" for i in range(20)]
    mapped = NystroemMap(n_components=20, gamma=2.0).set_output(transform="pandas").fit_transform(X)
    assert isinstance(mapped, frames.DataFrame)
    assert mapped.columns.tolist() == names
    fourier = FourierMap(n_components=20).fit(X)
    assert fourier.get_feature_names_out().tolist() == [f"fouriermap{i}" for i in range(20)]
    assert fourier.transform(X).shape == (240, 20)
    cut = NystroemMap(gamma=1e-3).fit(X.astype(np.float32))
    assert len(cut.get_feature_names_out()) == cut.features_.dimension < 240
    assert cut.transform(X).shape[1] == cut.features_.dimension


@pytest.mark.parametrize(
    "estimator", [AssetClassifier(C=3), AssetRegressor(C=3), NystroemMap(), FourierMap()], ids=str
)
def test_notebooks_and_consoles_show_what_was_set(estimator):
    assert type(estimator).__name__ in estimator._repr_html_()
    shown = repr(estimator)
    assert shown.endswith("(C=3)") or shown.endswith("()")


def test_verbose_logs_a_line_an_epoch_and_prints_nothing(caplog, capsys):
    logger = logging.getLogger("asset_svm")
    level, handlers = logger.level, list(logger.handlers)
    try:
        with caplog.at_level(logging.INFO, logger="asset_svm"):
            quick(max_iter=4).fit(X, BINARY)
            assert not caplog.records
            quick(max_iter=4, verbose=1).fit(X, BINARY)
        assert sum(r.getMessage().startswith("epoch ") for r in caplog.records) == 4
        assert capsys.readouterr().out == ""
    finally:
        logger.setLevel(level)
        logger.handlers[:] = handlers


# The defaults ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    [
        "iris",
        "wine",
        *(pytest.param(name, marks=pytest.mark.slow) for name in ("breast_cancer", "digits")),
    ],
)
def test_defaults_come_within_a_hundredth_of_svc(name):
    """5-fold accuracy, columns standardised; at most 0.01 and one row of the data below SVC."""
    rows, y = getattr(datasets, f"load_{name}")(return_X_y=True)
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    exact = make_pipeline(StandardScaler(), OneVsRestClassifier(SVC()))
    ours = make_pipeline(StandardScaler(), AssetClassifier(random_state=0))
    reference = cross_val_score(exact, rows, y, cv=folds).mean()
    assert cross_val_score(ours, rows, y, cv=folds).mean() >= reference - 0.01 - 1 / len(y)


def test_defaults_come_within_a_hundredth_of_svr():
    """5-fold R2 on diabetes, columns and target standardised; at most 0.01 below SVR."""
    rows, y = datasets.load_diabetes(return_X_y=True)
    y = (y - y.mean()) / y.std()
    folds = KFold(5, shuffle=True, random_state=0)
    reference = cross_val_score(make_pipeline(StandardScaler(), SVR()), rows, y, cv=folds).mean()
    ours = make_pipeline(StandardScaler(), AssetRegressor(random_state=0))
    assert cross_val_score(ours, rows, y, cv=folds).mean() >= reference - 0.01


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_large_rows_are_searched_for_nan_and_infinity_as_small_ones_are(value, monkeypatch):
    """Threads look at large arrays; a sum that overflows is not a NaN."""
    monkeypatch.setattr(validation, "LARGE", 1)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3)).astype(np.float32)
    y = X[:, 0] > 0
    model = AssetClassifier(n_components=10, max_iter=2, random_state=0).fit(X, y)
    damaged = X.copy()
    damaged[137, 1] = value
    for call in (lambda: AssetClassifier().fit(damaged, y), lambda: model.predict(damaged)):
        with pytest.raises(ValueError, match=r"Input X contains (NaN|infinity)"):
            call()
    with pytest.raises(ValueError, match="Input y contains"):
        AssetRegressor().fit(X, np.where(y, value, 0.0))
    huge = np.full((200, 3), 1e36, dtype=np.float32)  # finite, its sum is not
    assert model.predict(huge).shape == (200,)
    with config_context(assume_finite=True):
        assert model.predict(X).shape == (200,)


FAR = 1e9
"""Targets of which float32 holds no digit that matters."""


def online(model, X, y):
    for start in range(0, len(y), 100):
        model.partial_fit(X[start : start + 100], y[start : start + 100])
    return model


@pytest.mark.parametrize(
    ("options", "learn"),
    [
        ({}, AssetRegressor.fit),
        ({"approximation": "fourier", "n_components": 100}, AssetRegressor.fit),
        ({"early_stopping": True}, AssetRegressor.fit),
        ({"n_cells": 3}, AssetRegressor.fit),
        ({"n_cells": 3, "memory_limit": 1e4}, AssetRegressor.fit),
        ({}, online),
        ({"n_cells": 3}, online),
    ],
    ids=["nystroem", "fourier", "early stopping", "cells", "large cells", "stream", "stream of cells"],
)
def test_float32_rows_with_targets_far_from_zero_are_predicted_as_near_to_it(options, learn, waves):
    X, y = waves[0].astype(np.float32), waves[1]
    near = learn(AssetRegressor(C=10, random_state=0, **options), X, y)
    far = learn(AssetRegressor(C=10, random_state=0, **options), X, y + FAR)
    reference = SVR(C=10).fit(X, y).predict(X)
    assert far.predict(X).dtype == reference.dtype == np.float64
    # y + FAR itself is rounded to 1e-7, which flips a few steps.
    assert r2_score(far.predict(X) - FAR, near.predict(X)) > 0.9999
    np.testing.assert_allclose(far.compiled()(X), far.predict(X), rtol=0, atol=1e-5)


@pytest.mark.parametrize("n_cells", [None, 2])
def test_a_search_scores_targets_far_from_zero_as_those_near_to_it(n_cells, waves):
    X, y = waves[0].astype(np.float32), waves[1]
    options = dict(Cs=[1.0, 10.0], n_cells=n_cells, cv=3, random_state=0, refit=False)
    near = AssetRegressorCV(**options).fit(X, y).cv_results_["mean_test_score"]
    far = AssetRegressorCV(**options).fit(X, y + FAR).cv_results_["mean_test_score"]
    np.testing.assert_allclose(far, near, atol=1e-3)


def slow_waves(m):
    """Two columns, and targets without noise."""
    X = np.random.default_rng(0).uniform(-3, 3, size=(m, 2))
    return X, 2 * np.sin(X[:, 0]) + X[:, 1]


@pytest.mark.parametrize("step", ["metric", "robust"])
@pytest.mark.parametrize(("factor", "size"), [(0.0, 500), (0.01, 500), (0.0205, 500), (0.0, 80)])
def test_a_first_batch_that_says_nothing_settles_nothing(step, factor, size):
    X, y = slow_waves(4000)
    model = AssetRegressor(step=step, random_state=0)
    model.partial_fit(X[:500], factor * y[:500])
    for start in range(500, len(y), size):
        model.partial_fit(X[start : start + size], y[start : start + size])
    assert model.score(X, y) > 0.99


def test_a_stream_after_a_fit_to_targets_that_say_nothing_learns():
    X, y = slow_waves(4000)
    model = AssetRegressor(random_state=0).fit(X[:500], 0.03 * y[:500])
    for start in range(500, len(y), 500):
        model.partial_fit(X[start : start + 500], y[start : start + 500])
    assert model.score(X, y) > 0.99


def test_a_given_step_scale_is_kept_whatever_the_targets():
    X, y = slow_waves(1000)
    model = AssetRegressor(step_scale=0.2, random_state=0).partial_fit(X[:500], 0.0 * y[:500])
    assert model.partial_fit(X[500:], y[500:]).step_scale_ == 0.2


def test_the_multiplier_of_a_stream_is_settled_once_where_targets_stay_alike(monkeypatch):
    X, y = slow_waves(4000)
    runs = []
    found = online_engine.pilot_scale

    def counted(*args, **options):
        runs.append(1)
        return found(*args, **options)

    monkeypatch.setattr(online_engine, "pilot_scale", counted)
    by_batches(AssetRegressor(random_state=0), X, y, 500)
    assert len(runs) == 1


def by_batches(model, X, y, size, **options):
    for start in range(0, len(y), size):
        model.partial_fit(X[start : start + size], y[start : start + size], **options)
    return model


@pytest.mark.parametrize("options", [{}, {"n_components": 30}, {"n_cells": 2}], ids=str)
def test_a_stream_may_come_row_by_row(options):
    X, y = datasets.make_moons(1300, noise=0.25, random_state=0)
    exact = SVC().fit(X[:300], y[:300])
    model = AssetClassifier(random_state=0, **options).partial_fit(X[:1], y[:1], classes=[0, 1])
    assert model.predict(X[:2]).shape == (2,)
    by_batches(model, X[1:300], y[1:300], 1)
    assert (model.n_iter_, model.t_, model.history_[-1]["batch"]) == (300, 300, 300)
    assert model.score(X[300:], y[300:]) > exact.score(X[300:], y[300:]) - 0.03


def test_a_regression_may_come_row_by_row():
    X, y = slow_waves(300)
    assert by_batches(AssetRegressor(random_state=0), X, y + 100.0, 1).score(X, y + 100.0) > 0.98


@pytest.mark.parametrize("rows", [X, sp.csr_matrix(X)], ids=["dense", "sparse"])
def test_small_batches_begin_as_one_large_batch(rows):
    """Once there are enough rows, the model is that of a first batch of all of them."""
    m, weight = rows.shape[0], np.ones(rows.shape[0])
    weight[::7] = 0.0
    pieces = AssetClassifier(n_components=m // 2, random_state=0)
    with mock.patch.object(beginning, "ENOUGH", m // 2):
        for start in range(0, m, 9):
            part = slice(start, start + 9)
            pieces.partial_fit(rows[part], BINARY[part], np.unique(BINARY), weight[part])
            if pieces._fitted.beginning is None:
                break
        whole = slice(0, start + 9)
        other = AssetClassifier(n_components=m // 2, random_state=0)
        other.partial_fit(rows[whole], BINARY[whole], np.unique(BINARY), weight[whole])
    assert pieces.n_iter_ > 1 and pieces.lam_ == other.lam_
    np.testing.assert_array_equal(pieces.component_indices_, other.component_indices_)
    np.testing.assert_allclose(
        pieces.decision_function(rows), other.decision_function(rows), rtol=1e-12
    )


@pytest.mark.parametrize("n_cells", [None, 2])
def test_a_model_saved_at_the_beginning_of_a_stream_goes_on_as_if_it_was_not(n_cells, tmp_path):
    X, y = datasets.make_moons(300, noise=0.25, random_state=0)
    model = AssetClassifier(n_cells=n_cells, random_state=0)
    model.partial_fit(X[:40], y[:40], classes=[0, 1])
    asset_svm.save(model, tmp_path / "model.asset", resumable=True)
    other = asset_svm.load(tmp_path / "model.asset")
    for each in (model, other):
        by_batches(each, X[40:], y[40:], 40)
    np.testing.assert_array_equal(model.decision_function(X), other.decision_function(X))


def test_more_landmarks_than_the_first_batch_come_from_later_ones():
    X, y = datasets.make_moons(900, noise=0.25, random_state=0)
    model = AssetClassifier(n_components=400, random_state=0)
    by_batches(model, X, y, 100, classes=[0, 1])
    assert model.components_.shape[0] == 400
    assert model.component_indices_.max() < 400
    assert model._fitted.beginning is None


@pytest.mark.parametrize("kinds", [(sp.csr_matrix, np.asarray), (np.asarray, sp.csr_matrix)])
def test_batches_of_a_stream_may_be_sparse_or_dense(kinds):
    mixed, dense = (AssetClassifier(n_components=40, lam=1e-3, random_state=0) for _ in "ab")
    with mock.patch.object(beginning, "ENOUGH", 40):
        for number, start in enumerate(range(0, 240, 60)):
            part = slice(start, start + 60)
            mixed.partial_fit(kinds[number // 2](X[part]), BINARY[part], np.unique(BINARY))
            dense.partial_fit(X[part], BINARY[part], np.unique(BINARY))
    np.testing.assert_allclose(mixed.decision_function(X), dense.decision_function(X), atol=1e-6)
