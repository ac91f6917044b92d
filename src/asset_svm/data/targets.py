"""Targets of K models on the same rows, made a block at a time."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
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
    """+1 where the row's class is the model's, -1 elsewhere; two classes make one model.

    Parameters
    ----------
    codes : array of shape (m,)
        The class of each row, 0 to n_classes - 1.
    """

    codes: Array
    n_classes: int

    @property
    def n_models(self) -> int:
        """The number K of models: one for two classes, else one a class."""
        return 1 if self.n_classes == 2 else self.n_classes

    @cached_property
    def _signs(self) -> Array:
        """Those of the rows of two classes."""
        return np.where(self.codes == 1, 1.0, -1.0)

    def block(self, rows: Array) -> Array:
        """The (K, len(rows)) signs of these rows."""
        if self.n_classes == 2:
            return self._signs[rows][None, :]
        codes = self.codes[rows]
        signs = np.full((self.n_classes, len(codes)), -1.0)
        signs[codes, np.arange(len(codes))] = 1.0
        return signs


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
