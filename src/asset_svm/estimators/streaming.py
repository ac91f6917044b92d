"""Fitting from a ``RowSource``: as arrays where the rows fit in memory, else a window at a time.

A streamed run: one pass that counts and samples (``data.scan``); the map, lam, the metric and the steps
from the sample; then epochs of windows, each shuffled, with steps that decay to 0 over all of them. In
memory are the sample, two windows and a block of mapped rows, whatever the length of the file. What is
done in a window is a function of the seed, the epoch and the window's number: a run that was cut and
resumed from its checkpoint ends in bitwise the same model.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from asset_svm.data.ahead import ahead
from asset_svm.data.scan import Scanned, Summary, TargetSummary, scan
from asset_svm.data.source import Block, RowSource
from asset_svm.engines.local import LocalEngine, available_memory
from asset_svm.engines.online import OnlineSession
from asset_svm.engines.task import Solution
from asset_svm.estimators.base import Encoded, public_parts
from asset_svm.estimators.callbacks import EpochCallbacks
from asset_svm.estimators.epochs import Epochs
from asset_svm.estimators.fitting import all_or_nothing, forget
from asset_svm.estimators.monitor import shown
from asset_svm.estimators.parameters import is_integer
from asset_svm.estimators.session import keep_session
from asset_svm.exceptions import DataError
from asset_svm.solvers import SolverState
from asset_svm.storage.checkpoint import Checkpoint, SavedRun, SavedState

SAMPLE_ROWS = 8192
"""Rows that the map, the metric and the steps are settled from; more if there are more landmarks."""
WINDOW_ROWS = 65_536
WINDOW_BYTES = 32 << 20
"""A window has at most so many rows and takes about so much memory."""
STREAM_EPOCHS = Epochs(least=3, steps=100_000)
PROBE_ROWS = 512
"""Rows of a window that are predicted before they are learnt from: the progressive error."""
MOST_RECORDS = 200
"""Of the history."""

Watch = Callable[[dict[str, Any]], bool]


def fit_rows(
    model: Any,
    source: RowSource | Scanned,
    y: None = None,
    sample_weight: None = None,
    *,
    checkpoint: Checkpoint | None = None,
    watch: Watch | None = None,
) -> Any:
    """Fit an estimator to the rows of a source.

    Parameters
    ----------
    model : AssetClassifier or AssetRegressor
    source : RowSource or Scanned
    y, sample_weight : None
        A source brings its own targets, and no weights.
    checkpoint : Checkpoint, optional
        The run is streamed then, and can be resumed.
    watch : callable, optional
        Called with a record of the progress after every epoch, or window of a stream; returning
        True ends the run, which leaves the model of that moment.

    Returns
    -------
    model
    """
    if y is not None or sample_weight is not None:
        raise ValueError("A row source brings its own targets; leave y and sample_weight out.")
    model._check_parameters()
    if checkpoint is not None:
        check_streamed(model, checkpoint=True)
    resumed = None if checkpoint is None else checkpoint.read_run()
    reread = source.source if isinstance(source, Scanned) else source
    if checkpoint is not None and not reread.rereadable:
        raise ValueError(f"{reread.name} cannot be read again, and so takes no checkpoint.")
    if isinstance(source, Scanned):
        scanned = source
    elif resumed is not None:
        scanned = Scanned(source.narrowed(resumed.summary.n_features), resumed.summary)
    else:
        scanned = scan_for(
            source,
            n_components=model.n_components,
            memory_limit=model.memory_limit,
            random_state=model.random_state,
            hold=checkpoint is None,
            too_large=partial(check_streamed, model),
        )
    held, names = scanned.held, scanned.source.feature_names
    if checkpoint is None and held is not None:
        held = labelled(model, held, scanned.summary)
        model._fit(held.X, held.y, None, watch=watch)
    else:
        _Stream(model, scanned, checkpoint, resumed, watch).fit()
    if names is not None:
        model.feature_names_in_ = np.array(names, dtype=object)
    return model


def check_streamed(model: Any, *, checkpoint: bool = False) -> None:
    """Refuse parameters that need all rows in memory, where a fit reads them a window at a time."""
    why, instead = "these are too many for it: a fit reads", "raise memory_limit (--memory)"
    if checkpoint:
        why, instead = "a run with a checkpoint reads", "leave the checkpoint out"
    margin = isinstance(model.landmarks, str) and model.landmarks == "margin"
    odd = {
        "sampling": (model.sampling == "uniform", 'set sampling="auto"'),
        "early_stopping": (model.early_stopping, "set max_iter to the epochs you want"),
        "tol": (model.tol is not None, "set max_iter to the epochs you want"),
        "warm_start": (model.warm_start, "go on learning with partial_fit"),
        "n_cells": (model.n_cells is not None, "leave n_cells out"),
        "n_components": (model.n_components == "auto", "set n_components to a number"),
        "landmarks": (margin, 'choose others, for example "rpcholesky"'),
        "device": (model.device == "cuda", 'set device="cpu"'),
    }
    for name, (is_odd, advice) in odd.items():
        if is_odd:
            raise ValueError(
                f"{name}={getattr(model, name)!r} needs all rows in memory, and {why} them a window "
                f"at a time; {advice}, or {instead}."
            )


def scan_for(
    source: RowSource,
    *,
    n_components: Any = None,
    memory_limit: float | None = None,
    random_state: Any = None,
    hold: bool = True,
    observe: Callable[[Any], Any] | None = None,
    too_large: Callable[[], Any] | None = None,
) -> Scanned:
    """Scan a source for an estimator with these parameters; ``hold`` keeps rows that fit in memory.

    ``too_large`` is called as soon as they do not.
    """
    limit = available_memory() // 2 if memory_limit is None else int(memory_limit)
    return scan(
        source,
        sample_rows=max(SAMPLE_ROWS, n_components if is_integer(n_components) else 0),
        hold_bytes=limit // 4 if hold else 0,
        seed=int(random_state) if is_integer(random_state) else 0,
        observe=observe,
        too_large=too_large,
    )


def labelled(model: Any, block: Block, summary: Summary) -> Block:
    """The block with targets as the estimator takes them."""
    kind = target_type(model, summary.targets)
    return Block(block.X, np.asarray(block.y).astype(kind, copy=False))


def target_type(model: Any, targets: TargetSummary) -> np.dtype:
    """The type of targets that the estimator takes: a classifier's are integers, if all can be."""
    if model._y_numeric:
        if targets.kind == "names":
            raise DataError("The targets are names; regression needs numbers.")
        return np.dtype(np.float64)
    classes = targets.classes
    if classes is None or (targets.kind == "numbers" and not targets.whole):
        raise DataError(
            "The targets have fractions, or more than 1000 different values; use AssetRegressor "
            "(--task regression)."
        )
    return classes.dtype


def progressive_error(model: Any, decisions: np.ndarray, y: np.ndarray) -> float:
    """The part of rows misclassified, or their mean |error|."""
    if model._y_numeric:
        return float(np.abs(decisions.ravel() - y).mean())
    return 1.0 - float(model._validation_score(decisions, y, None))


@dataclass(eq=False)
class _Stream:
    """One streamed fit."""

    model: Any
    scanned: Scanned
    checkpoint: Checkpoint | None
    resumed: SavedRun | None
    watch: Watch | None

    def fit(self) -> None:
        """Run all epochs, or go on with them, and store the model."""
        model = self.model
        with all_or_nothing(model), shown(model.verbose):
            check_streamed(model, checkpoint=self.checkpoint is not None)
            self.begun = time.perf_counter()
            self.deadline = self.begun + model.time_limit if model.time_limit else np.inf
            self.engine = model._host_engine()
            self._prepare()
            self._run()
            self._store()

    # Set-up -------------------------------------------------------------------------------------

    def _prepare(self) -> None:
        model, summary = self.model, self.scanned.summary
        m = summary.n_rows
        limit = WINDOW_BYTES if model.memory_limit is None else int(model.memory_limit) // 8
        self.window = summary.window_rows(min(limit, WINDOW_BYTES), WINDOW_ROWS)
        self.epochs = STREAM_EPOCHS.over(m, model.max_iter)
        self.total = m * self.epochs
        model.n_features_in_ = summary.n_features
        settings = self._settings()
        state = None
        if self.resumed is not None:
            _check_same(self.resumed.settings, settings)
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
            phi = model._draw_map(self.engine, self.sample.X, None, self.seed, batch=False)
            if self.checkpoint is not None:
                run = SavedRun(settings, summary, phi, self.seed, {})
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
        return {**plain, "data": self.scanned.source.fingerprint(), "dtype": dtype}

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
            self.engine,
            self.sample.X,
            self.encoded.targets,
            self.weight,
            self.encoded.y_max,
            self.total,
        )
        return session

    # Epochs -------------------------------------------------------------------------------------

    def _run(self) -> None:
        state, source = self.state, self.scanned.source
        # A row is mapped once in a window: keeping it would only take memory.
        engine = replace(self.engine, memory_limit=0)
        callbacks = EpochCallbacks(self.model, self.epochs, None, None)
        self.stopped, self.waited = False, 0.0
        windows = -(-self.scanned.summary.n_rows // self.window)
        stride = max(1, windows * self.epochs // MOST_RECORDS)
        while state.epoch < self.epochs and not self.stopped:
            for window in self._windows():
                block = labelled(self.model, window, self.scanned.summary)
                record = self._learn(engine, block)
                if state.session.batches % stride == 0 or state.session.batches == 1:
                    state.history.append(record)
                self.stopped = time.perf_counter() > self.deadline
                if self.watch is not None:
                    self.stopped = self.watch(record) or self.stopped
                if self.checkpoint is not None and (self.checkpoint.due or self.stopped):
                    state.seconds = time.perf_counter() - self.begun
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
                asked = time.perf_counter()
                window = next(ready, None)
                self.waited += time.perf_counter() - asked
                if window is None:
                    return
                yield window

    def _learn(self, engine: LocalEngine, block: Block) -> dict[str, Any]:
        """One window; returns the record of what was seen of its rows before they were learnt from."""
        state, session = self.state, self.state.session
        error = self._error(block[:PROBE_ROWS])
        encoded, weight = self._encode(block)
        progress = session.learn(engine, block.X, encoded.targets, weight)
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
            "seconds": time.perf_counter() - self.begun,
            "waited": self.waited,
            "progressive_loss": loss,
            "progressive_objective": loss + regulariser,
            "progressive_error": error,
            "active": float(progress.active.mean()) / progress.steps,
        }

    def _error(self, block: Block) -> float:
        """Of rows that are about to be learnt from: the part misclassified, or the mean |error|."""
        return progressive_error(self.model, self._parts()["_decision"](block.X), np.asarray(block.y))

    def _parts(self) -> dict[str, Any]:
        coef, intercept = self.state.session.model
        return public_parts(coef, intercept, self.phi, self.encoded)

    # The end ------------------------------------------------------------------------------------

    def _store(self) -> None:
        model, session = self.model, self.state.session
        certificate = session.certify(self.engine, self.sample.X, self.encoded.targets, self.weight)
        coef, intercept = session.model
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


def _check_same(before: dict[str, Any], now: dict[str, Any]) -> None:
    """Raise unless a resumed run is that of the checkpoint."""
    for name in sorted({*before, *now}):
        if before.get(name) != now.get(name):
            what = "the data have changed" if name == "data" else (
                f"{name} was {before.get(name)!r} and is now {now.get(name)!r}"
            )  # fmt: skip
            raise ValueError(
                f"The checkpoint belongs to another run: {what}; resume with the same data and "
                "parameters."
            )
