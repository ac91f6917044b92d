"""A streamed fit: epochs of windows, whatever the length of the file.

The map, lam, the metric and the steps come from the sample of a pass before it (``data.scan``); then
there are epochs of windows, each shuffled, with steps that decay to 0 over all of them. In memory are
the sample, two windows and a block of mapped rows. What is done in a window is a function of the seed,
the epoch and the window's number: a run that was cut and resumed from its checkpoint ends in bitwise
the same model.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.exceptions import ConvergenceWarning

from asset_svm import clock
from asset_svm.backends.cpu import CpuBackend
from asset_svm.data.ahead import ahead
from asset_svm.data.fingerprint import Fingerprint
from asset_svm.data.scan import Scanned
from asset_svm.data.source import Block
from asset_svm.exceptions import DataError, warn_caller
from asset_svm.families.base import Trained
from asset_svm.families.decision import Decision, decision_of
from asset_svm.families.epochs import Epochs
from asset_svm.families.labels import labelled
from asset_svm.families.observing import Observer
from asset_svm.families.one_map.fitted import FittedMap, session_of
from asset_svm.families.one_map.maps import draw_map, warn_of_few_landmarks
from asset_svm.families.one_map.mixing import SORTED, Mixing
from asset_svm.families.probe import progressive_error
from asset_svm.families.rows import Rows
from asset_svm.settings import Settings
from asset_svm.solvers import SolverState
from asset_svm.storage.checkpoint import Checkpoint, SavedRun
from asset_svm.tasks import Encoded, Task
from asset_svm.training.solution import Solution
from asset_svm.training.stream import OnlineSession

Array = npt.NDArray[Any]
WINDOW_ROWS = 65_536
WINDOW_BYTES = 32 << 20
"""A window has at most so many rows and takes about so much memory."""
STREAM_EPOCHS = Epochs(least=3, steps=100_000)
MOST_RECORDS = 200
"""Of the history."""


@dataclass(eq=False)
class WindowState:
    """Where a run is: its session, after ``windows`` windows of epoch ``epoch``."""

    session: OnlineSession
    epoch: int
    windows: int
    history: list[dict[str, Any]]
    seconds: float


@dataclass(eq=False)
class WindowFit:
    """One streamed fit.

    Parameters
    ----------
    settings : Settings
    task : Task
        Not settled yet: a sample of the rows does that.
    parameters : dict
        The plain values of all parameters: a resumed run must have the same.
    scanned : Scanned
    checkpoint : Checkpoint, optional
        Where the run's state is saved.
    resumed : SavedRun, optional
        The run to go on with.
    observer : Observer
        Its ``watch`` is called with a record after every window; True asks to stop.
    """

    settings: Settings
    task: Task
    parameters: dict[str, Any]
    scanned: Scanned
    checkpoint: Checkpoint | None
    resumed: SavedRun | None
    observer: Observer

    def run(self) -> Trained:
        """Run all epochs, or go on with them; the rows are a sample."""
        self.begun = clock.now()
        self.deadline = self.settings.deadline(self.begun)
        self.backend = self.settings.host()
        self._prepare()
        self._learn_all()
        fitted = self._finish()
        ones = np.ones(len(self.sample))
        y = np.asarray(self.sample.y)
        return Trained(fitted, Rows(self.sample.X, y, ones, ones, np.arange(len(y))))

    def warn(self, trained: Trained) -> None:
        """Warn of rows that are sorted, and of landmarks that are fewer than asked for."""
        ratio, landmarks = self.mixing.ratio, trained.fitted.landmarks
        if ratio > SORTED:
            warn_caller(
                f"The rows of {self.scanned.source.name} come sorted by their targets: windows of "
                f"{self.window} rows, which are shuffled only within, explain {ratio:.0%} of "
                "their variance, and the model has seen them one after the other; shuffle the rows of "
                "the file, or raise memory_limit (--memory).",
                ConvergenceWarning,
            )
        if self.settings.is_nystroem and landmarks is not None:
            warn_of_few_landmarks(self.settings.map, landmarks.shape[0])

    # Set-up -------------------------------------------------------------------------------------

    def _prepare(self) -> None:
        settings, summary = self.settings, self.scanned.summary
        m = summary.n_rows
        limit = WINDOW_BYTES if settings.memory_limit is None else settings.memory_limit // 8
        self.window = summary.window_rows(min(limit, WINDOW_BYTES), WINDOW_ROWS)
        self.epochs = STREAM_EPOCHS.over(m, settings.max_iter)
        self.total = m * self.epochs
        state = None
        if self.resumed is not None:
            self.resumed.check(self._identity(), self.scanned.source.files)
            self.seed = self.resumed.seed
            assert self.checkpoint is not None
            saved = self.checkpoint.read_state()
            if saved is not None:
                saved["session"].phi = self.resumed.phi
                state = WindowState(**saved)
        else:
            self.seed = settings.draw_seed()
        self.sample = labelled(summary.sample, summary, numeric=self.task.numeric)
        self._settle()
        self.encoded, self.weight = self._encode(self.sample)
        if self.resumed is not None:
            phi = self.resumed.phi
        else:
            phi = draw_map(settings, self.backend, self.sample.X, None, self.seed)
            if self.checkpoint is not None:
                run = SavedRun(
                    "windows", self._identity(), summary, phi, None, self.seed, self._files()
                )
                self.checkpoint.write_run(run)
        if state is None:
            state = WindowState(self._new_session(phi), 0, 0, [], 0.0)
        self.state, self.phi = state, phi
        self.begun -= state.seconds

    def _settle(self) -> None:
        """The task of all rows, by what the summary says of them."""
        y, targets = np.asarray(self.sample.y), self.scanned.summary.targets
        task = self.task if targets.classes is None else self.task.with_classes(targets.classes)
        self.task = task.settled(y, np.ones(len(y)))
        self.factors = None if task.numeric else self.task.factors(np.asarray(targets.class_counts))

    def _identity(self) -> dict[str, Any]:
        """What a resumed run must have in common with the one it goes on with."""
        return {**self.parameters, "dtype": str(self.scanned.summary.sample.X.dtype)}

    def _files(self) -> Fingerprint:
        """What the files of the rows were."""
        return self.scanned.files or Fingerprint.of(self.scanned.source.files)

    def _encode(self, block: Block) -> tuple[Encoded, Array]:
        """Targets and weights of a block, by what the summary says of all rows."""
        y, targets = np.asarray(block.y), self.scanned.summary.targets
        encoded, ones = self.task.encode(y), np.ones(len(block))
        if self.task.numeric:
            y_max = max(abs(targets.low - encoded.offset), abs(targets.high - encoded.offset))
            return replace(encoded, y_max=y_max), ones
        if self.factors is None:
            return encoded, ones
        return encoded, self.factors[np.searchsorted(np.asarray(targets.classes), y)]

    def _total_weight(self) -> float:
        if self.factors is not None:
            return float(self.factors @ self.scanned.summary.targets.class_counts)
        return float(self.scanned.summary.n_rows)

    def _new_session(self, phi: Any) -> OnlineSession:
        settings, W, K = self.settings, self._total_weight(), self.task.n_models
        session = OnlineSession(
            settings.recipe(self.encoded.loss, settings.lam_of(W), K, self.seed),
            phi,
            W / self.scanned.summary.n_rows,
            SolverState.zeros(K, phi.dimension, self.sample.X.dtype),
            horizon=0 if self.deadline < np.inf else self.total,
        )
        session.prepare(
            self.backend,
            self.sample.X,
            self.encoded.targets,
            self.weight,
            self.encoded.y_max,
            self.total,
        )
        return session

    # Epochs -------------------------------------------------------------------------------------

    def _learn_all(self) -> None:
        state, source = self.state, self.scanned.source
        # A row is mapped once in a window: keeping it would only take memory.
        backend = replace(self.backend, memory_limit=0)
        callbacks, watch = self.observer.epochs(self.epochs), self.observer.watch
        self.stopped, self.waited, self.mixing = False, 0.0, Mixing()
        windows = -(-self.scanned.summary.n_rows // self.window)
        stride = max(1, windows * self.epochs // MOST_RECORDS)
        while state.epoch < self.epochs and not self.stopped:
            for window in self._windows():
                block = labelled(window, self.scanned.summary, numeric=self.task.numeric)
                record = self._learn(backend, block)
                if state.session.batches % stride == 0 or state.session.batches == 1:
                    state.history.append(record)
                self.stopped = clock.now() > self.deadline
                if watch is not None:
                    self.stopped = watch(record) or self.stopped
                if self.checkpoint is not None and (self.checkpoint.due or self.stopped):
                    state.seconds = clock.now() - self.begun
                    bare = copy.copy(state.session)
                    bare.phi = None  # type: ignore[assignment]  # it is in the run's file
                    self.checkpoint.write_state({**vars(state), "session": bare})
                if self.stopped:
                    break
            if state.windows == windows:
                state.epoch, state.windows = state.epoch + 1, 0
                if callbacks.epoch_end(self._parts):
                    self.stopped = True
            elif not self.stopped:
                raise DataError(f"{source.name} changed on the way: it has another number of rows.")
        callbacks.fit_end(self._parts)

    def _windows(self) -> Iterator[Block]:
        """The rest of this epoch, each window cut and shuffled while the one before is learnt from."""
        seed = None if self.settings.sampling == "given" else (self.seed, self.state.epoch)
        windows = self.scanned.source.windows(self.window, shuffle=seed, skip=self.state.windows)
        with closing(ahead(windows, depth=1)) as ready:  # type: ignore[type-var]
            while True:
                asked = clock.now()
                window = next(ready, None)
                self.waited += clock.now() - asked
                if window is None:
                    return
                yield window

    def _learn(self, backend: CpuBackend, block: Block) -> dict[str, Any]:
        """One window; returns the record of what was seen of its rows before they were learnt from."""
        state, session = self.state, self.state.session
        error = progressive_error(self.task, self._decision(), block.X, block.y)
        encoded, weight = self._encode(block)
        self.mixing.add(encoded.targets.block(np.arange(len(block))))
        progress = session.learn(backend, block.X, encoded.targets, weight)
        state.windows += 1
        return {
            "epoch": session.rows_seen / self.scanned.summary.n_rows,
            "epochs": self.epochs,
            "steps": session.rows_seen,
            "total": self.total,
            "seconds": clock.now() - self.begun,
            "waited": self.waited,
            "progressive_error": error,
            **progress.record(np.array(session.recipe.lam), session.model[0]),
        }

    def _decision(self) -> Decision:
        coef, intercept = self.state.session.model
        return decision_of(coef, intercept, self.phi, self.task.offset)

    def _parts(self) -> FittedMap:
        """The model so far."""
        return FittedMap.so_far(self.task, self.phi, *self.state.session.model)

    # The end ------------------------------------------------------------------------------------

    def _finish(self) -> FittedMap:
        """The fitted model, its intercept settled by the sample."""
        session, state = self.state.session, self.state
        coef, intercept, certificate = session.finish(
            self.backend, self.sample.X, self.encoded.targets, self.weight
        )
        solution = Solution(
            coef, intercept, certificate, max(state.epoch, 1), float(session.scale or 1.0),
            session.state, np.asarray(session.gradient_bounds), session.kappa,
        )  # fmt: skip
        steps = session.rows_seen
        kept = session_of(
            solution,
            session.recipe,
            self.phi,
            session.metric,
            session.mean_weight,
            self.encoded.y_max,
            steps,
        )
        fitted = FittedMap.of(
            self.settings,
            self.task,
            self.phi,
            (coef, intercept),
            certificate,
            kept,
            None,
            lam=float(session.recipe.lam[0]),
            n_iter=state.epoch,
            steps=steps,
            step_scale=session.scale,
            history=state.history,
        )
        return replace(fitted, indices=None)  # landmarks came from the sample
