"""What the files of a run were: sizes, times, and a digest of every byte.

The digest is made by a thread of its own while the rows are read for the first time, from pages that
are in memory then anyway. Files of the same sizes and times are the same; others are read to be told.
Times are those of content and of the entry itself: the former can be set to what it was.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from asset_svm.exceptions import DataError

READ = 1 << 20


@dataclass(frozen=True)
class Fingerprint:
    """What files were.

    Parameters
    ----------
    sizes, times : tuple of int
        Bytes of each file, and the nanosecond of its last change.
    digest : str
        BLAKE2b of all of them, one after the other.
    """

    sizes: tuple[int, ...]
    times: tuple[int, ...]
    digest: str

    @classmethod
    def of(cls, files: Iterable[Path], stop: Callable[[], bool] = lambda: False) -> Fingerprint:
        """Read the files, to the end unless ``stop`` says otherwise."""
        files = tuple(files)
        before = _state(files)
        digest = hashlib.blake2b(digest_size=32)
        for path in files:
            with path.open("rb", buffering=0) as file:
                while not stop() and (part := file.read(READ)):
                    digest.update(part)
        if _state(files) != before:
            names = ", ".join(map(str, files))
            raise DataError(f"{names}: changed while it was read; begin again when it is whole.")
        return cls(*before, digest.hexdigest())

    def fits(self, files: Iterable[Path]) -> bool:
        """Whether files are still the same: sizes tell at once, times mostly, and else all bytes."""
        files = tuple(files)
        sizes, times = _state(files)
        if sizes != self.sizes or times == self.times:
            return sizes == self.sizes
        return self.digest == Fingerprint.of(files).digest


@dataclass(frozen=True)
class Steady:
    """Whether files stay what they were when a run first read them: size, time of content, identity.

    Cheap enough for the beginning and the end of every pass, where a digest of every byte is not.
    """

    files: tuple[Path, ...]
    found: tuple[tuple[int, int, int], ...]

    @classmethod
    def of(cls, files: Iterable[Path]) -> Steady:
        """What the files are now."""
        files = tuple(files)
        return cls(files, tuple(map(_identity, files)))

    def check(self) -> None:
        """Raise where a file is not what it was."""
        for path, before in zip(self.files, self.found, strict=True):
            try:
                same = _identity(path) == before
            except FileNotFoundError:
                raise DataError(
                    f"{path}: was moved or removed while it was read; begin again when it is back."
                ) from None
            if not same:
                raise DataError(f"{path}: changed while it was read; begin again when it is whole.")


def _identity(path: Path) -> tuple[int, int, int]:
    found = path.stat()
    return found.st_size, found.st_mtime_ns, found.st_ino


def _state(files: tuple[Path, ...]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    found = [path.stat() for path in files]
    times = [time for each in found for time in (each.st_mtime_ns, each.st_ctime_ns)]
    return tuple(each.st_size for each in found), tuple(times)


@contextmanager
def fingerprinted(files: Iterable[Path]) -> Iterator[Callable[[], Fingerprint]]:
    """Make a fingerprint in the background; the function that is given waits for it."""
    stopped = False
    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(Fingerprint.of, files, lambda: stopped)
        try:
            yield future.result
        finally:
            stopped = True
