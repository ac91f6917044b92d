"""Parameters that say what a model is, and that nothing but a new fit can change."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from asset_svm.families import Fitted
from asset_svm.families.one_map import FittedMap
from asset_svm.settings import Settings
from asset_svm.tasks import Outputs, Task

SETTLED = {"quantiles": "quantiles", "loss_name": "loss", "multi_class": "multi_class", "nu": "nu"}
"""The parameter that settles each of these fields of a task."""
OF_KERNEL = "kernel", "gamma", "degree", "coef0"
"""The parameters that settle a kernel, which come first in the key of a map."""


def check_settled(begun: Task, asked: Task, target_transform: str | None) -> None:
    """Raise where parameters ask for another task than that of a model which is to go on learning."""
    begun, asked = _one(begun), _one(asked)
    pairs = [
        (parameter, getattr(begun, field, None), getattr(asked, field, None))
        for field, parameter in SETTLED.items()
    ]
    learnt_units = getattr(getattr(begun, "units", None), "kind", None)
    _refuse_others([*pairs, ("target_transform", learnt_units, target_transform)])


def check_kernel(begun: Fitted | None, settings: Settings) -> None:
    """Raise where parameters ask for another kernel than that of a model on one map.

    Of a model that did not draw its map (one from a cluster, or of a file) nothing is known to compare.
    """
    if isinstance(begun, FittedMap) and begun.map_key is not None:
        learnt, asked = dict(zip(OF_KERNEL, begun.map_key, strict=False)), settings.map
        _refuse_others([(name, learnt[name], getattr(asked, name)) for name in OF_KERNEL])


def _refuse_others(pairs: Iterable[tuple[str, Any, Any]]) -> None:
    """Raise at the first of these (parameter, what was learnt with, what is asked for) that differs."""
    for parameter, learnt, wanted in pairs:
        if learnt != wanted:
            raise ValueError(
                f"{parameter}={wanted!r} was set after a fit with {parameter}={learnt!r}, and "
                "partial_fit goes on with the model of that; call fit, or set it back."
            )


def _one(task: Any) -> Any:
    """The task of one output, the first of several."""
    return task.parts[0] if isinstance(task, Outputs) else task
