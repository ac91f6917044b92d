"""A candidate, and what the rows that judge say of it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from asset_svm.arrays import Array
from asset_svm.features.relevance import Learnt
from asset_svm.search.auto.shapes import Candidate


@dataclass(frozen=True, eq=False)
class Judged:
    """A candidate, and what the rows that judge say of it.

    Parameters
    ----------
    candidate : Candidate
    rows, judging : int
        Rows of every part that it has learnt from, and that have judged, at most.
    decisions : array of shape (judging rows, outputs)
        Part after part.
    losses : array of shape (judging rows,)
        What each adds to the loss.
    loss : float
        What candidates are compared by, the smaller the better.
    score : float
        What users look at.
    seconds : float
        Its share of the time that the look took.
    """

    candidate: Candidate
    rows: int
    judging: int
    decisions: Array
    losses: Array
    loss: float
    score: float
    seconds: float

    score_error: float = 0.0
    """The standard error of the score, about."""
    part_scores: Any = np.nan
    """The score in every part."""
    at: float = 0.0
    """Seconds from the beginning of the race to the end of the look."""
    training: float = 0.0
    """What its models took, without columns, relevance and partitions: of ``seconds``, or of work."""
    swept: float = np.inf
    """What the sweeps of its cells take by themselves, about."""
    learnt: Learnt | None = None
    """The relevance of its rows, of the first part."""
    balanced: bool = False
    """Whether its classes have the same weight, which others have not."""

    def with_partitions(self, count: int) -> Judged:
        """The same, as a final model with so many partitions."""
        return replace(self, candidate=self.candidate.changed(partitions=count))

    @property
    def name(self) -> str:
        """What a table calls it."""
        return f"{self.candidate}, balanced classes" if self.balanced else str(self.candidate)
