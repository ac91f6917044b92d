"""The estimators as a scikit-learn user meets them: fits, streams, weights, inputs, tools."""

import importlib.util
import logging
import math
import os
import pickle
import signal
import subprocess
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor
from unittest import mock

import joblib
import numpy as np
import pytest
import scipy.sparse as sp
from sklearn import config_context, datasets
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.exceptions import ConvergenceWarning
from sklearn.frozen import FrozenEstimator
from sklearn.metrics import accuracy_score, r2_score
from sklearn.metrics.pairwise import pairwise_kernels
from sklearn.model_selection import GridSearchCV, KFold, StratifiedKFold, cross_val_score
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR

import asset_svm
from asset_svm import AssetClassifier, AssetRegressor, AssetRegressorCV, FourierMap, NystroemMap
from asset_svm.estimators import validation
from asset_svm.families import beginning
from asset_svm.training import stream as online_engine


def frozen(array):
    array.setflags(write=False)
    return array


RNG = np.random.default_rng(0)
X = frozen(RNG.normal(size=(240, 3)))
BINARY = frozen((X[:, 0] + X[:, 1] ** 2 > 0.8).astype(int))
THREE = frozen(np.array(["far", "low", "mid"])[np.digitize(X[:, 0], [-0.5, 0.5])])
REALS = frozen(np.sin(2 * X[:, 0]) + X[:, 1] + 5.0)


def quick(kind=AssetClassifier, **parameters):
    """A short, seeded run of the paper's rule; other parameters on top."""
    defaults = {"max_iter": 10, "step": "robust", "step_scale": 0.3, "random_state": 0}
    return kind(**{**defaults, **parameters})


def stream(estimator, rows, y, size, classes=None):
    for start in range(0, len(y), size):
        part = slice(start, start + size)
        extra = {} if classes is None else {"classes": classes}
        estimator.partial_fit(rows[part], y[part], **extra)
    return estimator


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


def test_importing_an_estimator_imports_no_extra():
    """Beyond what scikit-learn's callbacks import themselves, where they are present."""
    extras = {"pandas", "polars", "rich", "typer", "torch", "dask", "pyarrow", "matplotlib"}
    present = importlib.util.find_spec("sklearn.callback") is not None
    theirs = "import sklearn.callback" if present else "import sklearn.base"
    before = f"{theirs}; before = {{*sys.modules}}"
    ours = "from asset_svm import AssetClassifier, FourierMap"
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
    weight = RNG_WEIGHT if weighted else np.ones(240)
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


RNG_WEIGHT = frozen(np.random.default_rng(5).uniform(0.2, 3.0, size=240))


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


# Streams -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("step", ["robust", "strong"])
@pytest.mark.parametrize("size", [1, 7, 240])
def test_a_stream_takes_the_steps_of_one_epoch_in_the_given_order(step, size):
    """The same map, lam and D_G: batches of any size are one run of the loop.

    With every row a landmark all |phi(x)| are 1, and so D_G is the same for any batch.
    """
    given = NystroemMap(gamma=0.5).fit(X)
    parameters = {"approximation": given, "lam": 0.01, "step": step, "average": None}
    whole = quick(sampling="given", max_iter=1, **parameters).fit(X, THREE)
    online = stream(quick(**parameters), X, THREE, size, classes=np.unique(THREE))
    np.testing.assert_allclose(online.map_coef_, whole.map_coef_, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(online.intercept_, whole.intercept_, atol=1e-9)
    assert online.t_ == whole.t_ == 240
    assert online.n_iter_ == -(-240 // size)


@pytest.mark.parametrize(("step", "power"), [("robust", 0.5), ("strong", 1.0)])
@pytest.mark.parametrize("count", [1, 4, 25])
def test_an_average_over_batches_is_exactly_that_of_the_last_iterates(count, step, power, monkeypatch):
    """Whatever the batches: sum eta_j x_j / sum eta_j over the last ``count`` steps j."""
    monkeypatch.setattr(beginning, "ENOUGH", 40)
    sizes = [40, 3, 2, 1, 5, 30, 1, 1, 6]
    ends = np.cumsum(sizes)
    parameters = {"lam": 0.01, "step": step, "gamma": 0.5}

    single = quick(average=None, **parameters).partial_fit(X[:40], BINARY[:40], classes=[0, 1])
    iterates = {40: (single.map_coef_[0], single.intercept_[0])}
    for j in range(41, ends[-1] + 1):
        single.partial_fit(X[j - 1 : j], BINARY[j - 1 : j])
        iterates[j] = (single.map_coef_[0], single.intercept_[0])

    averaged = quick(average=count, **parameters)
    for size, end in zip(sizes, ends, strict=True):
        part = slice(end - size, end)
        averaged.partial_fit(X[part], BINARY[part], classes=[0, 1])
        last = range(end - count + 1, end + 1)
        if last[0] < 40:
            continue
        eta = np.array([j**-power for j in last])
        coef = eta @ np.array([iterates[j][0] for j in last]) / eta.sum()
        intercept = eta @ np.array([iterates[j][1] for j in last]) / eta.sum()
        np.testing.assert_allclose(averaged.map_coef_[0], coef, rtol=1e-8, atol=1e-10)
        np.testing.assert_allclose(averaged.intercept_[0], intercept, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("average", [0.5, 10, None])
def test_a_stream_learns_in_constant_memory(average):
    """What a model carries does not grow with the rows it has seen."""
    model = quick(average=average, n_components=20)
    rng = np.random.default_rng(3)
    sizes = []
    for _ in range(80):
        rows = rng.normal(size=(25, 3))
        model.partial_fit(rows, (rows[:, 0] > 0).astype(int), classes=[0, 1])
        sizes.append(len(pickle.dumps(model)))
    assert model.t_ == 2000
    segment = 20 * 8 + 600  # a sum over iterates and what pickle writes around it
    assert max(sizes[40:]) <= max(sizes[5:40]) + 2 * segment


def test_a_stream_reaches_the_accuracy_of_a_fit():
    rng = np.random.default_rng(4)
    rows = rng.normal(size=(4000, 2))
    y = (rows**2).sum(axis=1) > 1.4
    batch = AssetClassifier(C=100, random_state=0).fit(rows, y).score(rows, y)
    online = stream(AssetClassifier(C=20, random_state=0), rows, y, 200, classes=[False, True])
    assert online.score(rows, y) > batch - 0.03


def test_a_regression_stream_learns():
    rng = np.random.default_rng(4)
    rows = rng.uniform(-2, 2, size=(4000, 1))
    y = np.sin(2 * rows[:, 0]) + 10
    online = stream(AssetRegressor(C=10, random_state=0), rows, y, 100)
    assert online.score(rows, y) > 0.9


def test_a_batch_may_miss_classes_and_classes_come_in_any_order():
    model = quick()
    order = np.argsort(THREE, kind="stable")  # one class after the other
    model.partial_fit(X[order[:60]], THREE[order[:60]], classes=["mid", "low", "far"])
    assert model.classes_.tolist() == ["far", "low", "mid"]
    model.partial_fit(X[order[60:]], THREE[order[60:]])
    model.partial_fit(X, THREE, classes=np.array(["low", "mid", "far"]))
    assert model.map_coef_.shape[0] == 3


def test_partial_fit_after_fit_goes_on_from_the_fitted_model():
    model = quick(max_iter=200, C=10).fit(X, BINARY)
    before, t, coef = model.score(X, BINARY), model.t_, model.map_coef_.copy()
    phi = model.feature_map_
    model.partial_fit(X[:5], BINARY[:5])
    assert model.feature_map_ is phi
    assert model.t_ == t + 5
    moved = np.linalg.norm(model.map_coef_ - coef)
    assert 0 < moved < 0.2 * np.linalg.norm(coef)
    assert model.score(X, BINARY) > before - 0.05
    with pytest.raises(ValueError, match="7"):
        model.partial_fit(X[:5], np.full(5, 7))


def test_fit_after_partial_fit_begins_anew():
    used = stream(quick(), X, BINARY, 50, classes=[0, 1]).fit(X, BINARY)
    np.testing.assert_array_equal(used.map_coef_, quick().fit(X, BINARY).map_coef_)
    assert used.t_ == 2400


@pytest.mark.parametrize("kind", [NystroemMap, FourierMap])
def test_a_fitted_map_is_used_as_it_is(kind):
    given = kind(n_components=30, random_state=7).fit(X)
    model = quick(approximation=given).fit(X[:50], BINARY[:50])
    assert model.feature_map_ is given.features_
    online = quick(approximation=given).partial_fit(X[:3], BINARY[:3], classes=[0, 1])
    assert online.feature_map_ is given.features_
    expected = given.transform(X) @ model.map_coef_[0] + model.intercept_[0]
    np.testing.assert_allclose(model.decision_function(X), expected, atol=1e-6)


def test_a_frozen_map_survives_clone_and_a_bare_one_is_fitted_again():
    given = NystroemMap(n_components=30, random_state=7).fit(X)
    kept = clone(quick(approximation=FrozenEstimator(given))).fit(X[:50], BINARY[:50])
    np.testing.assert_array_equal(kept.components_, given.components_)
    fresh = clone(quick(approximation=given)).fit(X[:50], BINARY[:50])
    assert (fresh.component_indices_ < 50).all()
    assert not hasattr(clone(given), "features_")


def test_an_unfitted_map_is_fitted_on_a_copy():
    given = NystroemMap(n_components=30, random_state=7)
    model = quick(approximation=given).fit(X, BINARY)
    assert not hasattr(given, "features_")
    np.testing.assert_array_equal(model.components_, clone(given).fit(X).components_)


def test_shuffled_batches_are_reproducible():
    fits = [stream(quick(sampling="shuffle"), X, BINARY, 60, classes=[0, 1]) for _ in "ab"]
    np.testing.assert_array_equal(fits[0].map_coef_, fits[1].map_coef_)
    given = stream(quick(sampling="given"), X, BINARY, 60, classes=[0, 1])
    assert (fits[0].map_coef_ != given.map_coef_).any()


# Weights -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [AssetClassifier, AssetRegressor])
@pytest.mark.parametrize("sampling", ["uniform", "shuffle"])
def test_a_row_of_weight_zero_never_matters(kind, sampling):
    y = BINARY if kind is AssetClassifier else REALS
    rows, targets = np.r_[X, np.full((60, 3), 1e3)], np.r_[y, 1 - y[:60]]
    weight = np.r_[np.ones(240), np.zeros(60)]
    mixed = np.random.default_rng(1).permutation(300)
    kept = mixed[mixed < 240]
    parameters = {"sampling": sampling, "n_components": 100}
    without = quick(kind, **parameters).fit(rows[kept], targets[kept])
    model = quick(kind, **parameters).fit(rows[mixed], targets[mixed], weight[mixed])
    np.testing.assert_array_equal(model.components_, without.components_)
    np.testing.assert_array_equal(model.map_coef_, without.map_coef_)
    np.testing.assert_array_equal(model.predict(X), without.predict(X))


def test_a_row_of_weight_zero_never_matters_to_a_stream():
    weight = np.where(np.arange(240) % 4 == 0, 0.0, 1.0)
    kept = weight > 0
    model = quick(gamma=0.5).partial_fit(X, BINARY, [0, 1], sample_weight=weight)
    model.partial_fit(X[::-1], BINARY[::-1], sample_weight=weight[::-1])
    without = quick(gamma=0.5).partial_fit(X[kept], BINARY[kept], [0, 1])
    without.partial_fit(X[kept][::-1], BINARY[kept][::-1])
    np.testing.assert_array_equal(model.map_coef_, without.map_coef_)
    assert model.t_ == without.t_


def mean_decisions(kind, epochs, **parameters):
    """The mean decision of 20 seeded runs: with weights 1 and 4, with copies, with neither.

    ``epochs`` are those of the copies; the others run as many steps.
    """
    y = BINARY if kind is AssetClassifier else REALS + np.random.default_rng(2).normal(size=240)
    weight = np.where(y > np.median(y) if kind is AssetRegressor else y == 1, 4, 1)
    copies = np.repeat(np.arange(240), weight)
    given = NystroemMap(gamma=0.5, n_components=60, random_state=0).fit(X)
    every = np.arange(240)
    means = []
    for index, weights in ((every, weight), (copies, None), (every, None)):
        model = quick(kind, approximation=given, C=0.1, **parameters)
        model.set_params(max_iter=round(epochs * len(copies) / len(index)))
        runs = []
        for seed in range(20):
            model.set_params(random_state=seed).fit(X[index], y[index], sample_weight=weights)
            runs.append(float(np.mean(model._decide(X))))
        means.append((np.mean(runs), np.var(runs, ddof=1) / len(runs)))
    return means


@pytest.mark.parametrize("kind", [AssetClassifier, AssetRegressor])
def test_a_weight_of_k_and_k_copies_agree_in_the_mean(kind):
    """Drawn in proportion to their weights, the rows of both runs have one distribution.

    Over 20 seeds each, with as many steps, the mean decisions differ by less than two standard
    errors of their difference, and both by more than four from the unweighted mean.
    """
    weighted, repeated, plain = mean_decisions(kind, epochs=20, sampling="uniform")
    assert abs(weighted[0] - repeated[0]) < 2 * np.sqrt(weighted[1] + repeated[1])
    for run in (weighted, repeated):
        assert abs(run[0] - plain[0]) > 4 * np.sqrt(run[1] + plain[1])


@pytest.mark.slow
@pytest.mark.parametrize("kind", [AssetClassifier, AssetRegressor])
def test_a_weight_of_k_and_k_copies_agree_in_the_mean_by_default(kind):
    """By default uneven weights are drawn and copies shuffled: two paths to the same optimum.

    Steps that decay to 0 leave a standard error so small that the paths' remaining suboptimality
    shows in it; the mean decisions differ by less than a twentieth of what the weights change.
    """
    defaults = {"step": "auto", "step_scale": "auto", "sampling": "auto"}
    weighted, repeated, plain = mean_decisions(kind, epochs=100, **defaults)
    assert abs(weighted[0] - repeated[0]) < 0.05 * abs(repeated[0] - plain[0])


@pytest.mark.slow
@pytest.mark.parametrize("kind", [AssetClassifier, AssetRegressor])
def test_a_weight_of_k_and_k_copies_agree_in_the_mean_in_the_metric(kind):
    """The same two standard errors with metric steps, both drawn uniformly."""
    options = {"step": "metric", "step_scale": "auto", "sampling": "uniform"}
    weighted, repeated, _ = mean_decisions(kind, epochs=100, **options)
    assert abs(weighted[0] - repeated[0]) < 2 * np.sqrt(weighted[1] + repeated[1])


@pytest.mark.slow
@pytest.mark.parametrize("kind", [AssetClassifier, AssetRegressor])
def test_weighted_slopes_end_where_copies_do(kind):
    """A shuffled order multiplies slopes by weights instead: another path to the same optimum.

    The mean decisions differ by less than a tenth of what the weights change.
    """
    weighted, repeated, plain = mean_decisions(kind, epochs=40, sampling="shuffle")
    assert abs(weighted[0] - repeated[0]) < 0.1 * abs(repeated[0] - plain[0])


def test_a_common_factor_of_the_weights_scales_c():
    doubled = quick(C=0.5).fit(X, BINARY, np.full(240, 2.0))
    np.testing.assert_allclose(doubled.map_coef_, quick(C=1.0).fit(X, BINARY).map_coef_, atol=1e-12)


def test_class_weight_multiplies_sample_weight():
    by_class = {"far": 3.0, "low": 1.0, "mid": 0.5}
    factors = np.array([by_class[label] for label in THREE])
    model = quick(gamma=0.5, class_weight=by_class).fit(X, THREE, RNG_WEIGHT)
    by_row = quick(gamma=0.5).fit(X, THREE, RNG_WEIGHT * factors)
    np.testing.assert_allclose(model.map_coef_, by_row.map_coef_, rtol=1e-9)
    assert model.lam_ == pytest.approx(by_row.lam_)


def test_balanced_classes_weigh_the_same():
    counts = {label: (label == THREE).sum() for label in np.unique(THREE)}
    explicit = {label: 240 / (3 * count) for label, count in counts.items()}
    balanced = quick(gamma=0.5, class_weight="balanced").fit(X, THREE)
    np.testing.assert_allclose(
        balanced.map_coef_, quick(gamma=0.5, class_weight=explicit).fit(X, THREE).map_coef_, rtol=1e-9
    )


def test_class_weight_favours_the_heavy_class():
    noisy = np.random.default_rng(0).integers(0, 2, size=240)
    for label in (0, 1):
        model = quick(class_weight={label: 20.0, 1 - label: 1.0}).fit(X, noisy)
        assert (model.predict(X) == label).mean() > 0.8


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


# Stopping ----------------------------------------------------------------------------------------


def test_early_stopping_returns_the_best_model():
    """The last iterates of a long step are noisy: the best epoch is not the last.

    An iterate does not depend on how many epochs follow it, so that a run that ends with the best
    epoch returns the same model.
    """
    rng = np.random.default_rng(0)
    noisy = np.where(rng.random(240) < 0.25, 1 - BINARY, BINARY)
    parameters = {"early_stopping": True, "average": None, "step_scale": 1.0, "C": 100}
    parameters |= {"validation_fraction": 0.3, "n_iter_no_change": 4}
    model = quick(max_iter=50, **parameters).fit(X, noisy)
    scores = [record["validation_score"] for record in model.history_]
    best = int(np.argmax(scores)) + 1
    assert model.n_iter_ == len(scores) == best + 4 < 50
    shorter = quick(max_iter=best, **parameters).fit(X, noisy)
    np.testing.assert_array_equal(model.map_coef_, shorter.map_coef_)
    np.testing.assert_array_equal(model.intercept_, shorter.intercept_)
    assert shorter.history_[-1]["validation_score"] == max(scores)


def test_early_stopping_scores_a_regression_by_r2():
    model = quick(AssetRegressor, early_stopping=True, max_iter=50, n_iter_no_change=3)
    model.fit(X, REALS)
    scores = [record["validation_score"] for record in model.history_]
    assert len(scores) == model.n_iter_
    assert model.score(X, REALS) == pytest.approx(max(scores), abs=0.2)
    assert max(scores) <= 1.0


def test_a_time_limit_ends_an_endless_fit(ticks):
    model = AssetClassifier(max_iter=10**9, time_limit=100.0, random_state=0, step_scale=1.0)
    model.fit(X, BINARY)
    assert 1 <= model.n_iter_ < 10**9
    assert 100 < ticks.looks < 110 and model.t_ > 10 * len(X)
    assert model.score(X, BINARY) > 0.9


@pytest.mark.parametrize("average", [0.5, 50, None])
def test_a_time_limit_can_end_an_epoch_and_still_gives_a_model(average):
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(6000, 3))
    y = rows[:, 0] > 0
    model = quick(time_limit=1e-9, n_components=20, average=average).fit(rows, y)
    assert 1 <= model.t_ < 6000
    assert model.n_iter_ == 1
    assert model.score(rows, y) > 0.8


@pytest.mark.parametrize("step", ["auto", "robust"])
def test_epochs_that_a_time_limit_left_out_are_not_counted(step):
    """Of few rows hundreds of epochs are run between two records; the clock ends the first block."""
    model = quick(step=step, max_iter=40_000, time_limit=1e-9).fit(X, BINARY)
    assert len(X) < model.t_ < 200 * len(X)
    assert model.n_iter_ == model.history_[-1]["epoch"] == math.ceil(model.t_ / len(X))


def test_tol_stops_as_soon_as_the_gap_is_small():
    model = quick(tol=0.3, max_iter=4096).fit(X, BINARY)
    assert model.n_iter_ < 4096
    assert model.n_iter_ & (model.n_iter_ - 1) == 0  # checked after 1, 2, 4, ... epochs
    assert model.dual_gap_ <= 0.3 * model.objective_
    assert model.history_[-1]["dual_gap"] == pytest.approx(model.dual_gap_)
    finer = quick(tol=0.1, max_iter=4096).fit(X, BINARY)
    assert finer.n_iter_ > model.n_iter_


@pytest.mark.parametrize("kind", [list, np.array])
def test_rows_without_weight_are_nothing_to_learn_from_and_nothing_new(kind):
    zero = kind([0.0] * len(X))
    none = r"at least one non-zero|Every row has weight 0"  # the words of scikit-learn, or ours
    with pytest.raises(ValueError, match=none):
        quick().fit(X, BINARY, sample_weight=zero)
    with pytest.raises(ValueError, match=none):
        quick().partial_fit(X, BINARY, classes=np.unique(BINARY), sample_weight=zero)
    model = quick().partial_fit(X, BINARY, classes=np.unique(BINARY))
    before = model.map_coef_.copy(), model.t_
    model.partial_fit(X, BINARY, sample_weight=zero)
    np.testing.assert_array_equal(model.map_coef_, before[0])
    assert model.t_ == before[1]
    with pytest.raises(ValueError, match=r"shape|1D"):
        quick().fit(X, BINARY, sample_weight=np.zeros((len(X), 2)))


def test_a_tol_that_is_not_reached_warns_and_gives_a_model():
    with pytest.warns(ConvergenceWarning, match=r"tol=1e-09; raise max_iter or tol \(SVC's") as caught:
        model = quick(tol=1e-9, max_iter=3).fit(X, BINARY)
    assert caught[0].filename == __file__
    assert model.n_iter_ == 3
    assert model.dual_gap_ > 1e-9 * model.objective_
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        quick(tol=None, max_iter=3).fit(X, BINARY)


def test_a_warm_start_goes_on_where_the_last_fit_ended():
    model = quick(warm_start=True, max_iter=2, average=None).fit(X, BINARY)
    phi, first = model.feature_map_, model.objective_
    objectives = [first]
    for fits in range(2, 12):
        model.fit(X, BINARY)
        assert model.feature_map_ is phi
        assert model.t_ == fits * 2 * 240
        objectives.append(model.objective_)
    assert min(objectives[5:]) < first
    cold = quick(max_iter=2, average=None).fit(X, BINARY)
    assert cold.objective_ == first
    assert cold.t_ == 480


@pytest.mark.filterwarnings("ignore:The model tells no rows apart")
def test_a_warm_start_uses_the_new_c():
    model = quick(warm_start=True, max_iter=50, C=0.001).fit(X, BINARY)
    model.set_params(C=100).fit(X, BINARY)
    assert model.lam_ == pytest.approx(1 / (100 * 240))
    assert model.score(X, BINARY) > 0.9


@pytest.mark.parametrize(
    "change", [{"gamma": 2.0}, {"n_components": 10}, {"kernel": "laplacian"}], ids=str
)
def test_a_warm_start_begins_anew_with_another_map(change):
    model = quick(warm_start=True).fit(X, BINARY).set_params(**change).fit(X, BINARY)
    np.testing.assert_array_equal(model.map_coef_, quick(**change).fit(X, BINARY).map_coef_)
    assert model.t_ == 2400


def test_a_warm_start_begins_anew_with_other_columns_or_classes():
    model = quick(warm_start=True).fit(X, BINARY)
    np.testing.assert_array_equal(model.fit(X, THREE).map_coef_, quick().fit(X, THREE).map_coef_)
    model.fit(X[:, :2], THREE)
    np.testing.assert_array_equal(model.map_coef_, quick().fit(X[:, :2], THREE).map_coef_)


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


# Callbacks ---------------------------------------------------------------------------------------


class Watcher:
    """Counts tasks, scores every epoch, and may stop or fail at one."""

    def __init__(self, stop_at=None, fail_at=None):
        self.stop_at, self.fail_at = stop_at, fail_at
        self.begun, self.ended, self.scores, self.torn_down = [], [], [], 0

    def setup(self, estimator, context):
        self.max_subtasks = context.max_subtasks

    def teardown(self, estimator, context):
        self.torn_down += 1

    def on_fit_task_begin(self, estimator, context):
        self.begun.append(context.task_name)

    def on_fit_task_end(self, estimator, context, *, X=None, y=None, fitted_estimator=None):
        self.ended.append(context.task_name)
        if context.task_name != "epoch":
            return False
        self.scores.append(fitted_estimator.score(X, y))
        if len(self.scores) == self.fail_at:
            raise RuntimeError("the callback failed")
        return len(self.scores) == self.stop_at


@pytest.fixture
def callbacks():
    return pytest.importorskip("sklearn.callback")


@pytest.mark.parametrize("kind", [AssetClassifier, AssetRegressor])
def test_callbacks_see_every_epoch_and_a_model_that_predicts(callbacks, kind):
    watcher = Watcher()
    y = THREE if kind is AssetClassifier else REALS
    model = quick(kind, max_iter=6, average=None).set_callbacks(watcher).fit(X, y)
    assert watcher.begun.count("epoch") == watcher.ended.count("epoch") == 6 == watcher.max_subtasks
    assert watcher.begun[0] == watcher.ended[-1] == "fit"
    assert watcher.scores[-1] == model.score(X, y)
    assert watcher.torn_down == 1
    plain = quick(kind, max_iter=6, average=None).fit(X, y)
    np.testing.assert_array_equal(model.map_coef_, plain.map_coef_)


def test_a_callback_that_asks_to_stop_stops_the_fit(callbacks):
    watcher = Watcher(stop_at=3)
    model = quick(max_iter=50).set_callbacks(watcher).fit(X, BINARY)
    assert model.n_iter_ == 3 == len(watcher.scores)
    assert watcher.ended[-1] == "fit"
    assert watcher.torn_down == 1
    assert model.t_ == 720


def test_a_callback_that_fails_leaves_the_old_model(callbacks):
    model = quick().fit(X, BINARY)
    before = model.decision_function(X)
    watcher = Watcher(fail_at=2)
    with pytest.raises(RuntimeError, match="the callback failed"):
        model.set_callbacks(watcher).fit(X[:, :2], THREE)
    np.testing.assert_array_equal(model.decision_function(X), before)
    assert model.classes_.tolist() == [0, 1]
    assert watcher.torn_down == 1


def test_the_progress_bar_of_scikit_learn_works(callbacks, capsys):
    pytest.importorskip("rich")
    bar = callbacks.ProgressBar()
    model = quick(max_iter=5).set_callbacks(bar).fit(X, BINARY)
    assert model.n_iter_ == 5
    assert "AssetClassifier" in capsys.readouterr().out


def test_the_score_monitor_of_scikit_learn_works(callbacks):
    monitor = callbacks.ScoringMonitor(scoring="accuracy")
    quick(max_iter=5).set_callbacks(monitor).fit(X, BINARY)
    (log,) = monitor.get_logs() if isinstance(monitor.get_logs(), list) else [monitor.get_logs()]
    assert len(log.data) >= 5


def test_a_pickle_of_a_model_with_callbacks_predicts(callbacks):
    model = quick(max_iter=2).set_callbacks(Watcher()).fit(X, BINARY)
    copy = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(copy.predict(X), model.predict(X))


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
