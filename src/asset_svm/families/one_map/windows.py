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
from sklearn.exceptions import ConvergenceWarning

from asset_svm import clock
from asset_svm.arrays import Array
from asset_svm.backends.base import Backend
from asset_svm.backends.cpu import CpuBackend
from asset_svm.data.ahead import ahead
from asset_svm.data.scan import Scanned
from asset_svm.data.source import Block
from asset_svm.exceptions import DataError, warn_caller
from asset_svm.families.base import Trained
from asset_svm.families.decision import Decision, decision_of
from asset_svm.families.epochs import Epochs
from asset_svm.families.labels import labelled
from asset_svm.families.observing import Observer
from asset_svm.families.one_map.drawn import DrawnMap
from asset_svm.families.one_map.fitted import FittedMap
from asset_svm.families.one_map.keeping import Keeper
from asset_svm.families.one_map.maps import draw_map
from asset_svm.families.one_map.mixing import SORTED, Mixing
from asset_svm.families.one_map.one_class import lam_for, with_threshold
from asset_svm.families.probe import progressive_error
from asset_svm.families.rows import Rows
from asset_svm.families.whole import WholeTask
from asset_svm.settings import Settings
from asset_svm.solvers import SolverState
from asset_svm.tasks import Encoded, Task, has_targets
from asset_svm.training.stream import OnlineSession

WINDOW_ROWS = 65_536
WINDOW_BYTES = 32 << 20
"""A window has at most so many rows, and takes about so many bytes."""
FOR_CARDS = 16
"""Times these on a card, which is through with such windows before the next one is set up."""
STREAM_EPOCHS = Epochs(least=3, steps=100_000)
MOST_RECORDS = 200
"""The history has about so many records."""


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
    task : Task
        Not settled yet: a sample of the rows does that.
    keeper : Keeper, optional
        It saves the run, and knows the one to go on with.
    observer : Observer
        Its ``watch`` is called with a record after every window; True asks to stop.
    """

    settings: Settings
    task: Task
    scanned: Scanned
    keeper: Keeper | None
    observer: Observer

    def run(self) -> Trained[FittedMap]:
        """Run all epochs, or go on with them; the rows of what is returned are a sample."""
        self.begun = clock.now()
        self.deadline = self.settings.deadline(self.begun)
        self._prepare()
        self._learn_all()
        return Trained(self._finish(), self._sampled_rows(), sampled=True)

    def warn(self) -> None:
        """Warn of rows that are sorted by their targets."""
        if self.mixing.ratio > SORTED:
            warn_caller(
                f"The rows of {self.scanned.source.name} come sorted by their targets: windows of "
                f"{self.window} rows, which are shuffled only within, explain {self.mixing.ratio:.0%} "
                "of their variance, and the model has seen them one after the other; shuffle the rows "
                "of the file, or raise memory_limit (--memory).",
                ConvergenceWarning,
            )

    # Set-up -------------------------------------------------------------------------------------

    def _prepare(self) -> None:
        """Settle the map, the task and the session, or find them again."""
        settings, summary, keeper = self.settings, self.scanned.summary, self.keeper
        self.sample = labelled(summary.sample, summary, numeric=self.task.numeric)
        self.backend = settings.backend(self.sample.X, summary.n_rows)
        times = 1 if isinstance(self.backend, CpuBackend) else FOR_CARDS
        most = times * WINDOW_BYTES
        limit = most if settings.memory_limit is None else settings.memory_limit // 8
        self.window = summary.window_rows(min(limit, most), times * WINDOW_ROWS)
        self.epochs = STREAM_EPOCHS.over(summary.n_rows, settings.max_iter)
        self.total = summary.n_rows * self.epochs
        self.whole = WholeTask.of_summary(self.task, summary, self.sample)
        self.encoded, self.weight = self._encode(self.sample)
        if keeper is not None and keeper.resumed is not None:
            assert keeper.resumed.phi is not None
            self.seed, self.phi = keeper.resumed.seed, keeper.resumed.phi
        else:
            self.seed = settings.draw_seed()
            self.phi = draw_map(settings, self.backend, self.sample.X, None, self.seed)
            if keeper is not None:
                keeper.begin(DrawnMap(self.phi, None), self.seed)
        saved = None if keeper is None else keeper.state()
        if saved is None:
            self.state = WindowState(self._new_session(), 0, 0, [], 0.0)
        else:
            saved["session"].phi = self.phi
            self.state = WindowState(**saved)
        self.begun -= self.state.seconds

    def _encode(self, block: Block) -> tuple[Encoded, Array]:
        """Targets and weights of a block."""
        y = np.asarray(block.y)
        return self.whole.encode(y), self.whole.weights(y, np.ones(len(y)))

    def _lam(self) -> float:
        """The regularisation: by the weight of all rows, or of one class by the sample."""
        if has_targets(self.whole.task):
            return self.settings.lam_of(self.whole.total_weight(self.scanned.summary))
        drawn, rows = DrawnMap(self.phi, None), self._sampled_rows()
        return lam_for(self.settings, self.whole.task, self.backend, drawn, rows, self.seed)

    def _sampled_rows(self) -> Rows:
        y = np.asarray(self.sample.y)
        return Rows(self.sample.X, y, np.ones(len(y)), self.weight, np.arange(len(y)))

    def _new_session(self) -> OnlineSession:
        settings, W, K = (
            self.settings,
            self.whole.total_weight(self.scanned.summary),
            self.whole.task.n_models,
        )
        session = OnlineSession(
            settings.recipe(self.encoded.loss, self._lam(), K, self.seed),
            self.phi,
            W / self.scanned.summary.n_rows,
            SolverState.zeros(K, self.phi.dimension, self.sample.X.dtype),
            horizon=0 if self.deadline < np.inf else self.total,
        )
        targets, y_max = self.encoded.targets, self.encoded.y_max
        session.prepare(self.backend, self.sample.X, targets, self.weight, y_max, self.total)
        return session

    # Epochs -------------------------------------------------------------------------------------

    def _learn_all(self) -> None:
        state, source = self.state, self.scanned.source
        # A row is mapped once in a window: keeping it would only take memory.
        backend: Any = replace(self.backend, memory_limit=0)  # type: ignore[type-var]
        callbacks, watch = self.observer.epochs(self.epochs), self.observer.watch
        self.stopped, self.waited, self.mixing = False, 0.0, Mixing()
        windows = -(-self.scanned.summary.n_rows // self.window)
        stride = max(1, windows * self.epochs // MOST_RECORDS)
        while state.epoch < self.epochs and not self.stopped:
            self.scanned.check_steady()
            for window in self._windows():
                block = labelled(window, self.scanned.summary, numeric=self.task.numeric)
                record = self._learn(backend, block)
                if state.session.batches % stride == 0 or state.session.batches == 1:
                    state.history.append(record)
                self.stopped = clock.now() > self.deadline
                if watch is not None:
                    self.stopped = watch(record) or self.stopped
                if self.keeper is not None:
                    self.keeper(self._snapshot, stopped=self.stopped)
                if self.stopped:
                    break
            if state.windows == windows:
                self.scanned.check_steady()
                state.epoch, state.windows = state.epoch + 1, 0
                if callbacks.epoch_end(self._parts):
                    self.stopped = True
            elif not self.stopped:
                self.scanned.check_steady()
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

    def _learn(self, backend: Backend, block: Block) -> dict[str, Any]:
        """One window; returns the record of what was seen of its rows before they were learnt from."""
        state, session = self.state, self.state.session
        error = progressive_error(self.whole.task, self._decision(), block.X, block.y)
        encoded, weight = self._encode(block)
        self.mixing.add(encoded.targets.block(np.arange(len(block))))
        session.learn(backend, block.X, encoded.targets, weight)
        state.windows += 1
        return {
            "epoch": session.rows_seen / self.scanned.summary.n_rows,
            "epochs": self.epochs,
            "steps": session.rows_seen,
            "total": self.total,
            "seconds": clock.now() - self.begun,
            "waited": self.waited,
            "progressive_error": error,
            **session.record(),
        }

    def _decision(self) -> Decision:
        return decision_of(*self.state.session.model, self.phi, self.whole.task.offset)

    def _parts(self) -> FittedMap:
        """The model so far."""
        return FittedMap.so_far(self.whole.task, self.phi, *self.state.session.model)

    def _snapshot(self) -> WindowState:
        """Where the run is, without the map, which is saved already."""
        bare = copy.copy(self.state.session)
        bare.phi = None  # type: ignore[assignment]
        return replace(self.state, session=bare, seconds=clock.now() - self.begun)

    # The end ------------------------------------------------------------------------------------

    def _finish(self) -> FittedMap:
        """The fitted model, its intercept, or the threshold of one class, settled by the sample."""
        session, state, encoded = self.state.session, self.state, self.encoded
        solution = session.finish(
            self.backend, self.sample.X, encoded.targets, self.weight, state.epoch, state.history
        )
        task, drawn = self.whole.task, DrawnMap(self.phi, session.metric)
        if not has_targets(task):
            rows = self._sampled_rows()
            order = rows.order("given", session.recipe.step, self.seed)
            training = drawn.training(self.backend, rows, encoded, *order)
            task = with_threshold(task, training, solution, self.seed)
        fitted = FittedMap.solved(
            self.settings,
            task,
            drawn,
            session.recipe,
            solution,
            None,
            mean_weight=session.mean_weight,
            y_max=encoded.y_max,
        )
        return replace(fitted, indices=None)  # landmarks came from the sample
