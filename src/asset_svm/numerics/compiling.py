"""Compiled functions, cached on disk where there is a place for it.

numba keeps what it has compiled beside the source, or in the user's cache folder, and refuses a
function for which it can write to neither: in a container with a read-only root and no home. Such a
function is compiled anew by every process, which takes seconds, and works.

numba takes what it has kept for good as long as the file of the function is the same. A compiled
function has those of other files inside it, and would go on computing what they no longer say: here it
is good as long as all compiled code of the library is the same.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numba
import numpy as np
from numba.core import event

from asset_svm.arrays import Array
from asset_svm.numerics.compile_time import compile_time

logger = logging.getLogger("asset_svm")
PACKAGE = Path(__file__).parent.parent
_told = False


class _Told(event.Listener):  # type: ignore[misc]  # numba has no types
    """Passes on when numba compiles, which it does not where a cache has the function."""

    def on_start(self, event: Any) -> None:
        compile_time.begin()

    def on_end(self, event: Any) -> None:
        compile_time.end()


event.register("numba:compile", _Told())


def njit(**options: Any) -> Callable[[Any], Any]:
    """``numba.njit`` that does without a cache where there can be none."""

    def compiled(function: Any) -> Any:
        try:
            return _stamped(numba.njit(**options)(function))
        except RuntimeError as error:
            if "cannot cache" not in str(error):
                raise
            _tell()
            return numba.njit(**{**options, "cache": False})(function)

    return compiled


def _stamped(dispatcher: Any) -> Any:
    """The compiled function, whose cache is good as long as no compiled code has changed."""
    index = getattr(getattr(dispatcher, "_cache", None), "_cache_file", None)  # numba's own affair
    stamp = compiled_sources(PACKAGE)
    if index is not None and hasattr(index, "_source_stamp") and stamp:
        index._source_stamp = (index._source_stamp, stamp)
    return dispatcher


@cache
def compiled_sources(folder: Path) -> str:
    """A digest of all files below a folder that have compiled functions; "" where there are none."""
    try:
        texts = [path.read_bytes() for path in sorted(folder.rglob("*.py"))]
    except OSError:
        return ""
    found = [text for text in texts if b"njit(" in text]
    return blake2b(b"\0".join(found), digest_size=16).hexdigest() if found else ""


class _Lent:
    """The memory of an array, as if it could be written to."""

    def __init__(self, array: Array):
        self.array = array  # lives as long
        found = array.__array_interface__
        self.__array_interface__ = {**found, "data": (found["data"][0], False)}


def lent(X: Array) -> Array:
    """A dense matrix in order, for compiled code that only reads it.

    numba takes an array that cannot be written to, or that is of a class of its own, such as a memory
    map, for another type, and would compile for seconds to no avail.
    """
    X = np.ascontiguousarray(X)
    return X if X.flags.writeable else np.asarray(_Lent(X))


def _tell() -> None:
    """Log it, once a process."""
    global _told
    if not _told:
        _told = True
        logger.warning(
            "Compiled code cannot be cached: neither the folder of asset_svm nor that of the user's "
            "caches can be written to; every process compiles anew, which takes seconds. Set "
            "NUMBA_CACHE_DIR to a folder that can be written to."
        )
