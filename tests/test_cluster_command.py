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
    assert main(["train", "all.parquet", *SMALL, "-o", "plain.asset"]) == 0
    assert main(["train", "all.parquet", *SMALL, "-o", "dask.asset", "--dask", scheduler]) == 0
    one, other = asset_svm.load("plain.asset"), asset_svm.load("dask.asset")
    assert type(other) is AssetClassifier and one.get_params() == other.get_params()
    # A run that is looked at after every epoch sums its average up in other parts.
    np.testing.assert_allclose(one.dual_coef_, other.dual_coef_, rtol=1e-4, atol=1e-5)
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
        (["odd-*.csv"], r"odd-1.csv, row 2, column 'a': 'x' is not a number"),
        (["mixed-*.csv"], "targets are numbers first, and names later"),
        (["empty-*.csv"], r"empty-\*.csv has no rows"),
        (["hole-*.parquet"], r"hole-0.parquet, row 3, column 'a': (nan|the value is missing)"),
        (["cut-*.parquet"], "cut-0.parquet is not a whole Parquet file"),
    ],
)
def test_what_cannot_be_is_told_in_one_sentence(scheduler, capsys, arguments, message, here):
    for name, text in (
        ("odd-0.csv", "a,y\n1,0\n2,1\n"), ("odd-1.csv", "a,y\n1,0\nx,1\n"),
        ("mixed-0.csv", "a,y\n1,0\n2,1\n"), ("mixed-1.csv", "a,y\n1,b\n"),
        ("empty-0.csv", "a,y\n"), ("cut-0.parquet", "PAR1 nothing"),
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
