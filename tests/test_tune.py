"""``asset tune``: a search of C, gamma and epsilon from a file, and what it tells."""

import csv
import inspect
import os
import re
from io import StringIO
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import make_classification

pytest.importorskip("typer")
pytest.importorskip("rich")
pytest.importorskip("safetensors")

from rich.console import Console

import asset_svm
from asset_svm import AssetClassifier, AssetClassifierCV, AssetRegressorCV
from asset_svm.cli import progress, search_progress
from asset_svm.cli.main import main
from asset_svm.cli.options import ELSEWHERE, SEARCH_PARAMETERS
from asset_svm.cli.search_progress import SearchDisplay, score_lines_of, sparks
from asset_svm.persistence import read_provenance
from asset_svm.search import cells as search_cells
from asset_svm.search import maps as search_maps
from asset_svm.search.grid import AUTO_FACTORS
from asset_svm.search.maps import MapSearch
from chromium import look_at
from terminal import seen_in_terminal

X, Y = make_classification(700, 5, n_informative=4, n_redundant=0, n_classes=3, random_state=0)
Z = np.sin(2 * X[:, 0]) + 0.1 * X[:, 1]
SMALL = ["--n-components", "30", "--Cs", "0.1,1,10", "--gammas", "0.05,0.5", "--cv", "3"]


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "150")
    for name, rows in (("rows", slice(0, 500)), ("test", slice(500, 700))):
        np.savez(f"{name}.npz", X=X[rows], y=Y[rows])
        np.savez(f"{name}-real.npz", X=X[rows], y=Z[rows])
    return tmp_path


def lines(capsys):
    out = capsys.readouterr().out
    return dict(line.split("\t")[:2] for line in out.splitlines() if "\t" in line)


def test_the_model_is_that_of_the_search_in_python(capsys):
    assert main(["tune", "rows.npz", "--test", "test.npz", "-o", "m.asset", *SMALL]) == 0
    told = lines(capsys)
    search = AssetClassifierCV(
        Cs=[0.1, 1, 10], gammas=[0.05, 0.5], cv=3, n_components=30, random_state=0
    ).fit(X[:500].astype(np.float32), Y[:500])
    assert float(told["best C"]) == search.best_params_["C"]
    assert float(told["best gamma"]) == search.best_params_["gamma"]
    assert float(told["score"]) == pytest.approx(search.best_score_, abs=1e-5)
    assert told["candidates"] == "6" and told["splits"] == "3"
    rows = X[500:].astype(np.float32)
    loaded = asset_svm.load("m.asset")
    assert np.array_equal(loaded.predict(rows), search.predict(rows))
    error = 100 * (1 - search.score(rows, Y[500:]))
    assert float(told["test error"].split()[0]) == pytest.approx(error, abs=1e-3)
    assert read_provenance("m.asset")["search_candidates"] == 6


def test_a_regression_searches_epsilons_too(capsys):
    options = [*SMALL, "--epsilons", "0.1,5", "--scale", "standard", "--test", "test-real.npz"]
    assert main(["tune", "rows-real.npz", "-o", "m.asset", *options]) == 0
    told = lines(capsys)
    assert (
        told["best epsilon"] == "0.1" and told["candidates"] == "12" and float(told["test R2"]) > 0.05
    )
    assert asset_svm.load("m.asset")[-1].epsilon == 0.1


@pytest.mark.parametrize(
    ("options", "candidates"),
    [
        ([], str(3 * len(AUTO_FACTORS))),
        (["--gamma", "0.3"], "3"),
        pytest.param(["--gammas", "none"], "3", marks=pytest.mark.slow),
        pytest.param(["--kernel", "linear"], "3", marks=pytest.mark.slow),
    ],
)
def test_gammas_are_searched_unless_one_is_given(capsys, options, candidates):
    few = ["--n-components", "20", "--Cs", "0.1,1,10", "--cv", "0.3", "-o", "m.asset"]
    assert main(["tune", "rows.npz", *few, *options]) == 0
    assert lines(capsys)["candidates"] == candidates


def test_probabilities_come_with_the_best_model(capsys):
    assert main(["tune", "rows.npz", "-o", "m.asset", "--probability", *SMALL]) == 0
    capsys.readouterr()
    assert main(["predict", "m.asset", "test.npz", "--probability"]) == 0
    for row in csv.DictReader(capsys.readouterr().out.splitlines()):
        given = {name[-1]: float(value) for name, value in row.items() if name.startswith("prob")}
        assert row["prediction"] == max(given, key=given.get)


def test_every_parameter_of_the_searches_is_an_option():
    # A command refits, and keeps no path; --probability and --intervals are of commands that learn.
    elsewhere = {*ELSEWHERE, "refit", "keep_path", "probability", "intervals"}
    known = {parameter.name for parameter in SEARCH_PARAMETERS}
    for cls, less in (
        (AssetClassifierCV, {"epsilon", "epsilons"}),
        (AssetRegressorCV, {"class_weight", "multi_class"}),
    ):
        asked = set(inspect.signature(cls).parameters) - elsewhere
        assert asked == known - less


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["none.npz"], "none.npz does not exist"),
        (["rows.npz", "--Cs", "0"], "Cs=0 asks for no value"),
        (["rows.npz", "--Cs", "1,x"], "--Cs 1,x: write COUNT|C,C,..."),
        (["rows.npz", "--Cs", "1,-2"], "Cs=[1, -2] is not"),
        (["rows.npz", "--gammas", "wide"], "--gammas wide: write auto|none|GAMMA"),
        (["rows.npz", "--gammas", "1,2", "--gamma", "1"], "leave one of them out"),
        (["rows.npz", "--gammas", "1,2", "--kernel", "linear"], "has no gamma"),
        (["rows.npz", "--epsilons", "0.1"], "--epsilons is for regression"),
        (["rows-real.npz", "--class-weight", "balanced"], "--class-weight is for classification"),
        (["rows.npz", "--cv", "1"], "cv=1"),
        (["rows.npz", "--scoring", "beauty"], "scoring='beauty' is no score of scikit-learn, see"),
        (["rows.npz", "--scoring", "acuracy"], "did you mean 'accuracy'?"),
        (
            ["rows.npz", "--scoring", "neg_log_loss", *SMALL],
            "needs probabilities, and models of a",
        ),
        (["rows.npz", "--n-components", "auto"], "set it to a number for a search"),
        (["rows.npz", "--C", "1"], "No such option"),
        (["rows-real.npz", "--probability"], "--probability is for classification"),
        (["rows.npz", "--report", "no/such/page.html"], "there is no folder"),
    ],
)
def test_an_error_is_one_sentence_and_comes_before_the_search(arguments, said, capsys, monkeypatch):
    monkeypatch.setattr(SearchDisplay, "__call__", lambda self, progress: pytest.fail("it searched"))
    before = set(os.listdir())
    assert main(["tune", *arguments]) == 2
    told = capsys.readouterr()
    assert told.out == "" and told.err.startswith("asset: ") and told.err.count("\n") == 1
    assert said in told.err and set(os.listdir()) == before and len(told.err) < 300


@pytest.mark.filterwarnings("always::sklearn.exceptions.ConvergenceWarning")
def test_a_time_limit_counts_only_what_has_a_score(capsys):
    """The first gamma of three is the best that has a score; that others are better is not known."""
    options = ["--n-components", "30", "--Cs", "0.1,1,10,100", "--gammas", "0.05,0.5,5", "--cv", "3"]
    limited = [*options, "--time-limit", "1e-9", "-o", "m.asset", "--report", "page.html"]
    assert main(["tune", "rows.npz", *limited]) == 0
    told = capsys.readouterr()
    assert "candidates\t4 of 12" in told.out and "8 of 12 candidates have no score" in told.err
    assert "best gamma is" not in told.err
    assert read_provenance("m.asset")["search_candidates"] == 4
    page = Path("page.html").read_text()
    assert "4 of 12 candidates in" in page and ">nan<" not in page


def test_ctrl_c_trains_the_best_so_far(capsys, monkeypatch):
    show = SearchDisplay.__call__

    def interrupted(self, progress):
        self.interrupt.asked = True
        return show(self, progress)

    monkeypatch.setattr(SearchDisplay, "__call__", interrupted)
    assert main(["tune", "rows.npz", "-o", "m.asset", *SMALL]) == 130
    told = capsys.readouterr()
    assert "interrupted; the best model so far is in m.asset" in told.err
    assert asset_svm.load("m.asset").gamma == 0.05  # the first of the two


def test_lines_tell_of_the_search_where_there_is_no_terminal(capsys, monkeypatch):
    monkeypatch.setattr(progress, "SECONDS", 0.0)
    assert main(["tune", "rows.npz", "-o", "m.asset", *SMALL]) == 0
    told = capsys.readouterr().err.splitlines()
    assert len(told) == 4 and told[3] == "training the best model on all rows"
    ahead = r"searching 2 maps of 27 models each: some \d+ s by their size, on an idle machine"
    assert re.fullmatch(ahead, told[0])
    best = r"best score 0\.\d{5} with C=\S+, gamma=\S+"
    assert re.fullmatch(rf"1 of 2 maps, [\d.]+ s, some \d+ \w+ left, {best}", told[1])
    assert re.fullmatch(rf"2 of 2 maps, [\d.]+ s, {best}", told[2])


@pytest.mark.parametrize("guess", [0.1, 1000.0])
def test_what_is_done_is_told_before_it_is_whatever_the_guess_of_its_length(guess, capsys, monkeypatch):
    """A busy machine, or one that compiles first, takes long for what is guessed to be short."""
    told = []

    def noted(self, *args, **options):
        told.append(capsys.readouterr().err)
        return lines(self, *args, **options)

    lines, train = MapSearch.lines, AssetClassifier._train
    monkeypatch.setattr(MapSearch, "lines", noted)
    monkeypatch.setattr(search_maps, "map_seconds", lambda *sizes: guess)

    def trained(self, *args, **options):
        told.append(capsys.readouterr().err)
        return train(self, *args, **options)

    monkeypatch.setattr(AssetClassifier, "_train", trained)
    assert main(["tune", "rows.npz", "-o", "m.asset", *SMALL]) == 0
    assert told[0].startswith("searching 2 maps of 27 models each: some ") and told[1] == ""
    last = told[2].splitlines()
    assert last[0].startswith("2 of 2 maps") and last[1:] == ["training the best model on all rows"]


def test_a_terminal_sees_what_is_done_and_the_seconds_pass(monkeypatch):
    seen, display = StringIO(), SearchDisplay()
    display.console = Console(file=seen, force_terminal=True, width=150)
    with display.shown():
        display.foresee(2, 27, 40.0)
        monkeypatch.setattr(search_progress.clock, "now", lambda: display.begun + 70.0)
        display.live.refresh()
        display.refit()
    for words in (
        "searching 2 maps of 27 models each: some 40 s by their size, on an idle machine, 1 s so far",
        "on an idle machine, 70 s so far",
        "training the best model on all rows, 70 s so far",
    ):
        assert words in seen.getvalue()


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(0.2, "1 s"), (40.4, "40 s"), (100, "2 min"), (5000, "83 min"), (9000, "2.5 h")],
)
def test_time_is_told_as_people_say_it(seconds, said):
    assert search_progress.span(seconds) == said


def test_a_cap_of_the_search_is_told_of(caplog, monkeypatch):
    monkeypatch.setattr(search_cells, "MOST_SEARCHED", 300)
    few = ["--n-cells", "1", "--Cs", "1", "--gamma", "0.3", "--cv", "3"]
    assert main(["tune", "rows.npz", "-o", "m.asset", *few]) == 0
    said = "Cells have up to 500 rows: models of the search learn from at most 300 of each"
    assert said in caplog.text
    assert asset_svm.load("m.asset").support_.max() >= 300  # the best is trained on all


def test_a_terminal_sees_a_live_table():
    text = seen_in_terminal("tune", "rows.npz", "-o", "m.asset", *SMALL)
    for word in (
        "score over C = 0.1 ... 10",
        "best C",
        "2 of 2 maps",
        "training the best model",
        "tuned",
    ):
        assert word in text
    assert "█" in text


def test_a_best_value_at_the_edge_of_the_grid_is_told(caplog):
    small = ["--n-components", "30", "--cv", "3", "-o", "m.asset"]
    assert main(["tune", "rows.npz", *small, "--Cs", "1e-6,1e-5,1", "--gammas", "1e-4,0.1,1000"]) == 0
    assert caplog.messages == ["The best C, 1, is the largest that was tried; give larger Cs."]


def test_bars_and_lines_of_scores():
    assert sparks(np.array([0.0, np.nan, 1.0]), 0.0, 1.0) == "▁·█"
    assert sparks(np.array([0.5, 0.5]), 0.5, 0.5) == "▁▁"
    params = [{"C": C, "gamma": g} for g in (1.0, 2.0) for C in (1.0, 10.0)]
    found = score_lines_of(params, np.array([0.1, 0.2, np.nan, np.nan]), np.zeros(4))
    assert [line.gamma for line in found] == [1.0, 2.0]
    assert found[0].best == 1 and found[1].best is None


@pytest.mark.parametrize(
    ("data", "options", "figures"),
    [
        # the map and the curves; the confusion matrix
        ("rows.npz", [], 3),
        # a map and curves for each epsilon; residuals twice
        ("rows-real.npz", ["--epsilons", "0.1,0.2"], 6),
        # curves only
        pytest.param("rows.npz", ["--gammas", "none"], 2, marks=pytest.mark.slow),
    ],
)
def test_a_browser_shows_the_map_of_the_search(here, data, options, figures):
    pytest.importorskip("matplotlib")
    arguments = [*SMALL, *options, "--report", "r.html", "-o", "m.asset"]
    assert main(["tune", data, *arguments]) == 0
    html = Path("r.html").read_text()
    assert html.count("<figure>") == figures
    assert ("Score of C and gamma" in html) == ("none" not in options)
    for title in (
        "Search",
        "The best candidates",
        "Score over C",
        "Model and settings",
        "Data",
        "Errors",
    ):
        assert title in html
    for width in (1000, 390):
        seen = look_at(here / "r.html", width)
        assert seen.console == [] and len(seen.charts) == figures
        assert seen.page <= seen.window
