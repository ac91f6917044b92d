"""What ``--checkpoint`` and ``--resume`` are for every command that learns."""

from __future__ import annotations

from typing import Any

from asset_svm.cli.columns import ColumnOptions
from asset_svm.cli.options import UsageError
from asset_svm.data.compression import STANDARD_INPUT
from asset_svm.storage.checkpoint import Checkpoint, SavedRun

NAMES = (
    *ColumnOptions.__dataclass_fields__,
    "scale",
    "task",
    "target",
    "format",
    "zero_based",
    "n_features",
    "dtype",
)
"""Options that a resumed run must find as they were, beside the parameters of its estimator."""


def check_checkpoint(data: str, folder: str | None, *, resume: bool) -> None:
    """Refuse options of a checkpoint that cannot be."""
    if resume and folder is None:
        raise UsageError("--resume needs --checkpoint DIR, where the run was saved.")
    if folder is not None and data == STANDARD_INPUT:
        raise UsageError("--checkpoint: standard input cannot be read again; save it to a file.")


def check_options(
    store: Checkpoint, saved: SavedRun, now: dict[str, Any], *, search: bool = False
) -> None:
    """Refuse options that are not those of the run to go on with."""
    saved.check_kind(search=search)
    before = store.notes.get("options", {})
    for name in (name for name in now if now[name] != before.get(name)):
        raise UsageError(
            f"{_shown(name, now[name])}: the run to resume has {_shown(name, before.get(name))}; "
            "resume with the options that it had."
        )


def _shown(name: str, value: Any) -> str:
    """An option as it is written, or that it is not."""
    option = "--" + name.replace("_", "-")
    if value is None or value is False:
        return f"no {option}"
    return option if value is True else f"{option} {value}"
