"""Seconds by the number of threads: what each more core is worth, task by task.

    ASSET_DATA=folder python benchmarks/cores.py [--threads 1,2,4,8,16] [--cases name,...] [--profile]

Each number of threads has a process of its own, in which BLAS and ``n_jobs`` may take so many. Every
task runs once to warm up, on few rows, then ``--repeats`` times; the table has the least of their
seconds and, in the last column, how many times faster the most threads are than one. ``--profile``
prints where the main thread of each task was, as a share of its samples. The first line is what the
machine's own matrix product gains.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import threading
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

Task = tuple[str, Callable[[bool], Callable[[], Any]]]
"""A name, and a function that makes the task, on few rows or on all."""

FEW = 4096
SAMPLE_SECONDS = 0.002
VARIABLES = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")


def dense(X: Any) -> np.ndarray:
    """The rows as an array."""
    return np.asarray(X.toarray() if hasattr(X, "toarray") else X, dtype=np.float32)


def tasks(threads: int) -> Iterator[Task]:
    """The tasks of the table, in its order; data are read when a task is made."""
    import datasets as data
    from asset_svm import AssetClassifier, AssetClassifierCV

    common = dict(random_state=0, n_jobs=threads)

    def paper_fit(name: str, s: int, **options: Any) -> Callable[[bool], Callable[[], Any]]:
        def make(few: bool) -> Callable[[], Any]:
            X, y, _, _ = data.paper_split(name, 0)
            X, y = (X[:FEW], y[:FEW]) if few else (X, y)
            paper = data.PAPER[name]
            model = AssetClassifier(
                gamma=paper.sigma, lam=paper.lam, n_components=s, **options, **common
            )
            return lambda: model.fit(X, y)

        return make

    def cells(few: bool) -> Callable[[], Any]:
        X, y, _, _ = data.paper_split("covtype", 0)
        X, y = (X[:FEW], y[:FEW]) if few else (X, y)
        rows = dense(X)
        model = AssetClassifier(gamma=64, C=10, n_cells="auto", **common)
        return lambda: model.fit(rows, y)

    def cells_predict(few: bool) -> Callable[[], Any]:
        fit = cells(few)
        model = fit()
        rows = dense(data.paper_split("covtype", 0)[2])
        return lambda: model.predict(rows)

    def predict(few: bool) -> Callable[[], Any]:
        X, y, _, _ = data.paper_split("covtype", 0)
        paper = data.PAPER["covtype"]
        model = AssetClassifier(
            gamma=paper.sigma, lam=paper.lam, n_components=1024, max_iter=1, **common
        ).fit(X[:FEW], y[:FEW])
        rows = dense(X)
        many = rows[: 4 * FEW] if few else np.concatenate([rows, rows, rows])[:1_000_000]
        return lambda: model.predict(many)

    def search(few: bool) -> Callable[[], Any]:
        X, y, _, _ = data.paper_split("ijcnn", 0)
        X, y = (X[:FEW], y[:FEW]) if few else (X, y)
        gamma = data.PAPER["ijcnn"].sigma
        searcher = AssetClassifierCV(Cs=10, gammas=[gamma], cv=5, n_components=512, **common)
        return lambda: searcher.fit(X, y)

    def letter(few: bool) -> Callable[[], Any]:
        X, y = data.load("letter")
        X, y = (X[:FEW], y[:FEW]) if few else (X, y)
        model = AssetClassifier(gamma=1.0, C=10, n_components=1024, **common)
        return lambda: model.fit(X, y)

    def product(few: bool) -> Callable[[], Any]:
        A = np.ones((256 if few else 4096,) * 2, dtype=np.float32)
        return lambda: A @ A

    yield "the machine: sgemm 4096^3", product
    yield "COVTYPE s = 1024, 3 epochs, fit", paper_fit("covtype", 1024, max_iter=3)
    yield "COVTYPE s = 1024, default, fit", paper_fit("covtype", 1024)
    yield "COVTYPE one map, predict 10^6", predict
    yield "COVTYPE cells, fit", cells
    yield "COVTYPE cells, predict 58 101", cells_predict
    yield "MNIST s = 2048, 3 epochs, fit", paper_fit("mnist", 2048, max_iter=3)
    yield "IJCNN s = 1024, 3 epochs, fit", paper_fit("ijcnn", 1024, max_iter=3)
    yield "IJCNN s = 1024, default, fit", paper_fit("ijcnn", 1024)
    yield "IJCNN 10 Cs x 5 folds, search", search
    yield "letter (26 classes) s = 1024, fit", letter


@contextmanager
def sampled(found: Counter[str] | None) -> Iterator[None]:
    """Inside, the lines of ours that the main thread is at are counted."""
    if found is None:
        yield
        return
    ended, main = threading.Event(), threading.main_thread().ident

    def look() -> None:
        while not ended.wait(SAMPLE_SECONDS):
            frame = sys._current_frames().get(main)
            names = []
            while frame is not None and len(names) < 3:
                file = frame.f_code.co_filename
                if "asset_svm" in file:
                    names.append(f"{Path(file).stem}.{frame.f_code.co_name}:{frame.f_lineno}")
                frame = frame.f_back
            found[" < ".join(names)] += 1

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def measure(threads: int, cases: list[str], repeats: int, *, profile: bool) -> dict[str, Any]:
    """The seconds of each task in this process, wall and of all cores."""
    warnings.simplefilter("ignore")
    out: dict[str, Any] = {}
    for name, make in tasks(threads):
        if cases and not any(case.lower() in name.lower() for case in cases):
            continue
        make(True)()
        task, wall, cpu = make(False), [], []
        counts: Counter[str] | None = Counter() if profile else None
        for _ in range(repeats):
            begun, begun_cpu = time.perf_counter(), time.process_time()
            with sampled(counts):
                task()
            wall.append(time.perf_counter() - begun)
            cpu.append(time.process_time() - begun_cpu)
        out[name] = [min(wall), min(cpu)]
        print(f"{threads} threads: {name}: {min(wall):.2f} s, {min(cpu):.2f} CPU s", file=sys.stderr)
        for where, count in counts.most_common(9) if counts else ():
            print(f"    {count / sum(counts.values()):5.0%}  {where}", file=sys.stderr)
    return out


def child(threads: int, arguments: argparse.Namespace) -> dict[str, Any]:
    """What a process that may take so many threads measures."""
    environment = os.environ | {name: str(threads) for name in VARIABLES}
    command = [sys.executable, __file__, "--measure", str(threads), "--cases", arguments.cases]
    command += ["--repeats", str(arguments.repeats)] + ["--profile"] * arguments.profile
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def main() -> None:
    """Print the table, write the file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", default="1,2,4,8,16")
    parser.add_argument("--cases", default="", help="parts of the names of tasks")
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--profile", action="store_true")
    parser.add_argument("--output", default="cores.json")
    parser.add_argument("--measure", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    cases = [case for case in arguments.cases.split(",") if case]
    if arguments.measure is not None:
        print(
            json.dumps(measure(arguments.measure, cases, arguments.repeats, profile=arguments.profile))
        )
        return
    counts = [int(count) for count in arguments.threads.split(",") if int(count) <= os.cpu_count()]
    found = {count: child(count, arguments) for count in counts}
    print("| threads | " + " | ".join(map(str, counts)) + f" | 1 / {counts[-1]} |")
    print("|---" * (len(counts) + 2) + "|")
    for name in found[counts[0]]:
        seconds = [found[count][name][0] for count in counts]
        told = " | ".join(f"{value:.2f}" for value in seconds)
        print(f"| {name} | {told} | {seconds[0] / seconds[-1]:.1f} |")
    Path(arguments.output).write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
