"""Error against rows: one pass over made rows whose least possible error is known, from 10^5 on.

python benchmarks/rows.py [--rows 1e5,1e6,1e7] [--memory 1GB] [--components 512] [--epochs 1]

Parquet in a temporary folder is learnt from as `asset train FILE --memory 1GB` does, in a process of
its own, which tells its peak, and a million other rows judge. Beside it stands the same work from
memory: `fit` of an array of the rows, up to --held of them; the share is that of rates, by the clock,
and by the time of processors, which says more where the machine is busy. 10^8 rows take 8.4 GB:

python benchmarks/rows.py --rows 1e8 --held 0 --folder FOLDER
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from asset_svm import AssetClassifier, open_rows
from asset_svm.cli.options import parse_size
from asset_svm.datasets import make_waves, write_rows

OPTIONS = {"gamma": 8.0, "C": 1.0}
"""Found with 100 000 rows and others that judge, of a third seed."""
TEST_ROWS = 1_000_000
ROW_BYTES = 85
HEAD = (
    "rows", "GB", "s", "rows/s", "processors s", "peak MB", "error %", "Bayes %", "from memory s",
    "processors s", "share", "of processors",
)  # fmt: skip


def fit_once(data: str, count: int, asked: argparse.Namespace) -> dict[str, Any]:
    """Fit to a file, or where it is "" to an array of as many rows, after a small fit that compiles."""
    half = parse_size(asked.memory) // 2  # as the command has it: the other half is for rows themselves
    options = dict(n_components=asked.components, max_iter=asked.epochs, memory_limit=half, **OPTIONS)
    model = AssetClassifier(random_state=0, **options)
    few = make_waves(10_000).read()
    model.fit(few.X, few.y)
    rows = None if data else make_waves(count).read()
    begun, used = time.perf_counter(), time.process_time()
    if rows is None:
        model.fit(open_rows(data, target="y"))
    else:
        model.fit(rows.X, rows.y)
    found = {"seconds": time.perf_counter() - begun, "used": time.process_time() - used}
    status = Path("/proc/self/status").read_text()
    found["peak"] = int(status.split("VmHWM:")[1].split()[0]) / 1e3
    if data:
        predict, blocks = model.compiled(), make_waves(TEST_ROWS, seed=1).blocks()
        found["error"] = sum(np.sum(predict(block.X) != block.y) for block in blocks) / TEST_ROWS
    return found


def in_a_process(data: str, count: int, asked: argparse.Namespace) -> dict[str, Any]:
    """The same in a process of its own."""
    options = ["--memory", asked.memory, "--components", asked.components, "--epochs", asked.epochs]
    command = [sys.executable, __file__, "--rows", count, "--fit", data, *options]
    done = subprocess.run(list(map(str, command)), stdout=subprocess.PIPE, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def line(folder: Path, count: int, asked: argparse.Namespace) -> list[str]:
    """The line of the table for so many rows."""
    free, data = shutil.disk_usage(folder).free, folder / "rows.parquet"
    if free < 1.05 * ROW_BYTES * count:
        raise SystemExit(f"{count} rows take {ROW_BYTES * count / 1e9:.1f} GB in {folder}.")
    made = make_waves(count)
    write_rows(made, data)
    found = in_a_process(str(data), count, asked)
    seconds, used = found["seconds"], found["used"]
    cells = [f"{count:.0e}", f"{data.stat().st_size / 1e9:.2f}", f"{seconds:.1f}"]
    cells += [f"{count / seconds:.0f}", f"{used:.1f}", f"{found['peak']:.0f}"]
    cells += [f"{100 * found['error']:.3f}", f"{100 * made.bayes_error:.2f}"]
    if count > float(asked.held):
        return [*cells, "", "", "", ""]
    own = in_a_process("", count, asked)
    cells += [f"{own['seconds']:.1f}", f"{own['used']:.1f}"]
    return [*cells, f"{own['seconds'] / seconds:.0%}", f"{own['used'] / used:.0%}"]


def main() -> None:
    """Make, train, tell."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", default="1e5,1e6,1e7")
    parser.add_argument("--held", default="1e7", help="up to so many rows are fitted from memory too")
    parser.add_argument("--memory", default="1GB")
    parser.add_argument("--components", type=int, default=512)
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--folder", help="for temporary files")
    parser.add_argument("--fit", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.fit is not None:
        print(json.dumps(fit_once(asked.fit, int(asked.rows), asked)))
        return
    print(f"s = {asked.components}, {asked.epochs} epochs, --memory {asked.memory}")
    print(f"| {' | '.join(HEAD)} |\n{'|---' * len(HEAD)}|")
    with tempfile.TemporaryDirectory(dir=asked.folder) as name:
        for count in (int(float(each)) for each in asked.rows.split(",")):
            print(f"| {' | '.join(line(Path(name), count, asked))} |", flush=True)


if __name__ == "__main__":
    main()
