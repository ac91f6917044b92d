"""The best of a race, judged by rows of other folds too.

A race of some ten thousand rows judges its candidates by one fold of them; errors of the best are
apart by less than such rows tell. What is left of the time goes to the other folds, candidate by
candidate, the best of every kind first, each trained anew on the rows of a fold that learn.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from asset_svm.search.auto.columns import Columns
from asset_svm.search.auto.judged import Judged
from asset_svm.search.auto.looks import Looks
from asset_svm.search.auto.outcome import Outcome
from asset_svm.search.auto.parts import Part
from asset_svm.search.auto.race import Watch

CONFIRMED = 0.2
"""The part of the budget that is kept for it."""
FEWEST, MOST = 2, 12
"""Candidates of one race that are judged by all folds."""
ENOUGH = 4
"""So many like the best there must be time for; else they are judged by fewer folds."""
FROM_KINDS = 6
"""Of them, those that are the best of their kind and size."""
FAR = 1.15
"""Times the loss of the best: candidates of more are left."""


def confirm(outcome: Outcome, others: list[Part], end: float, watch: Watch | None) -> Outcome:
    """The outcome by the rows of all folds, of the candidates that there is time for.

    ``end`` is how much of the budget may be spent. The outcome itself, where the time is too
    short for two.
    """
    first = outcome.looks
    budget, best, columns = first.budget, outcome.best, first.columns
    if best.rows < min(len(part.learning) for part in columns.parts):
        return outcome  # there was no time for one fold
    judging = max(len(part.judging) for part in [*columns.parts, *others])
    count = min(len(part.learning) for part in [*columns.parts, *others])
    for some in (others, others[:2], others[:1]):
        rest = _looks(first, some)
        seconds = rest.seconds(best.candidate, 1, count, judging)
        if budget.used + ENOUGH * seconds <= end:
            break
    whole = _looks(first, [*columns.parts, *rest.columns.parts])
    found: list[Judged] = []
    for judged in _chosen(outcome):
        candidate = judged.candidate
        seconds = rest.seconds(candidate, 1, count, judging)
        if budget.left <= 0.0 or budget.used + seconds > end:
            if not found:
                return outcome  # nothing is compared with the best but the best
            continue
        (other,) = rest.look(candidate, (candidate.C,), count, judging)
        known = judged.decisions, other.decisions
        new = whole.judged(
            candidate, judged.rows, judging, np.concatenate(known), judged.seconds + other.seconds
        )
        training = judged.training + other.training
        found.append(replace(new, at=other.at, training=training, learnt=judged.learnt))
        if watch is not None and watch(found[-1:]):
            budget.stopped = True
    if len(found) < FEWEST:
        return outcome
    return outcome.joined(whole, found)


def _looks(first: Looks, parts: list[Part]) -> Looks:
    """Looks at other parts of the same rows."""
    columns = Columns(first.columns.given, parts, first.columns.settings)
    return Looks(
        columns, first.budget, first.scorer, first.seed, first.fixed,
        begun=first.begun, n_rows=first.n_rows, reading=first.reading, elsewhere=first.elsewhere,
    )  # fmt: skip


def _chosen(outcome: Outcome) -> list[Judged]:
    """The finalists to judge again, the most important first."""
    ranked = [outcome.history[number] for number in outcome.finalists]
    limit = ranked[0].loss + (FAR - 1.0) * abs(ranked[0].loss)
    near = [each for each in ranked if each.loss <= limit and np.isfinite(each.losses).all()]
    kinds: dict[object, Judged] = {}
    for each in near:
        kinds.setdefault((each.candidate.shape, each.candidate.size), each)
    best = list(kinds.values())[:FROM_KINDS]
    return [*best, *(each for each in near if each not in best)][:MOST]
