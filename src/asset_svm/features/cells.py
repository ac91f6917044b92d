"""Cells: a partition of the input space into places with few rows each.

Far-apart rows have nothing to tell each other when the kernel is narrow, and a map with s landmarks
cannot describe a large space in detail. Within a cell of a thousand rows every row can be a
landmark. Without an intercept the models of all cells together are one SVM, with the kernel
k(x, z) [cell(x) = cell(z)].

The partition is a tree: k-means splits the rows of a node into at most ``BRANCHES`` parts, and each
part again until it is small enough. Rows descend it by nearest centres, which costs a few matrix
products with ``BRANCHES`` columns instead of one with a column a cell; and crowded places get more
cells than empty ones. Distances are Euclidean, whatever the kernel.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from asset_svm.numerics.rows import sparse_times_dense

Array = npt.NDArray[Any]
Matrix = Any

BRANCHES = 32
PASSES = 5
"""Of Lloyd's algorithm: more move hardly any row."""
SAMPLE = 64
"""Rows a centre that k-means looks at."""
BLOCK = 4096


@dataclass(eq=False)
class Node:
    """Centres, and below each of them a cell (its number) or another node."""

    centres: Array
    children: list[Any] = field(default_factory=list)

    def nearest(self, X: Matrix) -> Array:
        """Which centre each row is nearest to."""
        transposed = np.ascontiguousarray(self.centres.T)
        half = 0.5 * np.einsum("ij,ij->i", self.centres, self.centres)
        out = np.empty(X.shape[0], dtype=np.intp)
        for start in range(0, X.shape[0], BLOCK):
            rows = X[start : start + BLOCK]
            dots = sparse_times_dense(rows, transposed) if sp.issparse(rows) else rows @ transposed
            out[start : start + BLOCK] = np.argmax(dots - half, axis=1)
        return out


@dataclass(eq=False)
class Partition:
    """Which cell a row lies in.

    Parameters
    ----------
    root : node, or 0 where there is one cell
    n_cells : int
    """

    root: Any
    n_cells: int

    @classmethod
    def grow(cls, X: Matrix, n_cells: int, rng: np.random.Generator) -> tuple[Partition, Array]:
        """About ``n_cells`` cells of similar numbers of rows, and the cell of every row of X.

        Rows that are all alike cannot be told apart: they stay in one cell, however many.
        """
        cells = np.zeros(X.shape[0], dtype=np.intp)
        target = X.shape[0] / max(n_cells, 1)
        count = 0

        def split(index: Array) -> Any:
            nonlocal count
            parts = min(round(len(index) / target), len(index), BRANCHES)
            if parts >= 2:
                centres = _centres(X, index, parts, rng)
                used, of = np.unique(Node(centres).nearest(X[index]), return_inverse=True)
                if len(used) >= 2:
                    members = grouped(index, of, len(used))
                    return Node(centres[used], [split(part) for part in members])
            cells[index] = count
            count += 1
            return count - 1

        root = split(np.arange(X.shape[0]))
        return cls(root, count), cells

    def assign(self, X: Matrix) -> Array:
        """The cell of every row."""
        out = np.zeros(X.shape[0], dtype=np.intp)

        def descend(node: Any, index: Array) -> None:
            if len(index) == 0:
                return
            if not isinstance(node, Node):
                out[index] = node
                return
            of = node.nearest(X[index])
            for child in np.unique(of):
                descend(node.children[child], index[of == child])

        descend(self.root, np.arange(X.shape[0]))
        return out


def grouped(index: Array, of: Array, count: int) -> list[Array]:
    """The entries of ``index`` by their group, 0 <= of < count, each in its old order."""
    ends = np.cumsum(np.bincount(of, minlength=count))
    return np.split(index[np.argsort(of, kind="stable")], ends[:-1])


def _centres(X: Matrix, index: Array, count: int, rng: np.random.Generator) -> Array:
    """``count`` centres of a sample of these rows, by Lloyd's algorithm from distinct rows."""
    sample = X[rng.choice(index, min(len(index), SAMPLE * count), replace=False)]
    start = rng.choice(sample.shape[0], count, replace=False)
    chosen = sample[start]
    node = Node(chosen.toarray() if sp.issparse(chosen) else chosen.copy())
    for _ in range(PASSES):
        of = node.nearest(sample)
        counts = np.bincount(of, minlength=count)
        members = sp.csr_matrix((np.ones(len(of)), (of, np.arange(len(of)))), (count, len(of)))
        sums = members @ sample
        sums = sums.toarray() if sp.issparse(sums) else sums
        there = counts > 0
        node.centres[there] = sums[there] / counts[there, None]
    return node.centres
