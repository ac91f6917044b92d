"""A run whose disk fills up, and has room again: nothing that was saved is lost.

    python tests/full_disk.py tmpfs FOLDER     in a mount namespace of its own (unshare -rm)
    python tests/full_disk.py quota FOLDER     a limit on the size of files (RLIMIT_FSIZE)

Ends with exit code 77 where the system does not let it make such a disk.
"""

from __future__ import annotations

import os
import re
import resource
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr
from io import StringIO
from pathlib import Path

import numpy as np
from sklearn.datasets import make_classification

from asset_svm.cli.main import main
from asset_svm.cli.progress import Display
from asset_svm.estimators import files
from asset_svm.families.one_map import windows
from asset_svm.pages import Page
from asset_svm.storage import container

REFUSED = 77
SIZE = 4 << 20
OPTIONS = ["--n-components", "200", "--max-iter", "3", "--every", "0.001s", "-o", "m.asset"]
SAID = StringIO()
"""One for all commands: logging keeps the first standard error that it meets."""
TRAIN = ["train", "rows.svm", "--checkpoint", "run", *OPTIONS]


@contextmanager
def full_tmpfs() -> Iterator[None]:
    """Every byte of the disk taken, but a few for the names of files."""
    ballast = Path("ballast")
    with ballast.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(4096))
        except OSError:
            pass
    try:
        yield
    finally:
        ballast.unlink()


@contextmanager
def full_quota() -> Iterator[None]:
    """Files of more than 2000 bytes cannot be written."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2000, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def run(*arguments: str) -> tuple[int, str]:
    """The exit code of a command, and what it said on standard error."""
    begun = SAID.tell()
    with redirect_stderr(SAID):
        code = main(list(arguments))
    return code, SAID.getvalue()[begun:]


def contents(folder: str) -> dict[str, bytes]:
    """The files of a folder."""
    return {path.name: path.read_bytes() for path in sorted(Path(folder).iterdir())}


def stopped_after(windows: int) -> int:
    """The exit code of a run that Ctrl-C reached after so many windows."""
    show = Display.__call__

    def shown(self: Display, record: dict[str, object]) -> bool:
        self.interrupt.asked = len(self.records) + 1 >= windows
        return show(self, record)

    Display.__call__ = shown  # type: ignore[method-assign]
    try:
        return run(*TRAIN)[0]
    finally:
        Display.__call__ = show  # type: ignore[method-assign]


def check(full: object) -> None:
    """A run that is stopped, goes on while the disk is full, and goes on when it is not."""
    X, y = make_classification(2000, 30, n_informative=5, random_state=0)
    with open("rows.svm", "w") as file:
        for row, label in zip(X.tolist(), y.tolist(), strict=True):
            cells = " ".join(f"{j + 1}:{value:.4g}" for j, value in enumerate(row))
            file.write(f"{label} {cells}\n")
    windows.WINDOW_ROWS = 300
    files.planned_memory = lambda limit: 0  # type: ignore[assignment]  # nothing fits
    assert run("train", "rows.svm", "--checkpoint", "other", *OPTIONS)[0] == 0
    whole = container.read("m.asset", "model")[1]
    assert stopped_after(4) == 130
    saved, model = contents("run"), Path("m.asset").read_bytes()
    assert set(saved) == {"run.asset", "state.asset"}
    assert run("predict", "m.asset", "rows.svm", "-o", "old.txt")[0] == 0
    old = Path("old.txt").read_bytes()
    with full():  # type: ignore[operator]
        code, said = run(*TRAIN, "--resume")
        assert code == 1 and "could not be written" in said, said
        assert re.search(r"asset: .*m\.asset: (No space left on device|File too large)\.", said), said
        code, said = run("train", "rows.svm", "--checkpoint", "new", *OPTIONS)
        assert code == 1 and "asset: " in said, said
        assert run("predict", "m.asset", "rows.svm", "-o", "old.txt")[0] == 1
        try:
            Page("a page", "x" * 10_000, "").write("page.html")
        except OSError:
            pass
        else:
            raise AssertionError("a page was written to a full disk")
    assert contents("run") == saved, "the checkpoint was touched"
    assert Path("m.asset").read_bytes() == model, "the model was touched"
    assert Path("old.txt").read_bytes() == old, "the predictions were touched"
    assert contents("new") == {}, "a checkpoint that could not be written is there"
    left = [path for path in Path().rglob("*") if path.suffix in (".tmp", ".partial")]
    assert not left, "temporary files are left"
    assert run(*TRAIN, "--resume")[0] == 0
    resumed = container.read("m.asset", "model")[1]
    assert whole.keys() == resumed.keys()
    for name, values in whole.items():
        assert np.array_equal(values, resumed[name], equal_nan=True), name


def main_of(kind: str, folder: str) -> int:
    """Make the disk, go there, check."""
    if kind == "tmpfs":
        mount = ["mount", "-t", "tmpfs", "-o", f"size={SIZE}", "tmpfs", folder]
        if subprocess.run(mount, check=False).returncode != 0:
            return REFUSED
    os.chdir(folder)
    check(full_tmpfs if kind == "tmpfs" else full_quota)
    return 0


if __name__ == "__main__":
    sys.exit(main_of(*sys.argv[1:]))
