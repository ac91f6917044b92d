"""Where a command writes: told before it works, named where it fails, and never over what it reads."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import Any

from asset_svm.cli.options import UsageError
from asset_svm.storage.atomic import NamedOutput, check_writable


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


def name_standard_output() -> None:
    """Let errors of standard output name it, whoever writes there."""
    plain: Any = sys.stdout
    if plain is None:  # closed by whoever runs the command
        return
    raw = NamedOutput(plain.fileno(), "wb", "standard output")
    sys.stdout = io.TextIOWrapper(
        raw if plain.write_through else io.BufferedWriter(raw),
        encoding=plain.encoding,
        errors=plain.errors,
        line_buffering=plain.line_buffering,
        write_through=plain.write_through,
    )
