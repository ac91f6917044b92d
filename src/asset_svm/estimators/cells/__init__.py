"""Estimators of cells: a partition of the input space, and models of their own in every cell.

A cell is the exact SVM of its rows; one that is too large for that, and every cell of a stream, is an
estimator of the same class and parameters, without cells, on the rows of the cell. With a card, it
finds the cells, solves the exact ones and decides; what is stored is the same.

    partitions    how many cells there are, and which rows they have
    trainer       one cell, from its rows to its decision function
    nested        estimators of one cell
    progress      who looks on while they are trained
    fit           all cells of all rows
    online        cells that learn from one batch after the other
    decision      the decision function of all cells: what a fitted model is made of
"""

from asset_svm.estimators.cells.decision import CellDecision, CellModels, Constant
from asset_svm.estimators.cells.nested import Nested

__all__ = ["CellDecision", "CellModels", "Constant", "Nested"]
