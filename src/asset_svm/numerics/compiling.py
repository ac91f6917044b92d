"""Compiled functions, cached on disk where there is a place for it.

numba keeps what it has compiled beside the source, or in the user's cache folder, and refuses a
function for which it can write to neither: in a container with a read-only root and no home. Such a
function is compiled anew by every process, which takes seconds, and works.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import numba
import numpy as np

from asset_svm.arrays import Array

logger = logging.getLogger("asset_svm")
_told = False


def njit(**options: Any) -> Callable[[Any], Any]:
    """``numba.njit`` that does without a cache where there can be none."""

    def compiled(function: Any) -> Any:
        try:
            return numba.njit(**options)(function)
        except RuntimeError as error:
            if "cannot cache" not in str(error):
                raise
            _tell()
            return numba.njit(**{**options, "cache": False})(function)

    return compiled


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
