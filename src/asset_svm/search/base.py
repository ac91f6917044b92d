"""What AssetClassifierCV and AssetRegressorCV share: the search, its results, the model refitted."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from sklearn.base import is_regressor
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.utils.validation import check_is_fitted

from asset_svm import clock
from asset_svm.backends.device import on_host
from asset_svm.data.scan import Scanned
from asset_svm.data.source import RowSource
from asset_svm.estimators.files import check_streamed
from asset_svm.estimators.inside import checked_rows, settings_of, task_of
from asset_svm.estimators.learner import Learner
from asset_svm.estimators.scored import check_scored
from asset_svm.estimators.validation import (
    FROM_VALIDATION,
    all_or_nothing,
    classes_of,
    forget,
    is_wide,
    validate_rows,
)
from asset_svm.estimators.vocabulary import SpeaksOfSVC
from asset_svm.exceptions import NonFiniteError, warn_caller
from asset_svm.families import family_of
from asset_svm.families.observing import Watch as ObservedFit
from asset_svm.families.observing import logger, shown
from asset_svm.families.one_map.maps import warn_of_few_landmarks
from asset_svm.kernels import WITH_GAMMA, formula_type
from asset_svm.search.all_rows import SAMPLING, HeldRows, RowsElsewhere, SourceRows
from asset_svm.search.grid import (
    Grid,
    resolve_costs,
    resolve_epsilons,
    resolve_gammas,
    target_unit,
)
from asset_svm.search.journal import Journal
from asset_svm.search.progress import Foreseen, Refitting, Watch
from asset_svm.search.racing import RacingSearch, one_seed
from asset_svm.search.results import Table
from asset_svm.search.run import SearchOptions, SearchRun
from asset_svm.search.scores import check_one_scoring
from asset_svm.search.splits import (
    check_classes,
    check_filled,
    check_folds,
    draw_splits,
    restricted,
)
from asset_svm.settings import Settings
from asset_svm.settings import checks as check
from asset_svm.threads.granted import grant

USUAL_CS = 10
"""Values of C of a grid."""


class SearchEstimator(RacingSearch, SpeaksOfSVC):
    """What both searches share; not for use by itself."""

    _model: ClassVar[type[Learner]]

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.multi_output = True
        return tags

    def __sklearn_is_fitted__(self):
        return hasattr(self, "cv_results_")

    # Parameters -------------------------------------------------------------------------------

    def _learner(self, **others: Any) -> Learner:
        """The estimator that is searched for, with the parameters it shares with the search."""
        known = self._model().get_params(deep=False)
        given = self.get_params(deep=False) | {"kernel": self._kernel}
        left = ("time_limit", "relevance", "intervals")
        shared = {name: given[name] for name in known if name in given and name not in left}
        return self._model(**(shared | others))

    @property
    def _costs(self) -> Any:
        """The Cs of a grid."""
        return USUAL_CS if isinstance(self.Cs, str) and self.Cs == "auto" else self.Cs

    def _checked(self) -> tuple[Learner, Settings, Any]:
        """The estimator that is searched for, its settings, and the scorer: all checked."""
        learner = self._learner()
        settings = settings_of(learner)
        family_of(settings).check(settings)
        resolve_costs(self._costs)
        self._check_race()
        check_folds(self.cv)
        check.check_flag("refit", self.refit)
        check.check_flag("keep_path", self.keep_path)
        check.check_positive("time_limit", self.time_limit, optional=True)
        check.check_count("search_iter", self.search_iter, optional=True)
        if isinstance(self.landmarks, str) and self.landmarks == "margin":
            raise ValueError(
                'landmarks="margin" looks at the targets of all rows, those held out too; choose '
                'another for a search, for example "kmeans", and refit the best model with it.'
            )
        if isinstance(self.n_components, str):
            raise ValueError(
                'n_components="auto" looks at the targets of all rows, those held out too; set it to a '
                "number for a search."
            )
        if self.gammas is not None and not isinstance(self.gammas, str):
            self._check_gammas()
        if self.keep_path and self.n_cells is not None:
            raise ValueError(
                "keep_path=True keeps coefficients on one map for all rows, and "
                f"n_cells={self.n_cells!r} asks for cells; set keep_path=False, or n_cells=None."
            )
        return learner, settings, check_one_scoring(learner, self.scoring)

    @property
    def _gammas(self) -> Any:
        """``gammas``; None for "auto" where gamma is given, or the kernel has none."""
        if isinstance(self.gammas, str) and self.gammas == "auto":
            named = isinstance(self._kernel, str) and self._kernel in WITH_GAMMA
            drawn = isinstance(self.approximation, str)
            free = isinstance(self.gamma, str) and self.gamma == "scale"
            return "auto" if named and drawn and free else None
        return self.gammas

    def _check_gammas(self) -> None:
        kernel = self._kernel
        if callable(kernel) or kernel not in WITH_GAMMA:
            shown_kernel = kernel if isinstance(kernel, str) else "a function"
            raise ValueError(
                f"gammas={self.gammas!r} cannot be searched: kernel={shown_kernel} has no gamma; set "
                "gammas=None."
            )
        if not isinstance(self.approximation, str):
            raise ValueError(
                f"gammas={self.gammas!r} cannot be searched on a map of your own, whose gamma is its "
                'own; set gammas=None, or approximation="nystroem".'
            )

    # The search -------------------------------------------------------------------------------

    def fit(self, X, y=None, sample_weight=None, groups=None):
        """Search, and train the best model on all rows.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features), or row source
            Of a source (``open_rows``) that does not fit in memory a sample is searched, and all rows
            train the best model.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            None with a row source, which brings its own.
        sample_weight : array-like of shape (n_samples,), optional
            Of the rows that are learnt from; scores do not weigh rows, and leave out those of weight 0.
        groups : array-like of shape (n_samples,), optional
            For splitters that keep groups together, such as GroupKFold.

        Returns
        -------
        self
        """
        return self._fit_watched(X, y, sample_weight, groups)

    def _fit_watched(
        self,
        X,
        y,
        sample_weight,
        groups=None,
        watch: Watch | None = None,
        foreseen: Foreseen | None = None,
        refitting: Refitting | None = None,
        training: ObservedFit | None = None,
        temp_dir: str | Path | None = None,
        elsewhere: RowsElsewhere | None = None,
        journal: Journal | None = None,
    ) -> Any:
        """Search, as ``fit`` does, while somebody looks on.

        Parameters
        ----------
        X, y, sample_weight, groups
            As for ``fit``.
        watch : callable, optional
            Called with the progress; returning True ends the search, and the best so far is refitted.
        foreseen : callable, optional
            Called with what is ahead, before the first map.
        refitting : callable, optional
            Called before the best model is trained on all rows.
        training : callable, optional
            Called with the progress of that, where rows come from a source that does not fit in memory;
            returning True ends it.
        temp_dir : path, optional
            As for ``fit_rows``.
        elsewhere : RowsElsewhere, optional
            What others train the best model from, of which X are a sample; with refit=False.
        journal : Journal, optional
            What keeps on the disk what is found, and knows what a search that goes on has found.

        Returns
        -------
        self
        """
        begun = clock.now() if journal is None else journal.begin()
        source: SourceRows | RowsElsewhere | None = elsewhere
        if isinstance(X, RowSource | Scanned):
            if y is not None or sample_weight is not None or groups is not None:
                raise ValueError(
                    "A row source brings its own targets; leave y, sample_weight and groups out."
                )
            with shown(self.verbose):
                source = read = self._looked_at(
                    X, training, temp_dir, None if journal is None else journal.seed
                )
            sample = read.sample(numeric=is_regressor(self))
            X, y = sample.X, sample.y
        if sp.issparse(X):
            X = X.tocsr()  # not every format has rows that can be taken out
        if self._races:
            return self._race(X, y, sample_weight, groups, watch, refitting, begun, source, journal)
        with all_or_nothing(self), shown(self.verbose):
            learner, settings, scorer = self._checked()
            if source is not None:
                learner.set_params(encoder=source.encoder_of(learner))
            random_state = one_seed(self.random_state) if journal is None else journal.seed
            settings = settings.changed(random_state=random_state)
            # Rows that judge have no part in what others are made of: no target means here.
            found = checked_rows(
                learner, task_of(learner, settings), X, y, sample_weight, first=True, means=False
            )
            if found is None:
                raise ValueError("Every row has weight 0; give some row a positive weight.")
            task, rows = found
            forget(self)
            for name in FROM_VALIDATION:
                if hasattr(learner, name):
                    setattr(self, name, getattr(learner, name))
            if task.classes is not None:
                self.classes_ = classes_of(task)
            seed = settings.draw_seed()
            splits = self._splits(X, y, groups, rows, seed)
            grid = Grid(
                resolve_costs(self._costs, target_unit(rows.y) if task.numeric else 1.0),
                resolve_gammas(
                    self._gammas,
                    rows.X,
                    np.random.default_rng([seed, 6]),
                    formula_type(self._kernel),
                ),
                resolve_epsilons(getattr(self, "epsilons", None)),
            )
            deadline = begun + self.time_limit if self.time_limit else float("inf")
            asked, widens = None if self.scoring is None else scorer, isinstance(self._gammas, str)
            options = SearchOptions(self.refit, self.keep_path, self.search_iter, widens)
            run = SearchRun(
                options,
                settings,
                task,
                rows,
                splits,
                grid,
                asked,
                seed,
                begun,
                deadline,
                watch,
                foreseen,
                journal,
            )
            with grant(settings.n_threads):
                table = run.search()
            if journal is not None:
                journal.save()
            self._store(table, scorer)
            if elsewhere is not None:
                self._table = table  # of a part of a search, to be joined with those of others
            if not run.ended:
                self._tell_of_edges()
            self.n_splits_, self.search_time_ = len(splits), clock.now() - begun
            if self.refit:
                if refitting is not None:
                    refitting()
                refitted = clock.now()
                best = self._learner(random_state=random_state, **self.best_params_)
                if source is None:
                    encoder = self.encoder_
                    numbers = X if encoder is None else encoder.rows(X)
                    all_rows = HeldRows(numbers, y, sample_weight, rows.index, encoder)
                    all_rows.teach(best, drawn=run.take_drawn())
                else:
                    source.teach(best)
                    self._take_names(best)
                self.best_estimator_, self.n_iter_ = best, best.n_iter_
                self.refit_time_ = clock.now() - refitted
            elif self.n_cells is None and isinstance(self.landmarks, str) and settings.is_nystroem:
                warn_of_few_landmarks(settings.map, rows.X.shape[0])
        return self

    def _looked_at(
        self,
        source: RowSource | Scanned,
        training: ObservedFit | None,
        temp_dir: str | Path | None,
        seed: int | None = None,
        *,
        fingerprint: bool = False,
    ) -> SourceRows:
        """The rows of a source, of which those that fit in memory are looked at.

        ``fingerprint`` tells what the files were; ``seed`` stands for ``random_state``, where it is
        known.
        """
        _, settings, _ = self._checked()
        if not (self.cv is None or check.is_number(self.cv) or hasattr(self.cv, "split")):
            raise ValueError(
                "cv has pairs of indices, which are of rows in memory, and X reads them from a file; "
                "set cv to a number of folds, a fraction or a splitter, or pass arrays."
            )
        return SourceRows.scan(
            source,
            temp_dir,
            training,
            **SAMPLING,
            n_components=settings.map.n_components,
            memory_limit=settings.memory_limit,
            random_state=one_seed(self.random_state) if seed is None else seed,
            too_large=partial(check_streamed, settings),
            fingerprint=fingerprint,
        )

    def _take_names(self, model: Learner) -> None:
        """Have the classes and the names of the columns of a model that has seen all rows."""
        for name in ("classes_", "n_features_in_", "feature_names_in_"):
            if hasattr(model, name):
                setattr(self, name, getattr(model, name))

    def _splits(self, X, y, groups, rows, seed, cv=None):
        """The splits of what was passed to fit, without the rows that have no weight."""
        whole = np.asarray(on_host(y.toarray() if sp.issparse(y) else y))
        whole = whole if is_wide(whole) else whole.ravel()
        m, classifier = len(whole), hasattr(self, "classes_")
        cv = self.cv if cv is None else cv
        splits = draw_splits(cv, X, whole, groups, seed, classifier=classifier)
        if len(rows.y) < m:
            splits = restricted(splits, rows.index, m)
            check_filled(splits, "rows of positive weight")
        if classifier:
            check_classes(splits, rows.y)
        return splits

    def _store(self, table: Table, scorer) -> None:
        if not table.lines:
            raise NonFiniteError(
                "No candidate of the search has a finite model; scale the columns of X "
                "(StandardScaler), or search smaller Cs and gammas."
            )
        best = table.best_index()
        if np.isnan(table.means()[best]):
            raise ValueError(self._why_no_score(table))
        if table.late:
            untried = int(np.isnan(table.means()).sum())
            what = "scores are of fewer steps or rows than they were to be"
            if untried:
                what = f"{untried} of {len(table.params())} candidates have no score"
            warn_caller(
                f"time_limit={self.time_limit:g} ended the search early: {what}; raise it, or search "
                "fewer candidates.",
                ConvergenceWarning,
            )
        self.cv_results_ = table.cv_results()
        self.scorer_, self.best_index_ = scorer, best
        self.best_params_ = self.cv_results_["params"][best]
        self.best_score_ = float(self.cv_results_["mean_test_score"][best])
        self.Cs_, self.gammas_ = table.grid.Cs, table.grid.gammas
        self.best_at_edge_ = table.edges()
        if table.grid.epsilons is not None:
            self.epsilons_ = table.grid.epsilons
        path = table.lines[table.best_line()].path
        if path is not None:
            self.path_coefs_, self.path_map_ = path.coefs, path.feature_map

    def _tell_of_edges(self) -> None:
        """Tell of every parameter whose best value is the first or the last of those tried.

        A warning where the search chose them, a line of the log where somebody has given them.
        """
        chosen = {"C": check.is_integer(self._costs), "gamma": isinstance(self._gammas, str)}
        for name, which in self.best_at_edge_.items():
            tried, way = "was tried", "smaller" if which == "smallest" else "larger"
            advice = f"give {way} {name}s"
            if name == "gamma" and chosen[name]:
                tried = 'gammas="auto" came to'
                advice += ", or scale the columns of X (StandardScaler)"
            best = f"The best {name}, {self.best_params_[name]:.3g},"
            message = f"{best} is the {which} that {tried}; {advice}."
            if chosen.get(name):
                warn_caller(message, ConvergenceWarning)
            else:
                logger.warning(message)

    def _why_no_score(self, table: Table) -> str:
        if table.late:
            return (
                f"time_limit={self.time_limit:g} ended the search before it had a score of every split;"
                " raise it, or search fewer candidates."
            )
        unscored = np.any([np.isnan(line.scores).any(axis=0) for line in table.lines.values()], axis=0)
        return (
            f"The score of split {int(np.argmax(unscored))} is not a number, so that no candidate has "
            "a mean; hold out more rows in every split (R^2 needs two), or choose another scoring."
        )

    # The model --------------------------------------------------------------------------------

    def _best(self, method: str):
        check_is_fitted(self)
        if not hasattr(self, "best_estimator_"):
            raise NotFittedError(
                f"{method} needs a model trained on all rows, and refit=False; set refit=True, or fit "
                "one with best_params_."
            )
        return self.best_estimator_

    def predict(self, X):
        """Predictions of the best model, refitted on all rows.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        y : ndarray of shape (n_samples,) or (n_samples, n_outputs)
        """
        return self._best("predict").predict(self._seen(X))

    def _seen(self, X):
        """X, checked where columns are numbers: a gap in one is an error, whatever encodes them."""
        if getattr(self, "_as_given", False):
            validate_rows(self, X, reset=False)
        return X

    def score(self, X, y, sample_weight=None):
        """The score of the refitted model by ``scoring``.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
        sample_weight : array-like of shape (n_samples,), optional
            Where ``scoring`` takes weights.

        Returns
        -------
        score : float
        """
        check_scored(y, sample_weight, numeric=is_regressor(self))
        weights = {} if sample_weight is None else {"sample_weight": sample_weight}
        return float(self.scorer_(self._best("score"), X, y, **weights))
