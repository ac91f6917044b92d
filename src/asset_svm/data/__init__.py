"""Where rows, targets and their order come from."""

from asset_svm.data.order import GivenOrder, Order, ShuffledOrder, UniformOrder
from asset_svm.data.targets import (
    JoinedTargets,
    OneVsRestTargets,
    PairTargets,
    RealTargets,
    ShiftedTargets,
    Targets,
    models_of_a_row,
)

__all__ = [
    "GivenOrder",
    "JoinedTargets",
    "OneVsRestTargets",
    "Order",
    "PairTargets",
    "RealTargets",
    "ShiftedTargets",
    "ShuffledOrder",
    "Targets",
    "UniformOrder",
    "models_of_a_row",
]
