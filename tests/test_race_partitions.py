"""The partitions of a race's final model: as many as there is time for, and no row need judge them."""

from dataclasses import replace

import numpy as np
import pytest

from asset_svm import (
    AssetClassifier,
    AssetClassifierCV,
    AssetQuantileRegressorCV,
    AssetRegressor,
    AssetRegressorCV,
)
from asset_svm.families.cells.partitions import grow_partition
from asset_svm.search.auto import final as finals
from asset_svm.search.auto import guesses as guessing
from asset_svm.search.auto import looks as looking
from asset_svm.search.auto.columns import Columns
from asset_svm.search.auto.final import Members, filled
from asset_svm.search.auto.looks import Looks
from asset_svm.search.auto.outcome import Outcome
from asset_svm.search.auto.parts import Part
from asset_svm.search.auto.race import Axes, Race
from asset_svm.search.auto.shapes import MOST_PARTITIONS, PARTITIONS, Candidate, Shape
from asset_svm.search.cells import ROUGH_TOLERANCE, CellSearch
from test_race_time import IN_CELLS, ON_MAP, judged, looks_of

ROWS = 6000


def outcome_of(*found, **fixed) -> Outcome:
    """The outcome of a race over 6000 rows, whose looks have found this."""
    looks = replace(looks_of(ROWS, 1000), fixed=fixed)
    return Outcome(looks, list(found), list(range(len(found))))


def partitions_of(members: Members) -> list[int]:
    return [each.candidate.copies for each in members.judged]


def members_of(*found) -> Members:
    shares = np.full(len(found), 1.0 / len(found))
    return Members(list(found), shares, shares)


def test_a_model_in_cells_has_as_many_partitions_as_there_is_time_for():
    usual = judged(Candidate(IN_CELLS), 5000, 0.1)
    outcome = outcome_of(usual)
    takes = [
        outcome.looks.training_seconds(usual.with_partitions(count), ROWS)
        for count in range(1, MOST_PARTITIONS + 1)
    ]
    assert np.all(np.diff(takes) > 0.0)
    for count, seconds in enumerate(takes, start=1):
        time = 1.001 * seconds / finals.ROOM
        assert partitions_of(filled(members_of(usual), outcome, ROWS, time)) == [count]
    assert partitions_of(filled(members_of(usual), outcome, ROWS, 0.0)) == [1]
    assert partitions_of(filled(members_of(usual), outcome, ROWS, np.inf)) == [MOST_PARTITIONS]


def test_no_model_loses_partitions_that_it_was_judged_with():
    several = judged(Candidate(IN_CELLS, size=1), 5000, 0.1)
    usual = judged(Candidate(IN_CELLS, C=3.0), 5000, 0.1)
    outcome = outcome_of(several, usual)
    both = members_of(several, usual)
    assert partitions_of(filled(both, outcome, ROWS, 0.0)) == [PARTITIONS, 1]
    takes = sum(
        outcome.looks.training_seconds(each, ROWS) for each in (several, usual.with_partitions(3))
    )
    assert partitions_of(filled(both, outcome, ROWS, takes / finals.ROOM)) == [PARTITIONS, 3]


@pytest.mark.parametrize(
    ("candidate", "fixed"),
    [
        (Candidate(ON_MAP), {}),
        (Candidate(IN_CELLS, size=2), {}),  # one cell, of which partitions are all the same
        (Candidate(IN_CELLS), {"n_partitions": 1}),
        (Candidate(IN_CELLS), {"n_cells": 1}),
    ],
    ids=["map", "one cell", "fixed partitions", "one cell that is fixed"],
)
def test_partitions_that_would_change_nothing_or_are_fixed_are_left(candidate, fixed):
    found = judged(candidate, 5000, 0.1)
    outcome = outcome_of(found, **fixed)
    members = filled(members_of(found), outcome, ROWS, np.inf)
    assert members.judged == [found]


def test_the_best_is_chosen_by_what_it_will_lose_with_its_partitions():
    """One partition loses 0.20, four 0.14: infinitely many lose 0.12, and eight 0.13."""
    one = judged(Candidate(IN_CELLS), 5000, 0.20)
    four = judged(Candidate(IN_CELLS, size=1), 5000, 0.14)
    on_map = judged(Candidate(ON_MAP), 5000, 0.135)
    other = judged(Candidate(replace(IN_CELLS, kernel="exponential")), 5000, 0.136)
    outcome = outcome_of(on_map, other, four, one)
    assert outcome._expected(2, ROWS, np.finfo(float).max) == pytest.approx(0.13)
    assert outcome._expected(3, ROWS, np.finfo(float).max) == pytest.approx(0.13)
    assert outcome._expected(1, ROWS, np.finfo(float).max) == 0.136  # nobody has looked at several
    assert outcome._expected(0, ROWS, np.finfo(float).max) == 0.135
    assert outcome.with_partitions(ROWS, np.finfo(float).max).best is four
    assert outcome.with_partitions(ROWS, 0.0).best is on_map
    assert outcome.with_partitions(ROWS, np.inf).best is on_map


def test_scores_that_count_upwards_are_compared_as_losses_are():
    """A loss of a user's score is the score with its sign turned, and below 0."""
    simple = judged(Candidate(ON_MAP), 5000, -0.7922)
    better = judged(Candidate(IN_CELLS), 5000, -0.8059)
    outcome = outcome_of(simple, better)  # alike, of which the simpler is the first
    assert outcome.with_partitions(ROWS, np.finfo(float).max).best is simple
    one = judged(Candidate(IN_CELLS), 5000, -0.80)
    four = judged(Candidate(IN_CELLS, size=1), 5000, -0.86)
    on_map = judged(Candidate(ON_MAP), 5000, -0.84)
    outcome = outcome_of(on_map, four, one)
    assert outcome._expected(1, ROWS, np.finfo(float).max) == pytest.approx(-0.87)
    assert outcome.with_partitions(ROWS, np.finfo(float).max).best is four


def test_partitions_that_lose_more_than_one_promise_nothing():
    one = judged(Candidate(IN_CELLS), 5000, 0.10)
    four = judged(Candidate(IN_CELLS, size=1), 5000, 0.12)
    outcome = outcome_of(one, four)
    assert outcome._expected(0, ROWS, np.finfo(float).max) == 0.10


@pytest.mark.filterwarnings("ignore:.* changed nothing")
def test_a_partition_that_there_is_no_time_for_is_not_begun(ticks, monkeypatch):
    """By this clock a second passes from look to look: the first partition tells what they take."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(600, 2))
    y = np.where(X[:, 0] * X[:, 1] > 0, 1, -1)
    settings = dict(gamma=2.0, n_cells=3, n_partitions=6, random_state=0, n_jobs=1)
    begun = ticks.looks
    AssetClassifier(**settings, time_limit=1e9).fit(X, y)
    whole = ticks.looks - begun
    begun = ticks.looks
    model = AssetClassifier(**settings, time_limit=0.55 * whole).fit(X, y)
    assert 1 < len(model.cells_) < 4
    assert all(record["converged"] for record in model.history_)  # none was cut short
    assert ticks.looks - begun < 0.6 * whole


@pytest.mark.parametrize("regression", [False, True])
def test_best_params_and_the_name_tell_the_partitions_that_the_model_has(regression, monkeypatch):
    monkeypatch.setattr("asset_svm.search.auto.search.MOST_WORK", 8.0)
    rng = np.random.default_rng(0)
    X = rng.uniform(-3, 3, size=(3300, 2))
    y = np.sin(3 * X).sum(axis=1) + 0.3 * rng.normal(size=3300)
    kind = AssetRegressorCV if regression else AssetClassifierCV
    search = kind("rbf", relevance=None, encoder=None, n_cells=6, ensemble=False, random_state=0)
    search.fit(X, y if regression else y > 0)
    count = search.best_params_["n_partitions"]
    assert count == len(search.best_estimator_.cells_) == search.best_estimator_.n_partitions > 1
    assert search.ensemble_[0][0].startswith("rbf") and f"cells x{count}" in search.ensemble_[0][0]
    again = search.best_estimator_.__class__(**search.best_params_, random_state=0)
    again.fit(X, y if regression else y > 0)
    assert np.array_equal(again.predict(X), search.predict(X))


def test_a_model_cut_short_of_its_partitions_says_so(monkeypatch):
    """Where they take longer than was guessed, fewer are trained, and their number is told."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-3, 3, size=(2400, 2))
    y = np.sin(3 * X).sum(axis=1) > 0
    monkeypatch.setattr("asset_svm.families.cells.fit._is_last", lambda count, *_: count == 2)
    search = AssetClassifierCV(
        "rbf", relevance=None, encoder=None, n_cells=4, ensemble=False, time_limit=6.0, random_state=0
    ).fit(X, y)
    assert len(search.best_estimator_.cells_) == search.best_params_["n_partitions"] == 2
    assert "cells x2" in search.ensemble_[0][0]
    assert search.best_params_["tol"] == search.best_estimator_.tol == ROUGH_TOLERANCE


def test_partitions_that_were_asked_for_stay_those_of_the_estimator(monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.uniform(-3, 3, size=(1200, 2))
    y = np.sin(3 * X).sum(axis=1) > 0
    monkeypatch.setattr("asset_svm.families.cells.fit._is_last", lambda count, *_: count == 2)
    search = AssetClassifierCV(
        "rbf", relevance=None, encoder=None, n_cells=3, n_partitions=5, ensemble=False,
        time_limit=5.0, random_state=0,
    ).fit(X, y)  # fmt: skip
    assert len(search.best_estimator_.cells_) == 2
    assert search.best_params_["n_partitions"] == search.best_estimator_.n_partitions == 5


def race_of(shapes: dict[Shape, float], hurried: bool) -> Race:
    looks = looks_of(ROWS, 1000)
    race = Race(looks, Axes(("given",), ("rbf",), (None,), (False, True)), ROWS, hurried=hurried)
    race.history = [judged(Candidate(shape), 4000, loss) for shape, loss in shapes.items()]
    return race


LOSSES = {
    Shape("given", "rbf", "columns"): 0.10,
    Shape("given", "exponential", "columns"): 0.11,
    Shape("given", "rbf"): 0.12,
    Shape("pieces", "rbf"): 0.125,
    Shape("given", "rbf", "columns", cells=True): 0.13,
    Shape("given", "rbf", None, cells=True): 0.14,
}


def test_a_short_race_goes_on_with_the_best_of_either_family_and_one_that_learns_no_relevance():
    kept = [
        each.shape for each in race_of(LOSSES, hurried=True)._kept(race_of(LOSSES, True).history, 2)
    ]
    first, second, plain, _, cells, _ = LOSSES
    assert sorted(map(str, kept)) == sorted(map(str, [first, plain, cells])) and kept[0] == first
    assert second not in kept
    every = [
        each.shape for each in race_of(LOSSES, hurried=False)._kept(race_of(LOSSES, False).history, 2)
    ]
    assert {first, second, plain}.issubset(every) and len(every) > len(kept)


def test_a_family_that_is_far_behind_is_not_tried_with_other_shapes():
    on_map, cells = Shape("given", "rbf"), Shape("given", "rbf", None, cells=True)
    assert race_of({}, hurried=False)._families(4000) == (False, True)
    assert race_of({on_map: 0.2, cells: 0.1}, hurried=False)._families(4000) == (True,)
    assert race_of({on_map: 0.1, cells: 0.2}, hurried=False)._families(4000) == (False,)
    assert race_of({on_map: 0.11, cells: 0.1}, hurried=False)._families(4000) == (False, True)


def test_larger_cells_are_tried_only_while_larger_ones_gain(monkeypatch):
    race = race_of({IN_CELLS: 0.2}, hurried=False)
    race.looks.n_rows = 40_000
    tried = []

    def enlarge(best, size, count):
        tried.append(size)
        return replace(best, candidate=best.candidate.changed(size=size), loss=losses[size])

    monkeypatch.setattr(race, "_enlarge", enlarge)
    losses = {1: 0.15, 3: 0.15, 4: 0.1}
    race._grow(race.history[0], 4000)
    assert tried == [1, 3]  # which gains nothing
    tried.clear()
    losses[3] = 0.12
    race._grow(race.history[0], 4000)
    assert tried == [1, 3, 4]


@pytest.mark.parametrize("size", [0, 1])
def test_every_fold_has_cells_of_its_own_rows(size, monkeypatch):
    """Folds that learn a relevance have rows of their own, in an order of their own."""
    m = 2400
    looks = looks_of(m, 400)
    order = np.random.default_rng(1).permutation(m)
    parts = [Part(order[400:], order[:400]), Part(order[: m - 400], order[m - 400 :])]
    looks = Looks(
        Columns(looks.columns.given, parts, looks.columns.settings), looks.budget, None, looks.seed
    )
    seen = []

    class Recorded(CellSearch):
        def lines(self, *given):
            seen.append((self.rows.X, self.seed, self.groups))
            return super().lines(*given)

    monkeypatch.setattr(looking, "CellSearch", Recorded)
    looks.look(Candidate(Shape("given", "rbf", "columns", cells=True), size=size), (1.0,), 2000, 400)
    assert len(seen) == 2 * (PARTITIONS if size else 1)
    for X, seed, groups in seen:
        own = grow_partition(X, 2, looks.seed, seed - looks.seed)[1]
        assert len(groups) == len(own) == 2
        assert all(np.array_equal(one, other) for one, other in zip(groups, own, strict=True))


def test_larger_cells_of_which_some_are_solved_are_judged_by_rows_that_all_judge(monkeypatch):
    """Looks beside each other are no finalists: others are judged by other rows."""
    monkeypatch.setattr("asset_svm.search.auto.race.MORE", 3000)
    monkeypatch.setattr(guessing, "FEWEST_SOLVED", 4200)
    monkeypatch.setattr(guessing, "SOLVED", 1)
    looks = looks_of(ROWS, 2500)
    race = Race(looks, Axes(("given",), ("rbf",), (None,), (True,)), ROWS)
    (best,) = race._try(Candidate(IN_CELLS, C=1.0), (1.0,), 3000, 1.0)
    before = len(race.history)
    tried = []
    look = looks.look

    def recorded(candidate, Cs, count, judging):
        tried.append((candidate.size, count, judging))
        return look(candidate, Cs, count, judging)

    monkeypatch.setattr(looks, "look", recorded)
    monkeypatch.setattr(race, "_gains", lambda found, best: True)
    larger = race._enlarge(best, 1, 3000)
    assert tried == [(0, 3000, 1200), (1, 3000, 1200)]
    assert race.history[before:] == [larger] and larger.judging == best.judging
    assert race._enlarge(best, 1, 3000) is larger and len(tried) == 2
    Outcome.of(looks, race.history)  # compares the losses of rows


def test_squares_are_tried_and_taken_where_they_gain():
    """Of skewed targets the tube finds something near the median, and R^2 asks for the mean."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, size=(900, 2))
    scale = np.exp(X[:, 0])
    y = rng.exponential(scale) ** 1.2
    search = AssetRegressorCV(relevance=None, encoder=None, ensemble=False, random_state=0).fit(X, y)
    params = search.cv_results_["params"]
    losses = {one["loss"] for one in params}
    assert losses == {"epsilon_insensitive", "squared_epsilon_insensitive"}
    squares = [one["loss"] == "squared_epsilon_insensitive" for one in params]
    assert np.mean(squares) > 0.5  # all that follows the first has them
    assert search.best_params_["loss"] == search.best_estimator_.loss == "squared_epsilon_insensitive"
    assert "squares" in search.ensemble_[0][0]
    again = AssetRegressor(**search.best_params_, random_state=0).fit(X, y)
    np.testing.assert_array_equal(again.predict(X), search.predict(X))


def test_quantiles_and_several_outputs_keep_their_loss():
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, size=(300, 2))
    Y = np.column_stack([X[:, 0] ** 2, X.sum(axis=1)]) + 0.1 * rng.normal(size=(300, 2))
    search = AssetRegressorCV("rbf", relevance=None, encoder=None, random_state=0).fit(X, Y)
    assert "loss" not in search.best_params_
    found = AssetQuantileRegressorCV("rbf", relevance=None, encoder=None, random_state=0).fit(
        X, Y[:, 0]
    )
    assert "loss" not in found.best_params_ and "loss" not in found.cv_results_["params"][0]
