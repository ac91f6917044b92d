"""``asset tune`` without a grid, ``asset train --auto``: a race, and its command."""

import csv
import os
import shlex
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("typer")
pytest.importorskip("rich")
pytest.importorskip("safetensors")
pytest.importorskip("pyarrow")

import asset_svm
from asset_svm.cli import tune
from asset_svm.cli.main import main
from asset_svm.cli.options import PARAMETERS, parse_params, written
from asset_svm.cli.search_progress import SearchDisplay
from asset_svm.encoding.table import Table
from asset_svm.persistence import read_provenance
from asset_svm.search import racing
from asset_svm.search.auto.final import Members
from shop import BOUGHT, PRICE, QUICK, RELEVANT, ROWS, write_files


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "150")
    write_files()
    return tmp_path


def told(out):
    return dict(line.split("\t")[:2] for line in out.splitlines() if "\t" in line)


def again(out, what="again"):
    """The words of the command that makes the model again."""
    (line,) = [line for line in out.splitlines() if line.startswith(f"{what}: ")]
    return shlex.split(line.removeprefix(f"{what}: "))[1:]


def scores(model, data, capsys):
    capsys.readouterr()
    assert main(["predict", model, data, "--scores"]) == 0
    found = list(csv.reader(capsys.readouterr().out.splitlines()))[1:]
    return [row[0] for row in found], np.array([float(row[1]) for row in found])


def test_a_mixed_table_is_tuned_in_time_told_of_and_predicted(capsys):
    pytest.importorskip("matplotlib")
    options = ["--time-limit", "3s", "-o", "m.asset", "--report", "page.html"]
    assert main(["tune", *BOUGHT, *options]) == 0
    seen = capsys.readouterr()
    by_itself = "the best by itself"  # of a mean, which a machine that is quick enough comes to
    what = by_itself if f"{by_itself}: " in seen.out else "again"
    lines, command = told(seen.out), again(seen.out, what)
    assert float(lines["score"]) > 0.6 and int(lines["candidates"]) >= 3 and lines["best kernel"]
    assert command[:2] == ["train", "shop.csv"] and "--seed" in command
    assert "racing: encodings" in seen.err and "asset: city: one of 3 levels" in seen.err
    page = Path("page.html").read_text()
    assert "Score over time" in page and "The best candidates" in page
    assert "<code>asset train shop.csv" in page and ">nan<" not in page
    labels, _ = scores("m.asset", "shop.csv", capsys)
    assert len(labels) == ROWS and set(labels) == {"yes", "no"}
    assert main(["info", "m.asset"]) == 0
    info = capsys.readouterr().out
    assert "city\tcategories" in info and "search_candidates" in info


def test_a_race_has_the_table_as_it_is_and_a_grid_has_numbers(monkeypatch):
    given = []

    def noted(search, X, y, **options):
        given.append((X, search.encoder))
        raise ValueError("enough")

    monkeypatch.setattr(tune, "search_watched", noted)
    assert main(["tune", *BOUGHT, "--numbers", "pieces"]) == 2
    assert main(["tune", *BOUGHT, "--cv", "3", "--kernel", "linear"]) == 2
    assert main(["tune", *BOUGHT, "--Cs", "3"]) == 2
    assert main(["tune", "rows.npz"]) == 2
    assert main(["tune", "rows.npz", "--scale", "standard"]) == 2
    (raw, pieces), (folds, _), (grid, _), (array, open_encoder), (_, fixed) = given
    assert isinstance(raw, Table) and isinstance(folds, Table) and raw.names == (
        "city", "age", "size", "day"
    )  # fmt: skip
    assert pieces.numbers == "pieces"
    assert isinstance(grid, np.ndarray) and isinstance(array, np.ndarray)
    assert open_encoder == "auto" and fixed is None


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ([*BOUGHT, *QUICK], ["--n-cells", "--gamma"]),
        ([*PRICE, *QUICK, "--seed", "3"], ["--target-transform", "--epsilon"]),
        (RELEVANT, ["--relevance"]),
        (["rows.npz", *QUICK, "--scale", "minmax"], ["--scale"]),
        *(
            pytest.param(*case, marks=pytest.mark.slow)
            for case in (
                ([*BOUGHT, "--class-weight", "yes=2,no=1", "--kernel", "linear"], ["--class-weight"]),
                ([*BOUGHT, *QUICK, "--n-components", "50", "--max-iter", "7"], ["--n-components"]),
                (["rows.npz", *QUICK, "--numbers", "pieces"], ["--numbers"]),
            )
        ),
    ],
)
def test_the_command_makes_the_same_model(options, words, capsys):
    assert main(["tune", *options, "--no-ensemble", "-o", "m.asset"]) == 0
    out = capsys.readouterr().out
    command = again(out)
    assert set(words) <= set(command) and "rows learnt from" not in out
    assert main([*command, "-o", "n.asset"]) == 0
    labels, decisions = scores("m.asset", options[0], capsys)
    others, same = scores("n.asset", options[0], capsys)
    if "--n-components" in options:  # who is watched takes averages in another order
        assert np.allclose(decisions, same, rtol=0, atol=1e-4) and labels == others
    else:
        assert np.array_equal(decisions, same) and labels == others


def test_what_a_command_says_is_parsed_back_to_the_bit():
    values = {"C": 1 / 3, "gamma": np.float64(0.1), "n_cells": "auto", "max_iter": 7, "relevance": None}
    values |= {"fit_intercept": True, "early_stopping": True, "epsilon": 1e-17}
    names = {parameter.option: parameter.name for parameter in PARAMETERS}
    given = {}
    for name, value in values.items():
        option, *text = written(name, value)
        given[names[option]] = text[0] if text else True
    found = parse_params(given)
    assert found == values and type(found["max_iter"]) is int


def test_training_with_a_race_is_tuning(capsys):
    asked = [*BOUGHT, *QUICK]
    assert main(["tune", *asked, "-o", "m.asset"]) == 0
    first = capsys.readouterr().out
    assert main(["train", *asked, "--auto", "-o", "n.asset"]) == 0
    second = capsys.readouterr().out
    assert first.startswith("tuned\n") and second.startswith("trained\n")
    changing = ("search seconds", "training seconds", "saved in")
    one, other = ({k: v for k, v in told(out).items() if k not in changing} for out in (first, second))
    what = "the best by itself" if "mean of" in one else "again"
    assert one == other and again(first, what) == again(second, what)
    assert np.array_equal(*(scores(name, "shop.csv", capsys)[1] for name in ("m.asset", "n.asset")))


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (["train", "--auto", "--online"], "--online learns in one pass"),
        (["train", "--auto", "--classes", "a,b"], "--classes goes with --online"),
        (["train", "--auto", "--resume"], "--resume needs --checkpoint DIR"),
        (["tune", "--checkpoint", "rows.npz"], "rows.npz is a file, and a checkpoint is a folder"),
        (["train", "--auto", "--dask", "local", "--probability"], "--probability does not go with"),
        (["train", "--auto", "--C", "3"], "--C 3: a race chooses it; leave it out, or train without"),
        (["train", "--auto", "--gamma", "scale"], "--gamma scale: a race chooses it"),
        (["train", "--auto", "--target-transform", "log"], "--target-transform log: a race chooses it"),
        (["train", "--auto", "--early-stopping"], "--early-stopping: a race chooses it"),
        (["train", "--auto", "--kernel", "poly"], "--kernel poly: no kernel that races; leave it out"),
        (["tune", "--ensemble", "--resumable"], "--ensemble may make a mean of several models"),
        (["tune", "--relevance", "columns", "--Cs", "3"], "relevance='columns' goes with a race"),
        (["tune", "--numbers", "odd"], "--numbers odd: choose one of auto, standard"),
        (
            ["train", "--numbers", "pieces", "--online"],
            "--numbers pieces: arrays are encoded in memory",
        ),
        (["train", "--numbers", "pieces", "--memory", "1kB"], "these rows are too many for it"),
        (
            ["tune", "--numbers", "pieces", "--Cs", "3"],
            "--numbers pieces: goes with csv, tsv or Parquet",
        ),
    ],
)
def test_what_does_not_go_together_is_one_sentence(command, said, capsys, monkeypatch):
    monkeypatch.setattr(SearchDisplay, "__call__", lambda self, progress: pytest.fail("it searched"))
    before = set(os.listdir())
    assert main([command[0], "rows.npz", *command[1:]]) == 2
    seen = capsys.readouterr()
    assert seen.out == "" and seen.err.startswith("asset: ") and seen.err.count("\n") == 1
    assert said in seen.err and set(os.listdir()) == before


@pytest.mark.parametrize("options", [[], ["--probability"]])
def test_ctrl_c_trains_the_best_so_far(options, capsys, monkeypatch):
    show, seen = SearchDisplay.__call__, []

    def interrupted(self, progress):
        seen.append(progress.done)
        self.interrupt.asked = len(seen) == 2
        return show(self, progress)

    monkeypatch.setattr(SearchDisplay, "__call__", interrupted)
    assert main(["tune", *BOUGHT, "-o", "m.asset", *options]) == 130
    assert "interrupted; the best model so far is in m.asset" in capsys.readouterr().err
    assert len(seen) == 2 and read_provenance("m.asset")["search_candidates"] == seen[1]
    assert set(scores("m.asset", "shop.csv", capsys)[0]) == {"yes", "no"}


def test_probabilities_come_with_the_best_model(capsys):
    assert main(["tune", *BOUGHT, *QUICK, "--no-ensemble", "--probability", "-o", "m.asset"]) == 0
    assert "--probability" in again(capsys.readouterr().out)
    assert main(["predict", "m.asset", "shop.csv", "--probability"]) == 0
    rows = list(csv.DictReader(capsys.readouterr().out.splitlines()))
    assert len(rows) == ROWS
    for row in rows:
        assert float(row["probability_yes"]) + float(row["probability_no"]) == pytest.approx(1.0)


def test_names_of_columns_that_are_read_as_numbers_come_with_probabilities(capsys):
    """Columns of another file are found by their names, in whatever order."""
    table = np.load("rows.npz")
    for name, order in (("plain.csv", (0, 1)), ("turned.csv", (1, 0))):
        rows = np.column_stack([table["X"][:, order], table["y"]])
        header = ",".join([*(("age", "size")[j] for j in order), "y"])
        np.savetxt(name, rows, delimiter=",", header=header, comments="", fmt="%.9g")
    options = [*QUICK, "--scale", "none", "--probability", "-o", "m.asset"]
    assert main(["tune", "plain.csv", "--task", "classification", *options]) == 0
    first, second = (scores("m.asset", name, capsys)[1] for name in ("plain.csv", "turned.csv"))
    assert np.array_equal(first, second)


def test_arrays_that_a_race_has_encoded_are_known_to_prediction(capsys):
    """A model of encoded arrays takes the rows of any file, as one without an encoder does."""
    assert main(["tune", "rows.npz", *QUICK, "--numbers", "pieces", "-o", "m.asset"]) == 0
    labels, decisions = scores("m.asset", "rows.npz", capsys)
    rows = np.load("rows.npz")["X"].astype(np.float32)
    model = asset_svm.load("m.asset")
    assert np.array_equal(model.predict(rows), np.array(labels, dtype=int))
    Path("rows.svm").write_text("".join(f"0 1:{a!r} 2:{b!r}\n" for a, b in rows.tolist()))
    assert np.array_equal(decisions, scores("m.asset", "rows.svm", capsys)[1])


def test_a_mean_of_several_models_is_told_of_saved_and_reported(capsys, monkeypatch):
    pytest.importorskip("matplotlib")

    def two(outcome, n_rows, seconds, seed):
        first, *others = (outcome.history[number] for number in outcome.finalists)
        shape = first.candidate.shape
        other = next(each for each in others if each.candidate.shape.encoding == shape.encoding)
        return Members([first, other], np.array([0.75, 0.25]), np.array([0.75, 0.25]))

    monkeypatch.setattr(racing, "choose_members", two)
    assert main(["tune", *BOUGHT, *QUICK, "-o", "m.asset", "--report", "page.html"]) == 0
    out = capsys.readouterr().out
    assert told(out)["mean of"] == "2 models, of weights 0.75, 0.25" and "nan" not in out
    command = again(out, "the best by itself")
    page = Path("page.html").read_text()
    assert "The models of the mean" in page and ">nan<" not in page
    assert main(["info", "m.asset"]) == 0
    assert told(capsys.readouterr().out)["mean of"] == "2 models, of weights 0.75, 0.25"
    assert len(scores("m.asset", "shop.csv", capsys)[0]) == ROWS
    assert main([*command, "-o", "n.asset"]) == 0
    assert "mean of" not in capsys.readouterr().out
    assert main(["tune", *BOUGHT, *QUICK, "--probability", "-o", "m.asset"]) == 0
    lines = told(capsys.readouterr().out)
    assert "mean of" in lines and "probabilities" in lines
    assert main(["tune", *BOUGHT, *QUICK, "--resumable", "-o", "m.asset"]) == 0
    assert "mean of" not in capsys.readouterr().out  # it would not go on learning
