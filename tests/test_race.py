"""The race of the searches without a knob: what it finds, sees, fixes, and costs."""

import pickle
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import softmax
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, make_moons
from sklearn.metrics import log_loss
from sklearn.model_selection import GroupKFold, train_test_split
from sklearn.svm import SVC

import asset_svm
from asset_svm import AssetClassifier, AssetClassifierCV, AssetRegressor, AssetRegressorCV, TableEncoder
from asset_svm import clock as our_clock
from asset_svm.search.auto import budget as budgets
from asset_svm.search.auto import parts
from asset_svm.search.auto import search as searches
from asset_svm.search.auto.blend import LogLosses, SquaredLosses, greedy_weights, worthwhile_weights
from asset_svm.search.auto.budget import Budget
from asset_svm.search.auto.final import LEAST_SECONDS, time_of
from asset_svm.search.auto.outcome import Outcome
from asset_svm.search.auto.parts import FEW_ROWS, MANY_ROWS, draw_parts
from asset_svm.tasks import Classification

X_MOONS, Y_MOONS = make_moons(400, noise=0.2, random_state=0)


def shop(m, seed=0):
    """A table with a category, gaps, a date, many levels, and columns of very different scale."""
    rng = np.random.default_rng(seed)
    age, income = rng.uniform(18, 80, m), np.exp(rng.normal(10, 1, m))
    city = rng.choice([f"c{k}" for k in range(90)], m)
    kind = rng.choice(["new", "old", None], m, p=[0.5, 0.4, 0.1])
    day = pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 365, m), "D")
    pull = np.array([hash_of(name) for name in city])
    y = ((age - 49) / 15 + (kind == "new") + pull + 0.3 * rng.normal(size=m)) > 0.5
    income[rng.random(m) < 0.1] = np.nan
    frame = pd.DataFrame({"age": age, "income": income, "kind": kind, "city": city, "day": day})
    return frame, np.where(y, "yes", "no")


def hash_of(name):
    return (int(name[1:]) * 37 % 90) / 45 - 1.0


@pytest.fixture(scope="module")
def moons():
    return AssetClassifierCV(random_state=0, ensemble=False).fit(X_MOONS, Y_MOONS)


@pytest.fixture(params=[0.6, pytest.param(60.0, marks=pytest.mark.slow)])
def either_size(request, monkeypatch):
    """A small race, for what does not hang on which candidate wins; a whole one is slow."""
    monkeypatch.setattr(searches, "MOST_WORK", request.param)


# What it finds --------------------------------------------------------------------------------------


@pytest.mark.usefixtures("either_size")
def test_columns_of_any_scale_are_found_out():
    """With `income` beside `age` the estimator gives every row one class; the search does not."""
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.uniform(18, 80, 500), rng.normal(5e4, 2e4, 500)])
    y = (X[:, 0] > 40) & (X[:, 0] < 60)
    search = AssetClassifierCV(random_state=0).fit(X, y)
    assert search.best_score_ > 0.95 and isinstance(search.best_params_["encoder"], TableEncoder)


@pytest.mark.parametrize(
    "load", [load_breast_cancer, pytest.param(load_digits, marks=pytest.mark.slow)]
)
def test_it_is_no_worse_than_an_svm_of_standardised_columns(load):
    X, y = load(return_X_y=True)
    X, X_out, y, y_out = train_test_split(X, y, random_state=0, stratify=y)
    ours = AssetClassifierCV(random_state=0).fit(X, y).score(X_out, y_out)
    mean, spread = X.mean(axis=0), X.std(axis=0) + 1e-12
    theirs = SVC().fit((X - mean) / spread, y).score((X_out - mean) / spread, y_out)
    assert ours > theirs - 0.015  # one standard error of some 400 rows


def test_a_table_with_gaps_categories_and_dates_needs_no_word(monkeypatch):
    monkeypatch.setattr(searches, "MOST_WORK", 6.0)
    frame, y = shop(1500)
    test, y_test = shop(500, seed=1)
    search = AssetClassifierCV(random_state=0).fit(frame, y)
    assert search.score(test, y_test) > 0.85
    test.loc[0, "kind"] = "never seen"
    assert len(search.predict(test)) == 500
    assert search.feature_names_in_.tolist() == list(frame.columns)


@pytest.mark.usefixtures("either_size")
def test_regression_does_not_hang_on_the_units_of_the_targets():
    X, y = load_diabetes(return_X_y=True)
    one, other = (
        AssetRegressorCV(random_state=0, ensemble=False).fit(X, target) for target in (y, 1e6 * y + 7e8)
    )
    assert one.best_score_ == pytest.approx(other.best_score_, abs=1e-6) and one.best_score_ > 0.4
    np.testing.assert_allclose(1e6 * one.predict(X) + 7e8, other.predict(X), rtol=1e-6)


def test_the_results_are_in_the_words_of_scikit_learn(moons):
    results, board = moons.cv_results_, moons.leaderboard_
    count = len(results["params"])
    assert list(board.columns) == ["candidate", "score", "error", "rows", "folds", "seconds", "at"]
    assert len(board) == count == len(results["mean_test_score"]) > 20
    assert results["rank_test_score"][moons.best_index_] == 1
    assert sorted(results["rank_test_score"]) == list(range(1, count + 1))
    assert moons.best_score_ == results["mean_test_score"][moons.best_index_] == board.score[0]
    splits = [results[f"split{k}_test_score"] for k in range(moons.n_splits_)]
    np.testing.assert_allclose(np.mean(splits, axis=0), results["mean_test_score"], atol=0.01)
    assert (board.error > 0).all()


def test_the_best_parameters_give_the_best_model(moons):
    alone = AssetClassifier(random_state=0, **moons.best_params_).fit(X_MOONS, Y_MOONS)
    np.testing.assert_array_equal(
        alone.decision_function(X_MOONS), moons.best_estimator_.decision_function(X_MOONS)
    )


@pytest.mark.usefixtures("either_size")
def test_it_is_the_same_again_and_with_any_number_of_threads():
    first, *others = (
        AssetClassifierCV(random_state=0, ensemble=False, n_jobs=n_jobs).fit(X_MOONS, Y_MOONS)
        for n_jobs in (None, 1, 3)
    )
    for again in others:
        np.testing.assert_array_equal(
            again.cv_results_["mean_test_score"], first.cv_results_["mean_test_score"]
        )
        np.testing.assert_array_equal(again.predict(X_MOONS), first.predict(X_MOONS))


# What judges it -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "rows", [700, *(pytest.param(m, marks=pytest.mark.slow) for m in (1600, 7000))]
)
def test_with_targets_drawn_at_random_nothing_beats_the_constant(rows, monkeypatch):
    """Neither relevance, nor target means of 90 cities, nor landmarks see the rows that judge them."""
    monkeypatch.setattr(searches, "MOST_WORK", 12.0)
    frame, _ = shop(rows)
    y = np.random.default_rng(5).permutation(np.arange(rows) % 2)
    search = AssetClassifierCV(random_state=0, refit=False).fit(frame, y)
    board = search.leaderboard_
    assert {"columns", "directions"} & {p["relevance"] for p in search.cv_results_["params"]}
    judged = rows if rows <= FEW_ROWS else rows // 5
    assert board.score.max() < 0.5 + 3.0 * 0.5 / np.sqrt(judged)  # the best of some hundred


def test_rows_that_judge_are_not_learnt_from_and_all_are_used():
    y = np.arange(700) % 3
    task = Classification().settled(y, np.ones(700))
    for m, first, all_ in ((700, 5, 5), (FEW_ROWS + 900, 1, 5), (MANY_ROWS + 900, 1, 1)):
        some, others = draw_parts(task, np.arange(m) % 3, 0)
        assert (len(some), len(some) + len(others)) == (first, all_)
        for part in [*some, *others]:
            assert sorted([*part.learning, *part.judging]) == list(range(m))
        if all_ == 5:
            judged = np.concatenate([part.judging for part in [*some, *others]])
            assert sorted(judged) == list(range(m))
    rare = np.r_[np.zeros(FEW_ROWS), [1, 1, 2, 2, 2]]
    some, others = draw_parts(Classification().settled(rare, np.ones(len(rare))), rare, 0)
    for part in [*some, *others]:
        assert set(rare[part.judging]) <= set(rare[part.learning])


@pytest.mark.parametrize(
    "kind", [AssetClassifierCV, pytest.param(AssetRegressorCV, marks=pytest.mark.slow)]
)
def test_the_best_of_many_rows_are_judged_by_all_folds(kind, monkeypatch):
    monkeypatch.setattr(parts, "FEW_ROWS", 300)
    monkeypatch.setattr(searches, "SHORT", 2.0)
    monkeypatch.setattr("asset_svm.search.auto.confirm.ENOUGH", 0)  # not fewer folds for more of them
    frame, y = shop(900)
    y = y if kind is AssetClassifierCV else frame.age.to_numpy() + 20.0 * (y == y[0])
    search = kind(random_state=0).fit(frame, y)
    found = search.cv_results_
    each = np.array([found[f"split{k}_test_score"] for k in range(5)])
    confirmed = np.isfinite(each).all(axis=0)
    assert search.n_splits_ == 5 and 2 <= confirmed.sum() <= 12
    assert set(search.leaderboard_.folds) == {1, 5} and search.leaderboard_.folds[0] == 5
    assert not search.leaderboard_.duplicated(["candidate", "rows"]).any()
    assert np.isfinite(each[0]).all() and np.isnan(each[1:, ~confirmed]).all()
    assert confirmed[search.best_index_] and confirmed[np.argmin(found["rank_test_score"])]
    if kind is AssetClassifierCV:  # folds are of one size, or two
        np.testing.assert_allclose(
            found["mean_test_score"][confirmed], each.mean(axis=0)[confirmed], atol=2e-3
        )
    assert found["std_test_score"][confirmed].min() > 0.0
    # Rows of the other folds are judged by models that have not seen them.
    best = search.cv_results_["mean_test_score"][search.best_index_]
    assert search.best_estimator_.score(frame, y) > best


def test_folds_that_learn_nothing_from_their_targets_share_rows(monkeypatch):
    from asset_svm.encoding.frames import as_table
    from asset_svm.search.auto.columns import Columns, Given
    from asset_svm.search.auto.shapes import Shape
    from asset_svm.tasks import Regression

    frame, y = shop(400)
    task = Classification().settled(y, np.ones(400))
    folds, _ = draw_parts(task, y, 0)
    for names, task_, expected in (
        (["age", "income"], task, 1),
        (["age", "kind"], task, 1),
        (["age", "kind"], Regression(), 5),  # levels have the order of their means
        (["age", "city"], task, 5),  # 90 levels have target means
    ):
        table = as_table(frame[names])
        given = Given(
            None, table, y, np.ones(400), task_, {"standard": TableEncoder(numbers="standard")}
        )
        columns = Columns(given, folds, None)
        assert columns.lots(Shape("standard", "rbf")) == expected
        assert columns.lots(Shape("standard", "rbf", "columns")) == 5


def outcome_of(finalists, rows=800):
    """An outcome of candidates of these (loss, seconds that training takes), the best first."""
    history = [SimpleNamespace(loss=loss, takes=takes, rows=rows) for loss, takes in finalists]
    looks = SimpleNamespace(training_seconds=lambda judged, n_rows: judged.takes)
    return Outcome(looks, history, list(range(len(history))))


@pytest.mark.parametrize(
    ("finalists", "rows", "seconds", "expected"),
    [
        ([(1.0, 5.0), (2.0, 0.1)], 800, 10.0, 0),  # in time
        ([(1.0, 50.0), (1.05, 5.0)], 800, 10.0, 1),  # nearly as good, and in time
        ([(1.0, 20.0), (2.0, 5.0)], 800, 10.0, 0),  # on half of the rows
        ([(1.0, 90.0), (2.0, 50.0), (3.0, 5.0)], 800, 10.0, 2),  # on few
        ([(1.0, 90.0), (2.0, 36.0), (3.0, 5.0)], 800, 10.0, 1),  # on a third of those that judged it
        ([(1.0, 90.0), (2.0, 50.0)], 800, 0.0, 1),  # none: the cheapest
        ([(1.0, 90.0), (2.0, 5.0)], 8, 10.0, 0),  # judged on few as well
    ],
)
def test_a_model_is_taken_that_can_be_trained(finalists, rows, seconds, expected):
    assert outcome_of(finalists, rows).in_time(1000, seconds).finalists[0] == expected


def test_models_of_a_mean_are_cut_short_only_where_they_must_be():
    assert time_of([0.3, 6.0], 9.0) == pytest.approx(3.0)  # a guess of 0.3 may be wrong
    assert time_of([6.0], 9.0) == 9.0
    assert time_of([6.0, 6.0], 9.0) == pytest.approx(4.5)
    assert time_of([6.0, 6.0], -1.0) == LEAST_SECONDS


@pytest.mark.usefixtures("either_size")
def test_groups_stay_together():
    groups = np.arange(400) // 20
    seen = []

    class Watched(GroupKFold):
        def split(self, X, y=None, groups=None):
            for train, test in super().split(X, y, groups):
                seen.append(set(groups[train]) & set(groups[test]))
                yield train, test

    search = AssetClassifierCV(cv=Watched(4), random_state=0, refit=False)
    search.fit(X_MOONS, Y_MOONS, groups=groups)
    assert seen == [set()] * 4 and search.n_splits_ == 4


# What is fixed --------------------------------------------------------------------------------------


@pytest.mark.usefixtures("either_size")
@pytest.mark.parametrize(
    ("fixed", "name", "values"),
    [
        (dict(kernel="laplacian"), "kernel", {"laplacian"}),
        (dict(relevance=None), "relevance", {None}),
        (dict(relevance="columns"), "relevance", {None, "columns"}),
        (dict(relevance="directions"), "relevance", {None, "directions"}),
        (dict(n_cells=3), "cells", {True}),
        (dict(n_components=60), "cells", {False}),
        (dict(encoder=None), "encoding", {"given"}),
        (dict(encoder=TableEncoder(numbers="robust")), "encoding", {"robust"}),
    ],
)
def test_what_is_given_is_kept(fixed, name, values):
    search = AssetClassifierCV(random_state=0, **fixed).fit(X_MOONS, Y_MOONS)
    assert {params[name] for params in search.cv_results_["params"]} <= values
    assert search.score(X_MOONS, Y_MOONS) > 0.9
    for parameter in ("n_cells", "n_components", "relevance"):
        if parameter in fixed:
            assert search.best_estimator_.get_params()[parameter] == fixed[parameter]


def test_a_grid_is_a_grid():
    search = AssetClassifierCV(Cs=[1.0, 10.0], gammas=[0.5, 2.0], random_state=0).fit(X_MOONS, Y_MOONS)
    assert len(search.cv_results_["params"]) == 4 and search.best_estimator_.kernel == "rbf"
    with pytest.raises(AttributeError, match="leaderboard_"):
        search.leaderboard_  # noqa: B018
    with pytest.raises(ValueError, match="goes with a race"):
        AssetClassifierCV(Cs=3, relevance="columns").fit(X_MOONS, Y_MOONS)
    with pytest.raises(ValueError, match="probability=True takes the decisions of a race"):
        AssetClassifierCV(Cs=3, probability=True).fit(X_MOONS, Y_MOONS)


def test_a_score_that_asks_for_it_has_balanced_classes(monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 2))
    y = (X[:, 0] + 1.5 * rng.normal(size=600) > 2.6).astype(int)
    assert 0.03 < y.mean() < 0.15
    monkeypatch.setattr(searches, "MOST_WORK", 1.0)
    plain = AssetClassifierCV("rbf", random_state=0).fit(X, y)
    balanced = AssetClassifierCV("rbf", random_state=0, scoring="balanced_accuracy").fit(X, y)
    assert plain.best_estimator_.class_weight is None
    assert balanced.best_params_["class_weight"] == "balanced" and balanced.best_score_ > 0.6
    results, best = balanced.cv_results_, balanced.best_index_
    assert (
        results["rank_test_score"][best] == 1
        and results["mean_test_score"][best] == balanced.best_score_
    )
    assert results["params"][best]["class_weight"] == "balanced"
    assert balanced.leaderboard_.candidate[0].endswith("balanced classes")


# Means ----------------------------------------------------------------------------------------------


@given(seed=st.integers(0, 10**6), count=st.integers(1, 6))
@settings(max_examples=30, deadline=None)
def test_greedy_weights_are_no_worse_than_the_best_alone(seed, count):
    rng = np.random.default_rng(seed)
    y = rng.normal(size=80)
    decisions = [y[:, None] + rng.normal(0, rng.uniform(0.1, 2), size=(80, 1)) for _ in range(count)]
    losses = SquaredLosses(y)
    decisions.sort(key=lambda each: losses(each).mean())
    weights = greedy_weights(decisions, losses, always)
    assert weights.min() >= 0.0 and weights.sum() == pytest.approx(1.0)
    mean = sum(w * each for w, each in zip(weights, decisions, strict=True))
    # Small weights are left out at the end, hence the slack.
    assert losses(mean).mean() <= 1.1 * min(losses(each).mean() for each in decisions)


def test_a_mean_is_taken_where_it_gains_and_only_there():
    rng = np.random.default_rng(0)
    y = rng.normal(size=2000)
    good = [y[:, None] + rng.normal(size=(2000, 1)) for _ in range(3)]
    losses = SquaredLosses(y)
    weights = worthwhile_weights(good, losses, always, 0)
    np.testing.assert_allclose(weights, 1 / 3, atol=0.15)
    poor = [y[:, None] + 0.1 * rng.normal(size=(2000, 1)), *good]
    assert worthwhile_weights(poor, losses, always, 0) is None
    assert worthwhile_weights([good[0], good[0]], losses, always, 0) is None
    assert worthwhile_weights(good, losses, lambda members: len(members) < 2, 0) is None


@pytest.mark.parametrize("classes", [2, 4])
def test_means_of_classes_are_chosen_by_log_losses(classes):
    rng = np.random.default_rng(1)
    codes = rng.integers(classes, size=3000)
    one_hot = np.eye(classes)[codes]
    truth = 2.0 * (one_hot[:, 1:] if classes == 2 else one_hot) - 1.0
    good = [truth + 1.5 * rng.normal(size=truth.shape) for _ in range(3)]
    losses = LogLosses(codes, np.ones(3000))
    expected = log_loss(codes, proba := _proba(2.0 * good[0]), labels=range(classes))
    assert LogLosses(codes, np.ones(3000), 2.0)(good[0]).mean() == pytest.approx(expected)
    assert losses.errors(good[0]).mean() == pytest.approx((proba.argmax(axis=1) != codes).mean())
    settled = losses.settled(good[0])(good[0]).mean()
    assert settled <= min(LogLosses(codes, np.ones(3000), each)(good[0]).mean() for each in (0.5, 2, 8))
    weights = worthwhile_weights(good, losses, always, 0)
    np.testing.assert_allclose(weights, 1 / 3, atol=0.15)
    noise = [good[0], *(rng.normal(size=truth.shape) for _ in range(3))]
    assert worthwhile_weights(noise, losses, always, 0) is None


def _proba(decisions):
    found = np.exp(decisions)
    return (
        found / (1 + found) @ [[-1, 1]] + [[1, 0]]
        if found.shape[1] == 1
        else softmax(decisions, axis=1)
    )


def always(members):
    return True


@pytest.fixture(scope="module")
def blend():
    """A mean of two models, put together by hand."""
    from asset_svm.estimators.inside import copied_with, fitted_of
    from asset_svm.families.blend import FittedBlend

    X, y = load_diabetes(return_X_y=True)
    models = [
        AssetRegressor(target_transform="standard", random_state=0, **options).fit(X, y)
        for options in (
            dict(C=10, gamma=1.0, relevance="columns", n_components=60),
            dict(kernel="laplacian", n_cells=1, gamma=3.0),
        )
    ]
    weights = np.array([0.75, 0.25])
    mean = FittedBlend(tuple(fitted_of(model) for model in models), weights)
    return copied_with(models[0], mean), models, weights, X


def test_a_mean_is_the_mean(blend, tmp_path):
    model, models, weights, X = blend
    expected = sum(w * each.predict(X) for w, each in zip(weights, models, strict=True))
    np.testing.assert_allclose(model.predict(X), expected, rtol=1e-12)
    np.testing.assert_allclose(model.compiled()(X), expected, rtol=1e-5)
    slopes = sum(w * each.gradients(X[:5]) for w, each in zip(weights, models, strict=True))
    np.testing.assert_allclose(model.gradients(X[:5]), slopes, rtol=1e-10)
    path = tmp_path / "mean.asset"
    asset_svm.save(model, path)
    for copy in (asset_svm.load(path), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(copy.predict(X), model.predict(X))
        assert [round(one["weight"], 6) for one in copy.blend_] == [0.75, 0.25]
    with pytest.raises(ValueError, match="a mean of several models"):
        asset_svm.save(model, path, resumable=True)
    assert np.isnan(model.dual_gap_)


@pytest.mark.slow
def test_means_of_a_race_share_their_rows(monkeypatch):
    monkeypatch.setattr(searches, "MOST_WORK", 4.0)
    X, y = load_digits(return_X_y=True)
    search = AssetClassifierCV(random_state=0).fit(X, y)
    assert sum(weight for _, weight in search.ensemble_) == pytest.approx(1.0)
    alone = AssetClassifierCV(random_state=0, ensemble=False).fit(X, y)
    assert len(alone.ensemble_) == 1 and not hasattr(alone.best_estimator_, "blend_")
    assert hasattr(search.best_estimator_, "blend_") == (len(search.ensemble_) > 1)


# Probabilities --------------------------------------------------------------------------------------


def test_probabilities_come_with_the_race():
    X, X_out, y, y_out = train_test_split(X_MOONS, Y_MOONS, random_state=0)
    search = AssetClassifierCV(random_state=0, probability=True).fit(X, y)
    found = search.predict_proba(X_out)
    np.testing.assert_allclose(found.sum(axis=1), 1.0)
    assert log_loss(y_out, found) < 0.4
    assert not hasattr(AssetClassifierCV(), "predict_proba")


# The budget -----------------------------------------------------------------------------------------


def test_work_is_counted_without_a_clock_and_seconds_with_one(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(our_clock, "now", lambda: now[0])
    assert budgets.clock is our_clock
    counted, limited = Budget(10.0), Budget(10.0, begun=100.0)
    for budget in (counted, limited):
        with budget.spending("map", 2.0):
            now[0] += 5.0
    assert counted.left == 8.0 and counted.seconds("map", 1.0) == 1.0
    assert limited.left == 0.0  # ten seconds have passed
    assert limited.seconds("map", 1.0) == pytest.approx((5.0 + 0.2) / (2.0 + 0.2))  # doubt
    assert limited.seconds("cells", 1.0) == 1.0
    counted.stopped = True
    assert counted.left == 0.0


def test_a_limit_that_leaves_no_time_still_gives_a_model():
    search = AssetClassifierCV(random_state=0, time_limit=1e-3).fit(X_MOONS, Y_MOONS)
    assert len(search.cv_results_["params"]) >= 1 and search.score(X_MOONS, Y_MOONS) > 0.7


def test_whoever_watches_may_stop_it():
    from asset_svm.search.inside import search_watched

    seen = []

    def watch(progress):
        seen.append(progress)
        return len(seen) == 3

    search = AssetClassifierCV(random_state=0)
    search_watched(search, X_MOONS, Y_MOONS, watch=watch)
    assert len(seen) == 3 and len(search.cv_results_["params"]) == seen[-1].done
    assert seen[-1].best_score == pytest.approx(max(seen[-1].mean_test_score), abs=0.02)


@pytest.mark.usefixtures("either_size")
def test_bad_input_is_told_and_loses_nothing(moons):
    model = clone(moons).fit(X_MOONS, Y_MOONS)
    before = model.predict(X_MOONS)
    with pytest.raises(ValueError, match="NaN"):
        model.fit(np.where(X_MOONS > 1, np.nan, X_MOONS), Y_MOONS)
    np.testing.assert_array_equal(model.predict(X_MOONS), before)
    with pytest.raises(ValueError, match="NaN"):
        model.predict(np.full((2, 2), np.nan))
    with pytest.raises(ValueError, match='ensemble="yes" is not a truth value'):
        AssetClassifierCV(ensemble="yes").fit(X_MOONS, Y_MOONS)
    with pytest.raises(ValueError, match="rows"):
        AssetClassifierCV(relevance="rows").fit(X_MOONS, Y_MOONS)


# What was found by trying to break it ----------------------------------------------------------------


def test_a_score_that_is_no_number_ends_the_search_with_a_sentence():
    with pytest.raises(ValueError, match="No candidate of the search has a score"):
        AssetClassifierCV(scoring=lambda *_: float("nan"), random_state=0).fit(X_MOONS, Y_MOONS)


def test_a_scorer_may_ask_how_many_rows_there_are():
    def share(model, X, y):
        return float((model.predict(X) == y).sum() / len(X))

    search = AssetClassifierCV(scoring=share, random_state=0, refit=False).fit(X_MOONS, Y_MOONS)
    assert search.best_score_ > 0.9


def test_a_model_that_learns_from_fewer_rows_knows_every_class():
    y = Y_MOONS.copy()
    y[:4] = 2
    search = AssetClassifierCV(time_limit=1e-6, random_state=0).fit(X_MOONS, y)
    assert search.best_estimator_.classes_.tolist() == [0, 1, 2]
    weight = np.zeros(400)
    weight[-12:] = 1.0
    AssetRegressorCV(time_limit=1e-6, random_state=0).fit(X_MOONS, X_MOONS[:, 0], weight)


def test_folds_of_any_size_judge_with_all_their_rows():
    groups = np.r_[0, np.repeat([1, 2], [199, 200])]
    search = AssetClassifierCV(cv=GroupKFold(3), random_state=0, refit=False)
    search.fit(X_MOONS, Y_MOONS, groups=groups)
    assert len(set(np.round(search.cv_results_["mean_test_score"], 6))) > 10
    assert search.leaderboard_.rows.max() > 300


@pytest.mark.usefixtures("either_size")
def test_groups_alone_are_kept_together():
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(40), 10)
    X = np.repeat(rng.normal(size=(40, 3)), 10, axis=0) + 1e-3 * rng.normal(size=(400, 3))
    y = np.repeat(rng.integers(0, 2, 40), 10)
    search = AssetClassifierCV(random_state=0, refit=False)
    assert search.fit(X, y, groups=groups).best_score_ < 0.8  # a group tells nothing of others
    assert search.fit(X, y).best_score_ > 0.95


@pytest.mark.usefixtures("either_size")
def test_probabilities_need_held_out_rows_of_every_class():
    split = [(np.arange(300), np.flatnonzero(Y_MOONS[300:] == 1) + 300)]
    with pytest.raises(ValueError, match="probabilities need rows of all"):
        AssetClassifierCV(probability=True, cv=split, random_state=0).fit(X_MOONS, Y_MOONS)


@pytest.mark.usefixtures("either_size")
def test_a_grid_after_a_race_keeps_nothing_of_it(moons):
    model = clone(moons).fit(X_MOONS, Y_MOONS)
    model.set_params(Cs=[1.0, 10.0], gammas=[1.0]).fit(X_MOONS, Y_MOONS)
    assert not hasattr(model, "leaderboard_")


@pytest.mark.usefixtures("either_size")
def test_columns_far_from_zero_keep_their_differences():
    near, far = (
        AssetClassifierCV(encoder=None, random_state=0, refit=False).fit(X_MOONS + shift, Y_MOONS)
        for shift in (0.0, 1e9)
    )
    assert far.best_score_ > near.best_score_ - 0.02


@pytest.mark.usefixtures("either_size")
def test_a_candidate_without_a_finite_model_is_left_behind():
    search = AssetClassifierCV(random_state=0).fit(X_MOONS * [1.0, 1e39], Y_MOONS)
    assert search.best_score_ > 0.9


def test_columns_of_one_value_are_told_or_done_without():
    frame = pd.DataFrame({"a": ["x"] * 119 + ["z"], "b": np.arange(120.0)})
    assert AssetClassifierCV(random_state=0).fit(frame, np.arange(120) > 60).best_score_ > 0.9
    with pytest.raises(ValueError, match="No candidate of the search has a score: No column of X"):
        AssetClassifierCV(random_state=0).fit(pd.DataFrame({"a": ["x"] * 120}), np.arange(120) % 2)


@pytest.mark.usefixtures("either_size")
@pytest.mark.parametrize("scale", [1e200, 1e-200])
def test_targets_of_any_size_have_units(scale):
    X, y = load_diabetes(return_X_y=True)
    search = AssetRegressorCV(random_state=0, ensemble=False).fit(X, y * scale)
    found = search.predict(X)
    assert np.isfinite(found).all() and np.corrcoef(found / scale, y)[0, 1] > 0.6


@pytest.mark.slow
def test_models_of_every_size_have_a_name_and_only_cells_have_more_than_two(monkeypatch):
    """A later round goes on from large cells, with one map, too, which has no such size."""
    monkeypatch.setattr(searches, "MOST_WORK", 12.0)
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(3000, 2))
    y = np.sin(9 * X[:, 0]) * np.sin(9 * X[:, 1]) > 0
    search = AssetClassifierCV("rbf", relevance=None, encoder=None, random_state=0, refit=False)
    found = search.fit(X, y).cv_results_["params"]
    assert any(one["cells"] and one["size"] > 0 for one in found)
    assert all(one["cells"] or one["size"] <= 1 for one in found)


def test_directions_of_a_kernel_that_has_none_are_refused_at_once():
    with pytest.raises(ValueError, match='relevance="directions" turns rows'):
        AssetClassifierCV("laplacian", relevance="directions").fit(X_MOONS, Y_MOONS)


def test_relevance_is_found_on_few_rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(800, 12))
    y = X[:, 0] * X[:, 1] > 0
    search = AssetClassifierCV(random_state=0, refit=False).fit(X, y)
    assert search.best_params_["relevance"] is not None and search.best_score_ > 0.9


def test_a_score_that_a_scorer_cannot_tell_is_none_and_its_own_words_are_told_where_all_are():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 3))
    y = X[:, 0] ** 2 + 0.1
    calls = []

    def odd(model, X, y):
        calls.append(len(y))
        if len(calls) % 2:
            raise ValueError("a deviance needs predictions above 0")
        return -float(np.mean((model.predict(X) - y) ** 2))

    search = AssetRegressorCV(scoring=odd, random_state=0).fit(X, y)
    scores = search.leaderboard_["score"]
    assert np.isfinite(search.best_score_) and scores.isna().any() and scores.notna().any()
    with pytest.raises(ValueError, match="No candidate of the search has a score: of no use"):
        AssetRegressorCV(scoring=never, random_state=0).fit(X, y)


def never(model, X, y):
    raise ValueError("of no use")


@pytest.mark.parametrize("count", [pytest.param(2, marks=pytest.mark.slow), 3, 9])
def test_groups_are_kept_together_in_as_many_folds_as_there_are(count):
    groups = np.arange(len(Y_MOONS)) % count
    search = AssetClassifierCV("rbf", random_state=0, refit=False, encoder=None)
    assert search.fit(X_MOONS, Y_MOONS, groups=groups).n_splits_ == min(count, 5)
    weight = (groups < 2).astype(float)  # the others count for nothing
    assert search.fit(X_MOONS, Y_MOONS, weight, groups).n_splits_ == 2
    with pytest.raises(ValueError, match="groups has one group of rows with a positive weight"):
        search.fit(X_MOONS, Y_MOONS, groups=np.zeros(len(Y_MOONS)))
