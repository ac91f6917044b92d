"""What a race tries: kinds of models, and settings of each.

A length is measured by the rows: with ``factor`` c, squared distances are those of rows whose spread
is 1 / c. The Gaussian has gamma = c / v, v the total variance of the rows, the exponential kernel
sqrt(c / v), and the laplacian sqrt(c) / d, d the sum of the standard deviations of the columns. Rows
that a relevance maps keep their spread, so that factors keep their meaning.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from asset_svm.features.relevance import Moments
from asset_svm.kernels import Argument, formula_type
from asset_svm.search.cells import ROUGH_TOLERANCE
from asset_svm.settings.solving import CELL_ROWS

GIVEN = "given"
"""The encoding of columns that stay as they are."""
LARGE_CELL, HUGE_CELL = 2000, 4000
"""The rows of a cell of the larger models; those of the usual one have half of the first."""
PARTITIONS, MOST_PARTITIONS = 4, 8
"""Those of a look at several, and those that a final model may have where there is time for them."""
EPSILON = 0.05
"""The usual tube, in units of the spread of the targets."""
TUBE, SQUARES = "epsilon_insensitive", "squared_epsilon_insensitive"
"""The losses of a regression. R^2 asks for means of the targets, which squares find; where targets are
skewed, the tube finds something near their median."""
WHOLE_ROWS = 16_384
"""Rows up to which one cell is solved exactly."""


@dataclass(frozen=True)
class Shape:
    """A kind of model.

    Parameters
    ----------
    encoding : str
        What becomes of columns: "given", or the ``numbers`` of a TableEncoder.
    kernel : str
    relevance : {"columns", "directions"} or None
    cells : bool
        Whether the model has cells, or one map for all rows.
    """

    encoding: str
    kernel: str
    relevance: str | None = None
    cells: bool = False

    @property
    def has_gamma(self) -> bool:
        """Whether the kernel has a length."""
        return self.kernel != "linear"

    @property
    def effort(self) -> tuple[int, ...]:
        """What the simpler of two shapes has less of."""
        return (
            int(self.kernel != "linear"),
            int(self.relevance is not None) + int(self.relevance == "directions"),
            int(self.cells),
            int(self.encoding not in (GIVEN, "standard")),
        )


@dataclass(frozen=True)
class Candidate:
    """A model that can be trained: a shape with all its settings.

    Parameters
    ----------
    shape : Shape
    factor : float
        How much narrower than the rows the kernel is, of squared lengths.
    C : float
    epsilon : float
        Of regressions, in units of the targets' spread.
    size : int
        0: 1024 landmarks, or cells of 1000 rows; 1: 2048 well-chosen landmarks, or several partitions
        into such cells; 2: the exact model of all rows in one cell; 3 and 4: several partitions into
        larger cells.
    partitions : int
        Those of a final model in cells; 0: those of its size.
    loss : {"epsilon_insensitive", "squared_epsilon_insensitive"}
        That of a regression.
    """

    shape: Shape
    factor: float = 1.0
    C: float = 10.0
    epsilon: float = EPSILON
    size: int = 0
    partitions: int = 0
    loss: str = TUBE

    @property
    def effort(self) -> tuple[float, ...]:
        """What the simpler of two candidates has less of."""
        return (self.size, *self.shape.effort)

    def changed(self, **changes: Any) -> Candidate:
        """The candidate with other settings."""
        return replace(self, **changes)

    def with_loss(self, loss: str) -> Candidate:
        """The candidate with this loss, and its usual tube: squares have none."""
        return self if loss == self.loss else self.changed(loss=loss, epsilon=tube_of(loss))

    def family(self, n_rows: int) -> dict[str, Any]:
        """The parameters of the family of the model, for so many rows."""
        if not self.shape.cells:
            if self.size:
                return {"n_components": 2048, "landmarks": "rpcholesky"}
            if not self.shape.has_gamma:  # a level of few rows is one of the directions too
                return {"n_components": 1024, "landmarks": "rpcholesky"}
            return {"n_components": 1024}
        if self.size == 2:
            return {"n_cells": 1}
        larger = {3: LARGE_CELL, 4: HUGE_CELL}
        n_cells: Any = max(n_rows // larger[self.size], 1) if self.size in larger else "auto"
        copies = self.copies
        if n_cells == 1 or n_rows < 1.5 * CELL_ROWS:  # partitions into one cell are all the same
            return {"n_cells": n_cells}
        return {"n_cells": n_cells} | ({"n_partitions": copies} if copies > 1 else {})

    @property
    def copies(self) -> int:
        """The partitions of a model in cells."""
        return self.partitions or (PARTITIONS if self.size in (1, 3, 4) else 1)

    def params(self, n_rows: int, moments: Moments, *, numeric: bool) -> dict[str, Any]:
        """The parameters of the estimator but its encoder; ``moments`` are of its encoded rows."""
        found: dict[str, Any] = {
            "kernel": self.shape.kernel,
            "C": cost_of(self.shape.kernel, self.C, moments),
            "relevance": self.shape.relevance,
            **self.family(n_rows),
        }
        if not self.shape.has_gamma and not self.shape.cells:  # as many as columns are exact
            found["n_components"] = min(found["n_components"], len(moments.deviation))
        if found.get("n_partitions", 1) > 1:
            found["tol"] = ROUGH_TOLERANCE  # a mean gains more by partitions than by smaller gaps
        if self.shape.has_gamma:
            found["gamma"] = gamma_of(self.shape.kernel, self.factor, moments)
        if numeric:
            found |= {"epsilon": self.epsilon, "target_transform": "standard"}
            found |= {} if self.loss == TUBE else {"loss": self.loss}
        return found

    def __str__(self) -> str:
        copies = self.copies
        times = f" x{copies}" if copies > 1 else ""
        kinds = ("cells", "cells", "one exact cell", "large cells", "huge cells")
        family = kinds[self.size] + times if self.shape.cells else ("one map", "larger map")[self.size]
        relevance = f"{self.shape.relevance}, " if self.shape.relevance else ""
        columns = "as given" if self.shape.encoding == GIVEN else self.shape.encoding
        width = f"c={self.factor:.3g}, " if self.shape.has_gamma else ""
        tube = "" if self.epsilon == tube_of(self.loss) else f", epsilon={self.epsilon:.3g}"
        tube = tube if self.loss == TUBE else f", squares{tube}"
        return f"{self.shape.kernel}, {relevance}{family}, {columns}, {width}C={self.C:.3g}{tube}"


def tube_of(loss: str) -> float:
    """The usual half-width of the tube of a loss."""
    return EPSILON if loss == TUBE else 0.0


def is_absolute(kernel: str) -> bool:
    """Whether a kernel is one of |x - z|_1."""
    return formula_type(kernel).argument is Argument.ABSOLUTE_DISTANCE


def gamma_of(kernel: str, factor: float, moments: Moments) -> float:
    """The gamma of a kernel that is this much narrower than the rows."""
    deviation = moments.deviation
    if is_absolute(kernel):
        return float(np.sqrt(factor) / (deviation.sum() or 1.0))
    return formula_type(kernel).gamma_of(float((deviation**2).sum() or 1.0) / factor)


def cost_of(kernel: str, C: float, moments: Moments) -> float:
    """The C of the estimator: that of a linear kernel, whose k(x, x) is not 1, in units of the rows."""
    if kernel != "linear":
        return C
    return float(C / ((moments.deviation**2).sum() or 1.0))
