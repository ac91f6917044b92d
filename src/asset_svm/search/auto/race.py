"""The race: cheap looks at many kinds of models, more rows and finer settings for those that do best.

    screen      encodings and kernels, on few rows and few landmarks
    relevance   of columns and directions, for the better of them
    widen       the best on more rows, on one map and in cells, at all bandwidths and Cs
    finish      the best of those on all rows that may learn: finer steps, larger models

Every stage has a part of the budget, ends when that is spent, and looks at the most promising first.
What a race has found so far is always there: it may be ended at any look.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from asset_svm.search.auto.guesses import FEWEST_JUDGING
from asset_svm.search.auto.judged import Judged
from asset_svm.search.auto.larger import larger_sizes
from asset_svm.search.auto.looks import Looks
from asset_svm.search.auto.shapes import (
    GIVEN,
    SQUARES,
    TUBE,
    Candidate,
    Shape,
    is_absolute,
)
from asset_svm.search.auto.standing import best_of, by_shape, near, ranked, shapes
from asset_svm.tasks import Regression
from asset_svm.tasks.quantiles import has_tube

FEW, MORE = 4000, 16_000
"""Rows of the first two stages, and of the third."""
COSTS = (1.0, 10.0, 100.0)
LEAST_C, MOST_C = 1e-3, 1e5
NEARLY_STRAIGHT, STRAIGHT_COSTS = 1.0 / 64.0, (100.0, 1000.0, 10_000.0)
"""A kernel so wide that models bend little, and its Cs: tried where straight ones are good."""
FACTORS = (1.0 / 1024.0, 4096.0)
"""The ends of the bandwidths."""
SCREENED, LEARNT, WIDENED = 0.2, 0.5, 0.75
"""The parts of the budget that are spent after each stage."""
SHAPES_CLIMBED, SHAPES_WIDENED, SHAPES_FINISHED = 5, 4, 3
ROUNDS = 3
"""How often the later stages are gone through, each time with twice as many shapes, as time allows."""
PLAIN = 3
"""Shapes without a relevance that every stage goes on with, of different encodings or families."""
HURRIED = 2
"""The part of other shapes that stages go on with where time is short, besides one without a relevance,
one in cells and one on a map."""
NEAR = 1.25
"""Times the smallest loss of a stage: shapes that have more are not gone on with."""
NEAR_END = 1.15
"""The same of the last stage."""
NOT_FAR = 1.5
"""The same of shapes that learn a relevance, whose bandwidth is not known yet, and of plain ones, that
may gain more of more rows."""
IN_VAIN, DEAR = 2, 0.04
"""So many relevances after another that gain nothing, after which those whose looks take more than such
a part of the budget are left to later rounds; fine steps that take more gain too little, too."""
ONE_WIDE = 0.06
"""The part of the budget that a look at several Cs may take, where rows become more."""
ONE_LOOK = 0.5
"""The part of what is left that one look at all rows may take."""
LEAST_RESERVED, MOST_RESERVED = 0.06, 0.5
"""The parts of the budget that are kept for the final model (the first for each of a mean, the second
for all of them); it may have to learn from fewer rows."""
SMALL_LOOK, RESERVED_THEN = 0.03, 0.3
"""A look that takes no more than such a part leaves no more for the final model than the second: its
settings may be those of a model that takes less."""
MOST_FOR_MEANS = 0.25
"""The part of the budget that is kept for the other models of a mean: one good model comes first."""
SPARE = 1.25
"""Times what the best model is guessed to take, that is kept for it, and what long looks may take."""
SPARE_LEARNING = 1.6
"""The same of one that learns a relevance first: what that leaves too little time for is no model."""
FILLED = 0.3
"""The part of the budget that is kept for more partitions of the final model, once the best shape has
been tried on all rows, with the bandwidth that does best there."""
ONE_LARGER = 0.1
"""The part of the budget that a look at a larger model may take before steps of bandwidth and C."""
QUICK = 0.015
"""The part of the budget that a look at a larger model may take for finer steps of such models."""
DENSER = 4.0
"""Times the rows of the stage before, from which on cells ask for other settings than there."""
GAIN = 0.003
"""The part of the loss that a step of bandwidth or C must gain for one more in its direction."""
NARROWER_IN_CELLS = 4.0
FINER_EPSILON = 0.2
"""Of the one before, tried at the end."""

Watch = Callable[[list[Judged]], bool]
"""Called with what a look has found; True asks to stop."""


@dataclass(frozen=True)
class Axes:
    """What is open: the values of each axis, the usual first."""

    encodings: tuple[str, ...]
    kernels: tuple[str, ...]
    relevances: tuple[str | None, ...]
    cells: tuple[bool, ...]


@dataclass(eq=False)
class Race:
    """A race over what the axes leave open.

    Parameters
    ----------
    looks : Looks
    axes : Axes
    n_rows : int
        Rows that the final model learns from.
    watch : callable, optional
    models : float
        How many final models time is kept for: a mean has several.
    kept : float
        The part of the budget that is left for what comes after the race, but for these models.
    hurried : bool
        Whether time is short: fewer shapes are gone on with, before all have been tried once.
    """

    looks: Looks
    axes: Axes
    n_rows: int
    watch: Watch | None = None
    models: float = 1.0
    kept: float = 0.0
    hurried: bool = False
    history: list[Judged] = field(default_factory=list)

    def __post_init__(self) -> None:
        parts = self.looks.columns.parts
        self.most = max(len(part.learning) for part in parts)
        self.judging = max(len(part.judging) for part in parts)
        self.wider, self.late, self.tuned = 1, False, False
        self.loss = TUBE
        self.before = self.looks.budget.used  # rows were read and checked

    def run(self) -> list[Judged]:
        """Run all stages; returns what was found of candidates on the most rows, best first."""
        few, more = min(FEW, self.most), min(MORE, self.most)
        self._screen(few)
        for round_ in range(ROUNDS):
            looked = len(self.history)
            self.wider, self.late = 2**round_, round_ > 0
            self._learn_relevance(few)
            self._widen(more)
            self._finish()
            if round_ and len(self.history) == looked:
                break
        most = max(each.rows for each in self.history)
        return ranked(each for each in self.history if each.rows == most)

    # Stages -------------------------------------------------------------------------------------

    def _screen(self, count: int) -> None:
        """Encodings and kernels, on one map; in cells where there is nothing else."""
        end, cells = SCREENED, not self._on_map
        (usual, *others), encodings = self.axes.kernels, self.axes.encodings
        for encoding in encodings:
            self._try(Candidate(Shape(encoding, usual, None, cells)), COSTS, count, end)
        near = {shape.encoding for shape in shapes(self._near(self.history))}
        first = [Shape(each, kernel, None, cells) for each in encodings for kernel in others]
        for shape in first:
            if shape.encoding in near:
                self._try(Candidate(shape), COSTS, count, end)
        self._choose_loss(count, end)
        for shape in shapes(self._near(self.history))[:SHAPES_CLIMBED]:
            self._climb(shape, count, 4.0, end)
        for shape in first:  # what has been left out, as time allows
            if shape.encoding not in near:
                self._try(Candidate(shape).with_loss(self.loss), COSTS, count, end)
        for shape in shapes(self._near(self.history, NEAR_END)):
            if not shape.has_gamma and "rbf" in self.axes.kernels:  # next to straight
                curved = Shape(shape.encoding, "rbf", None, cells)
                wide = Candidate(curved, NEARLY_STRAIGHT).with_loss(self.loss)
                self._try(wide, STRAIGHT_COSTS, count, end)

    def _choose_loss(self, count: int, end: float) -> None:
        """Squares in place of the tube, where the best is better with them."""
        best = ranked(self._on(count))[:1]
        if not isinstance(self.looks.task, Regression) or not best:
            return
        found = self._try(best[0].candidate.with_loss(SQUARES), COSTS, count, end)
        if found and min(each.loss for each in found) < best[0].loss:
            self.loss = SQUARES

    def _learn_relevance(self, count: int) -> None:
        """Each relevance of each kernel, with the encodings that did best."""
        asked = [each for each in self.axes.relevances if each is not None]
        tried: list[tuple[float, Candidate]] = []
        best = dict.fromkeys(each.candidate.shape.encoding for each in self._near(self.history))
        if "standard" in best and GIVEN in self.axes.encodings:
            # Learning begins with standardised columns, whatever they are: they need not be encoded.
            names = [GIVEN if each == "standard" else each for each in best]
            best = dict.fromkeys(names)
        for place, encoding in enumerate(best):
            for judged in by_shape(self._near(self.history)):
                shape, factor = judged.candidate.shape, judged.candidate.factor
                alike = (encoding, "standard") if encoding == GIVEN else (encoding,)
                if shape.encoding not in alike or not shape.has_gamma or shape.relevance is not None:
                    continue
                for each in asked:
                    if each == "directions" and is_absolute(shape.kernel):
                        continue
                    mapped = Shape(encoding, shape.kernel, each, shape.cells)
                    if all(mapped != other.shape for _, other in tried):
                        new = Candidate(mapped, factor).with_loss(self.loss)
                        tried.append((judged.loss * (1.0 + 0.5 * place), new))
        forced = None not in self.axes.relevances and not self.late  # asked for: one is tried at least
        in_vain = 0
        for _, candidate in sorted(tried, key=lambda pair: pair[0]):
            if in_vain >= IN_VAIN and not (self.late or forced):
                seconds = self.looks.seconds(candidate, len(COSTS), count, self.judging)
                if seconds > DEAR * self.looks.budget.total:
                    continue
            found = self._try(candidate, COSTS, count, np.inf if forced else self._end(LEARNT))
            forced = False
            if found:
                in_vain = 0 if self._gains_by_relevance(found, count) else in_vain + 1
        for shape in shapes(self._near(self._on(count), NOT_FAR))[: self.wider * SHAPES_WIDENED]:
            self._climb(shape, count, 4.0, self._end(LEARNT))

    def _gains_by_relevance(self, found: list[Judged], count: int) -> bool:
        """Whether these are better than the best without a relevance of the same kernel and family."""
        shape = found[0].candidate.shape
        plain = [
            each.loss
            for each in self._on(count)
            if (each.candidate.shape.kernel, each.candidate.shape.cells) == (shape.kernel, shape.cells)
            and each.candidate.shape.relevance is None
        ]
        return min(each.loss for each in found) < min(plain, default=np.inf)

    def _widen(self, count: int) -> None:
        """The best shapes on more rows, on one map and in cells."""
        for candidate in self._kept(self.history, self.wider * SHAPES_WIDENED):
            families = self.axes.cells if self.late else self._families(count)
            starts = [self._start(candidate, cells, count) for cells in families]
            open_ = [each for each in starts if each is not None]
            for _, start, Cs in sorted(open_, key=lambda one: one[0]):
                found = self._try(start, Cs, count, self._end(WIDENED))
                if found and len(shapes(self._on(count))) == 1:  # it may be all there is time for
                    self._climb(start.shape, count, 4.0, self._end(WIDENED))
        for candidate in self._kept(self._on(count), self.wider * SHAPES_FINISHED):
            self._climb(candidate.shape, count, 4.0, self._end(WIDENED))

    def _families(self, count: int) -> tuple[bool, ...]:
        """One map and cells, or the one that is far ahead of the other on so many rows."""
        best = {
            cells: min(each.loss for each in self._on(count) if each.candidate.shape.cells == cells)
            for cells in {each.candidate.shape.cells for each in self._on(count)}
        }
        least = min(best.values(), default=np.inf)
        far = {cells for cells, loss in best.items() if loss > least + (NEAR - 1.0) * abs(least)}
        return tuple(cells for cells in self.axes.cells if cells not in far)

    def _start(
        self, candidate: Candidate, cells: bool, count: int
    ) -> tuple[float, Candidate, tuple[float, ...]] | None:
        """What a first look at a candidate on one map, or in cells, takes; its settings and Cs."""
        before = candidate.shape
        if cells and not before.has_gamma:
            return None
        shape = Shape(before.encoding, before.kernel, before.relevance, cells)
        narrower = NARROWER_IN_CELLS if cells and not before.cells else 1.0
        start = candidate.changed(shape=shape, factor=candidate.factor * narrower, size=0)
        start = start.with_loss(self.loss)
        Cs = COSTS if narrower > 1.0 else self._costs(candidate.C)
        seconds = self.looks.seconds(start, len(Cs), count, self.judging)
        if seconds > ONE_WIDE * self.looks.budget.total:
            Cs = (candidate.C,)
        return seconds, start, Cs

    def _finish(self) -> None:
        """The best shapes on all rows, finer and larger."""
        counts = [self.most]
        while counts[-1] > MORE:
            counts.append(max(counts[-1] // 2, MORE))
        rows = max((each.rows for each in self.history), default=0)
        kept = self._kept(self._on(rows), self.wider * SHAPES_FINISHED)
        if not kept:
            return
        budget = self.looks.budget
        room = budget.left - self.reserve(kept[0])
        count = next(
            (c for c in counts if self.looks.seconds(kept[0], 1, c, self.judging) < ONE_LOOK * room),
            rows,
        )
        denser = count >= DENSER * rows
        for candidate in kept:
            Cs = (
                (0.1 * candidate.C, candidate.C) if denser and candidate.shape.cells else (candidate.C,)
            )
            self._try(candidate, Cs, count, 1.0)
        if not self._on(count):  # time has run out meanwhile
            return
        first = ranked(self._on(count))[0].candidate
        if denser and first.shape.cells:
            self._climb(first.shape, count, 4.0, 1.0, costs=(1.0,))
        self.tuned = True
        self._enlarge_all(count)
        for each in self._near(by_shape(self._on(count)), NEAR_END):
            shape = each.candidate.shape
            size = each.candidate.size if self._is_quick(each.candidate, count) else 0
            if shape.cells and denser:
                self._climb(shape, count, 4.0, 1.0, costs=(1.0,), size=size)
            if not self.late and self._is_dear(each.candidate.changed(size=size), count):
                continue
            self._climb(shape, count, 2.0, 1.0, costs=(1.0,), size=size)
            self._climb_cost(shape, count, 3.0, size)
            best = best_of(self.history, shape, count, size)
            if best is not None:
                self._grow(best, count)
        best = ranked(self._on(count))[0]
        if has_tube(self.looks.task):
            finer = best.candidate.changed(epsilon=best.candidate.epsilon * FINER_EPSILON)
            others = [finer] if finer != best.candidate else []
            if isinstance(self.looks.task, Regression):
                others.append(
                    best.candidate.with_loss(TUBE if best.candidate.loss == SQUARES else SQUARES)
                )
            for other in others:
                self._try(other, (other.C,), count, 1.0)
            best = ranked(self._on(count))[0]
        if best.candidate.size and best.candidate.shape.has_gamma:
            for by in (2.0, 0.5):
                wider = best.candidate.changed(factor=by * best.candidate.factor)
                self._try(wider, (best.candidate.C,), count, 1.0)

    def _enlarge_all(self, count: int) -> None:
        """A larger model of every shape, cheapest first: which gains, the usual size does not say."""
        tried, total = [], self.looks.budget.total
        near = self._near(by_shape(self._on(count)), NEAR)
        for each in self._near(by_shape(self._on(count)), NOT_FAR):
            for size in larger_sizes(self.looks, each.candidate)[:1]:
                larger = each.candidate.changed(size=size)
                seconds = self.looks.seconds(larger, 1, count, self.judging)
                if seconds <= (ONE_LARGER if each in near else SMALL_LOOK) * total:
                    tried.append((seconds, each, size))
        for _, each, size in sorted(tried, key=lambda one: one[0]):
            self._enlarge(each, size, count)

    def _is_dear(self, candidate: Candidate, count: int) -> bool:
        """Whether fine steps of such a model take more than they are likely to gain."""
        return self.looks.seconds(candidate, 1, count, self.judging) > DEAR * self.looks.budget.total

    def _is_quick(self, candidate: Candidate, count: int) -> bool:
        """Whether there is time for several looks at such a model."""
        solved = not candidate.shape.cells or self._solves_all(count)
        seconds = self.looks.seconds(candidate, 1, count, self.judging)
        return solved and seconds <= QUICK * self.looks.budget.total

    def _solves_all(self, count: int) -> bool:
        """Whether a look at so many rows solves all of its cells: all rows judge then."""
        return count + self.judging <= self.looks.most_solved

    def _grow(self, best: Judged, count: int) -> None:
        """Try larger and larger models like the best, as long as that is better."""
        for size in larger_sizes(self.looks, best.candidate):
            larger = self._enlarge(best, size, count)
            if size != 2 and larger is not None:
                if not self._gains([larger], best):
                    return
                best = larger

    def _enlarge(self, best: Judged, size: int, count: int) -> Judged | None:
        """Try the larger model; of cells that are not all solved, beside the usual on fewer rows."""
        larger = best.candidate.changed(size=size)
        known = [each for each in self._on(count) if each.candidate == larger]
        if known:
            return known[0]
        if not larger.shape.cells or self._solves_all(count):
            found = self._try(larger, (larger.C,), count, 1.0)
            return found[0] if found else None
        few = min(MORE, self.most)
        judging = min(self.judging, max(self.looks.most_solved - few, FEWEST_JUDGING))
        before = self._beside(best.candidate, few, judging)
        after = self._beside(larger, few, judging)
        fits = self.looks.final_seconds(larger, self.n_rows) <= self.looks.budget.left
        if before and after and fits and self._gains([after], before):
            gained = before.loss - after.loss
            self.history.append(replace(best, candidate=larger, loss=best.loss - gained))
            return self.history[-1]
        return None

    # Steps --------------------------------------------------------------------------------------

    def _try(self, candidate: Candidate, Cs: Sequence[float], count: int, end: float) -> list[Judged]:
        """Look at a candidate, where the budget of the stage allows it; at the first always."""
        if self.history and not self._has_time(candidate, len(Cs), count, self.judging, end):
            return []
        judging = min(self.judging, max(count, FEWEST_JUDGING))
        new = [C for C in Cs if (candidate.changed(C=C), count, judging) not in self.looks.found]
        found = self.looks.look(candidate, Cs, count, judging)
        fresh = [each for each in found if each.candidate.C in new]
        self.history += fresh
        if fresh and self.watch is not None and self.watch(fresh):
            self.looks.budget.stopped = True
        return found

    def _beside(self, candidate: Candidate, count: int, judging: int) -> Judged | None:
        """What some of the rows that judge say of a candidate, which only one other is beside."""
        if not self._has_time(candidate, 1, count, judging, 1.0):
            return None
        return self.looks.look(candidate, (candidate.C,), count, judging)[0]

    def _has_time(self, candidate: Candidate, n_Cs: int, count: int, judging: int, end: float) -> bool:
        """Whether a look leaves what has to be left at the end of a stage."""
        budget = self.looks.budget
        seconds = self.looks.seconds(candidate, n_Cs, count, judging)
        if end >= 1.0 and seconds > ONE_WIDE * budget.total:
            seconds *= SPARE  # what comes next is the final model
        reserve = self._least_reserve(candidate, count)
        if seconds <= SMALL_LOOK * budget.total:
            reserve = min(reserve, (RESERVED_THEN + self.kept) * budget.total)
        allowed = end * (budget.total - reserve - self.before) - (budget.used - self.before)
        return end == np.inf or (seconds <= allowed and budget.left > 0.0)

    def _climb(
        self,
        shape: Shape,
        count: int,
        step: float,
        end: float,
        costs: Sequence[float] = (0.1, 1.0, 10.0),
        size: int = 0,
    ) -> None:
        """Wider and narrower kernels, as long as that is better."""
        if not shape.has_gamma:
            return
        for by in (step, 1.0 / step):
            while (best := best_of(self.history, shape, count, size)) is not None:
                candidate = best.candidate.changed(factor=best.candidate.factor * by)
                if not FACTORS[0] <= candidate.factor <= FACTORS[1]:
                    break
                Cs = [C for C in (best.candidate.C * each for each in costs) if LEAST_C <= C <= MOST_C]
                found = self._try(candidate, Cs, count, end)
                if not found or not self._gains(found, best):
                    break

    def _climb_cost(self, shape: Shape, count: int, step: float, size: int) -> None:
        """Smaller and larger Cs, as long as that is better."""
        for by in (step, 1.0 / step):
            while (best := best_of(self.history, shape, count, size)) is not None:
                C = best.candidate.C * by
                if not LEAST_C <= C <= MOST_C:
                    break
                found = self._try(best.candidate, (C,), count, 1.0)
                if not found or not self._gains(found, best):
                    break

    @staticmethod
    def _gains(found: list[Judged], best: Judged) -> bool:
        """Whether a step is worth one more in its direction."""
        least = min(each.loss for each in found)
        return bool(np.isfinite(best.loss) and least < best.loss - GAIN * abs(best.loss))

    def reserve(self, candidate: Candidate) -> float:
        """The seconds that are left after the race: for the final model, or for all of a mean."""
        total = self.looks.budget.total
        seconds = self.looks.final_seconds(candidate, self.n_rows)
        one = max(seconds, LEAST_RESERVED * total)
        models = max(one, min(self.models * one, MOST_FOR_MEANS * total))
        return min(max(models, self._best_takes()), MOST_RESERVED * total) + self.kept * total

    def _least_reserve(self, candidate: Candidate, count: int) -> float:
        """``reserve``; on few rows one map stands for cells too, which many rows may ask for."""
        shape, reserve = candidate.shape, self.reserve(candidate)
        if count > FEW or not shape.has_gamma or shape.cells or True not in self.axes.cells:
            return reserve
        return min(reserve, self.reserve(candidate.changed(shape=replace(shape, cells=True))))

    def _best_takes(self) -> float:
        """The seconds of the best until now, by what looks at it took, with some to spare."""
        rows = max((each.rows for each in self.history), default=0)
        if rows < min(MORE, self.most):
            return 0.0
        best = ranked(self._on(rows))[0]
        learns = best.candidate.shape.relevance is not None
        if learns and not self.looks.reuses(best.candidate, self.n_rows):
            spare = SPARE_LEARNING
        else:
            spare = SPARE
        seconds = spare * self.looks.training_seconds(best, self.n_rows)
        most = self.looks.most_partitions(best.candidate, self.n_rows)
        if most == 1 or not self.tuned:
            return seconds
        filled = self.looks.training_seconds(best.with_partitions(most), self.n_rows)
        return max(seconds, min(filled, FILLED * self.looks.budget.total))

    # What was found -----------------------------------------------------------------------------

    @property
    def _on_map(self) -> bool:
        return False in self.axes.cells

    def _costs(self, C: float) -> tuple[float, ...]:
        return tuple(C * by for by in (0.1, 1.0, 10.0) if LEAST_C <= C * by <= MOST_C)

    def _end(self, stage: float) -> float:
        """The part of the budget after which a stage ends; later rounds may take what is left."""
        return 1.0 if self.late else stage

    def _near(self, found: Iterable[Judged], times: float = NEAR) -> list[Judged]:
        """Those whose losses are not far from the smallest, the best first; in later rounds more."""
        return near(found, 1.0 + self.wider * (times - 1.0))

    def _on(self, count: int) -> list[Judged]:
        """What was found of candidates that have learnt from so many rows."""
        return [each for each in self.history if each.rows == count]

    def _kept(self, found: Iterable[Judged], count: int) -> list[Candidate]:
        """The best candidates of so many shapes, and of the best that learns no relevance.

        Where rows become more, what is learnt of columns may gain less than it did.
        """
        best = [each.candidate for each in self._near(by_shape(found), NOT_FAR)]
        first: dict[tuple[str, bool], Candidate] = {}
        for each in best:
            if each.shape.relevance is None:
                first.setdefault((each.shape.encoding, each.shape.cells), each)
        plain = list(first.values())
        if not self.hurried or self.late:
            return list(dict.fromkeys([*best[:1], *plain[:PLAIN], *best[:count]]))
        families = {each.shape.cells: each for each in reversed(best)}  # the best of either
        few = max(count // HURRIED, 1)
        return list(dict.fromkeys([*best[:1], *families.values(), *plain[:1], *best[:few]]))
