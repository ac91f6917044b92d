"""What an experiment is: tasks to run once, and a section of the page made of their records.

A task is known by its key, experiment/solver/dataset/seed/digest of its settings. A record is a dict
with these, the result of the task, and the stamp of the machine it ran on.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

import datasets
from asset_svm.pages import Section

Record = dict[str, Any]
PAPER_SETS = ("adult", "mnist", "ccat", "ijcnn", "covtype")
"""The five moderate tasks of the paper, in its order."""
SHORT = {"CPNY": ("ccat",)}
"""Where cutting planes are a matter of seconds on all rows: what a quick run has of them there."""


@dataclass(frozen=True)
class Task:
    """One run; ``cost`` is a guess of its seconds, for the time that is left.

    ``limit``: CPU seconds after which it is stopped, where its solver can be.
    """

    experiment: str
    solver: str
    dataset: str
    seed: int
    settings: dict[str, Any]
    run: Callable[[], dict[str, Any]] = field(compare=False)
    cost: float = 1.0
    limit: float | None = None

    @property
    def key(self) -> str:
        """What tells it from all others."""
        text = json.dumps(self.settings, sort_keys=True)
        digest = hashlib.sha256(text.encode()).hexdigest()[:12]
        return f"{self.experiment}/{self.solver}/{self.dataset}/{self.seed}/{digest}"


@dataclass(frozen=True)
class Scale:
    """How much is run: ``quick`` or as in the paper; ``sets`` leaves data sets out.

    ``limit``: CPU seconds of one run of a peer that can be stopped.
    """

    quick: bool
    repeats: int
    limit: float
    sets: tuple[str, ...] | None = None

    def seeds(self, dataset: str) -> range:
        """The repeats on this set; COVTYPE, as long as all others together, has one in a quick run."""
        return range(1 if self.quick and dataset == "covtype" else self.repeats)

    def chosen(self, names: Iterable[str]) -> list[str]:
        """Those of these sets that are run."""
        return [name for name in names if self.sets is None or name in self.sets]


QUICK = Scale(quick=True, repeats=3, limit=30.0)
FULL = Scale(quick=False, repeats=50, limit=3600.0)


class Experiment(Protocol):
    """One of the paper's tables, figures or claims."""

    name: str

    def tasks(self, scale: Scale) -> list[Task]:
        """All its runs, those on the same rows together."""

    def section(self, records: Sequence[Record]) -> Section:
        """What they say, beside the paper's numbers."""


def titled(dataset: str) -> str:
    """The name of a set, and, where its rows are not the paper's, in a few words why."""
    entry = datasets.SETS[dataset]
    return f"{entry.title} ({entry.note.partition(':')[0]})" if entry.note else entry.title


def its_rows(dataset: str) -> str:
    """What to say beside a number of the paper's that is of other rows than ours."""
    return "on its own rows" if datasets.SETS[dataset].note else ""


def select(records: Iterable[Record], experiment: str = "", **wanted: Any) -> list[Record]:
    """The records of an experiment whose fields, or settings, have these values, of runs that ended."""
    return [r for r in _select(records, experiment, wanted) if "stopped" not in r["result"]]


def select_stopped(records: Iterable[Record], experiment: str = "", **wanted: Any) -> list[Record]:
    """Those of runs that were stopped at their limit, ``result["stopped"]`` CPU seconds."""
    return [r for r in _select(records, experiment, wanted) if "stopped" in r["result"]]


def _select(records: Iterable[Record], experiment: str, wanted: dict[str, Any]) -> list[Record]:
    return [
        record
        for record in records
        if experiment in ("", record["experiment"])
        and all(record.get(k, record["settings"].get(k)) == v for k, v in wanted.items())
    ]


def values(records: Iterable[Record], name: str) -> np.ndarray:
    """One number of each result."""
    return np.array([r["result"][name] for r in records if r["result"].get(name) is not None], float)


def mean_and_error(numbers: np.ndarray) -> tuple[float, float]:
    """Mean and its standard error; the error of a single number is NaN."""
    if len(numbers) == 0:
        return np.nan, np.nan
    error = numbers.std(ddof=1) / np.sqrt(len(numbers)) if len(numbers) > 1 else np.nan
    return float(numbers.mean()), float(error)


def shown(numbers: np.ndarray, digits: int = 2, unit: str = "") -> str:
    """The mean with its standard error as text; "" for no number."""
    mean, error = mean_and_error(numbers)
    if np.isnan(mean):
        return ""
    spread = "" if np.isnan(error) else f" ± {error:.{digits}f}"
    return f"{mean:.{digits}f}{spread}{unit}"


def seconds_shown(numbers: np.ndarray) -> str:
    """Mean and standard deviation of times, with as many digits as they deserve."""
    if len(numbers) == 0:
        return ""
    mean = float(numbers.mean())
    digits = 0 if mean >= 100 else 1 if mean >= 10 else 2
    spread = f" ± {numbers.std(ddof=1):.{digits}f}" if len(numbers) > 1 else ""
    return f"{mean:.{digits}f}{spread} s"
