"""The journal of a search: what it has found, kept on the disk, and told to the search that goes on.

A race is a function of what its looks find, and of its budget. So a look that the journal knows is not
made again: its rows are, which candidates after it find there, but no model; and the budget is set to
what it was after it, work that is counted and readings of the clock. Without a time limit a race that
was killed, and goes on, is so bit for bit the race that was not. Of a grid the scores of the models of
a gamma are kept, which train together.

A limit counts the seconds of all processes, but for those between the last save and a kill.
"""

from __future__ import annotations

import logging
from collections import deque
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from asset_svm import clock
from asset_svm.data.fingerprint import Fingerprint
from asset_svm.data.scan import Scanned
from asset_svm.estimators.files import plain_parameters
from asset_svm.search.lines import Found
from asset_svm.storage.checkpoint import Checkpoint, SavedRun
from asset_svm.storage.searches import Piece, SavedLine, SavedLook
from asset_svm.version import __version__

logger = logging.getLogger("asset_svm")


@dataclass(eq=False)
class Journal:
    """What a search has found.

    Parameters
    ----------
    checkpoint : Checkpoint
        Where it is saved.
    pieces : list of Piece
        What is there of a search to go on with.
    """

    checkpoint: Checkpoint
    pieces: list[Piece] = field(default_factory=list)
    begun: float = 0.0
    """The moment of ``clock.now`` from which on this search, and those that it goes on with, count."""

    def __post_init__(self) -> None:
        self.saved = sum(map(len, self.pieces))
        self.looks = deque(look for piece in self.pieces for look in piece.looks)
        self.lines = {
            (line.round_number, line.gamma, line.epsilon): line
            for piece in self.pieces
            for line in piece.lines
        }
        self.elapsed = self.pieces[-1].elapsed if self.pieces else 0.0
        self.reading = self.pieces[0].reading if self.pieces else None
        self.told, self.noted = deque[float](), list[float]()
        self.new_looks, self.new_lines = list[SavedLook](), list[SavedLine]()
        self._next()

    @classmethod
    def of(
        cls, search: Any, checkpoint: Checkpoint, scanned: Scanned, resumed: SavedRun | None
    ) -> Journal:
        """The journal of a search over these rows; ``resumed`` is the one to go on with, if any."""
        if search.get_params(deep=False)["keep_path"]:
            raise ValueError(
                "keep_path=True does not go with a checkpoint: coefficients of candidates are not "
                "saved there; leave one of them out."
            )
        identity = _identity(search, scanned)
        if resumed is not None:
            resumed.check(identity, scanned.source.files, search=True)
            return cls(checkpoint, checkpoint.read_found())
        files = scanned.files or Fingerprint.of(scanned.source.files)
        checkpoint.write_run(SavedRun("search", identity, None, None, None, 0, files))
        return cls(checkpoint)

    def begin(self) -> float:
        """The moment at which the search has begun, had it not been cut."""
        self.begun = clock.now() - self.elapsed
        return self.begun

    def read_in(self, seconds: float | None) -> float | None:
        """What reading all rows once takes: what it took when the search began."""
        self.reading = self.reading if self.pieces else seconds
        return self.reading

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
        new = Piece(self.saved, elapsed, self.reading, self.new_looks, self.new_lines)
        if len(new) and self.checkpoint.write_found(new):
            self.saved += len(new)
            self.new_looks, self.new_lines = [], []


def _identity(search: Any, scanned: Scanned) -> dict[str, Any]:
    """What a search must have in common with the one that it goes on with."""
    sample = scanned.summary.sample if scanned.held is None else scanned.held
    return {
        **plain_parameters(search),
        "search": type(search).__name__,
        "dtype": str(getattr(sample.X, "dtype", "columns")),
        "version": ".".join(__version__.split(".")[:2]),  # looks of another may be others
    }
