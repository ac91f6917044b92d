"""Cells from a file larger than memory: COVTYPE's training rows, copied with noise, as .npy.

python benchmarks/cells_file.py [--copies 2,5,20] [--memory 2GB]

Type 1 against the rest; every copy but the first has normal noise of 0.002 on its ten columns that
are no flags (in [0, 1]). `asset train FILE --n-cells auto` runs in a process of its own, which tells
its peak. Needs ASSET_DATA, and 250 bytes a row in the folder of temporary files, twice.
"""

from __future__ import annotations

import argparse
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from datasets.covtype import DATASET
from files import COMMAND

NOISE, NUMBERS = 0.002, 10
OPTIONS = {"kernel": "rbf", "gamma": "128", "C": "2", "n-cells": "auto", "relevance": "columns"}
"""Found by --choose with five copies; others are given as they are to `asset train`."""


def write(folder: Path, copies: int, *, choose: bool) -> int:
    """Write the copies in a random order, and the rows that judge; returns how many there are."""
    X, y = DATASET.read()
    X, y, X_test, y_test = DATASET.split(X, y, 0)
    if choose:
        held = len(y) // 8
        X, y, X_test, y_test = X[held:], y[held:], X[:held], y[:held]
    count = copies * len(y)
    rows = np.lib.format.open_memmap(folder / "rows.npy", "w+", np.float32, (count, X.shape[1] + 1))
    order, rng = np.random.default_rng(1).permutation(count), np.random.default_rng(2)
    for begin in range(0, count, 100_000):
        copy, index = np.divmod(order[begin : begin + 100_000], len(y))
        some = X[index].astype(np.float32)
        noise = rng.normal(0.0, NOISE, size=(len(index), NUMBERS))
        some[:, :NUMBERS] += noise * (copy > 0)[:, None]
        rows[begin : begin + len(index), :-1] = some
        rows[begin : begin + len(index), -1] = y[index]
    rows.flush()
    del rows
    np.save(folder / "test.npy", np.column_stack([X_test, y_test]).astype(np.float32))
    return count


def train(folder: Path, memory: str, more: list[str]) -> tuple[float, float, dict[str, str]]:
    """Seconds of the command, by the clock and of processors, and what it tells."""
    given = OPTIONS | dict(zip((each[2:] for each in more[::2]), more[1::2], strict=True))
    options = [text for name, value in given.items() for text in (f"--{name}", value)]
    command = [sys.executable, "-c", COMMAND, "train", str(folder / "rows.npy"), "--target", "-1"]
    command += ["-o", str(folder / "model.asset"), "--test", str(folder / "test.npy")]
    begun, used = time.perf_counter(), processor_seconds()
    done = subprocess.run(
        [*command, "--memory", memory, *options], stdout=subprocess.PIPE, text=True, check=True
    )
    seconds, used = time.perf_counter() - begun, processor_seconds() - used
    told = dict(line.split("\t") for line in done.stdout.splitlines() if line.count("\t") == 1)
    return seconds, used, told


def processor_seconds() -> float:
    """Of all processes that this one has waited for."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def main() -> None:
    """Write, train, tell."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--copies", default="2,5,20")
    parser.add_argument("--memory", default="2GB")
    parser.add_argument(
        "--choose", action="store_true", help="judge by an eighth of the training rows, held out"
    )
    parser.add_argument("--folder", help="for temporary files")
    asked, more = parser.parse_known_args()
    print("| copies | rows | GB | seconds | of processors | peak MB | test error |")
    print("|---|---|---|---|---|---|---|")
    for copies in map(int, asked.copies.split(",")):
        with tempfile.TemporaryDirectory(dir=asked.folder) as name:
            folder = Path(name)
            count = copies * DATASET.paper.train * 220
            if shutil.disk_usage(folder).free < 2.5 * count:
                raise SystemExit(f"{count * 2.5 / 1e9:.1f} GB are needed in {folder}.")
            count = write(folder, copies, choose=asked.choose)
            size = (folder / "rows.npy").stat().st_size / 1e9
            seconds, used, told = train(folder, asked.memory, more)
            peak, error = float(told["peak"]) / 1e3, told["test error"]
            times = f"{seconds:.1f} | {used:.1f}"
            print(f"| {copies} | {count} | {size:.2f} | {times} | {peak:.0f} | {error} |", flush=True)


if __name__ == "__main__":
    main()
