"""Checkpoints of a run over a file: a folder with a few files, each whole or absent.

    run.asset      written once: the parameters, the summary of the rows, the map, notes of the caller
    state.asset    written every so many seconds: the solver's whole state, and where in the file it is
    cells-N.asset  instead of it, of a run of cells: those that were solved since the file before
    found-N.asset  instead of it, of a search: the looks, or lines of a grid, since the file before

All of them name the run they belong to: what is left over from another run does not count.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from asset_svm import clock
from asset_svm.data.fingerprint import Fingerprint
from asset_svm.data.scan import Summary, TargetSummary
from asset_svm.data.several_targets import SeveralTargets
from asset_svm.data.source import Block
from asset_svm.exceptions import ModelFileError
from asset_svm.features import FeatureMap, Metric
from asset_svm.features.relevance import Learnt
from asset_svm.storage import container
from asset_svm.storage.atomic import check_writable, remove_left_over
from asset_svm.storage.cells import SolvedCell, solved_cell
from asset_svm.storage.fields import Fields, Writing, told
from asset_svm.storage.maps import feature_map, learnt, metric
from asset_svm.storage.searches import Piece, piece
from asset_svm.storage.session import session, snapshot
from asset_svm.storage.writing import Writer

logger = logging.getLogger("asset_svm")
WITHOUT_MAP = ("cells", "search")
KINDS = ("memory", "windows", *WITHOUT_MAP)
"""Of runs."""


@dataclass(eq=False)
class SavedRun:
    """What does not change in the course of a run.

    Parameters
    ----------
    kind : {"memory", "windows", "cells", "search"}
        Whether the rows are held in memory, read a window at a time, or sorted into cells; or are
        searched.
    settings : dict
        Parameters of the estimator: a resumed run must have the same.
    summary : Summary or None
        Of the rows; None where they are in memory, or searched, and are read again.
    phi : FeatureMap or None
        None where cells are solved without one, and of a search.
    metric : Metric or None
    seed : int
    files : Fingerprint
        What the files of the rows were.
    component_search : list of dict or None
    learnt : Learnt or None
        The relevance of the columns, whose rows the map is of.
    notes : dict
        Whatever the caller wants to find again.
    """

    kind: str
    settings: dict[str, Any]
    summary: Summary | None
    phi: FeatureMap | None
    metric: Metric | None
    seed: int
    files: Fingerprint
    component_search: list[dict[str, Any]] | None = None
    learnt: Learnt | None = None
    notes: dict[str, Any] = field(default_factory=dict)
    name: str = ""

    def check_kind(self, *, search: bool) -> None:
        """Raise unless this is a search, or a training, as the run that goes on with it."""
        kinds = ("training", "search")
        if (self.kind == "search") != search:
            raise ValueError(
                f"The checkpoint belongs to another run: it is of a {kinds[not search]}, and this is a "
                f"{kinds[search]}; name another folder."
            )

    def check(self, settings: dict[str, Any], files: Iterable[Path], *, search: bool = False) -> None:
        """Raise unless a run with these settings and files is this one."""
        self.check_kind(search=search)
        advice = "resume with the same data and parameters"
        for name in sorted({*self.settings, *settings}):
            if self.settings.get(name) != settings.get(name):
                raise ValueError(
                    f"The checkpoint belongs to another run: {name} was {self.settings.get(name)!r} "
                    f"and is now {settings.get(name)!r}; {advice}."
                )
        if not self.files.fits(files):
            raise ValueError(f"The checkpoint belongs to another run: the data have changed; {advice}.")


def _run(f: Fields) -> SavedRun:
    kind, settings = f.text("kind", KINDS), f.mapping("settings")
    summary = f.maybe(f.record, "summary", _summary)
    found, n = None, None if summary is None else summary.n_features
    if f.has("learnt"):
        found = f.maybe(f.record, "learnt", learnt, n)
    n = n if found is None else found.width
    phi = None if kind in WITHOUT_MAP else f.record("phi", feature_map, n)
    return SavedRun(
        kind,
        settings,
        summary,
        phi,
        None if phi is None else f.maybe(f.record, "metric", metric, phi.dimension),
        f.integer("seed"),
        f.record("files", _fingerprint),
        f.maybe(f.each, "component_search", "mapping"),
        found,
        f.value("notes"),
        f.text("name"),
    )


def _summary(f: Fields) -> Summary:
    n_rows, n_features, n_bytes = (f.integer(each) for each in ("n_rows", "n_features", "n_bytes"))
    targets, sample = f.record("targets", _targets), f.record("sample", _block, n_features)
    spread = f.maybe(f.record, "spread", _block, n_features) if f.has("spread") else None
    return Summary(n_rows, n_features, n_bytes, targets, sample, spread=spread)


def _targets(f: Fields) -> TargetSummary | SeveralTargets:
    if f.has("parts"):
        return SeveralTargets(f.each("parts", "record", _targets))
    kind, counts = f.text("kind", ("", "numbers", "names")), f.value("counts")
    low, high = (f.number(each, finite=False) for each in ("low", "high"))
    return TargetSummary(kind, counts, low, high, f.flag("whole"))


def _block(f: Fields, n: int) -> Block:
    X = f.rows("X", n)
    return Block(X, f.maybe(f.targets, "y", X.shape[0]))


def _fingerprint(f: Fields) -> Fingerprint:
    sizes, times = (tuple(f.each(name, "integer")) for name in ("sizes", "times"))
    return Fingerprint(sizes, times, f.text("digest"))


def _windows(f: Fields, phi: FeatureMap) -> dict[str, Any]:
    """Where a run over windows is."""
    return {
        "session": f.record("session", session, phi),
        "epoch": f.integer("epoch"),
        "windows": f.integer("windows"),
        "history": f.each("history", "mapping"),
        "seconds": f.number("seconds"),
    }


def _cells(f: Fields, n: int) -> list[SolvedCell]:
    """Cells with rows of n columns."""
    return f.each("cells", "record", solved_cell, n)


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
        self._is_made = not self.folder.exists()
        self.folder.mkdir(parents=True, exist_ok=True)
        self.run_path, self.state_path = self.folder / "run.asset", self.folder / "state.asset"
        check_writable(self.run_path)
        for path in (self.state_path, self._next("cells"), self._next("found")):
            remove_left_over(path)
        if self.run_path.exists() and not resume:
            raise ValueError(
                f"{self.folder} holds the checkpoint of a run; go on with it (resume=True, --resume), "
                "name another folder, or remove it."
            )
        self._run: SavedRun | None = None
        self._saved_at = clock.now()

    def read_run(self) -> SavedRun | None:
        """The run to go on with, if there is one."""
        if not self.run_path.exists():
            return None
        header = self._read(self.run_path, "run")
        with told(self.run_path, "run"):
            self._run = _run(header)
        self.notes = self._run.notes
        return self._run

    def read_state(self) -> dict[str, Any] | None:
        """Where that run is, if it has got anywhere, by the names that ``write_state`` was given."""
        if not self.state_path.exists() or self._run is None:
            return None
        header = self._read(self.state_path, "state")
        with told(self.state_path, "state"):
            if header.text("run") != self._run.name:
                return None
            return header.record("state", *self._form(self._run))

    def _form(self, run: SavedRun) -> tuple[Callable[..., dict[str, Any]], Any]:
        """The record of where a run is, and what it must fit."""
        assert run.phi is not None
        return (snapshot, run.phi.dimension) if run.kind == "memory" else (_windows, run.phi)

    def _read(self, path: Path, kind: str) -> Fields:
        version, header, tensors = container.read_any(path, kind)
        if version < container.VERSIONS[kind]:
            raise ModelFileError(
                f"{path} is of an older asset-svm, whose runs were kept in another way; "
                "remove the folder and begin the run again."
            )
        return Fields(header, tensors, path, what=kind)

    def write_run(self, run: SavedRun) -> None:
        """Save a run that begins."""
        run.name, run.notes, self._run = uuid.uuid4().hex, self.notes, run
        for path in self._pieces():
            path.unlink()
        write = Writer()
        container.write(self.run_path, "run", Writing.of(write, _run, "run", run), write.tensors)

    @property
    def due(self) -> bool:
        """Whether the state should be saved now."""
        return clock.now() - self._saved_at >= self.every

    def write_state(self, state: dict[str, Any]) -> bool:
        """Save the state; a disk that is full is logged, and the last state stays. True if saved."""
        assert self._run is not None
        write, (form, fitting) = Writer(), self._form(self._run)
        state = Writing.of(write, form, "state", state, fitting)
        return self._saved(self.state_path, "state", {"run": self._run.name, "state": state}, write)

    def _saved(self, path: Path, kind: str, header: dict[str, Any], write: Writer) -> bool:
        """Write a file, if there is room for it."""
        self._saved_at = clock.now()
        try:
            container.write(path, kind, header, write.tensors)
        except OSError as error:
            logger.warning("The checkpoint in %s could not be written: %s", self.folder, error)
            return False
        return True

    def write_cells(self, cells: list[SolvedCell]) -> bool:
        """Save cells beside those that are saved; a disk that is full is logged. True if saved."""
        assert self._run is not None
        write = Writer()
        one = Writing.of(write, _cells, "cells", {"cells": cells}, self._width)
        return self._saved(self._next("cells"), "cells", {"run": self._run.name, **one}, write)

    def read_cells(self) -> list[SolvedCell]:
        """All cells of the run to go on with that are saved."""
        found: list[SolvedCell] = []
        for path in self._files("cells"):
            header = self._read(path, "cells")
            with told(path, "list of solved cells"):
                if self._run is not None and header.text("run") == self._run.name:
                    found += _cells(header, self._width)
        return found

    def write_found(self, found: Piece) -> bool:
        """Save what a search has found since; a disk that is full is logged. True if saved."""
        assert self._run is not None
        write = Writer()
        one = Writing.of(write, piece, "found", found)
        return self._saved(self._next("found"), "found", {"run": self._run.name, **one}, write)

    def read_found(self) -> list[Piece]:
        """All that is saved of the search to go on with, in order."""
        found: list[Piece] = []
        for path in self._files("found"):
            header = self._read(path, "found")
            with told(path, "record of a search"):
                if self._run is None or header.text("run") != self._run.name:
                    continue
                own, known = piece(header), sum(map(len, found))
                if own.begin != known:
                    raise ModelFileError(
                        f"{path} goes on after {own.begin} looks of the search, and {known} are in the "
                        "files before it: one is missing; put it back, or remove the folder and begin "
                        "the search again."
                    )
                found.append(own)
        return found

    def _files(self, kind: str) -> list[Path]:
        return sorted(self.folder.glob(f"{kind}-*.asset"))

    def _next(self, kind: str) -> Path:
        return self.folder / f"{kind}-{len(self._files(kind)):06}.asset"

    def _pieces(self) -> list[Path]:
        return [*self._files("cells"), *self._files("found")]

    @property
    def _width(self) -> int:
        """The columns of rows as cells have them."""
        assert self._run is not None and self._run.summary is not None
        found = self._run.learnt
        return self._run.summary.n_features if found is None else found.width

    def abandon(self) -> None:
        """Remove the folder that was made for a run that cannot begin, where nothing is in it."""
        if self._is_made:
            with suppress(OSError):
                self.folder.rmdir()

    def remove(self) -> None:
        """Remove the files of a run that has ended, and whose model is safe.

        The run itself goes first: where that is cut short, what is left belongs to none.
        """
        for path in (self.run_path, self.state_path, *self._pieces()):
            path.unlink(missing_ok=True)
