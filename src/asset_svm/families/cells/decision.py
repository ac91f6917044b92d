"""The decision function of a model of cells: that of the cell in which a row lies.

Dense rows and exact cells whose kernel is a function of the distance are decided by compiled threads
(``flat``). Others go down the tree, and then those of a cell are decided ``BLOCK_ROWS`` at a time, in
products of one BLAS thread each: their shapes, and so the last bits of what they give, depend on the
rows alone, not on how many threads there are or who else asks.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp

from asset_svm.backends.device import row_type
from asset_svm.families.cells.constant import Constant
from asset_svm.families.cells.flat import FlatCells, flatten
from asset_svm.families.cells.nested import Nested
from asset_svm.families.decision import Decision, finite
from asset_svm.features.cells import Partition
from asset_svm.kernels import Kernel
from asset_svm.numerics.compiling import lent
from asset_svm.solvers.cell_models import CellFunctions
from asset_svm.threads.blocks import BLOCK_ROWS
from asset_svm.threads.granted import grant, granted
from asset_svm.threads.team import check_interrupt, side_by_side

FEW_ROWS = 512
"""Fewer are decided by one thread, and no thread is woken for fewer."""
LOTS = 4
"""Lots of work for each thread: one that is held up keeps the others waiting less."""


@dataclass(eq=False)
class CellModels:
    """One partition, and the decision function of each of its cells."""

    partition: Partition
    decisions: list[Any]
    shares: np.ndarray
    """The part of the weight of all rows that lies in each cell."""
    mean_weight: float = 1.0
    """The mean weight of a row."""
    n_rows: int = 0
    """The number of rows that were solved at once."""

    def functions(self, backend: Any, n_models: int) -> CellFunctions:
        """The functions of the cells as a backend of a card takes them."""
        count = len(self.decisions)
        landmarks: list[Any] = [None] * count
        weights = [np.empty((n_models, 0))] * count
        intercept, others, kernel = np.zeros((count, n_models)), {}, Kernel("linear")
        for cell, decision in enumerate(self.decisions):
            if isinstance(decision, Nested):
                others[cell] = partial(decision.by, backend)
            elif isinstance(decision, Constant):
                intercept[cell] = decision.values
            else:
                assert isinstance(decision, Decision)
                kernel, landmarks[cell] = decision.source.kernel, decision.source.components
                weights[cell], intercept[cell] = decision.weights, decision.intercept
        return CellFunctions(self.partition, kernel, landmarks, weights, intercept, others)


@dataclass(eq=False)
class CellDecision:
    """The mean decision over several partitions: each costs one descent and one cell.

    The same rows in the same order give the same bits, whoever calls, from however many threads, and
    whatever the number of BLAS threads. In another order, or beside other rows, a row may be rounded
    in another way: products of other shapes are.
    """

    parts: list[CellModels]
    n_models: int
    dtype: np.dtype
    alone: bool = False
    """Whether one thread of the host decides: a user's kernel may not be made for several at a time."""
    _prepared: dict[Any, Any] = field(default_factory=dict, init=False, repr=False)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_prepared": {}}

    def on_card(self, backend: Any, X: Any) -> np.ndarray:
        """The (rows, K) decisions, computed on a card."""
        dtype = row_type(X)
        key = (dtype, backend.precision)
        if key not in self._prepared:
            parts = [part.functions(backend, self.n_models) for part in self.parts]
            self._prepared[key] = backend.cell_decision(parts, X.shape[1], dtype)
        return finite(self._prepared[key](X))

    def __call__(self, X: Any) -> np.ndarray:
        """The (rows, K) decisions, in float64."""
        flat = None if sp.issparse(X) else self._flat(X.shape[1], X.dtype)
        return self._by_pieces(X) if flat is None else finite(self._by_loops(flat, X))

    def unchecked(self, dtype: np.dtype) -> Callable[[Any], np.ndarray]:
        """A function from rows of this type to decisions."""

        def decide(X: Any) -> np.ndarray:
            flat = self._flat(X.shape[1], dtype)
            return self._by_pieces(X) if flat is None else self._by_loops(flat, X)

        return decide

    def _flat(self, n: int, dtype: np.dtype) -> list[FlatCells] | None:
        """The parts as arrays for compiled loops, prepared once; None where some cell is none."""
        key = ("flat", dtype)
        if key not in self._prepared:
            parts = []
            for part in self.parts:
                found = flatten(part.partition, part.decisions, n, self.n_models, dtype, granted())
                if found is None:
                    break
                parts.append(found)
            self._prepared[key] = parts if len(parts) == len(self.parts) else None
        found_parts: list[FlatCells] | None = self._prepared[key]
        return found_parts

    def _by_loops(self, parts: list[FlatCells], X: np.ndarray) -> np.ndarray:
        X, out = lent(X), np.zeros((X.shape[0], self.n_models))
        for part in parts:
            if len(X) < FEW_ROWS:
                part.add_few(X, out)
            else:
                part.add(X, out, min(granted(), len(X) // FEW_ROWS))
        out /= len(parts)
        return out

    def gradients(self, X: Any) -> np.ndarray:
        """The gradients of the decisions inside the cells of the rows, (rows, K, n) in float64."""
        return self._by_pieces(X, lambda decision, rows: decision.gradients(rows), (X.shape[1],))

    def _by_pieces(
        self,
        X: Any,
        function: Callable[[Any, Any], np.ndarray] = lambda decision, rows: decision(rows),
        more: tuple[int, ...] = (),
    ) -> np.ndarray:
        """The mean over partitions of a function of the decision of a cell and rows there.

        It gives (rows, K, *more) numbers.
        """
        out = np.zeros((X.shape[0], self.n_models, *more))
        threads = 1 if X.shape[0] < FEW_ROWS or self.alone else granted()
        for part in self.parts:
            with grant(threads):
                pieces = _pieces(part.partition.assign(X))
            lots = np.array_split(np.arange(len(pieces)), min(LOTS * threads, len(pieces)))

            def add(
                lot: int,
                part: CellModels = part,
                pieces: list[tuple[int, np.ndarray]] = pieces,
                lots: list[np.ndarray] = lots,
            ) -> None:
                for number in lots[lot]:
                    check_interrupt()
                    cell, rows = pieces[number]
                    out[rows] += function(part.decisions[cell], X[rows])

            side_by_side(add, range(len(lots)), threads)
        return out / len(self.parts)


def _pieces(cells: np.ndarray) -> list[tuple[int, np.ndarray]]:
    """The rows of each cell that has some, ``BLOCK_ROWS`` of them at a time."""
    order = np.argsort(cells, kind="stable")
    groups = np.split(order, np.flatnonzero(np.diff(cells[order])) + 1)
    return [
        (int(cells[rows[0]]), rows[first : first + BLOCK_ROWS])
        for rows in groups
        for first in range(0, len(rows), BLOCK_ROWS)
    ]
