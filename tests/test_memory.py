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
    rng = np.random.default_rng(0)
    lines = []
    for row in rng.normal(size=(5000, 30)).tolist():
        cells = " ".join(f"{j + 1}:{value:.5f}" for j, value in enumerate(row))
        lines.append(f"{1 if row[0] * row[1] > 0 else -1} {cells}\n")
    block = "".join(lines)
    with path.open("w") as file:
        for _ in range(count // 5000):
            file.write(block)
    return path


def peak(path):
    done = subprocess.run(
        [sys.executable, "-c", CODE, str(path)], capture_output=True, text=True, check=True
    )
    return int(done.stdout.split("peak ")[1])


@pytest.mark.slow
def test_ten_times_the_rows_take_no_more_memory(tmp_path):
    large_file = write(tmp_path / "large.svm", 200_000)
    peak(large_file)  # what is compiled on the way takes memory too, once
    small = peak(write(tmp_path / "small.svm", 20_000))
    large = peak(large_file)
    size = large_file.stat().st_size / 1e6
    assert size > 50
    # The rows alone, read into memory, would take 48 MB more.
    assert large < small + 20
    assert large < 600
