"""What a deployed model takes: bytes of the file, and the time of one row and of a thousand.

    python benchmarks/deployment.py [--repeats 20] [--output deployment.json]

Four models, saved once: one map, exact cells, a table, Fourier features. Each is decided by the
library, by ``asset_svm.runtime``, by onnxruntime on one thread, and by C that gcc -O2 has compiled,
whose rows are looped over by ctypes; what those calls cost by themselves is told beside it.
Medians of calls that take turns. How long a fresh process takes to import and to load is measured too.
Needs gcc, the extra ``onnx``, and onnxruntime; no data set.

Times are those of the processor, so that other work on the machine counts for little; products have one
thread everywhere (OPENBLAS_NUM_THREADS=1): threads that wait for each other spin, and would count.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ["OPENBLAS_NUM_THREADS"] = "1"

import numpy as np
import onnxruntime
import pandas as pd

import asset_svm
from asset_svm import AssetClassifier, AssetRegressor, runtime
from asset_svm.export import to_c, to_onnx
from speed import stamp

FEW, MANY = 1, 1000
IDLE = ctypes.CDLL(None).labs
START = """
import time
import numpy
begun = time.process_time()
{imports}
imported = time.process_time()
{load}
print(imported - begun, time.process_time() - imported)
"""
STARTS = {
    "asset_svm": ("import asset_svm", "asset_svm.load({path!r})"),
    "runtime": ("from asset_svm import runtime", "runtime.load({path!r})"),
    "onnxruntime": (
        "import onnxruntime",
        "onnxruntime.InferenceSession({path!r}, providers=['CPUExecutionProvider'])",
    ),
}


def numbers() -> tuple[np.ndarray, np.ndarray]:
    """Rows of 20 numbers and three classes."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20_000, 20)).astype(np.float32)
    return X, (np.sin(X[:, 0]) + X[:, 1] * X[:, 2] > 0).astype(int) + (X[:, 3] > 1)


def table() -> tuple[pd.DataFrame, np.ndarray]:
    """Rows of 8 numbers and two categories, and numbers to learn."""
    rng = np.random.default_rng(0)
    count = 20_000
    frame = pd.DataFrame({f"n{k}": rng.normal(size=count) for k in range(8)})
    frame["city"] = rng.choice(["Oslo", "Rome", "Bonn"], count)
    frame["shop"] = [f"shop {k}" for k in rng.integers(0, 200, count)]
    return frame, np.sin(frame["n0"]).to_numpy() + (frame["city"] == "Rome")


def models() -> dict[str, tuple[Any, Any]]:
    """Fitted models with rows."""
    X, y = numbers()
    frame, z = table()
    shared = dict(n_components=512, max_iter=2, random_state=0)
    return {
        "one map": (AssetClassifier(**shared).fit(X, y), X),
        "cells": (AssetRegressor(n_cells=20, random_state=0).fit(X, X[:, 0] * X[:, 1]), X),
        "table": (AssetRegressor(**shared).fit(frame, z), frame),
        "Fourier": (AssetClassifier(approximation="fourier", **shared).fit(X, y), X),
    }


def in_turns(functions: dict[str, Callable[[], Any]], repeats: int, calls: int) -> dict[str, float]:
    """Microseconds of a call of each: the median over turns."""
    spent: dict[str, list[float]] = {name: [] for name in functions}
    for _ in range(repeats):
        for name, function in functions.items():
            begun = time.process_time()
            for _ in range(calls):
                function()
            spent[name].append((time.process_time() - begun) / calls * 1e6)
    return {name: float(np.median(values)) for name, values in spent.items()}


def feeds(session: Any, rows: Any) -> dict[str, np.ndarray]:
    """Rows as a session takes them."""
    inputs = session.get_inputs()
    if inputs[0].name == "X":
        return {"X": rows}
    return {each.name: rows[each.name].to_numpy()[:, None] for each in inputs}


def compiled(source: str, folder: Path, name: str) -> Callable[..., int]:
    """The function ``predict`` of a C file."""
    path = folder / f"{name}.c"
    path.write_text(source, encoding="utf-8")
    flags = ["-std=c99", "-O2", "-shared", "-fPIC"]
    subprocess.run(["gcc", *flags, str(path), "-o", str(path.with_suffix(".so")), "-lm"], check=True)
    return ctypes.CDLL(str(path.with_suffix(".so"))).model_predict


def c_rows(rows: Any) -> list[Any]:
    """Rows as C takes them."""
    if isinstance(rows, np.ndarray):
        return [(ctypes.c_double * rows.shape[1])(*row) for row in rows.tolist()]
    kinds = [
        (name, ctypes.c_double if rows[name].dtype.kind == "f" else ctypes.c_char_p) for name in rows
    ]
    made = type("Row", (ctypes.Structure,), {"_fields_": kinds})
    cells = ([each.encode() if isinstance(each, str) else each for each in row] for row in rows.values)
    return [made(*row) for row in cells]


def measure(name: str, model: Any, rows: Any, folder: Path, repeats: int) -> dict[str, Any]:
    """Sizes and times of one model."""
    path = folder / f"{name}.asset"
    asset_svm.save(model, path)
    graph, source = to_onnx(model).SerializeToString(), to_c(model)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(graph, options, providers=["CPUExecutionProvider"])
    served, function, out = runtime.load(path), compiled(source, folder, name), (ctypes.c_double * 8)()
    found: dict[str, Any] = {
        "bytes": {"asset": path.stat().st_size, "onnx": len(graph), "c": len(source.encode())}
    }
    for count in (FEW, MANY):
        some = rows[:count]
        listed = some.to_dict("records") if hasattr(some, "to_dict") else some.tolist()
        given, each = feeds(session, some), [ctypes.byref(row) for row in c_rows(some)]

        def by_c(each: list[Any] = each) -> None:
            for row in each:
                function(row, out)

        def calls(each: list[Any] = each) -> None:
            for row in each:
                IDLE(row, out)

        functions: dict[str, Callable[[], Any]] = {
            "library": lambda some=some: model.predict(some),
            "runtime": lambda some=some: served.predict(some),
            "runtime, dicts": lambda listed=listed: served.predict(listed),
            "onnxruntime": lambda given=given: session.run(None, given),
            "C": by_c,
            "calls of C": calls,
        }
        found[f"{count} rows"] = in_turns(functions, repeats, 20 if count == FEW else 1)
    found["start"] = {}
    (folder / f"{name}.onnx").write_bytes(graph)
    for way, (imports, load) in STARTS.items():
        own = str(folder / f"{name}.onnx") if way == "onnxruntime" else str(path)
        program = START.format(imports=imports, load=load.format(path=own))
        times = [
            list(map(float, subprocess.check_output([sys.executable, "-c", program]).split()))
            for _ in range(5)
        ]
        found["start"][way] = np.median(times, axis=0).round(4).tolist()
    return found


def main() -> None:
    """Measure all models, and print what was found."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--output")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = {
            name: measure(name, model, rows, Path(folder), options.repeats)
            for name, (model, rows) in models().items()
        }
    print(json.dumps(found, indent=1))
    if options.output:
        Path(options.output).write_text(json.dumps({**stamp(1), "deployment": found}, indent=1))


if __name__ == "__main__":
    main()
