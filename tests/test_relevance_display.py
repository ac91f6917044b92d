"""The importance of columns, drawn and told: the display, the commands, the report."""

import builtins
import os
import signal
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

pytest.importorskip("typer")
pytest.importorskip("safetensors")

import asset_svm
from asset_svm import AssetClassifier, AssetRegressor, RelevanceDisplay
from asset_svm.cli.main import main
from asset_svm.estimators import files
from asset_svm.families.epochs import Epochs
from asset_svm.families.one_map import windows
from asset_svm.families.relevance import quick
from asset_svm.features.relevance import Relevance
from asset_svm.storage import atomic
from chromium import look_at
from killed_runs import assert_same_model
from test_pages import Reader

NASTY = "<script>alert(1)</script>& $x_1$ and so on, until no chart has room for it"
NAMES = ["a", "b", NASTY, "d", "e", "f", "_g", "h"]
X = np.random.default_rng(0).uniform(-1, 1, size=(1600, 8))
Y = np.sin(4 * X[:, 2]) + 2 * X[:, 5] * X[:, 6]
SMALL = ["--n-components", "100", "--max-iter", "4", "--C", "10"]


WHOLE = {"LANDMARKS": quick.LANDMARKS, "QUICK": quick.QUICK}


@pytest.fixture(autouse=True)
def quicker(monkeypatch, request):
    """Quick fits of few landmarks, enough for eight columns; slow tests have those of the library."""
    if request.node.get_closest_marker("slow") is None:
        monkeypatch.setattr(quick, "LANDMARKS", 128)
        monkeypatch.setattr(quick, "QUICK", Epochs(least=3, steps=10_000))


@pytest.fixture
def whole_fits(quicker, monkeypatch):
    """Quick fits as the library has them, where rows are few."""
    for name, value in WHOLE.items():
        monkeypatch.setattr(quick, name, value)


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    write("train.csv", slice(0, 1200))
    write("test.csv", slice(1200, 1600))
    return tmp_path


def write(name, rows, y=Y, header=(*NAMES, "y")):
    with open(name, "w") as file:
        file.write(",".join('"' + text + '"' for text in header) + "\n")
        for row, target in zip(X[rows].tolist(), y[rows].tolist(), strict=True):
            file.write(",".join(map(repr, row)) + f",{target}\n")


def told(capsys):
    """The lines that were printed, by the title of their table."""
    tables, title = {}, ""
    for line in capsys.readouterr().out.splitlines():
        name, _, value = line.partition("\t")
        if not value or name == "importance":
            title = name
            tables[title] = {}
        else:
            tables[title][name] = value
    return tables


# The command --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "asked", ["columns", "directions", "auto", pytest.param("auto", marks=pytest.mark.slow, id="whole")]
)
def test_a_model_is_trained_told_of_and_predicts(asked, capsys):
    assert main(["train", "train.csv", "--test", "test.csv", "-o", "p.asset", *SMALL]) == 0
    plain = float(told(capsys)["trained"]["test RMSE"])
    options = ["-o", "m.asset", *SMALL, "--numbers", "standard", "--relevance", asked]
    assert main(["train", "train.csv", "--test", "test.csv", *options]) == 0
    trained = told(capsys)["trained"]
    assert float(trained["test RMSE"]) < 0.6 * plain
    assert main(["info", "m.asset"]) == 0
    info = told(capsys)
    model = asset_svm.load("m.asset")
    chosen = next(record for record in model.relevance_history_ if record["chosen"])
    for lines in (trained, info["m.asset"]):
        shape = lines["relevance"]
        if model.relevance_.ndim == 1:
            assert shape == "columns"
        else:
            assert shape == f"directions ({len(model.relevance_)} of 8)"
        assert lines["relevance round"] == str(chosen["round"])
        assert lines["held-out R2"] == f"{chosen['validation_score']:.5f}"
    assert asked == "auto" or shape.split()[0] == asked
    shares = info["importance"]
    assert next(iter(shares)) == NASTY and {*list(shares)[1:3]} == {"f", "_g"} and len(shares) == 8
    assert shares["f"] == f"{100 * model.feature_importances_[5]:.2f} %"
    assert main(["predict", "m.asset", "test.csv"]) == 0
    predicted = np.array(capsys.readouterr().out.split(), dtype=float)
    expected = model.predict(pd.DataFrame(X[1200:], columns=NAMES))
    np.testing.assert_allclose(predicted, expected, rtol=1e-12)


def test_rows_as_they_are_and_classes(capsys):
    noise = np.random.default_rng(1).integers(
        0, 2, len(Y)
    )  # nothing to learn: no map of the columns is better
    write("noise.csv", slice(0, 600), noise)
    assert main(["train", "noise.csv", "-o", "m.asset", *SMALL, "--relevance", "auto"]) == 0
    trained = told(capsys)["trained"]
    assert trained["relevance"] == "rows as they are: no gain"
    assert "relevance round" not in trained and 0 < float(trained["held-out accuracy"]) < 1
    assert main(["info", "m.asset"]) == 0
    assert len(told(capsys)["importance"]) == 8


def test_few_rows_are_told_to_be_few(capsys):
    write("few.csv", slice(0, 30))
    for asked, shape in (("auto", "rows as they are: too few rows to tell"), ("columns", "columns")):
        options = ["-o", "m.asset", "--report", "r.html", "--relevance", asked]
        assert main(["train", "few.csv", *options]) == 0
        assert told(capsys)["trained"]["relevance"] == shape
        assert "too few rows" in Path("r.html").read_text()


def test_a_model_without_relevance_tells_nothing_of_it(here, capsys):
    assert main(["train", "train.csv", "-o", "m.asset", *SMALL, "--report", "r.html"]) == 0
    assert main(["info", "m.asset"]) == 0
    out = capsys.readouterr().out
    assert "relevance" not in out and "importance" not in out
    html = (here / "r.html").read_text()
    assert "Relevance" not in html and "mportance" not in html


def test_columns_without_names_have_numbers_and_many_are_cut(capsys):
    more = np.random.default_rng(100).normal(size=(1600, 22))
    many = np.concatenate([X, more], axis=1)
    np.save("rows.npy", np.column_stack([many, Y]))
    assert main(["train", "rows.npy", "-o", "m.asset", *SMALL, "--relevance", "columns"]) == 0
    assert main(["info", "m.asset"]) == 0
    shares = told(capsys)["importance"]
    assert next(iter(shares)) == "column 2" and len(shares) == 21 and list(shares)[-1] == "10 others"
    total = sum(float(share.removesuffix(" %")) for share in shares.values())
    assert total == pytest.approx(100, abs=0.2)


def test_probabilities_and_scaling_go_with_it(capsys):
    write("classes.csv", slice(0, 800), np.where(Y > 0, 1, 0))
    options = ["--probability", "--scale", "standard", "--relevance", "columns", "-o", "m.asset"]
    assert main(["train", "classes.csv", *SMALL, *options]) == 0
    assert main(["info", "m.asset"]) == 0
    info = told(capsys)
    assert info["m.asset"]["relevance"] == "columns" and next(iter(info["importance"])) == NASTY
    assert main(["predict", "m.asset", "classes.csv", "--probability"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 801


# The report ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("asked", ["auto", pytest.param("columns", marks=pytest.mark.slow)])
def test_the_report_has_bars_and_rounds(here, asked, capsys):
    pytest.importorskip("matplotlib")
    options = ["-o", "m.asset", *SMALL, "--relevance", asked, "--report", "r.html"]
    assert main(["train", "train.csv", *options]) == 0
    html = (here / "r.html").read_text()
    assert "<script>alert" not in html
    read = Reader(html)
    text = " ".join(read.text)
    for word in ("Relevance", "Importance of the columns", "Rounds", "held-out R2", "chosen"):
        assert word in text
    model = asset_svm.load("m.asset")
    # A tip for every bar, whole, and one for every point of the rounds.
    tips = [part for part in read.text if part.endswith(f"{100 * model.feature_importances_[2]:.1f}")]
    assert any(part.startswith(NASTY + "\n") for part in tips)
    rows = sum(tag == "tr" for tag, _ in read.tags)
    assert rows >= len(model.relevance_history_)
    for width in (1000, 390):
        seen = look_at(here / "r.html", width)
        assert seen.console == [] and seen.page <= seen.window
        assert all(chart["width"] > 200 and chart["height"] > 130 for chart in seen.charts)


# Large files, and runs that are cut ---------------------------------------------------------------


@pytest.mark.usefixtures("whole_fits")
def test_a_file_larger_than_memory_learns_what_one_in_memory_does(capsys, monkeypatch):
    runs = []
    run = files.RelevantWindows.run
    monkeypatch.setattr(files.RelevantWindows, "run", lambda self: runs.append(self) or run(self))
    errors = []
    for memory in (["--memory", "200MB"], ["--memory", "300KB"]):
        options = [
            "-o",
            "m.asset",
            *SMALL[:2],
            "--C",
            "10",
            "--max-iter",
            "30",
            "--relevance",
            "columns",
        ]
        assert main(["train", "train.csv", "--test", "test.csv", *options, *memory]) == 0
        errors.append(float(told(capsys)["trained"]["test RMSE"]))
        importances = asset_svm.load("m.asset").feature_importances_
        assert {*np.argsort(-importances)[:3].tolist()} == {2, 5, 6}
    assert len(runs) == 1, "one was read by windows"
    assert errors[1] < errors[0] + 0.05 * np.std(Y)


def test_the_command_draws_as_many_rows_for_the_relevance_as_a_fit(monkeypatch, capsys):
    monkeypatch.setattr(files, "SAMPLE_ROWS", 200)
    monkeypatch.setattr(files, "RELEVANCE_ROWS", 700)
    monkeypatch.setattr(files, "planned_memory", lambda limit: 0)
    options = ["-o", "m.asset", *SMALL, "--scale", "none", "--relevance", "columns"]
    assert main(["train", "train.csv", *options]) == 0
    by_command = asset_svm.load("m.asset")
    model = AssetRegressor(n_components=100, max_iter=4, C=10, relevance="columns", random_state=0)
    model.fit(asset_svm.open_rows("train.csv", dtype=np.float32))
    np.testing.assert_array_equal(by_command.relevance_, model.relevance_)
    assert {record["rows"] for record in model.relevance_history_} == {525}


def cut(command, count):
    """A child that runs the command, and is killed as soon as its count-th file is in its place."""
    if not hasattr(os, "fork"):
        pytest.skip("needs os.fork")
    child = os.fork()
    if child == 0:
        left, replace = [count], atomic.Path.replace

        def last(self, target):
            moved = replace(self, target)
            left[0] -= 1
            if left[0] == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return moved

        atomic.Path.replace = last
        with open(os.devnull, "w") as nowhere:
            os.dup2(nowhere.fileno(), 1)
            os.dup2(nowhere.fileno(), 2)
        try:
            main(command)
        finally:
            os._exit(99)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL


@pytest.mark.parametrize(
    ("where", "asked"),
    [
        ("memory", "columns"),
        ("windows", "directions"),
        pytest.param("memory", "directions", marks=pytest.mark.slow),
        pytest.param("windows", "columns", marks=pytest.mark.slow),
    ],
)
def test_a_run_that_is_cut_ends_in_the_same_model(asked, where, monkeypatch, capsys):
    """The first file is the run's, with the relevance in it; later ones are states."""
    learnt = []
    if where == "windows":
        monkeypatch.setattr(windows, "WINDOW_ROWS", 300)
        monkeypatch.setattr(files, "planned_memory", lambda limit: 0)
    options = ["--relevance", asked, "--every", "1e-9s", "--scale", "standard", *SMALL]
    whole = ["train", "train.csv", "-o", "whole.asset", *options]
    assert main(whole if where == "memory" else [*whole, "--checkpoint", "w"]) == 0
    for count in (1, 3):
        name = f"cut{count}"
        command = ["train", "train.csv", "-o", f"{name}.asset", "--checkpoint", name, *options]
        cut(command, count)
        with monkeypatch.context() as patch:
            for module in ("family", "windows"):
                target = f"asset_svm.families.relevance.{module}.learnt_of"
                patch.setattr(target, lambda *_: learnt.append(1))
            assert main([*command, "--resume"]) == 0
        assert learnt == [], "the relevance is that of the checkpoint"
        assert_same_model(f"{name}.asset", "whole.asset")
        model, same = (asset_svm.load(f"{each}.asset")[-1] for each in (name, "whole"))
        for each in ("relevance_", "feature_importances_"):
            np.testing.assert_array_equal(getattr(model, each), getattr(same, each))
    capsys.readouterr()


def test_another_relevance_is_another_run(capsys):
    options = ["--every", "1e-9s", *SMALL, "-o", "m.asset", "--checkpoint", "run"]
    cut(["train", "train.csv", *options, "--relevance", "columns"], 1)
    assert main(["train", "train.csv", *options, "--relevance", "directions", "--resume"]) == 2
    assert "relevance was 'columns'" in capsys.readouterr().err


def test_rows_that_directions_make_dense_are_counted_as_such():
    """A window of sparse rows would be too large else."""
    directions = Relevance(np.ones((50, 400)), None, 1.0)
    assert directions.mapped_bytes(10, 300, np.dtype(np.float32)) == 10 * 50 * 4
    assert directions.mapped_bytes(10, 16_000, np.dtype(np.float32)) == 16_000
    assert Relevance(np.ones(400), None, 1.0).mapped_bytes(10, 300, np.dtype(np.float32)) == 300


# The display --------------------------------------------------------------------------------------


@pytest.fixture
def plt(monkeypatch):
    matplotlib = pytest.importorskip("matplotlib")
    before = matplotlib.get_backend(auto_select=False)
    matplotlib.use("Agg")
    from matplotlib import pyplot

    yield pyplot
    pyplot.close("all")
    if before is not None:
        matplotlib.use(before)


def fitted(kind=AssetRegressor, y=Y, **options):
    options = {"relevance": "columns", "random_state": 0, "n_components": 50, **options}
    return kind(max_iter=3, **options).fit(X[:300], y[:300])


@pytest.mark.parametrize("asked", ["columns", "directions", "auto"])
@pytest.mark.parametrize("kind", [AssetClassifier, AssetRegressor])
def test_bars_are_sorted_and_have_their_share_beside_them(plt, kind, asked):
    model = fitted(kind, (Y > 0).astype(int) if kind is AssetClassifier else Y, relevance=asked)
    display = RelevanceDisplay.from_estimator(model, names=NAMES)
    shares = model.feature_importances_
    lengths = [bar.get_width() for bar in display.bars_]
    assert lengths == sorted(lengths, reverse=True) and sum(lengths) == pytest.approx(100)
    display.figure_.canvas.draw()
    names = [label.get_text() for label in display.ax_.get_yticklabels()]
    order = np.argsort(-shares, kind="stable")
    assert [name.strip("\u200a") for name in names if "<" not in name] == [
        NAMES[j] for j in order if NAMES[j] != NASTY
    ]
    texts = {text.get_text() for text in display.ax_.texts}
    assert f"{100 * shares.max():.1f} %" in texts
    top, bottom = (display.bars_[k].get_y() for k in (0, -1))
    pixels = display.ax_.transData.transform([(0, top), (0, bottom)])[:, 1]
    assert pixels[0] > pixels[1], "the longest is on top"


def test_a_display_takes_axes_and_as_many_columns_as_are_asked_for(plt):
    model, (figure, axes) = fitted(), plt.subplots(1, 2)
    display = RelevanceDisplay.from_estimator(model, ax=axes[1], n_columns=3)
    assert display.ax_ is axes[1] and display.figure_ is figure and len(display.bars_) == 3
    labels = [label.get_text() for label in axes[1].get_yticklabels()]
    assert labels[0] == "column 2"
    assert display.plot() is display and display.ax_ is not axes[1]
    assert len(plt.get_fignums()) == 2


@pytest.mark.filterwarnings("ignore:Glyph .* missing")  # the font's, whose boxes are as wide
def test_nothing_of_a_display_is_outside_its_figure(plt):
    """Neither a long name, nor the label of the longest bar."""
    display = RelevanceDisplay([0.9, 0.1], names=[NASTY, "温度" * 30]).plot()
    display.figure_.canvas.draw()
    frame = display.figure_.bbox
    for text in (*display.ax_.texts, *display.ax_.get_yticklabels()):
        box = text.get_window_extent()
        assert frame.x0 <= box.x0 and box.x1 <= frame.x1


def test_names_of_a_dataframe_are_taken(plt):
    pd = pytest.importorskip("pandas")
    model = AssetRegressor(relevance="columns", n_components=50, max_iter=3, random_state=0)
    model.fit(pd.DataFrame(X[:300], columns=list("abcdefgh")), Y[:300])
    display = RelevanceDisplay.from_estimator(model)
    assert display.ax_.get_yticklabels()[0].get_text() == "c"


def test_what_has_no_relevance_is_told_to_set_it(plt):
    with pytest.raises(ValueError, match="no learnt relevance; set relevance="):
        RelevanceDisplay.from_estimator(fitted(relevance=None))
    with pytest.raises(NotFittedError):
        RelevanceDisplay.from_estimator(AssetRegressor(relevance="columns"))
    pipeline = make_pipeline(StandardScaler(), fitted())
    with pytest.raises(TypeError, match=r"give the model in it.*pipeline\[-1\]"):
        RelevanceDisplay.from_estimator(pipeline)
    assert RelevanceDisplay.from_estimator(pipeline[-1]).bars_


def test_bad_parameters_of_a_display_are_told(plt):
    model = fitted()
    with pytest.raises(ValueError, match=r"2 names.*\(8,\); give a name for each"):
        RelevanceDisplay.from_estimator(model, names=["a", "b"])
    for count in (0, -1, 2.5, True, "all"):
        with pytest.raises(ValueError, match=r"n_columns=.* at least 1"):
            RelevanceDisplay.from_estimator(model, n_columns=count)


def test_without_matplotlib_there_is_the_line_to_run(monkeypatch):
    found = builtins.__import__

    def absent(name, *more):
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return found(name, *more)

    model = fitted()
    monkeypatch.setattr(builtins, "__import__", absent)
    with pytest.raises(ImportError, match=r'pip install "asset-svm\[plot\]"'):
        RelevanceDisplay.from_estimator(model)
