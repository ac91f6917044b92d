"""Whether a change of the source leaves every bit of every model as it was.

    make recorded ARGS="compare --old ../before/src"   # all fits by two trees, on this machine
    make recorded ARGS="compare --old ../before/src steps 'kernels/poly'"
    make recorded ARGS=record                          # the hashes of this tree, to hashes.json
    make recorded ARGS=check                           # this tree beside them
    make recorded ARGS=list

Names are those of fits or of their groups. ``compare`` is the way to look at a change: a difference is
told with its size. Hashes are those of one kind of machine (processor, matrix libraries, versions): on
another one ``check`` compares nothing. What may differ, and why, is in exceptions.toml.

Ends with 0 if nothing differs but what may, 1 if something does, a fit fails or has no result, 2 for a
bad command, 3 if the hashes are those of another kind of machine.
"""

# ruff: noqa: E402

from __future__ import annotations

import os

# Before numpy is there.
for library in ("OPENBLAS", "OMP", "MKL"):
    os.environ.setdefault(f"{library}_NUM_THREADS", "1")

import argparse
import json
import signal
import sys
import tempfile
import tomllib
from pathlib import Path
from typing import Any

from recorded.comparison import Exceptions, Verdict, compare
from recorded.machine import machine
from recorded.trees import Result, make_fits, results_of
from tally import end

HERE = Path(__file__).parent
SOURCE = HERE.parents[1] / "src"
HASHES = HERE / "hashes.json"
EXCEPTIONS = HERE / "exceptions.toml"
OTHER_MACHINE = 3


def chosen_names(asked: list[str]) -> list[str]:
    """The fits of these names and groups, in the order of the table; all of them for none."""
    from recorded.fits import FITS

    unknown = set(asked) - {fit.name for fit in FITS} - {fit.group for fit in FITS}
    if unknown:
        raise ValueError(f"{min(unknown)!r} is neither a fit nor a group of them; see: recorded list")
    return [fit.name for fit in FITS if not asked or fit.name in asked or fit.group in asked]


def record(names: list[str], source: Path, folder: Path, path: Path) -> int:
    """Write the hashes of a tree, if every fit that can be made here has some."""
    results = results_of(source, names, folder / "new")
    failed = {name: result for name, result in results.items() if result.error}
    for name, result in failed.items():
        print(f"fails      {name}: {result.error}")
    if failed:
        return 1
    hashes = {name: result.hashes for name, result in results.items() if not result.skipped}
    told = {"machine": machine(), "fits": hashes}
    path.write_text(json.dumps(told, indent=1) + "\n")
    print(f"{len(hashes)} fits, {len(results) - len(hashes)} skipped, in {path}")
    return 0


def check(names: list[str], source: Path, folder: Path, path: Path, exceptions: Exceptions) -> int:
    """This tree beside the hashes that were recorded."""
    told: dict[str, Any] = json.loads(path.read_text())
    here, there = machine(), told["machine"]
    others = [name for name in {**there, **here} if here.get(name) != there.get(name)]
    if others:
        print(f"{path} is of another kind of machine, whose bits differ; nothing was compared:")
        for name in others:
            print(f"  {name}: {there.get(name)} there, {here.get(name)} here")
        print("Compare two source trees on this one: recorded compare --old FOLDER")
        return OTHER_MACHINE
    old = {name: Result(told["fits"].get(name, {})) for name in names}
    return tell(compare(old, results_of(source, names, folder / "new"), exceptions))


def tell(verdicts: list[Verdict]) -> int:
    """Print what is not equal, and how many fits are what."""
    for verdict in verdicts:
        if verdict.detail:
            print(f"{verdict.word:<10} {verdict.name}: {verdict.detail}")
    words = [verdict.word for verdict in verdicts]
    print(f"{len(words)} fits: " + ", ".join(f"{words.count(w)} {w}" for w in dict.fromkeys(words)))
    return 0 if words and all(verdict.well for verdict in verdicts) else 1


def main(arguments: list[str] | None = None) -> int:
    """Do what is asked for."""
    parser = argparse.ArgumentParser(prog="recorded", description=__doc__.splitlines()[0])
    parser.add_argument("verb", choices=["compare", "record", "check", "list", "make"])
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help="fits or groups of them; all by default"
    )
    parser.add_argument("--old", type=Path, metavar="SRC", help="the folder src of a tree, to compare")
    parser.add_argument(
        "--new", type=Path, default=SOURCE, metavar="SRC", help="by default this tree's"
    )
    parser.add_argument("--hashes", type=Path, default=HASHES, metavar="JSON")
    parser.add_argument("--exceptions", type=Path, default=EXCEPTIONS, metavar="TOML")
    parser.add_argument("--to", type=Path, help=argparse.SUPPRESS)  # of make, which the others call
    asked = parser.parse_intermixed_args(arguments)
    if asked.verb == "compare" and asked.old is None:
        parser.error("compare needs --old, the folder src of another tree.")
    if asked.verb == "make":
        make_fits(asked.names, asked.to, asked.new)
        return 0
    try:
        names = chosen_names(asked.names)
        exceptions = Exceptions.read(tomllib.loads(asked.exceptions.read_text()), chosen_names([]))
    except (ValueError, OSError) as error:
        parser.error(str(error))
    if asked.verb == "list":
        print("\n".join(names))
        return 0
    with tempfile.TemporaryDirectory() as kept:
        folder = Path(kept)
        try:
            if asked.verb == "record":
                return record(names, asked.new, folder, asked.hashes)
            if asked.verb == "check":
                return check(names, asked.new, folder, asked.hashes, exceptions)
            old = results_of(asked.old, names, folder / "old")
            new = results_of(asked.new, names, folder / "new")
        except OSError as error:
            parser.error(str(error))
        return tell(compare(old, new, exceptions))


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, end)
    sys.exit(main())
