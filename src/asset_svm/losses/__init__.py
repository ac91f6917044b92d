"""Losses loss(y, f) of a margin f = v.coef + b, one a file, with everything the method asks of them.

A new loss is a file like the others here and an entry of ``table``; a task has it.
"""

from asset_svm.losses.base import Loss, best_intercept, dual_ridge
from asset_svm.losses.epsilon_insensitive import EpsilonInsensitive
from asset_svm.losses.hinge import Hinge
from asset_svm.losses.table import (
    LOSSES,
    is_seen,
    loop_arguments,
    loss_of,
    scalar_excess,
    scalar_slope,
)

__all__ = [
    "LOSSES",
    "EpsilonInsensitive",
    "Hinge",
    "Loss",
    "best_intercept",
    "dual_ridge",
    "is_seen",
    "loop_arguments",
    "loss_of",
    "scalar_excess",
    "scalar_slope",
]
