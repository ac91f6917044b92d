"""``asset train --auto``: the race of ``asset tune``, by the options of training."""

from __future__ import annotations

from typing import Any

from asset_svm.cli.options import PARAMETERS, UsageError
from asset_svm.cli.tune import Tuning
from asset_svm.search.racing import RACING

WHY = {
    "online": "learns in one pass, and a race looks at rows many times",
    "classes": "goes with --online, which a race does not",
    "one_class": "has no targets, and a race judges by them",
    "nu": "goes with --one-class, which a race does not",
}
"""Options of training that do not go with a race."""


def train_by_race(given: dict[str, Any], parameters: dict[str, Any], **shared: Any) -> None:
    """Find the best model by a race; ``given`` are options of training that a race has not."""
    for name, why in WHY.items():
        if given[name]:
            raise UsageError(
                f"--{name.replace('_', '-')} {why}; leave it out, or train without --auto."
            )
    for name in ("quantiles", "intervals"):
        if not parameters[name]:
            continue
        raise UsageError(
            f"--{name}: a race is for classes or the middle of numbers; train without --auto, with "
            "the options that asset tune prints."
        )
    for parameter in PARAMETERS:
        value = parameters[parameter.name]
        if parameter.name not in RACING and value is not None and value is not False:
            shown = parameter.option if parameter.flag else f"{parameter.option} {value}"
            raise UsageError(f"{shown}: a race chooses it; leave it out, or train without --auto.")
    Tuning(parameters=parameters, always_races=True, **shared).run()
