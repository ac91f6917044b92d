"""Searches: their scores are scikit-learn's, and their answers good, whoever asks."""

import inspect
import weakref
from itertools import combinations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, make_classification, make_moons
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.metrics import check_scoring, get_scorer, make_scorer, mean_absolute_error
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    KFold,
    LeaveOneOut,
    PredefinedSplit,
    StratifiedKFold,
    cross_val_score,
    train_test_split,
)
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR
from sklearn.utils import check_random_state
from threadpoolctl import threadpool_limits

from asset_svm import AssetClassifier, AssetClassifierCV, AssetRegressor, AssetRegressorCV
from asset_svm.backends.cpu import CpuBackend, CpuRows
from asset_svm.kernels import formula_type
from asset_svm.search.grid import AUTO_FACTORS, MEDIAN_ROWS, resolve_costs, resolve_gammas
from asset_svm.search.race import rounds
from asset_svm.search.rows import in_single
from asset_svm.search.scores import scores
from asset_svm.search.splits import Split, draw_splits, may_race
from asset_svm.solvers import Driver
from asset_svm.solvers.cells import CellProblem
from asset_svm.tasks import Classification, Regression

X_MOONS, Y_MOONS = make_moons(400, noise=0.2, random_state=0)


# Scores ---------------------------------------------------------------------------------------------


def quick(**options):
    settings = dict(Cs=[0.1, 1.0, 10.0], cv=3, n_components=50, gamma=1.0, random_state=0, max_iter=10)
    return AssetClassifierCV(**(settings | dict(search_iter=20) | options))


def test_the_usual_scores_are_those_of_scikit_learn():
    rng = np.random.default_rng(0)
    y, decisions = rng.integers(0, 3, 50), rng.normal(size=(4, 50, 3))
    task, X = Classification(classes=np.arange(3)), rng.normal(size=(50, 1))
    expected = scores(get_scorer("accuracy"), task, X, y, decisions)
    np.testing.assert_allclose(scores(None, task, X, y, decisions), expected)
    values = rng.normal(size=(4, 50, 1))
    expected = scores(get_scorer("r2"), Regression(), X, values[0, :, 0] + 0.1, values)
    np.testing.assert_allclose(scores(None, Regression(), X, values[0, :, 0] + 0.1, values), expected)


@pytest.mark.parametrize("scoring", ["roc_auc", "f1", "average_precision", "balanced_accuracy"])
def test_any_scoring_of_scikit_learn_serves(scoring):
    search = quick(scoring=scoring).fit(X_MOONS, Y_MOONS)
    assert 0.5 < search.best_score_ <= 1.0
    model = search.best_estimator_
    assert search.score(X_MOONS, Y_MOONS) == get_scorer(scoring)(model, X_MOONS, Y_MOONS)


def test_held_out_scores_are_close_to_those_of_fits_by_themselves():
    search = quick(cv=5).fit(X_MOONS, Y_MOONS)
    model = AssetClassifier(n_components=50, gamma=1.0, random_state=0, max_iter=100)
    grid = GridSearchCV(model, {"C": [0.1, 1.0, 10.0]}, cv=5).fit(X_MOONS, Y_MOONS)
    found, expected = search.cv_results_["mean_test_score"], grid.cv_results_["mean_test_score"]
    np.testing.assert_allclose(found, expected, atol=0.01)


def test_results_have_the_shape_of_grid_search():
    search = quick(gammas=[0.5, 2.0]).fit(X_MOONS, Y_MOONS)
    grid = GridSearchCV(SVC(), {"C": [0.1, 1.0, 10.0], "gamma": [0.5, 2.0]}, cv=3)
    grid.fit(X_MOONS, Y_MOONS)
    assert set(grid.cv_results_) <= set(search.cv_results_)
    for name, values in grid.cv_results_.items():
        assert len(search.cv_results_[name]) == len(values)
    best = search.best_index_
    assert search.cv_results_["rank_test_score"][best] == 1
    assert search.cv_results_["params"][best] == search.best_params_
    assert search.best_score_ == search.cv_results_["mean_test_score"].max()
    split = [search.cv_results_[f"split{f}_test_score"] for f in range(3)]
    np.testing.assert_allclose(np.mean(split, axis=0), search.cv_results_["mean_test_score"])
    np.testing.assert_allclose(np.std(split, axis=0), search.cv_results_["std_test_score"])


def test_the_answer_is_as_good_as_that_of_exact_svms():
    X, y = load_breast_cancer(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    train, test = np.arange(len(y)) % 2 == 0, np.arange(len(y)) % 2 == 1
    Cs, gammas = np.logspace(-1, 2, 4), [0.01, 0.03, 0.1]
    search = AssetClassifierCV(Cs=Cs, gammas=gammas, random_state=0).fit(X[train], y[train])
    grid = GridSearchCV(SVC(), {"C": Cs, "gamma": gammas}).fit(X[train], y[train])
    assert search.best_score_ > grid.best_score_ - 0.01
    assert search.score(X[test], y[test]) > grid.score(X[test], y[test]) - 0.015


def test_centres_are_found_once_for_all_gammas(monkeypatch):
    from asset_svm.features.landmarks import SAMPLERS

    calls, sampler = [], SAMPLERS["kmeans"]
    monkeypatch.setitem(
        SAMPLERS, "kmeans", lambda *args, **options: calls.append(1) or sampler(*args, **options)
    )
    search = quick(landmarks="kmeans", gammas=[0.3, 1.0, 3.0], refit=False).fit(X_MOONS, Y_MOONS)
    assert len(calls) == 1
    alone = quick(landmarks="kmeans", gammas=[1.0], refit=False).fit(X_MOONS, Y_MOONS)
    found = search.cv_results_["mean_test_score"][3:6]
    np.testing.assert_allclose(found, alone.cv_results_["mean_test_score"], atol=0.01)


def test_the_number_of_threads_changes_nothing():
    found = []
    for n_jobs in (1, 3):
        with threadpool_limits(n_jobs):
            search = quick(Cs=20, n_jobs=n_jobs, keep_path=True, refit=False).fit(X_MOONS, Y_MOONS)
        found.append(search.path_coefs_)
    np.testing.assert_array_equal(*found)


# Estimators -----------------------------------------------------------------------------------------


def test_several_classes_and_sparse_rows():
    X, y = make_classification(
        300, 8, n_informative=6, n_classes=4, n_clusters_per_class=1, random_state=0
    )
    names = np.array(["a", "b", "c", "d"])[y]
    dense = quick(gamma="scale").fit(X, names)
    sparse = quick(gamma="scale").fit(sp.csr_matrix(X), names)
    assert dense.best_score_ > 0.8
    assert dense.decision_function(X).shape == (300, 4)
    assert set(dense.predict(X)) <= set(names)
    assert sparse.best_params_ == dense.best_params_


def test_regression_searches_epsilon():
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 6, size=(300, 1))
    y = 100.0 + np.sin(X).ravel() + 0.1 * rng.normal(size=300)
    search = AssetRegressorCV(
        Cs=[0.1, 1.0, 10.0], epsilons=[0.05, 3.0], gamma=1.0, n_components=40, random_state=0
    ).fit(X, y)
    assert search.best_params_["epsilon"] == 0.05
    assert search.best_score_ > 0.95 and search.score(X, y) > 0.95
    useless = search.cv_results_["param_epsilon"] == 3.0
    assert (search.cv_results_["mean_test_score"][useless] < 0.1).all()


def test_refit_is_the_estimator_itself():
    search = quick().fit(X_MOONS, Y_MOONS)
    model = search.best_estimator_
    assert type(model) is AssetClassifier and search.best_params_["C"] == model.C
    np.testing.assert_array_equal(search.predict(X_MOONS), model.predict(X_MOONS))
    again = clone(model).fit(X_MOONS, Y_MOONS)
    np.testing.assert_array_equal(again.map_coef_, model.map_coef_)
    bare = quick(refit=False).fit(X_MOONS, Y_MOONS)
    assert bare.best_params_ == search.best_params_
    with pytest.raises(NotFittedError, match="refit=False"):
        bare.predict(X_MOONS)


@pytest.mark.filterwarnings("ignore:.* changed nothing")  # what serves large cells
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"landmarks": "kmeans", "gammas": [0.01, 0.1, 1.0]},
        {"approximation": "fourier"},
        {"step": "robust"},
        {"max_iter": 1},
        {"memory_limit": 100_000},
        {"n_jobs": 2, "class_weight": "balanced"},
        {"random_state": None},
        pytest.param({"random_state": np.random.RandomState(1)}, id="random_state=RandomState(1)"),
        {"n_cells": 3},
    ],
    ids=str,
)
@pytest.mark.parametrize("dtype", [pytest.param(np.float32, marks=pytest.mark.slow), np.float64])
def test_the_refit_is_bitwise_a_fit_with_its_parameters(options, dtype):
    X, y = make_classification(
        900 if "n_cells" in options else 4200, 6, n_informative=4, n_redundant=0, n_classes=3,
        n_clusters_per_class=1, random_state=0,
    )  # fmt: skip
    X, given = X.astype(dtype), dict(Cs=2, cv=2, n_components=30, random_state=3, max_iter=2) | options
    search = AssetClassifierCV(search_iter=1, **given).fit(X, y)
    model = search.best_estimator_
    if given["random_state"] == 3:
        assert model.random_state == 3
    alone = AssetClassifier(**model.get_params()).fit(X, y)
    np.testing.assert_array_equal(alone.decision_function(X), model.decision_function(X))


def test_common_parameters_have_common_defaults():
    """Signatures are written out in each class; a search must refit what its user would fit."""
    classes = (AssetClassifier, AssetRegressor, AssetClassifierCV, AssetRegressorCV)
    signatures = [inspect.signature(cls).parameters for cls in classes]
    for one, other in combinations(signatures, 2):
        # Which a race leaves open, or which is another for numbers.
        common = (set(one) & set(other)) - {"kernel", "relevance", "loss"}
        assert {name: one[name].default for name in common} == {
            name: other[name].default for name in common
        }
    plain, search = set(signatures[0]), set(signatures[2])
    left_to_fits = {
        "C",
        "lam",
        "loss",
        "early_stopping",
        "validation_fraction",
        "n_iter_no_change",
        "warm_start",
    }
    assert plain - search == left_to_fits


def test_the_refit_draws_no_map_of_its_own(monkeypatch):
    """Nor does it map a row where the search has kept them."""
    metrics, mapped = [], []
    find, compute = CpuBackend.find_metric, CpuRows._compute
    monkeypatch.setattr(CpuBackend, "find_metric", lambda *parts: metrics.append(1) or find(*parts))
    monkeypatch.setattr(
        CpuRows, "_compute", lambda *parts: mapped.append(len(parts[1])) or compute(*parts)
    )
    X = X_MOONS.astype(np.float32)
    quick(gammas=[0.1, 1.0]).fit(X, Y_MOONS)
    assert len(metrics) == 2 and sum(mapped) == 2 * len(X)
    metrics.clear(), mapped.clear()
    # Room for the rows of one map at a time: those of the best gamma, the first, make way.
    search = quick(gammas=[1.0, 1e4], memory_limit=1.5 * len(X) * 50 * 4).fit(X, Y_MOONS)
    assert search.best_params_["gamma"] == 1.0
    assert len(metrics) == 2 and sum(mapped) == 3 * len(X)


@pytest.mark.parametrize(
    "options",
    [
        dict(gammas=[0.05, 0.2], n_components=256, memory_limit=1.2 * 4400 * 256 * 4),
        dict(max_iter=5, n_components=600, memory_limit=1.1 * 4400 * 600 * 4),
    ],
)
def test_searches_keep_to_the_memory_limit(options, monkeypatch):
    """What is kept of mapped rows at any time, by search and refit."""
    alive, most, create = [], [0], CpuRows.__init__

    def watched(self, *parts, **settings):
        create(self, *parts, **settings)
        alive.append(weakref.ref(self))
        most[0] = max(most[0], sum(row.kept_bytes for ref in alive if (row := ref()) is not None))

    monkeypatch.setattr(CpuRows, "__init__", watched)
    X, y = make_classification(4400, 20, n_informative=12, random_state=0)
    search = AssetClassifierCV(Cs=[1.0], cv=2, search_iter=1, random_state=0, **options)
    search.fit(X.astype(np.float32), y)
    assert 0 < most[0] <= options["memory_limit"]
    assert not any(ref() is not None for ref in alive)


def test_a_refitted_model_holds_no_trace_of_callbacks():
    model = quick().fit(X_MOONS, Y_MOONS).best_estimator_
    assert set(vars(model)) == set(vars(AssetClassifier(**model.get_params()).fit(X_MOONS, Y_MOONS)))


def test_the_same_seed_gives_the_same_search():
    one, other = (quick().fit(X_MOONS, Y_MOONS).cv_results_["mean_test_score"] for _ in range(2))
    np.testing.assert_array_equal(one, other)


def test_splits_may_be_folds_fractions_splitters_or_indices():
    by_number = quick(cv=4).fit(X_MOONS, Y_MOONS)
    by_splitter = quick(cv=StratifiedKFold(4)).fit(X_MOONS, Y_MOONS)
    by_indices = quick(cv=list(StratifiedKFold(4).split(X_MOONS, Y_MOONS))).fit(X_MOONS, Y_MOONS)
    for other in (by_splitter, by_indices):
        np.testing.assert_array_equal(
            other.cv_results_["mean_test_score"], by_number.cv_results_["mean_test_score"]
        )
    assert quick(cv=0.25).fit(X_MOONS, Y_MOONS).n_splits_ == 1
    fold = np.where(np.arange(400) < 300, -1, 0)
    assert quick(cv=PredefinedSplit(fold)).fit(X_MOONS, Y_MOONS).n_splits_ == 1


def test_a_fraction_is_held_out_as_by_scikit_learn():
    search = quick(cv=0.25, keep_path=True).fit(X_MOONS, Y_MOONS)
    seed = check_random_state(0).randint(np.iinfo(np.int32).max)
    split = train_test_split(np.arange(400), test_size=0.25, random_state=seed, stratify=Y_MOONS)
    again = quick(cv=[split]).fit(X_MOONS, Y_MOONS)
    for name in ("split0_test_score", "mean_test_score"):
        np.testing.assert_array_equal(search.cv_results_[name], again.cv_results_[name])


@pytest.mark.parametrize("kind", [AssetClassifierCV, AssetRegressorCV])
def test_groups_stay_together_and_splitters_see_the_rows(kind):
    seen = []

    class Watched(GroupKFold):
        def split(self, X, y=None, groups=None):
            for train, test in super().split(X, y, groups):
                seen.append((X, groups[train], groups[test]))
                yield train, test

    groups = np.arange(400) // 7
    search = kind(Cs=[1.0], cv=Watched(3), n_components=20, random_state=0, refit=False)
    search.fit(X_MOONS, Y_MOONS, groups=groups)
    assert len(seen) == search.n_splits_ == 3
    for X, train, test in seen:
        assert X is X_MOONS and not set(train) & set(test)
    by_indices = clone(search).set_params(cv=list(GroupKFold(3).split(X_MOONS, Y_MOONS, groups)))
    assert by_indices.fit(X_MOONS, Y_MOONS).best_score_ == search.best_score_


@pytest.mark.parametrize("scoring", [None, "neg_mean_absolute_error"])
def test_scores_of_the_best_model_take_weights(scoring):
    weight = np.random.default_rng(0).uniform(0.0, 2.0, 400)
    noisy = np.where(np.arange(400) % 3 == 0, 1 - Y_MOONS, Y_MOONS)
    for kind in (AssetClassifierCV, AssetRegressorCV):
        search = kind(Cs=[1.0], cv=3, n_components=20, random_state=0, scoring=scoring)
        search.fit(X_MOONS, noisy)
        found = search.score(X_MOONS, noisy, sample_weight=weight)
        scorer = check_scoring(search.best_estimator_, scoring)
        expected = scorer(search.best_estimator_, X_MOONS, noisy, sample_weight=weight)
        assert found == expected != search.score(X_MOONS, noisy)


def test_a_split_that_learns_from_one_class_is_named():
    """As KFold makes them of rows sorted by class; a model of one class scored 0 in silence."""
    order = np.argsort(Y_MOONS)
    with pytest.raises(ValueError, match="number 0, that learns from rows of one class, 1"):
        quick(cv=KFold(2)).fit(X_MOONS[order], Y_MOONS[order])
    names = np.array(["no", "yes"], dtype=object)[Y_MOONS]
    with pytest.raises(ValueError, match="of one class, 'no'"):
        quick(cv=[(np.flatnonzero(Y_MOONS == 0), np.arange(400))]).fit(X_MOONS, names)


def test_rows_held_out_are_not_learnt_from():
    """Labels at random: a model that saw the held-out rows would know them."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 2)), rng.integers(0, 2, 300)
    search = quick(Cs=[1e3], gamma=50.0, n_components=300, cv=KFold(3)).fit(X, y)
    assert search.best_score_ < 0.6
    assert search.score(X, y) > 0.9


def test_rows_of_weight_0_are_left_out():
    rng = np.random.default_rng(0)
    weight = np.where(np.arange(400) % 4 == 0, 0.0, rng.uniform(0.5, 2.0, 400))
    wrong = np.where(weight == 0.0, 1 - Y_MOONS, Y_MOONS)
    cv = PredefinedSplit(np.arange(400) % 3)
    kept = weight > 0
    search = quick(cv=cv, Cs=[1.0, 10.0]).fit(X_MOONS, wrong, sample_weight=weight)
    cv = PredefinedSplit((np.arange(400) % 3)[kept])
    other = quick(cv=cv, Cs=[1.0, 10.0]).fit(X_MOONS[kept], Y_MOONS[kept], sample_weight=weight[kept])
    np.testing.assert_allclose(
        search.cv_results_["mean_test_score"], other.cv_results_["mean_test_score"], atol=1e-12
    )


def test_weights_of_rows_and_classes_matter():
    noisy = np.where(np.random.default_rng(0).random(400) < 0.3, 1 - Y_MOONS, Y_MOONS)
    recalls = []
    for weight in ({0: 1.0, 1: 20.0}, {0: 20.0, 1: 1.0}):
        search = quick(class_weight=weight, scoring="recall").fit(X_MOONS, noisy)
        recalls.append(search.cv_results_["mean_test_score"].mean())
    assert recalls[0] > 0.95 and recalls[1] < 0.5
    assert quick(class_weight="balanced").fit(X_MOONS, Y_MOONS).best_score_ > 0.9


def test_the_path_predicts_what_was_scored():
    search = quick(keep_path=True).fit(X_MOONS, Y_MOONS)
    assert search.path_coefs_.shape == (3, 3, 1, search.path_map_.dimension + 1)
    V = search.path_map_(X_MOONS)
    for f, (_, test) in enumerate(StratifiedKFold(3).split(X_MOONS, Y_MOONS)):
        for c in range(3):
            coef = search.path_coefs_[f, c, 0]
            predicted = (V[test] @ coef[:-1] + coef[-1] > 0).astype(int)
            found = search.cv_results_[f"split{f}_test_score"][c]
            assert np.mean(predicted == Y_MOONS[test]) == pytest.approx(found, abs=0.01)


# Cells ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_one_cell_scores_like_its_fit_by_itself(task):
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, size=(200, 2))
    f = np.sin(2 * X[:, 0]) * X[:, 1]
    y = (f > 0).astype(int) if task == "classification" else f
    train, test = np.arange(140), np.arange(140, 200)
    options = dict(gamma=1.0, n_cells=1, random_state=0)
    kind, one = (
        (AssetClassifierCV, AssetClassifier)
        if task == "classification"
        else (AssetRegressorCV, AssetRegressor)
    )
    Cs = [0.1, 1.0, 10.0]
    search = kind(Cs=Cs, cv=[(train, test)], refit=False, **options).fit(X, y)
    expected = [one(C=C, **options).fit(X[train], y[train]).score(X[test], y[test]) for C in Cs]
    np.testing.assert_allclose(search.cv_results_["mean_test_score"], expected, atol=0.035)


@pytest.mark.filterwarnings("ignore:.* changed nothing")  # what serves large cells
def test_cells_search_gamma_and_epsilon():
    search = quick(n_cells=4, gammas=[0.01, 1.0], cv=0.3).fit(X_MOONS, Y_MOONS)
    assert search.best_params_["gamma"] == 1.0 and search.best_score_ > 0.9
    assert hasattr(search.best_estimator_, "cells_")
    y = np.sin(X_MOONS[:, 0]) + 5.0
    regression = AssetRegressorCV(
        Cs=[1.0, 10.0], epsilons=[0.01, 1.0], n_cells=3, gamma=1.0, cv=3, random_state=0
    ).fit(X_MOONS, y)
    assert regression.best_params_["epsilon"] == 0.01 and regression.best_score_ > 0.95


def test_a_cell_too_large_is_searched_by_some_of_its_rows():
    search = quick(n_cells=1, memory_limit=1.0, cv=0.3).fit(X_MOONS, Y_MOONS)
    assert search.best_score_ > 0.85


# Splits with few rows -----------------------------------------------------------------------------


@pytest.mark.parametrize("scoring", [None, "f1"])
@pytest.mark.parametrize(
    "cv",
    [
        [(np.arange(10, 400), np.arange(2)), (np.arange(10, 400), np.arange(2, 10))],
        [(np.array([0, 1, 2, 3]), np.arange(10, 400))],
    ],
)
@pytest.mark.parametrize("cells", [None, 8])
def test_a_split_that_would_lose_its_rows_ends_the_race(scoring, cv, cells, monkeypatch):
    monkeypatch.setattr("asset_svm.search.race.FEWEST_ROWS", 30)
    search = quick(gammas=[0.5, 1.0, 2.0], cv=cv, scoring=scoring, n_cells=cells, refit=False)
    search.fit(X_MOONS, Y_MOONS)
    assert (search.cv_results_["iter"] == 0).all()
    assert (search.cv_results_["n_resources"] == 400).all()
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


def test_a_split_that_would_lose_a_class_ends_the_race():
    splits = [Split(np.arange(300), np.arange(300, 400))]
    y = np.where(np.arange(400) < 5, 2, Y_MOONS)
    assert not may_race(splits, np.arange(5, 400), y, classifier=True)
    assert may_race(splits, np.arange(5, 400), y, classifier=False)
    assert may_race(splits, np.arange(4, 400), y, classifier=True)


@pytest.mark.parametrize(("hidden", "aim"), [(np.s_[:100], "learn from"), (np.s_[100:], "score")])
def test_a_split_without_weight_is_named(hidden, aim):
    weight = np.ones(200)
    weight[hidden] = 0.0
    search = quick(cv=[(np.arange(100), np.arange(100, 200))])
    with pytest.raises(ValueError, match=f"number 0, without rows of positive weight to {aim}"):
        search.fit(X_MOONS[:200], Y_MOONS[:200], sample_weight=weight)


def test_a_time_too_short_for_any_score_is_named():
    """The only cell that there was time for has no held-out rows."""
    far = np.argsort(X_MOONS[:, 0])[-2:]
    rest = np.setdiff1d(np.arange(400), far)
    search = quick(n_cells=10, time_limit=1e-9, cv=[(rest, far)], scoring="f1")
    with pytest.raises(ValueError, match="time_limit=1e-09 ended the search before"):
        search.fit(X_MOONS, Y_MOONS)


def test_scores_of_too_few_rows_are_not_numbers():
    decisions = np.ones((3, 0, 1))
    for scorer in (None, get_scorer("f1")):
        assert np.isnan(
            scores(scorer, Classification(classes=np.arange(2)), None, np.empty(0), decisions)
        ).all()
    assert np.isnan(scores(None, Regression(), None, np.ones(1), np.ones((3, 1, 1)))).all()
    search = AssetRegressorCV(Cs=[1.0], cv=LeaveOneOut(), search_iter=1, random_state=0)
    with pytest.raises(ValueError, match="score of split 0 is not a number"):
        search.fit(X_MOONS[:20], X_MOONS[:20, 1])


# Race, time, progress -------------------------------------------------------------------------------


def test_the_rounds_of_a_race():
    assert [(r.count, r.share) for r in rounds(5, 100_000)] == [(5, 1 / 3), (2, 1.0)]
    assert [r.count for r in rounds(10, 100_000)] == [10, 4, 2]
    assert [r.count for r in rounds(5, 5000)] == [5]
    assert [r.count for r in rounds(2, 100_000)] == [2]


@pytest.mark.filterwarnings("ignore:.* changed nothing")  # what serves large cells
@pytest.mark.parametrize("cells", [None, 8])
def test_hopeless_gammas_drop_out_of_the_race(cells, monkeypatch):
    monkeypatch.setattr("asset_svm.search.race.FEWEST_ROWS", 100)
    gammas = [1.0, 1e4, 1e5, 1e6]
    search = quick(gammas=gammas, n_cells=cells, Cs=[1.0, 10.0]).fit(X_MOONS, Y_MOONS)
    results = search.cv_results_
    assert search.best_params_["gamma"] == 1.0
    of = np.asarray(results["param_gamma"])
    assert (results["iter"][of == 1.0] == 1).all() and (results["iter"][of == 1e6] == 0).all()
    assert results["n_resources"][of == 1.0].max() == 400 > results["n_resources"][of == 1e6].max()
    last = results["iter"] == 1
    assert results["rank_test_score"][last].max() < results["rank_test_score"][~last].min()


def test_a_time_limit_ends_the_search_with_the_best_so_far(ticks):
    search = quick(gammas=list(np.logspace(-3, 2, 30)), search_iter=2, refit=False)
    search.fit(X_MOONS, Y_MOONS)
    whole = begun = ticks.looks
    search.set_params(time_limit=whole // 2)
    with pytest.warns(ConvergenceWarning, match=r"ended the search early: \d+ of 90 candidates"):
        search.fit(X_MOONS, Y_MOONS)
    assert ticks.looks - begun < 0.6 * whole
    found = ~np.isnan(search.cv_results_["mean_test_score"])
    assert found.any() and not found.all()
    assert found[search.best_index_]
    begun = ticks.looks
    short = quick(search_iter=10_000, time_limit=20.0)
    with pytest.warns(ConvergenceWarning, match="early: scores are of fewer steps"):
        short.fit(X_MOONS, Y_MOONS)
    assert ticks.looks - begun < 100
    assert short.best_score_ > 0.5


def test_pilots_obey_the_time_limit(monkeypatch):
    """One block of the first of seven; the steps of the other values of C are expected from it."""
    steps, advance = [], Driver.advance

    def counted(*parts):
        steps.append(advance(*parts))
        return steps[-1]

    monkeypatch.setattr(Driver, "advance", counted)
    X, y = np.tile(X_MOONS, (10, 1)), np.tile(Y_MOONS, 10)
    options = dict(Cs=50, cv=2, search_iter=50, refit=False)
    quick(**options).fit(X, y)
    whole = list(steps)
    steps.clear()
    with pytest.warns(ConvergenceWarning, match="ended the search early"):
        quick(time_limit=1e-9, **options).fit(X, y)
    assert len(whole) > 7 and min(whole) >= 1000
    assert steps == [CpuBackend.block_size]


@pytest.mark.parametrize("intercept", [False, True])
def test_cells_without_time_take_one_sweep(intercept, monkeypatch):
    """A large C in a cell of noise would otherwise go on long after the time is up."""
    sweeps, model = [], CellProblem.model

    def counted(*args, **options):
        found = model(*args, **options)
        sweeps.append(found[4])
        return found

    monkeypatch.setattr(CellProblem, "model", counted)
    noise = np.random.default_rng(0).integers(0, 2, 400)
    options = dict(n_cells=1, Cs=[1e2, 1e4], gamma=0.1, fit_intercept=intercept, refit=False)
    quick(**options).fit(X_MOONS, noise)
    assert max(sweeps) > 1
    sweeps.clear()
    with pytest.warns(ConvergenceWarning, match="early: scores are of fewer steps"):
        quick(**options, time_limit=1e-9).fit(X_MOONS, noise)
    assert max(sweeps) <= 1


def test_progress_is_told_and_can_stop_the_search():
    seen = []

    def watch(progress):
        seen.append(progress)
        return progress.done == 2

    search = quick(gammas=[0.1, 1.0, 10.0])
    search._fit_watched(X_MOONS, Y_MOONS, None, watch=watch)
    assert [p.done for p in seen] == [1, 2] and seen[0].total == 3
    assert np.isnan(seen[0].mean_test_score[3:]).all()
    assert seen[1].best_score == search.best_score_
    assert np.isnan(search.cv_results_["mean_test_score"][6:]).all()


# Hostile users --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (dict(Cs=0), "Cs=0"),
        (dict(Cs=[1.0, -1.0]), "Cs="),
        (dict(Cs="many"), "Cs="),
        (dict(Cs=[]), "Cs="),
        (dict(Cs=[1.0, 1.0]), "twice"),
        (dict(Cs=[np.nan]), "Cs="),
        (dict(gammas="scale"), "gammas="),
        (dict(gammas=[0.0]), "gammas="),
        (dict(gammas=[1.0], kernel="linear"), "has no gamma"),
        (dict(cv=1), "cv=1"),
        (dict(cv=1.5), "cv=1.5"),
        (dict(cv="five"), "cv="),
        (dict(cv=[]), "no split"),
        (dict(cv=[(np.arange(10), [])]), "without rows to score"),
        (dict(cv=0.0025), "cv=0.0025 holds out 1 of 400 rows.*the 2 classes need one of each"),
        (dict(cv=0.999), "learns from 0"),
        (dict(cv=[0.2, 0.3]), r"0.2 of split 0, which is not \(train, test\)"),
        (dict(cv=[([0.2, 0.3], [1, 2])]), "no numbers of rows"),
        (dict(cv=GroupKFold(3)), "'groups' parameter should not be None"),
        (dict(scoring=lambda model, X, y: {"a": 1.0}), r"scoring gave {'a': 1.0}, and a search"),
        (dict(scoring=lambda model, X, y: None), "scoring gave None"),
        (dict(scoring=lambda model, X, y: np.ones(2)), "scoring gave array"),
        (dict(scoring=["accuracy", "f1"]), "one score"),
        (dict(scoring="no_such_score"), "no_such_score"),
        (dict(scoring="neg_log_loss"), "needs probabilities"),
        (dict(refit="accuracy"), "refit="),
        (dict(landmarks="margin"), "looks at the targets"),
        (dict(n_components="auto"), "looks at the targets"),
        (dict(time_limit=-1), "time_limit"),
        (dict(search_iter=0), "search_iter"),
        (dict(keep_path=True, n_cells=2), "keep_path"),
        (dict(step="strong", fit_intercept=True), "strong"),
    ],
)
def test_bad_parameters_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        quick(**options).fit(X_MOONS, Y_MOONS)


def test_a_failed_search_leaves_the_last_one_alone():
    search = quick().fit(X_MOONS, Y_MOONS)
    before = search.predict(X_MOONS)
    with pytest.raises(ValueError, match="Cs="):
        search.set_params(Cs=-1).fit(X_MOONS, Y_MOONS)
    np.testing.assert_array_equal(search.predict(X_MOONS), before)


def test_a_scorer_that_asks_for_other_rows_is_told_why_not():
    def odd(model, X, y):
        return model.decision_function(X[:1])[0]

    with pytest.raises(ValueError, match="GridSearchCV"):
        quick(scoring=odd).fit(X_MOONS, Y_MOONS)


def test_a_fold_without_one_of_the_classes_is_searched_all_the_same():
    y = np.where(np.arange(400) < 20, 2, Y_MOONS)
    search = quick(cv=[(np.arange(20, 400), np.arange(20)), (np.arange(200), np.arange(200, 400))])
    search.fit(X_MOONS, y)
    np.testing.assert_array_equal(search.cv_results_["split0_test_score"], 0.0)


def test_losses_of_users_serve_as_scores():
    y = np.sin(X_MOONS[:, 0])
    scorer = make_scorer(mean_absolute_error, greater_is_better=False)
    search = AssetRegressorCV(Cs=[0.01, 10.0], scoring=scorer, gamma=1.0, random_state=0, max_iter=5)
    search.fit(X_MOONS, y)
    assert search.best_params_["C"] == 10.0 and search.best_score_ < 0.0


def test_the_grids_of_numbers_and_of_the_median():
    np.testing.assert_allclose(resolve_costs(50), np.logspace(-2, 4, 50))
    np.testing.assert_array_equal(resolve_costs([10, 1]), [1.0, 10.0])
    search = quick(gamma="scale", gammas="auto", Cs=[1.0]).fit(X_MOONS, Y_MOONS)
    assert len(search.gammas_) == len(AUTO_FACTORS)
    distances = ((X_MOONS[:, None] - X_MOONS[None]) ** 2).sum(axis=2)
    median = np.median(distances[np.triu_indices(400, 1)])
    np.testing.assert_allclose(search.gammas_, np.array(AUTO_FACTORS) / median)


class OnCard:
    """What a tensor on the card shows of itself; as an array only after a copy to the host."""

    __module__, is_cuda = "torch", True

    def __init__(self, X):
        self.X, self.shape = X, X.shape

    def __getitem__(self, rows):
        return OnCard(self.X[rows])

    def __array__(self, *args, **options):
        raise TypeError("can't convert cuda:0 device type tensor to numpy.")

    def detach(self):
        return self

    def cpu(self):
        return self

    def numpy(self):
        return self.X


def test_all_gammas_come_from_one_median_wherever_the_rows_lie():
    """With more rows than the median looks at, a second one would differ."""
    X = np.random.default_rng(0).normal(size=(3 * MEDIAN_ROWS, 2))
    found = resolve_gammas("auto", X, np.random.default_rng(1))
    np.testing.assert_allclose(np.array(found) / found[0], np.array(AUTO_FACTORS) / AUTO_FACTORS[0])
    assert resolve_gammas("auto", OnCard(X), np.random.default_rng(1)) == found
    lengths = resolve_gammas("auto", X, np.random.default_rng(1), formula_type("matern52"))
    np.testing.assert_allclose(lengths, np.sqrt(found))


@pytest.mark.parametrize("cv", [3, 0.25, KFold(3)])
def test_rows_on_the_card_are_split_like_others(cv):
    found = [draw_splits(cv, X, Y_MOONS, None, 0, classifier=True) for X in (X_MOONS, OnCard(X_MOONS))]
    for here, there in zip(*found, strict=True):
        np.testing.assert_array_equal(here.train, there.train)
        np.testing.assert_array_equal(here.test, there.test)


# The card -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.cuda)])
def test_a_search_on_the_card_finds_what_the_cpu_finds(device, monkeypatch):
    """On the card, or on torch's CPU device with the twin of its kernel: fold after fold."""
    pytest.importorskip("torch", reason="the backend of the card needs torch (extra cuda)")
    from asset_svm.backends import device as devices
    from asset_svm.backends.cuda.backend import CudaBackend
    from asset_svm.settings import solving

    if device == "cpu":
        from card import CPU, HostForm

        monkeypatch.setattr(devices, "require_card", lambda: None)
        backend = CudaBackend(device=CPU, form=HostForm)
        monkeypatch.setattr(solving, "card_backend", lambda limit, precision: backend)
    X, y = X_MOONS.astype(np.float32), Y_MOONS + (np.arange(400) % 5 == 0)
    options = dict(gammas=[0.5, 2.0], step_scale=0.1)
    card = quick(device="cuda", **options).fit(X, y)
    host = quick(**options).fit(X, y)
    np.testing.assert_allclose(
        card.cv_results_["mean_test_score"], host.cv_results_["mean_test_score"], atol=0.01
    )
    assert card.best_params_ == host.best_params_


def test_rows_are_searched_in_float32_where_that_tells_them_apart():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 3))
    assert in_single(X).dtype == np.float32
    assert in_single(sp.csr_matrix(X)).dtype == np.float32
    for shifted in (X + 1e6, X * 1e30, np.where(X > 0, X, 1e19)):
        assert in_single(shifted).dtype == np.float64
    constant = np.column_stack([X, np.full(50, 1e9)])
    assert in_single(constant).dtype == np.float32
    search = quick(gamma=1.0).fit(X_MOONS + 1e8, Y_MOONS)
    assert search.best_score_ > 0.9


# A candidate and its company --------------------------------------------------------------------------


def waves(seed, m, scale=1.0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-3, 3, (m, 2))
    return X, scale * (2 * np.sin(X[:, 0]) + X[:, 1] + 0.3 * rng.normal(size=m))


@pytest.mark.parametrize("Cs", [[1.0], [1e-4, 1.0], [1.0, 1e4], np.logspace(-4, 4, 5)])
def test_a_score_is_that_of_an_exact_svm_whatever_Cs_stand_beside_it(Cs):
    X, y = waves(0, 500)
    search = AssetRegressorCV(Cs=Cs, gammas=[1.0], cv=5, random_state=0, refit=False).fit(X, y)
    exact = cross_val_score(SVR(C=1.0, gamma=1.0), X, y, cv=5).mean()
    found = search.cv_results_["mean_test_score"][list(search.Cs_).index(1.0)]
    assert found == pytest.approx(exact, abs=0.005)
    assert search.best_params_["C"] == 1.0


@settings(max_examples=12, deadline=None, derandomize=True)
@given(
    powers=st.lists(st.floats(-5, 5), min_size=2, max_size=9, unique=True),
    kept=st.integers(0, 8),
    task=st.sampled_from(["classification", "several classes", "regression"]),
    single=st.booleans(),
    n_cells=st.sampled_from([None, None, 3]),
    seed=st.integers(0, 100),
)
def test_no_score_depends_on_the_Cs_searched_beside_it(powers, kept, task, single, n_cells, seed):
    """Exactly so but for rounding: in float64, and in float32 far below a score's own error."""
    X, y = waves(seed, 90, scale=10.0 ** (seed % 5 - 2))
    if task != "regression":
        y = np.digitize(y, np.quantile(y, [0.5] if task == "classification" else [0.3, 0.6]))
    kind = AssetRegressorCV if task == "regression" else AssetClassifierCV
    Cs = np.unique(10.0 ** np.array(powers))
    kept %= len(Cs)
    options = dict(cv=3, gammas=[0.5], n_cells=n_cells, search_iter=20, random_state=0, refit=False)
    far = 0.0 if single else 4000.0  # columns that single precision would round too much
    together = kind(Cs=Cs, **options).fit(X + far, y)
    alone = kind(Cs=Cs[kept : kept + 1], **options).fit(X + far, y)
    for f in range(3):
        name = f"split{f}_test_score"
        one, other = together.cv_results_[name][kept], alone.cv_results_[name][0]
        assert one == pytest.approx(other, rel=1e-9, abs=1e-4 if single else 1e-9)


@pytest.mark.parametrize("gammas", [[0.3, 1.0, 3.0], "auto"])
def test_a_gamma_that_survives_a_race_has_the_scores_it_has_alone(gammas):
    X, y = waves(3, 9200)
    y = (y > 0).astype(int)
    options = dict(cv=2, Cs=[0.1, 10.0], n_components=20, search_iter=1, random_state=0, refit=False)
    search = AssetClassifierCV(gammas=gammas, **options).fit(X, y)
    gamma = search.best_params_["gamma"]
    assert search.cv_results_["n_resources"].min() < len(y)
    alone = AssetClassifierCV(gammas=[gamma], **options).fit(X, y)
    rows = search.cv_results_["param_gamma"] == gamma
    np.testing.assert_allclose(
        search.cv_results_["mean_test_score"][rows], alone.cv_results_["mean_test_score"], atol=2e-4
    )
