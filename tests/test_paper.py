"""``make paper``: data sets, runs that resume, and the page made of their records."""

import http.server
import json
import os
import resource
import signal
import sys
import threading
import time
from functools import partial
from itertools import pairwise

import numpy as np
import pytest

import datasets
import paper
from asset_svm import AssetClassifier
from chromium import look_at
from datasets import mnist_e
from datasets.deformation import deform
from datasets.files import DataMissingError, RemoteFile, content_hash
from experiments import ALL, FULL, QUICK, figure2, rates
from experiments.base import Scale, Task, select, select_stopped
from experiments.report import write_report
from experiments.store import Store
from experiments.table3 import goals, seconds_to
from experiments.verdict import split_error, verdict
from processes import HUNG, running
from solvers import SOLVERS, OutOfTimeError, Problem
from solvers.traces import card_trace, stream_trace, trace

# Data sets ---------------------------------------------------------------------------------------


@pytest.fixture
def server(tmp_path):
    """A folder that is served on the loopback, and its address."""
    folder = tmp_path / "served"
    folder.mkdir()

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *words):
            pass

    handler = partial(Quiet, directory=folder)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as httpd:
        thread = threading.Thread(target=httpd.serve_forever)
        thread.start()
        yield folder, f"http://127.0.0.1:{httpd.server_port}"
        httpd.shutdown()
        thread.join()


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """pooch's folder, apart from the user's."""
    import pooch

    monkeypatch.setattr(pooch, "os_cache", lambda name: tmp_path / "cache")
    monkeypatch.delenv("ASSET_DATA", raising=False)
    monkeypatch.setattr("datasets.files._FAILED", {})
    return tmp_path / "cache"


def test_a_file_that_asset_data_lacks_is_downloaded_once_and_checked(server, cache):
    folder, address = server
    (folder / "rows.txt").write_bytes(b"1 1:2\n")
    checksum = content_hash(folder / "rows.txt")
    file = RemoteFile("rows.txt", f"{address}/rows.txt", checksum)
    with file.open() as stream:
        assert stream.read() == b"1 1:2\n"
    (folder / "rows.txt").unlink()
    assert file.path().parent == cache, "the second time nothing is asked for"


@pytest.mark.parametrize("checksum", ["content:" + "0" * 64, "sha256:" + "0" * 64, "md5:" + "0" * 32])
def test_a_download_with_other_content_is_refused_and_deleted(server, cache, checksum):
    folder, address = server
    (folder / "rows.txt").write_bytes(b"something else")
    with pytest.raises(DataMissingError, match=r"rows\.txt"):
        RemoteFile("rows.txt", f"{address}/rows.txt", checksum).path()
    assert not (cache / "rows.txt").exists()


def test_a_host_that_does_not_answer_is_named(cache):
    with pytest.raises(DataMissingError, match="its download from"):
        RemoteFile("a", "http://127.0.0.1:9/a", "md5:" + "0" * 32).path()


def test_a_file_that_nobody_publishes_has_to_be_put_there(monkeypatch, tmp_path):
    monkeypatch.setenv("ASSET_DATA", str(tmp_path))
    with pytest.raises(DataMissingError, match="put it there"):
        RemoteFile("rcv1.npz").path()
    (tmp_path / "rcv1.npz").write_bytes(b"")
    assert RemoteFile("rcv1.npz").path() == tmp_path / "rcv1.npz"


def test_every_set_of_the_paper_has_its_line_of_table_2():
    assert set(datasets.PAPER) == {"adult", "mnist", "ccat", "ijcnn", "covtype", "mnist_e"}
    for name, line in datasets.PAPER.items():
        # The paper's remark beside lam: 1 / (m lam) is a round number.
        if name != "mnist_e":
            assert 1 / (line.lam * line.train) == pytest.approx(
                {"adult": 1000, "mnist": 100, "ccat": 10, "ijcnn": 100, "covtype": 3}[name], rel=0.01
            )


def test_deformation_moves_pixels_a_little_and_makes_no_light():
    images = np.zeros((50, 28, 28))
    images[:, 10:18, 10:18] = 1.0
    out = deform(images, np.random.default_rng(0))
    assert out.dtype == np.float32 and out.min() >= 0 and out.max() <= 1 + 1e-5
    places = np.argwhere(out > 0.5)
    assert places[:, 1:].min() >= 4 and places[:, 1:].max() <= 24, "some 1.4 pixels, seldom 5"
    assert not np.array_equal(out[0], out[1])
    assert np.array_equal(out, deform(images, np.random.default_rng(0)))


def test_without_a_field_the_image_is_what_it_was(monkeypatch):
    monkeypatch.setattr("datasets.deformation.STRENGTH", 0.0)
    images = np.random.default_rng(0).random((3, 28, 28)).astype(np.float32)
    assert np.allclose(deform(images, np.random.default_rng(0)), images, atol=1e-6)


@pytest.mark.data
def test_a_longer_stream_begins_with_the_shorter_one():
    X, y = mnist_e.rows(2500)
    sizes, start = [], 0
    for block, labels in mnist_e.stream(1700):
        assert np.array_equal(block, X[start : start + len(labels)])
        assert np.array_equal(labels, y[start : start + len(labels)])
        start += len(labels)
        sizes.append(len(labels))
    assert sizes == [1000, 700]
    assert not np.array_equal(mnist_e.rows(10, "test")[0], X[:10])
    assert 0.24 < np.count_nonzero(X) / X.size < 0.27, "the paper's MNIST-E: 25.6 %"


# Watched runs ------------------------------------------------------------------------------------


def test_a_watched_run_ends_where_the_estimator_does(blobs):
    """Same seed, so the same map, order and steps: the same test error after the last step."""
    X, y = blobs[0].astype(np.float32), blobs[1]
    problem = Problem(X[:400], y[:400], 0.5, 1e-3, 32)
    seed = int(np.random.RandomState(3).randint(np.iinfo(np.int32).max))  # what 3 means to it
    found = trace(problem, (X[400:], y[400:]), "robust", seed, epochs=5, checks=4)
    assert [point.steps for point in found] == [100 * k for k in range(1, 21)]
    assert all(a.seconds < b.seconds for a, b in pairwise(found))
    model = AssetClassifier(
        gamma=0.5, lam=1e-3, n_components=32, step="robust", step_scale=1.0, average=100, max_iter=5,
        fit_intercept=False, sampling="uniform", random_state=3,
    )  # fmt: skip
    error = 100 * (1 - model.fit(X[:400], y[:400]).score(X[400:], y[400:]))
    assert found[-1].error == pytest.approx(error)


def test_a_stream_is_seen_once_and_both_algorithms_learn(blobs):
    X, y = blobs[0].astype(np.float32), blobs[1]
    blocks = [(X[i : i + 100], y[i : i + 100]) for i in range(0, 500, 100)]
    found = stream_trace(iter(blocks), 500, (X[500:], y[500:]), 0.5, 1e-2, 64, seed=0, looks=5)
    for points in found.values():
        assert [point.steps for point in points] == [100, 200, 300, 400, 500]
        assert points[-1].error < 35


def test_a_pass_on_a_card_is_the_pass_over_the_stream(blobs):
    """The card is played by torch's CPU device; its rows come in one piece, in the same order."""
    pytest.importorskip("torch", reason="the backend of the card needs torch (extra cuda)")
    from asset_svm.backends.cuda.backend import CudaBackend
    from card import CPU, HostForm

    X, y = blobs[0].astype(np.float32), blobs[1]
    test, settings = (X[500:], y[500:]), (0.5, 1e-2, 64, 0, 5)
    stream = stream_trace(iter([(X[:500], y[:500])]), 500, test, *settings)
    backend = CudaBackend(device=CPU, form=HostForm)
    card = card_trace(X[:500], y[:500], test, *settings, backend)
    assert list(card) == list(stream)
    for name, points in card.items():
        assert [point.steps for point in points] == [100, 200, 300, 400, 500]
        assert all(a.seconds < b.seconds for a, b in pairwise(points))
        assert points[-1].error == pytest.approx(stream[name][-1].error, abs=1.0)


# The store ---------------------------------------------------------------------------------------


def entry(key, **result):
    return dict(key=key, experiment="e", solver="s", dataset="d", seed=0, settings={}, result=result)


def test_what_was_stored_is_there_after_an_interruption_in_the_middle_of_a_line(tmp_path):
    path = tmp_path / "results.jsonl"
    store = Store(path)
    store.add(entry("a", error=1.0))
    with path.open("ab") as file:
        file.write(b'{"key": "b", "resu')
    again = Store(path)
    assert again.has("a") and not again.has("b")
    again.add(entry("b", error=2.0))
    assert [r["result"] for r in Store(path).done()] == [dict(error=1.0), dict(error=2.0)]


def test_a_failed_run_is_kept_and_repeated(tmp_path):
    store = Store(tmp_path / "results.jsonl")
    store.add(entry("a", failed="no memory"))
    assert not store.has("a") and store.done() == [] and len(store.records) == 1
    store.add(entry("a", error=1.0))
    assert Store(tmp_path / "results.jsonl").has("a")


def test_a_stopped_run_is_repeated_only_where_it_may_take_longer(tmp_path):
    store = Store(tmp_path / "results.jsonl")
    store.add(entry("a", stopped=20.0))
    assert store.has("a", 20.0) and store.has("a", 10.0)
    assert not store.has("a", 60.0) and not store.has("a"), "no limit is the longest"
    assert select(store.done()) == [] and len(select_stopped(store.done())) == 1


def test_settings_make_the_key():
    tasks = [Task("e", "s", "d", 0, settings, dict) for settings in (dict(a=1), dict(a=2), dict(a=1))]
    assert tasks[0].key != tasks[1].key and tasks[0].key == tasks[2].key


@pytest.mark.parametrize("scale", [QUICK, FULL], ids=["quick", "full"])
def test_no_two_runs_have_one_key(scale):
    keys = [task.key for experiment in ALL.values() for task in experiment.tasks(scale)]
    assert len(keys) == len(set(keys)) > 100


# The command -------------------------------------------------------------------------------------


class Toy:
    """An experiment of three runs, of which one fails the first time and one has no data."""

    name = "toy"

    def __init__(self):
        self.calls = []

    def tasks(self, scale):
        def run(number):
            self.calls.append(number)
            if number == 1 and self.calls.count(1) == 1:
                raise RuntimeError("out of luck")
            if number == 2:
                raise DataMissingError("nowhere")
            return dict(error=float(number))

        return [Task("toy", "SVC / SVR", f"d{n}", 0, {}, partial(run, n)) for n in range(3)]

    def section(self, records):
        return rates.Section("Toy", [rates.Paragraph(f"{len(select(records, 'toy'))} runs")])


@pytest.fixture
def toy(monkeypatch):
    toy = Toy()
    for module in ("paper.ALL", "experiments.report.ALL"):
        monkeypatch.setattr(module, {"toy": toy})
    monkeypatch.setattr(paper, "warm_up", lambda: None)
    return toy


def test_a_second_run_does_only_what_is_missing_or_failed(toy, tmp_path, capsys):
    arguments = ["--output", str(tmp_path), "--jobs", "1"]
    assert paper.main(arguments) == 0
    assert toy.calls == [0, 1, 2]
    assert "d2 is left out: nowhere" in capsys.readouterr().out
    assert "Failed: toy/SVC / SVR/d1" in (tmp_path / "index.html").read_text("utf-8")
    assert paper.main(arguments) == 0
    assert toy.calls == [0, 1, 2, 1, 2]
    text = (tmp_path / "tables.md").read_text("utf-8")
    assert "2 runs" in text and "Failed" not in text
    lines = [json.loads(line) for line in (tmp_path / "results.jsonl").read_text("utf-8").splitlines()]
    assert {"commit", "cpu", "gpu", "threads", "python", "versions"} == set(lines[0]["machine"])
    assert lines[0]["software"].startswith("scikit-learn ")


def test_an_interrupted_run_leaves_a_page_and_goes_on(toy, tmp_path, monkeypatch):
    def interrupt(task):
        raise KeyboardInterrupt

    arguments = ["--output", str(tmp_path), "--jobs", "1"]
    with monkeypatch.context() as patch:
        patch.setattr(paper, "run_one", interrupt)
        assert paper.main(arguments) == 130
    assert (tmp_path / "index.html").exists()
    assert paper.main(arguments) == 0
    assert toy.calls == [0, 1, 2]


@pytest.mark.slow
def test_two_processes_find_what_one_does(tmp_path, monkeypatch):
    monkeypatch.setattr("experiments.rates.SEEDS", 1)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
    found = []
    for jobs in ("1", "2"):
        folder = tmp_path / jobs
        assert paper.main(["--experiments", "rates", "--jobs", jobs, "--output", str(folder)]) == 0
        records = Store(folder / "results.jsonl").done()
        found.append({record["key"]: record["result"] for record in records})
    assert found[0] == found[1] and len(found[0]) == len(rates.RHOS) + 1


def test_an_unknown_name_is_told_and_nothing_is_run(tmp_path):
    for option, what in (("--experiments", "experiment"), ("--sets", "data set")):
        with pytest.raises(SystemExit, match=f"no {what} 'nonsense'; there are"):
            paper.main([option, "nonsense", "--output", str(tmp_path / "report")])
    assert not (tmp_path / "report").exists()


@pytest.fixture
def endless(tmp_path, monkeypatch):
    """A program of this name on the PATH that never ends."""
    program = tmp_path / "bin" / "svm_learn"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\nwhile :; do :; done\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")


def test_a_program_that_does_not_end_is_stopped_and_the_record_says_so(endless, blobs):
    problem = Problem(*blobs, 0.5, 1e-3, 0, limit=1.0)
    with pytest.raises(OutOfTimeError, match="did not end within 1 s"):
        SOLVERS["SVM-Light"].fit(problem, 0)
    task = Task("e", "SVM-Light", "d", 0, {}, partial(SOLVERS["SVM-Light"].fit, problem, 0))
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    outcome = paper.run_one(task)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert outcome.result == dict(stopped=1.0)
    spent = after.ru_utime - before.ru_utime
    assert outcome.cpu_seconds > 0.9 * spent - 0.02 > 0.0, (
        "the CPU time of the program counts, in ticks"
    )


WORKER = """
import subprocess, sys, paper
paper.warm_up = lambda: None
paper._begin_worker(1)
subprocess.run(["sh", "-c", 'echo $$ > "$1.new"; mv "$1.new" "$1"; exec sleep 100', "sh", sys.argv[1]])
"""


def test_a_worker_that_is_ended_ends_the_program_that_it_runs(tmp_path):
    """Else a program of hours would go on after an interruption, with nobody to read its model."""
    number = tmp_path / "pid"
    environment = os.environ | dict(PYTHONPATH=os.pathsep.join(sys.path))
    with running([sys.executable, "-c", WORKER, str(number)], env=environment) as worker:
        wait_for(number.exists)
        program = int(number.read_text())
        worker.terminate()
        assert worker.wait(HUNG) == 128 + signal.SIGTERM
        with pytest.raises(ProcessLookupError):
            os.kill(program, 0)


def wait_for(condition, seconds=HUNG):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "nothing happened"
        time.sleep(0.05)


# The page ----------------------------------------------------------------------------------------


def made_up(task):
    """A record of the right shape, with numbers that are nobody's."""
    rng = np.random.default_rng(len(task.key))
    result = dict(error=rng.random(), seconds=1.0, r2=0.5, basis=100, row_seconds=1e-6)
    if task.experiment == "table2":
        result = dict(train=10, test=5, features=3, density=1.0, positive=50.0)
    if task.experiment == "rates":
        return rates.run(task.seed, task.settings.get("rho"))
    curve = dict(steps=[1, 2], times=[0.1, 0.2], errors=[9.0, 8.0])
    if task.experiment == "figure2":
        return dict.fromkeys(figure2.ALGORITHMS, curve)
    if "average" in task.settings:
        return dict(**curve, error=8.0, smallest=8.0, seconds=0.2)
    if task.solver == "exact on (PL)":
        return dict(error=5.0, objective=1.0, gap=0.01)
    if task.solver == "CPSP":
        return dict(stopped=task.limit)
    return result


def test_the_page_of_a_whole_run_shows_every_figure_in_a_browser(tmp_path):
    store = Store(tmp_path / "results.jsonl")
    scale = Scale(quick=True, repeats=2, limit=7.0)
    tasks = [task for experiment in ALL.values() for task in experiment.tasks(scale)]
    for task in tasks:
        if task.experiment != "rates" or task.seed < 2:
            store.records.append(paper.record(task, paper.Outcome(made_up(task)), 1))
    page = write_report(store, tmp_path, scale)
    html = page.read_text("utf-8")
    for words in ("Table 2", "Figure 1", "Table 3", "Figure 2", "claims", "theorems", "Regression"):
        assert words in html
    for solver in ("ThunderSVM", "Snap ML", "Vowpal Wabbit ksvm", "SVM-Light", "CPNY", "CPSP", "LASVM"):
        assert solver in html, "named, installed or not"
    assert "a sample of RCV1" in html
    assert html.count("did not end</span> <small>within 7 s") == 5, "CPSP, on a part of each set"
    markdown = (tmp_path / "tables.md").read_text("utf-8")
    assert markdown.count("\n|---") == html.count("<table>")
    seen = look_at(page)
    assert seen.console == []
    assert len(seen.charts) == html.count("<figure>") == 5 + 4 + 3 + 2
    assert all(box["width"] > 250 and box["height"] > 150 for box in seen.charts)


def test_the_page_of_no_run_at_all_is_a_page(tmp_path):
    html = write_report(Store(tmp_path / "none"), tmp_path, QUICK).read_text("utf-8")
    assert "0 of" in html


# Numbers -----------------------------------------------------------------------------------------


def test_the_optimum_of_the_rates_is_known_to_1e_8():
    problem = rates.known()
    assert problem.V.shape == (1000, 64)
    assert 0 <= problem.gap < 1e-8
    rng = np.random.default_rng(0)
    for _ in range(20):
        x = problem.solution + 1e-3 * rng.normal(size=64)
        assert problem.objective(x) > problem.optimum


def test_slopes_are_found_with_an_interval_that_holds_them():
    rng = np.random.default_rng(0)
    lengths = np.array(rates.LENGTHS, float)
    curves = lengths**-0.5 * rng.lognormal(sigma=0.3, size=(20, len(lengths)))
    at, low, high = rates.slope(curves, lengths)
    assert low < -0.5 < high and low < at < high and high - low < 0.2


def test_the_bound_of_theorem_2_falls_as_one_over_the_root_of_n():
    assert rates.bound(40_000, 0.5) / rates.bound(10_000, 0.5) == pytest.approx(0.5, rel=0.01)


def test_the_time_to_an_error_is_that_of_the_first_checkpoint_below_it():
    run = dict(result=dict(times=[1.0, 2.0, 3.0], errors=[5.0, 4.0, 4.5]))
    assert seconds_to(run, 4.5) == 2.0
    assert seconds_to(run, 3.0) is None


def test_the_error_to_reach_is_that_of_one_peer_on_all_splits_of_a_row():
    def peer(solver, seed, **result):
        wanted = dict(solver=solver, dataset="ccat", seed=seed, settings=dict(s=512))
        return entry("", **result) | wanted | dict(experiment="table3")

    sgd = [peer("Nystroem + SGD", seed, error=8.0) for seed in (0, 1)]
    cpny = [peer("CPNY", 0, error=7.0), peer("CPNY", 1, stopped=20.0)]
    assert goals([*sgd, *cpny], "ccat", 512, [0, 1]) == ("Nystroem + SGD", {0: 8.0, 1: 8.0})
    cpny[1] = peer("CPNY", 1, error=7.5)
    assert goals([*sgd, *cpny], "ccat", 512, [0, 1]) == ("CPNY", {0: 7.0, 1: 7.5})


def test_the_verdict_follows_from_the_numbers():
    unit = split_error(4.0, 5950)
    assert unit == pytest.approx(0.254, abs=1e-3)
    exact = [dict(settings={}, result=dict(error=5.0))]
    assert verdict(np.array([3.9]), [], 4.0, unit, "").text == "at least as good"
    assert verdict(np.array([4.4]), [], 4.0, unit, "").text == "within two standard errors"
    assert verdict(np.array([5.1]), exact, 4.0, unit, "").text == "not on these features"
    assert verdict(np.array([5.1]), [], 4.0, unit, "").tone == "bad"
    assert verdict(np.array([5.9]), exact, 4.0, unit, "").tone == "bad", "the solver is to blame"
    assert verdict(np.array([5.1]), [], 4.0, unit, "a sample").text == "other data"
