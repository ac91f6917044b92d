"""Decisions of cells on the card: rows descend the tree, and meet the landmarks of one cell."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
import torch
from torch import Tensor

from asset_svm.arrays import Array, Matrix
from asset_svm.backends.cuda.batches import kernel_values
from asset_svm.backends.cuda.clusters import CHUNK_BYTES
from asset_svm.backends.cuda.maps import to_card, torch_type
from asset_svm.backends.cuda.memory import FEWEST_ROWS
from asset_svm.backends.cuda.tiles import TILE, Tiles
from asset_svm.backends.cuda.transfer import RowFeeder
from asset_svm.backends.cuda.tree import CardTree
from asset_svm.solvers.cell_models import CellFunctions

BATCH_BYTES = 1 << 30
"""Bytes of the kernel values and landmarks of the tiles that are multiplied at a time."""


class _Part:
    """The cells of one partition, their landmarks and weights on the card."""

    def __init__(self, cells: CellFunctions, n: int, dtype: torch.dtype, device: torch.device):
        self.kernel, self.others, self.dtype, self.device = cells.kernel, cells.others, dtype, device
        self.tree = CardTree(cells.partition, dtype, device)
        self.intercept = to_card(cells.intercept, device, torch.float64)
        sizes = np.array([0 if Z is None else Z.shape[0] for Z in cells.landmarks])
        self.sizes = to_card(sizes, device)
        self.first = to_card(np.cumsum(sizes) - sizes, device)
        known = [Z for Z in cells.landmarks if Z is not None]
        sparse = any(sp.issparse(Z) for Z in known)
        all_rows = sp.vstack(known).tocsr() if sparse else np.concatenate(known or [np.empty((0, n))])
        self.landmarks = RowFeeder(all_rows if sparse else to_card(all_rows, device), dtype, device)
        self.weights = to_card(np.concatenate([w.T for w in cells.weights]), device, dtype)

    def add(self, X: Tensor, out: Tensor) -> None:
        """Add the decisions on the rows of X to ``out``, in float64."""
        cells = self.tree(X)
        out += self.intercept[cells]
        tiles = Tiles.of(cells, len(self.sizes))
        counts, order = self.sizes[tiles.group].sort(descending=True, stable=True)
        tiles = tiles[order]
        for start, stop, s in self._batches(counts.cpu().numpy(), X.shape[1]):
            self._add_tiles(X, tiles[start:stop], s, out)
        for cell, function in self.others.items():
            rows = (cells == cell).nonzero()[:, 0]
            if len(rows):
                out[rows] += to_card(function(X[rows]), self.device, torch.float64)

    def _batches(self, counts: Array, n: int) -> Iterator[tuple[int, int, int]]:
        """(start, stop, landmarks) of tiles, whose counts of landmarks fall; none without."""
        start, last = 0, int(np.count_nonzero(counts))
        while start < last:
            s = int(counts[start])
            bytes_a_tile = (s * (TILE + 2 * n) + 2 * TILE * n) * self.dtype.itemsize
            stop = min(start + max(BATCH_BYTES // bytes_a_tile, 1), last)
            # Not so far that most of the products would be of padding.
            stop = max(int(np.searchsorted(-counts[:stop], -(s // 2), side="right")), start + 1)
            yield start, min(stop, last), s
            start = min(stop, last)

    def _add_tiles(self, X: Tensor, tiles: Tiles, s: int, out: Tensor) -> None:
        sizes = self.sizes[tiles.group][:, None]
        number = torch.arange(s, device=self.device)
        index = self.first[tiles.group][:, None] + torch.minimum(number, sizes - 1)
        Z = self._rows(index)
        values = kernel_values(self.kernel, X[tiles.rows], Z, Z.mean(dim=1, keepdim=True))
        weights = self.weights[index] * (number < sizes)[:, :, None]
        # A row that fills up a tile is there several times, with the same sum.
        out[tiles.rows] = out[tiles.rows] + torch.bmm(values, weights).double()

    def _rows(self, index: Tensor) -> Tensor:
        if isinstance(self.landmarks.X, torch.Tensor):
            return self.landmarks.X[index].to(self.dtype)
        rows = self.landmarks.take(index.cpu().numpy().ravel())
        return rows.view(*index.shape, -1)


class CardCellDecision:
    """The mean decision over partitions, for rows of one type."""

    def __init__(
        self, parts: Sequence[CellFunctions], n: int, dtype: npt.DTypeLike, device: torch.device
    ):
        self.dtype, self.device = torch_type(dtype), device
        self.parts = [_Part(part, n, self.dtype, device) for part in parts]
        self.n_models = parts[0].intercept.shape[1]
        self.size = max(CHUNK_BYTES // (n * self.dtype.itemsize), FEWEST_ROWS)

    def __call__(self, X: Matrix) -> Array:
        """The (rows, K) decisions, on the host, in float64."""
        out = torch.zeros((X.shape[0], self.n_models), dtype=torch.float64, device=self.device)
        feeder = RowFeeder(X, self.dtype, self.device)

        def work(where: slice, rows: Tensor) -> None:
            found = torch.zeros_like(out[where])
            for part in self.parts:
                part.add(rows, found)
            out[where] = found / len(self.parts)

        try:
            self.size = feeder.over_all(self.size, work)
        finally:
            feeder.close()
        return np.asarray(out.cpu().numpy())
