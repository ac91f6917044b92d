"""Learner: what AssetClassifier and AssetRegressor share, from what users pass to stored attributes.

An estimator turns its parameters into ``Settings`` and a ``Task``, checks rows once, has a family train
a model, and keeps what comes back: ``_fitted``, and its public face.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from asset_svm import clock
from asset_svm.backends.device import as_type, on_card, on_host
from asset_svm.data import GivenOrder
from asset_svm.data.source import RowSource
from asset_svm.estimators.callbacks import FitObserver, SeenByCallbacks, with_callbacks
from asset_svm.estimators.encoded import (
    by_columns,
    check_table,
    encoder_for,
    gradients_by_columns,
)
from asset_svm.estimators.files import fit_rows
from asset_svm.estimators.settled import check_kernel, check_settled
from asset_svm.estimators.tables import TableEncoder
from asset_svm.estimators.validation import (
    FROM_VALIDATION,
    all_or_nothing,
    check_card_rows,
    check_card_targets,
    check_weight,
    face_of,
    forget,
    results,
    validate_rows,
)
from asset_svm.estimators.vocabulary import SpeaksOfSVC
from asset_svm.families import Fitted, Trained, family_of, family_of_model
from asset_svm.families.beginning import learn
from asset_svm.families.cells import FittedCells
from asset_svm.families.constant import warn_of_constant
from asset_svm.families.observing import Watch, shown
from asset_svm.families.one_map import FittedMap
from asset_svm.families.one_map.drawn import DrawnMap
from asset_svm.families.one_map.keeping import Keeper
from asset_svm.families.relevance.fitted import FittedRelevance
from asset_svm.families.relevance.wrapping import inner_settings
from asset_svm.families.rows import Rows
from asset_svm.features import Metric, NystroemFeatures
from asset_svm.features.relevance import Learnt
from asset_svm.settings import Settings
from asset_svm.settings import checks as check
from asset_svm.tasks import Task, for_targets
from asset_svm.threads.blas import few_threads
from asset_svm.threads.granted import count_threads, grant
from asset_svm.training.certificate import certify_rows
from asset_svm.training.rows import TrainingRows

NO_WEIGHTS = "there are no weights of columns"
FEW_ROWS = 256
"""So many rows are predicted by one thread: to count those that there are takes longer."""
NO_WEIGHT = "Every row has weight 0; give some row a positive weight."


class Learner(SeenByCallbacks, SpeaksOfSVC):
    """An estimator that learns; not for use by itself. Subclasses say what they learn."""

    _fitted: Fitted
    encoder_: TableEncoder | None
    _methods: tuple[str, ...] = ("predict",)
    """The methods that ``compiled`` knows."""
    _several_outputs = True
    """Whether targets may have several columns."""

    # scikit-learn's own protocol --------------------------------------------------------------

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.multi_output = self._several_outputs
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return "_fitted" in self.__dict__

    # Parameters -------------------------------------------------------------------------------

    def _settings(self) -> Settings:
        """The parameters, checked and frozen."""
        settings = Settings.of(self.get_params(deep=False))
        loss = self._task(settings).loss
        if loss.cuda is not None or settings.device == "cpu":
            return settings
        if settings.device == "cuda":
            raise ValueError(
                f'device="cuda" has no steps for the {loss.kind} loss; set device="cpu", or "auto".'
            )
        return settings.changed(device="cpu")

    def _task(self, settings: Settings, classes: Any = None, before: Task | None = None) -> Task:
        """What is learnt; ``before`` is what a model that has begun has learnt."""
        raise NotImplementedError

    def _in_units(self, task: Task, y: np.ndarray, weight: np.ndarray) -> tuple[Task, np.ndarray]:
        """The task with the units of its targets, and these in them; the same where it has none."""
        return task, y

    # The model --------------------------------------------------------------------------------

    def _adopt(self, fitted: Fitted) -> None:
        """Take a model as that of a fit of this estimator."""
        forget(self, keep=FROM_VALIDATION)
        self.__dict__.update(face_of(fitted))
        encoder, shares = self.__dict__.get("encoder_"), self.__dict__.get("feature_importances_")
        if encoder is not None and shares is not None:
            self.feature_importances_ = by_columns(encoder.encoding_, shares)

    def _copy_with(self, fitted: Fitted) -> Self:
        """An estimator like this one, with another model."""
        model = type(self)(**self.get_params(deep=False))
        model.__dict__.update(results(self))
        model._adopt(fitted)
        return model

    # Rows -------------------------------------------------------------------------------------

    def _check_rows(
        self,
        task: Task,
        X: Any,
        y: Any,
        sample_weight: Any,
        *,
        first: bool,
        encoded: bool = False,
        means: bool = True,
    ) -> tuple[Task, Rows] | None:
        """The settled task, and checked rows of positive weight; None where there are none.

        Rows that are ``encoded`` already are numbers. Without ``means`` no target has a part in those
        that are made of a table.
        """
        encoder = None
        if not encoded:
            encoder = encoder_for(self.encoder, X) if first else self.__dict__.get("encoder_")
        if encoder is not None:
            X, y, weight = check_table(
                encoder,
                task,
                X,
                y,
                sample_weight,
                first=first,
                means=means,
                in_units=self._in_units,
            )
            self._take_encoder(encoder)
        else:
            if on_card(X):
                X = check_card_rows(self, X, reset=first)
                y = check_card_targets(X, y, numeric=task.numeric)
            else:
                X, y = validate_rows(self, X, y, reset=first, y_numeric=task.numeric)
            weight = check_weight(on_host(sample_weight), y, part=not first)
            if first:
                self.encoder_ = None
        task = for_targets(task, y, first=first)
        rows = Rows(X, y, weight, weight, np.arange(len(y)))
        rows = rows.take(np.flatnonzero(weight))
        if len(rows.y) == 0:
            return None
        task, inside = self._in_units(task, rows.y, rows.weight)
        rows = replace(rows, y=inside)
        if first:
            task = task.settled(rows.y, rows.weight)
        task.encode(rows.y)
        factor = task.class_weights(rows.y, rows.weight)
        if factor is not None:
            rows = replace(rows, weight=rows.weight * factor)
            rows = rows.take(np.flatnonzero(rows.weight))
            if len(rows.y) == 0:
                return None
        return task, rows

    def _take_encoder(self, encoder: TableEncoder) -> None:
        """Take tables as this encoder does."""
        self.encoder_, self.n_features_in_ = encoder, encoder.n_features_in_
        self.__dict__.pop("feature_names_in_", None)
        if hasattr(encoder, "feature_names_in_"):
            self.feature_names_in_ = encoder.feature_names_in_

    # All rows at once -------------------------------------------------------------------------

    @with_callbacks
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Train on all rows.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features), or RowSource
            A source (``asset_svm.open_rows``) brings its targets, and may be larger than memory.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
        sample_weight : array-like of shape (n_samples,), optional

        Returns
        -------
        self
        """
        if isinstance(X, RowSource):
            return fit_rows(self, X, y, sample_weight)
        self._warn(*self._train(X, y, sample_weight))
        return self

    def _fit_watched(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        watch: Watch | None = None,
        searched: bool = False,
        columns: Sequence[str] | None = None,
        encoder: TableEncoder | None = None,
        drawn: DrawnMap | None = None,
        keeper: Keeper | None = None,
        settings: Settings | None = None,
        learnt: Learnt | None = None,
    ) -> Self:
        """Train on all rows, as ``fit`` does, while somebody looks on.

        Parameters
        ----------
        X, y, sample_weight
            As for ``fit``.
        watch : callable, optional
            Called with records of the progress; returning True ends the fit, which leaves the model of
            that moment.
        searched : bool
            Whether the parameters are the best of many, so that a poor model is no surprise.
        columns : sequence of str, optional
            The names of the columns, where X has none.
        encoder : TableEncoder, optional
            What has made the rows of X of a table.
        drawn, keeper, settings, learnt
            As for ``_train``.

        Returns
        -------
        self
        """
        settings, trained = self._train(
            X,
            y,
            sample_weight,
            watch,
            drawn=drawn,
            keeper=keeper,
            settings=settings,
            encoded=encoder is not None,
            learnt=learnt,
        )
        if encoder is not None:
            self._take_encoder(encoder)
            self._adopt(trained.fitted)
        elif columns is not None:
            self.feature_names_in_ = np.array(columns, dtype=object)
        self._warn(settings, trained, searched=searched)
        return self

    @with_callbacks
    def _train(
        self,
        X: Any,
        y: Any,
        sample_weight: Any,
        watch: Watch | None = None,
        *,
        drawn: DrawnMap | None = None,
        keeper: Keeper | None = None,
        settings: Settings | None = None,
        encoded: bool = False,
        learnt: Learnt | None = None,
    ) -> tuple[Settings, Trained[Any]]:
        """Train on all rows.

        ``drawn`` is the map that this fit would draw, where it is known; ``keeper`` saves the run;
        ``settings`` are those of this estimator, where they are known; rows may be ``encoded`` already;
        ``learnt`` is the relevance to take, in place of learning one.
        """
        begun = clock.now()
        with all_or_nothing(self), shown(self.verbose):
            settings = self._settings() if settings is None else settings
            family = family_of(settings)
            family.check(settings)
            task = self._task(settings)
            found = self._check_rows(task, X, y, sample_weight, first=True, encoded=encoded)
            if found is None:
                raise ValueError(NO_WEIGHT)
            task, rows = found
            observer = FitObserver(self, rows.X, rows.y, watch)
            before = self.__dict__.get("_fitted")
            given = {"keeper": keeper, "learnt": learnt}
            options = {name: value for name, value in given.items() if value is not None}
            with grant(settings.n_threads):
                trained = family.fit(settings, task, rows, begun, observer, before, drawn, **options)
            self._adopt(trained.fitted)
        return settings, trained

    def _warn(self, settings: Settings, trained: Trained[Any], *, searched: bool = False) -> None:
        """Warn where the model is not what it should be; ``searched``: it is the best of many."""
        family_of(settings).warn(settings, trained)
        rows, names = trained.rows, getattr(self, "feature_names_in_", None)
        if (encoder := self.__dict__.get("encoder_")) is not None:
            names = encoder.get_feature_names_out()
        warn_of_constant(
            settings, trained.fitted, rows.X, rows.y, rows.weight, names, searched=searched
        )

    def certify(self, X: Any, y: Any, sample_weight: Any = None) -> tuple[float, float]:
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
        fitted = self._on_one_map("certify")
        if fitted.session is None or fitted.phi is None or fitted.coef is None:
            raise ValueError(
                f"certify needs the feature map of a model, and this has none: {fitted.fixed}."
            )
        settings = self._settings()
        task = self._task(settings, before=fitted.task)
        found = self._check_rows(task, X, y, sample_weight, first=False)
        if found is None:
            raise ValueError(NO_WEIGHT)
        rows, encoded = found[1], task.encode(found[1].y)
        if isinstance(self._fitted, FittedRelevance):
            settings = inner_settings(settings, self._fitted.learnt)
            rows = self._fitted.mapped(rows)
        phi, metric = fitted.phi, fitted.session.metric
        dtype = fitted.session.state.direction.dtype
        training = TrainingRows(
            settings.backend(rows.X).rows(
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
        recipe = settings.recipe(encoded.loss, fitted.lam, task.n_models, 0)
        coef = fitted.coef if metric is None else metric.invert(fitted.coef)
        model = (coef, fitted.intercept_of(phi))
        with grant(settings.n_threads):
            certificate = certify_rows(training, recipe, model, tight=True)
        return float(certificate.objective.sum()), float(certificate.dual_gap.sum())

    # A batch after the other ------------------------------------------------------------------

    def _partial_fit(self, X: Any, y: Any, sample_weight: Any, classes: Any = None) -> Self:
        before = self.__dict__.get("_fitted")
        with all_or_nothing(self), shown(self.verbose):
            settings = self._settings()
            family_of(settings).check(settings)
            _check_stream(settings)
            known = None if before is None else before.task
            if known is not None:
                transform = getattr(self, "target_transform", None)
                check_settled(known, self._task(settings), transform)
                check_kernel(before, settings)
            task = self._task(settings, classes, known)
            task.check_stream()
            found = self._check_rows(task, X, y, sample_weight, first=before is None)
            if found is not None:
                family = family_of(settings) if before is None else family_of_model(before)
                with grant(settings.n_threads), few_threads(0):  # BLAS's would wait for each other
                    self._adopt(learn(family, settings, found[0], before, found[1], len(y)))
            elif before is None:
                raise ValueError(NO_WEIGHT)
        return self

    # Prediction -------------------------------------------------------------------------------

    def _decide(self, X: Any) -> np.ndarray:
        decision = self._fitted.decision
        n_jobs = self.n_jobs if check.is_jobs(self.n_jobs) else None  # what a fit would refuse
        few = len(getattr(X, "shape", ())) == 2 and X.shape[0] <= FEW_ROWS
        with grant(1 if few else count_threads(n_jobs)):
            return self._decided(decision, self._checked(X))

    def gradients(self, X: Any) -> np.ndarray:
        """The gradient of every decision by the columns of X: what moves it, and which way.

        Those of ``decision_function``, of pairs of classes with ``multi_class="ovo"``, or of the values
        that a regression predicts. In a model of cells they are those inside the cell of a row, and the
        mean over partitions. Computed on the host.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        gradients : ndarray of shape (n_samples, n_features), or (n_samples, n_models, n_features)
            In float64; the latter where there are more than two classes, or several outputs. NaN for
            columns of an encoded table that are no numbers, and where a number is missing. Where a
            term of the sum has a kink, in the exponential kernel at a landmark, or in the laplacian
            where a column has the value of a landmark's, that term counts 0.
        """
        decision = self._fitted.decision
        n_jobs = self.n_jobs if check.is_jobs(self.n_jobs) else None
        with grant(count_threads(n_jobs)):
            rows = on_host(self._checked(X))
            found: np.ndarray = decision.gradients(rows)
            found = self._shown_gradients(found, decision(rows))
        if (encoder := self.__dict__.get("encoder_")) is not None:
            found = gradients_by_columns(encoder.encoding_, encoder.table(X), found)
        return found[:, 0] if found.shape[1] == 1 else found

    def _shown_gradients(self, gradients: np.ndarray, decisions: np.ndarray) -> np.ndarray:
        """Those of what a user sees, from (rows, K, columns) gradients of (rows, K) decisions."""
        slopes = self._fitted.task.slopes(decisions)
        return gradients if slopes is None else gradients * slopes[:, :, None]

    def _decided(self, decision: Any, X: Any) -> np.ndarray:
        if self.device != "cpu" or on_card(X):
            settings = self._settings()
            if settings.goes_to_card(X) and not decision.alone:
                return decision.on_card(settings.card(), X)
        return decision(on_host(X))

    def _predictions(self, decisions: np.ndarray) -> np.ndarray:
        """The predictions of rows that have these (rows, K) decisions."""
        return self._fitted.task.predict(decisions)

    def _checked(self, X: Any) -> Any:
        """Rows that can be worked on: an array, a CSR matrix, or a tensor on the card."""
        if (encoder := self.__dict__.get("encoder_")) is not None:
            return encoder.rows(X)
        if on_card(X):
            return check_card_rows(self, X, reset=False)
        return validate_rows(self, X, reset=False)

    def compiled(self, method: str = "predict") -> Callable[[Any], Any]:
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
            finite, or of another length, are the caller's care. A model of encoded tables takes rows
            of numbers that ``encoder_.transform`` has made.
        """
        decision, finish = self._fitted.decision, self._finisher(method)
        dtype = decision.dtype
        decide = decision.unchecked(dtype)

        def function(X: Any) -> Any:
            X = np.asarray(X, dtype=dtype)
            return finish(decide(X[None, :]))[0] if X.ndim == 1 else finish(decide(X))

        return function

    def _finisher(self, method: str) -> Callable[[np.ndarray], np.ndarray]:
        """The function from decisions to what ``method`` returns."""
        check.check_choice("method", method, self._methods)
        task = self._fitted.task
        return task.predict if method == "predict" else task.decisions

    @property
    def coef_(self) -> np.ndarray:
        """The weights of the columns, (K, n_features), where the kernel is linear."""
        source, weights = _landmarks_of(self._fitted)
        if source is None or not source.kernel.is_linear:
            raise AttributeError(NO_WEIGHTS)  # told by ``__getattr__``
        return np.asarray(weights @ source.components)

    def __getattr__(self, name: str) -> Any:
        """Say what to use instead of an attribute that is not there."""
        if name in ("fitted", "_fitted"):
            check_is_fitted(self)
        if name == "coef_" and "_fitted" in self.__dict__:
            raise AttributeError(_without_weights(self._fitted, self.kernel))
        fixed = getattr(self.__dict__.get("_fitted"), "fixed", None)
        if name in ("feature_map_", "map_coef_") and fixed is not None:
            raise AttributeError(
                f"{name} is not there, since this model cannot go on learning: {fixed}."
            )
        return super().__getattr__(name)

    def _on_one_map(self, method: str) -> FittedMap:
        fitted = _behind(self._fitted)
        if isinstance(fitted, FittedMap):
            return fitted
        raise ValueError(
            f"{method} needs one map for all rows, and this model has {self.n_cells_} cells; fit "
            "with n_cells=None."
        )

    def compact(self) -> Self:
        """A copy that predicts from d kernel values instead of s, where the map has d < s.

        Any coef is a combination of the features of d well-chosen landmarks (the paper's
        "Efficient Prediction"); the decisions change by the error of the kernel approximation.

        Returns
        -------
        model : estimator of the same class
            With d ``components_`` and ``compact_error_``, the largest change of a decision on the
            landmarks. It predicts, and cannot go on learning.
        """
        fitted = self._on_one_map("compact")
        if fitted.phi is None:
            raise ValueError(
                f"compact needs the feature map of a model, and this has none: {fitted.fixed}."
            )
        if not isinstance(fitted.phi, NystroemFeatures):
            raise ValueError(
                'approximation="fourier" has no landmarks to choose from; its prediction already '
                "costs d features."
            )
        compacted: Fitted = fitted.compacted()
        if isinstance(self._fitted, FittedRelevance):
            compacted = replace(self._fitted, inner=compacted)
        return self._copy_with(compacted)


def _behind(fitted: Fitted) -> Any:
    """The model itself, behind a learnt relevance where it has one."""
    return fitted.inner if isinstance(fitted, FittedRelevance) else fitted


def _landmarks_of(fitted: Fitted) -> tuple[Any, Any]:
    """(landmarks with their kernel, weights) of a model that has one such sum, else None."""
    fitted = _behind(fitted)
    decision: Any = fitted.decision
    if isinstance(fitted, FittedCells):
        parts = fitted.decision.parts
        decision = parts[0].decisions[0] if fitted.support is not None else None
    source = getattr(decision, "source", None)
    return (source, decision.weights) if hasattr(source, "components") else (None, None)


def _without_weights(fitted: Fitted, kernel: Any) -> str:
    """Why a model has no weights of columns, and what it has instead."""
    what = "coef_ has the weights of columns, which a linear kernel has on one map or in one exact cell"
    fitted = _behind(fitted)
    if isinstance(fitted, FittedCells):
        return f"{what}, and this model has other cells (kernel={fitted.kernel.name!r}); see cells_."
    named = getattr(getattr(fitted.decision, "source", None), "kernel", None)
    shown = kernel if named is None else named.name
    return f"{what}, and this model has kernel={shown!r}; the coefficients of features are map_coef_."


def check_cells(settings: Settings, task: Task) -> None:
    """Raise where cells are asked for, and the loss of a task has no exact solver."""
    if settings.n_cells is not None and not task.loss.suits_cells:
        raise ValueError(
            f'n_cells={settings.n_cells!r} solves cells exactly, and loss="{task.loss.kind}" has no '
            "such solver, since every row is a support vector; set n_cells=None, or "
            'loss="squared_hinge".'
        )


def _check_stream(settings: Settings) -> None:
    """Raise where a parameter makes no sense for rows that come one batch after the other."""
    if settings.sampling == "uniform":
        raise ValueError(
            'sampling="uniform" draws from all rows at any time, and partial_fit sees a '
            'stream; set sampling to "auto", "given" or "shuffle" (within each batch).'
        )
    if settings.early_stopping:
        raise ValueError(
            "early_stopping=True holds rows out of a whole training set, and partial_fit sees "
            "a stream; set early_stopping=False."
        )
