"""``asset train --dask`` on a real cluster of processes."""

import importlib.util
import os
import re
import signal
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("distributed", reason='needs the extra "dask": pip install "asset-svm[dask]"')
pytest.importorskip("typer")

import dask
from distributed import Client

import asset_svm
from asset_svm import AssetClassifier
from asset_svm.cli import cluster
from asset_svm.cli.main import main
from asset_svm.dask import DaskAssetClassifier, files, read_rows
from clusters import two_workers, when_round
from processes import HUNG, running

pytestmark = pytest.mark.dask

SMALL = ["--n-components", "60", "--max-iter", "3", "--gamma", "0.5"]
ROWS = 3000


@pytest.fixture(scope="module")
def scheduler():
    """The address of a scheduler with two workers, each a process with a nanny."""
    with two_workers() as workers:
        yield workers.scheduler_address


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    """Parts of a problem of two named classes, and of a regression."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    y = rng.random(ROWS + 500) < 0.5
    X = (rng.normal(size=(ROWS + 500, 3)) + 0.8 * (2 * y[:, None] - 1)).astype(np.float32)
    frame = pd.DataFrame(X, columns=list("abc")).assign(label=np.where(y, "yes", "no"))
    for number in range(3):
        part = frame[number * 1000 : (number + 1) * 1000]
        part.to_parquet(f"part-{number}.parquet", row_group_size=300)
        part.to_csv(f"part-{number}.csv", index=False)
        part.assign(label=3.0 * part.a + part.b).to_parquet(f"real-{number}.parquet")
    frame[:0].to_parquet("part-3.parquet")
    frame[ROWS:].to_parquet("test.parquet")
    return X, frame


def lines(capsys):
    out = capsys.readouterr().out
    return dict(line.split("\t")[:2] for line in out.splitlines() if "\t" in line)


def refused(capsys, *arguments):
    """The one sentence that a command ends with."""
    assert main(["train", *arguments]) == 2
    (sentence,) = capsys.readouterr().err.splitlines()
    return sentence


@pytest.mark.parametrize("ending", ["parquet", pytest.param("csv", marks=pytest.mark.slow)])
def test_files_are_learnt_from_on_a_cluster(scheduler, capsys, ending):
    command = ["train", f"part-*.{ending}", "--dask", scheduler, "--test", "test.parquet", *SMALL]
    assert main([*command, "--scale", "standard", "--report", "page.html"]) == 0
    told = lines(capsys)
    assert told["classes"] == "2: no, yes" and told["scaling"] == "StandardScaler"
    assert float(told["test error"].split()[0]) < 12 and told["saved in"] == "part.asset"
    assert main(["evaluate", "part.asset", "test.parquet"]) == 0
    assert lines(capsys)["error"] == told["test error"]
    assert main(["info", "part.asset"]) == 0
    told = lines(capsys)
    assert told["target"] == "label" and told["rows"] == "3000" and os.path.getsize("page.html") > 1000


def test_one_file_gives_the_model_of_one_machine(scheduler, capsys, here):
    _, frame = here
    frame[:ROWS].to_parquet("all.parquet")
    # A run that is looked at after every epoch sums its average up in other parts: in float32 the
    # coefficients of landmarks near each other tell.
    command = ["train", "all.parquet", *SMALL, "--dtype", "float64", "-o"]
    assert main([*command, "plain.asset"]) == 0
    assert main([*command, "dask.asset", "--dask", scheduler]) == 0
    one, other = asset_svm.load("plain.asset"), asset_svm.load("dask.asset")
    assert type(other) is AssetClassifier
    mine, theirs = one.get_params(), other.get_params()  # deep: those of the encoder are among them
    assert {**mine, "encoder": None} == {**theirs, "encoder": None}
    made, same = one.encoder_, other.encoder_
    assert made.get_feature_names_out().tolist() == same.get_feature_names_out().tolist()
    np.testing.assert_allclose(one.dual_coef_, other.dual_coef_, rtol=1e-9, atol=1e-10)
    assert other.feature_names_in_.tolist() == ["a", "b", "c"]
    assert other.classes_.dtype == one.classes_.dtype


def test_cells_and_regression(scheduler, capsys):
    assert main(["train", "part-*.parquet", "--n-cells", "4", "-o", "plain.asset"]) == 0
    command = ["train", "part-*.parquet", "--n-cells", "4", "-o", "dask.asset", "--dask", scheduler]
    assert main(command) == 0
    one, other = asset_svm.load("plain.asset"), asset_svm.load("dask.asset")
    assert one.objective_ == other.objective_ and other.n_cells_ == 4
    capsys.readouterr()
    assert main(["train", "real-*.parquet", "--dask", scheduler, *SMALL, "--C", "10"]) == 0
    assert lines(capsys)["model"] == "AssetRegressor"


# Tables --------------------------------------------------------------------------------------------

TABLE = ["--n-components", "60", "--max-iter", "5", "--C", "10"]


@pytest.fixture
def mixed():
    """Three files of a table with everything in it; ``code`` has a name in the last of them alone."""
    rng = np.random.default_rng(1)
    n = 1500
    colour, size, town = rng.choice(list("rgb"), n), rng.normal(size=n), rng.integers(0, 90, n)
    day = pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 500, n), unit="D")
    code, effect = rng.choice(["01", "02", "03"], n).astype(object), rng.normal(size=90)
    code[-3:] = "none"
    value = np.where(colour == "r", 1.0, -1.0) + size + effect[town] + 0.1 * rng.normal(size=n)
    frame = pd.DataFrame(
        {
            "colour": colour,
            "size": np.where(np.arange(n) >= 1000, np.where(rng.random(n) < 0.2, np.nan, size), size),
            "day": day,
            "town": [f"t{k}" for k in town],
            "code": code,
            "id": [f"row {k}" for k in range(n)],
            "label": np.where(value > 0, "yes", "no"),
        }
    )
    for number in range(3):
        frame[number * 500 : (number + 1) * 500].to_csv(f"mixed-{number}.csv", index=False)
    frame.assign(label=250.0 * value).to_csv("value.csv", index=False)
    return frame


def test_tables_are_learnt_from_as_they_are(scheduler, capsys, mixed):
    assert main(["train", "mixed-*.csv", *TABLE, "-o", "plain.asset"]) == 0
    told = capsys.readouterr().err
    command = ["train", "mixed-*.csv", *TABLE, "-o", "dask.asset", "--dask", scheduler]
    assert main([*command, "--test", "mixed-0.csv", "--report", "page.html"]) == 0
    found = capsys.readouterr()
    of_columns = [line for line in told.splitlines() if line.startswith("asset: ")]
    assert len(of_columns) == 5
    assert [line for line in found.err.splitlines() if line.startswith("asset: ")] == of_columns
    one, other = asset_svm.load("plain.asset"), asset_svm.load("dask.asset")
    assert other.encoder_.columns_ == one.encoder_.columns_
    kinds = {each["name"]: each["kind"] for each in other.encoder_.columns_}
    assert kinds["code"] == "levels" and kinds["day"] == "time" and kinds["size"] == "number"
    names = other.encoder_.get_feature_names_out().tolist()
    assert names == one.encoder_.get_feature_names_out().tolist() and "size gap" in names
    assert {"code 01", "code none"} <= set(names)  # as they are written, in files of numbers too
    means = [model.encoder_.transform(mixed)[:, names.index("town mean yes")] for model in (one, other)]
    np.testing.assert_allclose(*means, rtol=1e-5, atol=1e-6)
    errors = [np.mean(model.predict(mixed) != mixed.label) for model in (one, other)]
    assert errors[1] < errors[0] + 0.02 < 0.15
    mixed.assign(colour="violet", code=9).to_csv("new.csv", index=False)
    assert main(["predict", "dask.asset", "new.csv"]) == 0  # unknown levels are those of nobody
    assert set(capsys.readouterr().out.split()) == {"yes", "no"}


def test_options_about_columns_go_to_the_cluster(scheduler, capsys, mixed):
    for number in range(2):
        text = mixed[number * 500 : (number + 1) * 500].assign(id="--", code=3 + number)
        text = text.to_csv(index=False, sep=";", decimal=",").replace("row", "r\xf6w")
        Path(f"comma-{number}.csv").write_text(text, encoding="latin-1")
    options = ["--categorical", "code", "--drop", "town", "--missing", "--,b", "--decimal", ","]
    options += ["--encoding", "latin-1", "--numbers", "quantile"]
    assert main(["train", "comma-*.csv", *TABLE, *options, "--dask", scheduler]) == 0
    made = {each["name"]: each["made"] for each in asset_svm.load("comma.asset").encoder_.columns_}
    assert "town" not in made and made["id"] == "no row has a value" and made["size"] == "ranks"
    assert made["code"] == "one of 2 levels" and made["colour"].startswith("one of 2 levels, ")
    assert "asset: size: ranks" in capsys.readouterr().err
    with Client(scheduler, set_as_default=False) as client:
        raw = asset_svm.RawOptions(missing=("--",), decimal=",", encoding="latin-1")
        rows, labels = read_rows("comma-*.csv", client=client, raw=raw)
        kinds = [rows.dtypes[name].kind for name in ("colour", "size", "day", "code", "id")]
        assert kinds == ["O", "f", "M", "f", "f"] and rows.npartitions == 2
        frame = client.compute(rows).result()
        assert frame.colour.dtype == "category" and frame["size"].equals(frame["size"].astype(float))
        assert frame.colour.astype(str).tolist() == mixed.colour[:1000].tolist()
        assert len(client.compute(labels).result()) == 1000


def test_a_regression_of_a_table_has_units(scheduler, capsys, mixed):
    command = ["train", "value.csv", *TABLE, "--max-iter", "20"]
    assert main([*command, "-o", "plain.asset"]) == 0
    assert main([*command, "-o", "dask.asset", "--dask", scheduler]) == 0
    one, other = asset_svm.load("plain.asset"), asset_svm.load("dask.asset")
    assert other.target_transform == one.target_transform == "standard"
    y = pd.read_csv("value.csv").label
    assert other.score(mixed, y) == pytest.approx(one.score(mixed, y), abs=1e-3) and y.std() > 200
    assert other.score(mixed, y) > 0.85
    assert other.objective_ == pytest.approx(one.objective_, rel=1e-4)


def test_gaps_of_a_parquet_file_are_told_by_a_column(scheduler, capsys, here):
    frame = here[1]
    frame[:500].to_parquet("gap-0.parquet")
    frame[500:1000].assign(a=None).to_parquet("gap-1.parquet")  # without a type of its own
    assert main(["train", "gap-*.parquet", *SMALL, "--dask", scheduler]) == 0
    (column, *_) = asset_svm.load("gap.asset").encoder_.columns_
    assert column["made"].endswith(", 500 gaps") and column["kind"] == "number"


def test_a_cluster_of_this_machine(capsys):
    with dask.config.set({"distributed.worker.daemon": True}):
        assert main(["train", "part-*.parquet", "--dask", "local", "--jobs", "1", *SMALL]) == 0
    assert lines(capsys)["features"] == "3"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["none-*.parquet"], r"asset: none-\*.parquet matches no file\."),
        (["part-*.parquet", "--target", "d"], "part-0.parquet has no column 'd'"),
        (["-"], "workers cannot read standard input"),
        (["part-*.parquet", "--online"], "--online does not go with --dask"),
        (["part-*.parquet", "--checkpoint", "."], "--checkpoint does not go with --dask"),
        (["part-*.parquet", "--time-limit", "5s"], "--time-limit does not go with --dask"),
        (["part-*.parquet", "--tol", "0.1"], "tol=0.1 does not work on a cluster"),
        (["part-*.parquet", "--task", "regression"], "The targets are names; regression needs numbers"),
        (["real-*.parquet", "--task", "classification"], "The targets have fractions"),
        (
            ["odd-*.csv", "--scale", "none"],
            r"odd-1.csv, row 2, column 'a': 'x' is not a number; leave the column out",
        ),
        (
            ["odd-*.csv", "--numeric", "a"],
            r"odd-1.csv, row 2, column 'a': 'x' is not a number; name it as missing with --missing",
        ),
        (["odd-*.csv", "--scale", "none", "--drop", "a"], "--drop a: goes with csv, tsv or Parquet"),
        (["odd-*.csv", "--numbers", "odd"], "--numbers odd: choose one of auto, standard"),
        (["odd-*.csv", "--drop", "b"], "odd-0.csv has no column 'b', which an option names"),
        (["same-*.csv"], "No column of X tells rows apart: a: left out, every row has the same value"),
        (["far-*.csv"], r"far-0.csv, row 2, column 'a': inf is not a finite number"),
        (["log-*.csv", "--target-transform", "log"], "needs targets above 0, and y has -7.5"),
        (["mixed-*.csv"], "targets are numbers first, and names later"),
        (["empty-*.csv"], r"empty-\*.csv has no rows"),
        (
            ["hole-*.parquet", "--scale", "none"],
            r"hole-0.parquet, row 3, column 'a': (nan|the value is missing)",
        ),
        (["cut-*.parquet"], "cut-0.parquet is not a whole Parquet file"),
    ],
)
def test_what_cannot_be_is_told_in_one_sentence(scheduler, capsys, arguments, message, here):
    for name, text in (
        ("odd-0.csv", "a,y\n1,0\n2,1\n"), ("odd-1.csv", "a,y\n1,0\nx,1\n"),
        ("mixed-0.csv", "a,y\n1,0\n2,1\n"), ("mixed-1.csv", "a,y\n1,b\n"),
        ("empty-0.csv", "a,y\n"), ("cut-0.parquet", "PAR1 nothing"),
        ("same-0.csv", "a,y\n1,0\n1,1\n"), ("far-0.csv", "a,y\n1,0\ninf,1\n"),
        ("log-0.csv", "a,y\n1,1.5\n2,2\n"), ("log-1.csv", "a,y\n3,-7.5\n4,8\n"),
    ):  # fmt: skip
        with open(name, "w") as file:
            file.write(text)
    pd.DataFrame({"a": [1.0, 2.0, None], "y": [0, 1, 1]}).to_parquet("hole-0.parquet")
    sentence = refused(capsys, *arguments, "--dask", scheduler)
    assert re.search(message, sentence), sentence


def test_no_scheduler_is_told_within_seconds(capsys, monkeypatch):
    assert cluster.PATIENCE < 10
    monkeypatch.setattr(cluster, "PATIENCE", 1.0)
    sentence = refused(capsys, "part-*.parquet", "--dask", "tcp://127.0.0.1:9")
    assert "no scheduler answers there" in sentence
    assert "missing port" in refused(capsys, "part-*.parquet", "--dask", "nonsense")


def test_without_dask_the_pip_line_is_told(capsys, monkeypatch):
    find = importlib.util.find_spec
    absent = lambda name, *rest: None if name == "distributed" else find(name, *rest)  # noqa: E731
    monkeypatch.setattr(importlib.util, "find_spec", absent)
    monkeypatch.delitem(sys.modules, "asset_svm.dask")
    sentence = refused(capsys, "part-*.parquet", "--dask", "local")
    assert sentence.endswith('not installed; run: pip install "asset-svm[dask]"')


@pytest.mark.slow  # what fits on clusters make of it is tested beside them
def test_a_worker_killed_on_the_way_changes_nothing(scheduler, capsys):
    command = ["train", "part-*.parquet", *SMALL, "--dask"]
    assert main([*command, scheduler, "-o", "well.asset"]) == 0
    with two_workers() as mortals, Client(mortals, set_as_default=False) as client:
        victim = sorted(client.run(os.getpid).values())[0]
        with when_round(2, lambda: os.kill(victim, signal.SIGKILL)):
            assert main([*command, mortals.scheduler_address, "-o", "hurt.asset"]) == 0
        assert victim not in client.run(os.getpid).values()
    one, other = asset_svm.load("well.asset"), asset_svm.load("hurt.asset")
    np.testing.assert_array_equal(one.dual_coef_, other.dual_coef_)


@pytest.mark.slow
def test_ctrl_c_of_a_terminal_leaves_the_model_so_far(tmp_path):
    """The signal reaches the workers too, which are of the same terminal."""
    command = [sys.executable, "-m", "asset_svm.cli.main", "train", "part-*.parquet", *SMALL]
    command += ["--max-iter", "100000", "--dask", "local", "--jobs", "1", "-o", "m.asset"]
    with (
        open("told", "w") as told,
        running(command, stderr=told, stdout=told, start_new_session=True) as process,
    ):
        while "epoch" not in Path("told").read_text():
            assert process.poll() is None
            time.sleep(0.05)
        os.killpg(process.pid, signal.SIGINT)
        assert process.wait(HUNG) == 130
    said = Path("told").read_text()
    assert "the model so far is in m.asset" in said and "Traceback" not in said
    assert asset_svm.load("m.asset").n_iter_ < 100000


def test_rows_of_files_as_collections(scheduler, here, monkeypatch):
    monkeypatch.setattr(files, "PIECE_BYTES", 20_000)
    X, frame = here
    with Client(scheduler, set_as_default=False) as client:
        rows, labels = read_rows("part-*.parquet", client=client)
        assert rows.columns.tolist() == ["a", "b", "c"] and rows.npartitions == labels.npartitions > 3
        model = DaskAssetClassifier(n_components=60, max_iter=3, client=client).fit(rows, labels)
        assert model.feature_names_in_.tolist() == ["a", "b", "c"] and model.score(rows, labels) > 0.85
        np.save("X.npy", np.column_stack([X[:ROWS], frame.label[:ROWS] == "yes"]))
        rows, labels = read_rows("X.npy", target="3", client=client)
        assert rows.shape == (ROWS, 3) and labels.dtype == np.int64
        np.testing.assert_array_equal(client.compute(rows).result(), X[:ROWS])
        assert client.compute(labels).result().sum() == (frame.label[:ROWS] == "yes").sum()
