"""A line of a search: all values of C of one gamma and one epsilon, trained and scored together."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

from asset_svm.arrays import Array
from asset_svm.families.one_map.drawn import DrawnMap
from asset_svm.families.rows import Rows
from asset_svm.features import FeatureMap
from asset_svm.search.scores import Scorer, scores
from asset_svm.search.splits import Split
from asset_svm.settings import Settings
from asset_svm.tasks import Task


@dataclass(frozen=True, eq=False)
class Path:
    """The models of a line, (splits, Cs, outputs, d + 1) with the intercept last, and their map."""

    coefs: Array
    feature_map: FeatureMap


@dataclass(frozen=True, eq=False)
class Found:
    """The (Cs, splits) scores of a line, and the map of its gamma, where there is one."""

    scores: Array
    fit_seconds: float
    score_seconds: float
    in_time: bool
    path: Path | None = None
    drawn: DrawnMap | None = None


@dataclass(eq=False)
class LineSearch:
    """How the lines of one gamma are found: on one map for all rows, or in cells.

    Parameters
    ----------
    rows : Rows
    splits : list of Split
    Cs : array
        Ascending.
    scorer : callable, optional
        None: the estimator's own score.
    seed : int
    """

    rows: Rows
    splits: list[Split]
    Cs: Array
    scorer: Scorer | None
    seed: int

    @property
    def n_rows(self) -> int:
        """The number of rows that are looked at."""
        raise NotImplementedError

    def kept(self, share: float) -> Array:
        """The rows of a round that looks at such a part of them."""
        raise NotImplementedError

    def on(self, share: float) -> Self:
        """The search on these rows."""
        raise NotImplementedError

    def seconds(self, settings: Settings, n_models: int) -> float:
        """A guess of the time that one line takes on all rows."""
        raise NotImplementedError

    def lines(
        self, settings: Settings, task: Task, epsilons: tuple[float, ...] | None, deadline: float
    ) -> Iterator[Found]:
        """What is found for each epsilon, with the gamma of these settings."""
        raise NotImplementedError

    def score(self, task: Task, test: Array, decisions: Array) -> Array:
        """The score of each C, from (Cs, rows, outputs) decisions on held-out rows."""
        X = None if self.scorer is None else self.rows.X[test]
        return scores(self.scorer, task.classes, X, self.rows.y[test], decisions)
