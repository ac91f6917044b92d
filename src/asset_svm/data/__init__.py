"""Where rows, targets and their order come from."""

from asset_svm.data.order import GivenOrder, Order, ShuffledOrder, UniformOrder
from asset_svm.data.targets import OneVsRestTargets, RealTargets, ShiftedTargets, Targets

__all__ = [
    "GivenOrder",
    "OneVsRestTargets",
    "Order",
    "RealTargets",
    "ShiftedTargets",
    "ShuffledOrder",
    "Targets",
    "UniformOrder",
]
