"""Fixtures: small problems, and the data sets of ASSET_DATA where there are any."""

# ruff: noqa: E402

import itertools
import os
import signal
import sys
import threading
from importlib.util import find_spec
from pathlib import Path

# Before numpy is there: two runners with two threads of BLAS each wait for each other more than they
# compute, in small products. What is about several threads asks for them (threadpool_limits).
for library in ("OPENBLAS", "OMP", "MKL"):
    os.environ.setdefault(f"{library}_NUM_THREADS", "1")

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

from asset_svm import clock

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))

# No health check by the clock: a machine may have something else to do.
settings.register_profile(
    "suite",
    deadline=None,
    max_examples=50,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("suite")

# A shell ignores Ctrl-C for what it runs in the background, and every process begun there would too.
in_main = threading.current_thread() is threading.main_thread()
if in_main and signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


# Forks, signals, limits and programs that Windows has not.
if not hasattr(os, "fork"):
    collect_ignore = [
        f"test_{name}.py"
        for name in ("full_disk", "kill", "outputs", "paper", "peers", "soak", "tables")
    ]


def card_is_there():
    if find_spec("torch") is None:
        return False
    import torch

    return torch.cuda.is_available()


def pytest_collection_modifyitems(items):
    skip = pytest.mark.skip(reason="needs the data sets: set ASSET_DATA to their folder")
    no_card = None if card_is_there() else pytest.mark.skip(reason="needs an NVIDIA card and torch")
    for item in items:
        if "cuda" in item.keywords and no_card:
            item.add_marker(no_card)
        if "data" in item.keywords and "ASSET_DATA" not in os.environ:
            item.add_marker(skip)


def frozen(array):
    array.setflags(write=False)
    return array


@pytest.fixture(scope="session")
def blobs():
    """600 rows of 2 overlapping classes in the plane: X, y in {-1, 1}."""
    rng = np.random.default_rng(0)
    y = np.where(rng.random(600) < 0.5, 1, -1)
    X = rng.normal(size=(600, 2)) + y[:, None] * 0.8
    return frozen(X), frozen(y)


@pytest.fixture(scope="session")
def waves():
    """500 rows of a noisy wave: X, y real."""
    rng = np.random.default_rng(1)
    X = rng.uniform(-3, 3, size=(500, 2))
    return frozen(X), frozen(np.sin(X[:, 0]) * np.cos(X[:, 1]) + 0.1 * rng.normal(size=500))


class Ticks:
    """A clock on which one second passes from look to look, and none in between."""

    def __init__(self):
        self._seconds = itertools.count()
        self.looks = 0

    def now(self):
        self.looks = next(self._seconds)
        return float(self.looks)


@pytest.fixture
def ticks(monkeypatch):
    """The library's clock, made to count: a time limit is a number of looks at it."""
    ticks = Ticks()
    monkeypatch.setattr(clock, "now", ticks.now)
    return ticks
