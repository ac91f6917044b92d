"""The driver: draws rows ahead of time, maps them a block at a time, hands them to a compiled loop.

    advance(n):                         n more steps of every model
      while steps are left:
        block   = steps [first, end)    by ``Cut``, so that rounding never depends on who asks when;
                                        several, where all rows lie in memory
        rows    = order(block)          mapped once, by ``MappedRows``
        run the row form or the blocked form up to the next of
          the end of what was drawn, the end asked for, a boundary of the average

What is due at the end of each block, or in a metric more often, compiled loops do on their way: threads
that have other models do not wait for each other there.

Between two ``advance`` calls anybody may read ``model()``, the averaged model so far; the iterates
do not notice.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, cast

import numpy as np

from asset_svm import clock
from asset_svm.arrays import Array
from asset_svm.data import Order, Targets, models_of_a_row
from asset_svm.exceptions import NonFiniteError
from asset_svm.solvers import row_steps
from asset_svm.solvers.average import NEVER, Average
from asset_svm.solvers.block_steps import Blocks, Sight, work_on_blocks
from asset_svm.solvers.blocked_form import block_rows, group_size
from asset_svm.solvers.blocks import BlockRows, Cut, MappedRows
from asset_svm.solvers.row_steps import Steps, work_on_rows
from asset_svm.solvers.state import ModelAxis, SolverState
from asset_svm.solvers.tallies import Notes, Progress, Slopes
from asset_svm.threads.counter import new_counter
from asset_svm.threads.granted import granted
from asset_svm.threads.team import check_interrupt, together

Form = Literal["row", "blocked"]
WORTH_A_THREAD = 1 << 20
"""Products of a weight and a feature that take longer than a thread's waking up, about."""
DRAWN = 8192
"""Steps that are drawn at a time, about, where all rows lie in memory and nobody looks at the clock."""


@dataclass(eq=False)
class StepBlock:
    """The rows of the steps from ``first`` to ``stop``: features V[positions]."""

    first: int
    stop: int
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
        # Of pairs of classes few see a row: a turn has as many rows that a model does see.
        self.turn = row_steps.TURN * targets.n_models // max(models_of_a_row(targets), 1)
        self.position = 0
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
            block = self._fetch(end if deadline == np.inf else self.position)
            stop = min(block.stop, end, self.position + room)
            taken = self._steps(block, stop)
            notes = Notes.of(self.progress, self.slopes)
            if self.form == "blocked":
                self._step_blocked(taken, notes)
            else:
                self._step_rows(taken, notes)
            self.average.step += stop - self.position
            self.progress.steps += stop - self.position
            if self.slopes is not None:
                self.slopes.count(taken.rows)
            self._check_finite(bool(notes.finite.all()))
            self.position = stop
            if taken.folds[-1]:
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
        axis, metric = self.axis.for_loops(self.rows.dtype)
        row_steps.settle(axis, metric, self.state.for_loops(), 0, len(axis.lam))

    def model(self) -> tuple[Array, Array]:
        """The averaged (K, d) coef and (K,) intercept so far."""
        return self.average.result(self.state)

    def take_progress(self) -> Progress:
        """Return the sums since the last call, and begin anew.

        A row that a model does not see is no error of it: errors are those of as many rows as there
        would be if every model saw all.
        """
        taken, self.progress = self.progress, Progress.zeros(len(self.axis.lam))
        taken.errors *= self.targets.n_models / models_of_a_row(self.targets)
        return taken

    def _fetch(self, end: int) -> StepBlock:
        """The block of the next step, and those after it up to ``end`` that are drawn with it."""
        block = self._block
        if block is None or not block.first <= self.position < block.stop:
            first, stop = self.cut.around(self.position)
            most = DRAWN if self.rows.in_memory else 0
            while stop < end and stop - first < most:
                stop = self.cut.around(stop)[1]
            stop = min(stop, self.length)
            rows = self.order.rows(first, stop)
            y = np.ascontiguousarray(self.targets.block(rows), dtype=np.float64)
            weight = np.ones(len(rows)) if self.weight is None else self.weight[rows]
            block = self._block = StepBlock(first, stop, rows, y, weight, *self.rows.fetch(rows))
            if self.ahead:
                self._look_ahead(first)
        return block

    def _steps(self, block: StepBlock, stop: int) -> Steps:
        """The steps from here to ``stop``, with the pauses in between."""
        first, ends, shrinks, folds = self.position, [], [], []
        while first < stop:
            last = self.cut.around(first)[1]
            turn = first - first % self.shrink_interval + self.shrink_interval
            first = min(last, turn, stop)
            ends.append(first - self.position)
            shrinks.append(first == turn)
            folds.append(first == last)
        part = slice(self.position - block.first, stop - block.first)
        return Steps(
            block.V,
            block.positions[part],
            block.rows[part],
            np.ascontiguousarray(block.y[:, part]),
            block.weight[part],
            0 if self.average.averages else NEVER,
            np.array(ends),
            np.array(shrinks),
            np.array(folds),
        )

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

    def _check_finite(self, finite: bool) -> None:
        """Raise where margins were not, or the iterates are not."""
        if not (finite and self.state.is_finite()):
            raise NonFiniteError(
                f"The iterates are no longer finite after step {int(self.state.steps.max())}; "
                "scale the columns of X (StandardScaler), lower gamma, or raise lam (lower C)."
            )

    def _step_rows(self, steps: Steps, notes: Notes) -> None:
        """Take the steps by the row form: threads have models of their own, and each reads all rows."""
        K, n = steps.target.shape
        threads = min(self._threads(n), K)
        turn = n if K == 1 else self.turn
        arguments = (*self.axis.for_loops(self.rows.dtype), self.state.for_loops(), notes)
        _by_threads(threads, lambda counter: work_on_rows(counter, threads, turn, steps, *arguments))

    def _step_blocked(self, steps: Steps, notes: Notes) -> None:
        """Take the steps by the blocked form: groups of models go through a few rows at a time."""
        K, n = steps.target.shape
        self.state.unscale()
        every = np.arange(K)
        average_from = np.full(K, steps.average_from)
        sight = Sight(steps.rows, steps.target, every, steps.weight[None, :], 0 * every, average_from)
        blocks = Blocks.empty(
            *self._block_ends(steps, block_rows(K)), self.rows.dimension, self.rows.dtype
        )
        none = Blocks.none(self.rows.dimension, self.rows.dtype)
        arguments = (sight, *self.axis.for_loops(self.rows.dtype), self.state.for_loops(), notes)
        for now, following in ((none, blocks), (blocks, none)):

            def work(counter: Array, now: Blocks = now, following: Blocks = following) -> None:
                work_on_blocks(
                    counter, group_size(K), now, *arguments, steps.V, steps.positions, following
                )

            _by_threads(self._threads(n), work)

    def _block_ends(self, steps: Steps, length: int) -> tuple[Array, Array]:
        """Where blocks of ``length`` steps begin, and whether coefficients shrink after each.

        They are counted from the first step of a block of ``Cut`` on, and end at every pause.
        """
        begin, shrinks = [0], []
        for end, shrink in zip(steps.ends, steps.shrinks, strict=True):
            while begin[-1] < end:
                inside = self.position + begin[-1]
                inside -= self.cut.around(inside)[0]
                begin.append(min(begin[-1] + length - inside % length, int(end)))
                shrinks.append(bool(shrink) and begin[-1] == end)
        return np.array(begin), np.array(shrinks)

    def _threads(self, steps: int) -> int:
        """How many threads are worth it for so many steps."""
        work = len(self.axis.lam) * steps * self.rows.dimension
        return granted() if work > 2 * WORTH_A_THREAD else 1


def _by_threads(threads: int, work: Callable[[Array], None]) -> None:
    """work(counter) in so many threads; in this one, where there is one."""
    if threads == 1:
        work(new_counter())
    else:
        together(work, threads)
