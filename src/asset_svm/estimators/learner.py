"""Learner: fit, partial_fit and certify, from what the user passes to stored attributes."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from asset_svm import clock
from asset_svm.backends.base import Backend
from asset_svm.data import GivenOrder
from asset_svm.estimators.base import AssetEstimator, Encoded, inner_intercept
from asset_svm.families.one_map.fit import fit_batch, warn_of_excess, warn_of_gap
from asset_svm.families.beginning import Beginning
from asset_svm.estimators.callbacks import with_callbacks
from asset_svm.families.cells.fit import fit_cells, warn_of_cells
from asset_svm.families.cells.online import learn_batch_in_cells
from asset_svm.families.one_map.components import find_components
from asset_svm.families.constant import warn_of_constant
from asset_svm.families.definite import warn_of_indefinite
from asset_svm.backends.device import as_type, check_card_targets, on_card, on_host
from asset_svm.families.one_map.drawn import DrawnMap
from asset_svm.estimators.validation import all_or_nothing, check_weight, validate_rows
from asset_svm.families.one_map.maps import warn_of_few_landmarks
from asset_svm.families.one_map.margin import margin_sampler
from asset_svm.families.monitor import shown
from asset_svm.families.one_map.online import HISTORY, learn_batch
from asset_svm.families.rows import Rows
from asset_svm.features import FeatureMap, Metric
from asset_svm.training.certificate import certify_rows
from asset_svm.training.rows import TrainingRows


class Learner(AssetEstimator):
    """An estimator that learns; subclasses supply the targets."""

    _y_numeric = False
    t_: int
    n_iter_: int
    history_: list[dict[str, Any]]
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

    def _says_of_constant(self, decisions, y, weight) -> tuple[str, list[str], list[str]] | None:
        """What such decisions on training rows have in common, why that may be, and what to do.

        None where they tell rows apart, or where a constant is all there is to learn.
        """
        raise NotImplementedError

    # Rows and their map -----------------------------------------------------------------------

    def _rows(self, X, y, sample_weight, known=None, *, first: bool) -> tuple[Rows, Encoded] | None:
        """Checked rows of positive weight, and their targets; None where there are none."""
        if on_card(X):
            X, y = self._checked(X, reset=first), check_card_targets(X, y, numeric=self._y_numeric)
        else:
            X, y = validate_rows(self, X, y, reset=first, y_numeric=self._y_numeric)
        weight = check_weight(on_host(sample_weight), y, part=not first)
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

    def _lam(self, rows: Rows) -> float:
        return float(self.lam) if self.lam is not None else 1.0 / (self.C * rows.weight.sum())

    def _seed(self) -> int:
        return int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))

    def _choose_map(
        self,
        backend: Backend,
        rows: Rows,
        encoded: Encoded,
        seed: int,
        deadline=float("inf"),
    ) -> tuple[FeatureMap, dict[str, Any]]:
        """The map for these rows, and what there is to tell of the trials that led to it."""
        count, told = None, {}
        if isinstance(self.approximation, str) and self.n_components == "auto":
            count, records = find_components(self, backend, rows, encoded, seed, deadline)
            told = {"component_search_": records}
        margin = partial(margin_sampler, self, backend, rows, encoded, seed)
        phi = self._draw_map(backend, rows.X, rows.uneven, seed, n_components=count, margin=margin)
        return phi, told

    def _warn_of_landmarks(self, landmarks) -> None:
        """Warn where these are fewer landmarks than ``n_components`` asks for."""
        if isinstance(self.approximation, str) and self.approximation == "nystroem":
            warn_of_few_landmarks(self, landmarks.shape[0])

    def _point_to(self, rows: Rows, drawn: bool) -> None:
        """Let ``component_indices_`` mean rows of what the user passed, if the map is from there."""
        indices = getattr(self, "component_indices_", None)
        if indices is None:
            return
        ours = drawn and not hasattr(self.approximation, "features_")
        self.component_indices_ = rows.index[indices] if ours else indices

    # All rows at once -------------------------------------------------------------------------

    def _fit(self, X, y, sample_weight, watch=None):
        self._warn(*self._train(X, y, sample_weight, watch))
        return self

    def _warn(self, rows: Rows, encoded: Encoded, *, searched: bool = False) -> None:
        """Warn where the model is not what it should be; ``searched``: it is the best of many."""
        if self.n_cells is not None:
            warn_of_cells(self)
        else:
            self._warn_of_landmarks(getattr(self, "components_", None))
            warn_of_excess(self, rows, encoded)
            warn_of_gap(self, rows, encoded)
            warn_of_indefinite(self)
        warn_of_constant(self, rows.X, rows.y, rows.weight, searched=searched)

    @with_callbacks
    def _train(
        self, X, y, sample_weight, watch=None, drawn: DrawnMap | None = None
    ) -> tuple[Rows, Encoded]:
        """Train on all rows; ``drawn`` is the map that this fit would draw, where it is known.

        Returns the rows that it learnt from, and their targets.
        """
        begun = clock.now()
        with all_or_nothing(self), shown(self.verbose):
            self._check_parameters()
            found = self._rows(X, y, sample_weight, first=True)
            if found is None:
                raise ValueError("Every row has weight 0; give some row a positive weight.")
            rows, encoded = found
            if self.n_cells is not None:
                fit_cells(self, rows, encoded, self._seed(), begun, watch)
            else:
                rows, encoded = fit_batch(self, rows, encoded, self._seed(), begun, watch, drawn)
        return rows, encoded

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
            self._backend(rows.X).rows(
                phi.in_metric(Metric.identity(phi.dimension) if metric is None else metric),
                as_type(rows.X, dtype),
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
        model = (coef, inner_intercept(self, phi, encoded.offset))
        certificate = certify_rows(training, recipe, model, tight=True)
        return float(certificate.objective.sum()), float(certificate.dual_gap.sum())

    # A batch after the other ------------------------------------------------------------------

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
            if found is not None:
                learn = learn_batch_in_cells if cells else learn_batch
                self._learn_batch(learn, *found, len(y), first=first)
            elif first:
                raise ValueError("Every row has weight 0; give some row a positive weight.")
        return self

    def _learn_batch(self, learn, rows: Rows, encoded: Encoded, passed: int, *, first: bool) -> None:
        """Learn from a batch, or, while few rows have come, begin anew with all of them."""
        beginning: Beginning | None = getattr(self, "_beginning", None)
        if first:
            beginning = Beginning.of(rows, passed)
        elif beginning is not None:
            beginning = beginning.joined(rows, passed)
        if first or beginning is None or not beginning.is_due(self):
            learn(self, rows, encoded, first=first)
        else:
            beginning = self._begin_anew(learn, beginning)
        if beginning is not None and not beginning.is_enough(self):
            self._beginning = beginning
        else:
            self.__dict__.pop("_beginning", None)

    def _begin_anew(self, learn, beginning: Beginning) -> Beginning:
        """Learn as from a first batch, and count batches on."""
        batches, history, rows = self.n_iter_ + 1, self.history_, beginning.rows
        encoded = self._encode(rows.y, rows.weight, getattr(self, "classes_", None))
        learn(self, rows, encoded, first=True)
        self.n_iter_ = batches
        self.history_ = [*history, {**self.history_[-1], "batch": batches}][-HISTORY:]
        if hasattr(self, "_session"):
            self._session.batches = batches
        return beginning.begin()

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
