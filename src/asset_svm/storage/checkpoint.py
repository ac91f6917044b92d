"""Checkpoints of a run over a file: a folder with two files, each whole or absent.

    run.asset      written once: the parameters, the summary of the rows, the map, notes of the caller
    state.asset    written every so many seconds: the solver's whole state, and where in the file it is

``state.asset`` names the run it belongs to: one that is left over from another run does not count.
"""

from __future__ import annotations

import logging
import uuid
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from asset_svm import clock
from asset_svm.data.fingerprint import Fingerprint
from asset_svm.data.scan import Summary
from asset_svm.exceptions import ModelFileError
from asset_svm.features import Metric
from asset_svm.storage import container
from asset_svm.storage.atomic import check_writable, remove_left_over
from asset_svm.storage.encoding import Decoder, Encoder

logger = logging.getLogger("asset_svm")


@dataclass(eq=False)
class SavedRun:
    """What does not change in the course of a run.

    Parameters
    ----------
    kind : {"memory", "windows"}
        Whether the rows are held in memory or read a window at a time.
    settings : dict
        Parameters of the estimator: a resumed run must have the same.
    summary : Summary or None
        Of the rows; None where they are in memory, and are read again.
    phi : FeatureMap
    metric : Metric or None
    seed : int
    files : Fingerprint
        What the files of the rows were.
    component_search : list of dict or None
    notes : dict
        Whatever the caller wants to find again.
    """

    kind: str
    settings: dict[str, Any]
    summary: Summary | None
    phi: Any
    metric: Metric | None
    seed: int
    files: Fingerprint
    component_search: list[dict[str, Any]] | None = None
    notes: dict[str, Any] = field(default_factory=dict)
    name: str = ""

    def check(self, settings: dict[str, Any], files: Any) -> None:
        """Raise unless a run with these settings and files is this one."""
        advice = "resume with the same data and parameters"
        for name in sorted({*self.settings, *settings}):
            if self.settings.get(name) != settings.get(name):
                raise ValueError(
                    f"The checkpoint belongs to another run: {name} was {self.settings.get(name)!r} "
                    f"and is now {settings.get(name)!r}; {advice}."
                )
        if not self.files.fits(files):
            raise ValueError(f"The checkpoint belongs to another run: the data have changed; {advice}.")


class Checkpoint:
    """A folder that a run is saved to.

    Parameters
    ----------
    folder : path
        Made if it does not exist.
    every : float
        Seconds between two saves of the state.
    resume : bool
        Go on with the run that is saved there, if one is; without it, finding one is an error.
    notes : dict, optional
        Saved with the run.
    """

    def __init__(
        self,
        folder: str | Path,
        *,
        every: float = 60.0,
        resume: bool = False,
        notes: dict[str, Any] | None = None,
    ):
        self.folder, self.every, self.resume, self.notes = Path(folder), every, resume, notes or {}
        if self.folder.exists() and not self.folder.is_dir():
            raise ValueError(f"{self.folder} is a file, and a checkpoint is a folder; name another.")
        self.folder.mkdir(parents=True, exist_ok=True)
        self.run_path, self.state_path = self.folder / "run.asset", self.folder / "state.asset"
        check_writable(self.run_path)
        remove_left_over(self.state_path)
        if self.run_path.exists() and not resume:
            raise ValueError(
                f"{self.folder} holds the checkpoint of a run; go on with it (resume=True, --resume), "
                "name another folder, or remove it."
            )
        self._name = ""
        self._saved_at = clock.now()

    def read_run(self) -> SavedRun | None:
        """The run to go on with, if there is one."""
        if not self.run_path.exists():
            return None
        header, tensors = container.read(self.run_path, "run")
        parts = Decoder(tensors, self.run_path)(header)
        if "kind" not in parts:
            raise ModelFileError(
                f"{self.run_path} is of an older asset-svm, whose runs were kept in another way; "
                "remove the folder and begin the run again."
            )
        run = SavedRun(**parts)
        self._name, self.notes = run.name, run.notes
        return run

    def read_state(self) -> dict[str, Any] | None:
        """Where that run is, if it has got anywhere, by the names that ``write_state`` was given."""
        if not self.state_path.exists():
            return None
        header, tensors = container.read(self.state_path, "state")
        if header.pop("run") != self._name:
            return None
        found: dict[str, Any] = Decoder(tensors, self.state_path)(header)
        return found

    def write_run(self, run: SavedRun) -> None:
        """Begin a run."""
        self._name = run.name = uuid.uuid4().hex
        run.notes = self.notes
        encode = Encoder()
        container.write(self.run_path, "run", encode(vars(run), "run"), encode.tensors)

    @property
    def due(self) -> bool:
        """Whether the state should be saved now."""
        return clock.now() - self._saved_at >= self.every

    def write_state(self, state: dict[str, Any]) -> bool:
        """Save the state; a disk that is full is logged, and the last state stays. True if saved."""
        encode = Encoder()
        header = {"run": self._name, **encode(state, "state")}
        self._saved_at = clock.now()
        try:
            container.write(self.state_path, "state", header, encode.tensors)
        except OSError as error:
            logger.warning("The checkpoint in %s could not be written: %s", self.folder, error)
            return False
        return True

    def remove(self) -> None:
        """The run has ended and its model is safe."""
        for path in (self.state_path, self.run_path):
            path.unlink(missing_ok=True)
