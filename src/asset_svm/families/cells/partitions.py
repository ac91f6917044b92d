"""Partitions of the input space: how many cells, grown from which seed, with which rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from asset_svm.features.cells import Partition, grouped
from asset_svm.threads.blas import few_threads


def grow_partition(
    X: Any, count: int, seed: int, number: int, grower: Any = Partition
) -> tuple[Partition, list[np.ndarray]]:
    """A partition into about ``count`` cells, by its number, and the rows of X in every cell.

    ``grower`` may be the card that has the rows.
    """
    rng = np.random.default_rng([seed, 5, number])
    with few_threads(0):
        partition, cells = grower.grow(X, count, rng)
    return partition, grouped(np.arange(X.shape[0]), cells, partition.n_cells)


def partition_seed(seed: int, number: int) -> int:
    """The seed of the models in a partition; its cells add their numbers."""
    return seed + 7919 * number


def shares(weight: np.ndarray, groups: list[np.ndarray]) -> np.ndarray:
    """The part of the weight of all rows that each group has."""
    return np.array([weight[index].sum() for index in groups]) / weight.sum()
