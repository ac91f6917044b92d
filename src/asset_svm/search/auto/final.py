"""The final model of a race: the best candidate, or a mean of the best, trained on all rows."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from asset_svm import clock
from asset_svm.arrays import Array
from asset_svm.estimators.inside import copied_with, fitted_of
from asset_svm.estimators.learner import Learner
from asset_svm.families.blend import FittedBlend
from asset_svm.families.observing import logger
from asset_svm.search.all_rows import AllRows
from asset_svm.search.auto.blend import worthwhile_weights
from asset_svm.search.auto.judged import Judged
from asset_svm.search.auto.outcome import ROOM, Outcome
from asset_svm.search.auto.shapes import MOST_PARTITIONS
from asset_svm.search.cells import ROUGH_TOLERANCE

SLOW = 1.5
"""How much longer than there is time a model may be guessed to take; else it has fewer rows."""
EASY = 0.5
"""The part of the time that models must be guessed to take at most to be solved to the usual gap."""
WORTH = 0.5
"""Of the time that leaving rows would save if all of it hung on them, what it must save at least."""
SURE = 0.7
"""The part of the time that a mean may be guessed to take: a model that is cut short spoils it."""
LEAST_SECONDS = 0.2
"""What a model has in any case."""
LIBRARY = 25
"""Finalists that a mean is chosen from."""


@dataclass(frozen=True, eq=False)
class Members:
    """Candidates and their weights, the heaviest first.

    Parameters
    ----------
    judged : list of Judged
    weights : array
        Of their decisions; they add up to 1.
    shares : array
        What each has in the mean, of decisions of classes in units of their margins.
    """

    judged: list[Judged]
    weights: Array
    shares: Array

    @classmethod
    def alone(cls, judged: Judged) -> Members:
        """One candidate."""
        return cls([judged], np.ones(1), np.ones(1))

    def like(self, judged: Judged) -> Judged:
        """The member that is this candidate, with its partitions; the candidate itself, if none is."""
        candidate = judged.candidate.changed(partitions=0)
        same = (each for each in self.judged if each.candidate.changed(partitions=0) == candidate)
        return next(same, judged)

    def decisions(self) -> Array:
        """The decisions of the mean on the rows that judge."""
        return np.asarray(
            sum(w * each.decisions for w, each in zip(self.weights, self.judged, strict=True))
        )


def choose_members(outcome: Outcome, n_rows: int, seconds: float, seed: int) -> Members:
    """The best candidate, or a mean that gains over it and can be trained in time.

    The members of a mean share the encoding of the best: their rows are the same.
    """
    best, looks = outcome.best, outcome.looks
    same = (best.candidate.shape.encoding, best.judging)
    found = [
        each
        for each in (outcome.history[number] for number in outcome.finalists[:LIBRARY])
        if (each.candidate.shape.encoding, each.judging) == same
    ]
    takes = np.array([looks.training_seconds(each, n_rows) for each in found])
    solved = np.flatnonzero(np.all([np.isfinite(each.losses) for each in found], axis=0))
    if looks.scorer is not None or len(solved) == 0 or not looks.has_means:
        return Members.alone(best)
    margins = np.array([looks.margin(each.decisions[solved]) for each in found])
    weights = worthwhile_weights(
        [each.decisions[solved] / margin for each, margin in zip(found, margins, strict=True)],
        looks.losses(looks.judging_rows(best.judging)[solved]),
        lambda members: bool(takes[members].sum() <= SURE * seconds),
        seed,
    )
    if weights is None:
        return Members.alone(best)
    order = [number for number in np.argsort(-weights, kind="stable") if weights[number] > 0.0]
    raw = weights[order] / margins[order]
    return Members([found[number] for number in order], raw / raw.sum(), weights[order])


def filled(members: Members, outcome: Outcome, n_rows: int, seconds: float) -> Members:
    """Members with as many partitions as there is time for, where they have cells.

    No row need judge that: partitions differ by what is drawn alone, and their mean errs no more than
    one of them does in the mean.
    """
    looks = outcome.looks

    def with_most(each: Judged, count: int) -> Judged:
        """A member with so many partitions, and with no fewer than its own."""
        own = each.candidate.copies
        most = min(count, looks.most_partitions(each.candidate, n_rows))
        return each if most <= own else each.with_partitions(most)

    for count in range(MOST_PARTITIONS, 1, -1):
        more = [with_most(each, count) for each in members.judged]
        if sum(looks.training_seconds(each, n_rows) for each in more) <= ROOM * seconds:
            return replace(members, judged=more)
    return members


def train(
    members: Members,
    outcome: Outcome,
    learner: Callable[..., Learner],
    fixed: dict[str, Any],
    rows: AllRows,
    seconds: float,
) -> tuple[Learner, int, Members]:
    """Train all members on all rows, or on those that there is time for.

    Returns the model, how many rows it has learnt from, and its members with the partitions that there
    was time for.
    """
    n_rows = rows.n_rows
    end = clock.now() + max(seconds, LEAST_SECONDS)
    rows = rows_in_time(outcome, members, rows, seconds)
    looks = outcome.looks
    takes = [looks.training_seconds(each, n_rows) for each in members.judged]
    hurried = sum(takes) > EASY * seconds
    models, trained, left = list[Learner](), list[Judged](), rows
    for number, member in enumerate(members.judged):
        params = outcome.params(member, n_rows)
        if hurried and "n_cells" in params:
            params["tol"] = ROUGH_TOLERANCE  # as it was when it was judged
        model = learner(**(params | fixed))
        if np.isfinite(end):
            model.set_params(time_limit=time_of(takes[number:], end - clock.now()))
        reused = {"learnt": member.learnt} if looks.reuses(member.candidate, n_rows) else {}
        with unhurried():
            left = left.teach(model, **reused)
        planned = params.get("n_partitions", 1)
        if "n_partitions" not in fixed and len(model.history_) < planned:  # the time was up
            model.set_params(n_partitions=len(model.history_))
            member = member.with_partitions(len(model.history_))
        models.append(model)
        trained.append(member)
    first, members = models[0].set_params(time_limit=None), replace(members, judged=trained)
    if len(models) == 1:
        return first, rows.n_rows, members
    blend = FittedBlend(tuple(fitted_of(model) for model in models), members.weights)
    return copied_with(first, blend), rows.n_rows, members


def time_of(takes: Sequence[float], left: float) -> float:
    """The seconds of the first of models that are guessed to take so long, of those that are left.

    Guesses are rough: it may take all that the others are guessed to leave, and its share at least.
    """
    share = left * takes[0] / (sum(takes) or 1.0)
    return max(share, left - sum(takes[1:]), LEAST_SECONDS)


@contextmanager
def unhurried() -> Iterator[None]:
    """Nobody is told that a model ended before it had converged: the time was the search's."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        yield


def rows_in_time(outcome: Outcome, members: Members, rows: AllRows, seconds: float) -> AllRows:
    """Those of the rows that the models can learn from in time."""
    looks, n_rows = outcome.looks, rows.n_rows
    takes = sum(looks.training_seconds(each, n_rows) for each in members.judged)
    if takes <= SLOW * seconds:
        return rows
    least = min(n_rows, outcome.best.rows)
    count = max(int(n_rows * SLOW * max(seconds, 0.0) / takes), least)
    fewer = sum(looks.training_seconds(each, count) for each in members.judged)
    saved = WORTH * takes * (1.0 - count / n_rows)
    if count >= n_rows or takes - fewer < saved:  # most of it hangs on no row
        return rows
    logger.warning(
        "time_limit leaves %.1f s for the model, which would take some %.1f s on all rows: it learns "
        "from %d of %d.", max(seconds, 0.0), takes, count, n_rows,
    )  # fmt: skip
    return rows.some(count, looks.columns.given.task, looks.columns.given.y, looks.seed)
