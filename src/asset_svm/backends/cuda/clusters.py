"""Centres of rows on the card, as in ``features.clusters``: there the rows go, here the numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from asset_svm.arrays import Array
from asset_svm.backends.cuda.maps import to_card
from asset_svm.backends.cuda.memory import FEWEST_ROWS, in_chunks
from asset_svm.backends.cuda.transfer import RowFeeder
from asset_svm.features.clusters import FEW_CHANGES, LARGE, MOST_PASSES
from asset_svm.features.landmarks.base import Landmarks, sample_size, some_rows
from asset_svm.kernels import Kernel

CHUNK_BYTES = 1 << 28
"""Bytes of rows, or of their products with centres, that are looked at at a time."""


class CardClusters:
    """The rows of X, wherever they lie, multiplied with centres on the card."""

    def __init__(self, feeder: RowFeeder):
        self.feeder, self.device = feeder, feeder.device
        width = feeder.X.shape[1] * feeder.dtype.itemsize
        self.size = max(CHUNK_BYTES // width, FEWEST_ROWS)

    def centres(self, samples: Sequence[Array], starts: Sequence[Array]) -> list[Array]:
        """k-means centres of each sample of rows, on the host."""
        pairs = zip(samples, starts, strict=True)
        return [lloyd(self.feeder.take(some), start).cpu().numpy() for some, start in pairs]

    def nearest(self, parts: Sequence[Array], centres: Sequence[Array]) -> list[Array]:
        """The nearest of its centres for each row of every part, on the host."""
        return [self._nearest(part, own) for part, own in zip(parts, centres, strict=True)]

    def _nearest(self, rows: Array, centres: Array) -> Array:
        there = to_card(centres, self.device)
        labels = torch.empty(len(rows), dtype=torch.int64, device=self.device)

        def work(start: int, stop: int) -> None:
            labels[start:stop] = nearest(self.feeder.take(rows[start:stop]), there)

        self.size = in_chunks(len(rows), self.size, work)
        return np.asarray(labels.cpu().numpy())


def cluster_centres(X: Tensor, count: int, rng: np.random.Generator) -> Tensor:
    """``count`` centres of these rows, by Lloyd's algorithm."""
    return lloyd(X, np.sort(rng.choice(len(X), size=count, replace=False)))


def lloyd(X: Tensor, start: Array) -> Tensor:
    """Centres of these rows, from those of ``start`` on."""
    (m, n), count = X.shape, len(start)
    centres = X[torch.from_numpy(start).to(X.device)]
    labels = torch.full((m,), -1, device=X.device)
    for _ in range(MOST_PASSES):
        before, labels = labels, nearest(X, centres)
        if int((labels != before).sum()) <= FEW_CHANGES * m:
            break
        sizes = torch.bincount(labels, minlength=count)
        sums = torch.zeros((count, n), dtype=torch.float64, device=X.device)
        sums.index_add_(0, labels, X.double())
        means = (sums / sizes.clamp(min=1)[:, None]).to(X.dtype)
        centres = torch.where((sizes > 0)[:, None], means, centres)
    return centres


def kmeans_landmarks(
    device: torch.device,
    X: Any,
    kernel: Kernel,
    count: int,
    rng: np.random.Generator,
    weight: Array | None = None,
) -> Landmarks:
    """``count`` cluster centres of dense rows, as ``features.landmarks`` has them of sparse ones."""
    rows, _ = some_rows(X, weight, sample_size(count), rng)
    there = to_card(rows, device)
    centre = there.mean(dim=0, dtype=torch.float64)
    moved = there - centre.to(there.dtype)
    size = float(moved.abs().max()) or 1.0
    centres = cluster_centres(moved.div_(size), count, rng)
    return Landmarks((centres.double() * size + centre).to(there.dtype).cpu().numpy())


def nearest(X: Tensor, centres: Tensor) -> Tensor:
    """The nearest centre of each row, in blocks; the first of equally near ones."""
    if bool(centres.abs().max() > LARGE):  # squares would overflow
        X, centres = X.double(), centres.double()
    half = 0.5 * centres.double().square().sum(dim=1).to(centres.dtype)
    size = max(CHUNK_BYTES // (len(centres) * X.dtype.itemsize), FEWEST_ROWS)
    found = [first_largest(torch.addmm(-half, block, centres.T)) for block in X.split(size)]
    return torch.cat(found) if found else torch.empty(0, dtype=torch.int64, device=X.device)


def first_largest(values: Tensor) -> Tensor:
    """Along the last dimension, the place of the largest value; the first of equals."""
    best = values.max(dim=-1, keepdim=True).values
    places = torch.arange(values.shape[-1], device=values.device)
    return torch.where(values == best, places, values.shape[-1] - 1).min(dim=-1).values
