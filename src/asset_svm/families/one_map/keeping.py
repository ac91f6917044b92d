"""Checkpoints of a run: one that was cut goes on, and ends in bitwise the same model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from asset_svm.data.fingerprint import Fingerprint
from asset_svm.data.scan import Summary
from asset_svm.families.one_map.drawn import DrawnMap
from asset_svm.features.relevance import Learnt
from asset_svm.storage.cells import SolvedCell
from asset_svm.storage.checkpoint import Checkpoint, SavedRun


@dataclass(eq=False)
class Keeper:
    """Saves a run, and knows the one to go on with.

    Parameters
    ----------
    parameters : dict
        The plain values of all parameters.
    files : Fingerprint
        What the files of the rows were.
    resumed : SavedRun, optional
        The run to go on with.
    summary : Summary, optional
        What is known of rows that are read a window at a time.
    learnt : Learnt, optional
        The relevance of the columns of a run that begins, where it was learnt.
    """

    checkpoint: Checkpoint
    parameters: dict[str, Any]
    files: Fingerprint
    resumed: SavedRun | None
    summary: Summary | None = None
    learnt: Learnt | None = None
    unsaved: list[SolvedCell] = field(default_factory=list, init=False)

    @property
    def drawn(self) -> DrawnMap | None:
        """The map of the run to go on with."""
        if self.resumed is None or self.resumed.phi is None:
            return None
        return DrawnMap(self.resumed.phi, self.resumed.metric)

    def state(self) -> dict[str, Any] | None:
        """Where that run was, by the names of what was saved; None where it had got nowhere."""
        return None if self.resumed is None else self.checkpoint.read_state()

    def begin(self, drawn: DrawnMap, seed: int, records: list[dict[str, Any]] | None = None) -> None:
        """Save what does not change in the course of a run."""
        kind = "memory" if self.summary is None else "windows"
        parts = self.summary, drawn.phi, drawn.metric, seed, self.files, records, self.learnt
        self.checkpoint.write_run(SavedRun(kind, self.parameters, *parts))

    def begin_cells(self, seed: int) -> None:
        """Save what does not change in the course of a run of cells."""
        parts = self.summary, None, None, seed, self.files, None, self.learnt
        self.checkpoint.write_run(SavedRun("cells", self.parameters, *parts))

    def cells(self) -> list[SolvedCell]:
        """The cells that the run to go on with has solved."""
        return [] if self.resumed is None else self.checkpoint.read_cells()

    def add_cells(self, cells: list[SolvedCell], *, now: bool) -> None:
        """Save cells that are solved, ``now`` or when it is time to."""
        self.unsaved += cells
        due = self.unsaved and (now or self.checkpoint.due)
        if due and self.checkpoint.write_cells(self.unsaved):
            self.unsaved = []

    def __call__(self, snapshot: Callable[[], Any], *, stopped: bool) -> None:
        """Save where the run is, if it is time to; ``snapshot`` makes an object that says it."""
        if stopped or self.checkpoint.due:
            self.checkpoint.write_state(vars(snapshot()))
