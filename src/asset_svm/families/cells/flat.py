"""The cells of a partition as a few arrays, for compiled threads that take whole batches of rows.

    descend      the cell of every row                                     pieces of rows
    _decide      kernel values of rows with the landmarks of their cell,
                 and their sums with the weights, in float64               rows of one cell

Few rows are decided one after the other by the caller itself, in one call. The bits of what is found
depend on the rows alone, not on how many threads there are. Nobody holds the interpreter lock but for
those calls, of which there are two a partition.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from asset_svm.arrays import Array
from asset_svm.families.cells.constant import Constant
from asset_svm.families.decision import Decision
from asset_svm.features.cells import Partition, group
from asset_svm.features.descent import CONTRACT, FlatTree, descend, set_products
from asset_svm.kernels import Kernel
from asset_svm.kernels.distances import FEW_COLUMNS, find_shift
from asset_svm.kernels.landmarks import FEWEST_LANDMARKS
from asset_svm.kernels.loops import finish, loop_code
from asset_svm.numerics.compiling import lent, njit
from asset_svm.numerics.elementwise import FAST
from asset_svm.numerics.padding import padded_width
from asset_svm.numerics.products import FEW_NONZEROS
from asset_svm.numerics.row_products import set_product
from asset_svm.threads.counter import take
from asset_svm.threads.team import side_by_side, together

VALUES = 1 << 17
"""Kernel values that a thread computes at a time: as many as a cache holds."""
BLOCK = 256
"""Rows of a cell that are multiplied with its landmarks at a time, at most."""
MANY = 8
"""Rows of a cell that tiles of the product multiply sooner than a loop, from here on."""
PREPARED = 16
"""Cells whose landmarks a thread prepares at a time."""


@dataclass(frozen=True, eq=False)
class FlatLandmarks:
    """The landmarks of all cells, as ``SquaredDistanceValues`` has those of one.

    Parameters
    ----------
    matrix : array of shape (sum n width)
        Those of each cell, moved by its shift, scaled and transposed.
    norms : array of shape (sum width,)
    shift : array of shape (cells, n)
    first, width, count : arrays of shape (cells,)
        Where a cell begins in ``norms``; its columns, and how many of them are landmarks.
    weights : array of shape (K, sum width)
    intercept : array of shape (cells, K)
    """

    matrix: Array
    norms: Array
    shift: Array
    first: Array
    width: Array
    count: Array
    weights: Array
    intercept: Array

    @property
    def arrays(self) -> tuple[Array, ...]:
        """All of them, for compiled code."""
        return (
            self.matrix, self.norms, self.shift, self.first, self.width, self.count, self.weights,
            self.intercept,
        )  # fmt: skip


@dataclass(frozen=True, eq=False)
class FlatCells:
    """One partition, and the decision functions of its cells."""

    code: int
    factor: float
    tree: FlatTree
    landmarks: FlatLandmarks

    def add_few(self, X: Array, out: Array) -> None:
        """Add the decisions of few rows to ``out``, in one call."""
        tree, L = self.tree.centres, self.landmarks
        _decide_few(
            X, tree.matrix, tree.half, tree.first, tree.width, self.tree.children,
            self.code, self.factor, *L.arrays, out,
        )  # fmt: skip

    def add(self, X: Array, out: Array, threads: int) -> None:
        """Add the decisions of rows to ``out``, by so many threads."""
        cells = self.tree.cells(X, threads)
        rows, ends = group(np.arange(len(X)), cells, len(self.landmarks.width))
        starts, stops, of = self._pieces(ends)

        def run(counter: Array) -> None:
            _decide(
                counter, X, rows, starts, stops, of, self.code, self.factor, *self.landmarks.arrays, out
            )

        together(run, min(threads, len(of)))

    def _pieces(self, ends: Array) -> tuple[Array, Array, Array]:
        """Rows that are decided at a time: where they begin and end, and their cell."""
        size = np.clip(VALUES // np.maximum(self.landmarks.width, 1), MANY, BLOCK)
        count = -(-np.diff(ends) // size)
        of = np.repeat(np.arange(len(count)), count)
        place = np.arange(len(of)) - np.repeat(np.cumsum(count) - count, count)
        starts = ends[of] + place * size[of]
        return starts, np.minimum(starts + size[of], ends[of + 1]), of


def flatten(
    partition: Partition,
    decisions: Sequence[Any],
    n: int,
    n_models: int,
    dtype: np.dtype[Any],
    threads: int,
) -> FlatCells | None:
    """These cells as arrays, for dense rows of this type; None where one of them is of another kind.

    All exact cells have the same kernel. Landmarks with many zeros are left to products that skip them.
    """
    kernel = next((d.source.kernel for d in decisions if isinstance(d, Decision)), None)
    code = None if kernel is None else loop_code(kernel.formula)
    if code is None or not all(_is_flat(decision, dtype) for decision in decisions):
        return None
    assert isinstance(kernel, Kernel)
    rate = -kernel.formula.factor
    exact = [isinstance(decision, Decision) for decision in decisions]
    pairs = list(zip(exact, decisions, strict=True))
    count = np.array([d.source.components.shape[0] if is_exact else 0 for is_exact, d in pairs])
    width = np.array([padded_width(s) for s in count])
    first, total = np.cumsum(width) - width, int(width.sum())
    intercept = np.array([d.intercept if is_exact else d.values for is_exact, d in pairs])
    landmarks = FlatLandmarks(
        np.zeros(n * total, dtype), np.zeros(total, dtype), np.zeros((len(pairs), n)), first, width,
        count, np.zeros((n_models, total)), intercept.astype(np.float64).reshape(len(pairs), n_models),
    )  # fmt: skip

    def fill(start: int) -> bool:
        """Prepare some cells; whether none of them is left to others."""
        for cell in range(start, min(start + PREPARED, len(pairs))):
            begin, w, s = first[cell], width[cell], count[cell]
            if s:
                Z = lent(decisions[cell].source.components)
                there = landmarks.matrix[n * begin : n * (begin + w)]
                norms = landmarks.norms[begin : begin + w]
                nonzeros, columns = _fill(Z, rate, there, norms, landmarks.shift[cell])
                if _skips(nonzeros, columns, s, n):
                    return False
                landmarks.weights[:, begin : begin + s] = decisions[cell].weights
        return True

    if not all(side_by_side(fill, range(0, len(pairs), PREPARED), threads)):
        return None
    tree = FlatTree.of(partition.root, n, dtype)
    return FlatCells(code, float(np.sqrt(rate)), tree, landmarks)


def _is_flat(decision: Any, dtype: np.dtype[Any]) -> bool:
    """Whether a cell is a constant, or dense landmarks whose kernel values are of this type."""
    if isinstance(decision, Constant):
        return True
    if not isinstance(decision, Decision) or sp.issparse(decision.source.components):
        return False
    return not decision.source.wide or dtype == np.float64


def _skips(nonzeros: int, columns: int, s: int, n: int) -> bool:
    """Whether products with these landmarks would skip zeros (``landmarks.Transposed``)."""
    columns = n if columns > FEW_COLUMNS * n else columns
    return s >= FEWEST_LANDMARKS and nonzeros <= FEW_NONZEROS * s * columns


@njit(cache=True, nogil=True)
def _fill(Z: Array, rate: float, matrix: Array, norms: Array, shift: Array) -> tuple[int, int]:
    """Landmarks moved, scaled and transposed, and their norms; the nonzeros, and columns with some."""
    (s, n), width, factor = Z.shape, len(norms), np.sqrt(rate)
    find_shift(Z, rate, shift)
    filled = np.zeros(n, np.int64)
    for i in range(s):
        square = 0.0
        for q in range(n):
            z = matrix.dtype.type((Z[i, q] - shift[q]) * factor)
            matrix[q * width + i] = z
            square += np.float64(z) * np.float64(z)
            filled[q] += z != 0
        norms[i] = square
    return int(filled.sum()), int(np.count_nonzero(filled))


@njit(cache=True, nogil=True, fastmath=CONTRACT)
def _set_moved(x: Array, shift: Array, factor: float, moved: Array) -> float:
    """moved = (x - shift) factor; its squared norm."""
    square = 0.0
    for q in range(len(x)):
        moved[q] = (x[q] - shift[q]) * factor
        square += np.float64(moved[q]) * np.float64(moved[q])
    return square


@njit(cache=True, nogil=True, fastmath=FAST)
def _add_sums(values: Array, weights: Array, at: int, intercept: Array, out: Array) -> None:
    """out += sum_j values_j weights_j + intercept, of one row; its weights begin at ``at``."""
    for k in range(len(out)):
        total, by = 0.0, weights[k, at : at + len(values)]
        for j in range(len(values)):
            total += np.float64(values[j]) * by[j]
        out[k] += total + intercept[k]


@njit(cache=True, nogil=True)
def _decide(
    counter: Array,
    X: Array,
    rows: Array,
    starts: Array,
    stops: Array,
    of: Array,
    code: int,
    factor: float,
    matrix: Array,
    norms: Array,
    shift: Array,
    first: Array,
    width: Array,
    count: Array,
    weights: Array,
    intercept: Array,
    out: Array,
) -> None:
    """Add the decisions of pieces, whose numbers are taken from the counter: rows of one cell each."""
    n, widest = X.shape[1], max(VALUES, MANY * width.max())
    moved, left = np.empty((BLOCK, n), matrix.dtype), np.empty(BLOCK, matrix.dtype)
    room = np.empty(widest, matrix.dtype)
    while True:
        number = take(counter)
        if number >= len(of):
            return
        cell, start = of[number], starts[number]
        m, at, w = stops[number] - start, first[cell], width[cell]
        for i in range(m):
            left[i] = _set_moved(X[rows[start + i]], shift[cell], factor, moved[i])
        values, own = room[: m * w].reshape(m, w), matrix[n * at : n * (at + w)]
        if m >= MANY and w > 0:
            set_product(moved[:m], own.reshape(n, w), values)
        else:
            for i in range(m):
                set_products(moved[i], own, values[i])
        finish(code, values, left[:m], norms[at : at + w])
        s = count[cell]
        for i in range(m):
            _add_sums(values[i, :s], weights, at, intercept[cell], out[rows[start + i]])


@njit(cache=True, nogil=True)
def _decide_few(
    X: Array,
    centres: Array,
    half: Array,
    first_centre: Array,
    centre_width: Array,
    children: Array,
    code: int,
    factor: float,
    matrix: Array,
    norms: Array,
    shift: Array,
    first: Array,
    width: Array,
    count: Array,
    weights: Array,
    intercept: Array,
    out: Array,
) -> None:
    """Add the decisions of rows, one after the other, without BLAS, whose threads are not ours here."""
    n, cells = X.shape[1], np.zeros(len(X), np.intp)
    if len(centre_width):
        counter = np.zeros(1, np.int64)
        descend(counter, X, centres, half, first_centre, centre_width, children, cells)
    room, moved = np.empty(width.max(), matrix.dtype), np.empty(n, matrix.dtype)
    left = np.empty(1, matrix.dtype)
    for i in range(len(X)):
        cell = cells[i]
        at, w, s = first[cell], width[cell], count[cell]
        left[0] = _set_moved(X[i], shift[cell], factor, moved)
        set_products(moved, matrix[n * at : n * (at + w)], room[:w])
        finish(code, room[:w].reshape(1, w), left, norms[at : at + w])
        _add_sums(room[:s], weights, at, intercept[cell], out[i])
