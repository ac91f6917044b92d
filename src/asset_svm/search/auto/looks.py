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
from asset_svm.families.one_map.windows import STREAM_EPOCHS
from asset_svm.features.relevance import Learnt
from asset_svm.search.auto.blend import LogLosses, Losses, losses_of_numbers
from asset_svm.search.auto.budget import Budget
from asset_svm.search.auto.columns import Columns, Lesson, NothingToTellError, Prepared
from asset_svm.search.auto.shapes import GIVEN, Candidate, cost_of
from asset_svm.search.cells import CellSearch
from asset_svm.search.cost import cell_seconds, map_seconds, relevance_seconds, swept_seconds
from asset_svm.search.maps import SEARCH_EPOCHS, MapSearch
from asset_svm.search.scores import Scorer, scores
from asset_svm.settings import Settings
from asset_svm.settings.solving import CELL_ROWS
from asset_svm.tasks import Classification, Outputs, Task
from asset_svm.threads.granted import granted

MOST_SOLVED, FEWEST_SOLVED, SOLVED = 75_000, 20_000, 1500
"""Of more rows only so many are solved in a look, cell by cell: the others judge nothing then. So many
for a second of the budget."""
COMMON_CLASSES, RARE_CLASSES = 3.0, 0.2
"""Classes that take the time of all rows of a cell, and the part that others take: most cells have
few."""
FAMILY = ("n_components", "landmarks", "n_cells", "n_partitions")
"""Parameters of the family of a model."""
LANDMARKS = 512
"""Those of a look at few rows."""
QUICK_CELLS = 0.2
"""The work of cells beside what a grid of all Cs is guessed to take: models begin where others end."""
FINAL_EPOCHS = 12
SEVERAL = 3
"""Outputs from which on looks in cells are the interpreter's for the most part."""
FINAL_CELLS = 0.5
"""The epochs of a final model, and the work of its cells beside that of rough ones."""
SORTING = 3.0
"""Passes over rows that are sorted into cells: they are read, written, and read again."""
GROWING = 1e-8
"""The work of a partition, times the numbers in the rows."""
COPYING = 1e-9
"""The work of taking rows as they are, times the numbers in them."""
COLUMN_SECONDS = 0.0005
"""What encoding a column takes at least."""
SOFT, SOFT_ROWS = 0.25, 1000
"""How much a smoothed error counts, which says more of few rows, up to so many; of more, less."""
LOOK_SECONDS = 0.01
"""What a look takes at least."""
FEWEST_JUDGING = 1000
"""Rows that judge, where there are so many, however few learn."""
QUICK_ROWS = 20_000
"""Rows that one learns from, at most."""
ANEW = 0.1
"""The part of a limit that learning the relevance of a final model from all rows may take: where it
takes longer, the model has the one that it was judged with."""
LEARNING, FEWER = 0.04, (16_000, 4000)
"""The part of the budget that learning a relevance may take in a look, and the rows that it learns from
where all of them take longer."""


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

    @property
    def name(self) -> str:
        """What a table calls it."""
        return f"{self.candidate}, balanced classes" if self.balanced else str(self.candidate)


@dataclass(eq=False)
class Looks:
    """All looks of a race.

    Parameters
    ----------
    columns : Columns
    budget : Budget
    scorer : callable, optional
        By default the estimator's own score.
    seed : int
    fixed : dict
        Parameters that the user has given, which every candidate has.
    """

    columns: Columns
    budget: Budget
    scorer: Scorer | None
    seed: int
    fixed: dict[str, Any] = field(default_factory=dict)
    found: dict[tuple[Candidate, int, int], Judged] = field(default_factory=dict)
    _grown: tuple[Any, list[Array]] = (None, [])
    _lesson: Lesson | None = None
    """What the last look has learnt its relevance from."""
    _done: float = 0.0
    """The nominal seconds of the models of the last look, by the sweeps of their cells."""
    _swept: float = 0.0
    """What these sweeps took, and matrices for each model, by the clock that the budget goes by."""
    failure: str = ""
    """Why the last candidate that has failed has."""
    begun: float = field(default_factory=clock.now)
    n_rows: int = 0
    """Rows that the final model learns from; by default those that are given."""
    reading: float | None = None
    """The seconds of reading all of them once, where they are not in memory."""
    elsewhere: bool = False
    """Whether others train the final model, which takes none of the budget."""

    def __post_init__(self) -> None:
        self.n_rows = self.n_rows or len(self.columns.given.y)

    @property
    def task(self) -> Task:
        """What is learnt."""
        return self.columns.given.task

    @property
    def most_solved(self) -> int:
        """Rows of cells that one look solves, at most."""
        return int(np.clip(SOLVED * self.budget.total, FEWEST_SOLVED, MOST_SOLVED))

    # What it costs ------------------------------------------------------------------------------

    @property
    def outputs_in_cells(self) -> float:
        """The models of a cell that take as long as one that sees all its rows."""
        K = self.task.n_models
        return float(K if self.task.numeric else min(K, COMMON_CLASSES + RARE_CLASSES * K))

    def work(self, candidate: Candidate, n_Cs: int, count: int, judging: int) -> tuple[str, float]:
        """The kind of work of a look, and how much it is, without that of a relevance."""
        n, outputs = self.width(candidate), self.task.n_models
        m, lots = count + judging, self.columns.lots(candidate.shape)
        models = n_Cs * len(self.columns.parts) / lots
        if not candidate.shape.cells:
            s = min(self.landmarks(candidate, count), m)
            each = (
                map_seconds(m, n, s, outputs * models, SEARCH_EPOCHS.over(count))
                + 4.0 * s**3 / 5e10
                + LOOK_SECONDS
            )
            return "map", lots * each
        sizes, copies = self.cell_sizes(candidate, m)
        solved = sizes[: max(len(sizes) * self.most_solved // max(m, self.most_solved), 1)]
        models *= self.outputs_in_cells
        each = QUICK_CELLS * cell_seconds(solved, n, models, count / m, 2) + LOOK_SECONDS
        return "cells", lots * copies * each

    def growing_work(self, candidate: Candidate, m: int) -> float:
        """How much work the partitions of so many rows are."""
        if not candidate.shape.cells:
            return 0.0
        return GROWING * m * self.width(candidate) * self.cell_sizes(candidate, m)[1]

    def final_seconds(self, candidate: Candidate, n_rows: int) -> float:
        """What training the final model on so many rows will take, about."""
        if self.elsewhere:
            return 0.0
        n, outputs, budget = self.width(candidate), self.task.n_models, self.budget
        if candidate.shape.cells:
            work = self._cells_work(candidate, n_rows)
            seconds = self._cells_seconds(candidate, work, final=True)
            seconds += budget.seconds("growing", self.growing_work(candidate, n_rows))
        else:
            s = min(int(self.family(candidate, n_rows)["n_components"]), n_rows)
            s = s if candidate.shape.has_gamma else min(s, n)
            work = self._map_work(n_rows, n, s, outputs) + 10.0 * s**3 / 5e10
            seconds = budget.seconds("map", work)
        if candidate.shape.relevance is not None and not self.reuses(candidate, n_rows):
            seconds += self._learning_seconds(candidate, n_rows)
        encoding = budget.seconds("columns", self.encoding_work(candidate, n_rows))
        if self.reading is None:
            return seconds + encoding
        passes = self._passes(candidate, n_rows)
        return seconds + passes * (self.reading + encoding)

    def _learning_seconds(self, candidate: Candidate, n_rows: int) -> float:
        """What learning the relevance of a final model will take."""
        lesson = Lesson(n_rows, candidate.shape.cells)
        return self.budget.seconds("relevance", self._learning_work(candidate, lesson))

    def reuses(self, candidate: Candidate, n_rows: int) -> bool:
        """Whether a final model has the relevance that it was judged with, for want of time.

        It is one of columns as they are: what an encoder makes of other rows may be other columns.
        """
        shape = candidate.shape
        known = shape.relevance is not None and shape.encoding == GIVEN and self.reading is None
        if not known or self.budget.begun is None:
            return False
        return self._learning_seconds(candidate, n_rows) > ANEW * self.budget.total

    def _map_work(self, n_rows: int, n: int, s: int, outputs: float) -> float:
        """How much work mapping and learning is; rows that are read are mapped in every epoch."""
        if self.reading is None:
            return map_seconds(n_rows, n, s, outputs, FINAL_EPOCHS)
        return self._stream_epochs(n_rows) * map_seconds(n_rows, n, s, outputs, 1)

    def _stream_epochs(self, n_rows: int) -> int:
        return STREAM_EPOCHS.over(n_rows, self.fixed.get("max_iter"))

    def _passes(self, candidate: Candidate, n_rows: int) -> float:
        """How often the final model reads the rows: to settle what is made of columns, and to learn."""
        encoded = float(candidate.shape.encoding != GIVEN)
        if not candidate.shape.cells:
            return encoded + self._stream_epochs(n_rows)
        return encoded + SORTING * self.cell_sizes(candidate, n_rows)[1]

    def training_seconds(self, judged: Judged, n_rows: int) -> float:
        """What training a candidate on so many rows will take, by what the look at it took too."""
        candidate = judged.candidate
        guessed = self.final_seconds(candidate, n_rows)
        if not candidate.shape.cells or self.elsewhere:
            return guessed
        looked = self.work(candidate, 1, judged.rows, judged.judging)[1]
        work = self._cells_work(candidate, n_rows)
        others = guessed - self._cells_seconds(candidate, work, final=True)
        return max(guessed, others + self._compiled_seconds(judged) / looked * work / FINAL_CELLS)

    def _compiled_seconds(self, judged: Judged) -> float:
        """What the models of a look would have taken as those of a final model.

        The usual cells of several classes are swept abreast there, by compiled threads; in a look half
        of the time and more is that of the interpreter between them.
        """
        several = self.task.n_models >= SEVERAL and not judged.candidate.size
        return min(judged.training, judged.swept) if several else judged.training

    def _cells_seconds(self, candidate: Candidate, work: float, *, final: bool = False) -> float:
        """What so much work in cells takes, by the look at the most similar candidate too.

        It hangs on C and the bandwidth more than on all that is counted.
        """
        seconds = self.budget.seconds("cells", work)
        alike = [each for each in self.found.values() if each.candidate.shape == candidate.shape]
        if not alike:
            return seconds
        known = min(alike, key=lambda each: (-each.rows, _apart(each.candidate, candidate)))
        looked = self.work(known.candidate, 1, known.rows, known.judging)[1]
        if final and (compiled := self._compiled_seconds(known)) < known.training:
            return work * compiled / looked
        return max(seconds, work * known.training / looked)

    def _cells_work(self, candidate: Candidate, n_rows: int) -> float:
        """How much work training the cells of a final model is."""
        sizes, copies = self.cell_sizes(candidate, n_rows)
        each = cell_seconds(sizes, self.width(candidate), self.outputs_in_cells, 1.0, 2)
        return FINAL_CELLS * QUICK_CELLS * copies * each

    def encoding_work(self, candidate: Candidate, m: int) -> float:
        """How much work making numbers of the columns of so many rows is, about."""
        table = self.columns.given.table
        if table is None:
            return 0.0
        if candidate.shape.encoding == GIVEN:
            return COPYING * m * table.shape[1]
        return COLUMN_SECONDS * table.shape[1] + 1e-8 * m * (table.shape[1] + self.width(candidate))

    def _new_encoding_work(self, candidate: Candidate, count: int, judging: int) -> float:
        """The same for a look, where the numbers are not there yet."""
        if self.columns.is_encoded(candidate.shape, count, judging):
            return 0.0
        lots = self.columns.lots(replace(candidate.shape, relevance=None))
        return lots * self.encoding_work(candidate, count + judging)

    def relevance_work(self, candidate: Candidate, count: int) -> float:
        """How much work learning the relevance is, where it is not known yet."""
        shape = candidate.shape
        if shape.relevance is None:
            return 0.0
        lesson, parts = self.lesson(candidate, count), range(len(self.columns.parts))
        new = sum(not self.columns.is_learnt(shape, part, lesson, count) for part in parts)
        return new * self._learning_work(candidate, lesson)

    def lesson(self, candidate: Candidate, count: int) -> Lesson:
        """What a look at so many rows learns its relevance from: less, where all of them take long."""
        cells, most = candidate.shape.cells, LEARNING * self.budget.total
        for rows in (count, *(each for each in FEWER if each < count)):
            for lesson in (Lesson(rows, cells), Lesson(rows, False)):
                if self.budget.seconds("relevance", self._learning_work(candidate, lesson)) <= most:
                    return lesson
        return lesson

    def _learning_work(self, candidate: Candidate, lesson: Lesson) -> float:
        m, n = min(lesson.rows, QUICK_ROWS), self.width(candidate)
        in_cells = lesson.cells and lesson.rows > CELL_ROWS  # which rounds go on in
        turned = candidate.shape.relevance == "directions"
        work = relevance_seconds(m, n, self.task.n_models, turned=turned, in_cells=in_cells)
        return work + 2e-8 * lesson.rows * n

    def width(self, candidate: Candidate) -> int:
        """The numbers of a row, about."""
        given = self.columns.given
        for (what, encoding, *_), kept in self.columns.kept.items():
            if what == "encoded" and encoding == candidate.shape.encoding:
                return int(kept[0].X.shape[1])
        return int(given.X.shape[1] if given.X is not None else 4 * given.table.shape[1])  # type: ignore[union-attr]

    def family(self, candidate: Candidate, m: int) -> dict[str, Any]:
        """The parameters of the family of a model of so many rows, with what is fixed of them."""
        own = {name: value for name, value in self.fixed.items() if name in FAMILY}
        return candidate.family(m) | own

    def cell_sizes(self, candidate: Candidate, m: int) -> tuple[list[int], int]:
        """The sizes of the cells of a partition, and the number of partitions.

        A number that is fixed is that of all rows: of fewer there are fewer cells, as large.
        """
        family = self.family(candidate, m)
        cells = family["n_cells"]
        if cells != "auto" and "n_cells" in self.fixed:
            cells = round(min(int(cells) * m / self.n_rows, m))
        count = max(1, round(m / CELL_ROWS) if cells == "auto" else int(cells))
        return [m // count] * count, family.get("n_partitions", 1)

    def landmarks(self, candidate: Candidate, count: int) -> int:
        """The landmarks of a look."""
        few = count <= 8000 and not candidate.size and "n_components" not in self.fixed
        found = LANDMARKS if few else int(self.family(candidate, count)["n_components"])
        return found if candidate.shape.has_gamma else min(found, self.width(candidate))

    def seconds(self, candidate: Candidate, n_Cs: int, count: int, judging: int) -> float:
        """What a look will take; few rows that learn are judged by few."""
        judging = min(judging, max(count, FEWEST_JUDGING))
        budget, learning = self.budget, self.relevance_work(candidate, count)
        kind, work = self.work(candidate, n_Cs, count, judging)
        encoding = self._new_encoding_work(candidate, count, judging)
        growing = self.columns.lots(candidate.shape) * self.growing_work(candidate, count + judging)
        others = {"relevance": learning, "columns": encoding, "growing": growing}
        cells = candidate.shape.cells
        seconds = self._cells_seconds(candidate, work) if cells else budget.seconds(kind, work)
        return seconds + sum(budget.seconds(each, amount) for each, amount in others.items())

    # Looks --------------------------------------------------------------------------------------

    def look(self, candidate: Candidate, Cs: Sequence[float], count: int, judging: int) -> list[Judged]:
        """What becomes of a candidate with each of these Cs."""
        keys = {C: (candidate.changed(C=C), count, judging) for C in Cs}
        new = sorted(C for C in Cs if keys[C] not in self.found)
        if new:
            begun, others = clock.now(), self._preparing
            decided = self._tried(candidate, new, count, judging)
            learnt = self._learnt(candidate, count)
            seconds, at = (clock.now() - begun) / len(new), clock.now() - self.begun
            training = seconds - (self._preparing - others) / len(new)
            if self.budget.begun is None:
                training = self._done / len(new)
            for C, decisions in zip(new, decided, strict=True):
                key = keys[C]
                judged = self.judged(key[0], count, judging, decisions, seconds)
                swept = self._swept / len(new) if candidate.shape.cells else np.inf
                self.found[key] = replace(judged, at=at, training=training, swept=swept, learnt=learnt)
        return [self.found[keys[C]] for C in Cs]

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

    def _tried(self, candidate: Candidate, Cs: list[float], count: int, judging: int) -> list[Array]:
        """``_decided``; decisions of no use where a candidate has no finite model, or no columns."""
        self._lesson, self._done, self._swept = None, 0.0, 0.0
        try:
            return self._decided(candidate, Cs, count, judging)
        except (NonFiniteError, NothingToTellError) as error:
            self.failure = str(error)
            nothing = np.full((len(self.judging_rows(judging)), self.task.n_models), np.nan)
            return [nothing] * len(Cs)

    def _decided(self, candidate: Candidate, Cs: list[float], count: int, judging: int) -> list[Array]:
        """The (rows, outputs) decisions of the models of each C, part after part."""
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
            for lot in range(self.columns.lots(candidate.shape)):
                rows = self.columns.prepared(candidate.shape, lot, count, judging, lesson)
                lines = self._in_cells if candidate.shape.cells else self._on_map
                for decisions in lines(candidate, Cs, rows):
                    for each, own in zip(found, decisions, strict=True):
                        each.append(own)
        self.budget.add(self._done - work)  # what sweeps take hangs on C and the bandwidth
        if self.budget.begun is None:
            self._done = max(self._done, work)
        return [np.concatenate(each) for each in found]

    def _settings(self, candidate: Candidate, rows: Prepared, **others: Any) -> Settings:
        params = candidate.params(len(rows.rows.y), rows.moments, numeric=self.task.numeric)
        for name in ("relevance", "target_transform"):
            params.pop(name, None)
        return self.columns.settings(params | others)

    def _costs(self, candidate: Candidate, Cs: list[float], rows: Prepared) -> Array:
        return np.array([cost_of(candidate.shape.kernel, C, rows.moments) for C in Cs])

    def _task_of(self, candidate: Candidate) -> Task:
        return self.task.with_epsilon(candidate.epsilon) if self.task.numeric else self.task

    def _on_map(self, candidate: Candidate, Cs: list[float], rows: Prepared) -> list[Array]:
        """The (Cs, rows, outputs) decisions of models on one map, split by split."""
        count = len(rows.splits[0].train)
        s = min(self.landmarks(candidate, count), len(rows.rows.y))
        settings = self._settings(candidate, rows, n_components=s)
        costs = self._costs(candidate, Cs, rows)
        return self._line(
            MapSearch(rows.rows, rows.splits, costs, None, self.seed), settings, candidate
        )

    def _in_cells(self, candidate: Candidate, Cs: list[float], rows: Prepared) -> list[Array]:
        """The same in cells, the mean over partitions."""
        sizes, copies = self.cell_sizes(candidate, len(rows.rows.y))
        settings, costs = self._settings(candidate, rows), self._costs(candidate, Cs, rows)
        found = []
        for number in range(copies):
            groups = self._groups(candidate, rows, len(sizes), number)
            search = CellSearch(rows.rows, rows.splits, costs, None, self.seed + number, groups)
            decisions = self._line(search, settings, candidate)
            if sum(map(len, groups)) < len(rows.rows.y):
                solved = np.zeros(len(rows.rows.y), dtype=bool)
                solved[np.concatenate(groups)] = True
                for split, each in zip(rows.splits, decisions, strict=True):
                    each[:, ~solved[split.test]] = np.nan
            found.append(decisions)
        return [np.mean(each, axis=0) for each in zip(*found, strict=True)]

    def _groups(self, candidate: Candidate, rows: Prepared, n_cells: int, number: int) -> list[Array]:
        """The rows of the cells that are solved: of many rows only some of the cells are."""
        m = len(rows.rows.y)
        shape = candidate.shape  # rows that no relevance maps are the same for all kernels
        key = shape if shape.relevance else shape.encoding, m, n_cells, number
        if self._grown[0] != key:
            n = rows.rows.X.shape[1]
            with self.budget.within("cells", "growing", GROWING * m * n):
                self._grown = key, grow_partition(rows.rows.X, n_cells, self.seed, number)[1]
        groups = self._grown[1]
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
            self._swept += nominal if self.budget.begun is None else timed
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


def _apart(one: Candidate, other: Candidate) -> float:
    """How far two candidates of a shape are from each other, in steps of 10 of C and of the factor."""
    return float(abs(np.log10(one.C / other.C)) + abs(np.log10(one.factor / other.factor)))


def _margin(decisions: Array) -> float:
    """The mean distance of rows from the boundary: margins of small Cs are smaller, and no worse."""
    if decisions.shape[1] == 1:
        return float(np.abs(decisions).mean()) or 1.0
    second, first = np.partition(decisions, -2, axis=1)[:, -2:].T
    return float(0.5 * (first - second).mean()) or 1.0
