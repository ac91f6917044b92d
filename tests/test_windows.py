"""Windows of rows that teams of threads go through: what they find never depends on their number."""

import numpy as np
import pytest

from asset_svm import AssetClassifier, AssetClassifierCV, AssetRegressorCV
from asset_svm.exceptions import NonFiniteError
from asset_svm.features import Metric
from asset_svm.numerics.shrinking import decay
from asset_svm.solvers import FractionWindow, NoWindow
from asset_svm.solvers import many as windows
from asset_svm.solvers.blocked_form import group_size
from asset_svm.solvers.tallies import Slopes
from asset_svm.threads.granted import grant
from test_folds import many
from test_loops import build, problem

THREADS = (1, 2, 5)


def problem_of(n_classes, m=900, n=6, seed=0, dtype=np.float64):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(m, n))
    y = np.argmax(X @ rng.normal(size=(n, n_classes)) + 0.3 * rng.normal(size=(m, n_classes)), axis=1)
    return X.astype(dtype), y


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("low_rank", [False, True])
def test_a_search_has_the_same_bits_for_any_number_of_threads(dtype, low_rank):
    rng = np.random.default_rng(5)
    directions = np.linalg.qr(rng.normal(size=(7, 3)))[0] if low_rank else None
    metric = Metric(np.linspace(1.0, 4.0, 3 if low_rank else 7), directions, 4.0 if low_rank else 1.0)
    found = []
    for threads in THREADS:
        driver, *_, total = many(
            "classification", "metric", bound=2.0, metric=metric, dtype=dtype, block_rows=3
        )
        with grant(threads):
            driver.advance(total)
        found.append((*driver.model(), driver.state.direction))
    for other in found[1:]:
        for one, same in zip(found[0], other, strict=True):
            np.testing.assert_array_equal(one, same)


@pytest.mark.parametrize("n_classes", [2, 3, 7])
@pytest.mark.parametrize("memory_limit", [None, 10_000])
def test_searches_of_estimators_have_the_same_bits(n_classes, memory_limit):
    """Rows that are kept, and rows that are mapped anew at each visit."""
    X, y = problem_of(n_classes, 300)
    options = dict(Cs=[0.1, 1.0, 10.0], gammas=[0.3], cv=3, n_components=40, random_state=0)
    found = [
        AssetClassifierCV(n_jobs=n_jobs, memory_limit=memory_limit, **options).fit(X, y)
        for n_jobs in THREADS
    ]
    for other in found[1:]:
        np.testing.assert_array_equal(
            other.cv_results_["mean_test_score"], found[0].cv_results_["mean_test_score"]
        )
        np.testing.assert_array_equal(other.decision_function(X), found[0].decision_function(X))


def test_rows_that_are_mapped_anew_are_searched_as_those_that_are_kept():
    X, y = problem_of(3, 300)
    options = dict(Cs=[0.1, 1.0, 10.0], gammas=[0.3], cv=3, n_components=40, random_state=0)
    kept, anew = (
        AssetClassifierCV(memory_limit=limit, **options).fit(X, y) for limit in (None, 10_000)
    )
    np.testing.assert_array_equal(
        kept.cv_results_["mean_test_score"], anew.cv_results_["mean_test_score"]
    )


def test_a_search_of_regressors_has_the_same_bits():
    X, y = problem_of(2, 400)
    y = X @ np.arange(6.0) + 0.1 * y
    options = dict(Cs=[0.1, 1.0], gammas=[0.1], cv=4, n_components=30, random_state=0)
    one, other = (AssetRegressorCV(n_jobs=n_jobs, **options).fit(X, y) for n_jobs in (1, 5))
    np.testing.assert_array_equal(
        one.cv_results_["mean_test_score"], other.cv_results_["mean_test_score"]
    )


@pytest.mark.parametrize("most", [1, 3])
def test_the_length_of_windows_changes_no_bit(most, monkeypatch):
    driver, *_, total = many("classification", "robust", bound=2.0, block_rows=7)
    driver.advance(total)
    monkeypatch.setattr(windows, "MOST_BLOCKS", most)
    other, *_ = many("classification", "robust", bound=2.0, block_rows=7)
    for steps in (5, 100, total - 105):
        other.advance(steps)
    whole, *_ = many("classification", "robust", bound=2.0, block_rows=7)
    whole.advance(total)
    np.testing.assert_array_equal(whole.model()[0], driver.model()[0])
    np.testing.assert_allclose(other.model()[0], driver.model()[0], rtol=0, atol=1e-11)
    assert other.position == total


def test_a_deadline_ends_a_search_after_a_window(monkeypatch):
    monkeypatch.setattr(windows, "MOST_BLOCKS", 1)
    driver, *_, total = many("classification", "robust", bound=2.0, block_rows=7)
    assert driver.advance(total, deadline=-1.0) == 7 == driver.position
    assert driver.advance(total - 7) == total - 7


def test_a_search_raises_where_an_iterate_is_not_finite():
    driver, V, *_, total = many("classification", "robust", bound=2.0)
    V[3, 2] = np.inf
    with grant(3), pytest.raises(NonFiniteError, match="no longer finite"):
        driver.advance(total)


@pytest.mark.parametrize("form", ["row", "blocked"])
@pytest.mark.parametrize("K", [1, 2, 5, 26])
def test_fits_of_several_models_have_the_same_bits_and_sums(form, K, monkeypatch):
    monkeypatch.setattr("asset_svm.solvers.driver.WORTH_A_THREAD", 0)
    V, y = problem("classification", K)
    found = []
    for threads in THREADS:
        driver, _ = build(
            V, y, task="classification", step="robust", C=1.0, bound=1.0, form=form,
            window=FractionWindow(0.5, 500), weight=np.where(np.arange(len(V)) % 5, 1.0, -1.0),
        )  # fmt: skip
        driver.slopes = Slopes.zeros(K, len(V))
        with grant(threads):
            driver.advance(500)
        taken = driver.take_progress()
        found.append(
            (
                *driver.model(),
                driver.slopes.total,
                driver.slopes.visits,
                taken.loss,
                taken.errors,
                taken.active,
            )
        )
    assert found[0][3].sum() == 500
    assert (found[0][2][:, ::5] == 0.0).all()
    for other in found[1:]:
        for one, same in zip(found[0], other, strict=True):
            np.testing.assert_array_equal(one, same)


@pytest.mark.parametrize("form", ["row", "blocked"])
def test_steps_drawn_together_equal_steps_drawn_a_block_at_a_time(form, monkeypatch):
    V, y = problem("regression", 3)
    found = []
    for drawn in (1, 100, 8192):
        monkeypatch.setattr("asset_svm.solvers.driver.DRAWN", drawn)
        driver, _ = build(
            V, y, task="regression", step="robust", C=1.0, bound=1.0, form=form,
            window=FractionWindow(0.5),
        )  # fmt: skip
        driver.advance(500)
        found.append((*driver.model(), driver.progress.loss))
    for other in found[1:]:
        for one, same in zip(found[0], other, strict=True):
            np.testing.assert_array_equal(one, same)


def test_a_deadline_ends_a_fit_after_a_block():

    V, y = problem("classification", 2)
    driver, _ = build(V, y, task="classification", step="robust", C=1.0, window=NoWindow())
    assert driver.advance(200, deadline=-1.0) == 16


@pytest.mark.parametrize("n_classes", [3, 20])
def test_fits_of_several_classes_have_the_same_bits(n_classes):
    X, y = problem_of(n_classes, dtype=np.float32)
    options = dict(gamma=0.3, n_components=200, max_iter=4, random_state=0)
    one, *others = (AssetClassifier(n_jobs=n, **options).fit(X, y) for n in THREADS)
    for other in others:
        np.testing.assert_array_equal(other.decision_function(X), one.decision_function(X))
        assert other.dual_gap_ == one.dual_gap_


@pytest.mark.parametrize("n_models", [1, 4, 5, 50, 64, 65, 256, 257, 1000])
def test_groups_are_settled_by_the_number_of_models(n_models):
    size = group_size(n_models)
    assert 4 <= size <= 16
    if n_models >= 48:
        assert -(-n_models // size) >= 12


@pytest.mark.parametrize(("dtype", "digits"), [(np.float32, 2e-7), (np.float64, 5e-16)])
def test_decays_are_exponentials(dtype, digits):
    rates = np.concatenate([[0.0, 1e-9], np.geomspace(1e-6, 80.0, 1000), [1e4, 1e30]]).astype(dtype)
    out = np.empty_like(rates)
    decay(0.7, rates, out)
    expected = np.exp(-dtype(0.7).astype(np.float64) * rates.astype(np.float64))
    np.testing.assert_allclose(out, expected, rtol=80 * digits, atol=1e-37)
    np.testing.assert_allclose(out[:300], expected[:300], rtol=digits)
    decay(np.nan, rates[:3], out)
    assert np.isnan(out[:3]).all()
