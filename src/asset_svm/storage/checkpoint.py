"""Checkpoints of a run over a file: a folder with two files, each whole or absent.

    run.asset      written once: the parameters, the summary of the rows, the map, notes of the caller
    state.asset    written every so many seconds: the solver's whole state, and where in the file it is

``state.asset`` names the run it belongs to: one that is left over from another run does not count.
"""

from __future__ import annotations

import copy
import logging
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from asset_svm import clock
from asset_svm.data.fingerprint import Fingerprint
from asset_svm.data.scan import Summary
from asset_svm.exceptions import ModelFileError
from asset_svm.storage import container
from asset_svm.storage.atomic import check_writable, remove_left_over
from asset_svm.storage.encoding import Decoder, Encoder
from asset_svm.training.stream import OnlineSession

logger = logging.getLogger("asset_svm")


@dataclass(eq=False)
class SavedRun:
    """What does not change in the course of a run.

    Parameters
    ----------
    settings : dict
        Parameters of the estimator: a resumed run must have the same.
    summary : Summary
    phi : FeatureMap
    seed : int
    notes : dict
        Whatever the caller wants to find again.
    files : Fingerprint
        What the files of the rows were.
    """

    settings: dict[str, Any]
    summary: Summary
    phi: Any
    seed: int
    notes: dict[str, Any]
    files: Fingerprint
    name: str = ""


@dataclass(eq=False)
class SavedState:
    """Where a run is: its session, after ``windows`` windows of epoch ``epoch``."""

    session: OnlineSession
    epoch: int
    windows: int
    history: list[dict[str, Any]]
    seconds: float


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
        if "files" not in parts:
            raise ModelFileError(
                f"{self.run_path} is of an older asset-svm, which did not keep what the data were; "
                "remove the folder and begin the run again."
            )
        run = SavedRun(**parts)
        self._name, self.notes = run.name, run.notes
        return run

    def read_state(self, phi: Any) -> SavedState | None:
        """Where that run is, if it has got anywhere."""
        if not self.state_path.exists():
            return None
        header, tensors = container.read(self.state_path, "state")
        if header.pop("run") != self._name:
            return None
        state = SavedState(**Decoder(tensors, self.state_path)(header))
        state.session.phi = phi
        return state

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

    def write_state(self, state: SavedState) -> bool:
        """Save the state; a disk that is full is logged, and the last state stays. True if saved."""
        bare = copy.copy(state.session)
        bare.phi = None  # type: ignore[assignment]  # it is in the run's file
        encode = Encoder()
        header = {"run": self._name, **encode({**vars(state), "session": bare}, "state")}
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
