"""Pages of mapped files: they count as memory of the process until they are given back."""

from __future__ import annotations

import mmap
from typing import Any


def give_back(*arrays: Any) -> None:
    """Let go of the pages of the files that these arrays are maps of; reading brings them back."""
    for array in arrays:
        while array is not None and not isinstance(array, mmap.mmap):
            array = getattr(array, "base", None)
        if array is not None and hasattr(array, "madvise"):
            array.madvise(mmap.MADV_DONTNEED)
