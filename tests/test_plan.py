"""``asset plan``: estimates of time and memory before a training begins."""

import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from asset_svm import AssetClassifier
from asset_svm.data.source import Block
from asset_svm.datasets import make_waves, write_rows

pytest.importorskip("typer")
pytest.importorskip("pyarrow")
from asset_svm.cli import plan
from asset_svm.cli.main import main
from asset_svm.cli.plan import Costs, Tried, _time


@pytest.fixture(autouse=True)
def few_rows(monkeypatch, tmp_path):
    monkeypatch.setattr(plan, "HEAD_ROWS", 2000)
    monkeypatch.setattr(plan, "FEW_ROWS", 500)
    monkeypatch.chdir(tmp_path)


def planned(capsys, *arguments):
    assert main(["plan", *arguments]) == 0
    told = capsys.readouterr().out.splitlines()
    return dict(line.split("\t") for line in told if line.count("\t") == 1)


LAW = dict(setup=(1e-6, 1e-9), once=(1e-9, 0.0), epoch=(3e-9, 1e-12))


LOOK = 2e-8


def tried(s):
    """Costs that follow the law exactly, by the clock and twice that of processors."""
    a, c = LAW["setup"]
    powers = [a * s**2 + c * s**3, *(p * s + q * s**2 for p, q in (LAW["once"], LAW["epoch"]))]
    return Tried(s, *(np.array([value, 2 * value]) for value in powers))


def costs_of(read):
    both = np.array([1.0, 2.0])
    look = np.full(2, LOOK)
    return Costs(np.array(read), look, tried(512), 1e-9 * both, 1e-12 * both, (False, True))


def test_costs_that_follow_the_law_are_found_at_any_number_of_components():
    costs = costs_of([1e-7, 1e-7])
    for s in (64, 512, 4096):
        found, expected = costs.at(s), tried(s)
        for name in ("setup", "once", "epoch"):
            np.testing.assert_allclose(getattr(found, name), getattr(expected, name), rtol=1e-9)
    n, at = 10**7, costs.at(1024)
    seconds = costs.seconds(n, 1024, 3, streamed=False, threads=2)
    np.testing.assert_allclose(seconds, at.setup + n * (1e-7 + LOOK + at.once + 3 * at.epoch))
    streamed = costs.seconds(n, 1024, 3, streamed=True, threads=2)
    more = streamed - seconds  # the file is read once an epoch besides, by one of two threads
    np.testing.assert_allclose(more, [n * 3 * 1e-7 / 2, n * 3 * 1e-7])


def test_learning_never_takes_less_than_reading():
    costs = costs_of([1.0, 1e-6])
    at = costs.at(16)
    expected = at.setup[0] + 1000 * (at.once[0] + 1.0 + LOOK) + 2 * 1000 * 1.0
    assert costs.seconds(1000, 16, 2, streamed=True, threads=2)[0] == pytest.approx(expected)


def seconds_of(said):
    number, unit = said.split()
    return float(number) * {"s": 1, "min": 60, "h": 3600}[unit]


def test_times_are_told_in_units_that_suit_them():
    assert [_time(seconds) for seconds in (1.26, 300, 36_000)] == ["1.3 s", "5.0 min", "10.0 h"]


def test_features_are_the_least_that_a_row_takes_however_trials_differ(monkeypatch):
    """Trials of more rows that were quicker by chance would make rows free, or less than that."""
    falling = iter(np.linspace(2.0, 1.0, 99))

    def spent(work):
        work()
        return np.full(2, next(falling))

    monkeypatch.setattr(plan, "spent", spent)
    X, y = np.random.default_rng(0).normal(size=(900, 3)), np.arange(900) % 2
    planning = object.__new__(plan.Planning)
    planning.seed = 0
    for streamed, kept in ((True, False), (False, False), (False, True)):
        model = AssetClassifier(n_components=8)
        costs = planning._try(np.zeros(2), model, Block(X, y), 8, streamed=streamed, kept=kept)
        tried, features = costs.tried, 1.0 / 900
        assert (tried.epoch >= (0.0 if kept else features)).all() and (tried.epoch > 0.0).all()
        assert (tried.once >= (0.0 if streamed else features)).all()


@pytest.mark.parametrize("kept", [False, True])
def test_trials_of_rows_in_memory_find_what_a_row_costs_once_and_in_every_epoch(monkeypatch, kept):
    """The parts of trials that follow the law are told apart exactly."""
    setup, once, epoch, mapped = 0.5, 3e-4, 2e-4, 1e-5
    fits, fit = [], AssetClassifier.fit

    def fitted(self, X, y):
        fits.append(setup + len(y) * (once + self.max_iter * epoch))
        return fit(self, X, y)

    def spent(work):
        work()
        return np.full(2, fits.pop() if fits else mapped * 900)  # other work is of features

    monkeypatch.setattr(AssetClassifier, "fit", fitted)
    monkeypatch.setattr(plan, "spent", spent)
    X, y = np.random.default_rng(0).normal(size=(900, 3)), np.arange(900) % 2
    planning = object.__new__(plan.Planning)
    planning.seed = 0
    model = AssetClassifier(n_components=8)
    found = planning._try(np.zeros(2), model, Block(X, y), 8, streamed=False, kept=kept).tried
    for name, value in (("setup", setup), ("once", once), ("epoch", epoch)):
        np.testing.assert_allclose(getattr(found, name), value, rtol=1e-9)


def test_a_trial_of_a_stream_counts_the_rows_of_all_epochs_but_the_first(monkeypatch):
    """On a clock on which set-up takes 5 s, the first window 9 s, all others 2 s."""
    now, fit = [0.0], plan.fit_rows

    def timed(model, scanned, watch=None):
        fit(model, scanned)
        now[0] += 5.0
        for window in range(2 * model.max_iter):
            now[0] += 2.0 if window else 9.0
            watch({"steps": 450 * (window + 1)})

    clock = SimpleNamespace(perf_counter=lambda: now[0], process_time=lambda: 2.0 * now[0])
    monkeypatch.setattr(plan, "time", clock)
    monkeypatch.setattr(plan, "fit_rows", timed)
    X, y = np.random.default_rng(0).normal(size=(900, 3)), np.arange(900) % 2
    planning = object.__new__(plan.Planning)
    planning.seed = 0
    model = AssetClassifier(n_components=8)
    found = planning._try(np.zeros(2), model, Block(X, y), 8, streamed=True, kept=False).tried
    np.testing.assert_allclose(found.epoch, np.array([4.0, 8.0]) / 900)
    np.testing.assert_allclose(found.setup, [12.0, 24.0])
    assert not found.once.any()


@pytest.mark.parametrize(
    ("rows", "row", "done"),
    [
        ([], 20.0 / 900, 900),  # all that is known: what everything took
        ([900], 20.0 / 900, 900),
        ([450, 900], 2.0 / 450, 900),  # the second window
        ([450, 900, 1350], 2.0 / 450, 1350),  # that of the second epoch
        ([900, 1800, 2700], 4.0 / 1800, 2700),
    ],
)
def test_a_stream_that_ends_early_tells_what_it_can(rows, row, done):
    ends = [
        np.array([9.0 + 2.0 * place, 2.0 * (9.0 + 2.0 * place), own]) for place, own in enumerate(rows)
    ]
    found, count = plan._streamed(np.array([20.0, 40.0]), ends, 900)
    np.testing.assert_allclose(found, [row, 2.0 * row])
    assert count == done


@pytest.mark.parametrize("name", ["rows.parquet", "rows.npy"])
def test_a_plan_tells_rows_time_and_memory(name, capsys):
    write_rows(make_waves(5000), name)
    target = ["--target", "y"] if name.endswith("parquet") else []
    options = [*target, "--scale", "none", "--n-components", "64", "--max-iter", "2"]
    told = planned(capsys, name, *options)
    assert told["rows"] == "5000" and told["columns"] == "20" and told["components"] == "64"
    assert told["epochs"] == "2" and told["rows are"] == "held in memory, with their features"
    assert {"time", "processor time", "memory", "read, a million rows"} <= told.keys()
    many = planned(capsys, name, *options, "--rows", "1e9", "--memory", "1GB")
    assert many["rows"] == "1000000000" and many["rows are"] == "read a window at a time"
    assert seconds_of(many["time"]) > seconds_of(told["time"])


def test_a_table_is_encoded_as_it_would_be(capsys):
    rng = np.random.default_rng(0)
    with open("shop.csv", "w") as file:
        file.write("age,city,bought\n")
        for age, city in zip(rng.normal(40, 9, 3000), rng.integers(0, 3, 3000), strict=True):
            bought = "yes" if age + 5 * city > 44 else "no"
            file.write(f"{age:.2f},{'abc'[city]},{bought}\n")
    told = planned(capsys, "shop.csv", "--target", "bought", "--n-components", "32")
    assert told["rows"].endswith(", about") and abs(int(told["rows"].split(",")[0]) - 3000) < 60
    assert int(told["columns"]) >= 4, "a number for each city, and some of the age"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--n-cells", "4"], "--n-cells: a plan is of one map; leave it out"),
        (["--n-components", "auto"], "--n-components auto: a plan needs a number"),
        (["--rows", "many"], "--rows many: is not a number"),
        (["--rows", "inf"], "--rows inf: must be a whole number from 1"),
        (["--rows", "0"], "--rows 0: must be a whole number from 1"),
        (["--rows", "1e9", "--memory", "1MB", "--tol", "0.1"], "tol=0.1 needs all rows in memory"),
    ],
)
def test_what_cannot_be_planned_is_told(arguments, said, capsys):
    write_rows(make_waves(3000), "rows.npy")
    assert main(["plan", "rows.npy", *arguments]) == 2
    assert said in capsys.readouterr().err


def test_a_compressed_file_asks_for_its_rows(capsys):
    import gzip

    with gzip.open("rows.svm.gz", "wt") as file:
        file.writelines(f"{(-1) ** i} 1:{i % 7} 2:1\n" for i in range(2500))
    assert main(["plan", "rows.svm.gz", "--n-components", "8"]) == 2
    assert "say so with --rows COUNT" in capsys.readouterr().err
    assert planned(capsys, "rows.svm.gz", "--n-components", "8", "--rows", "2500")["rows"] == "2500"


def test_rows_that_are_all_known_are_counted_and_judged_as_training_would(capsys, monkeypatch):
    Path("rows.svm").write_text("".join(f"{(-1) ** i} 1:{i % 7} 2:1\n" for i in range(90)))
    assert planned(capsys, "rows.svm", "--n-components", "8")["rows"] == "90"
    with open("rows.svm") as file:  # which cannot be read twice
        monkeypatch.setattr("sys.stdin", file)
        assert planned(capsys, "-", "--n-components", "8")["rows"] == "90"
    Path("one.svm").write_text("7 1:0.5\n7 1:0.25\n")
    assert main(["plan", "one.svm", "--n-components", "2"]) == 2
    assert "y has one class (7)" in capsys.readouterr().err


def test_a_plan_is_made_where_the_system_has_no_module_for_its_memory(capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "resource", None)  # as on Windows
    write_rows(make_waves(1000), "rows.npy")
    options = ["--scale", "none", "--n-components", "8", "--max-iter", "1"]
    assert planned(capsys, "rows.npy", *options)["memory"] == "0.29 GB"


def test_rows_that_are_sorted_and_tables_with_little_memory_are_planned_too(capsys):
    rng = np.random.default_rng(0)
    with open("sorted.csv", "w") as file:
        file.write("age,city,y\n")
        for k, age in enumerate(rng.normal(40, 9, 1500)):
            file.write(f"{age:.2f},{'abc'[k % 3]},{int(k > 900)}\n")
    options = ["--target", "y", "--n-components", "16", "--max-iter", "1"]
    assert planned(capsys, "sorted.csv", *options)["rows"].startswith("1500")
    many = planned(capsys, "sorted.csv", *options, "--memory", "10MB", "--rows", "1e8")
    assert many["rows are"] == "read a window at a time"


@pytest.mark.parametrize("option", [["--probability"], ["--time-limit", "5"]])
def test_what_a_plan_does_not_count_is_refused(option, capsys):
    write_rows(make_waves(1000), "rows.npy")
    assert main(["plan", "rows.npy", *option]) == 2
    assert f"{option[0]}: a plan is of one training, to its end" in capsys.readouterr().err
