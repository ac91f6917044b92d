"""Where rows, targets and their order come from."""

from asset_svm.data.order import GivenOrder, Order, ShuffledOrder, UniformOrder
from asset_svm.data.targets import (
    JoinedTargets,
    OneVsRestTargets,
    PairTargets,
    RealTargets,
    Targets,
)

__all__ = [
    "GivenOrder",
    "JoinedTargets",
    "OneVsRestTargets",
    "Order",
    "PairTargets",
    "RealTargets",
    "ShuffledOrder",
    "Targets",
    "UniformOrder",
]
