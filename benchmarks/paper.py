"""The paper's experiments, side by side with their peers, as a page: ``make paper``.

    ASSET_DATA=folder python benchmarks/paper.py [--quick | --full] [--sets ...] [--experiments ...]

Writes paper-report/: index.html (self-contained), tables.md, results.jsonl (one record a run). It goes
on where it was interrupted: a run that is in results.jsonl is not repeated. Peers that are installed
are run, others are empty rows.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from joblib import cpu_count
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from threadpoolctl import threadpool_limits

from asset_svm import AssetClassifier
from datasets import SETS, DataMissingError
from experiments import ALL, FULL, QUICK, Task
from experiments.machine import has_card, stamp
from experiments.report import write_report
from experiments.store import Store
from solvers import SOLVERS, OutOfTimeError


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what is missing, then write the page."""
    options = _parse(arguments)
    scale = FULL if options.full else QUICK
    if options.repeats:
        scale = replace(scale, repeats=options.repeats)
    if options.limit:
        scale = replace(scale, limit=options.limit)
    if options.sets:
        scale = replace(scale, sets=_names(options.sets, SETS, "data set"))
    names = _names(options.experiments, ALL, "experiment") if options.experiments else tuple(ALL)
    tasks = [task for name in names for task in ALL[name].tasks(scale)]
    folder = Path(options.output)
    store = Store(folder / "results.jsonl")
    console = Console()
    # Two runs at a time would share the card, and its clock.
    jobs = options.jobs or (min(cpu_count(), 2) if scale.quick and not has_card() else 1)
    status = 0
    if not options.report_only:
        try:
            run_tasks(tasks, store, console, jobs=jobs, threads=options.threads)
        except KeyboardInterrupt:
            console.print("Interrupted; the same command goes on from here.")
            status = 130
    page = write_report(store, folder, scale)
    console.print(f"Runs so far: {len(store.done())}. The page is {page}")
    return status


def _names(text: str, known: Iterable[str], what: str) -> tuple[str, ...]:
    """The names in a list separated by commas, all of which must be known."""
    names = tuple(text.split(","))
    for name in names:
        if name not in known:
            raise SystemExit(f"There is no {what} {name!r}; there are {', '.join(known)}.")
    return names


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{number} is not positive")
    return number


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--quick", action="store_true", help="3 repeats, minutes (the default)")
    how.add_argument("--full", action="store_true", help="50 repeats, as in the paper: days")
    parser.add_argument("--sets", default="", help="only these data sets, separated by commas")
    parser.add_argument("--experiments", default="", help=f"only these of {', '.join(ALL)}")
    parser.add_argument("--repeats", type=_positive, default=None, help="another number of them")
    parser.add_argument(
        "--limit",
        type=_positive,
        help="CPU seconds of one run of a program on the PATH: 30 if quick, else 3600",
    )
    parser.add_argument("--jobs", type=_positive, help="runs at a time: 2 if quick, else 1")
    parser.add_argument("--threads", type=_positive, default=1, help="of BLAS, in each")
    parser.add_argument("--output", default="paper-report")
    parser.add_argument("--report-only", action="store_true", help="run nothing, write the page")
    return parser.parse_args(arguments)


@dataclass(frozen=True)
class Outcome:
    """What came of a task: a result (a failure is one too), or why there is none."""

    result: dict[str, Any] | None
    missing: str = ""
    seconds: float = 0.0
    cpu_seconds: float = 0.0


def run_tasks(
    tasks: Sequence[Task], store: Store, console: Console, *, jobs: int = 1, threads: int = 1
) -> None:
    """Run those that are not in the store, ``jobs`` at a time, with a bar; keep what comes at once."""
    left = [task for task in tasks if not store.has(task.key, task.limit) and is_installed(task.solver)]
    if not left:
        return
    columns = (
        TextColumn("{task.fields[what]:42}"),
        BarColumn(),
        TextColumn("{task.fields[number]}"),
        TimeRemainingColumn(),
    )
    told: set[str] = set()
    with Progress(*columns, console=console) as progress:
        total = sum(task.cost for task in left)
        bar = progress.add_task("", total=total, what="compiling", number=f"0/{len(left)}")
        for number, (task, outcome) in enumerate(outcomes(left, jobs, threads), 1):
            if outcome.missing and task.dataset not in told:
                told.add(task.dataset)
                console.print(f"{task.dataset} is left out: {outcome.missing}")
            if outcome.result is not None:
                store.add(record(task, outcome, threads))
                if "failed" in outcome.result:
                    console.print(f"{task.key} failed: {outcome.result['failed']}")
            what = f"{task.experiment} {task.dataset} {task.solver} {task.seed}"
            progress.update(bar, advance=task.cost, what=what[:42], number=f"{number}/{len(left)}")
            if not console.is_terminal:
                console.print(f"{number}/{len(left)} {what}")


def outcomes(tasks: Sequence[Task], jobs: int, threads: int) -> Iterator[tuple[Task, Outcome]]:
    """Run tasks here, or in ``jobs`` processes; an interruption ends these at once."""
    if jobs == 1:
        with threadpool_limits(threads):
            warm_up()
            for task in tasks:
                yield task, run_one(task)
        return
    # Spawned: processes that are forked after a matrix product may hang in their BLAS.
    with get_context("spawn").Pool(jobs, _begin_worker, (threads,)) as pool:
        for number, outcome in pool.imap_unordered(_run_numbered, enumerate(tasks)):
            yield tasks[number], outcome
        # Those that have nothing left end by themselves: a signal that comes to one just before it
        # waits for more work is seen by nobody, and the end of the pool would wait for ever.
        pool.close()
        pool.join()


def _begin_worker(threads: int) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # An exception, in place of the end at once: the program that a task has begun ends with it.
    signal.signal(signal.SIGTERM, _end_worker)
    threadpool_limits(threads)
    warm_up()


def _end_worker(number: int, frame: object) -> None:
    sys.exit(128 + number)


def _run_numbered(numbered: tuple[int, Task]) -> tuple[int, Outcome]:
    number, task = numbered
    return number, run_one(task)


def run_one(task: Task) -> Outcome:
    """Run a task; no result where there are no data, or the solver is not made for the problem."""
    begun, cpu_begun = time.perf_counter(), cpu_seconds()
    try:
        result = task.run()
    except DataMissingError as error:
        return Outcome(None, str(error))
    except NotImplementedError:
        return Outcome(None)
    except OutOfTimeError as error:
        result = dict(stopped=error.seconds)
    except Exception as error:
        result = dict(failed=f"{type(error).__name__}: {error}")
    return Outcome(result, "", time.perf_counter() - begun, cpu_seconds() - cpu_begun)


def cpu_seconds() -> float:
    """CPU time of this process so far, and of the programs it has run."""
    return sum(os.times()[:4])


def record(task: Task, outcome: Outcome, threads: int) -> dict[str, Any]:
    """A line of the file."""
    software = SOLVERS[task.solver].version() if task.solver in SOLVERS else None
    return dict(
        key=task.key, experiment=task.experiment, solver=task.solver, dataset=task.dataset,
        seed=task.seed, settings=task.settings, result=outcome.result, software=software,
        seconds=round(outcome.seconds, 3), cpu_seconds=round(outcome.cpu_seconds, 3),
        time=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), machine=stamp(threads),
    )  # fmt: skip


@cache
def is_installed(solver: str) -> bool:
    """Whether this solver can be run here."""
    return solver not in SOLVERS or SOLVERS[solver].version() is not None


def warm_up() -> None:
    """Compile (or load from numba's cache) before anything is timed."""
    X = np.random.default_rng(0).normal(size=(256, 4)).astype(np.float32)
    y = np.where(X[:, 0] > 0, 1, -1)
    for step in ("robust", "strong", "metric"):
        for approximation in ("nystroem", "fourier"):
            model = AssetClassifier(step=step, approximation=approximation, n_components=16, max_iter=2)
            model.fit(X, y).predict(X)


if __name__ == "__main__":
    sys.exit(main())
