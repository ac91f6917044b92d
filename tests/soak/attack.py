"""One attack: its cases run in a child process, and whatever becomes of that child is counted.

A case ends in a word (``refused``, ``same``), or in a finding: an exception, a crash, a hang. What is
already known to be wrong, and has a strict expected failure in the suite, is counted apart: a case says
``expect_failure("19.F6")`` before it does what may fail for that reason.

The child is forked after ``prepare``, so that beginning anew after a crash costs nothing.
"""

from __future__ import annotations

import faulthandler
import json
import os
import resource
import select
import signal
import sys
import tempfile
import time
import traceback
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext, redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

FINDING = "finding"


class Case:
    """A number, its own random numbers, and what is known to fail."""

    def __init__(self, attack: str, seed: int, number: int, tell: Callable[[Any], None]) -> None:
        self.number = number
        self.rng = np.random.default_rng([seed, zlib.crc32(attack.encode()), number])
        self.known: str | None = None
        self._tell = tell

    def expect_failure(self, reason: str) -> None:
        """From here on a failure of any kind, the death of the process too, is this one."""
        self.known = reason
        self._tell({"known": reason})


class Attack:
    """What is done in a case, and what it may take."""

    name: str
    count: int
    """Cases of a whole soak."""
    short = 0
    """Cases of a short soak; 0 where something but the number has a part in a case."""
    fixed = False
    """Whether it is a short one: every case does the same, to the byte, whenever it is run."""
    patience = 60.0
    """Seconds after which a case counts as hung, on a machine that is busy with other things."""
    memory: int | None = 4 << 30
    """Address space that a case may take beyond what the process had before, in bytes."""

    def prepare(self) -> None:
        """Make what all cases need; in the folder of the attack, before the child is forked."""

    def session(self) -> AbstractContextManager[Any]:
        """What is there while the cases of one child run."""
        return nullcontext()

    def run(self, case: Case) -> str:
        """Do it; returns how it ended, and raises where that is wrong."""
        raise NotImplementedError


@dataclass
class Tally:
    """How the cases [begin, end) of an attack ended."""

    begin: int
    end: int
    outcomes: Counter[str] = field(default_factory=Counter)
    findings: list[dict[str, Any]] = field(default_factory=list)

    def add(self, number: int, outcome: str, detail: str = "") -> None:
        """One more; details are kept of findings alone."""
        self.end = number + 1
        self.outcomes[outcome] += 1
        if outcome.startswith(FINDING):
            self.findings.append({"case": number, "outcome": outcome, "detail": detail})


def run_cases(attack: Attack, seed: int, begin: int, end: int, seconds: float) -> Iterator[Tally]:
    """Run these cases, or as many as there is time for; a tally every few seconds."""
    with tempfile.TemporaryDirectory(prefix=f"soak-{attack.name}-") as folder:
        home = os.getcwd()
        os.chdir(folder)
        try:
            with open(os.devnull, "w") as nowhere, redirect_stdout(nowhere), redirect_stderr(nowhere):
                attack.prepare()
            until = time.monotonic() + seconds
            while begin < end and time.monotonic() < until:
                for tally in _watch(attack, seed, begin, end, until, Path(folder) / "stderr"):
                    begin = tally.end
                    yield tally
        finally:
            os.chdir(home)


def _watch(attack: Attack, seed: int, begin: int, end: int, until: float, log: Path) -> Iterator[Tally]:
    """The tallies of one child, until it has run all cases or died."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        _run_child(attack, seed, range(begin, end), until, writing, log)
    os.close(writing)
    tally, known, since = Tally(begin, begin), None, time.monotonic()
    end_of_child = "finding: crash"
    try:
        for line in _lines(reading, attack.patience):
            if line is None:
                end_of_child = "finding: hang"
                break
            told = json.loads(line)
            if "begun" in told:
                continue
            if "known" in told:
                known = told["known"]
            elif "done" in told:
                end_of_child = ""
            else:
                tally.add(told["case"], told["outcome"], told["detail"])
                known = None
                if time.monotonic() - since > 5:
                    yield tally
                    tally, since = Tally(tally.end, tally.end), time.monotonic()
    finally:
        with suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        os.close(reading)
    if end_of_child:
        if known is not None:
            end_of_child = end_of_child.replace("finding", f"known {known}")
        ended = f"signal {status & 127}, exit {status >> 8}"
        said = log.read_text(errors="replace").partition("Extension modules")[0]
        tally.add(tally.end, end_of_child, f"{_shortened(said)}\n{ended}")
    yield tally


def _lines(reading: int, patience: float) -> Iterator[str | None]:
    """What the child tells, until it ends; None once it has told nothing for too long.

    Patience begins when the child has told that it has begun: a busy machine may take its time.
    """
    rest, wait = b"", None
    while True:
        if not select.select([reading], [], [], wait)[0]:
            yield None
            return
        wait = patience
        content = os.read(reading, 1 << 16)
        if not content:
            return
        *lines, rest = (rest + content).split(b"\n")
        yield from (line.decode() for line in lines)


def _run_child(
    attack: Attack, seed: int, numbers: range, until: float, writing: int, log: Path
) -> None:
    """The child: tells how each case ends, and never returns."""
    try:
        os.setsid()  # what it begins ends with it
        target = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(target, 1)
        os.dup2(target, 2)
        sys.stdout = sys.stderr = os.fdopen(2, "w")
        faulthandler.enable()
        os.write(writing, b'{"begun": true}\n')

        def tell(message: Any) -> None:
            os.write(writing, json.dumps(message).encode() + b"\n")

        with attack.session():
            if attack.memory is not None:
                pages = int(Path("/proc/self/statm").read_text().split()[0])
                limit = pages * resource.getpagesize() + attack.memory
                resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
            for number in numbers:
                if time.monotonic() > until and number > numbers.start:
                    break
                os.truncate(log, 0)
                case = Case(attack.name, seed, number, tell)
                outcome, detail = _ended(attack, case)
                tell({"case": number, "outcome": outcome, "detail": detail})
            tell({"done": True})
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(0)


def _shortened(said: str) -> str:
    return said if len(said) <= 3000 else f"{said[:1500]}\n...\n{said[-1500:]}"


def _ended(attack: Attack, case: Case) -> tuple[str, str]:
    try:
        return attack.run(case), ""
    except Exception as error:
        begun = FINDING if case.known is None else f"known {case.known}"
        return f"{begun}: {type(error).__name__}", _shortened(traceback.format_exc())
