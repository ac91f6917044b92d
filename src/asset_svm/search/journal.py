"""The journal of a search: what it has found, kept on the disk, and told to the search that goes on.

A race is a function of what its looks find, and of its budget. So a look that the journal knows is not
made again: its rows are, which candidates after it find there, but no model; and the budget is set to
what it was after it, work that is counted and readings of the clock. Without a time limit a race that
was killed, and goes on, is so bit for bit the race that was not. Of a grid the scores of the models of
a gamma are kept, which train together.

A limit counts the seconds of all processes, but for those between the last save and a kill. It may be
another than it was: looks are gone through with the limit that they were made with. A search that is
asked to stop goes through them first: their models are there, and the best of them may be the last.
"""

from __future__ import annotations

import logging
import re
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from asset_svm import clock
from asset_svm.data.fingerprint import Fingerprint
from asset_svm.data.scan import Scanned
from asset_svm.estimators.files import plain_parameters
from asset_svm.search.lines import Found
from asset_svm.settings.checks import is_integer
from asset_svm.storage.checkpoint import Checkpoint, SavedRun
from asset_svm.storage.searches import Piece, SavedLine, SavedLook
from asset_svm.version import __version__

logger = logging.getLogger("asset_svm")
FREE = ("time_limit", "n_jobs")
"""Parameters that a search which goes on may have other values of."""
ADDRESS = re.compile(r" at 0x[0-9A-Fa-f]+")
"""Of an object in memory, in what it is told as."""


@dataclass(eq=False)
class Journal:
    """What a search has found.

    Parameters
    ----------
    checkpoint : Checkpoint
        Where it is saved.
    seed : int
        What all draws of the search come from.
    time_limit : float or None
        That of the search from here on.
    pieces : list of Piece
        What is there of a search to go on with.
    """

    checkpoint: Checkpoint
    seed: int
    time_limit: float | None = None
    pieces: list[Piece] = field(default_factory=list)
    settle: Callable[[float | None], None] | None = None
    """Called with a time limit that holds from now on, when it was another until now."""
    begun: float = 0.0
    """The moment of ``clock.now`` from which on this search, and those that it goes on with, count."""

    def __post_init__(self) -> None:
        self.saved = sum(map(len, self.pieces))
        self.looks = deque(look for piece in self.pieces for look in piece.looks)
        self._limits = deque(piece.time_limit for piece in self.pieces for _ in piece.looks)
        self.lines = {
            (line.round_number, line.gamma, line.epsilon): line
            for piece in self.pieces
            for line in piece.lines
            if line.in_time or piece.time_limit == self.time_limit  # others were cut by another limit
        }
        self.elapsed = self.pieces[-1].elapsed if self.pieces else 0.0
        self.reading = self.pieces[0].reading if self.pieces else None
        self.told, self.noted = deque[float](), list[float]()
        self.new_looks, self.new_lines = list[SavedLook](), list[SavedLine]()
        self._next()

    @classmethod
    def of(
        cls,
        search: Any,
        checkpoint: Checkpoint,
        scanned: Scanned,
        resumed: SavedRun | None,
        *,
        seed: int,
        races: bool,
    ) -> Journal:
        """The journal of a search over these rows; ``resumed`` is the one to go on with, if any.

        ``seed`` is what stands for its ``random_state``, where there is none.
        """
        given = search.get_params(deep=False)
        if given["keep_path"]:
            raise ValueError(
                "keep_path=True does not go with a checkpoint: coefficients of candidates are not "
                "saved there; leave one of them out."
            )
        identity = _identity(search, scanned)
        limit = given["time_limit"]
        if resumed is not None:
            resumed.check_kind(search=True)
            before = resumed.settings
            others = identity | {name: before[name] for name in FREE if name in before}
            resumed.check(others, scanned.source.files, search=True)
            if races and (limit is None) != (before["time_limit"] is None):
                raise ValueError(
                    f"The checkpoint belongs to another run: time_limit was {before['time_limit']} "
                    f"and is now {limit}; a race without a limit counts work, and one with a limit "
                    "seconds, so that neither goes on with the other: resume with "
                    + ("none." if limit is not None else "any limit.")
                )
            return cls(checkpoint, resumed.seed, limit, checkpoint.read_found())
        files = scanned.files or Fingerprint.of(scanned.source.files)
        checkpoint.write_run(SavedRun("search", identity, None, None, None, seed, files))
        return cls(checkpoint, seed, limit)

    def begin(self) -> float:
        """The moment at which the search has begun, had it not been cut."""
        self.begun = clock.now() - self.elapsed
        return self.begun

    def read_in(self, seconds: float | None) -> float | None:
        """What reading all rows once takes: what it took when the search began."""
        self.reading = self.reading if self.pieces else seconds
        return self.reading

    @property
    def limit(self) -> float | None:
        """The time limit that holds now: that of the next look, where it was made before."""
        return self._limits[0] if self._limits else self.time_limit

    # Looks --------------------------------------------------------------------------------------

    def clocked(self, seconds: float) -> float:
        """A reading of the clock, or what it was when this look was made before."""
        if self.looks and self.told:
            return self.told.popleft()
        self.noted.append(seconds)
        return seconds

    def look(self, asked: str) -> SavedLook | None:
        """What the next look has found, where it was made before."""
        if not self.looks:
            return None
        found = self.looks.popleft()
        if found.asked != asked:
            raise ValueError(
                f"The checkpoint in {self.checkpoint.folder} belongs to another search: a look in it "
                f"was at {found.asked}, and would now be at {asked}; remove the folder, and begin anew."
            )
        self.noted.clear()
        limit = self._limits.popleft()
        if self.settle is not None and self.limit != limit:
            self.settle(self.limit)
        self._next()
        return found

    def _next(self) -> None:
        """Have the readings of the clock before the next look at hand."""
        self.told = deque(self.looks[0].readings.tolist() if self.looks else ())

    def readings(self) -> Any:
        """Those since the last look, as they are saved with the next one."""
        found, self.noted = np.array(self.noted, dtype=np.float64), []
        return found

    def keep(self, look: SavedLook) -> None:
        """Keep what a look has found; save it, if it is time to."""
        self.new_looks.append(look)
        if self.checkpoint.due:
            self.save()

    # Lines --------------------------------------------------------------------------------------

    def known(self, round_number: int, gamma: float, n_epsilons: int) -> list[Found] | None:
        """The lines of a gamma in a round of a grid, where all of them were found before."""
        keys = [(round_number, gamma, number) for number in range(n_epsilons)]
        if not all(key in self.lines for key in keys):
            return None
        lines = [self.lines[key] for key in keys]
        return [Found(one.scores, one.fit_seconds, one.score_seconds, one.in_time) for one in lines]

    def keep_line(
        self, round_number: int, gamma: float, epsilon: int, n_rows: int, found: Found
    ) -> None:
        """Keep what was found of a gamma and an epsilon; save it, if it is time to."""
        told = found.scores, found.fit_seconds, found.score_seconds, found.in_time
        self.new_lines.append(SavedLine(round_number, n_rows, gamma, epsilon, *told))
        if self.checkpoint.due:
            self.save()

    # The disk -----------------------------------------------------------------------------------

    def save(self) -> None:
        """Save what is new; where the disk is full, it is tried again with what comes next."""
        elapsed = clock.now() - self.begun
        new = Piece(self.saved, elapsed, self.reading, self.time_limit, self.new_looks, self.new_lines)
        if len(new) and self.checkpoint.write_found(new):
            self.saved += len(new)
            self.new_looks, self.new_lines = [], []


def _identity(search: Any, scanned: Scanned) -> dict[str, Any]:
    """What a search must have in common with the one that it goes on with."""
    given = search.get_params(deep=False)
    known, cv = plain_parameters(search), given["cv"]
    known["random_state"] = _kind_of_seed(given["random_state"])
    if callable(given.get("scoring")):
        known["scoring"] = _name(given["scoring"])
    if getattr(cv, "shuffle", True) and not is_integer(getattr(cv, "random_state", 0)):
        raise ValueError(
            f"cv={cv!r} draws other folds in every process, and a checkpoint is for several; "
            "give it a random_state."
        )
    for name, value in known.items():
        if isinstance(value, str) and (ADDRESS.search(value) or "<lambda>" in value):
            raise ValueError(
                f"{name}={value} has no name by which a search that goes on would know it again, as a "
                "checkpoint needs; give a function that has a name, or leave the checkpoint out."
            )
    sample = scanned.summary.sample if scanned.held is None else scanned.held
    return {
        **known,
        "search": type(search).__name__,
        "dtype": str(getattr(sample.X, "dtype", "columns")),
        "version": ".".join(__version__.split(".")[:2]),  # looks of another may be others
    }


def _kind_of_seed(random_state: Any) -> Any:
    """What is told of a ``random_state``, which the saved seed stands for where it is no integer."""
    if random_state is None:
        return None
    return int(random_state) if is_integer(random_state) else type(random_state).__name__


def _name(value: Any) -> str:
    """What is told of a score that is called: of a function its name, as it is imported."""
    name = getattr(value, "__qualname__", None)
    return repr(value) if name is None else f"{value.__module__}.{name}"
