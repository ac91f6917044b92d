"""Checkpoints of a run in memory: a run that was cut goes on, and ends in bitwise the same model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from asset_svm.data.fingerprint import Fingerprint
from asset_svm.families.one_map.drawn import DrawnMap
from asset_svm.storage.checkpoint import Checkpoint, SavedRun
from asset_svm.training.run import Snapshot


@dataclass(eq=False)
class Keeper:
    """Saves a run, and knows the one to go on with.

    Parameters
    ----------
    checkpoint : Checkpoint
    parameters : dict
        The plain values of all parameters.
    files : Fingerprint
        What the files of the rows were.
    resumed : SavedRun, optional
    """

    checkpoint: Checkpoint
    parameters: dict[str, Any]
    files: Fingerprint
    resumed: SavedRun | None

    @property
    def drawn(self) -> DrawnMap | None:
        """The map of the run to go on with."""
        return None if self.resumed is None else DrawnMap(self.resumed.phi, self.resumed.metric)

    @property
    def snapshot(self) -> Snapshot | None:
        """Where that run is."""
        saved = None if self.resumed is None else self.checkpoint.read_state()
        return None if saved is None else Snapshot(**saved)

    def begin(self, drawn: DrawnMap, seed: int, records: list[dict[str, Any]] | None) -> None:
        """Save what does not change in the course of a run."""
        self.checkpoint.write_run(
            SavedRun(
                "memory", self.parameters, None, drawn.phi, drawn.metric, seed, self.files, records
            )
        )

    def __call__(self, snapshot: Callable[[], Snapshot], *, stopped: bool) -> None:
        """Save where the run is, if it is time to."""
        if stopped or self.checkpoint.due:
            self.checkpoint.write_state(vars(snapshot()))
