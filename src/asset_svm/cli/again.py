"""The command that trains the best model of a race once more."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

from asset_svm.cli.options import PARAMETERS, written

if TYPE_CHECKING:
    from asset_svm.cli.run import Run

ROWS = ("task", "target", "format", "zero_based", "n_features", "dtype", "scale")
COLUMNS = ("categorical", "numeric", "drop", "missing", "decimal", "encoding")
OTHERS = ("probability", "resumable", "memory", "jobs", "dask")
USUAL = {"task": "auto", "dtype": "float32", "scale": "auto"}
"""Values of options that need not be written."""


def command_of(run: Run, params: dict[str, Any]) -> str:
    """``asset train`` with what a race has found, and the options about rows that it was given.

    Options that no model depends on are left out: ``-o``, ``--test``, ``--report``.
    """
    words = ["asset", "train", run.data]
    for name in (*ROWS, *COLUMNS):
        words += _option(run, name)
    encoder = params.get("encoder")
    if encoder is not None:
        words += ["--numbers", str(encoder.numbers)]
    known = [parameter.name for parameter in PARAMETERS]
    for name in known:
        if params.get(name) is not None:
            words += written(name, params[name])
        elif name not in params and run.parameters.get(name) not in (None, False):
            words += [f"--{name.replace('_', '-')}", str(run.parameters[name])]
    for name in OTHERS:
        words += _option(run, name)
    return shlex.join([*words, "--seed", str(run.seed)])


def _option(run: Run, name: str) -> list[str]:
    """An option as it was given; none where it was not."""
    value = getattr(run, name, None)
    if value is None or value is False or value == USUAL.get(name):
        return []
    option = "--" + name.replace("_", "-")
    return [option] if value is True else [option, str(value)]
