"""CV+ intervals of a search: what they are, what they cover, and what they ask for."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GroupKFold

from asset_svm import AssetRegressorCV
from asset_svm.search.intervals import CrossIntervals

GRID = dict(Cs=[1.0, 10.0], gammas=[0.5], cv=3, n_cells=1, random_state=0, intervals=True)


def noisy(rng, m):
    X = rng.normal(size=(m, 2))
    return X, np.sin(2 * X[:, 0]) + 0.3 * rng.standard_t(4, size=m)


class Constant:
    def __init__(self, value):
        self.value = value

    def predict(self, X):
        return np.full(len(X), self.value)


def test_ends_are_those_of_the_definition():
    """By all rows, one after the other, in plain Python; few rows have no end."""
    rng = np.random.default_rng(1)
    errors, fold = rng.exponential(size=19), rng.integers(0, 3, 19)
    values = [0.0, 5.0, 1.0]
    found = CrossIntervals([Constant(v) for v in values], fold, errors)
    low = sorted(values[k] - r for k, r in zip(fold, errors, strict=True))
    high = sorted(values[k] + r for k, r in zip(fold, errors, strict=True))
    X = np.zeros((2, 1))
    np.testing.assert_allclose(found.around(X, 0.9), [[low[1], high[17]]] * 2)  # 2nd and 18th of 19
    np.testing.assert_allclose(found.around(X, 0.5), [[low[9], high[9]]] * 2)
    np.testing.assert_allclose(found.around(X, 0.95), [[low[0], high[18]]] * 2)
    np.testing.assert_array_equal(found.around(X, 0.96), [[-np.inf, np.inf]] * 2)


def test_simulations_hold_what_they_promise():
    """The guarantee of 90 % is 80 %, less sqrt(2 / n); the mean over simulations is about 90 %.

    25 times 200 new rows, of noise with heavy tails: a standard error of the mean of about 0.01.
    """
    rng, held, wide = np.random.default_rng(0), [], []
    for _ in range(25):
        X, y = noisy(rng, 100)
        search = AssetRegressorCV(**GRID).fit(X, y)
        new, truth = noisy(rng, 200)
        low, high = search.predict_interval(new, coverage=0.9).T
        held.append(((low <= truth) & (truth <= high)).mean())
        wide.append((high - low).mean())
    assert np.mean(held) == pytest.approx(0.9, abs=0.03), held
    assert min(held) > 0.8 - np.sqrt(2.0 / 100)
    assert 0.8 < np.mean(wide) < 2.5  # of noise alone 1.3


def test_fold_models_have_not_seen_their_rows_and_the_search_is_the_same_without():
    X, y = noisy(np.random.default_rng(2), 90)
    y[17] = 1e3
    search = AssetRegressorCV(**GRID).fit(X, y)
    kept = search._intervals
    assert kept.errors[17] == pytest.approx(1e3, rel=0.2), "its own model has learnt from it"
    assert sorted(np.bincount(kept.fold)) == [18] * 5
    plain = AssetRegressorCV(**GRID | {"intervals": False}).fit(X, y)
    np.testing.assert_array_equal(plain.predict(X), search.predict(X))
    with pytest.raises(ValueError, match=r"kept none; set intervals=True, and call fit"):
        plain.predict_interval(X)
    again = search.set_params(intervals=False).fit(X, y)
    with pytest.raises(ValueError, match="kept none"):
        again.predict_interval(X)


def test_groups_weights_and_sparse_rows():
    X, y = noisy(np.random.default_rng(3), 80)
    groups, weight = np.repeat(np.arange(16), 5), np.ones(80)
    weight[:10] = 0.0
    given = GRID | {"cv": GroupKFold(3)}
    search = AssetRegressorCV(**given).fit(sp.csr_matrix(X), y, sample_weight=weight, groups=groups)
    kept = search._intervals
    assert len(kept.errors) == 70
    for group in np.unique(groups[10:]):
        assert len(set(kept.fold[groups[10:] == group])) == 1
    assert search.predict_interval(sp.csr_matrix(X)).shape == (80, 2)


def test_a_number_is_the_weight_of_every_row():
    X, y = noisy(np.random.default_rng(3), 60)
    one, all_ = (AssetRegressorCV(**GRID).fit(X, y, sample_weight=w) for w in (2.0, np.full(60, 2.0)))
    np.testing.assert_array_equal(one.predict_interval(X), all_.predict_interval(X))


def test_a_race_has_intervals_too():
    X, y = noisy(np.random.default_rng(4), 300)
    search = AssetRegressorCV(time_limit=2, random_state=0, intervals=True).fit(X[:200], y[:200])
    low, high = search.predict_interval(X[200:]).T
    assert 0.75 < ((low <= y[200:]) & (y[200:] <= high)).mean() <= 1.0
    assert search.leaderboard_.shape[0] > 3


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"intervals": 1}, "intervals=1"),
        ({"coverage": 1.5}, r"coverage=1\.5"),
        ({"outputs": 2}, "intervals=True is for one output, and y has 2 columns"),
    ],
)
def test_bad_input_gives_one_sentence(change, message):
    X, y = noisy(np.random.default_rng(5), 40)
    search = AssetRegressorCV(**GRID | {k: v for k, v in change.items() if k == "intervals"})

    def work():
        search.fit(X, np.column_stack([y, y]) if "outputs" in change else y)
        search.predict_interval(X, coverage=change.get("coverage", 0.9))

    with pytest.raises((ValueError, TypeError), match=message):
        work()


def test_one_group_is_told_before_the_search(monkeypatch):
    X, y = noisy(np.random.default_rng(5), 40)
    search = AssetRegressorCV(**GRID)
    monkeypatch.setattr(AssetRegressorCV, "_learner", None)  # which any search calls
    with pytest.raises(ValueError, match="holds out whole groups, and groups has one"):
        search.fit(X, y, groups=["a"] * 40)


def test_before_a_fit_there_are_none():
    with pytest.raises(NotFittedError):
        AssetRegressorCV().predict_interval(np.zeros((2, 2)))


def test_groups_and_rows_of_no_weight_are_none_and_are_told_before_the_search(monkeypatch):
    X, y = noisy(np.random.default_rng(0), 60)
    monkeypatch.setattr("asset_svm.search.base.SearchEstimator.fit", None)  # not reached
    search, half = AssetRegressorCV(intervals=True), np.arange(60) % 2
    with pytest.raises(ValueError, match="intervals=True holds out whole groups, and groups has one"):
        search.fit(X, y, half, half)
    few = np.zeros(60)
    few[:2] = 1.0
    with pytest.raises(ValueError, match="and 2 have a positive weight; it needs 3 of them"):
        search.fit(X, y, few)


@pytest.mark.parametrize("kind", [sp.coo_matrix, sp.csc_matrix])
def test_sparse_rows_of_any_format_are_searched_and_have_intervals(kind):
    X, y = noisy(np.random.default_rng(0), 80)
    options = dict(kernel="rbf", Cs=[1.0], cv=2, intervals=True, random_state=0)
    one = AssetRegressorCV(**options).fit(kind(X), y)
    other = AssetRegressorCV(**options).fit(sp.csr_matrix(X), y)
    np.testing.assert_array_equal(one.predict_interval(X[:5]), other.predict_interval(X[:5]))
