"""A streamed fit: epochs of windows, whatever the length of the file.

The map, lam, the metric and the steps come from the sample of a pass before it (``data.scan``); then
there are epochs of windows, each shuffled, with steps that decay to 0 over all of them. In memory are
the sample, two windows and a block of mapped rows. What is done in a window is a function of the seed,
the epoch and the window's number: a run that was cut and resumed from its checkpoint ends in bitwise
the same model.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from asset_svm import clock
from asset_svm.backends.cpu import CpuBackend
from asset_svm.data.ahead import ahead
from asset_svm.data.fingerprint import Fingerprint
from asset_svm.data.scan import Scanned
from asset_svm.data.source import Block
from asset_svm.estimators.base import Encoded, public_parts
from asset_svm.estimators.callbacks import EpochCallbacks
from asset_svm.estimators.epochs import Epochs
from asset_svm.estimators.fitting import all_or_nothing, forget
from asset_svm.estimators.labels import labelled
from asset_svm.estimators.mixing import SORTED, Mixing
from asset_svm.estimators.monitor import Watch, shown
from asset_svm.estimators.probe import progressive_error
from asset_svm.estimators.session import keep_session
from asset_svm.exceptions import DataError, warn_caller
from asset_svm.solvers import SolverState
from asset_svm.storage.checkpoint import Checkpoint, SavedRun, SavedState
from asset_svm.training.solution import Solution
from asset_svm.training.stream import OnlineSession

WINDOW_ROWS = 65_536
WINDOW_BYTES = 32 << 20
"""A window has at most so many rows and takes about so much memory."""
STREAM_EPOCHS = Epochs(least=3, steps=100_000)
MOST_RECORDS = 200
"""Of the history."""


@dataclass(eq=False)
class WindowFit:
    """One streamed fit.

    Parameters
    ----------
    model : AssetClassifier or AssetRegressor
    scanned : Scanned
    checkpoint : Checkpoint, optional
        Where the run's state is saved.
    resumed : SavedRun, optional
        The run to go on with.
    watch : callable, optional
        Called with a record after every window; True asks to stop.
    """

    model: Any
    scanned: Scanned
    checkpoint: Checkpoint | None
    resumed: SavedRun | None
    watch: Watch | None

    def run(self) -> Block:
        """Run all epochs, or go on with them, and store the model; returns a sample of the rows."""
        model = self.model
        with all_or_nothing(model), shown(model.verbose):
            self.begun = clock.now()
            self.deadline = self.begun + model.time_limit if model.time_limit else np.inf
            self.backend = model._host_backend()
            self._prepare()
            self._learn_all()
            self._store()
        self._warn_of_order()
        model._warn_of_landmarks(getattr(model, "components_", None))
        return self.sample

    # Set-up -------------------------------------------------------------------------------------

    def _prepare(self) -> None:
        model, summary = self.model, self.scanned.summary
        m = summary.n_rows
        limit = WINDOW_BYTES if model.memory_limit is None else int(model.memory_limit) // 8
        self.window = summary.window_rows(min(limit, WINDOW_BYTES), WINDOW_ROWS)
        self.epochs = STREAM_EPOCHS.over(m, model.max_iter)
        self.total = m * self.epochs
        model.n_features_in_ = summary.n_features
        state = None
        if self.resumed is not None:
            self._check_same(self.resumed.settings)
            self.seed = self.resumed.seed
            assert self.checkpoint is not None
            state = self.checkpoint.read_state(self.resumed.phi)
        else:
            self.seed = model._seed()
        self.sample = labelled(model, summary.sample, summary)
        self.encoded, self.weight = self._encode(self.sample, first=True)
        if self.resumed is not None:
            phi = self.resumed.phi
        else:
            phi = model._draw_map(self.backend, self.sample.X, None, self.seed)
            if self.checkpoint is not None:
                run = SavedRun(self._settings(), summary, phi, self.seed, {}, self._files())
                self.checkpoint.write_run(run)
        if state is None:
            state = SavedState(self._new_session(phi), 0, 0, [], 0.0)
        self.state, self.phi = state, phi
        self.begun -= state.seconds

    def _settings(self) -> dict[str, Any]:
        """What a resumed run must have in common with the one it goes on with."""
        params = self.model.get_params(deep=False)
        plain = {
            k: v if isinstance(v, float | int | str | None) else repr(v) for k, v in params.items()
        }
        del plain["verbose"]
        dtype = str(self.scanned.summary.sample.X.dtype)
        return {**plain, "dtype": dtype}

    def _files(self) -> Fingerprint:
        """What the files of the rows were."""
        return self.scanned.files or Fingerprint.of(self.scanned.source.files)

    def _check_same(self, before: dict[str, Any]) -> None:
        """Raise unless a resumed run is that of the checkpoint."""
        now, advice = self._settings(), "resume with the same data and parameters"
        for name in sorted({*before, *now}):
            if before.get(name) != now.get(name):
                raise ValueError(
                    f"The checkpoint belongs to another run: {name} was {before.get(name)!r} and is "
                    f"now {now.get(name)!r}; {advice}."
                )
        assert self.resumed is not None
        if not self.resumed.files.fits(self.scanned.source.files):
            raise ValueError(f"The checkpoint belongs to another run: the data have changed; {advice}.")

    def _encode(self, block: Block, *, first: bool = False) -> tuple[Encoded, np.ndarray]:
        """Targets and weights of a block, by what the summary says of all rows."""
        model, targets = self.model, self.scanned.summary.targets
        ones = np.ones(len(block))
        if model._y_numeric:
            encoded = model._encode(block.y, ones, first=first)
            model._offset = encoded.offset
            y_max = max(abs(targets.low - encoded.offset), abs(targets.high - encoded.offset))
            return replace(encoded, y_max=y_max), ones
        encoded = model._encode(block.y, ones, targets.classes, first=first)
        factors = model._factors_of_totals(targets.class_counts)
        if factors is None:
            return encoded, ones
        return encoded, factors[np.searchsorted(np.asarray(targets.classes), np.asarray(block.y))]

    def _total_weight(self) -> float:
        targets = self.scanned.summary.targets
        if not self.model._y_numeric:
            factors = self.model._factors_of_totals(targets.class_counts)
            if factors is not None:
                return float(factors @ targets.class_counts)
        return float(self.scanned.summary.n_rows)

    def _new_session(self, phi: Any) -> OnlineSession:
        model, W = self.model, self._total_weight()
        lam = float(model.lam) if model.lam is not None else 1.0 / (model.C * W)
        K = self.encoded.targets.n_models
        session = OnlineSession(
            model._recipe(self.encoded.loss, lam, K, self.seed),
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
        callbacks = EpochCallbacks(self.model, self.epochs, None, None)
        self.stopped, self.waited, self.mixing = False, 0.0, Mixing()
        windows = -(-self.scanned.summary.n_rows // self.window)
        stride = max(1, windows * self.epochs // MOST_RECORDS)
        while state.epoch < self.epochs and not self.stopped:
            for window in self._windows():
                block = labelled(self.model, window, self.scanned.summary)
                record = self._learn(backend, block)
                if state.session.batches % stride == 0 or state.session.batches == 1:
                    state.history.append(record)
                self.stopped = clock.now() > self.deadline
                if self.watch is not None:
                    self.stopped = self.watch(record) or self.stopped
                if self.checkpoint is not None and (self.checkpoint.due or self.stopped):
                    state.seconds = clock.now() - self.begun
                    self.checkpoint.write_state(state)
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
        seed = None if self.model.sampling == "given" else (self.seed, self.state.epoch)
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
        error = progressive_error(self.model, self._parts()["_decision"], block.X, block.y)
        encoded, weight = self._encode(block)
        self.mixing.add(encoded.targets.block(np.arange(len(block))))
        progress = session.learn(backend, block.X, encoded.targets, weight)
        state.windows += 1
        coef, _ = session.model
        lam = np.array(session.recipe.lam)
        regulariser = float((0.5 * lam * np.einsum("kd,kd->k", coef, coef)).sum())
        loss = float(progress.loss.sum()) / progress.steps
        return {
            "epoch": session.rows_seen / self.scanned.summary.n_rows,
            "epochs": self.epochs,
            "steps": session.rows_seen,
            "total": self.total,
            "seconds": clock.now() - self.begun,
            "waited": self.waited,
            "progressive_loss": loss,
            "progressive_objective": loss + regulariser,
            "progressive_error": error,
            "active": float(progress.active.mean()) / progress.steps,
        }

    def _warn_of_order(self) -> None:
        """Warn where windows had targets of their own."""
        ratio = self.mixing.ratio
        if ratio > SORTED:
            warn_caller(
                f"The rows of {self.scanned.source.name} come sorted by their targets: windows of "
                f"{self.window} rows, which are shuffled only within, explain {ratio:.0%} of "
                "their variance, and the model has seen them one after the other; shuffle the rows of "
                "the file, or raise memory_limit (--memory).",
                ConvergenceWarning,
            )

    def _parts(self) -> dict[str, Any]:
        coef, intercept = self.state.session.model
        return public_parts(coef, intercept, self.phi, self.encoded)

    # The end ------------------------------------------------------------------------------------

    def _store(self) -> None:
        model, session = self.model, self.state.session
        coef, intercept, certificate = session.finish(
            self.backend, self.sample.X, self.encoded.targets, self.weight
        )
        solution = Solution(
            coef, intercept, certificate, max(self.state.epoch, 1), float(session.scale or 1.0),
            session.state, np.asarray(session.gradient_bounds), session.kappa,
        )  # fmt: skip
        forget(model, keep=("n_features_in_", "classes_"))
        model._store(coef, intercept, self.phi, self.encoded)
        steps = session.rows_seen
        keep_session(
            model,
            solution,
            session.recipe,
            self.phi,
            session.metric,
            session.mean_weight,
            self.encoded,
            steps,
        )
        if hasattr(model, "component_indices_"):
            model.component_indices_ = None  # they came from the sample
        model.n_iter_, model.t_, model.lam_ = self.state.epoch, steps, float(session.recipe.lam[0])
        model.history_, model.step_scale_ = self.state.history, session.scale
        model.objective_ = float(certificate.objective.sum())
        model.dual_gap_ = float(certificate.dual_gap.sum())
