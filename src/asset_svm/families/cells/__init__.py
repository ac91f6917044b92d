"""Cells: a partition of the input space, and models of their own in every cell.

A cell is the exact SVM of its rows; one that is too large for that, and every cell of a stream, is a
model on one map of the rows of the cell. With a card, it finds the cells, solves the exact ones and
decides; what is stored is the same.

    partitions    which rows the cells have
    trainer       one cell, from its rows to its decision function
    nested        models of one cell
    progress      who looks on while they are trained
    fit           all cells of all rows
    online        cells that learn from one batch after the other
    decision      the decision function of all cells
    flat          exact cells as a few arrays, for compiled loops over whole batches
    constant      cells that decide the same for every row
    fitted        what a fit leaves
"""

from __future__ import annotations

from asset_svm.families.base import Trained
from asset_svm.families.cells.constant import Constant
from asset_svm.families.cells.decision import CellDecision, CellModels
from asset_svm.families.cells.fit import fit_cells, warn_of_cells
from asset_svm.families.cells.fitted import FittedCells
from asset_svm.families.cells.nested import Nested
from asset_svm.families.cells.online import begin_stream, go_on
from asset_svm.settings import Settings

__all__ = ["CellDecision", "CellModels", "Cells", "Constant", "FittedCells", "Nested"]


class Cells:
    """The family of models of cells."""

    fit = staticmethod(fit_cells)
    begin = staticmethod(begin_stream)
    go_on = staticmethod(go_on)

    def check(self, settings: Settings) -> None:
        """Raise where a parameter is that of runs in epochs.

        Those of one map serve cells that are too large to be solved whole, and streams; where every
        cell is solved whole, ``fit`` says so.
        """
        if settings.early_stopping:
            raise ValueError(
                "early_stopping=True looks at one model after every epoch, and cells are solved one "
                "after the other; set early_stopping=False, or n_cells=None."
            )
        if settings.warm_start:
            raise ValueError(
                "warm_start=True goes on from the steps of an earlier fit, and cells are solved anew, "
                "without steps; set warm_start=False, or n_cells=None."
            )

    def warn(self, settings: Settings, trained: Trained[FittedCells]) -> None:
        """Warn where a model is not what was asked for."""
        warn_of_cells(settings, trained.fitted)
