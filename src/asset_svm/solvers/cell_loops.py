"""The sweeps of many cells, by compiled threads that take the next cell by themselves.

    a thread:  rows of a cell gathered, its kernel matrix, sweeps for its models, some abreast

Python runs once for all of them, before and after, and nobody waits for the interpreter in between.
What sweeps have not solved within their budget goes on in ``CellProblem.solve``, from where they ended.
A cell is a function of its rows and of its seed: who solves it, and beside which others, is of no
consequence. Larger cells are begun first, so that no thread is left with one at the end.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from asset_svm.arrays import Array
from asset_svm.kernels.loops import fill_matrix, loop_code
from asset_svm.losses import axis_arguments, dual_ridge
from asset_svm.numerics.compiling import lent, njit
from asset_svm.numerics.padding import padded_width
from asset_svm.solvers.abreast import ABREAST, end_abreast
from asset_svm.solvers.cell_models import CellSolution, Swept, constants
from asset_svm.solvers.cells import CellProblem
from asset_svm.solvers.gather import gathered
from asset_svm.solvers.kernel_matrix import GROUP, has_loops
from asset_svm.threads.counter import take
from asset_svm.threads.team import together

MOST_NUMBERS = 1 << 23
"""Numbers beta of cells that are solved together: what they need besides is a few times as much."""
FEWEST_MODELS = 4
"""Models that make up for one more kernel matrix."""
Found = CellSolution | list[Swept] | None


def largest_swept(problem: CellProblem) -> int:
    """Rows of a cell up to which compiled threads sweep it; 0 where they cannot.

    Pairs solve cells with an intercept; rows that are not dense, in order and in memory are others'
    work, and so are larger cells, in which several threads have something to do.
    """
    X = problem.X
    dense = isinstance(X, np.ndarray) and X.flags.c_contiguous and X.dtype.kind == "f"
    able = dense and has_loops(problem.kernel, X) and problem.kernel.positive_definite
    return GROUP if able and not problem.intercept else 0


def sweep_cells(
    problem: CellProblem, cells: Sequence[Array], seeds: Sequence[int], threads: int
) -> list[Found]:
    """The solutions of cells; where one has none, where the sweeps of its models have ended.

    None stands for a cell whose kernel matrix is not finite, as whoever solves it will tell.

    Parameters
    ----------
    cells : sequence of arrays
        The rows of each, up to ``largest_swept`` of them.
    """
    found: list[Found] = []
    most = max(MOST_NUMBERS // problem.targets.n_models, 1)
    ends = np.cumsum([len(cell) for cell in cells])
    start = 0
    while start < len(cells):
        before = ends[start - 1] if start else 0
        stop = max(int(np.searchsorted(ends, before + most, side="right")), start + 1)
        found += _Sweeps(problem, cells[start:stop], seeds[start:stop]).by(threads)
        start = stop
    return found


class _Sweeps:
    """The sweeps of some cells, whose rows stand one after the other."""

    def __init__(self, problem: CellProblem, cells: Sequence[Array], seeds: Sequence[int]):
        self.problem, self.X = problem, lent(problem.X)
        self.rows = np.concatenate(cells)
        self.first = np.concatenate([[0], np.cumsum([len(cell) for cell in cells])])
        self.seeds = np.array(seeds, dtype=np.int64)
        self.y, self.cost = problem.targets.block(self.rows), problem.cost[self.rows]
        K, count = len(self.y), len(cells)
        self.trivial, self.like = np.zeros((count, K), dtype=bool), np.tile(np.arange(K), (count, 1))
        self.constant = np.zeros((count, K))
        if K > 1:
            for c in range(count):
                y = self.y[:, self.first[c] : self.first[c + 1]]
                self.trivial[c], self.like[c] = problem.is_trivial(y), problem.alike(y)
                self.constant[c] = constants(y)

    def by(self, threads: int) -> list[Found]:
        """``sweep_cells`` of these, by so many threads."""
        late = self.problem.is_late
        beta, found = self._swept(threads, late=late, settle=late or self.problem.hurries)
        # Not a number, where the kernel matrix is not finite, is not solved.
        solved = self.problem.is_solved(found[..., 1], found[..., 2]) | late & np.isfinite(
            found[..., 1]
        )
        whole = (solved | self.trivial).all(axis=1)
        solutions = iter(self._solutions(beta, found, whole, threads))
        return [
            next(solutions) if whole[c] else self._models(c, beta, found) for c in range(len(whole))
        ]

    def _swept(self, threads: int, *, late: bool, settle: bool) -> tuple[Array, Array]:
        """The beta of all rows, (K, rows), and the (sweeps, P, D) of each cell and model.

        ``settle`` asks for the exact P and D of what sweeps have not solved, which may have to do.
        """
        problem, formula, K = self.problem, self.problem.kernel.formula, len(self.y)
        low, high = (np.broadcast_to(end, self.y.shape) for end in problem.loss.box(self.y, self.cost))
        low, high = np.ascontiguousarray(low), np.ascontiguousarray(high)
        ridge = dual_ridge(problem.loss, self.cost)
        beta, found = np.zeros(self.y.shape), np.zeros((*self.trivial.shape, 3))
        sizes = np.diff(self.first)
        order = np.argsort(-sizes, kind="stable")
        # Where cells are few, threads share the models of one, each with a kernel matrix of its own.
        groups = min(max(K // FEWEST_MODELS, 1), -(-4 * threads // len(order)))
        todo = (self.like == np.arange(K)) & ~self.trivial
        together(
            lambda counter: _solve(
                counter, order, groups, self.X, self.rows, self.first, self.y, self.cost, low, high,
                ridge, todo, self.seeds, loop_code(formula), -formula.factor,
                *axis_arguments(problem.loss, K), problem.loss.tube, problem.tol,
                problem.most_sweeps(late=late), problem.budget(late=late), settle,
                padded_width(int(sizes.max())), beta, found,
            ),
            min(threads, groups * len(order)),
        )  # fmt: skip
        for c, k in np.argwhere(self.like != np.arange(K)):
            part = slice(self.first[c], self.first[c + 1])
            beta[k, part], found[c, k] = beta[self.like[c, k], part], found[c, self.like[c, k]]
        return beta, found

    def _solutions(self, beta: Array, found: Array, whole: Array, threads: int) -> list[CellSolution]:
        """The cells that are solved; their rows are gathered by all threads."""
        kept = np.repeat(whole, np.diff(self.first))
        rows, sizes = self.rows, np.diff(self.first)[whole]
        if not whole.all():
            rows, beta = rows[kept], beta[:, kept]
        first = np.concatenate([[0], np.cumsum(sizes)])
        b = np.where(self.trivial[whole], self.constant[whole], 0.0)
        numbers = found[whole]
        return self.problem.solutions(
            rows,
            first,
            beta,
            b,
            numbers[..., 1],
            numbers[..., 2],
            numbers[..., 0].max(axis=1),
            partial(gathered, self.X, threads=threads),
        )

    def _models(self, c: int, beta: Array, found: Array) -> list[Swept] | None:
        if np.isnan(found[c]).any():
            return None
        part = slice(self.first[c], self.first[c + 1])
        return [
            Swept(beta[k, part], int(count), float(primal), float(dual))
            for k, (count, primal, dual) in enumerate(found[c])
        ]


@njit(cache=True, nogil=True)
def _solve(
    counter: Array,
    order: Array,
    groups: int,
    X: Array,
    rows: Array,
    first: Array,
    y: Array,
    cost: Array,
    low: Array,
    high: Array,
    ridge: Array,
    todo: Array,
    seeds: Array,
    kernel: int,
    rate: float,
    code: int,
    parameter: Array,
    tube: float,
    tol: float,
    most: int,
    budget: float,
    settle: bool,
    widest: int,
    beta: Array,
    found: Array,
) -> None:
    """Sweep cells until there are none, or an interrupt says that it is enough.

    ``settle``: what sweeps have not solved is given the P and D of its beta, in float64.
    """
    n = X.shape[1]
    gathered, moved = np.empty(widest * n, X.dtype), np.empty(widest * n, X.dtype)
    transposed, room = np.empty(widest * n, X.dtype), np.empty(widest * widest, X.dtype)
    while True:
        number = take(counter)
        if number >= groups * len(order):
            return
        c = order[number // groups]
        a, b = first[c], first[c + 1]
        m = b - a
        width = -(-m // 16) * 16
        own, K = gathered[: m * n].reshape(m, n), room[: m * width].reshape(m, width)
        for i in range(m):
            own[i] = X[rows[a + i]]
        if not fill_matrix(own, kernel, rate, moved, transposed, K):
            found[c] = np.nan
            continue
        for i in range(m):
            K[i, i] += ridge[a + i]
        mine = np.flatnonzero(todo[c, number % groups :: groups]) * groups + number % groups
        for start in range(0, len(mine), ABREAST):
            some = mine[start : start + ABREAST]
            end_abreast(
                counter, K, a, y, cost[a:b], low, high, ridge[a:b], seeds[c], code, parameter, tube,
                tol, most, budget * m * m, settle, some, beta, found[c],
            )  # fmt: skip
