"""n_components="auto": doubles as long as it pays, within the limits, and always in the same way."""

import numpy as np
import pytest

from asset_svm import AssetClassifier, AssetRegressor, NystroemMap
from asset_svm.families.one_map import components


@pytest.fixture(scope="module")
def rings():
    """3000 rows of rings in the plane, which take many landmarks, without noise."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(3000, 2))
    return X, (np.sin(25 * np.hypot(X[:, 0], X[:, 1])) > 0).astype(int)


SHORT = {"gamma": 40.0, "C": 100, "max_iter": 5, "n_components": "auto", "random_state": 0}


def counts(model):
    return [trial["n_components"] for trial in model.component_search_]


def test_components_double_as_long_as_the_validation_score_improves(rings, monkeypatch):
    monkeypatch.setattr(components, "FIRST", 64)
    X, y = rings
    model = AssetClassifier(**SHORT).fit(X, y)
    tried = counts(model)
    assert tried == [64 * 2**i for i in range(len(tried))]
    chosen = len(model.components_)
    assert 128 <= chosen <= 1024
    assert chosen in tried[-3:]
    scores = [trial["validation_score"] for trial in model.component_search_]
    assert scores[tried.index(chosen)] > scores[0] + 0.1
    assert all(trial["seconds"] > 0 for trial in model.component_search_)


def test_a_straight_boundary_needs_no_more_than_the_first(blobs, monkeypatch):
    monkeypatch.setattr(components, "FIRST", 16)
    X, y = blobs
    model = AssetClassifier(n_components="auto", random_state=0).fit(X, y)
    assert len(model.components_) == 16
    assert counts(model) == [16, 32, 64]  # one failure is forgiven


@pytest.mark.filterwarnings("ignore:The model tells no rows apart")
def test_the_search_is_deterministic(rings, monkeypatch):
    monkeypatch.setattr(components, "FIRST", 16)
    X, y = rings
    one, two = (AssetClassifier(**SHORT, landmarks="rpcholesky").fit(X, y) for _ in range(2))
    np.testing.assert_array_equal(one.map_coef_, two.map_coef_)
    assert counts(one) == counts(two)


def test_trials_end_at_the_rows_that_there_are(rings, monkeypatch):
    monkeypatch.setattr(components, "FIRST", 16)
    X, y = rings
    model = AssetClassifier(**SHORT).fit(X[:60], y[:60])
    assert max(counts(model)) == 54
    few = AssetClassifier(**SHORT | {"landmarks": "kmeans"}).fit(X[:7], [0, 1, 0, 1, 0, 1, 0])
    assert len(few.components_) <= 7


def test_the_memory_limit_bounds_the_components(rings, monkeypatch):
    monkeypatch.setattr(components, "FIRST", 64)
    X, y = rings
    limit = 3000 * 8 * 160  # room for the features of 160 landmarks
    model = AssetClassifier(**SHORT, memory_limit=limit).fit(X, y)
    assert counts(model)[:2] == [64, 128]
    assert 128 < max(counts(model)) <= 160
    assert counts(AssetClassifier(**SHORT, memory_limit=0).fit(X, y)) == []


@pytest.mark.filterwarnings("ignore:The model tells no rows apart")
def test_the_time_limit_bounds_the_components(rings, monkeypatch):
    """A thousandth of a second is over after the first trial."""
    monkeypatch.setattr(components, "FIRST", 16)
    X, y = rings
    free = AssetClassifier(**SHORT).fit(X, y)
    tight = AssetClassifier(**SHORT, time_limit=1e-3).fit(X, y)
    assert counts(tight) == [16] != counts(free)


@pytest.mark.parametrize("approximation", ["nystroem", "fourier"])
def test_regressors_search_too(approximation, waves, monkeypatch):
    monkeypatch.setattr(components, "FIRST", 4)
    X, y = waves
    model = AssetRegressor(
        C=10, gamma=0.5, n_components="auto", approximation=approximation, random_state=0
    ).fit(X, y)
    assert len(counts(model)) >= 2
    assert model.score(X, y) > 0.9


def test_partial_fit_searches_on_its_first_batch(rings, monkeypatch):
    monkeypatch.setattr(components, "FIRST", 16)
    X, y = rings
    model = AssetClassifier(**SHORT)
    model.partial_fit(X[:1000], y[:1000], classes=[0, 1])
    first = counts(model)
    model.partial_fit(X[1000:], y[1000:])
    assert counts(model) == first
    assert len(model.components_) in first


@pytest.mark.slow
def test_early_stopping_weights_and_several_classes_go_with_a_search(rings, monkeypatch):
    monkeypatch.setattr(components, "FIRST", 16)
    X, y = rings
    classes = y + 2 * (X[:, 0] > 0)
    weight = np.where(np.arange(3000) % 4 == 0, 0.0, 1.0 + (np.arange(3000) % 3))
    model = AssetClassifier(**SHORT, early_stopping=True).fit(X, classes, sample_weight=weight)
    assert model.map_coef_.shape[0] == 4
    assert weight[model.component_indices_].all()


def test_a_given_map_needs_no_search_and_maps_know_no_auto(blobs):
    X, y = blobs
    model = AssetClassifier(approximation=NystroemMap(n_components=20), n_components="auto").fit(X, y)
    assert not hasattr(model, "component_search_")
    with pytest.raises(ValueError, match='n_components="auto" needs targets'):
        NystroemMap(n_components="auto").fit(X)
    with pytest.raises(ValueError, match="n_components=auto is not the number of the given landmarks"):
        AssetClassifier(landmarks=X[:10], n_components="auto").fit(X, y)


def test_a_second_fit_without_a_search_forgets_the_first(blobs):
    X, y = blobs
    model = AssetClassifier(n_components="auto", max_iter=2, random_state=0).fit(X, y)
    assert hasattr(model, "component_search_")
    assert not hasattr(model.set_params(n_components=10).fit(X, y), "component_search_")
