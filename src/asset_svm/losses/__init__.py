"""Losses loss(y, f) of a margin f = v.coef + b, one a file, with everything the method asks of them.

A new loss is a file like the others here, an entry of ``table`` and a line below.
"""

from asset_svm.losses.base import Loss, best_intercept
from asset_svm.losses.epsilon_insensitive import EpsilonInsensitive
from asset_svm.losses.hinge import Hinge
from asset_svm.losses.table import LOSSES, loop_arguments, scalar_excess, scalar_slope

__all__ = [
    "LOSSES",
    "EpsilonInsensitive",
    "Hinge",
    "Loss",
    "best_intercept",
    "loop_arguments",
    "scalar_excess",
    "scalar_slope",
]
