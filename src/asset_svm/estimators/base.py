"""What AssetClassifier and AssetRegressor share: fit, partial_fit, decisions, and their parameters.

An estimator validates once, translates its parameters into the paper's objects (``Recipe``), has
``engines.training`` or ``engines.online`` do the work, and stores what comes back. A fit that fails
leaves the estimator as it was.
"""

from __future__ import annotations

import logging
import time
import warnings
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from asset_svm.data import GivenOrder, ShuffledOrder, Targets, UniformOrder
from asset_svm.engines.local import LocalEngine
from asset_svm.engines.online import OnlineSession
from asset_svm.engines.training import (
    Recipe,
    Solution,
    Stopping,
    TrainingRows,
    find_metric,
    train,
)
from asset_svm.estimators import parameters as check
from asset_svm.estimators.callbacks import CallbackSupportMixin, EpochCallbacks, with_callbacks
from asset_svm.estimators.decision import Decision
from asset_svm.estimators.maps import check_rank, draw_fourier, draw_nystroem
from asset_svm.features import FeatureMap, NystroemFeatures
from asset_svm.features.nystroem import KernelBasis
from asset_svm.losses import Loss
from asset_svm.solvers import SolverState

logger = logging.getLogger("asset_svm")

FLOATS = [np.float64, np.float32]
FEWEST_EPOCHS = 20
FEWEST_STEPS = 100_000


@dataclass(frozen=True, eq=False)
class Encoded:
    """Targets as the solver sees them."""

    targets: Targets
    loss: Loss
    y_max: float
    offset: float = 0.0
    labels: tuple[Any, ...] | None = None


class AssetEstimator(CallbackSupportMixin, BaseEstimator):
    """The common part; not for use by itself."""

    def __init__(
        self,
        kernel,
        gamma,
        degree,
        coef0,
        C,
        lam,
        approximation,
        n_components,
        rank,
        rank_threshold,
        rank_rule,
        step,
        step_scale,
        gradient_sample,
        fit_intercept,
        intercept_bound,
        average,
        sampling,
        max_iter,
        tol,
        early_stopping,
        validation_fraction,
        n_iter_no_change,
        time_limit,
        memory_limit,
        warm_start,
        random_state,
        n_jobs,
        verbose,
    ):
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.C = C
        self.lam = lam
        self.approximation = approximation
        self.n_components = n_components
        self.rank = rank
        self.rank_threshold = rank_threshold
        self.rank_rule = rank_rule
        self.step = step
        self.step_scale = step_scale
        self.gradient_sample = gradient_sample
        self.fit_intercept = fit_intercept
        self.intercept_bound = intercept_bound
        self.average = average
        self.sampling = sampling
        self.max_iter = max_iter
        self.tol = tol
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.time_limit = time_limit
        self.memory_limit = memory_limit
        self.warm_start = warm_start
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    # What a subclass supplies ----------------------------------------------------------------

    def _encode(self, y, weight, known=None, *, first=True) -> Encoded:
        raise NotImplementedError

    def _validation_score(self, decisions, y, weight) -> float:
        raise NotImplementedError

    def _split(self, y, seed) -> tuple[np.ndarray, np.ndarray]:
        raise NotImplementedError

    # scikit-learn's own protocol --------------------------------------------------------------

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def __sklearn_is_fitted__(self):
        return hasattr(self, "coef_")

    @contextmanager
    def _all_or_nothing(self):
        """Restore the attributes of an earlier fit when this one fails."""
        before = {k: v for k, v in self.__dict__.items() if _is_result(k)}
        try:
            yield
        except BaseException:
            for name in [k for k in self.__dict__ if _is_result(k)]:
                del self.__dict__[name]
            self.__dict__.update(before)
            raise

    # Parameters -------------------------------------------------------------------------------

    def _check_parameters(self) -> None:
        check.check_kernel(self.kernel, self.gamma, self.degree, self.coef0)
        check.check_positive("C", self.C)
        check.check_positive("lam", self.lam, optional=True)
        if isinstance(self.approximation, str) or self.approximation is None:
            check.check_choice("approximation", self.approximation, ("nystroem", "fourier"))
        check.check_choice("rank_rule", self.rank_rule, ("relative", "absolute"))
        check_rank(self)
        check.check_choice("step", self.step, ("auto", "metric", "robust", "strong"))
        if self.step_scale != "auto":
            check.check_positive("step_scale", self.step_scale)
        check.check_count("gradient_sample", self.gradient_sample)
        check.check_choice("fit_intercept", self.fit_intercept, ("auto", True, False))
        if self.step == "strong" and self.fit_intercept is True:
            raise ValueError(
                'step="strong" needs a problem that is strongly convex in all variables, and '
                "fit_intercept=True adds one that it is not in; set fit_intercept=False or "
                'step="robust".'
            )
        check.check_positive("intercept_bound", self.intercept_bound, optional=True)
        if self.average != "auto":
            check.check_average(self.average)
        check.check_choice("sampling", self.sampling, ("auto", "uniform", "shuffle", "given"))
        check.check_count("max_iter", self.max_iter, optional=True)
        check.check_positive("tol", self.tol, optional=True)
        check.check_flag("early_stopping", self.early_stopping)
        check.check_fraction("validation_fraction", self.validation_fraction)
        check.check_count("n_iter_no_change", self.n_iter_no_change)
        check.check_positive("time_limit", self.time_limit, optional=True)
        check.check_not_negative("memory_limit", self.memory_limit, optional=True)
        check.check_flag("warm_start", self.warm_start)

    @property
    def _free_intercept(self) -> bool:
        return self.step != "strong" if self.fit_intercept == "auto" else bool(self.fit_intercept)

    @property
    def _step(self) -> str:
        return "metric" if self.step == "auto" else self.step

    def _engine(self) -> LocalEngine:
        limit = None if self.memory_limit is None else int(self.memory_limit)
        return LocalEngine(n_threads=effective_n_jobs(self.n_jobs), memory_limit=limit)

    def _recipe(self, loss: Loss, lam: float, n_models: int, seed: int) -> Recipe:
        average = self.average
        if check.is_integer(average):
            average = int(average)
        return Recipe(
            loss=loss,
            lam=(lam,) * n_models,
            step=self._step,
            step_scale=None if self.step_scale == "auto" else float(self.step_scale),
            average=average,
            free_intercept=self._free_intercept,
            intercept_bound=self.intercept_bound,
            gradient_sample=int(self.gradient_sample),
            seed=seed,
        )

    def _draw_map(self, X, weight, seed, *, batch: bool) -> FeatureMap:
        """The map: drawn from these rows, or the one given as ``approximation``."""
        rng = np.random.default_rng([seed, 0])
        if isinstance(self.approximation, str):
            if self.approximation == "fourier":
                return draw_fourier(self, X, weight, rng)
            what = "rows of the first batch" if batch else "rows of X"
            return draw_nystroem(self, X, weight, rng, what, eigenbasis=self._step == "metric")
        given = getattr(self.approximation, "estimator", self.approximation)
        if not (hasattr(given, "fit") and hasattr(given, "transform")):
            raise ValueError(
                f"approximation={self.approximation!r} is neither a name nor a feature map; use "
                '"nystroem", "fourier", a NystroemMap or a FourierMap.'
            )
        if not hasattr(given, "features_"):
            given = clone(given).fit(X, sample_weight=weight)
        if given.features_.n_features_in != X.shape[1]:
            raise ValueError(
                f"approximation maps rows of {given.features_.n_features_in} features, and X has "
                f"{X.shape[1]}; fit the map on data with the same columns."
            )
        return given.features_

    def _map_key(self) -> tuple[Any, ...]:
        """The parameters that the map depends on."""
        names = ("kernel", "gamma", "degree", "coef0", "approximation", "n_components")
        names += ("rank", "rank_threshold", "rank_rule", "_step")
        return tuple(getattr(self, name) for name in names)

    # Training ---------------------------------------------------------------------------------

    def _validate_rows(self, X, y, sample_weight, *, reset, y_numeric):
        X, y = validate_data(
            self, X, y, accept_sparse="csr", dtype=FLOATS, reset=reset, y_numeric=y_numeric
        )
        weight = _check_sample_weight(sample_weight, X, dtype=np.float64)
        if (weight < 0).any():
            raise ValueError(
                f"sample_weight has a negative value ({weight.min():g}); weights must be 0 or above."
            )
        return X, y, weight

    @staticmethod
    def _drop_weightless(X, y, weight):
        """Rows of weight 0 are as good as absent: they are dropped."""
        keep = np.flatnonzero(weight)
        if len(keep) == 0:
            raise ValueError("sample_weight is 0 for every row; give some row a positive weight.")
        if len(keep) == len(weight):
            return X, y, weight
        return X[keep], y[keep], weight[keep]

    def _fit(self, X, y, sample_weight, *, y_numeric):
        begun = time.perf_counter()
        with self._all_or_nothing():
            self._check_parameters()
            rows = self._validate_rows(X, y, sample_weight, reset=True, y_numeric=y_numeric)
            X, y, weight = self._drop_weightless(*rows)
            random = check_random_state(self.random_state)
            seed = int(random.randint(np.iinfo(np.int32).max))
            held_out = None
            encoded = self._encode(y, weight)
            if self.early_stopping:
                train_rows, held_out = self._split(y, seed)
                held_out = (X[held_out], y[held_out], weight[held_out])
                X, y, weight = X[train_rows], y[train_rows], weight[train_rows]
                encoded = self._encode(y, weight, encoded.labels)
            plain_weight = None if (weight == weight[0]).all() else weight
            phi, metric, start = self._warm_parts(X, encoded)
            weight = self._final_weights(y, weight)
            if phi is None:
                phi = self._draw_map(X, plain_weight, seed, batch=False)
                if self._step == "metric":
                    metric = find_metric(phi, X, weight, seed)
            train_map = phi if metric is None else phi.in_metric(metric)
            lam = float(self.lam) if self.lam is not None else 1.0 / (self.C * weight.sum())
            K = encoded.targets.n_models
            recipe = self._recipe(encoded.loss, lam, K, seed)
            engine = self._engine()
            order, slope_weight = self._order(X.shape[0], weight, seed)
            training = TrainingRows(
                engine.rows(train_map, X),
                encoded.targets,
                order,
                weight,
                slope_weight,
                encoded.y_max,
                metric,
            )
            epochs = self.max_iter or max(FEWEST_EPOCHS, -(-FEWEST_STEPS // X.shape[0]))
            monitor = _Monitor(self, phi, metric, encoded, held_out, epochs, X, y)
            solution = train(
                engine,
                recipe,
                training,
                Stopping(
                    epochs,
                    tol=self.tol,
                    deadline=begun + self.time_limit if self.time_limit else float("inf"),
                    after_epoch=monitor,
                    chosen=monitor.chosen,
                ),
                start=start,
            )
            self._store(solution.coef, solution.intercept, phi, encoded)
            taken = int(solution.state.steps.max())
            self.t_ = taken + (self.t_ if start is not None and metric is not None else 0)
            self._keep_state(solution, recipe, phi, metric, weight, encoded)
            self.n_iter_ = solution.epochs
            self.history_ = solution.history
            self.lam_ = lam
            self.step_scale_ = solution.step_scale
            self.objective_ = float(solution.certificate.objective.sum())
            self.dual_gap_ = float(solution.certificate.dual_gap.sum())
            monitor.finish()
        if self.tol is not None and self.dual_gap_ > self.tol * self.objective_:
            warnings.warn(
                f"The duality gap is {self.dual_gap_ / max(self.objective_, 1e-300):.2g} of the "
                f"objective after {self.n_iter_} epochs, above tol={self.tol:g}; raise max_iter "
                "or tol.",
                ConvergenceWarning,
                stacklevel=3,
            )
        return self

    def _warm_parts(self, X, encoded):
        """The map, metric and iterates of an earlier fit, where ``warm_start`` can use them."""
        session = getattr(self, "_session", None)
        if not self.warm_start or session is None or self._map_key() != self._fitted_map_key:
            return None, None, None
        if session.phi.n_features_in != X.shape[1] or session.state.direction.dtype != X.dtype:
            return None, None, None
        if self._fitted_labels != encoded.labels:
            return None, None, None
        coef, intercept = self.coef_, self.intercept_ - encoded.offset
        # Steps that decay over this run count from its beginning; the paper's go on counting.
        steps = session.state.steps if session.metric is None else 0
        state = _state_at(coef, intercept, session.metric, X.dtype, steps)
        return session.phi, session.metric, state

    def _final_weights(self, y, weight):
        """Weights of (PL); a classifier multiplies those of its classes in."""
        return weight

    def _order(self, m, weight, seed):
        """The order of visits, and the multipliers of slopes where it ignores the weights."""
        uneven = None if (weight == weight[0]).all() else weight
        sampling = self.sampling
        if sampling == "auto":
            sampling = "shuffle" if self._step == "metric" else "uniform"
        if sampling == "uniform":
            return UniformOrder(m, seed, uneven), None
        order = ShuffledOrder(m, seed) if sampling == "shuffle" else GivenOrder(m)
        return order, None if uneven is None else weight / weight.mean()

    def _keep_state(self, solution: Solution, recipe, phi, metric, weight, encoded) -> None:
        """What partial_fit and warm_start go on from: the averaged model, at its step count."""
        state = _state_at(
            solution.coef, solution.intercept, metric, solution.state.direction.dtype, self.t_
        )
        session = OnlineSession(recipe, phi, float(weight.mean()), state)
        session.y_max, session.scale, session.metric = encoded.y_max, solution.step_scale, metric
        session.rows_seen = self.t_
        self._session, self._offset = session, encoded.offset
        self._fitted_map_key, self._fitted_labels = self._map_key(), encoded.labels

    def _partial_fit(self, X, y, sample_weight, known=None, *, y_numeric):
        first = not hasattr(self, "coef_")
        with self._all_or_nothing():
            self._check_parameters()
            if self.sampling == "uniform":
                raise ValueError(
                    'sampling="uniform" draws from all rows at any time, and partial_fit sees a '
                    'stream; set sampling to "auto", "given" or "shuffle" (within each batch).'
                )
            if not first and getattr(self, "_session", None) is None:
                raise ValueError(
                    "This model has no feature map to go on learning with (it was compacted); call "
                    "partial_fit on the model that it was made from."
                )
            rows = self._validate_rows(X, y, sample_weight, reset=first, y_numeric=y_numeric)
            X, y, weight = rows
            if not weight.any() and not first:
                return self
            X, y, weight = self._drop_weightless(X, y, weight)
            encoded = self._encode(y, weight, known, first=first)
            plain_weight = None if (weight == weight[0]).all() else weight
            weight = self._final_weights(y, weight)
            if first:
                seed = int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))
                lam = float(self.lam) if self.lam is not None else 1.0 / (self.C * weight.sum())
                if self.lam is None:
                    logger.info(
                        "partial_fit: lam=%g = 1 / (C * weight of the first batch) from now on", lam
                    )
                phi = self._draw_map(X, plain_weight, seed, batch=True)
                K = encoded.targets.n_models
                session = OnlineSession(
                    self._recipe(encoded.loss, lam, K, seed),
                    phi,
                    float(weight.mean()),
                    SolverState.zeros(K, phi.dimension, X.dtype),
                )
                self._offset, self.lam_, self.history_ = encoded.offset, lam, []
                self._fitted_map_key, self._fitted_labels = self._map_key(), encoded.labels
            else:
                session = self._session.copy()
                X = X.astype(session.state.direction.dtype, copy=False)
            certificate = session.update(
                self._engine(),
                X,
                encoded.targets,
                weight,
                encoded.y_max,
                shuffle=self.sampling == "shuffle",
            )
            coef, intercept = session.model
            self._store(coef, intercept, session.phi, encoded)
            self._session = session
            self.n_iter_, self.t_ = session.batches, int(session.state.steps.max())
            self.step_scale_ = session.scale
            self.objective_ = float(certificate.objective.sum())
            self.dual_gap_ = float(certificate.dual_gap.sum())
        return self

    def _store(self, coef, intercept, phi: FeatureMap, encoded: Encoded) -> None:
        """The public face of a model."""
        for name, value in _public_parts(coef, intercept, phi, encoded).items():
            setattr(self, name, value)

    # Prediction -------------------------------------------------------------------------------

    def _decide(self, X) -> np.ndarray:
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", dtype=FLOATS, reset=False)
        return self._decision(X)

    def compact(self):
        """A copy that predicts from d kernel values instead of s, where the map has d < s.

        Any coef is a combination of the features of d well-chosen landmarks (the paper's
        "Efficient Prediction"); the decisions change by the error of the kernel approximation.

        Returns
        -------
        model : estimator of the same class
            With d ``components_`` and ``compact_error_``, the largest change of a decision on the
            landmarks. It predicts, and cannot go on learning.
        """
        check_is_fitted(self)
        phi = self.feature_map_
        if not isinstance(phi, NystroemFeatures):
            raise ValueError(
                'approximation="fourier" has no landmarks to choose from; its prediction already '
                "costs d features."
            )
        chosen, weights = phi.compact(self.coef_)
        model = clone(self)
        model.__dict__.update({k: v for k, v in self.__dict__.items() if _is_result(k)})
        model._session = model.feature_map_ = None
        model.components_ = phi.components[chosen]
        if phi.indices is not None:
            model.component_indices_ = phi.indices[chosen]
        model.dual_coef_ = weights
        basis = KernelBasis(phi.kernel, model.components_)
        model._decision = Decision(basis, weights, self.intercept_)
        change = model._decision(phi.components) - self._decision(phi.components)
        model.compact_error_ = float(np.abs(change).max())
        return model


def _is_result(name: str) -> bool:
    """Attributes that a fit writes: public ones end in "_", private ones are these."""
    private = ("_session", "_decision", "_offset", "_fitted_map_key", "_fitted_labels")
    return name in private or (name.endswith("_") and not name.startswith("_"))


def _public_parts(coef, intercept, phi: FeatureMap, encoded: Encoded) -> dict[str, Any]:
    intercept = np.asarray(intercept, dtype=np.float64) + encoded.offset
    weights = phi.decision_weights(coef)
    parts = {
        "coef_": np.asarray(coef, dtype=np.float64),
        "intercept_": intercept,
        "feature_map_": phi,
        "n_components_": phi.dimension,
        "_decision": Decision(phi, weights, intercept),
    }
    if isinstance(phi, NystroemFeatures):
        parts["dual_coef_"] = weights
        parts["components_"] = phi.components
        parts["component_indices_"] = phi.indices
        parts["gamma_"] = phi.kernel.gamma
    return parts


def _state_at(coef, intercept, metric, dtype, steps) -> SolverState:
    """A state whose iterate is this model, in the metric's basis, at these step counts."""
    K, d = coef.shape
    state = SolverState.zeros(K, d, dtype)
    state.direction[:] = coef if metric is None else metric.invert(coef)
    state.intercept[:] = intercept
    state.steps[:] = steps
    return state


class _Monitor:
    """Looks on after every epoch: early stopping, callbacks, the log."""

    def __init__(self, estimator, phi, metric, encoded, held_out, epochs, X, y):
        self.estimator, self.phi, self.metric, self.encoded = estimator, phi, metric, encoded
        self.callbacks = EpochCallbacks(estimator, epochs, X, y)
        self.held_out, self.best, self.waited = None, None, 0
        if held_out is not None:
            X_out, y_out, weight = held_out
            self.held_out = (phi(X_out), y_out, weight)
        if estimator.verbose:
            _show_log()

    def __call__(self, epoch, model, record) -> bool:
        coef, intercept = model
        if self.metric is not None:
            coef = self.metric.apply(coef)
        stop = False
        if self.held_out is not None:
            V, y, weight = self.held_out
            decisions = V @ coef.T.astype(V.dtype) + (intercept + self.encoded.offset)
            score = self.estimator._validation_score(decisions, y, weight)
            record["validation_score"] = score
            if self.best is None or score > self.best[0]:
                self.best, self.waited = (score, model), 0
            else:
                self.waited += 1
            stop = self.waited >= self.estimator.n_iter_no_change
        if self.estimator.verbose:
            logger.info(
                "epoch %d: %s",
                epoch,
                ", ".join(f"{k} {v:.6g}" for k, v in record.items() if k != "epoch"),
            )
        parts = lambda: _public_parts(coef, intercept, self.phi, self.encoded)  # noqa: E731
        return self.callbacks.epoch_end(parts) or stop

    def chosen(self):
        """The model of the best epoch, where there was a contest."""
        return None if self.best is None else self.best[1]

    def finish(self) -> None:
        """Tell the callbacks that the fit has ended."""
        self.callbacks.fit_end()


def _show_log() -> None:
    """Let ``verbose`` be seen where the application has set up no logging."""
    if not logger.handlers and not logging.getLogger().handlers:
        logger.addHandler(logging.StreamHandler())
    if logger.getEffectiveLevel() > logging.INFO:
        logger.setLevel(logging.INFO)


