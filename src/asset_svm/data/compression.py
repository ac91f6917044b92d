"""Files as streams of bytes: plain, gz, bz2, xz, and standard input."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, cast

from asset_svm.exceptions import DataError

STANDARD_INPUT = "-"
LONGEST_LINE = 1 << 26
"""Bytes; a longer line is no row, but a file of another kind or an archive made to fill the memory."""
TOO_LONG = f"a line of more than {LONGEST_LINE >> 20} MiB"
_OPENERS: dict[str, Callable[[Path, str], Any]] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}


def stripped(path: Path) -> Path:
    """The path without the suffix of its compression."""
    return path.with_suffix("") if path.suffix.lower() in _OPENERS else path


@contextmanager
def opened(path: str | Path) -> Iterator[BinaryIO]:
    """The bytes of a file, decompressed by its suffix; "-" is standard input.

    What a decompressor says of a cut or damaged file becomes a ``DataError``.
    """
    if str(path) == STANDARD_INPUT:
        yield sys.stdin.buffer
        return
    path = Path(path)
    opener = _OPENERS.get(path.suffix.lower())
    if opener is None:
        with path.open("rb", buffering=1 << 20) as plain:
            yield plain
        return
    try:
        with opener(path, "rb") as packed:
            yield cast(BinaryIO, packed)
    except EOFError:
        raise DataError(
            f"{path} is cut: its {path.suffix[1:]} stream has no end; fetch it again."
        ) from None
    except (zlib.error, lzma.LZMAError, gzip.BadGzipFile) as error:
        raise DataError(f"{path} is not a whole {path.suffix[1:]} file ({error}).") from None
    except OSError as error:
        if error.errno is not None:  # of the disk, not of the decompressor
            raise
        raise DataError(f"{path} is not a whole {path.suffix[1:]} file ({error}).") from None


def filled(stream: BinaryIO, size: int) -> bytes:
    """``size`` bytes, fewer only at the end: a pipe gives what it has."""
    parts, left = io.BytesIO(), size
    while left:
        part = stream.read(left)
        if not part:
            break
        parts.write(part)
        left -= len(part)
    return parts.getvalue()


@dataclass(frozen=True)
class Piece:
    """Whole lines of a text; ``cut``: the beginning of one that is too long, or has no end."""

    text: bytes
    cut: bool = False


def last_newline(part: bytes) -> int:
    """The place behind the last line that ends in this part of a text, -1 where none does."""
    return part.rfind(b"\n") + 1 or -1


def pieces(
    stream: BinaryIO, size: int, last_end: Callable[[bytes], int] = last_newline
) -> Iterator[Piece]:
    """A text read ``size`` bytes at a time and cut where lines end.

    Parameters
    ----------
    last_end : callable
        Called with each part of the text in turn; the place behind the last line that ends in it,
        -1 where none does.
    """
    held, length = list[bytes](), 0
    while part := filled(stream, size):
        end = last_end(part)
        if end >= 0:
            yield Piece(b"".join([*held, part[:end]]))
            held, length, part = [], 0, part[end:]
        held.append(part)
        length += len(part)
        if length > LONGEST_LINE:
            yield Piece(b"".join(held), cut=True)
            return
    if length:
        yield Piece(b"".join(held))
