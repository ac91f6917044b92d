"""The loop of Algorithm 1: compiled (row form, blocked form), its state, its driver."""

from asset_svm.solvers.average import Average, CountWindow, FinalWindow, FractionWindow, NoWindow
from asset_svm.solvers.blocks import BlockRows, Cut, MappedRows, RowBlock
from asset_svm.solvers.driver import Driver
from asset_svm.solvers.state import ModelAxis, SolverState

__all__ = [
    "Average",
    "BlockRows",
    "CountWindow",
    "Cut",
    "Driver",
    "FinalWindow",
    "FractionWindow",
    "MappedRows",
    "ModelAxis",
    "NoWindow",
    "RowBlock",
    "SolverState",
]
