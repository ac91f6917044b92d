"""What AssetClassifier and AssetRegressor share: parameters and their translation, decisions.

An estimator validates once, translates its parameters into the paper's objects (``Recipe``), has
``backends`` do the work (through ``learner``), and stores what comes back.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import joblib
import numpy as np
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.utils.validation import check_is_fitted

from asset_svm.backends.base import Backend
from asset_svm.backends.cpu import CpuBackend
from asset_svm.data import Targets
from asset_svm.settings import checks as check
from asset_svm.estimators.callbacks import CallbackSupportMixin
from asset_svm.families.cells.partitions import resolve_cells
from asset_svm.families.decision import Decision
from asset_svm.backends.device import (
    card_backend,
    check_card_rows,
    goes_to_card,
    on_card,
    on_host,
)
from asset_svm.estimators.validation import results, validate_rows
from asset_svm.settings.landmarks import check_landmarks, sampler_of
from asset_svm.families.one_map.maps import (
    DEFAULT_COMPONENTS,
    FOURIER_KINDS,
    check_rank,
    draw_fourier,
    draw_nystroem,
    resolve_components,
    resolve_landmarks,
)
from asset_svm.estimators.transformers import FourierMap, NystroemMap
from asset_svm.estimators.vocabulary import SpeaksOfSVC
from asset_svm.features import FeatureMap, NystroemFeatures
from asset_svm.features.nystroem import KernelBasis
from asset_svm.losses import Loss
from asset_svm.training.recipe import Recipe, StepKind


@dataclass(frozen=True, eq=False)
class Encoded:
    """Targets as the solver sees them."""

    targets: Targets
    loss: Loss
    y_max: float
    offset: float = 0.0
    labels: tuple[Any, ...] | None = None


class AssetEstimator(CallbackSupportMixin, SpeaksOfSVC):
    """The common part; not for use by itself."""

    # scikit-learn's own protocol --------------------------------------------------------------

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def __sklearn_is_fitted__(self):
        return hasattr(self, "_decision")

    # Parameters -------------------------------------------------------------------------------

    def _check_parameters(self) -> None:
        check.check_kernel(self.kernel, self.gamma, self.degree, self.coef0)
        check.check_positive("C", self.C)
        check.check_positive("lam", self.lam, optional=True)
        given = self.approximation
        if isinstance(given, FrozenEstimator):
            given = given.estimator
        if not isinstance(given, NystroemMap | FourierMap):
            check.check_choice("approximation", given, ("nystroem", "fourier"))
        if not (isinstance(self.n_components, str) and self.n_components == "auto"):
            check.check_count("n_components", self.n_components, optional=True)
        check_landmarks(self.landmarks, self.n_components, supervised=True)
        check.check_choice("fourier", self.fourier, FOURIER_KINDS)
        check.check_choice("rank_rule", self.rank_rule, ("relative", "absolute"))
        check_rank(self)
        if not (isinstance(self.n_cells, str) and self.n_cells == "auto"):
            check.check_count("n_cells", self.n_cells, optional=True)
        check.check_count("n_partitions", self.n_partitions)
        check.check_choice("step", self.step, ("auto", "metric", "robust", "strong"))
        if not (isinstance(self.step_scale, str) and self.step_scale == "auto"):
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
        if not (isinstance(self.average, str) and self.average == "auto"):
            check.check_average(self.average)
        check.check_choice("sampling", self.sampling, ("auto", "uniform", "shuffle", "given"))
        check.check_epochs(self.max_iter)
        check.check_positive("tol", self.tol, optional=True)
        check.check_flag("early_stopping", self.early_stopping)
        check.check_fraction("validation_fraction", self.validation_fraction)
        check.check_count("n_iter_no_change", self.n_iter_no_change)
        check.check_positive("time_limit", self.time_limit, optional=True)
        check.check_not_negative("memory_limit", self.memory_limit, optional=True)
        check.check_flag("warm_start", self.warm_start)
        check.check_jobs(self.n_jobs)
        check.check_choice("device", self.device, ("cpu", "cuda", "auto"))
        check.check_choice("precision", self.precision, ("float32", "float16"))
        check.check_level("verbose", self.verbose)

    @property
    def _free_intercept(self) -> bool:
        if self.fit_intercept == "auto":
            return self.step != "strong" and self.n_cells is None
        return bool(self.fit_intercept)

    @property
    def _step(self) -> StepKind:
        return "metric" if self.step == "auto" else self.step

    @property
    def _centred(self) -> bool:
        """Whether the mean is taken off features.

        Not with the paper's steps, which are those of the paper's map, nor where the intercept has a
        bound of the user's: it is meant for features as they are.
        """
        free = self._free_intercept and self.intercept_bound is None
        return self._step == "metric" and free

    def _backend(self, X) -> Backend:
        """Who does the work on these rows."""
        if self._on_card(X):
            limit = None if self.memory_limit is None else int(self.memory_limit)
            return card_backend(limit, self.precision)
        return self._host_backend()

    def _host_backend(self) -> CpuBackend:
        """This machine's own cores, whatever ``device`` says."""
        limit = None if self.memory_limit is None else int(self.memory_limit)
        return CpuBackend(n_threads=joblib.effective_n_jobs(self.n_jobs), memory_limit=limit)

    def _on_card(self, X) -> bool:
        """Whether ``device`` sends these rows to the card."""
        if self.n_cells is not None:
            width = X.shape[0] // resolve_cells(self.n_cells, X.shape[0])  # kernel values a row
        else:
            known = check.is_integer(self.n_components)
            width = self.n_components if known else DEFAULT_COMPONENTS
        return goes_to_card(self.device, X, width)

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
            intercept_bound=None if self.intercept_bound is None else float(self.intercept_bound),
            gradient_sample=int(self.gradient_sample),
            seed=seed,
        )

    def _draw_map(
        self, backend: Backend, X, weight, seed, *, n_components=None, margin=None
    ) -> FeatureMap:
        """The map: drawn for these rows, or the one given as ``approximation``.

        ``n_components`` is the number where the parameter of that name has none. ``margin`` makes the
        sampler of landmarks="margin" for a number of them.
        """
        rng = np.random.default_rng([seed, 0])
        if isinstance(self.approximation, str):
            count = n_components if self.n_components == "auto" else self.n_components
            if self.approximation == "fourier":
                count = resolve_components(count)
                return draw_fourier(self, X, weight, rng, count, centred=self._centred)
            count = resolve_landmarks(self, X, weight, count)
            by_margin = isinstance(self.landmarks, str) and self.landmarks == "margin"
            if by_margin and margin is None:
                raise ValueError(
                    'landmarks="margin" needs a first fit on rows in memory; choose another, for '
                    'example "rpcholesky".'
                )
            sampler = margin(count) if by_margin else sampler_of(self.landmarks)
            return draw_nystroem(
                self,
                X,
                weight,
                rng,
                count,
                sampler,
                eigenbasis=self._step == "metric",
                centred=self._centred,
                features=backend.nystroem,
            )
        given = self.approximation
        if isinstance(given, FrozenEstimator):
            given = given.estimator
        if not hasattr(given, "features_"):
            given = clone(given)
            if given.random_state is None:
                given.set_params(random_state=seed)
            given.fit(on_host(X), sample_weight=weight)
        if given.features_.n_features_in != X.shape[1]:
            raise ValueError(
                f"approximation maps rows of {given.features_.n_features_in} features, and X has "
                f"{X.shape[1]}; fit the map on data with the same columns."
            )
        return given.features_

    def _map_key(self) -> tuple[Any, ...]:
        """The parameters that the map depends on."""
        names = ["kernel", "gamma", "degree", "coef0", "approximation", "n_components", "fourier"]
        names += ["rank", "rank_threshold", "rank_rule", "_step", "_centred"]
        # Arrays have no equality of their own.
        return (*(getattr(self, name) for name in names), joblib.hash(self.landmarks))

    # Prediction -------------------------------------------------------------------------------

    def _store(self, coef, intercept, phi: FeatureMap, encoded: Encoded) -> None:
        """The public face of a model."""
        for name, value in public_parts(coef, intercept, phi, encoded).items():
            setattr(self, name, value)

    def _decide(self, X) -> np.ndarray:
        check_is_fitted(self)
        X = self._checked(X, reset=False)
        if self._on_card(X) and not self._decision.alone:
            return self._decision.on_card(card_backend(None, self.precision), X)
        return self._decision(on_host(X))

    def _checked(self, X, *, reset: bool):
        """Rows that can be worked on: an array, a CSR matrix, or a tensor on the card."""
        if on_card(X):
            return check_card_rows(self, X, reset=reset)
        return validate_rows(self, X, reset=reset)

    def compiled(self, method="predict"):
        """A plain function for serving: no validation, no checks, no overhead.

        Parameters
        ----------
        method : {"predict", "decision_function"}
            The latter for classifiers.

        Returns
        -------
        function : callable
            Takes an array of one row, of shape (n_features,), and returns its value, or of rows, of
            shape (m, n_features), and returns an array. Rows are taken in the type of the landmarks
            (float32 for Fourier features). It keeps no link to the estimator. Rows that are not
            finite, or of another length, are the caller's care.
        """
        check_is_fitted(self)
        finish = self._finisher(method)
        dtype = self._decision.dtype
        decide = self._decision.unchecked(dtype)

        def function(X):
            X = np.asarray(X, dtype=dtype)
            return finish(decide(X[None, :]))[0] if X.ndim == 1 else finish(decide(X))

        return function

    def _check_one_map(self, method: str) -> None:
        check_is_fitted(self)
        if hasattr(self, "cells_"):
            raise ValueError(
                f"{method} needs one map for all rows, and this model has {self.n_cells_} cells; fit "
                "with n_cells=None."
            )

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
        self._check_one_map("compact")
        phi = self.feature_map_
        if phi is None:
            raise ValueError("This model is compact already; it predicts from d kernel values.")
        if not isinstance(phi, NystroemFeatures):
            raise ValueError(
                'approximation="fourier" has no landmarks to choose from; its prediction already '
                "costs d features."
            )
        chosen, weights = phi.compact(self.coef_)
        model = clone(self)
        model.__dict__.update(results(self))
        model._session = model.feature_map_ = None
        model.components_ = phi.components[chosen]
        if self.component_indices_ is not None:
            model.component_indices_ = self.component_indices_[chosen]
        model.dual_coef_ = weights
        basis = KernelBasis(phi.kernel, model.components_, wide=phi.wide)
        model._decision = Decision(basis, weights, self.intercept_)
        change = model._decision(phi.components) - self._decision(phi.components)
        model.compact_error_ = float(np.abs(change).max())
        return model


def public_parts(coef, intercept, phi: FeatureMap, encoded: Encoded) -> dict[str, Any]:
    """The attributes that make a model predict."""
    decision = decision_of(coef, intercept, phi, encoded)
    parts = {
        "coef_": np.asarray(coef, dtype=np.float64),
        "intercept_": decision.intercept,
        "feature_map_": phi,
        "n_components_": phi.dimension,
        "_decision": decision,
    }
    if isinstance(phi, NystroemFeatures):
        parts["dual_coef_"] = decision.weights
        parts["components_"] = phi.components
        parts["component_indices_"] = phi.indices
        parts["approximation_error_"] = phi.trace_error
        parts["gamma_"] = phi.kernel.gamma
    return parts


def decision_of(coef, intercept, phi: FeatureMap, encoded: Encoded) -> Decision:
    """The decision function of phi(x).coef + intercept, from the plain values of the map's basis."""
    intercept = np.asarray(intercept, dtype=np.float64) + encoded.offset - phi.drift(coef)
    return Decision(phi.plain, phi.decision_weights(coef), intercept)


def inner_intercept(estimator: Any, phi: FeatureMap, offset: float) -> np.ndarray:
    """The intercepts of a model as training sees them: beside phi(x).coef, for targets less offset."""
    return estimator.intercept_ - offset + phi.drift(estimator.coef_)
