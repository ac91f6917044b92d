"""Models of cells: what a solver finds, and what decides."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from asset_svm.arrays import Array
from asset_svm.features.cells import Partition
from asset_svm.kernels import Kernel

CellModel = tuple[Array, float, float, float, int]
"""(beta, b, P, D, sweeps) of one model of a cell."""


class Swept(NamedTuple):
    """Where the sweeps of one model of a cell have ended."""

    beta: Array
    sweeps: int
    primal: float
    dual: float
    cut: bool = False
    """Whether their share of the time was up, so that they may go on."""


@dataclass(frozen=True, eq=False)
class CellSolution:
    """K models of one cell: decisions are k(x, X[rows]) weights^T + intercept."""

    rows: Array
    weights: Array
    intercept: Array
    objective: Array
    """(PL)'s part of this cell, by model, in the weights of all rows."""
    dual_gap: Array
    """NaN where the kernel matrix is not positive semi-definite: what is dual to it bounds nothing."""
    sweeps: int
    converged: bool
    definite: bool
    """Whether the kernel matrix can be positive semi-definite."""
    support: Any = None
    """X[rows], where somebody has gathered them."""


@dataclass(frozen=True, eq=False)
class CellFunctions:
    """The decision functions of the cells of one partition.

    Parameters
    ----------
    landmarks : sequence of matrices
        Of each cell, of shape (s, n); None where there are none.
    weights : sequence of arrays
        (K, s).
    intercept : array of shape (cells, K)
    others : mapping from cells to functions
        Cells that decide by themselves: from rows to (rows, K) decisions.
    """

    partition: Partition
    kernel: Kernel
    landmarks: Sequence[Any]
    weights: Sequence[Array]
    intercept: Array
    others: Mapping[int, Callable[[Any], Array]] = field(default_factory=dict)


def same_targets(y: Array) -> Array:
    """The first model with the same targets as each, one a row of y.

    All classes that are absent from a cell have one; two that are there have no row in common.
    """
    like, first = np.arange(len(y)), y[:, 0]
    one_sided = (y == y[:, :1]).all(axis=1)
    for value in np.unique(first[one_sided]):
        same = np.flatnonzero(one_sided & (first == value))
        like[same] = same[0]
    return like


def constants(y: Array) -> Array:
    """The constant of each model whose targets, a row of y, are all the same, or 0."""
    return np.asarray(y[np.arange(len(y)), np.abs(y).argmax(axis=1)])


def constant(y: Array) -> CellModel:
    """The model of a row of targets that are all the same, or 0, where it is trivial."""
    return np.zeros(len(y)), float(constants(y[None])[0]), 0.0, 0.0, 0
