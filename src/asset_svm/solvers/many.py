"""Many models on the same rows: classes, folds and values of C share V and G = V_B V_B^T.

A group of models goes through a block in one thread: margins by a product, the scalar loop of the
blocked form, the update by a product, the shrink. It goes through a few blocks before threads meet;
those that are ready first bring the rows of the next, and their G.

Which rows a model sees is its own affair: ``split`` names the row of ``weight`` it obeys, and where
that is negative it stands still. It takes the steps of a run by itself on the rows that it sees, in
their order, and counts its own for the decay of its steps and the beginning of its average.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from asset_svm import clock
from asset_svm.arrays import Array
from asset_svm.data import Order
from asset_svm.exceptions import NonFiniteError
from asset_svm.solvers.blocked_form import Sight, group_size, step_through
from asset_svm.solvers.blocks import MappedRows
from asset_svm.solvers.state import ModelAxis, SolverState
from asset_svm.threads.team import side_by_side

AHEAD = 4
"""Blocks between two meetings of the threads: one that is held up keeps the others waiting less."""
BLOCK_ROWS = 128
"""Rows of a block, whatever the number of models: iterates in a metric are shrunk after each, and must
not depend on who trains beside them. For 50 to 500 models as fast as any other, by measurement."""


@dataclass(frozen=True, eq=False)
class Prepared:
    """A block up to step ``stop``: V_B, G and what models see of it."""

    stop: int
    V: Array
    G: Array
    sight: Sight


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
        begin, end = self.position, self.position + steps
        ready = [self._prepare(*block) for block in self._blocks(begin, end)]
        while ready:
            stop = ready[-1].stop
            ready = self._run(ready, self._blocks(stop, end))
            self.position = stop
            if clock.now() > deadline:
                break
        return self.position - begin

    def _blocks(self, first: int, end: int) -> list[tuple[int, int]]:
        """The first and last steps of the next blocks from step ``first`` on."""
        found: list[tuple[int, int]] = []
        while first < end and len(found) < AHEAD:
            stop = min(first - first % self.block_rows + self.block_rows, end)
            found.append((first, stop))
            first = stop
        return found

    def _prepare(self, first: int, stop: int) -> Prepared:
        """Return the block of these steps, with its G."""
        visited = self.order.rows(first, stop)
        V, positions = self.rows.fetch(visited)
        block = V[positions, : self.rows.dimension]
        sight = Sight(self.targets(visited), self.sort, self.weight[:, visited], self.split)
        return Prepared(stop, block, block @ block.T, sight)

    def _run(self, blocks: list[Prepared], following: list[tuple[int, int]]) -> list[Prepared]:
        """Take all models through some blocks; returns those that follow."""
        K = len(self.axis.lam)
        nothing = np.empty((K, 0))

        def run(first: int) -> None:
            models = slice(first, min(first + self.group, K))
            for block in blocks:
                step_through(
                    block.V,
                    block.G,
                    block.sight,
                    self.axis,
                    self.state,
                    self.average_from,
                    models,
                    nothing,
                    nothing,
                )
                self._shrink(models)

        firsts = range(0, K, self.group)
        tasks: list[Callable[[], Any]] = [partial(run, first) for first in firsts]
        tasks += [partial(self._prepare, *block) for block in following]
        done = side_by_side(lambda number: tasks[number](), range(len(tasks)))
        if not self.state.is_finite():
            raise NonFiniteError(
                f"The iterates are no longer finite after step {int(self.state.steps.max())}; "
                "scale the columns of X (StandardScaler), lower gamma, or search smaller C."
            )
        return done[len(firsts) :]

    def _shrink(self, models: slice) -> None:
        """Shrink by what is due, where there is a metric: once a block."""
        metric, state = self.axis.metric, self.state
        if metric is not None:
            coef = state.direction[models]
            coef[:] = metric.shrink(coef, self.axis.lam[models] * state.shrink_due[models])
        state.shrink_due[models] = 0.0

    def model(self) -> tuple[Array, Array]:
        """The averaged (K, d) coef and (K,) intercept; the iterate of a model that averaged nothing."""
        state, averaged = self.state, self.state.weight > 0.0
        weight = np.where(averaged, state.weight, 1.0)
        coef = np.where(averaged[:, None], state.total / weight[:, None], state.coef)
        return coef, np.where(averaged, state.intercept_total / weight, state.intercept)
