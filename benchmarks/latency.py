"""One row at a time, and how soon a new process trains.

    python benchmarks/latency.py [--components 1024] [--columns 100] [--output latency.json]

Prediction: ``predict`` of one row beside LinearSVC's, and ``compiled()``, a plain function without
validation, for dense rows and for rows with nine zeros in ten; one row and 1000 rows by cells of a
thousand landmarks each. Medians of batches of calls that take turns. Start: a fresh process imports
the library and trains; what it takes from the import to the first step, with compiled code on disk.
Needs no data set.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.svm import LinearSVC
from threadpoolctl import threadpool_limits

from asset_svm import AssetClassifier
from speed import stamp

BATCH, BATCHES = 200, 15
START = """
import time
import numpy as np
rng = np.random.default_rng(0)
X = rng.normal(size=(2000, 20)).astype(np.float32)
y = X[:, 0] > 0
begun = time.perf_counter()
from asset_svm import AssetClassifier
imported = time.perf_counter()
from asset_svm.solvers import Driver
advance, first = Driver.advance, []
def timed(self, *args, **options):
    first.append(time.perf_counter())
    return advance(self, *args, **options)
Driver.advance = timed
AssetClassifier(n_components=256, max_iter=1, random_state=0).fit(X, y)
print(imported - begun, first[0] - imported, time.perf_counter() - imported)
"""


def in_turns(functions: dict[str, Callable[[], Any]]) -> dict[str, float]:
    """Microseconds of a call of each: the median over batches that take turns."""
    spent: dict[str, list[float]] = {name: [] for name in functions}
    for _ in range(BATCHES):
        for name, function in functions.items():
            begun = time.perf_counter()
            for _ in range(BATCH):
                function()
            spent[name].append((time.perf_counter() - begun) / BATCH * 1e6)
    return {name: float(np.median(values)) for name, values in spent.items()}


def one_row(components: int, columns: int, share: float) -> dict[str, float]:
    """Microseconds to predict one row, of which this share is not zero."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(5000, columns)).astype(np.float32)
    X *= rng.uniform(size=X.shape) < share
    y = X @ rng.normal(size=columns) > 0
    model = AssetClassifier(n_components=components, max_iter=1, random_state=0).fit(X, y)
    linear = LinearSVC().fit(X, y)
    function, row = model.compiled(), X[:1].copy()
    assert function(row) == model.predict(row)
    return in_turns(
        {
            "LinearSVC.predict": lambda: linear.predict(row),
            "predict": lambda: model.predict(row),
            "compiled": lambda: function(row),
        }
    )


def cells(columns: int) -> dict[str, float]:
    """Microseconds to predict one row, and 1000, by exact cells of about a thousand rows."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20_000, columns)).astype(np.float32)
    y = rng.integers(0, 2, size=len(X))  # of noise, every row is a landmark
    model = AssetClassifier(n_cells="auto", random_state=0).fit(X, y)
    function, row, some = model.compiled(), X[0].copy(), X[:1000].copy()
    found = in_turns({"predict": lambda: model.predict(row[None]), "compiled": lambda: function(row)})
    begun = time.perf_counter()
    for _ in range(BATCHES):
        model.predict(some)
    return found | {"predict 1000 rows": (time.perf_counter() - begun) / BATCHES * 1e6}


def start() -> dict[str, float]:
    """Seconds of a fresh process; the first of four compiles what is not on disk."""
    runs = []
    for _ in range(4):
        printed = subprocess.run(
            [sys.executable, "-c", START], capture_output=True, text=True, check=True
        ).stdout
        runs.append([float(number) for number in printed.split()])
    imported, stepped, fitted = np.median(runs[1:], axis=0)
    return {"import": float(imported), "first step": float(stepped), "fit": float(fitted)}


def main() -> None:
    """Print both, write the file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--components", type=int, default=1024)
    parser.add_argument("--columns", type=int, default=100)
    parser.add_argument("--output", default="latency.json")
    arguments = parser.parse_args()
    results: dict[str, Any] = {"stamp": stamp(1)}
    with threadpool_limits(1):
        for share in (1.0, 0.1):
            found = one_row(arguments.components, arguments.columns, share)
            results[f"one row, {share:.0%} nonzero"] = found
            text = ", ".join(f"{name} {value:.0f} us" for name, value in found.items())
            print(f"one row, s = {arguments.components}, {share:.0%} nonzero: {text}", flush=True)
        results["cells"] = found = cells(arguments.columns // 2)
        text = ", ".join(f"{name} {value:.0f} us" for name, value in found.items())
        print(f"one row, cells, {arguments.columns // 2} columns: {text}", flush=True)
    results["start"] = found = start()
    print("a second process: " + ", ".join(f"{name} {value:.2f} s" for name, value in found.items()))
    Path(arguments.output).write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
