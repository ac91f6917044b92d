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
from typing import Any, Protocol

import numpy as np

from asset_svm.arrays import Array, Matrix
from asset_svm.features.clusters import cluster_centres, nearest_centres

BRANCHES = 32
SAMPLE = 64
"""Rows a centre that k-means looks at."""


class Clusters(Protocol):
    """Who multiplies rows with centres: the rows of one matrix, by their numbers."""

    def centres(self, rows: Array, count: int, rng: np.random.Generator) -> Array:
        """Return k-means centres of these rows."""

    def nearest(self, rows: Array, centres: Array) -> Array:
        """Return the nearest centre of each of these rows."""


@dataclass(frozen=True, eq=False)
class HostClusters:
    """Rows of a matrix in memory, multiplied with centres by numpy."""

    X: Matrix

    def centres(self, rows: Array, count: int, rng: np.random.Generator) -> Array:
        """Return k-means centres of these rows."""
        return cluster_centres(self.X[rows], count, rng)

    def nearest(self, rows: Array, centres: Array) -> Array:
        """Return the nearest centre of each of these rows."""
        return nearest_centres(self.X[rows], centres)


@dataclass(eq=False)
class Node:
    """Centres, and below each of them a cell (its number) or another node."""

    centres: Array
    children: list[Any] = field(default_factory=list)


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
    def grow(
        cls, X: Matrix, n_cells: int, rng: np.random.Generator, clusters: Clusters | None = None
    ) -> tuple[Partition, Array]:
        """About ``n_cells`` cells of similar numbers of rows, and the cell of every row of X.

        Rows that are all alike cannot be told apart: they stay in one cell, however many.
        ``clusters`` of the same rows may do the work elsewhere.
        """
        found = HostClusters(X) if clusters is None else clusters
        cells = np.zeros(X.shape[0], dtype=np.intp)
        target = X.shape[0] / max(n_cells, 1)
        count = 0

        def split(index: Array) -> Any:
            nonlocal count
            parts = min(round(len(index) / target), len(index), BRANCHES)
            if parts >= 2:
                some = rng.choice(index, min(len(index), SAMPLE * parts), replace=False)
                centres = found.centres(some, parts, rng)
                members = grouped(index, found.nearest(index, centres), len(centres))
                used = [k for k, part in enumerate(members) if len(part)]
                if len(used) >= 2:
                    return Node(centres[used], [split(members[k]) for k in used])
            cells[index] = count
            count += 1
            return count - 1

        root = split(np.arange(X.shape[0]))
        return cls(root, count), cells

    def assign(self, X: Matrix, clusters: Clusters | None = None) -> Array:
        """The cell of every row; ``clusters`` of the same rows may do the work elsewhere."""
        found = HostClusters(X) if clusters is None else clusters
        out = np.zeros(X.shape[0], dtype=np.intp)

        below = [(self.root, np.arange(X.shape[0]))]
        while below:
            node, index = below.pop()
            if not isinstance(node, Node):
                out[index] = node
            elif len(index):
                of = found.nearest(index, node.centres)
                below += [(node.children[child], index[of == child]) for child in np.unique(of)]
        return out


def grouped(index: Array, of: Array, count: int) -> list[Array]:
    """The entries of ``index`` by their group, 0 <= of < count, each in its old order."""
    ends = np.cumsum(np.bincount(of, minlength=count))
    if count <= 1 << 16:
        of = of.astype(np.uint16)  # sorted by digits, many times as fast
    return np.split(index[np.argsort(of, kind="stable")], ends[:-1])
