"""Targets of K models on the same rows, made a block at a time."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Protocol

import numpy as np

from asset_svm.arrays import Array


class Targets(Protocol):
    """The targets y of K models."""

    @property
    def n_models(self) -> int:
        """The number K of models."""

    def block(self, rows: Array) -> Array:
        """The (K, len(rows)) targets of these rows, float64."""


@dataclass(frozen=True, eq=False)
class OneVsRestTargets:
    """+1 where the row's class is the model's, -1 elsewhere; two classes make one model, one none.

    Parameters
    ----------
    codes : array of shape (m,)
        The class of each row, 0 to n_classes - 1.
    """

    codes: Array
    n_classes: int

    @property
    def n_models(self) -> int:
        """The number K of models: one for two classes, else one a class; none for one class."""
        return self.n_classes if self.n_classes > 2 else self.n_classes - 1

    @cached_property
    def _signs(self) -> Array:
        """Those of the rows of two classes."""
        return np.where(self.codes == 1, 1.0, -1.0)

    def block(self, rows: Array) -> Array:
        """The (K, len(rows)) signs of these rows."""
        if self.n_classes == 2:
            return self._signs[rows][None, :]
        if self.n_classes == 1:
            return np.empty((0, len(rows)))
        codes = self.codes[rows]
        signs = np.full((self.n_classes, len(codes)), -1.0)
        signs[codes, np.arange(len(codes))] = 1.0
        return signs


@dataclass(frozen=True, eq=False)
class PairTargets:
    """For each pair of classes -1 in rows of the first, +1 in those of the second, 0 in all others.

    Parameters
    ----------
    codes : array of shape (m,)
        The class of each row, 0 to n_classes - 1.
    """

    codes: Array
    n_classes: int

    @property
    def n_models(self) -> int:
        """The number K of models, one a pair of classes."""
        return self.n_classes * (self.n_classes - 1) // 2

    @cached_property
    def _signs(self) -> Array:
        """The (K, n_classes) targets of rows of each class."""
        signs = np.zeros((self.n_models, self.n_classes))
        for k, (first, second) in enumerate(combinations(range(self.n_classes), 2)):
            signs[k, first], signs[k, second] = -1.0, 1.0
        return signs

    def block(self, rows: Array) -> Array:
        """The (K, len(rows)) targets of these rows."""
        return np.take(self._signs, self.codes[rows], axis=1)


@dataclass(frozen=True, eq=False)
class JoinedTargets:
    """The targets of several outputs, one after the other."""

    parts: tuple[Targets, ...]

    @property
    def n_models(self) -> int:
        """The number K of models, of all outputs."""
        return sum(part.n_models for part in self.parts)

    def block(self, rows: Array) -> Array:
        """The (K, len(rows)) targets of these rows."""
        return np.concatenate([part.block(rows) for part in self.parts])


@dataclass(frozen=True, eq=False)
class RealTargets:
    """One real number a row, for one model."""

    values: Array
    n_models: int = 1

    def block(self, rows: Array) -> Array:
        """The (1, len(rows)) values of these rows."""
        return np.asarray(self.values[rows], dtype=np.float64)[None, :]


@dataclass(frozen=True, eq=False)
class ShiftedTargets:
    """One real number a row, for K models, each of which takes something off.

    Parameters
    ----------
    values : array of shape (m,)
    offset : array of shape (K,)
        What each model takes off.
    """

    values: Array
    offset: Array

    @property
    def n_models(self) -> int:
        """The number K of models."""
        return len(self.offset)

    def block(self, rows: Array) -> Array:
        """The (K, len(rows)) values of these rows, less the offset of each model."""
        return np.asarray(self.values[rows], dtype=np.float64)[None, :] - self.offset[:, None]


def models_of_a_row(targets: Targets) -> int:
    """How many of the models see each row: all, or of pairs of classes those with the row's class."""
    if isinstance(targets, JoinedTargets):
        return sum(map(models_of_a_row, targets.parts))
    return targets.n_classes - 1 if isinstance(targets, PairTargets) else targets.n_models
