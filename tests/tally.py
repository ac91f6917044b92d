"""How often ``make test`` passes: runs it, and keeps the tally of a commit.

    python tests/tally.py --fresh 3 --here 17 --busy 2

A run in a fresh clone sets up its environment and compiles everything anew; the others run where this
file is. Each run that ends adds a line of JSON to the tally, with what it found. A run that was killed
tells nothing: it is noted, and made again. The command can be stopped and started again; it goes on
until the commit has as many runs as are asked for. It ends with 0 if all of them passed.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

ROOT = Path(__file__).parents[1]
BUSY = "import os, sys\nwhile os.getppid() == int(sys.argv[1]): sum(range(100_000))"
"""Does nothing useful for as long as whoever began it is there."""


@contextmanager
def busy(count: int) -> Iterator[None]:
    """So many processes that take what they get of the machine."""
    command = [sys.executable, "-c", BUSY, str(os.getpid())]
    processes = [subprocess.Popen(command) for _ in range(count)]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


def make(target: str, folder: Path, log: Path, **environment: str) -> tuple[int, float]:
    """The exit code of ``make target`` in a folder, and its seconds; nothing of it is left behind."""
    begun = time.perf_counter()
    with log.open("w") as file:
        process = subprocess.Popen(
            ["make", target],
            cwd=folder,
            env={**os.environ, **environment},
            stdout=file,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            code = process.wait()
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    return code, time.perf_counter() - begun


def read_report(path: Path) -> dict[str, Any]:
    """What pytest's own report says: counts, and the tests that failed."""
    cases = list(ElementTree.parse(path).iter("testcase"))
    failing = [
        case for case in cases if case.find("failure") is not None or case.find("error") is not None
    ]
    skipped = sum(case.find("skipped") is not None for case in cases)
    return {
        "passed": len(cases) - len(failing) - skipped,
        "failed": len(failing),
        "skipped": skipped,
        "failing": sorted(f"{case.get('classname')}::{case.get('name')}" for case in failing),
    }


def run_once(kind: str, commit: str, root: Path) -> dict[str, Any]:
    """One run, as a line of the tally without its beginning."""
    with tempfile.TemporaryDirectory(prefix="tally-") as name:
        folder, report, found = root, Path(name) / "report.xml", dict[str, Any]()
        log = Path(name) / "log"
        if kind == "fresh":
            folder = Path(name) / "clone"
            git("clone", "--quiet", "--no-hardlinks", str(root), str(folder), root=root)
            git("checkout", "--quiet", "--detach", commit, root=folder)
            code, seconds = make("setup", folder, log)
            found["setup_seconds"] = round(seconds, 1)
            if code != 0:
                return {**found, "exit": code, "whole": False, "log": log.read_text()[-2000:]}
        code, seconds = make("test", folder, log, PYTEST_ADDOPTS=f"--junitxml={report}")
        found |= {"exit": code, "seconds": round(seconds, 1)}
        # make ends with 2 where a command of its own failed, and otherwise where it was ended.
        found["whole"] = report.exists() and code in (0, 2)
        if report.exists():
            found |= read_report(report)
        if code != 0:
            found["log"] = log.read_text()[-2000:]
        return found


def git(*arguments: str, root: Path) -> str:
    """What a command of git says."""
    done = subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def read_tally(path: Path, commit: str) -> list[dict[str, Any]]:
    """The lines of a commit."""
    if not path.exists():
        return []
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    return [line for line in lines if line["commit"] == commit]


def print_tally(lines: list[dict[str, Any]]) -> None:
    """A line for each kind of run, and the tests that failed."""
    groups = sorted({(line["kind"], line["busy"]) for line in lines})
    for kind, beside in groups:
        ours = [line for line in lines if (line["kind"], line["busy"]) == (kind, beside)]
        whole = [line for line in ours if line["whole"]]
        seconds = [line["seconds"] for line in whole]
        span = f", {min(seconds):.0f} to {max(seconds):.0f} s" if seconds else ""
        passed, killed = sum(line["exit"] == 0 for line in whole), len(ours) - len(whole)
        left = f"; {killed} did not end by themselves" if killed else ""
        print(f"{kind}, {beside} busy beside it: {passed} of {len(whole)} passed{span}{left}")
    for test in sorted({test for line in lines for test in line.get("failing", [])}):
        print(f"  failed {sum(test in line.get('failing', []) for line in lines)} times: {test}")


def main(arguments: list[str] | None = None, root: Path = ROOT) -> int:
    """Run until there are enough, and tell."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--here", type=int, default=0, help="runs in this environment")
    parser.add_argument("--fresh", type=int, default=0, help="runs in clones with nothing set up")
    parser.add_argument("--busy", type=int, default=0, help="processes that are busy beside each run")
    parser.add_argument("--tally", type=Path, default=root / "tally.jsonl")
    asked = parser.parse_args(arguments)
    commit = git("rev-parse", "HEAD", root=root)
    if git("status", "--porcelain", root=root):
        print("tally: the tree has changes; commit them, for a tally is of a commit.", file=sys.stderr)
        return 2
    for kind, count in (("fresh", asked.fresh), ("here", asked.here)):
        while True:
            lines = read_tally(asked.tally, commit)
            same = [line for line in lines if (line["kind"], line["busy"]) == (kind, asked.busy)]
            if sum(line["whole"] for line in same) >= count:
                break
            with busy(asked.busy):
                found = run_once(kind, commit, root)
            line = {"commit": commit, "kind": kind, "busy": asked.busy, **found}
            with asked.tally.open("a") as file:
                file.write(json.dumps(line) + "\n")
            if not found["whole"]:
                print(f"tally: a run did not end by itself (exit {found['exit']}); see {asked.tally}")
                if len(same) - sum(line["whole"] for line in same) >= 5:
                    print("tally: that is the sixth; something else is wrong.", file=sys.stderr)
                    return 1
    lines = read_tally(asked.tally, commit)
    print(f"commit {commit}")
    print_tally(lines)
    return 0 if all(line["exit"] == 0 for line in lines if line["whole"]) else 1


def end(number: int, frame: object) -> None:
    """So that a tally that is ended ends what it began."""
    raise SystemExit(128 + number)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, end)
    sys.exit(main())
