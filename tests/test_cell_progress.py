"""What is told of a fit of cells while it goes: records, scikit-learn's callbacks, the log, lines."""

import logging
import threading

import numpy as np
import pytest

from asset_svm import AssetClassifier, AssetRegressor
from asset_svm.cli import progress as cli_progress
from asset_svm.cli.progress import Display
from asset_svm.families.cells import progress as cell_progress

RNG = np.random.default_rng(0)
X = RNG.normal(size=(600, 3))
Y = (np.sin(3 * X[:, 0]) + X[:, 1] > 0).astype(int)


def cells(kind=AssetClassifier, **options):
    return kind(**{"n_cells": 8, "gamma": 1.0, "random_state": 0, **options})


def records_of(monkeypatch, interval=0.0, **options):
    monkeypatch.setattr(cell_progress, "INTERVAL", interval)
    seen = []
    model = cells(**options)
    model._fit_watched(X, Y, None, watch=lambda record: seen.append(record))
    return model, seen


@pytest.mark.parametrize("n_jobs", [1, 4])
def test_every_cell_is_counted_whoever_solves_it(monkeypatch, n_jobs):
    model, seen = records_of(monkeypatch, n_jobs=n_jobs, n_partitions=2)
    for number, part in enumerate(model.cells_, start=1):
        count = part.partition.n_cells
        ours = [record for record in seen if record["partition"] == number]
        assert [record["solved"] for record in ours] == list(range(count + 1))
        assert {record["cells"] for record in ours} == {count}
    assert {record["partitions"] for record in seen} == {2}
    assert np.all(np.diff([record["seconds"] for record in seen]) >= 0)


def test_records_come_every_now_and_then_and_at_both_ends(monkeypatch):
    _, seen = records_of(monkeypatch, interval=1e9)
    assert [(record["solved"], record["cells"]) for record in seen] == [(0, 8), (8, 8)]


@pytest.mark.parametrize("n_jobs", [1, 3])
def test_looking_on_changes_no_model(monkeypatch, n_jobs):
    model, _ = records_of(monkeypatch, n_jobs=n_jobs)
    plain = cells(n_jobs=n_jobs).fit(X, Y)
    np.testing.assert_array_equal(model.decision_function(X), plain.decision_function(X))


@pytest.mark.filterwarnings("error")
def test_who_asks_to_stop_gets_one_sweep_of_the_other_cells_and_no_other_partition(monkeypatch):
    monkeypatch.setattr(cell_progress, "INTERVAL", 0.0)
    options = dict(C=100.0, n_jobs=1, tol=1e-3)
    model = cells(**options, n_partitions=3)
    model._fit_watched(X, Y, None, watch=lambda record: record["solved"] == 1)
    assert len(model.cells_) == 1 and model.n_cells_ == 8
    (record,) = model.history_
    (whole,) = cells(**options).fit(X, Y).history_
    assert record["stopped"] and not record["converged"]
    assert whole["converged"] and not whole["stopped"]
    assert 1.01 * whole["objective"] < record["objective"] < 1.0
    assert model.score(X, Y) > 0.8


class Watcher:
    """Notes the tasks of a fit, and may stop or fail at a cell."""

    def __init__(self, stop_at=None, fail_at=None):
        self.stop_at, self.fail_at = stop_at, fail_at
        self.begun, self.ended, self.scores, self.inside = [], [], [], threading.Lock()
        self.torn_down = 0

    def setup(self, estimator, context):
        self.partitions = context.max_subtasks

    def teardown(self, estimator, context):
        self.torn_down += 1

    def on_fit_task_begin(self, estimator, context):
        assert self.inside.acquire(blocking=False), "two threads at a time"
        self.begun.append((context.task_name, context.task_id))
        if context.task_name == "partition":
            self.cells = context.max_subtasks
        self.inside.release()

    def on_fit_task_end(self, estimator, context, *, X=None, y=None, fitted_estimator=None):
        assert self.inside.acquire(blocking=False), "two threads at a time"
        self.ended.append((context.task_name, context.task_id))
        self.inside.release()
        if context.task_name != "cell":
            self.scores.append(fitted_estimator.score(X, y))
            return False
        assert fitted_estimator is None
        count = sum(name == "cell" for name, _ in self.ended)
        if count == self.fail_at:
            raise RuntimeError("the callback failed")
        return count == self.stop_at


@pytest.fixture
def callbacks():
    return pytest.importorskip("sklearn.callback")


@pytest.mark.parametrize("n_jobs", [1, 4])
@pytest.mark.parametrize("kind", [AssetClassifier, AssetRegressor])
def test_callbacks_see_partitions_their_cells_and_models_that_predict(callbacks, kind, n_jobs):
    watcher, y = Watcher(), Y if kind is AssetClassifier else X[:, 0] ** 2
    model = cells(kind, n_partitions=2, n_jobs=n_jobs).set_callbacks(watcher).fit(X, y)
    assert watcher.partitions == 2 and watcher.cells == 8 and watcher.torn_down == 1
    assert watcher.begun[0] == watcher.ended[-1] == ("fit", 0)
    names = [("partition", 0), ("partition", 1)]
    assert [task for task in watcher.begun if task[0] == "partition"] == names
    numbers = [number for name, number in watcher.ended if name == "cell"]
    assert sorted(numbers) == sorted([*range(8), *range(8)])
    assert len(watcher.scores) == 3 and watcher.scores[-1] == model.score(X, y)
    assert watcher.scores[0] == cells(kind, n_jobs=n_jobs).fit(X, y).score(X, y)


def test_a_callback_that_asks_to_stop_stops_cells(callbacks):
    watcher = Watcher(stop_at=2)
    model = cells(n_partitions=3, n_jobs=1).set_callbacks(watcher).fit(X, Y)
    assert len(model.cells_) == 1 and model.history_[0]["stopped"]
    assert watcher.ended[-1] == ("fit", 0) and watcher.torn_down == 1


@pytest.mark.parametrize("n_jobs", [1, 3])
def test_a_callback_that_fails_leaves_the_old_model(callbacks, n_jobs):
    model = cells(n_jobs=n_jobs).fit(X, Y)
    before, watcher = model.decision_function(X), Watcher(fail_at=2)
    with pytest.raises(RuntimeError, match="the callback failed"):
        model.set_callbacks(watcher).fit(X[:, :2], Y)
    np.testing.assert_array_equal(model.decision_function(X), before)
    assert watcher.torn_down == 1


def test_the_estimators_of_large_cells_have_no_callbacks_of_their_own(callbacks, monkeypatch):
    monkeypatch.setattr("asset_svm.solvers.cells.LARGEST_CELL", 50)
    watcher = Watcher()
    model = cells(n_cells=2, memory_limit=1, n_components=20, max_iter=3)
    model.set_callbacks(watcher).fit(X, Y)
    assert {name for name, _ in watcher.begun} == {"fit", "partition", "cell"}
    assert watcher.torn_down == 1


def test_the_bar_and_the_monitor_of_scikit_learn_work(callbacks, capsys):
    pytest.importorskip("rich")
    monitor = callbacks.ScoringMonitor(scoring="accuracy")
    cells(n_jobs=2, n_partitions=2).set_callbacks(callbacks.ProgressBar(), monitor).fit(X, Y)
    assert "partition" in capsys.readouterr().out
    assert sorted(row["task_name"] for row in monitor.get_logs().data) == [
        "fit",
        "partition",
        "partition",
    ]


def test_a_verbose_fit_logs_a_line_a_partition(caplog):
    with caplog.at_level(logging.INFO, "asset_svm"):
        cells(n_partitions=2, verbose=1).fit(X, Y)
    said = [record.getMessage() for record in caplog.records]
    assert [line.split(":")[0] for line in said] == ["partition 1", "partition 2"]
    assert "cells 8, " in said[0] and "objective " in said[0]


def test_where_there_is_no_terminal_lines_come_at_the_end_and_every_few_seconds(monkeypatch, capsys):
    def lines(seconds, **options):
        monkeypatch.setattr(cell_progress, "INTERVAL", 0.0)
        monkeypatch.setattr(cli_progress, "SECONDS", seconds)
        display = Display(regression=False)
        with display.shown() as watch:
            cells(**options)._fit_watched(X, Y, None, watch=watch)
        assert display.records == []
        return capsys.readouterr().err.splitlines()

    (last,) = lines(1e9)
    assert last.startswith("8/8 cells, ") and last.endswith(" s")
    assert [line.split(",")[0] for line in lines(0.0)] == [f"{n}/8 cells" for n in range(9)]
    (last,) = lines(1e9, n_partitions=2)
    assert last.startswith("partition 2/2, 8/8 cells, ")
