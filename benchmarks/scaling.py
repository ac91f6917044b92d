"""Time and memory of a fit as the rows double, with the mapped rows kept and without.

    python benchmarks/scaling.py [--rows 100000,200000,...] [--components 512] [--repeats 3]

Rows of two classes that are drawn anew for every size, float32, 32 columns. Every fit has its own
process, warm compile cache, three epochs; times are medians, with kept and recomputed rows
alternating. Memory is the largest that the process held during ``fit`` less what it held before,
beside what is allowed: the kept rows + 24 s^2 bytes + 300 MB.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

EPOCHS = 3
COLUMNS = 32


def problem(m: int) -> tuple[np.ndarray, np.ndarray]:
    """Two classes between which sines run."""
    rng = np.random.default_rng(0)
    X = rng.random(size=(m, COLUMNS), dtype=np.float32)
    f = np.sin(6 * X[:, 0]) + np.sin(6 * X[:, 1]) + X[:, 2] - 0.5
    return X, f > 0.3 * rng.normal(size=m)


def resident(field: str) -> float:
    """MB that this process holds (VmRSS), or the most it held (VmHWM)."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field):
            return int(line.split()[1]) / 1024
    raise SystemExit("memory is read from /proc, which this system has not")


def one(m: int, s: int, limit: int | None) -> dict[str, float]:
    """One fit, in this process."""
    from asset_svm import AssetClassifier

    X, y = problem(m)
    settings = dict(gamma=0.5, C=1.0, n_components=s, max_iter=EPOCHS, random_state=0)
    AssetClassifier(**settings).fit(X[:5000], y[:5000])  # what is compiled is loaded
    model = AssetClassifier(**settings, memory_limit=limit)
    before = resident("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")
    begun = time.perf_counter()
    model.fit(X, y)
    seconds = time.perf_counter() - begun
    return dict(seconds=seconds, memory=resident("VmHWM") - before, error=1.0 - model.score(X, y))


def main() -> None:
    """One line a size."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", default="100000,200000,400000,800000")
    parser.add_argument("--components", type=int, default=512)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--one", help="rows,components,limit: what the processes run")
    arguments = parser.parse_args()
    if arguments.one:
        m, s, limit = arguments.one.split(",")
        print(json.dumps(one(int(m), int(s), int(limit) if limit else None)))
        return
    s = arguments.components
    last: dict[str, float] = {}
    for m in (int(part) for part in arguments.rows.split(",")):
        found: dict[str, list[dict[str, float]]] = {"kept": [], "recomputed": []}
        for _ in range(arguments.repeats):
            for way, runs in found.items():
                limit = "" if way == "kept" else "0"
                done = subprocess.run(
                    [sys.executable, __file__, "--one", f"{m},{s},{limit}"],
                    capture_output=True, text=True, check=True,
                )  # fmt: skip
                runs.append(json.loads(done.stdout))
        for way, runs in found.items():
            seconds = float(np.median([run["seconds"] for run in runs]))
            memory = max(run["memory"] for run in runs)
            allowed = (4e-6 * m * s if way == "kept" else 0.0) + 24e-6 * s**2 + 300
            grown = f"{seconds / last[way]:5.2f}x" if way in last else "      "
            last[way] = seconds
            print(
                f"{m:8d} rows, {way:10} {seconds:7.2f} s {grown}   {1e6 * seconds / m:6.2f} us a row   "
                f"{memory:6.0f} MB (allowed {allowed:.0f})",
                flush=True,
            )


if __name__ == "__main__":
    main()
