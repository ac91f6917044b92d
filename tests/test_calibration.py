"""Probabilities: those of scikit-learn's CalibratedClassifierCV, and what predict makes of them."""

import numpy as np
import pytest
from scipy.sparse import coo_array
from scipy.special import expit
from sklearn import config_context
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import make_classification
from sklearn.frozen import FrozenEstimator
from sklearn.metrics import log_loss
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

import asset_svm
from asset_svm import AssetClassifier
from asset_svm.estimators.calibration import FOLDS, CalibratedClassifier, sigmoids

MODEL = AssetClassifier(n_components=60, max_iter=5, random_state=0)


def rows(n_classes, m=900):
    X, y = make_classification(
        m, 6, n_informative=5, n_redundant=0, n_classes=n_classes, flip_y=0.1, random_state=0
    )
    return X, np.array(["b", "a", "d", "c"])[y]


@pytest.mark.parametrize("n_classes", [2, 3, 4])
def test_probabilities_are_those_of_scikit_learn(n_classes):
    X, y = rows(n_classes)
    theirs = CalibratedClassifierCV(MODEL, ensemble=False, cv=StratifiedKFold(FOLDS)).fit(X, y)
    estimator = AssetClassifier(**MODEL.get_params()).fit(X, y)
    ours = CalibratedClassifier(estimator).fit(X, y)
    found = ours.predict_proba(X)
    assert np.abs(found - theirs.predict_proba(X)).max() < 1e-6
    assert np.allclose(found.sum(axis=1), 1.0) and found.min() >= 0.0
    assert (ours.predict(X) == theirs.predict(X)).mean() > 0.999
    same = CalibratedClassifier.of(theirs)
    assert np.allclose(same.predict_proba(X), theirs.predict_proba(X), rtol=0, atol=1e-12)


def weights(m, seed=1):
    return np.random.default_rng(seed).uniform(0.2, 5.0, size=m)


def calibrated_by_both(X, y, weight, **settings):
    """(theirs, ours)."""
    model = clone(MODEL).set_params(**settings)
    theirs = CalibratedClassifierCV(model, method="sigmoid", ensemble=False, cv=StratifiedKFold(FOLDS))
    estimator = clone(model).fit(X, y, sample_weight=weight)
    ours = CalibratedClassifier(estimator).fit(X, y, sample_weight=weight)
    return theirs.fit(X, y, sample_weight=weight), ours


@pytest.mark.parametrize("class_weight", [None, "balanced", {0: 3.0}])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_weights_of_rows_and_classes_count_as_in_scikit_learn(n_classes, class_weight):
    X, y = rows(n_classes)
    y = np.unique(y, return_inverse=True)[1]  # its folds know classes by numbers alone
    theirs, ours = calibrated_by_both(X, y, weights(len(y)), class_weight=class_weight)
    found = ours.predict_proba(X)
    assert np.abs(found - theirs.predict_proba(X)).max() < 1e-6
    unweighted = CalibratedClassifier(ours.estimator).fit(X, y)
    assert np.abs(found - unweighted.predict_proba(X)).max() > 1e-3


def test_weights_of_a_class_move_its_probability():
    X, y = rows(2)
    _, even = calibrated_by_both(X, y, np.ones(len(y)))
    _, heavy = calibrated_by_both(X, y, np.where(y == "b", 4.0, 1.0))
    _, plain = calibrated_by_both(X, y, None)
    b = list(heavy.classes_).index("b")
    assert heavy.predict_proba(X)[:, b].mean() > 0.1 + even.predict_proba(X)[:, b].mean()
    np.testing.assert_array_equal(even.slope_, plain.slope_)


def test_a_row_of_weight_zero_is_none():
    X, y = rows(3)
    weight = weights(len(y))
    weight[::4] = 0.0
    estimator = clone(MODEL).fit(X, y, sample_weight=weight)
    found = CalibratedClassifier(estimator).fit(X, y, sample_weight=weight)
    kept = weight > 0
    expected = CalibratedClassifier(estimator).fit(X[kept], y[kept], sample_weight=weight[kept])
    np.testing.assert_array_equal(found.slope_, expected.slope_)
    np.testing.assert_array_equal(found.offset_, expected.offset_)


@pytest.mark.parametrize("wrong", [-1.0, np.nan, "short", "none"])
def test_weights_that_cannot_be_are_refused(wrong):
    X, y = rows(2)
    weight = np.ones(len(y) - (wrong == "short")) * (wrong != "none")
    if isinstance(wrong, float):
        weight[3] = wrong
    with pytest.raises(ValueError, match="weight"):
        CalibratedClassifier(clone(MODEL).fit(X, y)).fit(X, y, sample_weight=weight)


def test_a_class_without_weight_is_told():
    X, y = rows(3)
    estimator = clone(MODEL).fit(X, y)
    with pytest.raises(ValueError, match=r"the classes \['a', 'b'\] .* fitted to \['a', 'b', 'd'\]"):
        CalibratedClassifier(estimator).fit(X, y, sample_weight=(y != "d").astype(float))


def test_weights_need_no_metadata_routing():
    X, y = rows(2)
    weight = weights(len(y))
    estimator = clone(MODEL).fit(X, y, sample_weight=weight)
    expected = CalibratedClassifier(estimator).fit(X, y, sample_weight=weight)
    with config_context(enable_metadata_routing=True):
        found = CalibratedClassifier(estimator).fit(X, y, sample_weight=weight)
    np.testing.assert_array_equal(found.slope_, expected.slope_)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_scikit_learns_calibration_takes_us_and_agrees_with_itself(n_classes):
    X, y = rows(n_classes)
    model = CalibratedClassifierCV(MODEL, ensemble=False).fit(X[:600], y[:600])
    probabilities = model.predict_proba(X[600:])
    assert (model.predict(X[600:]) == model.classes_[probabilities.argmax(axis=1)]).all()
    shares = np.array([(y[:600] == label).mean() for label in model.classes_])
    assert log_loss(y[600:], probabilities) < 0.8 * log_loss(y[600:], np.tile(shares, (300, 1)))


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("scaled", [False, True])
@pytest.mark.parametrize("by", ["ours", "theirs"])
def test_a_model_file_keeps_the_probabilities(tmp_path, n_classes, scaled, by):
    pytest.importorskip("safetensors")
    X, y = rows(n_classes)
    X = X.astype(np.float32)
    scaler = StandardScaler().fit(X)
    Z = scaler.transform(X) if scaled else X
    if by == "ours":
        model = CalibratedClassifier(AssetClassifier(**MODEL.get_params()).fit(Z, y)).fit(Z, y)
    else:
        model = CalibratedClassifierCV(MODEL, ensemble=False).fit(Z, y)
    asset_svm.save(make_pipeline(scaler, model) if scaled else model, tmp_path / "m.asset")
    loaded = asset_svm.load(tmp_path / "m.asset")
    assert np.abs(loaded.predict_proba(X) - model.predict_proba(Z)).max() < 1e-12
    assert (loaded.predict(X) == model.predict(Z)).all()
    assert np.array_equal(loaded.decision_function(X), loaded[-1].estimator.decision_function(Z)
                          if scaled else loaded.estimator.decision_function(Z))  # fmt: skip
    again = tmp_path / "again.asset"
    asset_svm.save(loaded, again)
    assert np.array_equal(asset_svm.load(again).predict_proba(X), loaded.predict_proba(X))


def test_a_frozen_model_with_probabilities_is_saved_as_the_model(tmp_path):
    pytest.importorskip("safetensors")
    X, y = rows(2, 300)
    model = CalibratedClassifierCV(FrozenEstimator(clone(MODEL).fit(X, y)), ensemble=False).fit(X, y)
    asset_svm.save(model, tmp_path / "m.asset")
    loaded = asset_svm.load(tmp_path / "m.asset")
    assert np.abs(loaded.predict_proba(X) - model.predict_proba(X)).max() < 1e-12


@pytest.mark.parametrize("inner", [MODEL, make_pipeline(StandardScaler(), MODEL)], ids=["", "scaled"])
@pytest.mark.parametrize("method", ["sigmoid", "isotonic"])
@pytest.mark.parametrize("ensemble", [False, True])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_scikit_learns_calibration_is_saved_with_all_that_it_holds(
    tmp_path, inner, method, ensemble, n_classes
):
    pytest.importorskip("safetensors")
    X, y = rows(n_classes, 300)
    model = CalibratedClassifierCV(inner, method=method, ensemble=ensemble, cv=3).fit(X, y)
    asset_svm.save(model, tmp_path / "m.asset")
    loaded = asset_svm.load(tmp_path / "m.asset")
    if isinstance(loaded, CalibratedClassifier):  # ours, of one AssetClassifier with sigmoids
        assert np.abs(loaded.predict_proba(X) - model.predict_proba(X)).max() < 1e-12
    else:
        assert np.array_equal(loaded.predict_proba(X), model.predict_proba(X))
    assert np.array_equal(loaded.predict(X), model.predict(X))


def test_what_cannot_be_saved_is_told(tmp_path):
    X, y = rows(2)
    other = CalibratedClassifierCV(LinearSVC(), ensemble=False).fit(X, y)
    with pytest.raises(ValueError, match="A LinearSVC cannot be saved; save an AssetClassifier"):
        asset_svm.save(other, tmp_path / "m.asset")


def test_a_class_of_one_row_is_told():
    X, y = rows(2)
    y[:] = "a"
    y[0] = "b"
    estimator = AssetClassifier(**MODEL.get_params()).fit(X, y)
    with pytest.raises(ValueError, match="Class 'b' has one row"):
        CalibratedClassifier(estimator).fit(X, y)
    y[1] = "b"
    few = CalibratedClassifier(estimator).fit(X, y)
    assert np.isfinite(few.predict_proba(X)).all()


def sigmoid(decisions, positive):
    """Of one column."""
    (a,), (b,) = sigmoids(decisions[:, None], positive, None, StratifiedKFold(FOLDS))
    return a, b


def test_the_sigmoid_is_the_most_likely_one():
    rng = np.random.default_rng(0)
    decisions = 3 * rng.normal(size=20_000)
    positive = rng.random(20_000) < expit(1.7 * decisions - 0.6)
    a, b = sigmoid(decisions, positive)
    # Standard errors are near 0.03.
    assert abs(a - 1.7) < 0.15 and abs(b + 0.6) < 0.15


@pytest.mark.parametrize("size", [1e-30, 1.0, 1e30])
def test_separate_constant_and_huge_decisions_have_finite_sigmoids(size):
    positive = np.arange(40) >= 20
    for decisions in (
        np.where(positive, size, -size),
        np.zeros(40),
        np.full(40, size),
        -np.arange(40.0),
    ):
        a, b = sigmoid(decisions, positive)
        p = expit(a * decisions + b)
        assert np.isfinite([a, b]).all() and (p > 0).all() and (p < 1).all()
    a, b = sigmoid(np.where(positive, size, -size), positive)
    # Platt's targets for 20 rows each.
    assert np.allclose(expit(a * size + b), 21 / 22) and np.allclose(expit(b - a * size), 1 / 22)


@pytest.mark.parametrize("kind", [list, coo_array, "DataFrame"])
def test_rows_may_come_in_any_form(kind):
    X, y = rows(2)
    X = np.round(X, 1)
    given = pytest.importorskip("pandas").DataFrame(X) if kind == "DataFrame" else kind(X)
    estimator = AssetClassifier(**MODEL.get_params()).fit(X, y)
    expected = CalibratedClassifier(estimator).fit(X, y)
    found = CalibratedClassifier(estimator).fit(given, y)
    np.testing.assert_allclose(found.slope_, expected.slope_, rtol=1e-6)
