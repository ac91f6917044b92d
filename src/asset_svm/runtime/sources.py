"""What decisions are sums of: values of kernels with landmarks, and features."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from asset_svm.arrays import Array
from asset_svm.kernels.formula import Argument
from asset_svm.kernels.profiles import PROFILES, Profile
from asset_svm.runtime.operations import EPSILON, Operations, Value


@dataclass(frozen=True)
class Kernel:
    """A named kernel with its numbers."""

    name: str
    gamma: float
    degree: float
    coef0: float

    @property
    def profile(self) -> Profile:
        """What it is a function of, and which."""
        return PROFILES[self.name]

    @property
    def factor(self) -> float:
        """The factor of the argument."""
        return self.profile.factor(self.gamma)

    def values(self, ops: Operations, t: Value) -> Value:
        """Kernel values of the argument times its factor, which may be overwritten."""
        return self.profile.values(t, self.degree, self.coef0, ops)


@dataclass(frozen=True, eq=False)
class Landmarks:
    """Kernel values with landmarks.

    Parameters
    ----------
    kernel : Kernel
    Z : array of shape (s, columns)
        In the type in which they were kept.
    chosen : array of int, optional
        The columns of rows that Z has; the others are 0 in all landmarks.
    n : int
        Columns of rows.
    """

    kernel: Kernel
    Z: Array
    chosen: Array | None
    n: int

    @cached_property
    def shift(self) -> Array:
        """What rows and landmarks are moved by: squared distances of far-off rows would cancel."""
        squared = self.kernel.profile.argument is Argument.SQUARED_DISTANCE
        moved = squared and self.chosen is None and len(self.Z) > 0
        return self.Z.mean(axis=0, dtype=np.float64) if moved else np.zeros(self.Z.shape[1])

    @cached_property
    def moved(self) -> Array:
        """The landmarks as they are multiplied."""
        return np.asarray(self.Z.astype(np.float64) - self.shift)

    @cached_property
    def norms(self) -> Array:
        """|z|^2 of those."""
        return np.einsum("ij,ij->i", self.moved, self.moved)

    @property
    def size(self) -> int:
        """The number of values."""
        return len(self.Z)

    @property
    def breadth(self) -> int:
        """The numbers of a row that are there at a time."""
        return self.n + len(self.Z)

    def values(self, ops: Operations, x: Value) -> Value:
        """(rows, s) kernel values."""
        return self.some(ops, *self.moved_rows(ops, x), self.moved, self.norms)

    def moved_rows(self, ops: Operations, x: Value) -> tuple[Value, Value]:
        """The rows as they are multiplied, and |x|^2 where that counts."""
        squared = self.kernel.profile.argument is Argument.SQUARED_DISTANCE
        if self.chosen is not None:
            left = ops.total(x * x) if squared else None
            if self.kernel.profile.argument is Argument.ABSOLUTE_DISTANCE:
                # Columns without landmarks count too: |x| in each, which is that of one column more.
                beyond = ops.total(ops.abs(x)) - ops.total(ops.abs(ops.columns(x, self.chosen)))
                return ops.columns(x, self.chosen), beyond
            return ops.columns(x, self.chosen), left
        if not squared:
            return x, None
        x = x - self.shift
        return x, ops.total(x * x)

    def some(self, ops: Operations, x: Value, left: Value, Z: Value, norms: Value) -> Value:
        """Kernel values of moved rows with some of the moved landmarks, and their norms."""
        profile, factor = self.kernel.profile, self.kernel.factor
        if profile.argument is Argument.SQUARED_DISTANCE:
            squares = norms + left
            t = ops.product(x, Z) * 2.0 - squares
            if profile.slack:
                t = ops.where(t > squares * (-profile.slack * EPSILON), 0.0, t)
            t = ops.clip(t, None, 0.0) * -factor
        elif profile.argument is Argument.ABSOLUTE_DISTANCE:
            t = ops.absolute_distances(x, Z)
            t = (t if left is None else t + left) * factor
        else:
            t = ops.product(x, Z) * factor
        return self.kernel.values(ops, t)


@dataclass(frozen=True, eq=False)
class Cosines:
    """Random Fourier features sqrt(2/d) cos(nu^T x + phase); feature j has the frequency j mod f.

    Parameters
    ----------
    frequencies : array of shape (f, n)
    phases : array of shape (d,)
    """

    frequencies: Array
    phases: Array

    @property
    def size(self) -> int:
        """The number of features."""
        return len(self.phases)

    @property
    def breadth(self) -> int:
        """The numbers of a row that are there at a time."""
        return self.frequencies.shape[1] + 2 * len(self.phases)

    @property
    def amplitude(self) -> float:
        """The size of a feature."""
        return float(np.sqrt(2.0 / len(self.phases)))

    def values(self, ops: Operations, x: Value) -> Value:
        """(rows, d) features."""
        angles, f = ops.product(x, self.frequencies), len(self.frequencies)
        if f < self.size:
            angles = ops.columns(angles, np.arange(self.size) % f)
        return ops.cos(angles + self.phases) * self.amplitude
