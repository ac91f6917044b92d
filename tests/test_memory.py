"""Training on a file takes memory that does not grow with the file."""

import os
import subprocess
import sys

import numpy as np
import pytest

pytest.importorskip("typer")
pytest.importorskip("safetensors")
if not os.path.exists("/proc/self/status"):
    pytest.skip("memory is read from /proc, which this system has not", allow_module_level=True)

CODE = """
import sys
from asset_svm.cli.main import main
path = sys.argv[1]
code = main(["train", path, "-o", path + ".asset", "--memory", "16MB", "--n-components", "32",
             "--max-iter", "1", "--lam", "1e-4", "--gamma", "0.1"])
# Not getrusage's: that of a process counts what the one that started it held.
status = open("/proc/self/status").read()
print("peak", int(status.split("VmHWM:")[1].split()[0]) // 1000)
sys.exit(code)
"""


def write(path, count):
    """A file of so many rows of 30 numbers and a label, in the format of its extension."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(5000, 30)).round(5)
    labels = np.where(rows[:, 0] * rows[:, 1] > 0, 1, -1)
    if path.suffix == ".npy":
        shape = (count, 31)
        made = np.lib.format.open_memmap(path, "w+", dtype=np.float64, shape=shape)
        made.reshape(-1, 5000, 31)[:] = np.column_stack([rows, labels])
        made.flush()
        return path
    lines = []
    for row, label in zip(rows.tolist(), labels.tolist(), strict=True):
        if path.suffix == ".csv":
            lines.append(",".join(map(repr, row)) + f",{label}\n")
        else:
            cells = " ".join(f"{j + 1}:{value:.5f}" for j, value in enumerate(row))
            lines.append(f"{label} {cells}\n")
    block = "".join(lines)
    with path.open("w") as file:
        if path.suffix == ".csv":
            file.write(",".join(f"c{j}" for j in range(30)) + ",y\n")
        for _ in range(count // 5000):
            file.write(block)
    return path


def peak(path):
    done = subprocess.run(
        [sys.executable, "-c", CODE, str(path)], capture_output=True, text=True, check=True
    )
    return int(done.stdout.split("peak ")[1])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "count", "more"),
    [
        ("svm", 200_000, 20),
        ("npy", 200_000, 20),
        # Threads and pyarrow keep memory of their own, up to some 40 MB, by chance.
        ("csv", 1_000_000, 60),
    ],
)
def test_ten_times_the_rows_take_no_more_memory(tmp_path, kind, count, more):
    if kind == "csv":
        pytest.importorskip("pyarrow")
    small_file = write(tmp_path / f"small.{kind}", count // 10)
    peak(small_file)  # what is compiled on the way takes memory too, once
    large_file = write(tmp_path / f"large.{kind}", count)
    small, large = peak(small_file), peak(large_file)
    size = large_file.stat().st_size / 1e6
    assert size > 45
    # The rows alone, read into memory or mapped and kept, would take more than twice that.
    assert large < small + more
    assert large < 600
