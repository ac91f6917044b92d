"""Rounds that learn the relevance of columns: quick fits, and mean outer products of their gradients.

With f of a quick fit on rows u = T z, z the standardised columns,

    M = mean over rows, sum over outputs of grad f grad f^T, by z, each output in units of its spread
    T = M^(1/2) ("directions"), or its diagonal to the power 1/2 ("columns"; 0.8 for |x - z|_1)

and the next round fits on T z. That is the average gradient outer product of Radhakrishnan, Beaglehole,
Pandit and Belkin (2024). Rows that no quick fit sees judge every round:

    bandwidth   of standardised columns, by few rows: wider or narrower as long as that is better
    rounds      of each shape, as long as each is better than those before it; one that is not is
                tried with a narrower kernel first; with "auto" a shape ends whose round is far worse
                than rows as they are, or would be no better after one more gain like the last
    cells       where the model has cells: rounds from the best map so far on, of more rows, whose quick
                fits have cells too; they see what a few landmarks do not
    choice      the round with the smallest loss; with "auto" rows as they are, unless others of the
                rows that judge, which no choice has looked at, say that it is clearly better
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp

from asset_svm import clock
from asset_svm.arrays import Array
from asset_svm.backends.device import on_host
from asset_svm.exceptions import NonFiniteError
from asset_svm.families.observing import logger
from asset_svm.families.one_map.components import clearly_less
from asset_svm.families.one_map.trial import some_of
from asset_svm.families.relevance.choice import GUARD, LEAST_GAIN, Choice, best_of
from asset_svm.families.relevance.quick import Judged, QuickFit, Shape, is_absolute
from asset_svm.families.rows import Rows
from asset_svm.features.relevance import Learnt, Moments, Relevance
from asset_svm.settings import Settings
from asset_svm.tasks import Task
from asset_svm.tasks.base import train_test_rows

LEARNING_ROWS, JUDGING_ROWS = 20_000, 5_000
"""Rows that a quick fit sees, and that judge it, where there are more."""
CELL_PART, CELL_ROWS = 0.125, 60_000
"""The part of the rows that quick fits in cells see, and so many at most; at least as others do."""
WIDE, NARROWER = 200, 3
"""From so many columns on there are fewer rows, by this factor: a quick fit would take too long."""
SHORT, LEAST_PART = 4.0, 0.1
"""A time limit of fewer seconds leaves a part of the rows, and that at least."""
JUDGING = 0.25
"""The part of the rows that judges, where they are few."""
LAST = 0.4
"""The part of those that "auto" keeps for its last question."""
FEWEST_ROWS, FEWEST_LAST = 40, 30
"""Fewer rows judge nothing: columns are standardised, and no more; with "auto", not even that."""
BANDWIDTH_ROWS = 5_000
"""Rows that tell the bandwidth, where there are twice as many or more."""
HOPELESS = 1.1
"""Times the loss of rows as they are, clearly more than it: "auto" tries no further round."""
FACTOR, MOST_FACTORS = 4.0, 3
"""The factor between squared bandwidths that are tried, and how many steps one way."""
CELL_FACTOR = 4.0
"""How much narrower the kernel is in cells, to begin with."""
MOST_ROUNDS, MOST_CELL_ROUNDS = 5, 8
CELL_PATIENCE = 1
"""Rounds in cells that may be no better, since each has the seams of another partition."""
AUTO_COLUMNS = 1024
"""The eigenvectors of more columns take longer than a round: "auto" tries no directions then."""


def learn_relevance(settings: Settings, task: Task, rows: Rows, seed: int) -> Learnt:
    """The relevance of the columns of these rows, by what ``relevance`` asks for."""
    begun, auto, n = clock.now(), settings.relevance == "auto", rows.X.shape[1]
    part = 1.0 / NARROWER if n > WIDE else 1.0
    if settings.time_limit is not None:
        part *= min(max(settings.time_limit / SHORT, LEAST_PART), 1.0)
    learning, judging = int(part * LEARNING_ROWS), int(part * JUDGING_ROWS)
    most = learning
    if settings.n_cells is not None:
        most = max(most, min(int(CELL_PART * len(rows.y)), int(part * CELL_ROWS)))
    rows = rows.take(some_of(len(rows.y), most + judging, np.random.default_rng([seed, 11])))
    rows = replace(rows, X=on_host(rows.X))
    out = min(judging, int(JUDGING * len(rows.y)))
    last = int(LAST * out) if auto else 0
    if len(rows.y) < FEWEST_ROWS or (auto and last < FEWEST_LAST):
        moments = Moments.of(rows.X, rows.weight, absolute=is_absolute(settings))
        return Learnt(None if auto else moments.standard(), np.full(n, 1.0 / n))
    kept, held = _split(task, rows.y, out, seed)
    judged = Judged(settings, task, rows.take(kept), rows.take(held), last, seed)
    schedule = Schedule(judged, begun + (settings.time_limit or np.inf) / 2, auto)
    shapes = shapes_of(settings, n, sparse=bool(sp.issparse(rows.X)))
    choice = schedule.reduced(learning).on_one_map(shapes)
    if settings.n_cells is not None and not schedule.is_late:
        choice = replace(schedule, judged=replace(judged, cells=True)).in_cells(choice)
    found = choice.learnt(judged.deciding, auto=auto)
    by = next(record for record in found.history if record["chosen"])
    shown = "rows as they are" if found.relevance is None else "{shape}, round {round}".format(**by)
    logger.info(
        "relevance: %s, after %d quick fits in %.1f s", shown, len(found.history), clock.now() - begun
    )
    return found


def _split(task: Task, y: Array, count: int, seed: int) -> tuple[Array, Array]:
    """The rows to learn from, and so many that judge, of every class where that can be."""
    if task.classes is None or count >= 2 * len(task.classes):
        return task.split(y, count / len(y), seed)
    return train_test_rows(len(y), count / len(y), seed)


def shapes_of(settings: Settings, n: int, *, sparse: bool) -> tuple[Shape, ...]:
    """The shapes of maps that are tried for rows of n columns."""
    if settings.relevance == "columns":
        return ("columns",)
    if settings.relevance == "directions":
        return ("directions",)
    full = not is_absolute(settings) and n <= AUTO_COLUMNS and not sparse
    return ("columns", "directions") if full else ("columns",)


@dataclass(frozen=True, eq=False)
class Schedule:
    """Which quick fits are made, one after the other, until the deadline.

    Parameters
    ----------
    judged : Judged
        The rows, and what fits are made of.
    deadline : float
        The moment after which no fit begins but those that a map cannot be had without.
    auto : bool
        Whether rows as they are may be taken.
    """

    judged: Judged
    deadline: float
    auto: bool

    @property
    def is_late(self) -> bool:
        """Whether there is no time for one fit more."""
        return clock.now() > self.deadline

    def reduced(self, count: int) -> Schedule:
        """The same with at most so many rows to learn from."""
        return replace(self, judged=self.judged.of(count))

    def on_one_map(self, shapes: Sequence[Shape]) -> Choice:
        """The rounds of every shape, from standardised columns on."""
        judged, scaled = self.judged, self.judged.moments.standard()
        many = len(judged.learning.y) > 2 * BANDWIDTH_ROWS
        few = self.reduced(BANDWIDTH_ROWS) if many else self
        first, *fits = few.with_bandwidths("columns", 0, scaled, 1.0)
        if many:
            fits = [first, *fits]
            first = judged.fit("columns", 0, scaled, first.factor)
        first = self._seen(first, full="directions" in shapes)
        choice = Choice(first, [*fits, first])
        if self.auto:
            self._look_at_plain(choice, {1.0, first.factor})
        for shape in shapes:
            if not (self.is_late and choice.candidates):
                self.go_on(choice, shape, first, MOST_ROUNDS)
        if self.auto and not judged.moments.alike:  # standardised columns are a map too
            choice.candidates.append(first)
        return choice

    def in_cells(self, before: Choice) -> Choice:
        """Rounds in cells, from the best map of others on."""
        start = before.best or before.first
        assert start.relevance is not None and start.shape is not None
        first, *fits = self.with_bandwidths(start.shape, start.round, start.relevance, CELL_FACTOR)
        first = replace(first, made_of=start.made_of)
        choice = Choice(first, [*before.fits, *fits])
        choice.add(first)
        if self.auto:
            self._look_at_plain(choice, {first.factor, CELL_FACTOR})
        self.go_on(choice, start.shape, first, MOST_CELL_ROUNDS, CELL_PATIENCE)
        return choice

    def _seen(self, fit: QuickFit, *, full: bool) -> QuickFit:
        """A fit whose importances are its own: standardised columns are made of no M."""
        return replace(fit, made_of=self.judged.outer_product(fit, full=full))

    def _look_at_plain(self, choice: Choice, factors: set[float]) -> None:
        """Fit rows as they are; those whose columns have one scale are standardised ones already."""
        judged, first = self.judged, choice.first
        if judged.moments.alike and not judged.cells:
            choice.plain = replace(first, shape=None, relevance=None, seconds=0.0)
            choice.fits.append(choice.plain)
            return
        found = []
        for factor in sorted(factors):
            try:
                found.append(judged.fit(None, 0, None, factor))
            except NonFiniteError:  # which a map that scales columns is there to mend
                continue
        choice.fits += found
        choice.plain = best_of(found)

    def with_bandwidths(
        self, shape: Shape, number: int, relevance: Relevance, first: float
    ) -> list[QuickFit]:
        """Fits with wider and narrower kernels, as long as they are better; the best comes first."""
        best = self.judged.fit(shape, number, relevance, first)
        found = [best]
        for factor in (1.0 / FACTOR, FACTOR):
            for _ in range(MOST_FACTORS):
                if self.is_late:
                    break
                next_one = self.judged.fit(shape, number, relevance, best.factor * factor)
                found.append(next_one)
                if next_one.loss >= best.loss:
                    break
                best = next_one
            if best.factor != first:
                break
        return [best, *(each for each in found if each is not best)]

    def go_on(
        self, choice: Choice, shape: Shape, first: QuickFit, most: int, patience: int = 0
    ) -> None:
        """Rounds of one shape after a fit, as long as each is better than those before it.

        So many in a row as ``patience`` says may be no better.
        """
        judged, fit, full = self.judged, first, shape == "directions"
        factor, before, least, waited = first.factor, first.loss, np.inf, 0
        for number in range(first.round + 1, first.round + most + 1):
            # Round 0 has its own M already.
            M = fit.made_of if fit.round == 0 else judged.outer_product(fit, full=full)
            assert M is not None
            relevance = judged.next_map(shape, M)
            if relevance is None:
                return
            fit = judged.fit(shape, number, relevance, factor, M)
            choice.add(fit)
            if self._is_hopeless(fit, choice.plain):
                return
            if fit.loss >= min(least, first.loss) and not self.is_late:
                narrower = judged.fit(shape, number, relevance, FACTOR * factor, M)
                choice.add(narrower)
                if narrower.loss < fit.loss:
                    fit, factor = narrower, FACTOR * factor
            waited = 0 if fit.loss < least else waited + 1
            least = min(least, fit.loss)
            if waited > patience or self.is_late or not self._may_win(fit, before, choice.plain):
                return
            before = fit.loss

    def _may_win(self, fit: QuickFit, before: float, plain: QuickFit | None) -> bool:
        """Whether one more gain like the last would be enough, where rows as they are may be taken."""
        gain = max(before - fit.loss, 0.0)
        return plain is None or fit.loss - gain < (1.0 - LEAST_GAIN) * plain.loss

    def _is_hopeless(self, fit: QuickFit, plain: QuickFit | None) -> bool:
        """Whether a round is far worse than rows as they are, where those may be taken."""
        if plain is None or fit.loss <= HOPELESS * plain.loss:
            return False
        return clearly_less(plain.losses, fit.losses, self.judged.choosing, GUARD)
