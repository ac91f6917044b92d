"""Cells trained side by side, each by itself: the exact SVM of its rows.

The rows of a cell bring their own C_i = w_i / (lam W), W of all rows: the same C everywhere, which
is lam_c = lam W / W_c in the words of the cell's own (PL).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from asset_svm import clock
from asset_svm.arrays import Array, Matrix
from asset_svm.data import Targets
from asset_svm.exceptions import NonFiniteError
from asset_svm.kernels import Kernel
from asset_svm.losses import Loss, best_intercept, dual_ridge
from asset_svm.memory import planned_memory, require_memory
from asset_svm.numerics.definite import is_semidefinite
from asset_svm.solvers.cell_models import (
    CellModel,
    CellSolution,
    Swept,
    constant,
    same_targets,
)
from asset_svm.solvers.exact_form import solve_cell
from asset_svm.solvers.interior_form import solve_interior
from asset_svm.solvers.kernel_matrix import kernel_matrix
from asset_svm.solvers.pair_form import solve_pairs
from asset_svm.threads.team import side_by_side

TOLERANCE = 0.01
"""The duality gap, relative to the objective of the cell, at which a cell is solved."""
MOST_SWEEPS = 10_000
BUDGET = 0.3
"""Changes, times m^2, that take as long as the interior-point method, which then has its turn."""
PAIR_BUDGET = 0.05
"""Changes of pairs, times m^2: they take half as long."""
FEWEST_PAIRS = 10_000
"""Changes of pairs that are affordable whatever m."""
NEGLIGIBLE = 1e-4
"""Times tol and the mean of |beta|: a smaller |beta_i| is that of a row that is no support vector."""
LARGEST_CELL = 16384
"""Rows whose kernel matrix is solved whole, where memory allows."""
SMALL_CELL = 256
"""Rows that are solved whole whatever the limit: less than a block of mapped rows takes."""
INSIDE = 0.2
"""Times tol: that of pairs and of the interior-point method, whose last steps cost little and gain
much."""
LARGEST_INTERIOR = 4096
"""Rows for which the interior-point method is affordable: a factor is of the third order."""
DEFINITE_ROWS = 512
"""The number of rows of a cell, at most, that show whether a kernel is definite."""


@dataclass(frozen=True, eq=False)
class CellProblem:
    """What the cells share.

    Parameters
    ----------
    cost : array of shape (m,)
        C_i.
    intercept : bool
        Whether each cell has its own free b.
    tol : float
        The relative duality gap at which a cell is solved.
    rough : bool
        Whether what sweeps found within their budget will do, where there is no intercept.
    """

    kernel: Kernel
    X: Matrix
    targets: Targets
    loss: Loss
    cost: Array
    lam: float
    intercept: bool
    tol: float = TOLERANCE
    deadline: float = np.inf
    rough: bool = False

    @property
    def entry_bytes(self) -> int:
        """The bytes of an entry of the kernel matrix, with those of the interior-point method's two."""
        return int(self.X.dtype.itemsize) + 16

    def largest(self, memory_limit: float | None) -> int:
        """Rows of a cell up to which it is solved whole: by the limit, never by what is free."""
        most = LARGEST_INTERIOR if self.intercept else LARGEST_CELL
        fitting = (planned_memory(memory_limit) / self.entry_bytes) ** 0.5
        return int(min(max(fitting, SMALL_CELL), most))

    def check_memory(self, sizes: Iterable[int], largest: int, free: int) -> None:
        """Raise where the largest of these cells that is solved whole takes more than is free."""
        rows = max((size for size in sizes if SMALL_CELL < size <= largest), default=0)
        # Beyond the interior-point method's reach, one float64 copy settles what sweeps have found.
        entry = self.entry_bytes if rows <= LARGEST_INTERIOR else self.entry_bytes - 8
        require_memory(
            float(entry) * rows**2,
            free,
            f"The kernel matrix of a cell of {rows} rows takes",
            "raise n_cells, or set memory_limit, above which a cell is approximated",
        )

    def solve(self, rows: Array, seed: int, ended: Sequence[Swept] | None = None) -> CellSolution:
        """Solve the models of the cell with these rows.

        ``ended`` is where the sweeps of each model have ended, if that has been found already: with a
        deadline that is the solution where there is no time for a better one.
        """
        y, cost, late = self.targets.block(rows), self.cost[rows], self.is_late
        if late and ended is not None and self.hurries:
            return self._standing(rows, y, ended)
        K = self.kernel_matrix(rows)
        trivial, like, paired = self.is_trivial(y), self.alike(y), self.is_paired(K)

        def model(k: int) -> CellModel:
            if trivial[k]:
                return constant(y[k])
            swept = None if ended is None else ended[k]
            one = self.of_model(k)
            return one.model(K, y[k], cost, seed, paired=paired, late=late, swept=swept)

        different = np.unique(like)
        found = dict(zip(different, side_by_side(model, different.tolist()), strict=True))
        return self.solution(rows, [found[k] for k in like])

    def swept(self, rows: Array, seed: int, until: float) -> CellSolution | list[Swept]:
        """Where the sweeps of each model of a cell end, by ``until``; its solution, if they solve all.

        What is not solved has the exact P and D of its beta, since it may have to do.
        """
        K = self.kernel_matrix(rows)
        y, cost = self.targets.block(rows), self.cost[rows]
        trivial, like = self.is_trivial(y), self.alike(y)
        different, begun = np.unique(like), clock.now()

        def end(place: int) -> Swept:
            k = int(different[place])
            if trivial[k]:
                return Swept(np.zeros(len(rows)), 0, 0.0, 0.0)
            share = begun + (until - begun) * (place + 1) / len(different)
            one = replace(self.of_model(k), deadline=share)
            own = one.ridged(K, cost)
            found = one._swept(own, y[k], cost, seed, late=False, start=None)
            if self.is_solved(found.primal, found.dual):
                return found
            times = own.astype(np.float64).__matmul__
            _, _, primal, dual = one._finished(times, y[k], cost, found.beta)
            return Swept(found.beta, found.sweeps, primal, dual, cut=one.is_late)

        found = dict(zip(different, side_by_side(end, range(len(different))), strict=True))
        ended = [found[k] for k in like]
        if all(self.is_solved(one.primal, one.dual) for one in ended):
            return self._standing(rows, y, ended)
        return ended

    def _standing(self, rows: Array, y: Array, ended: Sequence[Swept]) -> CellSolution:
        """The solution that is where sweeps have ended."""
        known = [(one.beta, 0.0, one.primal, one.dual, one.sweeps) for one in ended]
        parts = zip(self.is_trivial(y), y, known, strict=True)
        return self.solution(rows, [constant(own) if alone else one for alone, own, one in parts])

    def ridged(self, K: Array, cost: Array) -> Array:
        """The matrix of the dual: K, with the ridge of a curved loss on its diagonal."""
        if self.loss.curvature > 0.0:
            return np.asarray(K + np.diag(dual_ridge(self.loss, cost)).astype(K.dtype))
        return K

    def of_model(self, k: int) -> CellProblem:
        """The problem with the loss of model k."""
        loss = self.loss.of_model(k)
        return self if loss is self.loss else replace(self, loss=loss)

    def alike(self, y: Array) -> Array:
        """The first model with the same problem as each, by its targets, one a row of y."""
        return same_targets(y) if self.loss.of_model(0) is self.loss else np.arange(len(y))

    @property
    def is_late(self) -> bool:
        """Whether the time is up: every cell still gets a model, that of one sweep."""
        return clock.now() >= self.deadline

    @property
    def hurries(self) -> bool:
        """Whether the time will be up at some moment: then sweeps leave what can stand by itself."""
        return bool(np.isfinite(self.deadline))

    def most_sweeps(self, *, late: bool) -> int:
        """The number of sweeps at most."""
        return 1 if late else MOST_SWEEPS

    def budget(self, *, late: bool) -> float:
        """Changes of a beta, times m^2, after which no new sweep begins.

        With an intercept, sweeps, and those of a card, which has no pairs, are of use only where
        nothing better can be had.
        """
        return 0.0 if self.intercept and not late else BUDGET

    def is_paired(self, K: Array) -> bool:
        """Whether pairs solve the models of a cell with this kernel matrix.

        With an intercept they do, but for a kernel that makes no SVM.
        """
        return self.intercept and (self.kernel.positive_definite or is_semidefinite(K, centred=True))

    def is_trivial(self, y: Array) -> Array:
        """Whether a constant stands for each model of a cell, one a row of y: its target that is not 0.

        With an intercept it solves a class that is absent from the cell, or alone there. Without one
        it does so only where a class is alone, for all classes at once: others, all of them far below
        -1 where rows are many, would lose to the -1 of one that is absent.
        """
        trivial = self.loss.is_trivial(y)
        if self.intercept:
            return trivial
        return np.full_like(trivial, len(y) > 1 and bool(trivial.all()))

    def solution(self, rows: Array, parts: Sequence[CellModel]) -> CellSolution:
        """What the models of the cell with these rows come to."""
        beta = np.array([part[0] for part in parts])
        b, primal, dual, sweeps = (np.array([[part[i] for part in parts]]) for i in (1, 2, 3, 4))
        return self.solutions(
            rows, np.array([0, len(rows)]), beta, b, primal, dual, sweeps.max(axis=1)
        )[0]

    def solutions(
        self,
        rows: Array,
        first: Array,
        beta: Array,
        b: Array,
        primal: Array,
        dual: Array,
        sweeps: Array,
        gather: Callable[[Array], Array] | None = None,
    ) -> list[CellSolution]:
        """What the models of many cells come to.

        Parameters
        ----------
        rows : array
            Those of all cells; those of cell c from first[c] to first[c + 1].
        beta : array of shape (K, rows)
        b, primal, dual : arrays of shape (cells, K)
        sweeps : array of shape (cells,)
        gather : callable, optional
            From numbers of rows to these rows, on the host, for the support vectors of all cells.
        """
        if not all(np.isfinite(numbers).all() for numbers in (beta, b, primal, dual)):
            raise NonFiniteError(
                "The model of a cell is not finite; scale the columns of X (StandardScaler) or lower C."
            )
        used = np.flatnonzero(beta.any(axis=0))
        cuts, found, weights = np.searchsorted(used, first), rows[used], beta[:, used]
        support = None if gather is None else gather(found)
        definite = self._are_definite(rows, first, primal, dual)
        objective = self.lam * primal
        gap = np.where(definite[:, None], self.lam * (primal - dual), np.nan)
        converged = np.all(primal - dual <= 2 * self.tol * primal + 1e-12, axis=1)
        return [
            CellSolution(
                found[start:stop], weights[:, start:stop], b[c], objective[c], gap[c], int(sweeps[c]),
                bool(converged[c]), bool(definite[c]), None if support is None else support[start:stop],
            )
            for c, (start, stop) in enumerate(pairwise(cuts))
        ]  # fmt: skip

    def _are_definite(self, rows: Array, first: Array, primal: Array, dual: Array) -> Array:
        """Whether the kernel matrix of each cell can be positive semi-definite.

        False is certain: D is below every P, that of beta = 0 too, unless beta^T K beta < 0. Of a
        kernel that need not be definite, some rows are looked at besides.
        """
        if len(primal) == 0:
            return np.ones(0, dtype=bool)
        at_zero = self.loss.value(self.targets.block(rows), np.zeros(len(rows))) * self.cost[rows]
        bound = (1.0 + self.tol) * np.add.reduceat(at_zero, first[:-1], axis=1).T + 1e-12
        definite = np.asarray(np.all(np.minimum(primal, dual) <= bound, axis=1))
        if not self.kernel.positive_definite:
            for c in np.flatnonzero(definite):
                few = rows[first[c] : first[c + 1] : -(-(first[c + 1] - first[c]) // DEFINITE_ROWS)]
                definite[c] = self.kernel.definite_on(self.X[few], centred=self.intercept)
        return definite

    def kernel_matrix(self, rows: Array) -> Array:
        """Return k of every pair of these rows."""
        return kernel_matrix(self.kernel, self.X[rows])

    def model(
        self,
        K: Array,
        y: Array,
        cost: Array,
        seed: int,
        *,
        paired: bool,
        late: bool = False,
        start: Array | None = None,
        swept: Swept | None = None,
    ) -> CellModel:
        """One model.

        Parameters
        ----------
        paired : bool
            ``is_paired`` of K.
        start : array of shape (m,), optional
            The beta of a model with smaller costs, to go on from.
        swept : Swept, optional
            Where sweeps have ended already.
        """
        m = len(y)
        K = self.ridged(K, cost)
        if paired:
            beta, steps, found = self._paired(K, y, cost, late=late, start=start)
            if found[2] - found[3] <= self.tol * found[2] or not self.goes_inside(m, late=late):
                return (*found, steps)
        else:
            if swept is None:
                swept = self._swept(K, y, cost, seed, late=late, start=start)
            elif swept.cut:
                more = self._swept(K, y, cost, seed, late=late, start=swept.beta)
                swept = more._replace(sweeps=swept.sweeps + more.sweeps)
            beta, steps = swept.beta, swept.sweeps
            if self.is_solved(swept.primal, swept.dual):
                return beta, 0.0, swept.primal, swept.dual, steps
        exact, inside = K.astype(np.float64), None
        if self.goes_inside(m, late=late):
            inside = solve_interior(
                K,
                y,
                cost,
                self.loss,
                INSIDE * self.tol,
                intercept=self.intercept,
                deadline=self.deadline,
            )
        return self.settled(exact.__matmul__, y, cost, beta, steps, inside)

    def _swept(
        self, K: Array, y: Array, cost: Array, seed: int, *, late: bool, start: Array | None
    ) -> Swept:
        """Where sweeps end."""
        beta, F = np.zeros(len(y)), np.zeros(len(y), dtype=K.dtype)
        if start is not None and not self.intercept:
            beta[:] = start
            F[:] = K @ start.astype(K.dtype)
        ends = solve_cell(
            K, y, cost, self.loss, self.tol, self.most_sweeps(late=late),
            self.budget(late=late) * len(y) ** 2, seed, beta, F, self.deadline,
        )  # fmt: skip
        return Swept(beta, *ends)

    def _paired(
        self, K: Array, y: Array, cost: Array, *, late: bool, start: Array | None
    ) -> tuple[Array, int, tuple[Array, float, float, float]]:
        """The beta where pairs end, the sweeps that their steps make, and (beta, b, P, D) there."""
        m = len(y)
        beta, r = np.zeros(m), y.astype(np.float64)
        if start is not None:
            beta[:] = start
            used = np.flatnonzero(start)
            r -= start[used] @ K[used].astype(np.float64)
        most = m if late else max(int(PAIR_BUDGET * m**2), FEWEST_PAIRS)
        steps = solve_pairs(K, y, cost, self.loss, INSIDE * self.tol, most, beta, r, self.deadline)
        return beta, -(-steps // m), self._valued(y, cost, beta, y - r)

    def goes_inside(self, m: int, *, late: bool) -> bool:
        """Whether the interior-point method has its turn, after sweeps that have not solved a cell."""
        return not late and m <= LARGEST_INTERIOR and (self.intercept or not self.rough)

    def is_solved(self, primal: Any, dual: Any) -> Any:
        """Whether sweeps that ended at these values have done all there is to do."""
        return (primal - dual <= self.tol * primal) & (not self.intercept)

    def settled(
        self,
        times: Callable[[Array], Array],
        y: Array,
        cost: Array,
        beta: Array,
        sweeps: int,
        inside: tuple[Array, int] | None,
    ) -> CellModel:
        """The model of a cell that sweeps have not solved: the better of where they and others ended.

        Parameters
        ----------
        times : callable
            beta -> K beta, in float64.
        beta : array of shape (m,)
            Where sweeps ended.
        inside : (beta, steps) of the interior-point method, optional
        """
        found = self._finished(times, y, cost, beta)
        if inside is None:
            return (*found, sweeps)
        for candidate in self._candidates(inside[0]):
            another = self._finished(times, y, cost, candidate)
            # The one with fewer support vectors comes last, and is taken where it is as good.
            if another[2] <= found[2] or another[2] - another[3] <= self.tol * another[2]:
                found = another
        return (*found, sweeps + inside[1])

    def _candidates(self, beta: Array) -> Iterator[Array]:
        """What the interior-point method found, and the same without what is nearly 0."""
        if np.isfinite(beta).all():
            yield beta
            size = np.abs(beta)
            yield np.where(size < NEGLIGIBLE * self.tol * size.mean(), 0.0, beta)

    def _finished(
        self, times: Callable[[Array], Array], y: Array, cost: Array, beta: Array
    ) -> tuple[Array, float, float, float]:
        """(beta, b, P, D) of the feasible point next to beta, and the b that suits it best."""
        if self.intercept:
            beta = _balanced(beta)
        return self._valued(y, cost, beta, times(beta))

    def _valued(
        self, y: Array, cost: Array, beta: Array, f: Array
    ) -> tuple[Array, float, float, float]:
        """(beta, b, P, D) of a feasible point, and the b that suits it best.

        ``f`` is K beta, K with the ridge of the loss on its diagonal.
        """
        square, bent = 0.5 * float(beta @ f), dual_ridge(self.loss, cost) * beta
        f = f - bent
        b = best_intercept(self.loss, y, f, cost) if self.intercept else 0.0
        primal = square - 0.5 * float(beta @ bent) + float(cost @ self.loss.value(y, f + b))
        dual = float(y @ beta) - self.loss.tube * float(np.abs(beta).sum()) - square
        return beta, b, primal, dual


def _balanced(beta: Array) -> Array:
    """The heavier sign scaled down until the sum is 0: a feasible point of the dual."""
    positive, negative = beta[beta > 0].sum(), -beta[beta < 0].sum()
    if positive <= 0.0 or negative <= 0.0:
        return np.zeros_like(beta)
    least = min(positive, negative)
    return np.where(beta > 0, beta * (least / positive), beta * (least / negative))
