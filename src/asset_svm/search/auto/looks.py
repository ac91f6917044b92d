"""A look at candidates: models of several Cs trained together on some rows, judged by others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from asset_svm import clock
from asset_svm.arrays import Array
from asset_svm.exceptions import NonFiniteError
from asset_svm.families.cells.partitions import grow_partition
from asset_svm.features.relevance import Learnt
from asset_svm.search.auto.blend import LogLosses, Losses, losses_of_numbers
from asset_svm.search.auto.columns import Lesson, NothingToTellError, Prepared
from asset_svm.search.auto.guesses import GROWING, Guesses
from asset_svm.search.auto.judged import Judged
from asset_svm.search.auto.shapes import Candidate, cost_of
from asset_svm.search.cells import CellSearch
from asset_svm.search.cost import swept_seconds
from asset_svm.search.maps import MapSearch
from asset_svm.search.scores import scores
from asset_svm.settings import Settings
from asset_svm.storage.searches import SavedLook, SavedRelevance, SavedWork
from asset_svm.tasks import Classification, Outputs, Regression, Task
from asset_svm.threads.granted import granted

SOFT, SOFT_ROWS = 0.25, 1000
"""How much a smoothed error counts, which says more of few rows, up to so many; of more, less."""


@dataclass(eq=False)
class Looks(Guesses):
    """All looks of a race, which take about what they are guessed to."""

    _grown: tuple[str, list[Array] | None] = ("", None)
    """What the last partition was of, and its cells; None where they are not there any more."""
    _lots: int = 0
    """The lots of the last look that models have learnt from."""
    _lesson: Lesson | None = None
    """What the last look has learnt its relevance from."""
    _done: float = 0.0
    """The nominal seconds of the models of the last look, by the sweeps of their cells."""
    _swept: float = 0.0
    """What these sweeps took, and matrices for each model, by the clock that the budget goes by."""
    failure: str = ""
    """Why the last candidate that has failed has."""
    begun: float = field(default_factory=clock.now)

    def look(self, candidate: Candidate, Cs: Sequence[float], count: int, judging: int) -> list[Judged]:
        """What becomes of a candidate with each of these Cs."""
        keys = {C: (candidate.changed(C=C), count, judging) for C in Cs}
        new = sorted(C for C in Cs if keys[C] not in self.found)
        if new:
            look = self._made(candidate, new, count, judging)
            learnt = self._learnt(candidate, count)
            for C, decisions in zip(new, look.decisions, strict=True):
                key = keys[C]
                judged = self.judged(key[0], count, judging, decisions, look.seconds)
                self.found[key] = replace(
                    judged, at=look.at, training=look.training, swept=look.swept, learnt=learnt
                )
        return [self.found[keys[C]] for C in Cs]

    def _made(self, candidate: Candidate, Cs: list[float], count: int, judging: int) -> SavedLook:
        """What a look finds, or has found in a race that goes on."""
        journal, asked = self.budget.journal, repr((candidate, Cs, count, judging, self._rows_of_parts))
        known = None if journal is None else journal.look(asked)
        if known is not None:
            self._make_again(known, candidate, Cs, count, judging)
            return known
        begun, others, before = clock.now(), self._preparing, len(self.columns.learnt)
        readings = np.empty(0) if journal is None else journal.readings()
        decided = self._tried(candidate, Cs, count, judging)
        seconds, at = (clock.now() - begun) / len(Cs), clock.now() - self.begun
        training = seconds - (self._preparing - others) / len(Cs)
        if self.budget.begun is None:
            training = self._done / len(Cs)
        new = list(self.columns.learnt.items())[before:]
        look = SavedLook(
            asked,
            decided,
            seconds,
            training,
            self._swept / len(Cs) if candidate.shape.cells else np.inf,
            at,
            self._lots,
            [SavedRelevance(part, learnt) for (_, part, *_), learnt in new],
            self._grown[0],
            self.failure,
            self.budget.spent,
            [SavedWork(kind, *both) for kind, both in self.budget.work.items()],
            readings,
        )
        if journal is not None and not self.budget.stopped:  # what follows Ctrl-C is not gone on with
            journal.keep(look)
        return look

    def _make_again(
        self, known: SavedLook, candidate: Candidate, Cs: list[float], count: int, judging: int
    ) -> None:
        """Leave everything as a look has left it that was made before, but train no model."""
        self.columns.taught = {each.part: each.learnt for each in known.relevances}
        try:
            self._tried(candidate, Cs, count, judging, known)
        finally:
            self.columns.taught = {}  # no look after it has these relevances
        if self._grown[0] != known.grown:
            self._grown = known.grown, None
        self.budget.spent, self.failure = known.spent, known.failure
        self.budget.work.clear()
        self.budget.work |= {each.kind: (each.done, each.took) for each in known.work}

    @property
    def _rows_of_parts(self) -> list[tuple[int, int]]:
        """The rows that learn, and that judge, of all parts."""
        return [(len(part.learning), len(part.judging)) for part in self.columns.parts]

    @property
    def _preparing(self) -> float:
        """The seconds that columns, relevances and partitions have taken until now."""
        kinds = ("columns", "relevance", "growing")
        return sum(self.budget.work.get(kind, (0.0, 0.0))[1] for kind in kinds)

    def _learnt(self, candidate: Candidate, count: int) -> Learnt | None:
        """The relevance that the last look at a candidate had, in the first part."""
        if candidate.shape.relevance is None or self._lesson is None:
            return None
        return self.columns.known(candidate.shape, 0, self._lesson, count)

    def _tried(
        self,
        candidate: Candidate,
        Cs: list[float],
        count: int,
        judging: int,
        known: SavedLook | None = None,
    ) -> list[Array]:
        """``_decided``; decisions of no use where a candidate has no finite model, or no columns."""
        self._lesson, self._done, self._swept, self._lots = None, 0.0, 0.0, 0
        try:
            return self._decided(candidate, Cs, count, judging, known)
        except (NonFiniteError, NothingToTellError) as error:
            self.failure = str(error)
            nothing = np.full((len(self.judging_rows(judging)), self.task.n_models), np.nan)
            return [nothing] * len(Cs)

    def _decided(
        self, candidate: Candidate, Cs: list[float], count: int, judging: int, known: SavedLook | None
    ) -> list[Array]:
        """The (rows, outputs) decisions of the models of each C, part after part.

        Where they are ``known``, the rows are made that they are of, and nothing else.
        """
        found: list[list[Array]] = [[] for _ in Cs]
        encoding = self._new_encoding_work(candidate, count, judging)
        plain, lesson = replace(candidate.shape, relevance=None), Lesson(count, False)
        if encoding:
            with self.budget.spending("columns", encoding):
                for lot in range(self.columns.lots(plain)):
                    self.columns.prepared(plain, lot, count, judging, lesson)
        # what the columns are is known from here on, and with them what learning takes
        lesson, learning = self.lesson(candidate, count), self.relevance_work(candidate, count)
        self._lesson = lesson
        if learning:
            with self.budget.spending("relevance", learning):
                for lot in range(self.columns.lots(candidate.shape)):
                    self.columns.prepared(candidate.shape, lot, count, judging, lesson)
        kind, work = self.work(candidate, len(Cs), count, judging)
        with self.budget.spending(kind, work):
            for lot in range(self.columns.lots(candidate.shape) if known is None else known.lots):
                rows = self.columns.prepared(candidate.shape, lot, count, judging, lesson)
                if known is not None:
                    continue
                self._lots += 1
                if candidate.shape.cells:
                    lines = self._in_cells(candidate, Cs, rows, lot)
                else:
                    lines = self._on_map(candidate, Cs, rows)
                for decisions in lines:
                    for each, own in zip(found, decisions, strict=True):
                        each.append(own)
        if known is not None:
            return known.decisions
        self.budget.add(self._done - work)  # what sweeps take hangs on C and the bandwidth
        if self.budget.begun is None:
            self._swept = self._done = max(self._done, work)  # no clock has a part in it
        return [np.concatenate(each) for each in found]

    def _settings(self, candidate: Candidate, rows: Prepared, **others: Any) -> Settings:
        params = candidate.params(len(rows.rows.y), rows.moments, numeric=self.task.numeric)
        for name in ("relevance", "target_transform"):
            params.pop(name, None)
        return self.columns.settings(params | others)

    def _costs(self, candidate: Candidate, Cs: list[float], rows: Prepared) -> Array:
        return np.array([cost_of(candidate.shape.kernel, C, rows.moments) for C in Cs])

    def _task_of(self, candidate: Candidate) -> Task:
        if not self.task.numeric:
            return self.task
        task = self.task.with_epsilon(candidate.epsilon)
        return task.with_loss(candidate.loss) if isinstance(task, Regression) else task

    def _on_map(self, candidate: Candidate, Cs: list[float], rows: Prepared) -> list[Array]:
        """The (Cs, rows, outputs) decisions of models on one map, split by split."""
        count = len(rows.splits[0].train)
        s = min(self.landmarks(candidate, count), len(rows.rows.y))
        settings = self._settings(candidate, rows, n_components=s)
        costs = self._costs(candidate, Cs, rows)
        return self._line(
            MapSearch(rows.rows, rows.splits, costs, None, self.seed), settings, candidate
        )

    def _in_cells(self, candidate: Candidate, Cs: list[float], rows: Prepared, lot: int) -> list[Array]:
        """The same in cells, the mean over partitions."""
        sizes, copies = self.cell_sizes(candidate, len(rows.rows.y))
        settings, costs = self._settings(candidate, rows), self._costs(candidate, Cs, rows)
        found = []
        for number in range(copies):
            groups = self._groups(candidate, rows, lot, len(sizes), number)
            search = CellSearch(rows.rows, rows.splits, costs, None, self.seed + number, groups)
            decisions = self._line(search, settings, candidate)
            if sum(map(len, groups)) < len(rows.rows.y):
                solved = np.zeros(len(rows.rows.y), dtype=bool)
                solved[np.concatenate(groups)] = True
                for split, each in zip(rows.splits, decisions, strict=True):
                    each[:, ~solved[split.test]] = np.nan
            found.append(decisions)
        return [np.mean(each, axis=0) for each in zip(*found, strict=True)]

    def _groups(
        self, candidate: Candidate, rows: Prepared, lot: int, n_cells: int, number: int
    ) -> list[Array]:
        """The rows of the cells that are solved: of many rows only some of the cells are."""
        m = len(rows.rows.y)
        shape = candidate.shape  # rows that no relevance maps are the same for all kernels
        key = repr((shape if shape.relevance else shape.encoding, m, lot, n_cells, number))
        groups = self._grown[1]
        if self._grown[0] != key:
            with self.budget.within("cells", "growing", GROWING * m * self.load(candidate)):
                groups = grow_partition(rows.rows.X, n_cells, self.seed, number)[1]
        elif groups is None:  # of a look that was made before, and is paid for
            groups = grow_partition(rows.rows.X, n_cells, self.seed, number)[1]
        self._grown = key, groups
        if m <= self.most_solved:
            return groups
        order = np.random.default_rng([self.seed, 22]).permutation(len(groups))
        ends = np.cumsum([len(groups[k]) for k in order])
        return [groups[k] for k in np.sort(order[: max(int((ends <= self.most_solved).sum()), 1)])]

    def _line(
        self, search: MapSearch | CellSearch, settings: Settings, candidate: Candidate
    ) -> list[Array]:
        """The decisions of all Cs on the rows held out from each split."""
        line = next(iter(search.lines(settings, self._task_of(candidate), None, float("inf"))))
        assert line.decisions is not None
        if isinstance(search, CellSearch):
            n_cells, n_Cs = len(search.groups), len(search.Cs)
            nominal = swept_seconds(line.operations, n_cells, 2)
            timed = (line.sweeping + n_Cs * line.matrices) / max(min(granted(), n_cells), 1)
            self._done += nominal
            self._swept += timed
        return line.decisions

    # Judgement ----------------------------------------------------------------------------------

    def judging_rows(self, judging: int) -> Array:
        """The rows that judge, part after part."""
        return np.concatenate([part.judging[:judging] for part in self.columns.parts])

    def judged(
        self, candidate: Candidate, count: int, judging: int, decisions: Array, seconds: float
    ) -> Judged:
        """What these decisions on the rows that judge say of a candidate."""
        index = self.judging_rows(judging)
        losses, loss, score = self.judge(decisions, index)
        found = Judged(candidate, count, judging, decisions, losses, loss, score, seconds)
        if not np.isfinite(loss):
            return found
        found = replace(found, part_scores=self._part_scores(found))
        return replace(found, score_error=self._error(found))

    def _error(self, judged: Judged) -> float:
        """The standard error of a score: over rows where it is a mean of theirs, else over parts."""
        solved, y = np.isfinite(judged.losses), self.columns.given.y[self.judging_rows(judged.judging)]
        if self.scorer is not None:
            return float(np.nanstd(judged.part_scores) / np.sqrt(max(len(judged.part_scores) - 1, 1)))
        losses = judged.losses[solved]
        if not self.task.numeric:
            losses = self.task.row_losses(judged.decisions[solved], y[solved])
        spread = float(np.var(y[solved], axis=0).mean()) if self.task.numeric else 1.0
        return float(losses.std() / np.sqrt(max(len(losses), 1)) / (spread or 1.0))

    def _part_scores(self, judged: Judged) -> Array:
        """The score in every part; NaN where none of its rows has judged."""
        found = [
            self.judge(each, part.judging[: len(each)])[2] if np.isfinite(each).any() else np.nan
            for part, each in zip(self.columns.parts, self._by_part(judged), strict=True)
        ]
        return np.array(found)

    def _by_part(self, judged: Judged) -> list[Array]:
        """The decisions of each part."""
        judging = judged.judging
        lengths = [min(len(part.judging), judging) for part in self.columns.parts]
        return np.split(judged.decisions, np.cumsum(lengths)[:-1])

    def judge(self, decisions: Array, index: Array) -> tuple[Array, float, float]:
        """(losses of rows, the loss to compare by, the score) of decisions on these rows."""
        task, solved = self.task, np.isfinite(decisions[:, 0])
        if not solved.any():
            return np.full(len(index), np.nan), np.inf, np.nan
        if not solved.all():
            losses = np.full(len(index), np.nan)
            losses[solved], loss, score = self.judge(decisions[solved], index[solved])
            return losses, loss, score
        y = self.columns.given.y[index]
        units = getattr(task, "units", None) if self.scorer is not None else None
        wide = task if isinstance(task, Outputs) else None
        X = np.zeros((len(y), 1))  # a scorer asks for its length at most: decisions are known
        if wide is not None and wide.numeric and self.scorer is not None:
            found = wide.predict(decisions)[None]
            score = self._score(X, wide.predict(y), found)
        elif units is None:
            score = self._score(X, y, decisions[None])
        else:  # a user's score is of targets as they were
            found = units.back(decisions[None])
            score = self._score(X, units.back(y), found)
        if task.numeric:
            losses = self.losses(index)(decisions)
        else:
            size = _margin(decisions) if wide is None else float(np.abs(decisions).mean()) or 1.0
            soft = task.soft_losses(decisions / size, y)
            part = SOFT * min(1.0, SOFT_ROWS / len(y))
            losses = (1.0 - part) * task.row_losses(decisions, y) + part * soft
        if self.scorer is not None:
            return losses, -score if np.isfinite(score) else np.inf, score
        factor = task.class_weights(y, np.ones(len(y)))  # errors count as they do for the models
        return losses, float(np.average(losses, weights=factor)), score

    def _score(self, X: Array, y: Array, decisions: Array) -> float:
        """The score of a model; NaN where a user's scorer cannot tell it of these decisions."""
        if self.scorer is None:
            return float(scores(None, self.task, X, y, decisions)[0])
        try:
            return float(scores(self.scorer, self.task, X, y, decisions)[0])
        except ValueError as error:
            self.failure = str(error)
            return float("nan")

    @property
    def has_means(self) -> bool:
        """Whether means of candidates can be judged: of pairs and outputs of classes they are not."""
        return self.task.numeric or (isinstance(self.task, Classification) and not self.task.paired)

    def losses(self, index: Array) -> Losses:
        """What means of candidates are judged by on these rows."""
        y = self.columns.given.y[index]
        if self.task.numeric:
            return losses_of_numbers(self.task, y)
        factor = self.task.class_weights(y, np.ones(len(y)))
        weight = np.ones(len(y)) if factor is None else factor / factor.mean()
        return LogLosses(np.unique(self.columns.given.y, return_inverse=True)[1][index], weight)

    def margin(self, decisions: Array) -> float:
        """The unit of decisions: of classes the mean margin of rows, of regressions 1."""
        return 1.0 if self.task.numeric else _margin(decisions)


def _margin(decisions: Array) -> float:
    """The mean distance of rows from the boundary: margins of small Cs are smaller, and no worse."""
    if decisions.shape[1] == 1:
        return float(np.abs(decisions).mean()) or 1.0
    second, first = np.partition(decisions, -2, axis=1)[:, -2:].T
    return float(0.5 * (first - second).mean()) or 1.0
