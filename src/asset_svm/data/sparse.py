"""The structure of sparse matrices: compiled code reads beyond the arrays of one that is not sound.

scipy checks it when a matrix is made, not when its arrays are changed afterwards or come from a file.
"""

from __future__ import annotations

from typing import Any

from asset_svm.arrays import Array
from asset_svm.data.pages import give_back

CHECKED = 1 << 20
"""Entries that are looked at together: a mapped file shall not be in memory as a whole."""


def fault_of(X: Any) -> str | None:
    """What is wrong with the indices of a CSR, CSC, BSR or COO matrix; None: nothing."""
    if X.ndim != 2:
        return None  # refused for that
    if X.format == "coo":
        return _out_of(X.row, X.shape[0], "row") or _out_of(X.col, X.shape[1], "column")
    if X.format not in ("csr", "csc", "bsr"):
        return None
    major, minor = X.shape if X.format != "csc" else X.shape[::-1]
    if X.format == "bsr":
        major, minor = major // X.blocksize[0], minor // X.blocksize[1]
    indptr, entries = X.indptr, min(len(X.indices), len(X.data))
    if len(indptr) != major + 1 or indptr[0] != 0:
        return f"indptr has {len(indptr)} values from {indptr[:1]}, and must have {major + 1} from 0"
    for begin in range(0, major, CHECKED):
        part = indptr[begin : begin + CHECKED + 1]
        if (part[1:] < part[:-1]).any():
            return f"indptr decreases between {begin} and {begin + len(part) - 1}"
    if indptr[-1] > entries:
        return f"indptr ends at {indptr[-1]}, and there are {entries} entries"
    return _out_of(X.indices[: int(indptr[-1])], minor, "row" if X.format == "csc" else "column")


def _out_of(indices: Array, count: int, what: str) -> str | None:
    for begin in range(0, len(indices), CHECKED):
        part = indices[begin : begin + CHECKED]
        low, high = int(part.min()), int(part.max())
        if low < 0 or high >= count:
            index = low if low < 0 else high
            return f"the {what} index {index} is not among its {count} {what}s, counted from 0"
        give_back(indices)
    return None
