"""The cells of a partition as a few arrays, for compiled loops that take whole batches of rows.

    descend           the cell of every row
    minus_distances   -gamma |x - z|^2 of each row and each landmark of its cell, one after the other
    profile           the kernel's own function of them, in one call for all
    add_sums          sums over landmarks, in float64

The bits of what they give depend on the rows alone, not on how many threads there are. No interpreter
lock is held but for the calls themselves, of which there are three for some hundred thousand values.
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
from asset_svm.features.cells import Partition
from asset_svm.features.descent import CONTRACT, FlatTree, set_products
from asset_svm.kernels.distances import SquaredDistanceFormula, SquaredDistanceValues
from asset_svm.numerics.compiling import njit
from asset_svm.numerics.elementwise import FAST

LOT = 1 << 18
"""Kernel values that a thread computes at a time: as many as a cache holds."""
BLOCK = 256
"""Rows of a cell that are multiplied with its landmarks at a time, at most."""
MANY = 8
"""Rows of a cell that BLAS multiplies sooner than a loop, from here on."""


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


@dataclass(frozen=True, eq=False)
class FlatCells:
    """One partition, and the decision functions of its cells."""

    formula: SquaredDistanceFormula
    factor: float
    tree: FlatTree
    landmarks: FlatLandmarks

    def cells(self, X: Array) -> Array:
        """The cell of every row."""
        return self.tree.cells(X)

    def lots(self, cells: Array) -> list[tuple[Array, Array]]:
        """Rows cell by cell, in lots of about ``LOT`` kernel values, and where those of each begin."""
        order = np.argsort(cells, kind="stable")
        ends = np.cumsum(self.landmarks.width[cells[order]])
        cuts = np.searchsorted(ends, np.arange(LOT, int(ends[-1]), LOT), side="right")
        found = []
        for rows, upto in zip(np.split(order, cuts), np.split(ends, cuts), strict=True):
            if len(rows):
                begin = upto[0] - self.landmarks.width[cells[rows[0]]]
                found.append((rows, np.concatenate([[0], upto - begin])))
        return found

    def add(
        self, X: Array, cells: Array, rows: Array, starts: Array, out: Array, *, by_blas: bool
    ) -> None:
        """Add the decisions of these rows to ``out``; ``by_blas`` where it has one thread."""
        L = self.landmarks
        values = np.empty(starts[-1], dtype=L.matrix.dtype)
        many = MANY if by_blas else len(rows) + 1
        minus_distances(
            X, rows, cells, starts, L.matrix, L.norms, L.shift, self.factor, L.first, L.width, many,
            values,
        )  # fmt: skip
        with np.errstate(under="ignore"):
            values = np.asarray(self.formula.profile(values))
        add_sums(values, rows, cells, starts, L.weights, L.intercept, L.first, L.count, out)


def flatten(
    partition: Partition, decisions: Sequence[Any], n: int, n_models: int, dtype: np.dtype[Any]
) -> FlatCells | None:
    """These cells as arrays, for dense rows of this type; None where one of them is of another kind.

    All exact cells have the same kernel. Landmarks with many zeros are left to products that skip them.
    """
    prepared: list[SquaredDistanceValues | None] = []
    for decision in decisions:
        basis = decision.source.basis(dtype) if isinstance(decision, Decision) else None
        is_flat = isinstance(decision, Constant) or (
            isinstance(basis, SquaredDistanceValues)
            and basis.dtype == dtype
            and not sp.issparse(basis.transposed.matrix)
            and not basis.transposed.skips
        )
        if not is_flat:
            return None
        prepared.append(basis)
    known = [basis for basis in prepared if basis is not None]
    if not known:
        return None
    width = np.array([0 if b is None else b.transposed.matrix.shape[1] for b in prepared])
    count = np.array([0 if b is None else len(b.norms) for b in prepared])
    first = np.concatenate([[0], np.cumsum(width)[:-1]])
    matrix, norms = np.zeros(n * int(width.sum()), dtype), np.zeros(int(width.sum()), dtype)
    shift, weights = np.zeros((len(prepared), n)), np.zeros((n_models, int(width.sum())))
    intercept = np.zeros((len(prepared), n_models))
    for cell, (basis, decision) in enumerate(zip(prepared, decisions, strict=True)):
        if basis is None:
            intercept[cell] = decision.values
            continue
        begin, w, s = first[cell], width[cell], count[cell]
        there = matrix[n * begin : n * (begin + w)].reshape(n, w)
        columns = basis.transposed.columns
        there[slice(None) if columns is None else columns] = basis.transposed.matrix
        norms[begin : begin + s], shift[cell] = basis.norms, basis.shift
        weights[:, begin : begin + s], intercept[cell] = decision.weights, decision.intercept
    landmarks = FlatLandmarks(matrix, norms, shift, first, width, count, weights, intercept)
    tree = FlatTree.of(partition.root, n, dtype)
    return FlatCells(known[0].formula, known[0].factor, tree, landmarks)


@njit(cache=True, nogil=True, fastmath=CONTRACT)
def minus_distances(
    X: Array,
    rows: Array,
    cells: Array,
    starts: Array,
    matrix: Array,
    norms: Array,
    shift: Array,
    factor: float,
    first: Array,
    width: Array,
    many: int,
    out: Array,
) -> None:
    """min(2 x'.z' - |x'|^2 - |z'|^2, 0) of rows and the landmarks of their cells, from starts[i] on.

    Rows come cell by cell. ``many`` of one cell, or more, are multiplied by BLAS.
    """  # fmt: skip
    n, zero = X.shape[1], matrix.dtype.type(0)
    moved, left = np.empty((BLOCK, n), matrix.dtype), np.empty(BLOCK, matrix.dtype)
    begin = 0
    while begin < len(rows):
        cell, end = cells[rows[begin]], begin
        at, w = first[cell], width[cell]
        while end < len(rows) and end < begin + BLOCK and cells[rows[end]] == cell:
            x, norm = moved[end - begin], 0.0
            for q in range(n):
                x[q] = (X[rows[end], q] - shift[cell, q]) * factor
                norm += np.float64(x[q]) * np.float64(x[q])
            left[end - begin] = norm
            end += 1
        own, right = matrix[n * at : n * (at + w)], norms[at : at + w]
        values = out[starts[begin] : starts[end]].reshape(end - begin, w)
        if end - begin >= many:
            np.dot(moved[: end - begin], own.reshape(n, w), values)
        for i in range(end - begin):
            row = values[i]
            if end - begin < many:
                set_products(moved[i], own, row)
            for j in range(w):
                t = row[j] + row[j] - left[i] - right[j]
                row[j] = zero if t > zero else t  # not-a-number stays
        begin = end


@njit(cache=True, nogil=True, fastmath=FAST)
def add_sums(
    values: Array,
    rows: Array,
    cells: Array,
    starts: Array,
    weights: Array,
    intercept: Array,
    first: Array,
    count: Array,
    out: Array,
) -> None:
    """out[row] += sum_j values_j weights_j + intercept, for the values of each row."""
    for i in range(len(rows)):
        cell, start = cells[rows[i]], starts[i]
        at = first[cell]
        own = values[start : start + count[cell]]
        for k in range(out.shape[1]):
            total, by = 0.0, weights[k, at : at + count[cell]]
            for j in range(own.shape[0]):
                total += np.float64(own[j]) * by[j]
            out[rows[i], k] += total + intercept[cell, k]
