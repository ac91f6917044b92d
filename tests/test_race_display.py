"""What is seen of a race: a leaderboard on a terminal, lines elsewhere, a chart on the page."""

from io import StringIO
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("typer")
pytest.importorskip("rich")
pytest.importorskip("safetensors")
pytest.importorskip("pyarrow")

from rich.console import Console

from asset_svm.cli import progress
from asset_svm.cli.main import main
from asset_svm.cli.race_progress import RaceDisplay, leading
from asset_svm.cli.race_report import best_of_looks, best_so_far, lowest_shown, shape_of
from asset_svm.cli.search_progress import shown_params
from asset_svm.search import SearchProgress
from chromium import look_at
from shop import BOUGHT, QUICK, RELEVANT, write_files
from terminal import seen_in_terminal


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "150")
    write_files()
    return tmp_path


def state(scores, rows, best):
    params = [{"candidate": f"model {i}", "rows": count} for i, count in enumerate(rows)]
    mean = np.array(scores, float)
    error = np.full(len(scores), 0.01)
    return SearchProgress(
        params, mean, error, params[best], scores[best], len(rows), len(rows), 2.5, float("nan")
    )


def test_the_best_comes_first_then_those_of_more_rows():
    found = state([0.9, 0.7, 0.8, float("nan")], [100, 400, 400, 400], 1)
    assert leading(found) == [1, 2, 3, 0]


def test_a_terminal_sees_ten_candidates_the_best_in_bold():
    seen, display = StringIO(), RaceDisplay()
    display.console = Console(file=seen, force_terminal=True, width=120, color_system="standard")
    with display.shown():
        display(state(np.linspace(0.5, 0.7, 15).tolist(), [100] * 15, 14))
    text = seen.getvalue()
    assert "15 looks, 2.5 s" in text and "model 5" in text and "model 4" not in text
    assert "\x1b[1mmodel 14" in text.replace("\x1b[0m\x1b[1m \x1b[0m", "") and "0.70000" in text


def test_lines_come_now_and_then_where_there_is_no_terminal(capsys, monkeypatch):
    display = RaceDisplay()
    with display.shown():
        display.begin(60.0)
        for _ in range(5):
            display(state([0.5, 0.75], [100, 100], 1))
        monkeypatch.setattr(progress, "SECONDS", 0.0)
        display(state([0.5, 0.75], [100, 100], 1))
        display.refit()
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 3 and "the model included in 60 s" in lines[0]
    assert lines[1] == "2 looks, 2.5 s, best score 0.75000 of 100 rows: model 1"
    assert lines[2] == "training the best model on all rows"


def test_parameters_of_any_kind_are_shown():
    shown = shown_params({"C": 1 / 3, "candidate": "rbf", "rows": 100000})
    assert shown == "C=0.3333, candidate=rbf, rows=100000"


def test_a_terminal_sees_a_live_leaderboard():
    text = seen_in_terminal("tune", *BOUGHT, *QUICK, "-o", "m.asset")
    for word in (
        "candidate",
        "looks",
        "±",
        "rbf, cells",
        "training the best model",
        "tuned",
        "again: ",
    ):
        assert word in text


def test_numbers_of_the_chart():
    at, score, rows = np.array([1.0, 1, 2, 3]), np.array([0.5, 0.7, 0.9, 0.8]), np.array([9, 9, 9, 20])
    assert [part.tolist() for part in best_of_looks(at, score)] == [[1, 2, 3], [0.7, 0.9, 0.8]]
    assert best_so_far(at, score, rows)[1].tolist() == [0.7, 0.9, 0.8]  # of the most rows
    assert lowest_shown(np.array([0.9, 0.8, 0.7, -50.0, np.nan])) == pytest.approx(0.9 - 4 * 0.15)
    kind = {"kernel": "rbf", "relevance": "columns", "cells": True, "encoding": "given"}
    assert shape_of(kind) == ("rbf", "columns", "cells", "as given")


@pytest.mark.parametrize(
    ("options", "figures"),
    # scores over time; importances and rounds of a relevance; residuals twice, or four of classes
    [(RELEVANT, 5), pytest.param([*BOUGHT, *QUICK, "--probability"], 5, marks=pytest.mark.slow)],
)
def test_a_browser_shows_the_race(here, options, figures):
    pytest.importorskip("matplotlib")
    assert main(["tune", *options, "--report", "r.html", "-o", "m.asset"]) == 0
    html = Path("r.html").read_text()
    assert ("Importance of the columns" in html) == (options is RELEVANT)
    assert html.count("<figure>") == figures
    for width in (1000, 390):
        seen = look_at(here / "r.html", width)
        assert seen.console == [] and len(seen.charts) == figures
        assert seen.page <= seen.window
