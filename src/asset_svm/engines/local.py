"""The machine at hand: V cached in memory or recomputed, BLAS for the map, threads for the models.

Matrix products have a multiple of 16 rows (the last is repeated) and columns (``numerics.padding``):
a row is then rounded in the same way whatever rows stand beside it, and a row that was kept equals
one that is computed anew, bit for bit.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from asset_svm.engines.workers import Workers, blas_threads, working
from asset_svm.features import Evaluable, FeatureMap, Metric, NystroemFeatures
from asset_svm.solvers import Driver
from asset_svm.solvers.blocks import BlockRows, Cut
from asset_svm.solvers.pilot import Subset
from asset_svm.solvers.products import mixed_margins, mixed_sums

Array = npt.NDArray[Any]
Matrix = Any

ROWS = 16
FEW_ROWS = 64
"""Fewer are lifted by one thread."""
FEW_MODELS = 4
"""Up to so many, loops over rows are faster than matrix products with copies of them."""
LONG_BLOCKS = 4
"""Blocks that are stepped through at a time where nothing is looked at between them."""
BLOCK_SIZE = 512
"""Rows mapped and stepped through at a time: large enough for a matrix product, small enough for
the block of V to stay in a cache."""
METRIC_SAMPLE = 2048
"""Rows from which the metric is estimated."""
LOOK = 1024
"""Rows at a time, where all of them are looked at once."""


def available_memory() -> int:
    """Bytes that can be taken without swapping, as far as the system tells (else 4 GiB)."""
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return min(int(line.split()[1]) * 1024, _container_memory())
    except OSError:
        pass
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
    except (AttributeError, ValueError, OSError):
        return 4 << 30


def _container_memory() -> int:
    """What a container's limit (cgroup v2) leaves; a number beyond any memory where there is none."""
    folder = Path("/sys/fs/cgroup")
    try:
        limit = int((folder / "memory.max").read_text())
        return max(limit - int((folder / "memory.current").read_text()), 0)
    except (OSError, ValueError):
        return 1 << 62


class LocalRows:
    """phi of the rows of X: basis values when a row is first visited, features when it is learnt from.

    Where they are kept, a row of the buffer holds first the one and then, in its place, the other.
    Where they are not, both are computed anew at every visit, and only what a row has been is kept:
    rows once lifted are lifted at every visit, so that both ways take the same steps. Rows are
    lifted at once, and nobody screens them, where that is cheap.

    Parameters
    ----------
    phi : Evaluable
    X : matrix of shape (m, n)
    block_size : int
        Basis values are computed for so many rows at a time.
    keep : bool
    screen : bool
        Whether basis values are of use.
    """

    look_size = LOOK

    def __init__(self, phi: Evaluable, X: Matrix, block_size: int, *, keep: bool, screen: bool = True):
        self.X, self.block_size = X, block_size
        self.dimension, self.dtype = phi.dimension, np.dtype(X.dtype)
        self.basis_dimension = phi.basis_dimension
        self.basis, self.lift = phi.basis(self.dtype), phi.lift(self.dtype)
        self.lower = phi.lower(self.dtype)
        self.screens = screen and not phi.lift_is_cheap
        self.width = self.dimension if not self.screens else max(self.dimension, self.basis_dimension)
        m = X.shape[0]
        self.seen, self.once_lifted = np.zeros(m, dtype=bool), np.zeros(m, dtype=bool)
        self.kept = np.empty((m, self.width), dtype=self.dtype) if keep else None
        self.reentrant = phi.reentrant
        self.workers: Workers | None = None
        self._coming = np.zeros(m, dtype=bool)

    @property
    def kept_bytes(self) -> int:
        """Of memory that mapped rows take."""
        return 0 if self.kept is None else self.kept.nbytes

    @property
    def looks_ahead(self) -> int:
        """How many blocks should be announced."""
        if self.workers is None or not self.reentrant or (self.kept is not None and self.seen.all()):
            return 0
        return self.workers.depth

    def expect(self, rows: Array) -> None:
        """These rows come next but one, or later: workers map them meanwhile."""
        assert self.workers is not None
        if self.kept is None:
            self.workers.announce(rows, self._anew)
            return
        new = rows[~self.seen[rows]]
        if len(new):
            self.seen[new] = self._coming[new] = True
            self.workers.announce(new, self._keep)

    def dismiss(self) -> None:
        """Go on without workers, when they have finished what was announced."""
        workers, self.workers = self.workers, None
        if workers is not None:
            for done, _ in workers.finished():
                self._coming[done] = False

    def open(self, rows: Array) -> LocalBlock:
        """These rows, with their basis values or features."""
        if self.kept is None:
            scratch = self._announced(rows)
            if scratch is None:
                scratch = self._anew(rows)
            lifted = np.full(len(rows), not self.screens)
            return LocalBlock(self, rows, scratch, np.arange(len(rows)), lifted)
        if self.workers is not None and self._coming[rows].any():
            for done, _ in self.workers.finished():
                self._coming[done] = False
                if not self._coming[rows].any():
                    break
        new = rows[~self.seen[rows]]
        if len(new):
            self._keep(new)
            self.seen[new] = True
        return LocalBlock(self, rows, self.kept, rows, self.once_lifted[rows])

    def _announced(self, rows: Array) -> Array | None:
        """What a worker made of these rows, if they were announced."""
        if self.workers is not None:
            for announced, scratch in self.workers.finished():
                if np.array_equal(announced, rows):
                    return np.asarray(scratch)
        return None

    def _anew(self, rows: Array) -> Array:
        scratch = np.empty((len(rows), self.width), dtype=self.dtype)
        self._compute(rows, scratch, np.arange(len(rows)))
        return scratch

    def _keep(self, rows: Array) -> None:
        assert self.kept is not None
        self._compute(rows, self.kept, rows)

    def fetch(self, rows: Array) -> tuple[Array, Array]:
        """The features of these rows."""
        return self.open(rows).lifted(np.arange(len(rows)))

    def _compute(self, rows: Array, out: Array, where: Array) -> None:
        """Put the basis values of these rows there, or their features."""
        size = self.block_size
        for start in range(0, len(rows), size):
            part = rows[start : start + size]
            values = self.basis(self.X[_even(part)])
            if not self.screens:
                values = self.lift(values)
            out[where[start : start + size], : values.shape[1]] = values[: len(part)]
        if not self.screens:
            self.once_lifted[rows] = True


@dataclass(eq=False)
class LocalBlock:
    """Some of ``LocalRows``: row i is matrix[positions[i]], features where is_lifted[i]."""

    source: LocalRows
    rows: Array
    matrix: Array
    positions: Array
    is_lifted: Array

    def margins(self, coef: Array) -> Array:
        """V coef^T."""
        return self._margins(coef, np.arange(len(self.rows)))

    def _margins(self, coef: Array, which: Array) -> Array:
        source, positions, lifted = self.source, self.positions[which], self.is_lifted[which]
        coef = coef.astype(source.dtype)
        weights = coef if lifted.all() else np.ascontiguousarray(source.lower(coef))
        out = np.empty((len(coef), len(which)))
        if len(coef) <= FEW_MODELS:
            mixed_margins(self.matrix, positions, lifted, coef, weights, out)
            return out
        for part, factor in ((lifted, coef), (~lifted, weights)):
            if part.any():
                out[:, part] = factor @ self.matrix[positions[part], : factor.shape[1]].T
        return out

    def screen(self, coef: Array) -> Array:
        """V coef^T of the rows that were never lifted, in any visit; NaN for others."""
        out = np.full((len(coef), len(self.rows)), np.nan)
        fresh = np.flatnonzero(~self.source.once_lifted[self.rows])
        if len(fresh):
            out[:, fresh] = self._margins(coef, fresh)
        return out

    def sums(self, beta: Array) -> Array:
        """Beta V."""
        source = self.source
        features = np.zeros((len(beta), source.dimension), dtype=source.dtype)
        basis = np.zeros((len(beta), source.basis_dimension), dtype=source.dtype)
        if len(beta) <= FEW_MODELS:
            mixed_sums(self.matrix, self.positions, self.is_lifted, beta, features, basis)
        else:
            for part, out in ((self.is_lifted, features), (~self.is_lifted, basis)):
                rows = self.matrix[self.positions[part], : out.shape[1]]
                out += beta[:, part].astype(source.dtype) @ rows
        total = features.astype(np.float64)
        return total if self.is_lifted.all() else total + source.lift(basis)

    def lifted(self, which: Array) -> tuple[Array, Array]:
        """The features of these rows of the block."""
        source = self.source
        todo = which[~self.is_lifted[which]]
        if len(todo):
            if source.workers is None or len(todo) < FEW_ROWS:
                self._lift(todo)
            else:  # a row that is there twice must not be lifted in two parts
                once = np.unique(self.positions[todo], return_index=True)[1]
                source.workers.together(self._lift, todo[once], ROWS)
            self.is_lifted[todo] = True
            source.once_lifted[self.rows[todo]] = True
        return self.matrix, self.positions[which]

    def _lift(self, which: Array) -> None:
        source = self.source
        values = self.matrix[self.positions[_even(which)], : source.basis_dimension]
        features = source.lift(values)[: len(which)]
        self.matrix[self.positions[which], : source.dimension] = features


def _even(rows: Array) -> Array:
    """The rows, the last repeated up to a multiple of 16."""
    return np.concatenate([rows, np.full(-len(rows) % ROWS, rows[-1])])


@dataclass(frozen=True)
class LocalEngine:
    """How this machine is used.

    Parameters
    ----------
    n_threads : int
        Threads that models are spread over; rows are mapped by as many, or by as many as BLAS may
        take, whichever is more.
    memory_limit : int, optional
        Bytes that mapped rows may take; by default half of what is available.
    block_size : int
    """

    n_threads: int = 1
    memory_limit: int | None = None
    block_size: int = BLOCK_SIZE

    nystroem = NystroemFeatures
    """The class of Nystroem maps whose landmarks are factored here."""

    def memory(self) -> int:
        """Bytes that mapped rows, or kernel matrices, may take."""
        return available_memory() // 2 if self.memory_limit is None else self.memory_limit

    def rows(self, phi: Evaluable, X: Matrix, *, screen: bool) -> LocalRows:
        """The rows of X: mapped once where they fit in memory, else whenever they are visited."""
        width = phi.dimension
        if screen and not phi.lift_is_cheap:
            width = max(width, phi.basis_dimension)
        size = X.shape[0] * width * np.dtype(X.dtype).itemsize
        return LocalRows(phi, X, self.block_size, keep=size <= self.memory(), screen=screen)

    def cut(self, n_rows: int, *, screen: bool) -> Cut:
        """Steps between two looks at the run; where rows are screened, at the drift of a block.

        In the first epoch many rows are learnt from for the first time, and a short block tells
        better which; later few are, and a long one spares most of the screening.
        """
        size, long = self.block_size, LONG_BLOCKS * self.block_size
        return Cut(size, n_rows, long) if screen else Cut(long)

    @contextmanager
    def working(self, rows: BlockRows) -> Iterator[None]:
        """Inside, rows are mapped by threads beside the one that steps through them."""
        if not isinstance(rows, LocalRows):
            yield
            return
        with working(max(self.n_threads, blas_threads())) as rows.workers:
            try:
                yield
            finally:
                rows.dismiss()

    @contextmanager
    def pool(self, n_models: int) -> Iterator[ThreadPoolExecutor | None]:
        """Threads for the models of a block, where there is more than one of each."""
        threads = min(self.n_threads, n_models)
        if threads <= 1:
            yield None
            return
        with ThreadPoolExecutor(threads) as pool:
            yield pool

    def driver(self, *args: Any, **options: Any) -> Driver:
        """A driver for rows of this engine."""
        return Driver(*args, **options)

    hides_rows_by_model = True
    """Whether models that train together may each see other rows."""

    @property
    def crew(self) -> int:
        """Threads for the models of a search."""
        return max(self.n_threads, blas_threads())

    def map_all(self, rows: BlockRows, pool: ThreadPoolExecutor | None) -> None:
        """Map the rows that are kept ahead of time, by threads where phi allows it."""
        assert isinstance(rows, LocalRows)
        if pool is None or rows.kept is None or not rows.reentrant:
            return
        every = np.arange(len(rows.seen))
        list(pool.map(rows.fetch, np.array_split(every, -(-len(every) // self.block_size))))

    def hold(self, mapped: Any, rows: Array) -> Subset:
        """Some of the mapped rows, mapped once."""
        return Subset.of(mapped, rows, self.block_size)

    def find_metric(self, phi: FeatureMap, X: Matrix, weight: Array, seed: int) -> Metric:
        """The metric of the data from a random sample of rows."""
        rng = np.random.default_rng([seed, 3])
        count = min(METRIC_SAMPLE, X.shape[0])
        chosen = np.sort(rng.choice(X.shape[0], size=count, replace=False))
        return phi.find_metric(phi(X[chosen]), weight[chosen], rng)

    def held_out(self, phi: FeatureMap, X: Matrix) -> Callable[[Array], Array]:
        """A function from (K, d) coef to the (rows, K) decisions on these rows, without intercept."""
        V = phi(X)
        return lambda coef: np.asarray(V @ coef.T.astype(V.dtype))
