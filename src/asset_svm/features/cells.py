"""Cells: a partition of the input space into places with few rows each.

Far-apart rows have nothing to tell each other when the kernel is narrow, and a map with s landmarks
cannot describe a large space in detail. Within a cell of a thousand rows every row can be a
landmark. Without an intercept the models of all cells together are one SVM, with the kernel
k(x, z) [cell(x) = cell(z)].

The partition is a tree: k-means splits the rows of a node into at most ``BRANCHES`` parts, and each
part again until it is small enough. Rows descend it by nearest centres, which costs a few matrix
products with ``BRANCHES`` columns instead of one with a column a cell; and crowded places get more
cells than empty ones. Distances are Euclidean, whatever the kernel.

    a level:  a sample of the rows of each node that is to be split, drawn node by node
              centres of all samples              k-means, nodes side by side
              the nearest centre of every row     pieces of rows side by side
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp

from asset_svm.arrays import Array, Matrix
from asset_svm.features.clusters import lloyd, nearest_centres
from asset_svm.features.descent import FlatTree, kmeans, nearest
from asset_svm.numerics.compiling import lent, njit
from asset_svm.threads.granted import granted
from asset_svm.threads.team import side_by_side

BRANCHES = 32
SAMPLE = 64
"""Rows a centre that k-means looks at."""
DESCENT = 16_384
"""CSR rows that go down the tree at a time."""


class Clusters(Protocol):
    """Who multiplies rows with centres: the rows of one matrix, by their numbers, for several nodes."""

    def centres(self, samples: Sequence[Array], starts: Sequence[Array]) -> list[Array]:
        """Return k-means centres of each sample of rows, begun with those at ``starts`` in it."""

    def nearest(self, parts: Sequence[Array], centres: Sequence[Array]) -> list[Array]:
        """Return the nearest of its centres for each row of every part."""


@dataclass(frozen=True, eq=False)
class DenseClusters:
    """Dense rows in memory, by compiled threads."""

    X: Array

    def centres(self, samples: Sequence[Array], starts: Sequence[Array]) -> list[Array]:
        """Return k-means centres of each sample of rows."""
        return kmeans(self.X, samples, starts)

    def nearest(self, parts: Sequence[Array], centres: Sequence[Array]) -> list[Array]:
        """Return the nearest of its centres for each row of every part."""
        return nearest(self.X, parts, centres)


@dataclass(frozen=True, eq=False)
class SparseClusters:
    """CSR rows, node after node."""

    X: Matrix

    def centres(self, samples: Sequence[Array], starts: Sequence[Array]) -> list[Array]:
        """Return k-means centres of each sample of rows."""
        return [lloyd(self.X[some], start) for some, start in zip(samples, starts, strict=True)]

    def nearest(self, parts: Sequence[Array], centres: Sequence[Array]) -> list[Array]:
        """Return the nearest of its centres for each row of every part."""
        return [nearest_centres(self.X[part], own) for part, own in zip(parts, centres, strict=True)]


def clusters_of(X: Matrix) -> Clusters:
    """Who multiplies these rows, of the host, with centres."""
    return SparseClusters(X) if sp.issparse(X) else DenseClusters(lent(X))


@dataclass(eq=False)
class Node:
    """Centres, and below each of them a cell (its number) or another node."""

    centres: Array
    children: list[Any] = field(default_factory=list)


@dataclass(frozen=True, eq=False)
class _Place:
    """Where in the tree a cell or a node is to stand, and the rows that come there."""

    among: list[Any]
    number: int
    rows: Array

    def put(self, what: Any) -> None:
        self.among[self.number] = what


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
        found = clusters_of(X) if clusters is None else clusters
        target = X.shape[0] / max(n_cells, 1)
        top: list[Any] = [None]
        level = [_Place(top, 0, np.arange(X.shape[0]))]
        while level:
            level = _next_level(level, target, rng, found)
        cells, count = np.zeros(X.shape[0], dtype=np.intp), 0

        def numbered(below: Any) -> Any:
            """Turn sets of rows into cells, from the first branch to the last."""
            nonlocal count
            if isinstance(below, Node):
                below.children = [numbered(child) for child in below.children]
                return below
            cells[below] = count
            count += 1
            return count - 1

        return cls(numbered(top[0]), count), cells

    def assign(self, X: Matrix) -> Array:
        """The cell of every row."""
        if not sp.issparse(X):
            tree = FlatTree.of(self.root, X.shape[1], X.dtype)
            return tree.cells(lent(X), granted())
        starts = range(0, max(X.shape[0], 1), DESCENT)
        return np.concatenate(side_by_side(lambda at: self._assigned(X[at : at + DESCENT]), starts))

    def _assigned(self, X: Matrix) -> Array:
        """The cells of CSR rows, which go down the tree together."""
        out = np.zeros(X.shape[0], dtype=np.intp)
        below = [(self.root, np.arange(X.shape[0]))]
        while below:
            node, index = below.pop()
            if not isinstance(node, Node):
                out[index] = node
            elif len(index):
                of = nearest_centres(X[index], node.centres)
                below += [(node.children[child], index[of == child]) for child in np.unique(of)]
        return out


def _next_level(
    level: list[_Place], target: float, rng: np.random.Generator, clusters: Clusters
) -> list[_Place]:
    """Put a node, or the rows of a cell, at every place of a level; the places below the nodes."""
    places, samples, starts = [], [], []
    for place in level:
        m = len(place.rows)
        parts = min(round(m / target), m, BRANCHES)
        if parts < 2:
            place.put(place.rows)
            continue
        some = rng.choice(place.rows, min(m, SAMPLE * parts), replace=False)
        places.append(place)
        samples.append(some)
        starts.append(np.sort(rng.choice(len(some), size=parts, replace=False)))
    centres = clusters.centres(samples, starts)
    labels = clusters.nearest([place.rows for place in places], centres)
    below: list[_Place] = []
    for place, own, of in zip(places, centres, labels, strict=True):
        members = grouped(place.rows, of, len(own))
        used = [k for k, part in enumerate(members) if len(part)]
        if len(used) < 2:
            place.put(place.rows)
            continue
        node = Node(own[used], [None] * len(used))
        place.put(node)
        below += [_Place(node.children, at, members[k]) for at, k in enumerate(used)]
    return below


def grouped(index: Array, of: Array, count: int) -> list[Array]:
    """The entries of ``index`` by their group, 0 <= of < count, each in its old order."""
    out, ends = group(index, of, count)
    return [out[a:b] for a, b in pairwise(ends)]


def group(index: Array, of: Array, count: int) -> tuple[Array, Array]:
    """The entries of ``index``, group by group, and where each group begins and the last one ends."""
    out, ends = np.empty_like(index), np.zeros(count + 1, dtype=np.intp)
    _sort_by_counting(np.ascontiguousarray(index), np.ascontiguousarray(of, dtype=np.intp), out, ends)
    return out, ends


@njit(cache=True, nogil=True)
def _sort_by_counting(index: Array, of: Array, out: Array, ends: Array) -> None:
    for i in range(len(of)):
        ends[of[i] + 1] += 1
    for k in range(1, len(ends)):
        ends[k] += ends[k - 1]
    place = ends[:-1].copy()
    for i in range(len(of)):
        out[place[of[i]]] = index[i]
        place[of[i]] += 1
