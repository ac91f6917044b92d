"""Many classes of few rows: every one the exact SVM of its class against the rest, in little time."""

import numpy as np
import pytest
from sklearn.multiclass import OneVsRestClassifier
from sklearn.svm import SVC

from asset_svm import AssetClassifier
from asset_svm.training import pairs


def classes(count, rows_each, seed=0):
    rng = np.random.default_rng(seed)
    y = np.repeat(np.arange(count), rows_each)
    return 1.5 * rng.normal(size=(count, 6))[y] + 0.7 * rng.normal(size=(len(y), 6)), y


@pytest.fixture
def trained(monkeypatch):
    """Whether stochastic steps were taken by the fits so far."""
    taken = []
    train = pairs.train_by_pairs

    def counted(*args):
        found = train(*args)
        taken.append(found is None)
        return found

    monkeypatch.setattr("asset_svm.families.one_map.fit.train_by_pairs", counted)
    return taken


@pytest.mark.parametrize("C", [0.3, 10.0])
def test_decisions_are_those_of_exact_solvers(trained, C):
    X, y = classes(40, 6)
    ours = AssetClassifier(C=C, gamma=0.2, random_state=0).fit(X, y)
    exact = OneVsRestClassifier(SVC(C=C, gamma=0.2, tol=1e-5)).fit(X, y)
    assert trained == [False]
    np.testing.assert_allclose(ours.decision_function(X), exact.decision_function(X), atol=0.03)
    assert ours.dual_gap_ < 0.002 * ours.objective_
    assert ours.step_scale_ is None


def test_weights_of_rows_count_as_copies(trained):
    X, y = classes(10, 8)
    weight = np.random.default_rng(1).integers(1, 4, len(y))
    options = dict(gamma=0.2, landmarks=X, random_state=0)
    weighted = AssetClassifier(**options).fit(X, y, sample_weight=weight)
    copied = AssetClassifier(**options).fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    assert trained == [False, False]
    np.testing.assert_allclose(weighted.decision_function(X), copied.decision_function(X), atol=0.03)


def test_models_too_hard_for_pairs_are_left_to_steps(trained, monkeypatch):
    monkeypatch.setattr(pairs, "PAIRS", 0)
    X, y = classes(9, 10)
    model = AssetClassifier(gamma=0.2, random_state=0).fit(X, y)
    assert trained == [True]
    assert model.step_scale_ > 0.0
    assert model.score(X, y) > 0.9


@pytest.mark.parametrize(
    "asked", [{"max_iter": 5}, {"step_scale": 0.1}, {"step": "robust"}, {"tol": 0.1}]
)
def test_who_asks_for_steps_gets_them(trained, asked):
    X, y = classes(9, 10)
    AssetClassifier(gamma=0.2, random_state=0, **asked).fit(X, y)
    assert trained == []


def test_a_stream_goes_on_from_such_a_model(trained):
    X, y = classes(12, 20)
    model = AssetClassifier(gamma=0.2, random_state=0).fit(X, y)
    assert trained == [False]
    before = model.score(X, y)
    for _ in range(3):
        model.partial_fit(X, y)
    assert model.score(X, y) > before - 0.05
