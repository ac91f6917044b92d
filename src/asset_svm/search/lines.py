"""A line of a search: all values of C of one gamma and one epsilon, trained and scored together."""

from __future__ import annotations

from dataclasses import dataclass

from asset_svm.arrays import Array
from asset_svm.families.one_map.drawn import DrawnMap
from asset_svm.families.rows import Rows
from asset_svm.features import FeatureMap
from asset_svm.search.scores import Scorer, scores
from asset_svm.search.splits import Split
from asset_svm.tasks import Task


@dataclass(frozen=True, eq=False)
class Path:
    """The models of a line, (splits, Cs, outputs, d + 1) with the intercept last, and their map."""

    coefs: Array
    feature_map: FeatureMap


@dataclass(frozen=True, eq=False)
class Found:
    """The (Cs, splits) scores of a line, and the map of its gamma, where there is one.

    ``decisions`` are those of the rows held out from each split, (Cs, rows, outputs), where they are
    kept.
    """

    scores: Array
    fit_seconds: float
    score_seconds: float
    in_time: bool
    path: Path | None = None
    drawn: DrawnMap | None = None
    decisions: list[Array] | None = None
    operations: int = 0
    """Of the sweeps of cells: the squares of the rows of every model, as often as it was swept."""
    sweeping: float = 0.0
    """The seconds of these sweeps, of one thread after the other."""
    matrices: float = 0.0
    """The seconds of the kernel matrices of cells, which all models share."""


@dataclass(eq=False)
class LineSearch:
    """What a search on one map, and one in cells, needs to find and to score its lines.

    Parameters
    ----------
    Cs : array
        Ascending.
    scorer : callable, optional
        None: the estimator's own score.
    """

    rows: Rows
    splits: list[Split]
    Cs: Array
    scorer: Scorer | None
    seed: int

    def score(self, task: Task, test: Array, decisions: Array) -> Array:
        """The score of each C, from (Cs, rows, outputs) decisions on held-out rows."""
        X = None if self.scorer is None else self.rows.X[test]
        return scores(self.scorer, task, X, self.rows.y[test], decisions)
