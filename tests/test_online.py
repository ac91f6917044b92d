"""partial_fit: streams of batches of any size."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator

from asset_svm import AssetClassifier, AssetRegressor, FourierMap, NystroemMap
from asset_svm.families import beginning
from small_problems import BINARY, THREE, X, quick, stream


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
