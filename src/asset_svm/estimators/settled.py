"""Parameters that say what a model is, and that nothing but a new fit can change."""

from __future__ import annotations

from typing import Any

from asset_svm.tasks import Outputs, Task

SETTLED = {"quantiles": "quantiles", "loss_name": "loss", "multi_class": "multi_class"}
"""The parameter that settles each of these fields of a task."""


def check_settled(begun: Task, asked: Task, target_transform: str | None) -> None:
    """Raise where parameters ask for another task than that of a model which is to go on learning."""
    begun, asked = _one(begun), _one(asked)
    pairs = [
        (parameter, getattr(begun, field, None), getattr(asked, field, None))
        for field, parameter in SETTLED.items()
    ]
    learnt_units = getattr(getattr(begun, "units", None), "kind", None)
    for parameter, learnt, wanted in [*pairs, ("target_transform", learnt_units, target_transform)]:
        if learnt != wanted:
            raise ValueError(
                f"{parameter}={wanted!r} was set after a fit with {parameter}={learnt!r}, and "
                "partial_fit goes on with the model of that; call fit, or set it back."
            )


def _one(task: Any) -> Any:
    """The task of one output, the first of several."""
    return task.parts[0] if isinstance(task, Outputs) else task
