"""The lines of a search with cells: a kernel matrix a cell serves every C, split, class and epsilon.

Each model is the exact SVM of the rows of its split in the cell. It starts from the solution of the
power of 10 below its C, and that from the one before: the same whichever Cs are searched. Rounds of the
race look at a part of the cells, which are solved like all others.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from asset_svm import clock
from asset_svm.arrays import Array
from asset_svm.families.observing import logger
from asset_svm.memory import available_memory
from asset_svm.search.cost import cell_seconds
from asset_svm.search.lines import Found, LineSearch
from asset_svm.search.splits import Encoding, encode
from asset_svm.settings import Settings
from asset_svm.solvers.cell_models import CellModel, constant
from asset_svm.solvers.cells import CellProblem
from asset_svm.tasks import Task
from asset_svm.threads.granted import granted
from asset_svm.threads.team import side_by_side
from asset_svm.training.folds import SAME_POWER, power_below, unit_power

ROUGH_TOLERANCE = 0.03
"""The duality gap of a solved model: below it scores hardly change, and sweeps double."""
MOST_SEARCHED = 4096
"""A model of a search learns from at most so many rows of a cell: more tell no more of C and gamma, and
the time grows with their square."""


def tell_of_large_cells(cells: list[Array]) -> None:
    """Tell where models of the search do not learn from all rows of a cell."""
    largest = max(map(len, cells))
    if largest > MOST_SEARCHED:
        logger.warning(
            "Cells have up to %d rows: models of the search learn from at most %d of each, and the "
            "best is trained on all.", largest, MOST_SEARCHED,
        )  # fmt: skip


@dataclass(eq=False)
class CellSearch(LineSearch):
    """The search of lines in cells.

    Parameters
    ----------
    rows, splits, Cs, scorer, seed
        As in ``LineSearch``.
    groups : list of arrays
        The rows of the cells that are looked at.
    """

    groups: list[Array]

    @property
    def n_rows(self) -> int:
        """The number of rows that are looked at."""
        return sum(map(len, self.groups))

    def kept(self, share: float) -> Array:
        """The rows of a round that looks at such a part of the cells."""
        return np.concatenate(self.on(share).groups)

    def on(self, share: float) -> CellSearch:
        """The search in so large a part of the cells, drawn at random."""
        if share == 1.0:
            return self
        count = max(round(share * len(self.groups)), 1)
        chosen = np.random.default_rng([self.seed, 7]).permutation(len(self.groups))[:count]
        return replace(self, groups=[self.groups[number] for number in np.sort(chosen)])

    def seconds(self, settings: Settings, n_models: int) -> float:
        """A guess of the time that one line takes in all cells."""
        m, n = self.rows.X.shape
        sizes = [min(len(group), MOST_SEARCHED) for group in self.groups]
        seen = float(np.mean([len(split.train) for split in self.splits])) / m
        return cell_seconds(sizes, n, n_models, seen, granted())

    def lines(
        self, settings: Settings, task: Task, epsilons: tuple[float, ...] | None, deadline: float
    ) -> Iterator[Found]:
        """What is found for each epsilon, with the gamma of these settings."""
        begun = clock.now()
        encodings = [
            encode(task if epsilon is None else task.with_epsilon(epsilon), self.rows, self.splits)
            for epsilon in epsilons or (None,)
        ]
        kernel = settings.map.kernel_for(self.rows.X, self.rows.uneven)
        problem = CellProblem(
            kernel,
            self.rows.X,
            encodings[0].targets,
            encodings[0].loss,
            self.rows.weight,
            0.0,
            settings.free_intercept,
            tol=ROUGH_TOLERANCE,
            deadline=deadline,
            rough=True,
        )
        largest = min(problem.largest(settings.memory_limit), MOST_SEARCHED)
        solved = (min(len(group), largest) for group in self.groups)
        problem.check_memory(solved, largest, available_memory())
        run = _Run(self, problem, encodings, largest)
        threads = None if kernel.is_reentrant else 1
        done = side_by_side(run.cell, range(len(self.groups)), threads)
        in_time = all(done) and not problem.is_late
        trained = (clock.now() - begun) / len(encodings)
        for number in range(len(encodings)):
            scored = clock.now()
            found = run.scores(number, done, task)
            yield Found(
                found,
                trained,
                clock.now() - scored,
                in_time,
                decisions=run.decisions[number],
                operations=sum(run.operations) // len(encodings),
                sweeping=sum(run.sweeping) / len(encodings),
                matrices=sum(run.matrices),
            )


@dataclass(eq=False)
class _CostPath:
    """The models of one target in a cell, for any C, by way of powers of 10."""

    problem: CellProblem
    K: Array
    y: Array
    weight: Array
    seed: int
    paired: bool
    known: dict[int, CellModel] = field(default_factory=dict)
    sweeps: int = 0
    seconds: float = 0.0

    @cached_property
    def first(self) -> int:
        """The power of 10 that begins the path."""
        return unit_power(self.y, float(np.mean(np.diagonal(self.K))))

    def model(self, C: float) -> CellModel:
        """The model of this C."""
        power = power_below(C)
        if power < self.first:  # far from the bound on beta of few rows: quickly found from nothing
            return self._solved(C, None)
        for number in range(self.first, power + 1):
            if number not in self.known:
                before = self.known.get(number - 1)
                self.known[number] = self._solved(10.0**number, before)
        at = self.known[power]
        is_power = C / 10.0**power <= 1.0 + SAME_POWER
        return at if is_power else self._solved(C, at)

    def _solved(self, C: float, start: CellModel | None) -> CellModel:
        problem, begun = self.problem, clock.now()
        found = problem.model(
            self.K,
            self.y,
            C * self.weight,
            self.seed,
            paired=self.paired,
            late=problem.is_late,
            start=None if start is None else start[0],
        )
        self.sweeps += found[-1]
        self.seconds += clock.now() - begun
        return found


class _Run:
    """The decisions of all models of one gamma on the rows held out from them, cell by cell."""

    def __init__(
        self,
        search: CellSearch,
        problem: CellProblem,
        encodings: list[Encoding],
        largest: int,
    ):
        self.search, self.encodings, self.largest = search, encodings, largest
        self.problem = problem
        m = len(search.rows.y)
        self.place = np.full((len(search.splits), m), -1)
        for number, split in enumerate(search.splits):
            self.place[number, split.test] = np.arange(len(split.test))
        n_Cs, outputs = len(search.Cs), encodings[0].splits.n_outputs
        self.operations, self.sweeping = [0] * len(search.groups), [0.0] * len(search.groups)
        """Of each cell: how much its sweeps were, and their seconds."""
        self.matrices = [0.0] * len(search.groups)
        """The seconds of the kernel matrix of each."""
        self.decisions = [
            [np.empty((n_Cs, len(split.test), outputs)) for split in search.splits] for _ in encodings
        ]

    def cell(self, number: int) -> bool:
        """Decide the held-out rows of a cell; False where there was no time for it."""
        if number > 0 and self.problem.is_late:
            return False
        index = self.search.groups[number]
        seed = self.search.seed + number
        if len(index) > self.largest:  # as many of its rows as can be solved stand for the others
            rng = np.random.default_rng([seed, 8])
            learnt = np.sort(rng.choice(len(index), size=self.largest, replace=False))
        else:
            learnt = np.arange(len(index))
        begun = clock.now()
        K = self.problem.kernel_matrix(index[learnt])
        self.matrices[number] = clock.now() - begun
        for f in range(len(self.search.splits)):
            out = np.flatnonzero(self.place[f, index] >= 0)
            if len(out) == 0:
                continue
            used = np.flatnonzero(self.encodings[0].splits.weight[f, index[learnt]] > 0.0)
            own = np.ascontiguousarray(K[np.ix_(used, used)])
            if len(learnt) == len(index):
                across = K[np.ix_(out, used)]
            else:
                values = self.problem.kernel.against(self.problem.X[index[learnt[used]]], K.dtype)
                across = values(self.problem.X[index[out]])
            for encoding, decisions in zip(self.encodings, self.decisions, strict=True):
                found = self._decide(encoding, f, index[learnt[used]], own, across, seed)
                decisions[f][:, self.place[f, index[out]]] = found[0]
                self.operations[number] += found[1] * len(used) ** 2
                self.sweeping[number] += found[2]
        return True

    def _decide(
        self,
        encoding: Encoding,
        f: int,
        rows: Array,
        own: Array,
        across: Array,
        seed: int,
    ) -> tuple[Array, int, float]:
        """The (Cs, held out, outputs) decisions of a split in a cell.

        Besides, the sweeps of its models, and their seconds.
        """
        targets, weight = encoding.splits.targets_of(f), encoding.splits.weight[f, rows]
        out = np.zeros((len(self.search.Cs), len(across), len(targets)))
        problem = replace(self.problem, loss=encoding.loss)
        sweeps, seconds = 0, 0.0
        if len(rows) == 0:
            return out + encoding.offset[f], sweeps, seconds
        y = targets[:, rows]
        trivial, like, paired = problem.is_trivial(y), problem.alike(y), problem.is_paired(own)
        for t, target in enumerate(y):
            if trivial[t] or like[t] != t:
                out[:, :, t] = constant(target)[1] if trivial[t] else out[:, :, like[t]]
                continue
            path = _CostPath(problem.of_model(t), own, target, weight, seed + t, paired)
            for c, C in enumerate(self.search.Cs):
                beta, b, *_ = path.model(float(C))
                out[c, :, t] = across @ beta.astype(own.dtype) + b
            sweeps, seconds = sweeps + path.sweeps, seconds + path.seconds
        return out + encoding.offset[f], sweeps, seconds

    def scores(self, number: int, done: list[bool], task: Task) -> Array:
        """The (Cs, splits) scores on the held-out rows of the cells that were done."""
        search = self.search
        looked = np.zeros(len(search.rows.y), dtype=bool)
        for index, finished in zip(search.groups, done, strict=True):
            looked[index] = finished
        out = np.empty((len(search.Cs), len(search.splits)))
        for f, split in enumerate(search.splits):
            kept = looked[split.test]
            out[:, f] = search.score(task, split.test[kept], self.decisions[number][f][:, kept])
        return out
