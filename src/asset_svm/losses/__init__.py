"""Losses loss(y, f) of a margin f = v.coef + b, one a file, with everything the method asks of them.

A new loss is a file like the others here and an entry of ``table``; a task has it.
"""

from asset_svm.losses.base import Loss, best_intercept, dual_ridge
from asset_svm.losses.epsilon_insensitive import EpsilonInsensitive
from asset_svm.losses.hinge import Hinge
from asset_svm.losses.huber import Huber
from asset_svm.losses.logistic import Logistic
from asset_svm.losses.pinball import Pinball
from asset_svm.losses.squared_epsilon_insensitive import SquaredEpsilonInsensitive
from asset_svm.losses.squared_hinge import SquaredHinge
from asset_svm.losses.table import (
    LOSSES,
    axis_arguments,
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
    "Huber",
    "Logistic",
    "Loss",
    "Pinball",
    "SquaredEpsilonInsensitive",
    "SquaredHinge",
    "axis_arguments",
    "best_intercept",
    "dual_ridge",
    "is_seen",
    "loop_arguments",
    "loss_of",
    "scalar_excess",
    "scalar_slope",
]
