"""Files that are whole or absent, whatever happens while they are written.

A file is written under a name of its own, ``.NAME.TOKEN.tmp``, and locked until it has its place. One
that nobody holds a lock of was left by a process that was killed: whoever writes NAME next removes it.

Where the system has no such locks (Windows) nothing tells the one from the other, and what a killed
process has left stays until somebody removes it; files are whole or absent all the same.
"""

from __future__ import annotations

import io
import os
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]


@contextmanager
def replacing(path: str | Path) -> Iterator[BinaryIO]:
    """A file to write to that takes the place of ``path`` when all is on the disk.

    Temporary file in the same folder, fsync, rename, fsync of the folder. Where anything fails, a
    full disk included, the temporary file is removed and ``path`` stays as it was; an error of the
    system names ``path``. A link stays, and what it leads to is replaced. A pipe or a device is no
    file to be replaced: it is written to.
    """
    path = Path(path)
    if _is_other(path):
        with io.BufferedWriter(NamedOutput(path, "wb", path)) as stream:
            yield stream
        return
    path = path.resolve()
    remove_left_over(path)
    with _temporary(path) as (file, temporary):
        yield file
        with _named(path):
            file.flush()
            os.fsync(file.fileno())
            if fcntl is None:  # Windows renames no file that is open; elsewhere that would unlock it
                file.close()
            temporary.replace(path)
    _sync_folder(path.parent)


def check_writable(path: str | Path) -> None:
    """Raise the system's error where ``path`` could not be written by ``replacing``."""
    if not _is_other(Path(path)):
        path = Path(path).resolve()
        remove_left_over(path)
        with _temporary(path):
            pass


def remove_left_over(path: Path) -> None:
    """Remove what a process that was killed while it wrote ``path`` has left, where locks tell so."""
    if fcntl is None:
        return
    ours = re.compile(rf"\.{re.escape(path.name)}\.([0-9a-f]{{8}}|\d+)\.tmp")  # earlier versions: a PID
    with suppress(OSError):  # of a folder that cannot be read
        for name in os.listdir(path.parent):
            if ours.fullmatch(name) and path.with_name(name).is_file():
                with suppress(OSError), path.with_name(name).open("ab") as file:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # an error: somebody writes it
                    path.with_name(name).unlink()


def _is_other(path: Path) -> bool:
    return path.exists() and not path.is_file()


@contextmanager
def _temporary(path: Path) -> Iterator[tuple[BinaryIO, Path]]:
    """A locked file beside ``path``, removed where it has not taken another name."""
    while True:
        temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
        file: Any = io.BufferedWriter(NamedOutput(temporary, "xb", path))
        if fcntl is not None:
            with suppress(OSError):  # a disk without locks, where nobody can remove it either
                fcntl.flock(file, fcntl.LOCK_EX)
        if temporary.exists():  # and was not removed before it was locked
            break
        file.close()
    try:
        yield file, temporary
    finally:
        with suppress(OSError):  # told already: of bytes that the disk has no room for
            file.close()
        with suppress(OSError):
            temporary.unlink()


class NamedOutput(io.FileIO):
    """A file, or an open one by its number, whose errors are about ``name``."""

    def __init__(self, file: Path | int, mode: str, name: Path | str):
        self.shown = name
        with _named(name):
            super().__init__(file, mode, closefd=not isinstance(file, int))

    def write(self, content: Any) -> int:
        """Write the bytes, and return how many there were."""
        with _named(self.shown):
            return super().write(content)


@contextmanager
def _named(name: Path | str) -> Iterator[None]:
    """Errors of the system inside are about ``name``."""
    try:
        yield
    except OSError as error:
        error.filename, error.filename2 = str(name), None
        raise


def _sync_folder(folder: Path) -> None:
    """Put the rename itself on the disk, where the system can."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
