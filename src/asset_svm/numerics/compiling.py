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
