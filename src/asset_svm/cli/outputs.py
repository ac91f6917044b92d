"""Where a command writes: told before it works, and never over what it reads."""

from __future__ import annotations

from pathlib import Path

from asset_svm.cli.options import UsageError
from asset_svm.storage.atomic import check_writable


def check_output(option: str, path: str | None, others: dict[str, str | None]) -> None:
    """Raise where a file cannot be written, or is one of ``others``, by their options.

    It is tried, since rights, quotas and disks that are read only have many reasons.
    """
    if path is None:
        return
    if Path(path).is_dir():
        raise UsageError(f"{option} {path}: is a folder; name a file.")
    if not Path(path).exists() and not Path(path).resolve().parent.is_dir():
        raise UsageError(f"{option} {path}: there is no folder {Path(path).parent}.")
    for name, other in others.items():
        if other is not None and Path(other).resolve() == Path(path).resolve():
            raise UsageError(
                f"{option} {path}: is also {name}, which it would overwrite; name another."
            )
    check_writable(path)
