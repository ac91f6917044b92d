"""The driver: draws rows ahead of time, maps them a block at a time, hands them to a compiled loop.

    advance(n):                         n more steps of every model
      while steps are left:
        block   = steps [first, end)    by ``Cut``, so that rounding never depends on who asks when
        rows    = order(block)          mapped once, by ``MappedRows``
        run the row form or the blocked form up to the next of
          the block's end, the end asked for, a boundary of the average, a shrink that is due

Between two ``advance`` calls anybody may read ``model()``, the averaged model so far; the iterates
do not notice.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Literal, cast

import numpy as np

from asset_svm import clock
from asset_svm.arrays import Array
from asset_svm.data import Order, Targets
from asset_svm.exceptions import NonFiniteError
from asset_svm.losses import loop_arguments
from asset_svm.solvers.average import NEVER, Average
from asset_svm.solvers.blocked_form import Sight, block_rows, group_size, step_through
from asset_svm.solvers.blocks import BlockRows, Cut, MappedRows
from asset_svm.solvers.row_form import step_rows, tally
from asset_svm.solvers.state import ModelAxis, SolverState
from asset_svm.solvers.tallies import Progress, Slopes
from asset_svm.threads.granted import granted
from asset_svm.threads.team import check_interrupt, side_by_side

Form = Literal["row", "blocked"]
WORTH_A_THREAD = 1 << 20
"""Products of a weight and a feature that take longer than a thread's waking up, about."""


@dataclass(eq=False)
class StepBlock:
    """The rows of the steps from ``first`` on: features V[positions]."""

    first: int
    rows: Array
    y: Array
    weight: Array
    V: Array
    positions: Array


class Driver:
    """One run of K models over mapped rows.

    Parameters
    ----------
    rows, targets, order : where V, y and the order of visits come from
    axis : ModelAxis
    state : SolverState
    average : Average
    cut : Cut
        The steps of a block.
    weight : array of shape (m,), optional
        Multipliers of the slopes, mean 1; negative means that no model sees the row.
    form : {"row", "blocked"}
    length : int, optional
        The steps this run can have: the last block is not drawn beyond them.
    ahead : bool
        Whether blocks are announced before their turn; with ``BlockRows`` only.
    shrink_interval : int, optional
        Steps between two shrinks in a metric; by default ``axis.shrink_interval``, as the model that
        needs the fewest has it.
    """

    def __init__(
        self,
        rows: MappedRows,
        targets: Targets,
        order: Order,
        axis: ModelAxis,
        state: SolverState,
        average: Average,
        *,
        cut: Cut,
        weight: Array | None = None,
        form: Form = "row",
        length: int | None = None,
        ahead: bool = False,
        shrink_interval: int | None = None,
    ):
        self.ahead = ahead
        self.rows, self.targets, self.order = rows, targets, order
        self.axis, self.state, self.average = axis, state, average
        self.weight, self.cut, self.form = weight, cut, form
        self.length = NEVER if length is None else length
        self.shrink_interval = shrink_interval or axis.shrink_interval(cut.longest)
        self.position = 0
        self._models = np.arange(len(axis.lam))
        self.slopes: Slopes | None = None
        self.progress = Progress.zeros(len(axis.lam))
        self._block: StepBlock | None = None
        self._announced = 0  # steps whose rows were

    def advance(self, steps: int, deadline: float = np.inf) -> int:
        """Take ``steps`` more steps, or as many as end by ``deadline`` (``clock.now``).

        Returns the number of steps taken: up to the end of a block when the deadline cut it short.
        """
        begin, end = self.position, self.position + steps
        while self.position < end:
            room = self.average.steps_to_boundary(end - self.position)
            if room <= 0:
                self.average.close_segment(self.state)
                continue
            first, last = self.cut.around(self.position)
            turn = self.position - self.position % self.shrink_interval + self.shrink_interval
            stop = min(last, end, self.position + room, turn)
            block = self._fetch(first)
            part = slice(self.position - first, stop - first)
            y, weight = block.y[:, part], block.weight[part]
            margins, slopes = np.empty(y.shape), np.zeros(y.shape)
            average_from = 0 if self.average.averages else NEVER
            seen = block.V, block.positions[part], y, weight, self.axis, self.state, average_from
            if self.form == "blocked":
                self._step_blocked(block, part, np.full(len(y), average_from), margins, slopes)
            else:
                self._step_rows(partial(step_rows, *seen, margins=margins, slopes=slopes), y.shape[1])
            self.average.step += stop - self.position
            self._add_up(block.rows[part], y, weight, margins, slopes)
            self.position = stop
            if stop == turn:
                self.settle()
            if stop == last:
                self.state.fold()
                check_interrupt()
                if clock.now() > deadline:
                    break
        return self.position - begin

    def restart(self, axis: ModelAxis, average: Average) -> None:
        """Go on from here with other steps, counted from 1, and a new average."""
        self.settle()
        self.state.clear_segment()
        self.state.steps[:] = 0
        self.axis, self.average = axis, average
        self.shrink_interval = axis.shrink_interval(self.cut.longest)

    def settle(self) -> None:
        """Shrink by what is due, where a metric leaves that to the driver."""
        metric, state = self.axis.metric, self.state
        if metric is None or not state.shrink_due.any():
            return
        state.unscale()
        state.direction[:] = metric.shrink(state.direction, self.axis.lam * state.shrink_due)
        state.shrink_due[:] = 0.0

    def model(self) -> tuple[Array, Array]:
        """The averaged (K, d) coef and (K,) intercept so far."""
        return self.average.result(self.state)

    def take_progress(self) -> Progress:
        """Return the sums since the last call, and begin anew."""
        taken, self.progress = self.progress, Progress.zeros(len(self.axis.lam))
        return taken

    def _fetch(self, first: int) -> StepBlock:
        """The block that begins at step ``first``."""
        if self._block is None or self._block.first != first:
            rows = self.order.rows(first, min(self.cut.around(first)[1], self.length))
            y = self.targets.block(rows)
            weight = np.ones(len(rows)) if self.weight is None else self.weight[rows]
            self._block = StepBlock(first, rows, y, weight, *self.rows.fetch(rows))
            if self.ahead:
                self._look_ahead(first)
        return self._block

    def _look_ahead(self, first: int) -> None:
        """Announce the blocks after this one."""
        end = self.cut.around(first)[1]
        rows = cast(BlockRows, self.rows)
        for _ in range(rows.looks_ahead):
            if end >= self.length:
                break
            first, end = self.cut.around(end)
            if first >= self._announced:
                rows.expect(self.order.rows(first, min(end, self.length)))
                self._announced = end

    def _add_up(self, rows: Array, y: Array, weight: Array, margins: Array, slopes: Array) -> None:
        """Add up what the loop saw of these rows."""
        if self.slopes is not None:
            self.slopes.add(rows, slopes)
        progress = self.progress
        progress.steps += y.shape[1]
        finite = tally(
            *loop_arguments(self.axis.loss), y, margins, slopes, weight,
            progress.loss, progress.errors, progress.active,
        )  # fmt: skip
        self._check_finite(finite)

    def _check_finite(self, finite: bool) -> None:
        """Raise where margins were not, or the iterates are not."""
        if not (finite and self.state.is_finite()):
            raise NonFiniteError(
                f"The iterates are no longer finite after step {int(self.state.steps.max())}; "
                "scale the columns of X (StandardScaler), lower gamma, or raise lam (lower C)."
            )

    def _step_rows(self, go: Callable[[Array], None], steps: int) -> None:
        """Have each model go through its steps, by threads where there is enough to do."""
        lots = self._lots(steps)
        if len(lots) == 1:
            go(lots[0])
        else:
            side_by_side(lambda number: go(lots[number]), range(len(lots)))

    def _step_blocked(
        self, block: StepBlock, part: slice, average_from: Array, margins: Array, slopes: Array
    ) -> None:
        """Take the steps by the blocked form: groups of models go through a few rows at a time."""
        state, K = self.state, len(average_from)
        length, size = block_rows(K), group_size(K)
        state.unscale()
        first = part.start
        while first < part.stop:
            stop = min(first - first % length + length, part.stop)
            V = block.V[block.positions[first:stop], : self.rows.dimension]
            G = V @ V.T
            sight = Sight.of_all(block.y[:, first:stop], block.weight[first:stop])
            place = slice(first - part.start, stop - part.start)

            def run(
                model: int,
                V: Array = V,
                G: Array = G,
                sight: Sight = sight,
                seen: tuple[Array, Array] = (margins[:, place], slopes[:, place]),
            ) -> None:
                models = slice(model, min(model + size, K))
                step_through(V, G, sight, self.axis, state, average_from, models, *seen)

            side_by_side(run, range(0, K, size))
            first = stop

    def _lots(self, steps: int) -> list[Array]:
        """Numbers of models: each thread has some of its own, in about two lots, where that pays."""
        K = len(self._models)
        worth = K * steps * self.rows.dimension // WORTH_A_THREAD
        return np.array_split(self._models, min(2 * granted(), K) if worth > 1 and granted() > 1 else 1)
