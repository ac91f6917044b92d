"""fit and partial_fit: from checked rows through the engines to stored attributes."""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from asset_svm.data import GivenOrder, ShuffledOrder, UniformOrder
from asset_svm.engines.certification import certify_rows
from asset_svm.engines.online import OnlineSession
from asset_svm.engines.task import Engine, Solution, Stopping, TrainingRows
from asset_svm.engines.training import train
from asset_svm.estimators.base import AssetEstimator, Encoded
from asset_svm.estimators.callbacks import WRAPPER_FRAMES
from asset_svm.estimators.cells import fit_cells, partial_fit_cells
from asset_svm.estimators.components import find_components
from asset_svm.estimators.device import (
    as_type,
    check_card_targets,
    on_card,
    on_host,
    row_type,
)
from asset_svm.estimators.fitting import (
    FROM_VALIDATION,
    all_or_nothing,
    check_weight,
    forget,
    validate_rows,
)
from asset_svm.estimators.maps import resolve_kernel
from asset_svm.estimators.margin import margin_sampler
from asset_svm.estimators.monitor import Monitor, logger, shown
from asset_svm.features import FeatureMap, Metric
from asset_svm.solvers import SolverState

MILD_WEIGHTS = 10.0
"""Weights up to so many times their mean count as multipliers of slopes rather than as frequencies."""
DEFAULT_EPOCHS = 25
DEFAULT_STEPS = 100_000
STREAM_HISTORY = 32
"""Batches that the history of a stream reaches back."""


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows to learn from.

    ``weight`` is that of (PL), ``sample_weight`` without the class weights, ``index`` the place of
    each row in what the user passed.
    """

    X: Any
    y: np.ndarray
    sample_weight: np.ndarray
    weight: np.ndarray
    index: np.ndarray

    def take(self, rows: np.ndarray) -> Rows:
        """Some of the rows; all of them costs nothing."""
        if len(rows) == len(self.y):
            return self
        return Rows(*(part[rows] for part in (self.X, *self.columns)))

    @property
    def columns(self) -> tuple[np.ndarray, ...]:
        """Everything but X."""
        return self.y, self.sample_weight, self.weight, self.index

    @property
    def uneven(self) -> np.ndarray | None:
        """The sample weights, or None where they are all alike."""
        w = self.sample_weight
        return None if (w == w[0]).all() else w


class Learner(AssetEstimator):
    """An estimator that learns; subclasses supply the targets."""

    _y_numeric = False
    t_: int
    step_scale_: float | None

    def _encode(self, y, weight, known=None, *, first=True) -> Encoded:
        raise NotImplementedError

    def _class_weights(self, y, weight) -> np.ndarray | None:
        """The factor of each row's weight that its class brings."""
        return None

    def _validation_score(self, decisions, y, weight) -> float:
        raise NotImplementedError

    def _split(self, y, seed) -> tuple[np.ndarray, np.ndarray]:
        raise NotImplementedError

    def _row_losses(self, decisions, y) -> np.ndarray:
        """What each row adds to the error that users look at."""
        raise NotImplementedError

    def _importance(self, decisions, y) -> np.ndarray:
        """How likely each row should be a landmark, by the decisions of a first fit."""
        raise NotImplementedError

    # Rows -------------------------------------------------------------------------------------

    def _rows(self, X, y, sample_weight, known=None, *, first: bool) -> tuple[Rows, Encoded] | None:
        """Checked rows of positive weight, and their targets; None where there are none."""
        if on_card(X):
            X, y = self._checked(X, reset=first), check_card_targets(X, y, numeric=self._y_numeric)
        else:
            X, y = validate_rows(self, X, y, reset=first, y_numeric=self._y_numeric)
        weight = check_weight(on_host(sample_weight), y)
        rows = Rows(X, y, weight, weight, np.arange(len(y)))
        rows = rows.take(np.flatnonzero(weight))
        if len(rows.y) == 0:
            return None
        encoded = self._encode(rows.y, rows.weight, known, first=first)
        factor = self._class_weights(rows.y, rows.weight)
        if factor is not None:
            rows = replace(rows, weight=rows.weight * factor)
            rows = rows.take(np.flatnonzero(rows.weight))
            if len(rows.y) == 0:
                return None
            encoded = self._encode(rows.y, rows.weight, encoded.labels, first=first)
        return rows, encoded

    def _order(self, rows: Rows, seed: int):
        """The order of visits, and the multipliers of slopes where it ignores the weights."""
        m, w = len(rows.y), rows.weight
        even = bool((w == w[0]).all())
        sampling = self.sampling
        if sampling == "auto":
            # Slopes of very unequal weight would be taken whole once an epoch; drawing evens them out.
            mild = bool(w.max() <= MILD_WEIGHTS * w.mean())
            sampling = "shuffle" if self._step == "metric" and mild else "uniform"
        if sampling == "uniform":
            return UniformOrder(m, seed, None if even else w), None
        order = ShuffledOrder(m, seed) if sampling == "shuffle" else GivenOrder(m)
        return order, None if even else w / w.mean()

    def _lam(self, rows: Rows) -> float:
        return float(self.lam) if self.lam is not None else 1.0 / (self.C * rows.weight.sum())

    def _seed(self) -> int:
        return int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))

    def _choose_map(
        self,
        engine: Engine,
        rows: Rows,
        encoded: Encoded,
        seed: int,
        deadline=float("inf"),
        *,
        batch=False,
    ) -> tuple[FeatureMap, dict[str, Any]]:
        """The map for these rows, and what there is to tell of the trials that led to it."""
        count, told = None, {}
        if isinstance(self.approximation, str) and self.n_components == "auto":
            count, records = find_components(self, engine, rows, encoded, seed, deadline)
            told = {"component_search_": records}
        margin = partial(margin_sampler, self, engine, rows, encoded, seed)
        phi = self._draw_map(
            engine, rows.X, rows.uneven, seed, batch=batch, n_components=count, margin=margin
        )
        return phi, told

    # Batch ------------------------------------------------------------------------------------

    def _fit(self, X, y, sample_weight, watch=None):
        begun = time.perf_counter()
        with all_or_nothing(self), shown(self.verbose):
            self._check_parameters()
            found = self._rows(X, y, sample_weight, first=True)
            if found is None:
                raise ValueError("Every row has weight 0; give some row a positive weight.")
            rows, encoded = found
            seed, held_out = self._seed(), None
            if self.n_cells is not None:
                self._fit_cells(rows, encoded, seed, begun)
                return self
            if self.early_stopping:
                kept, out = self._split(rows.y, seed)
                held_out = (rows.X[out], rows.y[out], rows.weight[out])
                rows = rows.take(kept)
                encoded = self._encode(rows.y, rows.weight, encoded.labels)
            engine = self._engine(rows.X)
            deadline = begun + self.time_limit if self.time_limit else float("inf")
            told: dict[str, Any] = {}
            phi, metric, start = self._warm_parts(rows.X, encoded)
            if phi is None:
                phi, told = self._choose_map(engine, rows, encoded, seed, deadline)
                if self._step == "metric":
                    metric = engine.find_metric(phi, rows.X, rows.weight, seed)
            lam = self._lam(rows)
            recipe = self._recipe(encoded.loss, lam, encoded.targets.n_models, seed)
            order, slope_weight = self._order(rows, seed)
            epochs = int(self.max_iter or max(DEFAULT_EPOCHS, -(-DEFAULT_STEPS // len(rows.y))))
            training = TrainingRows(
                engine.rows(
                    phi if metric is None else phi.in_metric(metric),
                    rows.X,
                    lead=recipe.leads(order, epochs, metric),
                ),
                encoded.targets,
                order,
                rows.weight,
                slope_weight,
                encoded.y_max,
                metric,
            )
            monitor = Monitor(
                self, engine, phi, metric, encoded, held_out, epochs, rows.X, rows.y, watch
            )
            stopping = Stopping(
                epochs,
                tol=self.tol,
                deadline=deadline,
                after_epoch=monitor,
                chosen=monitor.chosen,
                early=self.early_stopping,
                watched=monitor.watched,
            )
            solution = train(engine, recipe, training, stopping, start=start)
            steps = solution.steps + (self.t_ if start is not None else 0)
            forget(self, keep=FROM_VALIDATION)
            self._store(solution.coef, solution.intercept, phi, encoded)
            self.__dict__.update(told)
            self._point_to(rows, start is None)
            mean_weight = float(rows.weight.mean())
            self._keep_session(solution, recipe, phi, metric, mean_weight, encoded, steps)
            self.n_iter_, self.t_, self.lam_ = solution.epochs, steps, lam
            self.history_ = solution.history
            self.step_scale_ = solution.step_scale
            self.objective_ = float(solution.certificate.objective.sum())
            self.dual_gap_ = float(solution.certificate.dual_gap.sum())
            monitor.finish(solution.coef, solution.intercept)
        self._warn_of_excess(rows, encoded)
        if self.tol is not None and self.dual_gap_ > self.tol * self.objective_:
            warnings.warn(
                f"The duality gap is {self.dual_gap_ / max(self.objective_, 1e-300):.2g} of the "
                f"objective after {self.n_iter_} epochs, above tol={self.tol:g}; raise max_iter "
                "or tol.",
                ConvergenceWarning,
                stacklevel=3 + WRAPPER_FRAMES,
            )
        return self

    def _fit_cells(self, rows: Rows, encoded: Encoded, seed: int, begun: float) -> None:
        if self.early_stopping:
            raise ValueError(
                "early_stopping=True looks at one model after every epoch, and cells are solved one "
                "after the other; set early_stopping=False, or n_cells=None."
            )
        card: Any = None
        if self._on_card(rows.X) and not callable(self.kernel):
            engine: Any = self._engine(rows.X)
            card = engine.cells(rows.X)
        else:
            rows = replace(rows, X=on_host(rows.X))
        forget(self, keep=FROM_VALIDATION)
        self._offset, self._stream_seed = encoded.offset, seed
        kernel = resolve_kernel(self, rows.X, rows.uneven)
        try:
            fit_cells(self, rows, encoded, kernel, seed, begun, card)
        finally:
            if card is not None:
                card.close()
        self.t_ = self.n_iter_ * len(rows.y)

    def _warn_of_excess(self, rows: Rows, encoded: Encoded) -> None:
        """coef = 0 is a model too: a fit that ends above it has steps too long for its data."""
        at_zero = 0.0
        for start in range(0, len(rows.y), 65_536):
            index = np.arange(start, min(start + 65_536, len(rows.y)))
            losses = encoded.loss.value(encoded.targets.block(index), np.zeros(len(index)))
            at_zero += float((losses @ rows.weight[index]).sum()) / float(rows.weight.sum())
        if self.objective_ > 2.0 * at_zero and self.n_iter_ > 0 and self._step != "strong":
            warnings.warn(
                f"The objective {self.objective_:.3g} is far above that of coef = 0, {at_zero:.3g}; "
                "scale the columns of X (StandardScaler), raise max_iter, or lower step_scale.",
                ConvergenceWarning,
                stacklevel=4 + WRAPPER_FRAMES,
            )

    def _point_to(self, rows: Rows, drawn: bool) -> None:
        """Let ``component_indices_`` mean rows of what the user passed, if the map is from there."""
        indices = getattr(self, "component_indices_", None)
        if indices is None:
            return
        ours = drawn and not hasattr(self.approximation, "features_")
        self.component_indices_ = rows.index[indices] if ours else indices

    def _warm_parts(self, X, encoded):
        """The map, metric and iterates of an earlier fit, where ``warm_start`` can use them."""
        session = getattr(self, "_session", None)
        if not self.warm_start or session is None or self._map_key() != self._fitted_map_key:
            return None, None, None
        if session.phi.n_features_in != X.shape[1] or session.state.direction.dtype != row_type(X):
            return None, None, None
        if self._fitted_labels != encoded.labels:
            return None, None, None
        coef, intercept = self.coef_, self.intercept_ - encoded.offset
        # Steps that decay over this run count from its beginning; the paper's go on counting.
        steps = session.state.steps if session.metric is None else 0
        state = _state_at(coef, intercept, session.metric, row_type(X), steps)
        return session.phi, session.metric, state

    def _keep_session(
        self,
        solution: Solution,
        recipe,
        phi: FeatureMap,
        metric: Metric | None,
        mean_weight: float,
        encoded: Encoded,
        steps: int,
    ) -> None:
        """What partial_fit and warm_start go on from: the averaged model, at its step count."""
        dtype = solution.state.direction.dtype
        state = _state_at(solution.coef, solution.intercept, metric, dtype, steps)
        session = OnlineSession(recipe, phi, mean_weight, state)
        session.y_max, session.scale, session.metric = encoded.y_max, solution.step_scale, metric
        session.gradient_bounds, session.kappa = solution.gradient_bounds, solution.kappa
        session.rows_seen, session.next_estimate = steps, 2 * steps
        if solution.epochs == 0:  # nothing was learnt, and nothing is known of the steps
            session.scale = session.gradient_bounds = None
        self._session, self._offset = session, encoded.offset
        self._fitted_map_key, self._fitted_labels = self._map_key(), encoded.labels

    def certify(self, X, y, sample_weight=None) -> tuple[float, float]:
        """How far this model is from the optimum of (PL) on given rows.

        Solves a smoothed dual near the model: a tight bound, where ``dual_gap_`` after a fit on few
        rows, with small lam, or in a stream can be a loose one.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), optional

        Returns
        -------
        objective : float
            (PL) at this model with ``lam_``, summed over models.
        gap : float
            An upper bound of objective minus optimum.
        """
        self._check_one_map("certify")
        if self._session is None:
            raise ValueError("A compacted model has no feature map; certify the one it came from.")
        known = getattr(self, "classes_", None)
        found = self._rows(X, y, sample_weight, known, first=False)
        if found is None:
            raise ValueError("Every row has weight 0; give some row a positive weight.")
        rows, encoded = found
        phi, metric = self._session.phi, self._session.metric
        dtype = self._session.state.direction.dtype
        training = TrainingRows(
            self._engine(rows.X).rows(
                phi.in_metric(Metric.identity(phi.dimension) if metric is None else metric),
                as_type(rows.X, dtype),
                lead=True,
            ),
            encoded.targets,
            GivenOrder(len(rows.y)),
            rows.weight,
            None,
            encoded.y_max,
            metric,
        )
        recipe = self._recipe(encoded.loss, self.lam_, encoded.targets.n_models, 0)
        coef = self.coef_ if metric is None else metric.invert(self.coef_)
        model = (coef, self.intercept_ - encoded.offset)
        certificate = certify_rows(training, recipe, model, tight=True)
        return float(certificate.objective.sum()), float(certificate.dual_gap.sum())

    # Stream -----------------------------------------------------------------------------------

    def _check_stream(self) -> None:
        """Parameters that make no sense where rows come one batch after the other."""
        if self.sampling == "uniform":
            raise ValueError(
                'sampling="uniform" draws from all rows at any time, and partial_fit sees a '
                'stream; set sampling to "auto", "given" or "shuffle" (within each batch).'
            )
        if self.early_stopping:
            raise ValueError(
                "early_stopping=True holds rows out of a whole training set, and partial_fit sees "
                "a stream; set early_stopping=False."
            )

    def _check_stream_fit(self, *, checkpoint=False) -> None:
        """Parameters that need all rows in memory, where a fit reads them a window at a time."""
        why, instead = "these are too many for it: a fit reads", "raise memory_limit (--memory)"
        if checkpoint:
            why, instead = "a run with a checkpoint reads", "leave the checkpoint out"
        margin = isinstance(self.landmarks, str) and self.landmarks == "margin"
        odd = {
            "sampling": (self.sampling == "uniform", 'set sampling="auto"'),
            "early_stopping": (self.early_stopping, "set max_iter to the epochs you want"),
            "tol": (self.tol is not None, "set max_iter to the epochs you want"),
            "warm_start": (self.warm_start, "go on learning with partial_fit"),
            "n_cells": (self.n_cells is not None, "leave n_cells out"),
            "n_components": (self.n_components == "auto", "set n_components to a number"),
            "landmarks": (margin, 'choose others, for example "rpcholesky"'),
            "device": (self.device == "cuda", 'set device="cpu"'),
        }
        for name, (is_odd, advice) in odd.items():
            if is_odd:
                raise ValueError(
                    f"{name}={getattr(self, name)!r} needs all rows in memory, and {why} them a window "
                    f"at a time; {advice}, or {instead}."
                )

    def _partial_fit(self, X, y, sample_weight, known=None):
        first = not hasattr(self, "_decision")
        with all_or_nothing(self), shown(self.verbose):
            self._check_parameters()
            self._check_stream()
            cells = self.n_cells is not None if first else hasattr(self, "cells_")
            if not first and not cells and self._session is None:
                raise ValueError(
                    "This model has no feature map to go on learning with (it was compacted); call "
                    "partial_fit on the model that it was made from."
                )
            found = self._rows(X, y, sample_weight, known, first=first)
            if found is None and first:
                raise ValueError("Every row has weight 0; give some row a positive weight.")
            if found is None:
                return self
            rows, encoded = found
            if cells:
                self._partial_fit_cells(rows, encoded, first)
                return self
            session = self._new_session(rows, encoded) if first else self._session.copy()
            certificate = session.update(
                self._engine(rows.X),
                as_type(rows.X, session.state.direction.dtype),
                encoded.targets,
                rows.weight,
                encoded.y_max,
                shuffle=self.sampling == "shuffle",
            )
            coef, intercept = session.model
            indices = getattr(self, "component_indices_", None)
            self._store(coef, intercept, session.phi, encoded)
            if first:
                self._point_to(rows, True)
            elif indices is not None:
                self.component_indices_ = indices
            self._session = session
            self.n_iter_, self.t_ = session.batches, int(session.state.steps.max())
            self.step_scale_ = session.scale
            self.objective_ = float(certificate.objective.sum())
            self.dual_gap_ = float(certificate.dual_gap.sum())
            self.history_ = [*self.history_, self._batch_record(session)][-STREAM_HISTORY:]
        return self

    def _partial_fit_cells(self, rows: Rows, encoded: Encoded, first: bool) -> None:
        self._on_card(rows.X)  # says what is missing, or amiss; streams of cells are the host's
        rows = replace(rows, X=on_host(rows.X))
        if first:
            self._offset, self.n_iter_, self.t_ = encoded.offset, 0, 0
            self._stream_seed = self._seed()
        partial_fit_cells(self, rows, encoded, self._stream_seed)
        self.n_iter_, self.t_ = self.n_iter_ + 1, self.t_ + len(rows.y)
        record = {"batch": self.n_iter_, "steps": self.t_, "objective": self.objective_}
        self.history_ = [*self.history_, record | {"dual_gap": self.dual_gap_}][-STREAM_HISTORY:]

    def resume(
        self, phi: FeatureMap, coef, intercept, encoded: Encoded, dtype, mean_weight: float, steps: int
    ) -> None:
        """Take over a model of other making, from which ``partial_fit`` goes on."""
        seed = self._seed()
        recipe = self._recipe(encoded.loss, float(self.lam), len(coef), seed)
        self._store(coef, intercept, phi, encoded)
        state = _state_at(coef, intercept, None, dtype, steps)
        self._session = OnlineSession(recipe, phi, mean_weight, state)
        self._offset, self.lam_, self.history_ = encoded.offset, float(self.lam), []
        self._fitted_map_key, self._fitted_labels = self._map_key(), encoded.labels

    def _new_session(self, rows: Rows, encoded: Encoded) -> OnlineSession:
        """What the first batch settles."""
        seed, lam = self._seed(), self._lam(rows)
        if self.lam is None:
            logger.info("lam=%g = 1 / (C * weight of the first batch) from now on", lam)
        phi, told = self._choose_map(self._engine(rows.X), rows, encoded, seed, batch=True)
        self.__dict__.update(told)
        K = encoded.targets.n_models
        self._offset, self.lam_, self.history_ = encoded.offset, lam, []
        self._fitted_map_key, self._fitted_labels = self._map_key(), encoded.labels
        return OnlineSession(
            self._recipe(encoded.loss, lam, K, seed),
            phi,
            float(rows.weight.mean()),
            SolverState.zeros(K, phi.dimension, row_type(rows.X)),
        )

    def _batch_record(self, session: OnlineSession) -> dict[str, Any]:
        """One line of the history: what the loop saw of the batch before it learnt from it."""
        progress = session.progress
        assert progress is not None
        return {
            "batch": session.batches,
            "steps": self.t_,
            "progressive_loss": float(progress.loss.sum()) / progress.steps,
            "active": float(progress.active.mean()) / progress.steps,
            "sign_errors": float(progress.errors.mean()) / progress.steps,
            "objective": self.objective_,
            "dual_gap": self.dual_gap_,
        }


def _state_at(coef, intercept, metric: Metric | None, dtype, steps) -> SolverState:
    """A state whose iterate is this model, in the metric's basis, at these step counts."""
    K, d = coef.shape
    state = SolverState.zeros(K, d, dtype)
    state.direction[:] = coef if metric is None else metric.invert(coef)
    state.intercept[:] = intercept
    state.steps[:] = steps
    return state
