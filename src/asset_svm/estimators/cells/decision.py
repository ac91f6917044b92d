"""The decision function of a model of cells: that of the cell in which a row lies."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from asset_svm.engines.cells import CellFunctions
from asset_svm.estimators.cells.nested import Nested
from asset_svm.estimators.decision import Decision, finite
from asset_svm.estimators.device import row_type
from asset_svm.features.cells import Partition, grouped
from asset_svm.kernels import Kernel
from asset_svm.threads.blas import blas_threads
from asset_svm.threads.team import check_interrupt, side_by_side

FEW_ROWS = 256
"""Fewer are decided by one thread."""


@dataclass(eq=False)
class CellModels:
    """One partition, and the decision function of each of its cells."""

    partition: Partition
    decisions: list[Callable[[Any], np.ndarray]]
    shares: np.ndarray
    """The part of the weight of all rows that lies in each cell."""
    mean_weight: float = 1.0
    """Of a row."""
    n_rows: int = 0
    """That were solved at once."""

    def functions(self, engine: Any, n_models: int) -> CellFunctions:
        """The functions of the cells as an engine of a card takes them."""
        count = len(self.decisions)
        landmarks: list[Any] = [None] * count
        weights = [np.empty((n_models, 0))] * count
        intercept, others, kernel = np.zeros((count, n_models)), {}, Kernel("linear")
        for cell, decision in enumerate(self.decisions):
            if isinstance(decision, Nested):
                others[cell] = partial(decision.by, engine)
            elif isinstance(decision, Constant):
                intercept[cell] = decision.values
            else:
                assert isinstance(decision, Decision)
                kernel, landmarks[cell] = decision.source.kernel, decision.source.components
                weights[cell], intercept[cell] = decision.weights, decision.intercept
        return CellFunctions(self.partition, kernel, landmarks, weights, intercept, others)


@dataclass(eq=False)
class CellDecision:
    """The mean decision over several partitions: each costs one descent and one cell."""

    parts: list[CellModels]
    n_models: int
    dtype: np.dtype
    alone: bool = False
    """Whether one thread of the host decides: a user's kernel may not be made for several at a time."""
    _prepared: dict[Any, Any] = field(default_factory=dict, init=False, repr=False)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_prepared": {}}

    def on_card(self, engine: Any, X: Any) -> np.ndarray:
        """The (rows, K) decisions, computed on a card."""
        dtype = row_type(X)
        key = (dtype, engine.precision)
        if key not in self._prepared:
            parts = [part.functions(engine, self.n_models) for part in self.parts]
            self._prepared[key] = engine.cell_decision(parts, X.shape[1], dtype)
        return finite(self._prepared[key](X))

    def __call__(self, X: Any) -> np.ndarray:
        """The (rows, K) decisions, in float64."""
        out = np.zeros((X.shape[0], self.n_models))
        if X.shape[0] < FEW_ROWS or self.alone:
            self._add(X, out)
            return out / len(self.parts)
        threads = blas_threads()
        size = -(-X.shape[0] // threads)

        def add(start: int) -> None:
            self._add(X[start : start + size], out[start : start + size])

        side_by_side(add, range(0, X.shape[0], size), threads)
        return out / len(self.parts)

    def _add(self, X: Any, out: np.ndarray) -> None:
        every = np.arange(X.shape[0])
        for part in self.parts:
            cells = part.partition.assign(X)
            for cell, rows in enumerate(grouped(every, cells, part.partition.n_cells)):
                check_interrupt()
                if len(rows):
                    out[rows] += part.decisions[cell](X[rows])

    def unchecked(self, dtype: np.dtype) -> Callable[[Any], np.ndarray]:
        """A function from rows of this type to decisions."""
        return self


@dataclass(frozen=True, eq=False)
class Constant:
    """The same decisions everywhere in a cell; a few of its rows, for ``partial_fit`` to go on from."""

    values: np.ndarray
    X: Any = None
    y: np.ndarray | None = None

    def __call__(self, X: Any) -> np.ndarray:
        """The (rows, K) decisions."""
        return np.tile(np.asarray(self.values, dtype=np.float64), (X.shape[0], 1))
