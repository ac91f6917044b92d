"""Ctrl-C in a fit of cells: a real signal to a real process, while its threads are in a solver."""

import json
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest

from asset_svm.threads.team import check_interrupt, side_by_side
from processes import HUNG, running

TOLD = """
import importlib, os, sys

solver = importlib.import_module("asset_svm.solvers." + sys.argv[1])
look = solver.check_interrupt

def told():
    if solver.check_interrupt is told:
        solver.check_interrupt = look
        os.write(1, b"solving\\n")  # one call: two threads may be here
    look()
"""
"""Says so when a thread is in the loop of a solver, where it looks whether it is to end."""

FIT = (
    TOLD
    + """
import json, threading
import numpy as np
from asset_svm import AssetClassifier
from asset_svm.threads import team

options = json.loads(sys.argv[2])
rng = np.random.default_rng(0)
X = rng.normal(size=(options.pop("rows"), 8)).astype(np.float32)
y = rng.integers(0, 2, size=len(X))  # noise, which takes any solver long
few = {**options, "C": 1.0, "tol": 0.1, "n_components": 50, "max_iter": 1}
model = AssetClassifier(**few).fit(X[:600], y[:600])
before, decisions = dict(vars(model)), model.decision_function(X[:50])
solver.check_interrupt = told
try:
    model.set_params(**options).fit(X, y)
except KeyboardInterrupt:
    after = vars(model)
    same = {k for k in before if k.endswith("_") or k.startswith("_")}
    assert {k for k in after if k.endswith("_") or k.startswith("_")} == same
    assert all(after[k] is before[k] for k in same)
    assert np.array_equal(model.decision_function(X[:50]), decisions)
    assert threading.active_count() == 1 + len(team._idle), "a thread goes on"
    print("interrupted", flush=True)
else:
    print("finished", flush=True)
"""
)
HARD = {"gamma": 0.02, "C": 1e6, "tol": 1e-9, "random_state": 0}
MANY = {**HARD, "n_cells": 8, "n_jobs": 2}


@pytest.mark.parametrize(
    ("solver", "options"),
    [
        pytest.param("exact_form", {**HARD, "rows": 6000, "n_cells": 1}, id="one cell"),
        pytest.param(
            "exact_form", {**MANY, "rows": 40_000}, id="cells side by side", marks=pytest.mark.slow
        ),
        pytest.param(
            "interior_form",
            {**MANY, "rows": 12_000, "fit_intercept": True},
            id="interior points",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            "driver",
            {**MANY, "rows": 40_000, "fit_intercept": True, "n_components": 200, "max_iter": 10_000},
            id="approximations side by side",
        ),
    ],
)
def test_ctrl_c_ends_a_fit_of_cells_and_leaves_the_old_model(solver, options):
    """A fit of minutes: one that did not look for Ctrl-C would say that it finished."""
    pipes = dict(stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    with running([sys.executable, "-c", FIT, solver, json.dumps(options)], **pipes) as run:
        assert run.stdout.readline() == "solving\n", run.stderr.read()
        run.send_signal(signal.SIGINT)
        out, err = run.communicate(timeout=HUNG)
    assert out.splitlines()[-1:] == ["interrupted"], err


TRAIN = (
    TOLD
    + """
from asset_svm.cli.main import main

solver.check_interrupt = told
sys.exit(main(["train", "noise.npz", "-o", "m.asset", "--n-cells", "1", "--gamma", "0.02", "--C", "1e6",
               "--tol", "1e-9"]))
"""
)


def test_ctrl_c_ends_asset_train_with_cells_at_once(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(6000, 8)).astype(np.float32)
    np.savez(tmp_path / "noise.npz", X=X, y=rng.integers(0, 2, size=len(X)))
    pipes = dict(stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    with running([sys.executable, "-c", TRAIN, "exact_form"], cwd=tmp_path, **pipes) as run:
        assert run.stdout.readline() == "solving\n", run.stderr.read()
        run.send_signal(signal.SIGINT)
        _, err = run.communicate(timeout=HUNG)
    assert (run.returncode, err) == (130, "asset: interrupted.\n")
    assert not (tmp_path / "m.asset").exists()


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
        begun.wait()
        if number == 0:
            ctrl_c()
        try:
            while True:
                check_interrupt()
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
