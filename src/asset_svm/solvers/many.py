"""Many models on the same rows: classes, folds and values of C share V and G = V_B V_B^T.

A group of models goes through a block in one thread: margins by a product, the scalar loop of the
blocked form, the update by a product, the shrink. Groups do not wait for each other: each goes through
all blocks of a window, in compiled code. Rows come in three stages, so that there is always something
to do for every thread:

    drawn       the order, targets and weights of a window, and features where they are not kept
    gathered    V and G of its blocks, each in one place
    learnt      by all groups

While one window is learnt, the next is gathered and the one after it drawn.

Which rows a model sees is its own affair: ``split`` names the row of ``weight`` it obeys, and where
that is negative it stands still. It takes the steps of a run by itself on the rows that it sees, in
their order, and counts its own for the decay of its steps and the beginning of its average.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count

import numpy as np

from asset_svm import clock
from asset_svm.arrays import Array
from asset_svm.data import Order
from asset_svm.exceptions import NonFiniteError
from asset_svm.solvers.block_steps import Blocks, Sight, work_on_blocks
from asset_svm.solvers.blocked_form import group_size
from asset_svm.solvers.blocks import MappedRows, fetching_threads
from asset_svm.solvers.state import ModelAxis, SolverState
from asset_svm.solvers.tallies import Notes
from asset_svm.threads.granted import granted
from asset_svm.threads.team import side_by_side, together

WINDOW_BLOCKS, MOST_BLOCKS = 8, 64
"""Blocks of a window for each thread, and at most: one thread finds them in its own cache when the next
group comes, many in the one they share. How many there are changes no bit."""
WINDOW_WORK = 1 << 31
"""Products of a weight and a feature in a window, about: a second of one core is 20 times as many."""
MAPPED = 512
"""Rows that one thread maps at a time, where they are not kept."""
BLOCK_ROWS = 128
"""Rows of a block, whatever the number of models: iterates in a metric are shrunk after each, and must
not depend on who trains beside them. For 50 to 500 models as fast as any other, by measurement."""


@dataclass(eq=False)
class Window:
    """Some blocks up to step ``stop``.

    Parameters
    ----------
    sight : Sight
    V, positions
        Their features, V[positions], in any place.
    blocks : Blocks
        The same once they are gathered.
    """

    stop: int
    sight: Sight
    V: Array
    positions: Array
    blocks: Blocks


class ManyDriver:
    """One run of K models, each over its own rows.

    Parameters
    ----------
    rows, order : where V and the order of visits come from
    targets : callable
        The (T, B) targets of given rows.
    sort : int array of shape (K,)
    weight : array of shape (F, m)
    split : int array of shape (K,)
        See ``Sight``.
    axis : ModelAxis
    average_from : int array of shape (K,)
        The first of its steps that each model averages.
    """

    def __init__(
        self,
        rows: MappedRows,
        order: Order,
        targets: Callable[[Array], Array],
        sort: Array,
        weight: Array,
        split: Array,
        axis: ModelAxis,
        average_from: Array,
        *,
        group: int | None = None,
        block_rows: int = BLOCK_ROWS,
    ):
        self.rows, self.order, self.targets = rows, order, targets
        self.sort, self.weight, self.split = sort, weight, split
        self.axis, self.average_from = axis, average_from
        self.group = group or group_size(len(axis.lam))
        self.block_rows = block_rows
        self.state = SolverState.zeros(len(axis.lam), rows.dimension, rows.dtype)
        self.position = 0

    def advance(self, steps: int, deadline: float = np.inf) -> int:
        """Visit ``steps`` more rows, or as many as end by ``deadline`` (``clock.now``)."""
        begin, cuts = self.position, self._cuts(self.position, self.position + steps)
        gathered, drawn = None, self._drawn(next(cuts, None))
        while drawn is not None or gathered is not None:
            learnt, gathered = gathered, drawn
            drawn = self._run(learnt, gathered, next(cuts, None))
            if learnt is None:
                continue
            self.position = learnt.stop
            self._check_finite()
            if clock.now() > deadline:
                break
        return self.position - begin

    def _cuts(self, first: int, end: int) -> Iterator[tuple[int, int]]:
        """The first and last steps of windows."""
        rows = WINDOW_WORK // (len(self.axis.lam) * self.rows.dimension)
        most = min(WINDOW_BLOCKS * granted(), MOST_BLOCKS, max(rows // self.block_rows, 1))
        while first < end:
            stop = min(first - first % self.block_rows + most * self.block_rows, end)
            yield first, stop
            first = stop

    def _drawn(self, cut: tuple[int, int] | None) -> Window | None:
        """The window of these steps."""
        if cut is None:
            return None
        first, stop = cut
        visited = self.order.rows(first, stop)
        target, weight = self.targets(visited), np.take(self.weight, visited, axis=1)
        sight = Sight(
            visited,
            np.ascontiguousarray(target, dtype=np.float64),
            self.sort,
            weight,
            self.split,
            self.average_from,
        )
        inner = np.arange(first - first % self.block_rows + self.block_rows, stop, self.block_rows)
        begin = np.concatenate([[first], inner, [stop]]) - first
        shrinks = np.ones(len(begin) - 1, dtype=np.bool_)
        blocks = Blocks.empty(begin, shrinks, self.rows.dimension, self.rows.dtype)
        return Window(stop, sight, *self._fetch(visited), blocks)

    def _fetch(self, visited: Array) -> tuple[Array, Array]:
        """V and the positions of these rows in it; threads map them where they are not kept."""
        if self.rows.in_memory:
            return self.rows.fetch(visited)
        V = np.empty((len(visited), self.rows.dimension), self.rows.dtype)

        def bring(start: int) -> None:
            part = slice(start, start + MAPPED)
            features, positions = self.rows.fetch(visited[part])
            V[part] = features[positions, : V.shape[1]]

        side_by_side(bring, range(0, len(visited), MAPPED), fetching_threads(self.rows))
        return V, np.arange(len(visited))

    def _run(
        self, learnt: Window | None, gathered: Window | None, cut: tuple[int, int] | None
    ) -> Window | None:
        """Have all models learn from one window, gather the next, and draw the one after it."""
        drawn: list[Window | None] = []
        if not self.rows.in_memory:  # for all threads, or for one alone
            drawn.append(self._drawn(cut))
        shown = learnt or gathered
        assert shown is not None
        none = Blocks.none(self.rows.dimension, self.rows.dtype)
        source = gathered or shown
        arguments = (
            self.group,
            none if learnt is None else learnt.blocks,
            shown.sight,
            *self.axis.for_loops(self.rows.dtype),
            self.state.for_loops(),
            Notes.none(),
            source.V,
            source.positions,
            none if gathered is None else gathered.blocks,
        )
        members = count()

        def work(counter: Array) -> None:
            if next(members) == 0 and not drawn:
                drawn.append(self._drawn(cut))
            work_on_blocks(counter, *arguments)

        together(work)
        return drawn[0]

    def _check_finite(self) -> None:
        """Raise where iterates are not."""
        if not self.state.is_finite():
            raise NonFiniteError(
                f"The iterates are no longer finite after step {int(self.state.steps.max())}; "
                "scale the columns of X (StandardScaler), lower gamma, or search smaller C."
            )

    def model(self) -> tuple[Array, Array]:
        """The averaged (K, d) coef and (K,) intercept; the iterate of a model that averaged nothing."""
        state, averaged = self.state, self.state.weight > 0.0
        weight = np.where(averaged, state.weight, 1.0)
        coef = np.where(averaged[:, None], state.total / weight[:, None], state.coef)
        return coef, np.where(averaged, state.intercept_total / weight, state.intercept)
