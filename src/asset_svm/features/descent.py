"""Rows and their nearest centres, by compiled threads: the growth of a tree, and the way down it.

The centres of a node lie transposed, in a multiple of 16 columns. A tree is grown by products of them
with pieces of the rows of a node. A row that goes down it alone is multiplied by a loop, which adds in
the same order: it comes to the cell it was in, unless it is as near to another.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from asset_svm.arrays import Array
from asset_svm.features.clusters import FEW_CHANGES, LARGE, MOST_PASSES
from asset_svm.kernels import squared_norms
from asset_svm.numerics.compiling import njit
from asset_svm.numerics.padding import padded_width
from asset_svm.numerics.row_products import set_product
from asset_svm.threads.counter import take
from asset_svm.threads.granted import granted
from asset_svm.threads.team import together

PIECE = 256
"""Rows that a thread takes at a time."""
CONTRACT = {"contract"}
"""A product and a sum may be one instruction; sums keep their order."""


@dataclass(frozen=True, eq=False)
class FlatCentres:
    """The centres of several nodes.

    Parameters
    ----------
    matrix : array of shape (sum n width)
        Those of each node, transposed, with ``width[node]`` columns.
    half : array of shape (sum width,)
        |c|^2 / 2 of all centres, infinite where a node is padded.
    first : array of shape (nodes,)
        Where the centres of a node begin in ``half``.
    width : array of shape (nodes,)
    """

    matrix: Array
    half: Array
    first: Array
    width: Array

    @classmethod
    def of(cls, nodes: Sequence[Array], n: int, dtype: np.dtype[Any]) -> FlatCentres:
        """The (count, n) centres of each node, for rows of this type."""
        if any(_are_large(centres) for centres in nodes):
            dtype = np.dtype(np.float64)  # squares would overflow
        width = np.array([padded_width(len(centres)) for centres in nodes], dtype=np.intp)
        first = np.cumsum(width) - width
        total = int(width.sum())
        matrix, half = np.zeros(n * total, dtype=dtype), np.full(total, np.inf, dtype=dtype)
        for centres, at, w in zip(nodes, first, width, strict=True):
            count = len(centres)
            centres = centres.astype(dtype, copy=False)
            matrix[n * at : n * (at + w)].reshape(n, w)[:, :count] = centres.T
            half[at : at + count] = 0.5 * squared_norms(centres)
        return cls(matrix, half, first, width)


@dataclass(frozen=True, eq=False)
class FlatTree:
    """The nodes of a tree, the root first.

    Parameters
    ----------
    centres : FlatCentres
    children : array
        Below each centre a node, or -1 less a cell.
    """

    centres: FlatCentres
    children: Array

    @classmethod
    def of(cls, root: Any, n: int, dtype: np.dtype[Any]) -> FlatTree:
        """The nodes in the order in which they are found from the root on."""
        nodes: list[Any] = []

        def number(below: Any) -> int:
            if not hasattr(below, "children"):
                return -1 - int(below)
            nodes.append(below)
            return len(nodes) - 1

        number(root)
        parts = [np.empty(0, dtype=np.intp)]
        for node in nodes:  # grows on the way
            below = [number(child) for child in node.children]
            parts.append(np.full(padded_width(len(below)), -1, dtype=np.intp))
            parts[-1][: len(below)] = below
        return cls(FlatCentres.of([node.centres for node in nodes], n, dtype), np.concatenate(parts))

    def cells(self, X: Array, threads: int | None = None) -> Array:
        """The cell of every row, found by so many threads, or, without a number, by the caller."""
        out = np.zeros(len(X), dtype=np.intp)
        tree, below = self.centres, self.children

        def run(counter: Array) -> None:
            descend(counter, X, tree.matrix, tree.half, tree.first, tree.width, below, out)

        if len(tree.width) == 0 or len(X) == 0:
            return out
        if threads is None:
            run(np.zeros(1, dtype=np.int64))
        else:
            together(run, min(threads, -(-len(X) // PIECE)))
        return out


def kmeans(X: Array, samples: Sequence[Array], starts: Sequence[Array]) -> list[Array]:
    """Centres of several sets of rows of X, by Lloyd's algorithm (``clusters``).

    Parameters
    ----------
    samples : sequence of arrays
        The rows of each set.
    starts : sequence of arrays
        Which of them the centres of the set begin with.
    """
    if not samples:
        return []
    counts, sizes = [len(start) for start in starts], [len(rows) for rows in samples]
    first_row, first = np.concatenate([[0], np.cumsum(sizes)]), np.concatenate([[0], np.cumsum(counts)])
    rows = np.concatenate(samples)
    chosen = np.concatenate([some[start] for some, start in zip(samples, starts, strict=True)])
    for dtype in (X.dtype, np.dtype(np.float64)):
        centres = X[chosen].astype(dtype)

        def run(counter: Array, centres: Array = centres) -> None:
            _lloyd(counter, X, rows, first_row, first, centres)

        together(run, min(granted(), len(samples)))
        if not _are_large(centres):
            break  # else squares may have overflowed
    return [centres[a:b].astype(X.dtype) for a, b in pairwise(first)]


def nearest(X: Array, parts: Sequence[Array], centres: Sequence[Array]) -> list[Array]:
    """The nearest of its centres for every row of each of several sets of rows of X."""
    if not parts:
        return []
    flat = FlatCentres.of(centres, X.shape[1], X.dtype)
    rows = np.concatenate(parts)
    ends = np.cumsum([len(part) for part in parts])
    pieces = np.concatenate(
        [np.arange(end - len(part), end, PIECE) for part, end in zip(parts, ends, strict=True)]
    )
    of = np.searchsorted(ends, pieces, side="right")
    last = np.minimum(pieces + PIECE, ends[of])
    labels = np.empty(len(rows), dtype=np.intp)

    def run(counter: Array) -> None:
        _label(
            counter, X, rows, pieces, last, of, flat.matrix, flat.half, flat.first, flat.width, labels
        )

    together(run, min(granted(), len(pieces)))
    return np.split(labels, ends[:-1])


def _are_large(centres: Array) -> bool:
    """Whether squares of centres would overflow; not a number is large."""
    return bool(centres.size) and not float(np.abs(centres).max()) <= LARGE


@njit(cache=True, nogil=True, fastmath=CONTRACT)
def set_products(x: Array, matrix: Array, out: Array) -> None:
    """out = x^T matrix, for the rows of a matrix one after the other in one array; q after q."""
    n, width = x.shape[0], out.shape[0]
    for j in range(width):
        out[j] = 0
    last = n - n % 4
    for q in range(0, last, 4):
        a, b, c, d = x[q], x[q + 1], x[q + 2], x[q + 3]
        four = matrix[q * width : (q + 4) * width]
        za, zb = four[:width], four[width : 2 * width]
        zc, zd = four[2 * width : 3 * width], four[3 * width :]
        for j in range(width):
            out[j] = out[j] + a * za[j] + b * zb[j] + c * zc[j] + d * zd[j]
    for q in range(last, n):
        a, za = x[q], matrix[q * width : (q + 1) * width]
        for j in range(width):
            out[j] = out[j] + a * za[j]


@njit(cache=True, nogil=True, fastmath={"nsz", "reassoc"})
def _first_largest(near: Array, half: Array) -> int:
    """The place of the largest near - half, the first of equals; 0 where none is a number.

    It is never one of the padding, whose half is infinite.
    """
    width, top = near.shape[0], near.dtype.type(-np.inf)
    for j in range(width):
        near[j] = near[j] - half[j]
        top = max(top, near[j])
    best = width
    for j in range(width):
        best = min(best, j if near[j] == top else width)
    return best if best < width and half[best] < np.inf else 0


@njit(cache=True, nogil=True)
def _closest(x: Array, matrix: Array, half: Array, near: Array) -> int:
    """The nearest centre of one row, the first of equally near ones."""
    set_products(x, matrix, near)
    return _first_largest(near, half)


@njit(cache=True, nogil=True)
def _set_closest(rows: Array, matrix: Array, half: Array, room: Array, labels: Array) -> None:
    """The nearest centre of up to ``PIECE`` rows."""
    (m, n), width = rows.shape, len(half)
    near = room[: m * width].reshape(m, width)
    set_product(rows, matrix.reshape(n, width), near)
    for i in range(m):
        labels[i] = _first_largest(near[i], half)


@njit(cache=True, nogil=True)
def _lloyd(
    counter: Array, X: Array, rows: Array, first_row: Array, first: Array, centres: Array
) -> None:
    """``clusters.cluster_centres`` of sets of rows, whose numbers are taken from the counter."""
    n, most = X.shape[1], np.max(np.diff(first_row))
    own_rows, labels = np.empty((most, n), centres.dtype), np.empty(most, np.intp)
    found = np.empty(PIECE, np.intp)
    while True:
        node = take(counter)
        if node + 1 >= len(first):
            return
        m, own = first_row[node + 1] - first_row[node], centres[first[node] : first[node + 1]]
        for i in range(m):
            for q in range(n):
                own_rows[i, q] = X[rows[first_row[node] + i], q]
            labels[i] = -1
        count = len(own)
        width = -(-count // 16) * 16
        matrix, half = np.zeros(n * width, centres.dtype), np.full(width, np.inf, centres.dtype)
        room, by = np.empty(PIECE * width, centres.dtype), matrix.reshape(n, width)
        for _ in range(MOST_PASSES):
            for j in range(count):
                square = 0.0
                for q in range(n):
                    by[q, j] = own[j, q]
                    square += np.float64(own[j, q]) * np.float64(own[j, q])
                half[j] = 0.5 * square
            changes, sums, sizes = 0, np.zeros((count, n)), np.zeros(count)
            for start in range(0, m, PIECE):
                piece = own_rows[start : min(start + PIECE, m)]
                _set_closest(piece, matrix, half, room, found)
                for i in range(len(piece)):
                    label = found[i]
                    changes += label != labels[start + i]
                    labels[start + i] = label
                    sizes[label] += 1.0
                    for q in range(n):
                        sums[label, q] += piece[i, q]
            if changes <= FEW_CHANGES * m:
                break
            for j in range(count):
                if sizes[j] > 0.0:
                    for q in range(n):
                        own[j, q] = sums[j, q] / sizes[j]


@njit(cache=True, nogil=True)
def _label(
    counter: Array,
    X: Array,
    rows: Array,
    pieces: Array,
    last: Array,
    of: Array,
    matrix: Array,
    half: Array,
    first: Array,
    width: Array,
    labels: Array,
) -> None:
    """The nearest centre of the rows of pieces, whose numbers are taken from the counter."""
    n = X.shape[1]
    own_rows, room = np.empty((PIECE, n), matrix.dtype), np.empty(PIECE * width.max(), matrix.dtype)
    while True:
        number = take(counter)
        if number >= len(pieces):
            return
        node = of[number]
        at, w = first[node], width[node]
        start, stop = pieces[number], last[number]
        for i in range(start, stop):
            for q in range(n):
                own_rows[i - start, q] = X[rows[i], q]
        _set_closest(
            own_rows[: stop - start], matrix[n * at : n * (at + w)], half[at : at + w], room,
            labels[start:stop],
        )  # fmt: skip


@njit(cache=True, nogil=True)
def descend(
    counter: Array,
    X: Array,
    matrix: Array,
    half: Array,
    first: Array,
    width: Array,
    children: Array,
    cells: Array,
) -> None:
    """The cell of the rows of pieces, whose numbers are taken from the counter, from the root down."""
    n = X.shape[1]
    near, x = np.empty(width.max(), matrix.dtype), np.empty(n, matrix.dtype)
    while True:
        start = PIECE * take(counter)
        if start >= len(X):
            return
        for i in range(start, min(start + PIECE, len(X))):
            for q in range(n):
                x[q] = X[i, q]
            node = 0
            while node >= 0:
                w, at = width[node], first[node]
                best = _closest(x, matrix[n * at : n * (at + w)], half[at : at + w], near[:w])
                node = children[at + best]
            cells[i] = -1 - node
