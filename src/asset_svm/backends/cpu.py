"""The machine at hand: V cached in memory or recomputed, threads for the map and for the models.

Matrix products round a row in one way, whatever rows stand beside it (``numerics.row_products``): a row
that was kept equals one that is computed anew, bit for bit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from asset_svm.arrays import Array, Matrix
from asset_svm.backends.base import HeldRows, Visits, gather
from asset_svm.backends.workers import Workers, working
from asset_svm.features import Evaluable, FeatureMap, Metric, NystroemFeatures
from asset_svm.memory import available_memory
from asset_svm.solvers import Average, Driver, ModelAxis, SolverState
from asset_svm.solvers.blocks import BlockRows, Cut
from asset_svm.solvers.products import exact_margins, exact_sums, scattered_margins
from asset_svm.threads.blas import few_threads
from asset_svm.threads.fresh import new_matrix
from asset_svm.threads.granted import granted
from asset_svm.threads.team import side_by_side

FEW_MODELS = 4
"""Up to so many models, loops over rows are faster than matrix products with copies of them."""
FEW_SLOPES = 0.15
"""Loops are faster, too, where a smaller part of the slopes of many models is not 0."""
LONG_BLOCKS = 4
"""So many blocks are stepped through at a time where nothing is looked at between them."""
BLOCK_SIZE = 512
"""So many rows are mapped and stepped through at a time: enough for a matrix product, and few enough
for the block of V to stay in a cache."""
MANY_ROWS, FEW_ROWS = 1 << 14, 128
"""Up to so many rows are mapped fewer at a time, so that there is some work for every thread."""
WIDE = 256
"""Features from which on a few rows are enough for a matrix product."""
METRIC_SAMPLE = 2048
"""The metric is estimated from so many rows."""
LOOK = 1024
"""So many rows are opened at a time where all of them are looked at once."""


class CpuRows:
    """phi of the rows of X, kept in memory or computed anew at every visit.

    Parameters
    ----------
    X : matrix of shape (m, n)
    block_size : int
        Rows are mapped so many at a time.
    """

    look_size = LOOK

    def __init__(self, phi: Evaluable, X: Matrix, block_size: int, *, keep: bool):
        self.X, self.block_size = X, block_size
        self.dimension, self.dtype = phi.dimension, np.dtype(X.dtype)
        self.phi = phi
        self.basis, self.lift = phi.basis(self.dtype), phi.lift(self.dtype)
        m = X.shape[0]
        self.seen = np.zeros(m, dtype=bool)
        self.kept = new_matrix((m, self.dimension), self.dtype) if keep else None
        self.reentrant = phi.reentrant
        self.workers: Workers | None = None
        self._coming = np.zeros(m, dtype=bool)

    @property
    def kept_bytes(self) -> int:
        """The bytes that mapped rows take."""
        return 0 if self.kept is None else self.kept.nbytes

    @property
    def in_memory(self) -> bool:
        """Whether all rows are mapped and kept."""
        if self.kept is None or not self.seen.all():
            return False
        return self.workers is None or not self._coming.any()

    @property
    def looks_ahead(self) -> int:
        """How many blocks should be announced before they are opened."""
        if self.workers is None or not self.reentrant or (self.kept is not None and self.seen.all()):
            return 0
        return self.workers.depth

    def expect(self, rows: Array) -> None:
        """Have workers map these rows, which come next but one, or later."""
        assert self.workers is not None
        if self.kept is None:
            self.workers.announce(rows, self._anew)
            return
        new = rows[~self.seen[rows]]
        self.seen[new] = self._coming[new] = True
        for start in range(0, len(new), self.block_size):  # in pieces, which even out between threads
            self.workers.announce(new[start : start + self.block_size], self._keep)

    def dismiss(self) -> None:
        """Go on without workers, when they have finished what was announced."""
        self.is_shared()
        self.workers = None

    def is_shared(self) -> bool:
        """Whether several threads may open blocks at a time; what was announced is finished first."""
        if self.workers is not None:
            for done, _ in self.workers.finished():
                self._coming[done] = False
        return self.reentrant

    def open(self, rows: Array) -> CpuBlock:
        """These rows, as they are kept or computed."""
        if self.kept is None:
            scratch = self._announced(rows)
            if scratch is None:
                scratch = self._anew(rows)
            return CpuBlock(scratch, np.arange(len(rows)))
        if self.workers is not None and self._coming[rows].any():
            for done, _ in self.workers.finished():
                self._coming[done] = False
                if not self._coming[rows].any():
                    break
        new = rows[~self.seen[rows]]
        if len(new):
            self._keep(new)
            self.seen[new] = True
        return CpuBlock(self.kept, rows)

    def _announced(self, rows: Array) -> Array | None:
        """What a worker made of these rows, if they were announced."""
        if self.workers is not None:
            for announced, scratch in self.workers.finished():
                if np.array_equal(announced, rows):
                    return np.asarray(scratch)
        return None

    def _anew(self, rows: Array) -> Array:
        scratch = np.empty((len(rows), self.dimension), dtype=self.dtype)
        self._compute(rows, scratch, np.arange(len(rows)))
        return scratch

    def _keep(self, rows: Array) -> None:
        assert self.kept is not None
        self._compute(rows, self.kept, rows)

    def fetch(self, rows: Array) -> tuple[Array, Array]:
        """The features of these rows."""
        block = self.open(rows)
        return block.matrix, block.positions

    def _compute(self, rows: Array, out: Array, where: Array) -> None:
        """Map these rows, and put them where they belong, by threads where they are many."""
        size = self.block_size
        if len(rows) <= MANY_ROWS and self.dimension >= WIDE and granted() > 1:
            size = min(size, FEW_ROWS)  # which rounds them in the same way

        def map_some(start: int) -> None:
            part = rows[start : start + size]
            features = self.lift(self.basis(self.X[part]))
            out[where[start : start + size]] = features

        starts = range(0, len(rows), size)
        if len(starts) > 1 and self.reentrant:
            side_by_side(map_some, starts)
        else:
            for start in starts:
                map_some(start)


@dataclass(eq=False)
class CpuBlock:
    """Some of ``CpuRows``: row i is matrix[positions[i]]."""

    matrix: Array
    positions: Array

    @cached_property
    def values(self) -> Array:
        """The features, (B, d)."""
        return np.asarray(self.matrix[self.positions])

    def margins(self, coef: Array) -> Array:
        """V coef^T, with sums in the type of the rows."""
        weights = coef.astype(self.matrix.dtype)
        if len(coef) > FEW_MODELS:
            return (weights @ self.values.T).astype(np.float64)
        out = np.empty((len(coef), len(self.positions)))
        scattered_margins(self.matrix, self.positions, weights, out)
        return out

    def exact_margins(self, coef: Array) -> Array:
        """V coef^T in float64."""
        weights = np.asarray(coef, dtype=np.float64)
        if len(coef) > FEW_MODELS:
            return np.asarray(weights @ self.exact_values.T)
        out = np.empty((len(coef), len(self.positions)))
        exact_margins(self.matrix, self.positions, weights, out)
        return out

    def exact_sums(self, beta: Array) -> Array:
        """min(beta, 0) V and max(beta, 0) V in float64."""
        total = np.zeros((2, len(beta), self.matrix.shape[1]))
        if len(beta) <= FEW_MODELS:
            exact_sums(self.matrix, self.positions, beta, total)
            return total
        for sign, part in enumerate((np.minimum(beta, 0.0), np.maximum(beta, 0.0))):
            if np.count_nonzero(part) < FEW_SLOPES * part.size:
                exact_sums(self.matrix, self.positions, part, total)
            else:
                total[sign] = part @ self.exact_values
        return total

    @cached_property
    def exact_values(self) -> Array:
        """``values`` in float64."""
        rows = self.positions
        if rows[-1] - rows[0] == len(rows) - 1 and (np.diff(rows) == 1).all():  # no copy before that
            return np.asarray(self.matrix[rows[0] : rows[-1] + 1], dtype=np.float64)
        return self.values.astype(np.float64)


@dataclass(frozen=True, eq=False)
class Subset:
    """Some of the mapped rows, in memory."""

    V: Array
    in_memory = True

    @property
    def dimension(self) -> int:
        """The number of features, d."""
        return int(self.V.shape[1])

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the rows."""
        return self.V.dtype

    @property
    def mean_square(self) -> float:
        """The mean of |v|^2."""
        return float(np.einsum("ij,ij->", self.V, self.V)) / len(self.V)

    def fetch(self, rows: Array) -> tuple[Array, Array]:
        """All of them, and the positions of these."""
        return self.V, rows

    def margins(self, coef: Array, count: int) -> Array:
        """V coef^T of the first ``count`` rows, (K, count)."""
        return (coef.astype(self.V.dtype) @ self.V[:count].T).astype(np.float64)


@dataclass(frozen=True)
class CpuBackend:
    """How this machine is used.

    Parameters
    ----------
    memory_limit : int, optional
        Bytes that mapped rows may take; by default half of what is available.
    """

    memory_limit: int | None = None
    block_size: int = BLOCK_SIZE

    nystroem = NystroemFeatures
    """The class of Nystroem maps whose landmarks are factored here."""

    def memory(self) -> int:
        """The bytes that mapped rows, or kernel matrices, may take now: a matter of speed alone."""
        free = available_memory()
        return free // 2 if self.memory_limit is None else min(self.memory_limit, free)

    def rows(self, phi: Evaluable, X: Matrix) -> CpuRows:
        """The rows of X: mapped once where they fit in memory, else whenever they are visited."""
        size = X.shape[0] * phi.dimension * np.dtype(X.dtype).itemsize
        return CpuRows(phi, X, self.block_size, keep=size <= self.memory())

    def cut(self) -> Cut:
        """The blocks of steps between two looks at a run."""
        return Cut(LONG_BLOCKS * self.block_size)

    @contextmanager
    def working(self, rows: BlockRows) -> Iterator[None]:
        """Inside, rows are mapped by threads beside the one that steps through them."""
        if not isinstance(rows, CpuRows):
            yield
            return
        with working(granted()) as rows.workers:
            try:
                yield
            finally:
                rows.dismiss()

    def driver(self, visits: Visits, axis: ModelAxis, state: SolverState, average: Average) -> Driver:
        """A driver of these models through rows of this backend."""
        parts = {"axis": axis, "state": state, "average": average, **vars(visits)}
        return Driver(**parts)

    hides_rows_by_model = True
    """Whether models that train together may each see other rows."""

    def map_all(self, rows: BlockRows) -> None:
        """Map the rows that are kept ahead of time, by threads where phi allows it."""
        assert isinstance(rows, CpuRows)
        if rows.kept is None or not rows.reentrant:
            return
        every = np.arange(len(rows.seen))
        parts = np.array_split(every, -(-len(every) // self.block_size))
        side_by_side(lambda number: rows.fetch(parts[number]), range(len(parts)))

    def hold(self, mapped: BlockRows, rows: Array) -> HeldRows:
        """Some of the mapped rows, to be stepped through many times."""
        return Subset(gather(mapped, rows))

    def find_metric(self, phi: FeatureMap, X: Matrix, weight: Array, seed: int) -> Metric:
        """The metric of the data from a random sample of rows."""
        rng = np.random.default_rng([seed, 3])
        count = min(METRIC_SAMPLE, X.shape[0])
        chosen = np.sort(rng.choice(X.shape[0], size=count, replace=False))
        with few_threads(0):  # how a sum over rows is rounded depends on how many threads share it
            V = phi(X[chosen])
            return phi.find_metric(V, weight[chosen], rng)

    def held_out(self, phi: FeatureMap, X: Matrix) -> Callable[[Array], Array]:
        """A function from (K, d) coef to the (rows, K) decisions on these rows, without intercept."""
        V = phi(X)
        return lambda coef: np.asarray(V @ coef.T.astype(V.dtype))
