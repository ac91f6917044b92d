"""Runs of ``asset train`` and ``asset tune`` that are killed.

They are forked, so that they need not import and compile again.
"""

from __future__ import annotations

import os
import signal
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import make_classification

from asset_svm.cli.main import main
from asset_svm.estimators import files
from asset_svm.families.cells import stored
from asset_svm.families.one_map import windows
from asset_svm.storage import container

OPTIONS = ["--n-components", "60", "--max-iter", "4"]
CELLS = "cells"
"""What the names of runs of cells begin with."""
SEARCHES = "search"
"""What those of searches begin with: a race over a sample, whose best model all rows train."""
GRIDS = "search-grid"
"""What those of searches of a grid begin with."""
OPTIONS_OF_SEARCHES = ["--kernel", "rbf", "--relevance", "none", "--n-components", "40"]
OPTIONS_OF_GRIDS = ["--Cs", "1,10", "--gammas", "auto", "--n-components", "40", "--search-iter", "2"]
OPTIONS_OF_CELLS = ["--n-cells", "40", "--n-partitions", "2", "--C", "10"]


@contextmanager
def small_windows() -> Iterator[None]:
    """Nine windows in the file of ``write_rows``, and a dozen bundles of cells."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(windows, "WINDOW_ROWS", 300)
        patch.setattr(files, "SAMPLE_ROWS", 500)
        patch.setattr(files, "planned_memory", lambda limit: 0)  # nothing fits
        patch.setattr(stored, "WINDOW_ROWS", 300)
        patch.setattr(stored, "planned_memory", lambda limit: 200_000)  # a bundle has a few cells
        yield


def write_rows() -> None:
    """rows.svm, of 2500 rows and three classes."""
    X, y = make_classification(2500, 6, n_informative=5, n_redundant=0, n_classes=3, random_state=0)
    with Path("rows.svm").open("w") as file:
        for row, label in zip(X.tolist(), y.tolist(), strict=True):
            cells = " ".join(f"{j + 1}:{value:.6g}" for j, value in enumerate(row))
            file.write(f"{label} {cells}\n")


def command(name: str) -> list[str]:
    """The run of this name: its model is name.asset, and its checkpoint the folder name."""
    what, options = "train", OPTIONS
    if name.startswith(SEARCHES):
        what, options = "tune", OPTIONS_OF_GRIDS if name.startswith(GRIDS) else OPTIONS_OF_SEARCHES
    elif name.startswith(CELLS):
        options = OPTIONS_OF_CELLS
    options = [*options, "--scale", "standard", "--checkpoint-every", "1e-9s"]
    return [what, "rows.svm", "-o", f"{name}.asset", "--checkpoint", name, "--resume", *options]


def begin(name: str, prepare: Callable[[], None] = lambda: None) -> int:
    """A child that runs the command."""
    child = os.fork()
    if child == 0:
        code = 99
        try:
            with open(os.devnull, "w") as nowhere:
                os.dup2(nowhere.fileno(), 1)
                prepare()
                code = main(command(name))
        except BaseException:
            traceback.print_exc(file=sys.stderr)
        finally:
            os._exit(code)
    return child


def kill(child: int) -> bool:
    """End it; True if it was still running."""
    os.kill(child, signal.SIGKILL)
    return ended(child)


def ended(child: int) -> bool:
    """Wait for its end; True if it was killed."""
    _, status = os.waitpid(child, 0)
    if os.WIFEXITED(status):
        assert os.WEXITSTATUS(status) == 0
        return False
    return True


def assert_same_model(first: str, second: str) -> None:
    """Every tensor of two model files."""
    a, b = (container.read(path, "model")[1] for path in (first, second))
    assert a.keys() == b.keys()
    for name in a:
        assert np.array_equal(a[name], b[name], equal_nan=True), name
