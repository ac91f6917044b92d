"""What a race has found: the best candidate, a table of all, in the words of GridSearchCV."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from asset_svm.arrays import Array
from asset_svm.search.auto.judged import Judged
from asset_svm.search.auto.looks import Looks
from asset_svm.tasks.quantiles import has_tube

SLOW = 1.2
"""How much longer than there is time a model may be guessed to take."""
NEARLY = 0.1
"""The part of its loss that a candidate which takes too long may be ahead by, and is passed over."""
FEW = 3.0
"""Times what there is time for, that the best may take on the rows of its look and stay the best."""
ROOM = 0.8
"""The part of the time that models with more partitions than were judged may be guessed to take."""
SURELY = 0.02
"""The part of its loss that a candidate must gain by partitions over the best to be taken for it."""
MOST_DRAWN = 0.5
"""The part of the loss of one partition that more are trusted to save."""
ALIKE = 0.2
"""Standard errors of the difference within which the simpler of two candidates is taken."""


@dataclass(frozen=True, eq=False)
class Outcome:
    """All candidates that were looked at, in that order; the numbers of the finalists, best first."""

    looks: Looks
    history: list[Judged]
    finalists: list[int]

    @classmethod
    def of(cls, looks: Looks, history: list[Judged], relevance: str | None = "auto") -> Outcome:
        """The outcome of looks, of which those at the most rows are compared.

        A ``relevance`` that was asked for is that of the best, where there was time to learn it.
        """
        if not any(np.isfinite(each.loss) for each in history):
            why = looks.failure or "the score of no split is a number; hold out more rows."
            raise ValueError(f"No candidate of the search has a score: {why}")
        asked = [
            each
            for each in history
            if each.candidate.shape.relevance == relevance and np.isfinite(each.loss)
        ]
        most = max(each.rows for each in asked or history if np.isfinite(each.loss))
        last = [
            number
            for number, each in enumerate(history)
            if each.rows == most
            and np.isfinite(each.loss)
            and (not asked or each.candidate.shape.relevance == relevance)
        ]
        return cls(looks, history, _ranked(history, last))

    def joined(self, looks: Looks, found: list[Judged]) -> Outcome:
        """The outcome where other looks have judged these candidates, of which the best is one.

        What they say takes the place of what was said of the same candidates before.
        """
        again = {(each.candidate, each.rows, each.balanced) for each in found}
        kept = [
            each for each in self.history if (each.candidate, each.rows, each.balanced) not in again
        ]
        history = [*kept, *found]
        return Outcome(looks, history, _ranked(history, list(range(len(kept), len(history)))))

    def in_time(self, n_rows: int, seconds: float) -> Outcome:
        """The same with the best first that can be trained on so many rows in time.

        One that is nearly as good is taken for the best. Where there is none, the best will have to
        learn from fewer rows: it is the first that can learn from as many as when it was judged.
        """
        takes = {
            number: self.looks.training_seconds(self.history[number], n_rows)
            for number in self.finalists
        }
        good = self.history[self.finalists[0]].loss
        for number in self.finalists:
            near = self.history[number].loss <= good + NEARLY * abs(good)
            if near and takes[number] <= SLOW * seconds:
                rest = [other for other in self.finalists if other != number]
                return replace(self, finalists=[number, *rest])

        def as_judged(number: int) -> bool:
            """Whether it can learn from as many rows as when it was judged, about."""
            return takes[number] * self.history[number].rows / n_rows <= FEW * max(seconds, 0.0)

        able = [each for each in self.finalists if takes[each] <= SLOW * seconds or as_judged(each)]
        number = able[0] if able else min(self.finalists, key=lambda each: takes[each])
        return replace(self, finalists=[number, *(each for each in self.finalists if each != number)])

    def with_partitions(self, n_rows: int, seconds: float) -> Outcome:
        """The same with the best first by what it is expected to lose with the partitions it will have.

        A mean over P partitions of squared errors that are apart by what was drawn loses as much as
        infinitely many, and a P-th of what one loses besides. That part is known where a race has
        looked at one and at several; losses of classes follow it about.
        """
        if not np.isfinite(seconds):
            return self
        expected = {number: self._expected(number, n_rows, seconds) for number in self.finalists}
        best, first = min(self.finalists, key=lambda number: expected[number]), self.finalists[0]
        if expected[first] - expected[best] <= SURELY * abs(expected[first]):
            return self
        return replace(self, finalists=[best, *(each for each in self.finalists if each != best)])

    def _expected(self, number: int, n_rows: int, seconds: float) -> float:
        """The loss of a finalist with as many partitions as there is time for."""
        judged = self.history[number]
        own = judged.candidate.copies
        for count in range(self.looks.most_partitions(judged.candidate, n_rows), own, -1):
            takes = self.looks.training_seconds(judged.with_partitions(count), n_rows)
            if takes <= ROOM * seconds:
                return judged.loss - self._drawn(judged) * (1.0 / own - 1.0 / count)
        return judged.loss

    def _drawn(self, judged: Judged) -> float:
        """What one partition loses by what was drawn for it; 0 where nobody has looked at several."""
        one = {
            (each.candidate, each.rows, each.judging): each.loss
            for each in self.history
            if each.candidate.size == 0
        }
        found = []
        for each in self.history:
            several = each.candidate
            known = one.get((several.changed(size=0), each.rows, each.judging))
            if several.shape == judged.candidate.shape and several.size == 1 and known is not None:
                drawn = (known - each.loss) / (1.0 - 1.0 / several.copies)
                found.append(min(max(drawn, 0.0), MOST_DRAWN * abs(known)))
        return float(np.median(found)) if found else 0.0

    @property
    def best(self) -> Judged:
        """The candidate that is chosen."""
        return self.history[self.finalists[0]]

    def params(self, judged: Judged, n_rows: int) -> dict[str, Any]:
        """The parameters of the estimator of a candidate, for so many rows."""
        columns, shape = self.looks.columns, judged.candidate.shape
        moments, task = columns.moments(shape, judged.rows), columns.given.task
        found = judged.candidate.params(n_rows, moments, numeric=task.numeric)
        if not has_tube(task):
            found.pop("epsilon", None)
        return found | {"encoder": columns.given.encoders.get(shape.encoding)}

    def leaderboard(self) -> dict[str, list[Any]]:
        """Columns of the table of all candidates, the best first."""
        order = self._order()
        each = [self.history[number] for number in order]
        return {
            "candidate": [one.name for one in each],
            "score": [one.score for one in each],
            "error": [one.score_error for one in each],
            "rows": [one.rows for one in each],
            "folds": [int(np.size(one.part_scores)) for one in each],
            "seconds": [one.seconds for one in each],
            "at": [one.at for one in each],
        }

    def _order(self) -> list[int]:
        """The numbers of all candidates: the finalists, then those of fewer rows."""
        rest = [number for number in range(len(self.history)) if number not in set(self.finalists)]
        rest.sort(key=lambda number: (-self.history[number].rows, self.history[number].loss))
        return [*self.finalists, *rest]

    def cv_results(self) -> dict[str, Any]:
        """All results as GridSearchCV has them, with ``n_resources`` (rows)."""
        ranks = np.empty(len(self.history), dtype=np.int32)
        ranks[self._order()] = np.arange(1, len(self.history) + 1)
        tube = has_tube(self.looks.task)
        params = [settings_of(each, tube=tube) for each in self.history]
        found: dict[str, Any] = {"params": params}
        for name in dict.fromkeys(name for one in params for name in one):
            values = np.array([one.get(name) for one in params], dtype=object)
            found[f"param_{name}"] = np.ma.MaskedArray(values, mask=[name not in one for one in params])
        parts = len(self.looks.columns.parts)
        scores = np.full((len(self.history), parts), np.nan)  # of folds that have not judged
        for row, each in zip(scores, self.history, strict=True):
            row[: np.size(each.part_scores)] = each.part_scores
        for number in range(scores.shape[1]):
            found[f"split{number}_test_score"] = scores[:, number]
        found["mean_test_score"] = np.array([each.score for each in self.history])
        there = np.isfinite(scores)
        spread = np.where(there, scores - np.array([[each.score] for each in self.history]), 0.0)
        found["std_test_score"] = np.sqrt((spread**2).sum(axis=1) / np.maximum(there.sum(axis=1), 1))
        found["rank_test_score"] = ranks
        found["mean_fit_time"] = np.array(
            [each.seconds / np.size(each.part_scores) for each in self.history]
        )
        found["n_resources"] = np.array([each.rows for each in self.history])
        return found


def settings_of(judged: Judged, *, tube: bool) -> dict[str, Any]:
    """What a candidate is, in a few words."""
    one = judged.candidate
    found: dict[str, Any] = {
        "encoding": one.shape.encoding,
        "kernel": one.shape.kernel,
        "relevance": one.shape.relevance,
        "cells": one.shape.cells,
        "size": one.size,
        "C": one.C,
    }
    found |= {"factor": one.factor} if one.shape.has_gamma else {}
    found |= {"class_weight": "balanced"} if judged.balanced else {}
    return found | ({"epsilon": one.epsilon, "loss": one.loss} if tube else {})


def _ranked(history: list[Judged], numbers: list[int]) -> list[int]:
    """The numbers of finalists, the best first: of those that are alike the simplest."""
    ranked = sorted(numbers, key=lambda each: (history[each].loss, history[each].candidate.effort))
    best, first = ranked[0], history[ranked[0]]
    for number in ranked[1:]:
        other = history[number]
        if other.candidate.effort < history[best].candidate.effort and _alike(first, other):
            best = number
    return [best, *(number for number in ranked if number != best)]


def _alike(best: Judged, other: Judged) -> bool:
    """Whether two candidates are alike, as far as the rows tell that both have judged."""
    apart: Array = other.losses - best.losses
    apart = apart[np.isfinite(apart)]
    if len(apart) < 2 or other.loss < best.loss:
        return False
    error = float(apart.std() / np.sqrt(len(apart)))
    return other.loss - best.loss <= ALIKE * error
