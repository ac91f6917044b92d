"""``asset train --one-class``: which options go with it."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

from asset_svm.cli.options import UsageError
from asset_svm.estimators import AssetOutlierDetector
from asset_svm.estimators.outliers import ANSWERS

if TYPE_CHECKING:
    from asset_svm.cli.train import Training

WITHOUT = {
    "probability": "there are no classes",
    "classes": "there are no classes",
    "dask": "a cluster has no way to it yet",
}
"""Options of training that do not go with one class, and why."""


def check_one_class(run: Training) -> None:
    """Refuse options that need targets, and ``--nu`` where it says nothing."""
    if not run.one_class:
        if run.nu is not None:
            raise UsageError(f"--nu {run.nu:g} goes with --one-class; other models have C.")
        return
    if run.task != "auto":
        raise UsageError(f"--task {run.task} does not go with --one-class, which has no targets.")
    for name, why in WITHOUT.items():
        if getattr(run, name):
            raise UsageError(f"--{name} does not go with --one-class: {why}; leave one of them out.")


def check_parameters(params: dict[str, Any]) -> None:
    """Refuse parameters that one class has not."""
    known = inspect.signature(AssetOutlierDetector).parameters
    for name in params:
        if name not in known:
            option, why = "--" + name.replace("_", "-"), ANSWERS.get(name)
            told = "it has no such parameter; leave it out" if why is None else "; ".join(why[1:])
            raise UsageError(f"{option} does not go with --one-class: {told}.")
