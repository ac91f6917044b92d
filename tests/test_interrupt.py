"""Ctrl-C in a fit of cells: a real signal to a real process, while its threads are in a solver."""

import json
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

from asset_svm.threads.team import check_interrupt, side_by_side

FIT = """
import json, sys, threading
import numpy as np
import asset_svm.engines.cells as cells
import asset_svm.solvers.driver as driver
from asset_svm import AssetClassifier

where, options = sys.argv[1], json.loads(sys.argv[2])
rng = np.random.default_rng(0)
X = rng.normal(size=(options.pop("rows"), 8)).astype(np.float32)
y = rng.integers(0, 2, size=len(X))  # noise, which takes any solver long
few = {**options, "C": 1.0, "tol": 0.1, "n_components": 50, "max_iter": 1}
model = AssetClassifier(**few).fit(X[:600], y[:600])
before, decisions = dict(vars(model)), model.decision_function(X[:50])
owner = driver.Driver if where == "advance" else cells
solve = getattr(owner, where)

def told(*args, **kwargs):
    print("solving", flush=True)
    return solve(*args, **kwargs)

setattr(owner, where, told)
try:
    model.set_params(**options).fit(X, y)
except KeyboardInterrupt:
    after = vars(model)
    same = {k for k in before if k.endswith("_") or k.startswith("_")}
    assert {k for k in after if k.endswith("_") or k.startswith("_")} == same
    assert all(after[k] is before[k] for k in same)
    assert np.array_equal(model.decision_function(X[:50]), decisions)
    assert threading.active_count() == 1
    print("interrupted", flush=True)
else:
    print("finished", flush=True)
"""
HARD = {"gamma": 0.02, "C": 1e6, "tol": 1e-9, "random_state": 0}
MANY = {**HARD, "n_cells": 8, "n_jobs": 2}


@pytest.mark.parametrize(
    ("where", "options"),
    [
        pytest.param("solve_cell", {**HARD, "rows": 6000, "n_cells": 1}, id="one cell"),
        pytest.param("solve_cell", {**MANY, "rows": 40_000}, id="cells side by side"),
        pytest.param(
            "solve_interior", {**MANY, "rows": 12_000, "fit_intercept": True}, id="interior points"
        ),
        pytest.param(
            "advance",
            {**MANY, "rows": 40_000, "fit_intercept": True, "n_components": 200, "max_iter": 10_000},
            id="approximations side by side",
        ),
    ],
)
def test_ctrl_c_ends_a_fit_of_cells_and_leaves_the_old_model(where, options):
    run = subprocess.Popen(
        [sys.executable, "-c", FIT, where, json.dumps(options)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert run.stdout.readline() == "solving\n", run.stderr.read()
    time.sleep(1.0)
    run.send_signal(signal.SIGINT)
    asked = time.monotonic()
    out, err = run.communicate(timeout=60)
    assert out.splitlines()[-1:] == ["interrupted"], err
    # A fraction of a second on a machine that does nothing else, where the fit takes minutes.
    assert time.monotonic() - asked < 10.0


TRAIN = """
import sys
import asset_svm.engines.cells as cells
from asset_svm.cli.main import main

solve = cells.solve_cell

def told(*args, **kwargs):
    print("solving", flush=True)
    return solve(*args, **kwargs)

cells.solve_cell = told
sys.exit(main(["train", "noise.npz", "-o", "m.asset", "--n-cells", "1", "--gamma", "0.02", "--C", "1e6",
               "--tol", "1e-9"]))
"""


def test_ctrl_c_ends_asset_train_with_cells_at_once(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(6000, 8)).astype(np.float32)
    np.savez(tmp_path / "noise.npz", X=X, y=rng.integers(0, 2, size=len(X)))
    run = subprocess.Popen(
        [sys.executable, "-c", TRAIN],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
    )
    assert run.stdout.readline() == "solving\n", run.stderr.read()
    time.sleep(1.0)
    run.send_signal(signal.SIGINT)
    asked = time.monotonic()
    _, err = run.communicate(timeout=60)
    assert (run.returncode, err) == (130, "asset: interrupted.\n")
    assert time.monotonic() - asked < 10.0 and not (tmp_path / "m.asset").exists()


@pytest.fixture
def ctrl_c():
    """Sends SIGINT to the main thread, where whoever runs the tests may ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield lambda: signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
    signal.signal(signal.SIGINT, before)


def test_an_interrupt_reaches_the_team_of_a_member(ctrl_c):
    """A thread that waits for threads of its own does so no longer than they take to look."""
    begun, ended = threading.Barrier(4), []

    def work(number):
        begun.wait(timeout=30)
        if number == 0:
            ctrl_c()
        try:
            while True:
                check_interrupt()
                time.sleep(0.01)
        finally:
            ended.append(number)

    def lead(number):
        return side_by_side(work, [number, number + 1], 2)

    with pytest.raises(KeyboardInterrupt):
        side_by_side(lead, [0, 2], 2)
    assert sorted(ended) == [0, 1, 2, 3]


def test_an_ordinary_error_of_a_member_is_that_of_the_team():
    def work(number):
        if number == 3:
            raise ValueError("three")
        check_interrupt()
        return np.sqrt(number)

    with pytest.raises(ValueError, match="three"):
        side_by_side(work, range(8), 2)
    assert side_by_side(np.sqrt, range(3), 2) == [0.0, 1.0, np.sqrt(2)]
