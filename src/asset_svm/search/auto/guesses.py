"""What looks and final models will take: nominal work, and the seconds that such work has taken."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from asset_svm.families.one_map.windows import STREAM_EPOCHS
from asset_svm.search.auto.budget import Budget
from asset_svm.search.auto.columns import Columns, Lesson
from asset_svm.search.auto.judged import Judged
from asset_svm.search.auto.shapes import GIVEN, MOST_PARTITIONS, Candidate
from asset_svm.search.cost import cell_seconds, map_seconds, relevance_seconds
from asset_svm.search.maps import SEARCH_EPOCHS
from asset_svm.search.scores import Scorer
from asset_svm.settings.solving import CELL_ROWS
from asset_svm.tasks import Task

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
SPARSE = 8.0
"""Times what a number of dense rows takes in a product, that one of sparse rows does."""
COLUMN_SECONDS = 0.0005
"""What encoding a column takes at least."""
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


@dataclass(eq=False)
class Guesses:
    """Guesses of what the looks of a race, and its final model, will take.

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
    """What looks have found until now."""
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

    @property
    def outputs_in_cells(self) -> float:
        """The models of a cell that take as long as one that sees all its rows."""
        K = self.task.n_models
        return float(K if self.task.numeric else min(K, COMMON_CLASSES + RARE_CLASSES * K))

    def work(self, candidate: Candidate, n_Cs: int, count: int, judging: int) -> tuple[str, float]:
        """The kind of work of a look, and how much it is, without that of a relevance."""
        n, outputs = self.load(candidate), self.task.n_models
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
        return GROWING * m * self.load(candidate) * self.cell_sizes(candidate, m)[1]

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
            work = self._map_work(n_rows, self.load(candidate), s, outputs) + 10.0 * s**3 / 5e10
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

    def _map_work(self, n_rows: int, n: float, s: int, outputs: float) -> float:
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
        looked = self.work(candidate.changed(partitions=0), 1, judged.rows, judged.judging)[1]
        work = self._cells_work(candidate, n_rows)
        others = guessed - self._cells_seconds(candidate, work, final=True)
        return max(guessed, others + self._compiled_seconds(judged) / looked * work / FINAL_CELLS)

    def _compiled_seconds(self, judged: Judged) -> float:
        """What the models of a look would have taken as those of a final model.

        The usual cells of several classes are swept abreast there, by compiled threads; in a look half
        of the time and more is that of the interpreter between them.
        """
        several = self.task.n_models >= SEVERAL and judged.candidate.size <= 1
        return min(judged.training, judged.swept) if several else judged.training

    def _cells_seconds(self, candidate: Candidate, work: float, *, final: bool = False) -> float:
        """What so much work in cells takes, by the look at the most similar candidate too.

        It hangs on C and the bandwidth more than on all that is counted.
        """
        seconds = self.budget.seconds("cells", work)
        alike = [
            each
            for each in self.found.values()
            if each.candidate.shape == candidate.shape and each.swept > 0.0  # 0 of one that failed
        ]
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
        each = cell_seconds(sizes, self.load(candidate), self.outputs_in_cells, 1.0, 2)
        return FINAL_CELLS * QUICK_CELLS * copies * each

    def encoding_work(self, candidate: Candidate, m: int) -> float:
        """How much work making numbers of the columns of so many rows is, about."""
        X, table = self.columns.given.X, self.columns.given.table
        if candidate.shape.encoding == GIVEN and X is not None:
            return COPYING * m * (X.nnz / X.shape[0] if sp.issparse(X) else X.shape[1])
        if table is None:
            return 0.0
        return COLUMN_SECONDS * table.shape[1] + 1e-8 * m * (table.shape[1] + self.width(candidate))

    def _new_encoding_work(self, candidate: Candidate, count: int, judging: int) -> float:
        """The same for a look, where the numbers are not there yet."""
        if self.columns.is_encoded(candidate.shape, count, judging):
            return 0.0
        lots = self.columns.lots(replace(candidate.shape, relevance=None))
        if candidate.shape.encoding == GIVEN and lots < len(self.columns.parts):
            return 0.0  # all parts share the rows that were given
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
        X, table = self._rows_of(candidate), self.columns.given.table
        return int(X.shape[1] if X is not None else 4 * table.shape[1])  # type: ignore[union-attr]

    def load(self, candidate: Candidate) -> float:
        """The numbers of a row that a product goes through: of sparse rows those that are not 0."""
        X = self._rows_of(candidate)
        if not sp.issparse(X):
            return self.width(candidate)
        return float(min(SPARSE * X.nnz / max(X.shape[0], 1), X.shape[1]))

    def _rows_of(self, candidate: Candidate) -> Any:
        """Rows that are encoded as a candidate asks, or those that were given; None of a table."""
        for (what, encoding, *_), kept in self.columns.kept.items():
            if what == "encoded" and encoding == candidate.shape.encoding:
                return kept[0].X
        return self.columns.given.X

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

    def most_partitions(self, candidate: Candidate, n_rows: int) -> int:
        """The partitions that a final model may have, given time; 1 where more change nothing."""
        if not candidate.shape.cells or "n_partitions" in self.fixed:
            return 1
        return MOST_PARTITIONS if len(self.cell_sizes(candidate, n_rows)[0]) > 1 else 1

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


def _apart(one: Candidate, other: Candidate) -> float:
    """How far two candidates of a shape are from each other, in steps of 10 of C and of the factor."""
    return float(abs(np.log10(one.C / other.C)) + abs(np.log10(one.factor / other.factor)))
