"""Words of SVC: what they are here, and the answers to those that are nothing here."""

import pickle
import re
from inspect import signature

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import make_blobs, make_classification, make_moons
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_selection import RFE
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.multiclass import OneVsRestClassifier
from sklearn.svm import SVC, SVR, LinearSVC, NuSVC

from asset_svm import (
    AssetClassifier,
    AssetClassifierCV,
    AssetOutlierDetector,
    AssetQuantileRegressor,
    AssetRegressor,
    AssetRegressorCV,
    load,
    save,
)

ESTIMATORS = [AssetClassifier, AssetRegressor, AssetClassifierCV, AssetRegressorCV]
PARAMETERS = {
    "probability": (True, "CalibratedClassifierCV"),
    "decision_function_shape": ("ovo", "multi_class"),
    "break_ties": (True, "leave it out"),
    "shrinking": (False, "leave it out"),
    "cache_size": (500, "memory_limit"),
    "nu": (0.5, "set C, or search it by AssetClassifierCV"),
    "penalty": ("l1", "set C"),
    "dual": (False, "leave it out"),
    "multi_class": ("crammer_singer", "leave it out"),
    "intercept_scaling": (10.0, "intercept_bound"),
}


def exact(**options):
    return AssetClassifier(gamma=1.0, n_cells=1, fit_intercept=True, tol=1e-7, **options)


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        (kind, name)
        for kind in ESTIMATORS
        for name in PARAMETERS
        if name not in signature(kind).parameters  # a race has probabilities
    ],
)
def test_a_parameter_of_svc_is_answered(kind, name):
    value, instead = PARAMETERS[name]
    whose = next(peer for peer in (SVC, NuSVC, LinearSVC) if name in signature(peer).parameters)
    said = f"{name}={value!r} is a parameter of {whose.__name__}, and none of {kind.__name__}: .*; "
    said += f".*{instead}"
    with pytest.raises(TypeError, match=said):
        kind(**{name: value})
    with pytest.raises(ValueError, match=said):
        kind().set_params(**{name: value})


@pytest.mark.parametrize(
    ("kind", "name", "value", "whose", "instead"),
    [
        (AssetClassifierCV, "loss", "logistic", "AssetClassifier", "GridSearchCV"),
        (AssetRegressorCV, "loss", "huber", "AssetRegressor", "GridSearchCV"),
        (AssetRegressorCV, "quantiles", 0.5, "AssetQuantileRegressor", "use that estimator"),
        (AssetRegressor, "quantiles", 0.5, "AssetQuantileRegressor", "use that estimator"),
        (AssetRegressor, "nu", 0.5, "NuSVC", "AssetOutlierDetector"),
        (AssetQuantileRegressor, "loss", "huber", "AssetRegressor", "leave it out"),
        (AssetQuantileRegressor, "epsilon", 0.1, "AssetRegressor", "leave it out"),
        (AssetQuantileRegressor, "intervals", True, "AssetRegressor", "set quantiles"),
        (AssetQuantileRegressor, "quantile", 0.5, "QuantileRegressor", "set quantiles"),
        (AssetQuantileRegressor, "alpha", 0.5, "QuantileRegressor", "set C or lam, or quantiles"),
        (AssetOutlierDetector, "loss", "hinge", "AssetClassifier and AssetRegressor", "leave it out"),
    ],
)
def test_a_parameter_of_another_estimator_is_answered(kind, name, value, whose, instead):
    said = f"{name}={value!r} is a parameter of {whose}, and none of {kind.__name__}: .*{instead}"
    with pytest.raises(TypeError, match=said):
        kind(**{name: value})
    with pytest.raises(ValueError, match=said):
        kind().set_params(**{name: value})


def test_the_loss_of_a_quantile_is_that_of_another_estimator():
    with pytest.raises(ValueError, match='loss="quantile" is that of AssetQuantileRegressor'):
        AssetRegressor(loss="quantile").fit([[0.0], [1.0]], [0.0, 1.0])


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_other_names_are_pythons_and_scikit_learns_to_refuse(kind):
    with pytest.raises(TypeError, match="unexpected keyword argument 'colour'"):
        kind(colour="red")
    with pytest.raises(ValueError, match="Invalid parameter 'colour'"):
        kind().set_params(colour="red")
    with pytest.raises(AttributeError, match=r"has no attribute 'colour_'$"):
        kind().colour_  # noqa: B018
    assert "kernel" in signature(kind).parameters and "params" not in signature(kind).parameters
    assert clone(kind(C=2.0) if hasattr(kind(), "C") else kind(Cs=3)).get_params()


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_svcs_limit_of_iterations_is_answered(kind):
    X, y = make_moons(40, random_state=0)
    with pytest.raises(ValueError, match=r"max_iter=-1 is SVC's word for no limit.*max_iter=None"):
        kind(max_iter=-1).fit(X, y)


def test_svcs_tolerance_is_told_to_be_another():
    X, y = make_moons(100, noise=0.3, random_state=0)
    with pytest.warns(ConvergenceWarning, match="tol=0.001; .*SVC's tol is another measure; tol=None"):
        AssetClassifier(tol=1e-3, C=1e4, max_iter=2, random_state=0).fit(X, y)


@pytest.mark.parametrize(
    ("name", "instead"),
    [
        ("support_", "n_cells=1"),
        ("support_vectors_", "components_"),
        ("n_support_", "n_cells=1"),
        ("fit_status_", "dual_gap_"),
        ("shape_fit_", "n_features_in_"),
        ("probA_", "CalibratedClassifierCV"),
        ("predict_proba", "CalibratedClassifierCV"),
    ],
)
def test_an_attribute_of_svc_is_answered(name, instead):
    X, y = make_moons(60, random_state=0)
    model = AssetClassifier(n_components=20, random_state=0).fit(X, y)
    with pytest.raises(AttributeError, match=f"'{name}': .*{instead}"):
        getattr(model, name)
    assert not hasattr(model, name)


def test_an_exact_model_has_the_support_vectors_of_svc():
    X, y = make_moons(200, noise=0.2, random_state=0)
    labels = np.array(["a", "b"])[y]
    svc, model = SVC(gamma=1.0, tol=1e-9).fit(X, labels), exact().fit(X, labels)
    dense = np.zeros((2, 200))
    dense[0, svc.support_], dense[1, model.support_] = svc.dual_coef_[0], model.dual_coef_[0]
    np.testing.assert_allclose(dense[1], dense[0], atol=1e-3)
    np.testing.assert_allclose(model.intercept_, svc.intercept_, atol=1e-3)
    counted = np.abs(model.dual_coef_[0]) > 1e-4  # an interior point is not quite 0 where SVC is
    np.testing.assert_array_equal(np.sort(model.support_[counted]), np.sort(svc.support_))
    np.testing.assert_array_equal(model.support_vectors_, X[model.support_])
    np.testing.assert_array_equal(model.n_support_, np.bincount(y[model.support_]))


def test_support_vectors_are_rows_as_they_were_given():
    X, y = make_moons(120, noise=0.2, random_state=0)
    weight = np.where(np.arange(120) % 3 == 0, 0.0, 1.0)  # rows of weight 0 are not there
    model = exact().fit(X, y, sample_weight=weight)
    assert weight[model.support_].all()
    np.testing.assert_array_equal(model.support_vectors_, X[model.support_])
    np.testing.assert_array_equal(model.n_support_, np.bincount(y[model.support_]))


@pytest.mark.parametrize("task", ["classes", "regression"])
def test_decisions_are_sums_over_the_support_vectors(task, tmp_path):
    X, y = make_blobs(120, centers=3, cluster_std=2.0, random_state=0)
    X = X / 5
    if task == "classes":
        model, peer = exact(), OneVsRestClassifier(SVC(gamma=1.0, tol=1e-6))
        decide = "decision_function"
    else:
        y = np.sin(X[:, 0])
        model = AssetRegressor(gamma=1.0, n_cells=1, fit_intercept=True, tol=1e-7)
        peer, decide = SVR(gamma=1.0, tol=1e-6), "predict"
    model.fit(X, y)
    expected = getattr(peer.fit(X, y), decide)(X)
    pytest.importorskip("safetensors")
    save(model, tmp_path / "m.asset")
    for same in (model, pickle.loads(pickle.dumps(model)), load(tmp_path / "m.asset")):
        found = rbf_kernel(X, same.support_vectors_, 1.0) @ same.dual_coef_.T + same.intercept_
        np.testing.assert_allclose(found.squeeze(), getattr(same, decide)(X), atol=1e-10)
        np.testing.assert_allclose(found.squeeze(), expected, atol=0.01)
        np.testing.assert_array_equal(same.support_vectors_, X[same.support_])
        assert same.n_support_.sum() == len(same.support_)


def test_only_an_exact_model_has_support_vectors():
    X, y = make_moons(120, noise=0.2, random_state=0)
    for options in (dict(n_cells=2), dict(n_cells=1, n_partitions=2)):
        model = AssetClassifier(random_state=0, **options).fit(X, y)
        assert not hasattr(model, "support_") and not hasattr(model, "dual_coef_")
    model = exact(random_state=0).fit(X, y)
    assert hasattr(model, "support_")
    model.partial_fit(X[:50], y[:50])
    assert not any(hasattr(model, name) for name in ("support_", "n_support_", "support_vectors_"))


def test_a_constant_has_no_support_vectors():
    X = np.random.default_rng(0).normal(size=(30, 2))
    model = AssetRegressor(n_cells=1, epsilon=10.0).fit(X, X[:, 0])
    assert model.support_vectors_.shape == (0, 2) and model.dual_coef_.shape == (1, 0)
    np.testing.assert_array_equal(model.n_support_, [0])
    np.testing.assert_allclose(model.predict(X), model.intercept_[0])


@pytest.mark.parametrize("n_cells", [None, 1])
def test_coef_of_a_linear_kernel_has_the_weights_of_the_columns(n_cells):
    X, y = make_classification(200, 10, n_redundant=2, random_state=0)
    model = AssetClassifier("linear", n_cells=n_cells, fit_intercept=True, random_state=0).fit(X, y)
    assert model.coef_.shape == SVC(kernel="linear").fit(X, y).coef_.shape == (1, 10)
    np.testing.assert_allclose(
        X @ model.coef_[0] + model.intercept_[0], model.decision_function(X), rtol=1e-4, atol=1e-4
    )


def test_features_are_eliminated_by_the_weights_of_a_linear_kernel():
    """Columns of zeros have the weight 0, and are the first to go."""
    X, y = make_classification(200, 8, random_state=0)
    X = np.c_[X, np.zeros((200, 2))]
    for model in (SVC(kernel="linear"), AssetClassifier("linear", random_state=0)):
        chosen = RFE(model, n_features_to_select=8).fit(X, y)
        assert chosen.support_.tolist() == [True] * 8 + [False] * 2


@pytest.mark.parametrize("kind", [AssetClassifier, AssetRegressor])
def test_other_kernels_have_no_coef_and_say_what_they_have(kind):
    X = np.random.default_rng(0).normal(size=(40, 3))
    model = kind(random_state=0).fit(X, X[:, 0] > 0)
    with pytest.raises(AttributeError, match=r"coef_.*kernel='rbf'.*; .*_\b") as caught:
        model.coef_  # noqa: B018
    instead = re.findall(r"\b[a-z_]+_\b", str(caught.value).partition(";")[2])
    assert instead and all(hasattr(model, name) for name in instead)
