"""What a race does with its time: guesses of looks and models; what short ones leave out."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from asset_svm import AssetClassifier, TableEncoder, clock
from asset_svm.arrays import Array
from asset_svm.encoding.frames import as_table
from asset_svm.estimators.inside import settings_of, task_of
from asset_svm.search.all_rows import HeldRows
from asset_svm.search.auto import confirm as confirming
from asset_svm.search.auto import guesses, parts
from asset_svm.search.auto import search as searches
from asset_svm.search.auto.budget import Budget
from asset_svm.search.auto.columns import Columns, Given, Lesson
from asset_svm.search.auto.final import Members, rows_in_time, train
from asset_svm.search.auto.guesses import FEWEST_SOLVED, MOST_SOLVED
from asset_svm.search.auto.judged import Judged
from asset_svm.search.auto.larger import larger_sizes
from asset_svm.search.auto.looks import Looks
from asset_svm.search.auto.outcome import Outcome
from asset_svm.search.auto.parts import Part
from asset_svm.search.auto.race import Axes, Race
from asset_svm.search.auto.search import Asked, axes_of, run_race
from asset_svm.search.auto.shapes import Candidate, Shape
from asset_svm.search.cells import CellSearch
from asset_svm.tasks import for_targets
from asset_svm.threads.granted import grant

ON_MAP, IN_CELLS = Shape("given", "rbf"), Shape("given", "rbf", None, cells=True)


def given_rows(X: Array, y: Array) -> Given:
    model = AssetClassifier()
    task = for_targets(task_of(model, settings_of(model)), y).settled(y, np.ones(len(y)))
    encoders = {name: TableEncoder(numbers=name) for name in ("standard", "pieces")}
    return Given(X, as_table(X), y, np.ones(len(y)), task, encoders)


def looks_of(m: int, judging: int, seconds: float = 60.0, classes: int = 2, **budget: float) -> Looks:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(m, 4)), np.arange(m) % classes
    part = Part(np.arange(m - judging), np.arange(m - judging, m))

    def settings(params):
        return settings_of(AssetClassifier(**({"n_components": 64} | params)))

    return Looks(Columns(given_rows(X, y), [part], settings), Budget(seconds, **budget), None, 0)


def judged(candidate: Candidate, rows: int, loss: float, seconds: float = 1.0) -> Judged:
    none = np.zeros((1, 1))
    return Judged(candidate, rows, 1000, none, none[0], loss, 1.0 - loss, seconds, training=seconds)


def test_a_look_at_few_rows_costs_the_same_however_many_are_held_out():
    looks = looks_of(20_000, 10_000)
    few = [looks.seconds(Candidate(ON_MAP), 3, 4000, held) for held in (4000, 90_000)]
    assert few[0] == few[1] < looks.seconds(Candidate(ON_MAP), 3, 10_000, 90_000)


@pytest.mark.parametrize(
    ("seconds", "rows"), [(1.0, FEWEST_SOLVED), (20.0, 30_000), (600.0, MOST_SOLVED)]
)
def test_a_short_race_solves_fewer_cells_in_a_look(seconds, rows):
    assert looks_of(100, 20, seconds).most_solved == rows


def test_a_relevance_that_takes_long_is_learnt_from_fewer_rows_and_then_on_one_map():
    candidate = Candidate(replace(IN_CELLS, relevance="directions"))
    lessons = [looks_of(100, 20, seconds).lesson(candidate, 20_000) for seconds in (1000.0, 21.0, 0.1)]
    assert lessons[0] == Lesson(20_000, True) and lessons[-1] == Lesson(4000, False)
    assert 4000 <= lessons[1].rows <= 16_000


def test_what_is_learnt_from_few_rows_serves_looks_at_more():
    looks = looks_of(2000, 500, classes=2)
    y = (looks.columns.given.X[:, 0] * looks.columns.given.X[:, 1] > 0).astype(int)
    given = replace(looks.columns.given, y=y)
    columns = Columns(given, looks.columns.parts, looks.columns.settings)
    shape = replace(ON_MAP, relevance="columns")
    lesson = Lesson(600, False)
    few = columns.prepared(shape, 0, 600, 100, lesson)
    assert columns.is_learnt(replace(shape, cells=True), 0, lesson, 1500)
    (known,) = columns.learnt.values()
    more = columns.prepared(replace(shape, cells=True), 0, 1500, 100, lesson)
    assert list(columns.learnt.values()) == [known] and known.relevance is not None
    np.testing.assert_allclose(more.rows.X[:600], few.rows.X[:600], rtol=1e-6)
    assert not columns.is_learnt(shape, 0, Lesson(1500, False), 1500)
    again = Columns(given, looks.columns.parts, looks.columns.settings)
    again.prepared(shape, 0, 1500, 100, lesson)  # the first 600 of them, whoever asks first
    (other,) = again.learnt.values()
    np.testing.assert_allclose(other.relevance(given.X[:5]), known.relevance(given.X[:5]), rtol=1e-6)


@pytest.mark.parametrize(("limit", "anew"), [(1.0, False), (1e4, True), (None, True)])
def test_a_final_model_that_would_learn_for_too_long_has_the_relevance_it_was_judged_with(limit, anew):
    """A relevance of 300 rows, which is not that of the 600 that the final model learns from."""
    budget = {} if limit is None else {"begun": clock.now()}
    looks = looks_of(600, 200, limit or 60.0, **budget)
    X = looks.columns.given.X
    looks.columns.given = replace(looks.columns.given, y=(X[:, 0] * X[:, 1] > 0).astype(int))
    shape = Shape("given", "rbf", "columns")
    found = looks.look(Candidate(shape), (1.0, 10.0), 300, 200)
    (known,) = looks.columns.learnt.values()
    assert [each.learnt for each in found] == [known, known]
    assert looks.reuses(Candidate(shape), 600) is not anew
    outcome = Outcome.of(looks, found)
    rows = HeldRows(X, looks.columns.given.y, None, np.arange(600))
    model, learnt, _ = train(Members.alone(outcome.best), outcome, fitter, {}, rows, np.inf)
    assert learnt == 600
    assert np.array_equal(model.relevance_, known.relevance.weights) is not anew


def fitter(**params):
    return AssetClassifier(**(params | {"n_components": 64, "random_state": 0}))


def test_only_columns_as_they_are_keep_a_relevance():
    looks = looks_of(600, 200, 1.0, begun=clock.now())
    shapes = [Shape(encoding, "rbf", "columns") for encoding in ("given", "standard", "pieces")]
    reused = [looks.reuses(Candidate(shape), 600) for shape in [*shapes, ON_MAP]]
    assert reused == [True, False, False, False]
    assert not replace(looks, reading=1.0).reuses(Candidate(shapes[0]), 600)


@pytest.mark.parametrize("numbers", ["standard", "pieces"])
def test_a_relevance_of_other_columns_is_learnt_again(numbers):
    """More rows have a level that few have not: what was learnt of few does not fit."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.normal(size=2000), "b": np.where(rng.random(2000) < 0.5, "x", "y")})
    frame.loc[1900:1950, "b"] = "rare"
    y = (frame.a > 0).to_numpy().astype(int)
    encoders = {numbers: TableEncoder(numbers=numbers)}
    task = for_targets(task_of(AssetClassifier(), settings_of(AssetClassifier())), y)
    given = Given(None, as_table(frame), y, np.ones(2000), task.settled(y, np.ones(2000)), encoders)
    part = Part(np.arange(1960), np.arange(1960, 2000))
    columns = Columns(given, [part], lambda params: settings_of(AssetClassifier(**params)))
    shape, lesson = Shape(numbers, "rbf", "columns"), Lesson(400, False)
    few = columns.prepared(shape, 0, 400, 40, lesson).rows.X
    assert columns.is_learnt(shape, 0, lesson, 1000) and columns.is_learnt(shape, 0, lesson, 1960)
    same = columns.prepared(shape, 0, 1000, 40, lesson).rows.X
    assert same.shape[1] == few.shape[1] and len(columns.learnt) == 1
    more = columns.prepared(shape, 0, 1960, 40, lesson).rows.X
    assert more.shape[1] > few.shape[1] and len(columns.learnt) == 2


def test_columns_that_are_standard_already_are_not_standardised_besides():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(3000, 3)), np.arange(3000) % 2
    asked = Asked(None, "auto", None, {})
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    assert axes_of(given_rows(X, y), asked).encodings == ("given", "pieces")
    for other in (X * [1.0, 2.0, 1.0], X + 9.0):  # differences far from 0 lose digits
        assert axes_of(given_rows(other, y), asked).encodings == ("standard", "given", "pieces")


def test_a_slow_look_tells_what_models_like_it_take():
    looks = looks_of(3000, 1000, begun=0.0)
    usual, large = Candidate(IN_CELLS, C=100.0), Candidate(IN_CELLS, C=100.0, size=1)
    before = looks.seconds(large, 1, 2000, 1000), looks.final_seconds(large, 3000)
    slow = judged(usual, 2000, 0.1, seconds=50.0)
    looks.found[usual, 2000, 1000] = slow
    after = looks.seconds(large, 1, 2000, 1000), looks.final_seconds(large, 3000)
    assert after[0] > 10.0 * before[0] and after[1] > 10.0 * before[1]
    assert looks.training_seconds(slow, 3000) > 20.0


def test_kernels_of_an_encoding_that_is_far_behind_come_last(monkeypatch):
    looks = looks_of(2000, 500)
    race = Race(looks, Axes(("standard", "pieces"), ("rbf", "laplacian"), (None,), (False,)), 2000)
    losses, tried = {"standard": 0.1, "pieces": 0.3}, []

    def look(candidate, Cs, count, end):
        tried.append((candidate.shape.encoding, candidate.shape.kernel))
        loss = losses[candidate.shape.encoding] + (0.01 if candidate.factor != 1.0 else 0.0)
        found = [judged(candidate.changed(C=C), count, loss) for C in Cs]
        race.history += found
        return found

    monkeypatch.setattr(race, "_try", look)
    race._screen(1000)
    order = list(dict.fromkeys(tried))
    assert order[:3] == [("standard", "rbf"), ("pieces", "rbf"), ("standard", "laplacian")]
    assert order[-1] == ("pieces", "laplacian")
    assert race._kept(race.history, 9) and all(
        each.shape.encoding == "standard" for each in race._kept(race.history, 9)
    )


def test_what_is_fixed_of_a_family_is_what_looks_look_at():
    """Of fewer rows there are fewer cells, of the size that those of all rows will have."""
    looks = replace(looks_of(20_000, 4000), fixed={"n_cells": 10})
    cells, on_map = Candidate(IN_CELLS), Candidate(ON_MAP)
    assert looks.cell_sizes(cells, 20_000) == ([2000] * 10, 1)
    assert looks.cell_sizes(cells, 4000) == ([2000] * 2, 1)
    assert looks.cell_sizes(cells.changed(size=1), 20_000) == ([2000] * 10, 4)
    assert looks.cell_sizes(cells, 100) == ([100], 1)
    assert larger_sizes(looks, cells) == (1,)  # with partitions, which are open
    looks = replace(looks, fixed={"n_cells": 10, "n_partitions": 2})
    assert larger_sizes(looks, cells) == ()
    few = replace(looks, fixed={"n_components": 60, "landmarks": "uniform"})
    assert few.landmarks(on_map, 4000) == few.landmarks(on_map, 16_000) == 60
    assert larger_sizes(few, on_map) == ()
    more, all_ = (replace(few, fixed={"n_components": s}) for s in (5000, 2000))
    assert more.final_seconds(on_map, 2000) == all_.final_seconds(on_map, 2000)
    usual = replace(looks, fixed={})
    assert usual.cell_sizes(cells, 4000) == ([1000] * 4, 1) and usual.landmarks(on_map, 4000) == 512
    assert larger_sizes(usual, on_map) == (1,)


def test_cells_of_which_only_some_are_solved_are_not_left_for_what_all_rows_have_judged(monkeypatch):
    monkeypatch.setattr(parts, "FEW_ROWS", 300)
    monkeypatch.setattr(searches, "SHORT", 0.5)
    rng = np.random.default_rng(0)
    X = rng.uniform(-3.0, 3.0, size=(2400, 2))
    given = given_rows(X, (np.sin(4.0 * X).sum(axis=1) > 0).astype(int))
    asked = Asked("rbf", None, None, {})

    def learner(**params):
        return AssetClassifier(**params)

    monkeypatch.setattr(searches, "MOST_WORK", 8.0)
    monkeypatch.setattr("asset_svm.search.auto.confirm.ENOUGH", 0)
    for most, folds in ((75_000, {1, 5}), (1000, {1})):
        monkeypatch.setattr(guesses, "MOST_SOLVED", most)
        monkeypatch.setattr(guesses, "FEWEST_SOLVED", most)
        outcome, _ = run_race(learner, given, asked, None, None, 0, 0.0, None, None, ensemble=False)
        assert set(outcome.leaderboard()["folds"]) == folds
        best = min(each.loss for each in outcome.history if each.rows == outcome.best.rows)
        assert outcome.best.loss <= 1.2 * best


def test_a_machine_that_sleeps_between_two_looks_ends_the_race_with_what_there_is(monkeypatch):
    looks = looks_of(9000, 2000, 100.0)
    race = Race(looks, Axes(("given",), ("rbf",), (None,), (False,)), 9000)
    race.history = [judged(Candidate(ON_MAP), 4000, 0.1)]
    asked = []
    monkeypatch.setattr(race, "_try", lambda *given: asked.append(given) or [])
    race._finish()
    assert asked[0][2] == 7000 and race.history[0].rows == 4000


def sizes_of_cells(n_rows: int) -> list[dict]:
    looks = looks_of(n_rows, 100)
    candidate = Candidate(IN_CELLS)
    sizes = larger_sizes(looks, candidate)
    return [looks.family(candidate.changed(size=size), n_rows) for size in sizes]


def test_one_cell_has_no_partitions_and_stands_for_every_larger_size_that_is_one():
    assert sizes_of_cells(1400) == []  # the usual cells are one already
    several = {"n_cells": "auto", "n_partitions": 4}
    assert sizes_of_cells(3000) == sizes_of_cells(5000) == [several, {"n_cells": 1}]
    larger = [{"n_cells": count, "n_partitions": 4} for count in (15, 7)]
    assert sizes_of_cells(30_000) == [several, *larger]


def test_counted_work_is_that_of_the_sweeps_that_were_done():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1200, 4))
    y = np.sign(np.sin(3 * X[:, 0]) + X[:, 1] + 0.5 * rng.normal(size=1200)) > 0
    part = Part(np.arange(1000), np.arange(1000, 1200))

    def settings(params):
        return settings_of(AssetClassifier(**params))

    spent, guesses = [], []
    for C in (1.0, 1e4):
        looks = Looks(Columns(given_rows(X, y), [part], settings), Budget(60.0), None, 0)
        candidate = Candidate(IN_CELLS, 4.0, C)
        looks.look(candidate, (C,), 1000, 200)
        (found,) = looks.found.values()
        spent.append(looks.budget.used)
        assert found.training <= looks.budget.used
        # What comes next is guessed by it.
        guesses.append(looks.seconds(candidate.changed(factor=8.0), 1, 1000, 200))
    foreseen = looks_of(1200, 200).work(Candidate(IN_CELLS, 4.0), 1, 1000, 200)[1]
    assert spent[0] == pytest.approx(foreseen, rel=0.2), "little work takes what it was guessed to"
    assert spent[1] > 5 * spent[0] and guesses[1] > 5 * guesses[0]


def test_rows_are_given_up_only_where_fewer_take_less():
    board = Outcome.of(looks_of(3000, 600, 5.0, begun=0.0), [judged(Candidate(ON_MAP), 1000, 0.1)])
    rows = HeldRows(np.zeros((3000, 4)), np.arange(3000) % 2, None, np.arange(3000))
    for fixed, kept in ((0.0, 1800), (90.0, 3000)):

        def takes(each, count, fixed=fixed):
            return fixed + 10.0 * count / 3000

        board.looks.training_seconds = takes
        assert rows_in_time(board, Members.alone(board.best), rows, 4.0).n_rows == kept


def test_partitions_are_work_of_their_own_once_a_partition():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 4))
    y = (X[:, 0] + X[:, 1] ** 2 > 0.5).astype(int)
    part = Part(np.arange(2400), np.arange(2400, 3000))

    def settings(params):
        return settings_of(AssetClassifier(**params))

    looks = Looks(Columns(given_rows(X, y), [part], settings), Budget(60.0, begun=0.0), None, 0)
    candidate = Candidate(IN_CELLS, 4.0)
    before = looks.seconds(candidate, 1, 2400, 600)
    nominal = looks.growing_work(candidate, 3000)
    assert nominal == guesses.GROWING * 3000 * 4
    copying = looks.encoding_work(candidate, 3000)
    assert copying == guesses.COPYING * 3000 * 4
    assert before == pytest.approx(looks.work(candidate, 1, 2400, 600)[1] + nominal + copying)
    looks.look(candidate, (10.0,), 2400, 600)
    looks.look(candidate, (1.0,), 2400, 600)  # in the same cells
    done, took = looks.budget.work["growing"]
    assert done == nominal and took > 0.0
    first = next(iter(looks.found.values()))
    assert first.training <= first.seconds - took + 1e-9
    looks.budget.work["growing"] = (1.0, 50.0)  # partitions are dear here
    assert looks.final_seconds(candidate, 3000) > 40.0 * nominal


def test_a_look_by_the_clock_times_its_sweeps_and_matrices_alone(monkeypatch):
    taken = []
    lines = CellSearch.lines

    def watched(self, *args):
        for found in lines(self, *args):
            taken.append((found.sweeping, found.matrices, found.fit_seconds))
            yield found

    monkeypatch.setattr(CellSearch, "lines", watched)
    looks = looks_of(3000, 600, 60.0, 4, begun=0.0)
    with grant(1):
        one, other = looks.look(Candidate(IN_CELLS, 4.0), (1.0, 10.0), 2400, 600)
    ((sweeping, matrices, seconds),) = taken
    assert matrices > 0.0 and sweeping > 0.0 and matrices + sweeping <= seconds
    assert one.swept == other.swept == pytest.approx(sweeping / 2 + matrices)
    looks = looks_of(3000, 600, 60.0, 4)  # work, which is the same on every machine
    (nominal,) = looks.look(Candidate(IN_CELLS, 4.0), (10.0,), 2400, 600)
    (again,) = looks_of(3000, 600, 60.0, 4).look(Candidate(IN_CELLS, 4.0), (10.0,), 2400, 600)
    assert nominal.swept == nominal.training == again.swept > 0.0


def test_rows_of_a_look_are_copied_once():
    looks = looks_of(3000, 600, 60.0, begun=0.0)
    columns = looks.columns
    lesson = Lesson(2400, False)
    first = columns.prepared(IN_CELLS, 0, 2400, 600, lesson)
    again = columns.prepared(ON_MAP, 0, 2400, 600, lesson)
    assert again.rows.X is first.rows.X
    part = columns.parts[0]
    assert np.array_equal(first.rows.X[:2400], columns.numbers[part.learning])
    assert np.array_equal(first.rows.X[2400:], columns.numbers[part.judging])
    assert looks._new_encoding_work(Candidate(IN_CELLS), 2400, 600) == 0.0


def test_a_model_that_others_train_takes_nothing_of_a_race():
    looks = looks_of(3000, 600)
    elsewhere = Looks(looks.columns, looks.budget, None, 0, n_rows=10**9, elsewhere=True)
    for each in (Candidate(ON_MAP), Candidate(IN_CELLS)):
        assert elsewhere.final_seconds(each, 10**9) == 0.0
        assert elsewhere.training_seconds(judged(each, 2400, 0.1), 10**9) == 0.0
    assert confirming._looks(elsewhere, looks.columns.parts).elsewhere


def test_small_cells_of_several_classes_take_as_final_models_what_their_sweeps_take():
    for classes, several in ((2, False), (4, True)):
        looks = looks_of(3000, 600, 60.0, classes, begun=0.0)
        for size in (0, 1, 2, 3):
            each = replace(judged(Candidate(IN_CELLS, size=size), 2400, 0.1, 9.0), swept=1.0)
            expected = 1.0 if several and size < 2 else 9.0
            assert looks._compiled_seconds(each) == expected
        alike = replace(judged(Candidate(IN_CELLS), 2400, 0.1, 9.0), swept=1.0)
        plain = looks.final_seconds(Candidate(IN_CELLS), 3000)
        looks.found[alike.candidate, 2400, 600] = alike
        assert looks.final_seconds(Candidate(IN_CELLS), 3000) > 2.0 * plain
        if several:
            slow = replace(alike, swept=np.inf)
            quick = looks.training_seconds(alike, 3000)
            looks.found[alike.candidate, 2400, 600] = slow
            assert looks.training_seconds(slow, 3000) > 4.0 * quick


def test_sparse_rows_take_what_their_numbers_take_not_what_their_columns_would():
    """Documents have some hundred words of fifty thousand: cells of them are soon solved."""
    looks = looks_of(3000, 600)
    X = sparse.random(3000, 20_000, density=0.001, format="csr", random_state=0, dtype=np.float32)
    given = replace(looks.columns.given, X=X, table=None)
    thin = Looks(Columns(given, looks.columns.parts, looks.columns.settings), looks.budget, None, 0)
    assert thin.width(Candidate(IN_CELLS)) == 20_000
    assert thin.load(Candidate(IN_CELLS)) == pytest.approx(guesses.SPARSE * X.nnz / 3000)
    full = replace(given, X=X.toarray())
    dense = Looks(Columns(full, looks.columns.parts, looks.columns.settings), looks.budget, None, 0)
    for shape in (IN_CELLS, ON_MAP):
        each = Candidate(shape)
        assert thin.work(each, 1, 2400, 600)[1] < 0.5 * dense.work(each, 1, 2400, 600)[1]
        assert thin.final_seconds(each, 3000) < 0.5 * dense.final_seconds(each, 3000)
    assert dense.load(Candidate(IN_CELLS)) == 20_000
