"""Centres of rows on the card, as in ``features.clusters``: there the rows go, here the numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from asset_svm.engines.cuda.maps import to_card
from asset_svm.engines.cuda.memory import FEWEST_ROWS, in_chunks
from asset_svm.engines.cuda.transfer import RowFeeder
from asset_svm.features.clusters import FEW_CHANGES, LARGE, MOST_PASSES

Array = npt.NDArray[Any]
CHUNK_BYTES = 1 << 28
"""Of rows that are looked at at a time."""


class CardClusters:
    """The rows of X, wherever they lie, multiplied with centres on the card."""

    def __init__(self, feeder: RowFeeder):
        self.feeder, self.device = feeder, feeder.device
        width = feeder.X.shape[1] * feeder.dtype.itemsize
        self.size = max(CHUNK_BYTES // width, FEWEST_ROWS)

    def centres(self, rows: Array, count: int, rng: np.random.Generator) -> Array:
        """k-means centres of these rows, on the host."""
        X = self.feeder.take(rows)
        first = np.sort(rng.choice(len(rows), size=count, replace=False))
        centres = X[torch.from_numpy(first).to(self.device)]
        labels = torch.full((len(rows),), -1, device=self.device)
        for _ in range(MOST_PASSES):
            before, labels = labels, nearest(X, centres)
            if int((labels != before).sum()) <= FEW_CHANGES * len(rows):
                break
            member = torch.nn.functional.one_hot(labels, count).double()
            sizes = member.sum(dim=0)
            means = (member.T @ X.double()) / sizes.clamp(min=1)[:, None]
            centres = torch.where((sizes > 0)[:, None], means.to(X.dtype), centres)
        return np.asarray(centres.cpu().numpy())

    def nearest(self, rows: Array, centres: Array) -> Array:
        """The nearest centre of each of these rows, on the host."""
        there = to_card(centres, self.device)
        labels = torch.empty(len(rows), dtype=torch.int64, device=self.device)

        def work(start: int, stop: int) -> None:
            labels[start:stop] = nearest(self.feeder.take(rows[start:stop]), there)

        self.size = in_chunks(len(rows), self.size, work)
        return np.asarray(labels.cpu().numpy())


def nearest(X: Tensor, centres: Tensor) -> Tensor:
    """The nearest centre of each row; the first of equally near ones."""
    if bool(centres.abs().max() > LARGE):  # squares would overflow
        X, centres = X.double(), centres.double()
    half = 0.5 * centres.double().square().sum(dim=1).to(centres.dtype)
    return first_largest(torch.addmm(half.neg_(), X, centres.T))


def first_largest(values: Tensor) -> Tensor:
    """Along the last dimension, the place of the largest value; the first of equals."""
    best = values.max(dim=-1, keepdim=True).values
    places = torch.arange(values.shape[-1], device=values.device)
    return torch.where(values == best, places, values.shape[-1] - 1).min(dim=-1).values
