"""Searches without a knob: which parameters ask for a race, and what a race leaves on an estimator."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from sklearn.base import MetaEstimatorMixin, is_regressor
from sklearn.model_selection import GroupKFold, StratifiedGroupKFold
from sklearn.utils import check_random_state

from asset_svm import clock
from asset_svm.estimators.calibration import calibrated
from asset_svm.estimators.validation import FROM_VALIDATION, all_or_nothing, classes_of, forget
from asset_svm.families.observing import shown
from asset_svm.families.rows import Rows
from asset_svm.search.all_rows import AllRows, HeldRows, RowsElsewhere, SourceRows
from asset_svm.search.auto.final import Members, choose_members, filled, train
from asset_svm.search.auto.judged import Judged
from asset_svm.search.auto.outcome import Outcome
from asset_svm.search.auto.parts import Part
from asset_svm.search.auto.search import KERNELS, Asked, balanced_outcome, gather, run_race
from asset_svm.search.auto.shapes import is_absolute
from asset_svm.search.journal import Journal
from asset_svm.search.progress import SearchProgress, Watch
from asset_svm.search.splits import group_folds
from asset_svm.settings import checks as check
from asset_svm.threads.granted import grant

OPEN = "auto"
"""What a kernel is called that is left open."""
RACING = (
    "kernel", "relevance", "encoder", "cv", "scoring", "refit", "time_limit", "ensemble",
    "probability", "n_components", "landmarks", "n_cells", "n_partitions", "max_iter", "tol",
    "memory_limit", "class_weight", "multi_class", "quantiles", "intervals", "random_state", "n_jobs",
    "device",    "precision", "verbose",
)  # fmt: skip
"""Parameters that may be given to a race; any other asks for a grid."""
FIXED = ("n_components", "landmarks", "n_cells", "n_partitions", "max_iter", "tol")
"""Those that every candidate of a race has, where they are given."""
LEAST_LEFT = 0.1
"""The part of the time that the final model has in any case."""


class RacingSearch(MetaEstimatorMixin):
    """What a search has of a race; not for use by itself."""

    @property
    def _kernel(self) -> Any:
        """The kernel of a grid, or the first of a race."""
        return "rbf" if isinstance(self.kernel, str) and self.kernel == OPEN else self.kernel

    @property
    def _races(self) -> bool:
        """Whether everything is left open that a race looks for: no part of a grid is given."""
        default = type(self)().get_params(deep=False)
        given = self.get_params(deep=False)
        return all(_same(given[name], default[name]) for name in default if name not in RACING) and (
            isinstance(self.kernel, str) and self.kernel in (OPEN, *KERNELS)
        )

    @property
    def _judged_by(self) -> dict[str, Any]:
        """Parameters that candidates of a race have in place of those of the final model."""
        return {}

    def _check_race(self) -> None:
        """Raise where a parameter of a race cannot be, or a grid is given besides."""
        check.check_choice("relevance", self.relevance, (None, "auto", "columns", "directions"))
        check.check_flag("ensemble", self.ensemble)
        check.check_flag("probability", getattr(self, "probability", False))
        if getattr(self, "probability", False) and not self._races:
            raise ValueError(
                "probability=True takes the decisions of a race, and a grid (Cs, gammas, ...) is "
                "given; leave the grid out, or calibrate best_estimator_ with CalibratedClassifierCV."
            )
        if self.relevance == "directions" and is_absolute_name(self.kernel):
            raise ValueError(
                f'relevance="directions" turns rows, and kernel={self.kernel!r} adds up the columns as '
                'they stand; set relevance="columns", or leave the kernel open.'
            )
        if self.relevance in ("columns", "directions") and not self._races:
            raise ValueError(
                f"relevance={self.relevance!r} goes with a race, and a grid (Cs, gammas, ...) is "
                'given; leave the grid out, or set relevance="auto".'
            )

    def _race(
        self,
        X,
        y,
        sample_weight,
        groups,
        watch,
        refitting,
        begun,
        source: SourceRows | RowsElsewhere | None = None,
        journal: Journal | None = None,
    ) -> Any:
        """Search everything that is open, by a race.

        The final model learns from the rows of ``source``, of which those of X are a sample.
        ``journal`` keeps what is found on the way.
        """
        with all_or_nothing(self), shown(self.verbose):
            _, settings, scorer = self._checked()
            seed = one_seed(self.random_state) if journal is None else journal.seed
            settings = settings.changed(random_state=seed)
            units = {"target_transform": "standard"} if is_regressor(self) else {}
            learner = self._learner(**units, **self._judged_by)
            if source is not None:
                learner.set_params(encoder=source.encoder_of(learner))
            found = gather(learner, X, y, sample_weight)
            if found is None:
                raise ValueError("Every row has weight 0; give some row a positive weight.")
            given, index, learner = found
            if getattr(self, "probability", False) and given.y.ndim == 2:
                raise ValueError(
                    f"probability=True is for one column of classes, and y has {given.y.shape[1]}; set "
                    "probability=False."
                )
            if len(given.y) < 2:
                raise ValueError(
                    "X has n_samples=1, and a search learns from some and judges by others."
                )
            forget(self)
            for name in FROM_VALIDATION:
                if hasattr(learner, name):
                    setattr(self, name, getattr(learner, name))
            if source is not None and getattr(self, "probability", False):
                source.check_seen(given.task.classes)
            if given.task.classes is not None:
                self.classes_ = classes_of(given.task)
            parts = None
            if self.cv is not None or groups is not None:
                rows = Rows(given.X, given.y, given.weight, given.weight, index)
                plain = is_regressor(self) or given.y.ndim == 2
                split_seed = settings.draw_seed()
                if self.cv is not None:
                    splits = self._splits(X, y, groups, rows, split_seed)
                else:  # of rows that count alone: groups without any would be folds
                    own = np.asarray(groups)[index]
                    cv = (GroupKFold if plain else StratifiedGroupKFold)(group_folds(own))
                    splits = self._splits(np.zeros((len(own), 1)), given.y, own, rows, split_seed, cv)
                rng = np.random.default_rng(seed)
                parts = [
                    Part(rng.permutation(split.train), rng.permutation(split.test)) for split in splits
                ]
            all_rows: AllRows = HeldRows(X, y, sample_weight, index) if source is None else source
            asked = None if self.scoring is None else scorer
            told = None if watch is None else _RaceWatch(watch, begun, self.time_limit)
            # Without a limit nothing hangs on a clock, not even how fast rows are read.
            reading = all_rows.reading if self.time_limit is not None else all_rows.reading_work
            if journal is not None:
                reading = journal.read_in(reading)
            with grant(settings.n_threads):
                outcome, budget = run_race(
                    self._learner,
                    given,
                    self._asked(cells=source is None or source.fit_in_cells),
                    parts,
                    asked,
                    seed,
                    begun,
                    self.time_limit,
                    told,
                    ensemble=self.ensemble,
                    n_rows=all_rows.n_rows,
                    reading=reading,
                    elsewhere=all_rows.elsewhere,
                    journal=journal,
                )
            m, fixed = all_rows.n_rows, dict(self._asked().fixed)
            if getattr(self, "class_weight", 1) is None:
                with grant(settings.n_threads):
                    balanced = balanced_outcome(outcome, self._learner)
                if balanced is not None:
                    outcome, fixed["class_weight"] = balanced, "balanced"
            if journal is not None:
                journal.save()
            left = float("inf")
            if self.time_limit is not None:  # looks may have taken longer than they should
                left = max(budget.left, LEAST_LEFT * self.time_limit)
            room = left if self.time_limit is not None else budget.left
            room = 0.0 if all_rows.elsewhere else room
            outcome = outcome.with_partitions(m, room).in_time(m, left)
            self._board, self.scorer_ = outcome.leaderboard(), scorer
            self._as_given = given.X is not None
            self.cv_results_ = outcome.cv_results()
            self.best_index_ = outcome.finalists[0]
            self.n_splits_, self.search_time_ = len(outcome.looks.columns.parts), clock.now() - begun
            self.best_at_edge_: dict[str, str] = {}
            members = Members.alone(outcome.best)
            if self.ensemble:
                members = choose_members(outcome, m, left, seed)
            members = filled(members, outcome, m, room)
            self._take_members(members, outcome, m, fixed)
            decisions = members.decisions()
            judging = outcome.looks.judging_rows(outcome.best.judging)
            self.best_score_ = outcome.looks.judge(decisions, judging)[2]
            if self.refit:
                if refitting is not None:
                    refitting()
                refitted = clock.now()
                with grant(settings.n_threads):
                    self.best_estimator_, self._learnt_rows, members = train(
                        members,
                        outcome,
                        partial(self._learner, random_state=seed),
                        fixed,
                        all_rows,
                        left,
                    )
                self._take_members(members, outcome, m, fixed)
                tol = self.best_estimator_.get_params(deep=False)["tol"]
                if len(members.judged) == 1 and tol is not None:  # for want of time
                    self.best_params_["tol"] = tol
                self.n_iter_ = self.best_estimator_.n_iter_
                self.refit_time_ = clock.now() - refitted
                if source is not None:
                    self._take_names(self.best_estimator_)
                if getattr(self, "probability", False):
                    known = np.isfinite(decisions[:, 0])
                    self.calibrated_ = calibrated(
                        self.best_estimator_, decisions[known], given.y[judging[known]]
                    )
        return self

    def _take_members(
        self, members: Members, outcome: Outcome, n_rows: int, fixed: dict[str, Any]
    ) -> None:
        """Tell what the final model is made of, and the parameters of the best."""
        self.ensemble_ = [
            (each.name, round(float(weight), 6))
            for each, weight in zip(members.judged, members.shares, strict=True)
        ]
        best = members.like(outcome.best)
        self.best_params_ = outcome.params(best, n_rows) | fixed

    def _asked(self, *, cells: bool = True) -> Asked:
        """What a race finds fixed; cells are not open where they would not fit in memory."""
        default = type(self)().get_params(deep=False)
        given = self.get_params(deep=False)
        fixed = {name: given[name] for name in FIXED if not _same(given[name], default[name])}
        family = None if cells else False
        if "n_cells" in fixed or "n_partitions" in fixed:
            family = True
        elif "n_components" in fixed or "landmarks" in fixed:
            family = False
        kernel = None if self.kernel == OPEN else self.kernel
        return Asked(kernel, self.relevance, family, fixed)

    @property
    def leaderboard_(self):
        """All candidates of a race, the best first, as a pandas data frame."""
        if "_board" not in self.__dict__:
            raise AttributeError("leaderboard_")  # that of a race, which a grid is not
        try:
            import pandas as pd
        except ImportError:
            raise ImportError(
                "leaderboard_ is a data frame, and pandas is not installed; run: pip install pandas, "
                "or see cv_results_."
            ) from None
        return pd.DataFrame(self._board)


def is_absolute_name(kernel: Any) -> bool:
    """Whether a kernel that is given is one of |x - z|_1."""
    return isinstance(kernel, str) and kernel in KERNELS and is_absolute(kernel)


class _RaceWatch:
    """Shows what a race finds to whoever watches a search.

    Parameters
    ----------
    watch : callable
        Called with ``SearchProgress``.
    begun : float
    time_limit : float or None
    """

    def __init__(self, watch: Watch, begun: float, time_limit: float | None):
        self.watch, self.begun, self.time_limit = watch, begun, time_limit
        self.seen: list[Judged] = []

    def __call__(self, new: list[Judged]) -> bool:
        """Tell of new candidates; True asks to stop."""
        self.seen += new
        most = max(each.rows for each in self.seen)
        best = min((each for each in self.seen if each.rows == most), key=lambda each: each.loss)
        seconds = clock.now() - self.begun
        left = max(self.time_limit - seconds, 0.0) if self.time_limit else float("nan")
        progress = SearchProgress(
            [{"candidate": str(each.candidate), "rows": each.rows} for each in self.seen],
            np.array([each.score for each in self.seen]),
            np.array([each.score_error for each in self.seen]),
            {"candidate": str(best.candidate), "rows": best.rows},
            best.score,
            len(self.seen),
            len(self.seen),
            seconds,
            left,
        )
        return bool(self.watch(progress))


def _same(one: Any, other: Any) -> bool:
    """Whether two values of a parameter are the same."""
    return one is other or (type(one) is type(other) and np.isscalar(one) and one == other)


def one_seed(random_state: Any) -> int:
    """An integer that stands for ``random_state``, so that search and refit draw the same map."""
    if check.is_integer(random_state):
        return int(random_state)
    return int(check_random_state(random_state).randint(np.iinfo(np.int32).max))
