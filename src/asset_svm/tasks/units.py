"""Units of targets: what a regression learns in, and how its predictions come back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from asset_svm.arrays import Array

KINDS = ("standard", "log")


@dataclass(frozen=True)
class Units:
    """Targets, or their logarithms, less their mean and over their standard deviation.

    Parameters
    ----------
    kind : {"standard", "log"}
    mean, scale : float
    """

    kind: str
    mean: float
    scale: float

    @classmethod
    def of(cls, kind: str, y: Array, weight: Array) -> Units:
        """The units of these targets."""
        z = cls(kind, 0.0, 1.0).into(y)
        unit = float(np.abs(z).max(initial=0.0)) or 1.0  # squares of 1e200 have no place
        mean = unit * float(np.average(z / unit, weights=weight))
        scale = unit * float(np.sqrt(np.average(((z - mean) / unit) ** 2, weights=weight)))
        return cls(kind, mean, scale if scale > 0.0 else 1.0)

    def into(self, y: Any) -> Array:
        """Targets in these units."""
        y = np.asarray(y, dtype=np.float64)
        if self.kind == "log":
            if len(y) and not y.min() > 0.0:
                raise ValueError(
                    f'target_transform="log" needs targets above 0, and y has {y.min():g}; use '
                    '"standard", or add a number to y.'
                )
            y = np.log(y)
        return np.asarray((y - self.mean) / self.scale)

    def back(self, z: Array) -> Array:
        """Numbers in these units as targets."""
        y = z * self.scale + self.mean
        return np.asarray(np.exp(y) if self.kind == "log" else y)

    def slope(self, z: Array) -> Array:
        """The derivative of ``back``."""
        return self.scale * self.back(z) if self.kind == "log" else np.full_like(z, self.scale)


@dataclass(frozen=True)
class UnitsOfColumns:
    """The units of each column of targets."""

    parts: tuple[Units, ...]

    def into(self, y: Any) -> Array:
        """(rows, outputs) targets in these units."""
        columns = zip(self.parts, np.asarray(y).T, strict=True)
        return np.column_stack([units.into(column) for units, column in columns])
