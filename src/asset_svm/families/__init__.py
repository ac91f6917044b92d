"""Kinds of models, behind one interface: one map for all rows, or cells with models of their own.

base          what a family is, and what it returns
rows          rows to learn from, their weights and the order of visits
decision      decision functions: what a fitted model predicts with
observing     who looks on while a model is trained
beginning     the first rows of a stream
one_map       a linear model on the features of one map
cells         exact SVMs in the cells of a partition
relevance     either of them, behind a map of the columns that is learnt first
blend         a weighted mean of several of these
"""

from typing import Any

from asset_svm.families.base import Family, Fitted, Trained
from asset_svm.families.cells import Cells, FittedCells
from asset_svm.families.one_map import OneMap
from asset_svm.families.relevance import FittedRelevance, Relevant
from asset_svm.settings import Settings

__all__ = ["Cells", "Family", "Fitted", "OneMap", "Relevant", "Trained", "family_of", "family_of_model"]


def family_of(settings: Settings) -> Family[Any]:
    """The family that the settings ask for."""
    plain: Family[Any] = OneMap() if settings.n_cells is None else Cells()
    return plain if settings.relevance is None else Relevant(plain)


def family_of_model(fitted: Fitted) -> Family[Any]:
    """The family that a model is of."""
    if isinstance(fitted, FittedRelevance):
        return Relevant(family_of_model(fitted.inner))
    return Cells() if isinstance(fitted, FittedCells) else OneMap()
