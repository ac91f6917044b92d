"""Attacks on everything that must not break, for as long as there is time.

    make soak                                    # the whole counts; hours
    make soak ARGS="mutants=100000 --minutes 10 --seed 1"
    make soak ARGS="resealed --case 4711"        # one case again, with all that it says
    make soak-minute                             # --short: some cases of each, the same every time

A case is settled by its attack, its number and the seed, but for what a clock has a part in (when a
process is killed) and for bytes of files that the library writes. A short soak, that of CI, leaves both
out, and the same source has the same verdict there: it counts cases, and its time is only a cap. The
tally (``soak.jsonl``) has a line of JSON
for every few seconds of cases, with the source they ran against: an attack goes on after the last one
of this source and seed, and a changed source begins anew. Ends with 0 if nothing was found.
"""

# ruff: noqa: E402

from __future__ import annotations

import os

# Before numpy is there: children are forked, and threads are not.
for library in ("OPENBLAS", "OMP", "MKL"):
    os.environ.setdefault(f"{library}_NUM_THREADS", "1")

import argparse
import hashlib
import json
import signal
import sys
import tempfile
from collections import Counter
from importlib import import_module
from pathlib import Path
from typing import Any

from soak.attack import Attack, Case, run_cases
from tally import end

ROOT = Path(__file__).parents[2]
ATTACKS = {
    "kills": "soak.kills:Kills",
    "cell-kills": "soak.kills:CellKills",
    "search-kills": "soak.kills:SearchKills",
    "grid-kills": "soak.kills:GridKills",
    "damaged": "soak.model_files:Damaged",
    "resealed": "soak.model_files:Resealed",
    "mutants": "soak.reader_files:Mutants",
    "clusters": "soak.cluster_fits:ClusterFits",
    "inputs": "soak.bad_inputs:BadInputs",
}


def attack_of(name: str) -> Attack:
    """The attack of this name; what it needs is imported only now."""
    module, _, kind = ATTACKS[name].partition(":")
    return getattr(import_module(module), kind)()


def source_digest(root: Path = ROOT) -> str:
    """Of the library's own files."""
    digest = hashlib.sha256()
    for path in sorted((root / "src").rglob("*.py")):
        digest.update(f"{path.relative_to(root)}\n".encode() + path.read_bytes())
    return digest.hexdigest()[:12]


def read_tally(path: Path, **asked: Any) -> list[dict[str, Any]]:
    """The lines with these values."""
    if not path.exists():
        return []
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    return [line for line in lines if all(line[name] == value for name, value in asked.items())]


def soak(
    attack: Attack, count: int, seed: int, seconds: float, path: Path, source: str
) -> list[dict[str, Any]]:
    """Go on to this count, or until the time is over; returns all lines of the tally."""
    asked = {"attack": attack.name, "seed": seed, "source": source, "short": attack.fixed}
    begin = max((line["end"] for line in read_tally(path, **asked)), default=0)
    for tally in run_cases(attack, seed, begin, count, seconds):
        if tally.end > tally.begin:
            with path.open("a") as file:
                file.write(json.dumps({**asked, **vars(tally)}) + "\n")
    return read_tally(path, **asked)


def print_tally(name: str, lines: list[dict[str, Any]]) -> bool:
    """How the cases of an attack ended; True if there were some, and nothing was found."""
    outcomes: Counter[str] = Counter()
    for line in lines:
        outcomes.update(line["outcomes"])
    ended = ", ".join(f"{count} {outcome}" for outcome, count in outcomes.most_common())
    print(f"{name}: {outcomes.total()} cases: {ended}", flush=True)
    findings = [finding for line in lines for finding in line["findings"]]
    for finding in findings[:10]:
        last = finding["detail"].strip().splitlines()[-1:] or [""]
        print(f"  case {finding['case']}, {finding['outcome']}: {last[0][:200]}")
    return not findings and outcomes.total() > 0


def run_again(attack: Attack, seed: int, number: int) -> int:
    """One case, in this process; its files stay."""
    os.chdir(tempfile.mkdtemp(prefix=f"soak-{attack.name}-"))
    print(f"in {os.getcwd()}", flush=True)
    attack.prepare()
    with attack.session():
        case = Case(attack.name, seed, number, lambda told: print(told, flush=True))
        print(attack.run(case))
    return 0


def main(arguments: list[str] | None = None) -> int:
    """Run the attacks asked for, one after the other, and tell."""
    parser = argparse.ArgumentParser(prog="soak", description=__doc__.splitlines()[0])
    parser.add_argument("attacks", nargs="*", metavar="ATTACK[=COUNT]", help=", ".join(ATTACKS))
    parser.add_argument("--minutes", type=float, default=600.0, help="for each attack, at most")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--tally", type=Path, default=ROOT / "soak.jsonl")
    parser.add_argument("--short", action="store_true", help="the cases of CI, the same every time")
    parser.add_argument("--case", type=int, help="run this case alone, and tell all")
    asked = parser.parse_args(arguments)
    chosen = dict(each.partition("=")[::2] for each in asked.attacks) or dict.fromkeys(ATTACKS, "")
    unknown = [name for name in chosen if name not in ATTACKS]
    if unknown:
        parser.error(f"{unknown[0]!r} is no attack; choose from {', '.join(ATTACKS)}.")
    well, source = True, source_digest()
    for name, count in chosen.items():
        attack = attack_of(name)
        attack.fixed = asked.short
        if attack.fixed and not attack.short:
            print(f"{name}: no case is the same every time", flush=True)
            continue
        if asked.case is not None:
            return run_again(attack, asked.seed, asked.case)
        many = int(count) if count else attack.short if attack.fixed else attack.count
        lines = soak(attack, many, asked.seed, 60 * asked.minutes, asked.tally.resolve(), source)
        well = print_tally(name, lines) and well
    return 0 if well else 1


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, end)
    sys.exit(main())
