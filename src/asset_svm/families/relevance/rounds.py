"""Rounds that learn the relevance of columns: quick fits, and mean outer products of their gradients.

With f of a quick fit on rows u = T z, z the standardised columns,

    M = mean over rows, sum over outputs of grad f grad f^T, by z, each output in units of its spread
    T = M^(1/2) ("directions"), or its diagonal to the power 1/2 ("columns"; 0.8 for |x - z|_1)

and the next round fits on T z. That is the average gradient outer product of Radhakrishnan, Beaglehole,
Pandit and Belkin (2024). Rows that no quick fit sees judge every round:

    bandwidth   of standardised columns, by few rows and landmarks: wider or narrower as long as that is
                clearly better
    rounds      of each shape, in turns, as long as each is better than those before it; one that is not
                is tried with a narrower kernel first; a shape ends that is clearly behind the other and
                cannot catch up, and with "auto" one whose round is far worse than rows as they are, or
                would be no better after one more gain like the last
    cells       where the model has cells: rounds from the best map so far on, of more rows, whose quick
                fits have cells too; they see what a few landmarks do not, unless they are clearly worse
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
"""Rows that tell the bandwidth, by fits of fewer landmarks, where there are more."""
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
        many = len(judged.learning.y) > BANDWIDTH_ROWS
        few = replace(self, judged=judged.coarse(BANDWIDTH_ROWS)) if many else self
        first, *fits = few.with_bandwidths("columns", 0, scaled, 1.0, clearly=many)
        if many:
            fits = [first, *fits]
            first = judged.fit("columns", 0, scaled, first.factor)
        first = self._seen(first, full="directions" in shapes)
        choice = Choice(first, [*fits, first])
        if self.auto:
            self._look_at_plain(choice, {1.0, first.factor})
        self.side_by_side(choice, shapes, first)
        if self.auto and not judged.moments.alike:  # standardised columns are a map too
            choice.candidates.append(first)
        self._be_fair(choice)
        return choice

    def in_cells(self, before: Choice) -> Choice:
        """Rounds in cells, from the best map of others on, unless cells are worse than one map.

        They are where classes are many and rows few: what their gradients say is then worse too.
        """
        start = before.best or before.first
        assert start.relevance is not None and start.shape is not None
        first, *fits = self.with_bandwidths(start.shape, start.round, start.relevance, CELL_FACTOR)
        if self.is_behind(first, start):
            return replace(before, fits=[*before.fits, first, *fits])
        first = replace(first, made_of=start.made_of)
        choice = Choice(first, [*before.fits, *fits])
        choice.add(first)
        if self.auto:
            self._look_at_plain(choice, {first.factor, CELL_FACTOR})
        looked = [fit for fit in fits if fit.factor > first.factor]
        narrower = not any(self.is_behind(fit, first, HOPELESS) for fit in looked)
        self.go_on(choice, start.shape, first, MOST_CELL_ROUNDS, CELL_PATIENCE, narrower=narrower)
        self._be_fair(choice)
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
        self._add_plain(choice, factors)

    def _add_plain(self, choice: Choice, factors: set[float]) -> None:
        """Fit rows as they are with kernels of these widths."""
        found = [] if choice.plain is None else [choice.plain]
        for factor in sorted(factors):
            try:
                fit = self.judged.fit(None, 0, None, factor)
            except NonFiniteError:  # which a map that scales columns is there to mend
                continue
            choice.fits.append(fit)
            found.append(fit)
        choice.plain = best_of(found)

    def _be_fair(self, choice: Choice) -> None:
        """Give rows as they are the kernel of the best map, where that looks better than they do.

        Rounds may have come to another bandwidth: what that alone gains is no gain of the map, and
        on targets of noise it would be taken for one.
        """
        best, plain = choice.best, choice.plain
        if best is None or plain is None or best.loss >= plain.loss:
            return
        own = [fit for fit in choice.fits if fit.shape is None and fit.cells == best.cells]
        if all(fit.factor != best.factor for fit in own):
            self._add_plain(choice, {best.factor})

    def with_bandwidths(
        self, shape: Shape, number: int, relevance: Relevance, first: float, *, clearly: bool = False
    ) -> list[QuickFit]:
        """Fits with wider and narrower kernels, as long as they are better; the best comes first.

        ``clearly`` better, where few landmarks make all of them alike: a kernel that noise has chosen
        may be so wide that its gradients tell nothing of the columns.
        """
        best = self.judged.fit(shape, number, relevance, first)
        found = [best]
        for factor in (1.0 / FACTOR, FACTOR):
            for _ in range(MOST_FACTORS):
                if self.is_late:
                    break
                next_one = self.judged.fit(shape, number, relevance, best.factor * factor)
                found.append(next_one)
                enough = 1.0 / (1.0 - LEAST_GAIN)
                if not (
                    self.is_behind(best, next_one, enough) if clearly else next_one.loss < best.loss
                ):
                    break
                best = next_one
            if best.factor != first:
                break
        return [best, *(each for each in found if each is not best)]

    def go_on(
        self,
        choice: Choice,
        shape: Shape,
        first: QuickFit,
        most: int,
        patience: int = 0,
        *,
        narrower: bool = True,
    ) -> None:
        """Rounds of one shape after a fit, as long as each is better than those before it."""
        course = Course(self, choice, shape, first, most, patience, narrower)
        while course.advance():
            pass

    def side_by_side(self, choice: Choice, shapes: Sequence[Shape], first: QuickFit) -> None:
        """Rounds of every shape after the same fit, in turns: each knows how good the others are."""
        courses = [Course(self, choice, shape, first, MOST_ROUNDS) for shape in shapes]
        going = list(courses)
        while going:
            for course in list(going):
                if self.is_late and choice.candidates:
                    return
                rival = best_of(fit for each in courses if each is not course for fit in each.made)
                if not course.advance(rival):
                    going.remove(course)

    def is_behind(self, fit: QuickFit, other: QuickFit, most: float = 1.0) -> bool:
        """Whether a fit has clearly more than ``most`` times the loss of another, where rows choose."""
        if fit.loss <= most * other.loss:
            return False
        return clearly_less(other.losses, fit.losses, self.judged.choosing, GUARD)


@dataclass(eq=False)
class Course:
    """The rounds of one shape after a fit, one at a time.

    Parameters
    ----------
    schedule : Schedule
    choice : Choice
        What they are added to.
    shape : str
    first : QuickFit
        The fit that they begin with.
    most : int
        So many rounds at most.
    patience : int
        So many in a row may be no better than those before.
    narrower : bool
        Whether a round that is no better is tried with a narrower kernel.
    """

    schedule: Schedule
    choice: Choice
    shape: Shape
    first: QuickFit
    most: int
    patience: int = 0
    narrower: bool = True

    def __post_init__(self) -> None:
        self.fit, self.made = self.first, list[QuickFit]()
        self.least, self.waited, self.left = np.inf, 0, self.most

    def advance(self, rival: QuickFit | None = None) -> bool:
        """One round; whether there is another one.

        ``rival`` is the best fit of the other shapes.
        """
        judged, before, number = self.schedule.judged, self.fit, self.fit.round + 1
        self.left -= 1
        # Round 0 has its own M already.
        full = self.shape == "directions"
        M = before.made_of if before.round == 0 else judged.outer_product(before, full=full)
        assert M is not None
        relevance = judged.next_map(self.shape, M)
        if relevance is None:
            return False
        fit = self._added(judged.fit(self.shape, number, relevance, before.factor, M))
        if self._is_hopeless(fit, rival):
            return False
        if self._wants_narrower(fit):
            narrower = self._added(judged.fit(self.shape, number, relevance, FACTOR * fit.factor, M))
            self.narrower = not self.schedule.is_behind(narrower, fit, HOPELESS)
            fit = min(fit, narrower, key=lambda each: each.loss)
        self.waited = 0 if fit.loss < self.least else self.waited + 1
        self.least, self.fit = min(self.least, fit.loss), fit
        tired = self.waited > self.patience or self.left == 0 or self.schedule.is_late
        return not tired and self._may_win(before.loss - fit.loss, rival)

    def _added(self, fit: QuickFit) -> QuickFit:
        self.choice.add(fit)
        self.made.append(fit)
        return fit

    def _is_hopeless(self, fit: QuickFit, rival: QuickFit | None) -> bool:
        """Whether a round is far worse than rows as they are, or no better and behind another shape."""
        plain, schedule = self.choice.plain, self.schedule
        if plain is not None and schedule.is_behind(fit, plain, HOPELESS):
            return True
        return rival is not None and fit.loss >= self.fit.loss and schedule.is_behind(fit, rival)

    def _wants_narrower(self, fit: QuickFit) -> bool:
        """Whether a round that is no better than those before may be so with a narrower kernel."""
        no_better = fit.loss >= min(self.least, self.first.loss)
        return no_better and self.narrower and not self.schedule.is_late

    def _may_win(self, gain: float, rival: QuickFit | None) -> bool:
        """Whether gains like the last would be enough.

        One more, where rows as they are may be taken; of a shape that is behind another, as many as
        there are rounds left, since gains become smaller as a rule.
        """
        fit, plain, gain = self.fit, self.choice.plain, max(gain, 0.0)
        if plain is not None and fit.loss - gain >= (1.0 - LEAST_GAIN) * plain.loss:
            return False
        if rival is None or fit.loss - self.left * gain < rival.loss:
            return True
        return not self.schedule.is_behind(fit, rival)
