"""Targets that stand as text, in whatever kind of file: numbers or names, never both."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from asset_svm.arrays import Array
from asset_svm.data.notation import BLANKS, FOREIGN, Kind, kind_of, shown
from asset_svm.exceptions import DataError

LONGEST_NAME = 1000


@dataclass(frozen=True)
class _Seen:
    """Targets of a kind: how many there were, and the first of them."""

    count: int
    place: str
    text: str


class TextTargets:
    """The targets of a pass over the rows, a block at a time: all of them numbers, or all names.

    A column with both is a column with a slip in it, whichever comes first: the first one of those that
    are fewer, or the first name where there are as many. What any reader of tables takes for a missing
    value (an empty cell, NA, null, ...) is no name here, and no more is a number in a notation that is
    not read.

    Parameters
    ----------
    gaps : frozenset of str
        More texts that are missing values, in lower case.
    """

    def __init__(self, gaps: frozenset[str] = frozenset()) -> None:
        self.gaps, self.seen = gaps, dict[str, _Seen]()
        self.quick = not any(kind_of(text) == "number" for text in gaps)

    def __call__(self, texts: Array, place: Callable[[int], str]) -> Array:
        """The targets of numpy's texts; ``place(i)`` names row i."""
        distinct, codes = np.unique(texts, return_inverse=True)
        return self._judged(distinct.tolist(), codes, place)

    def of_arrow(self, cells: Any, place: Callable[[int], str]) -> Array:
        """The targets of an arrow array of text."""
        import pyarrow as pa
        import pyarrow.compute as pc

        if "name" not in self.seen and len(cells) and self.quick:
            try:  # the usual case, which needs no look at every text
                numbers: Array = pc.cast(pc.utf8_trim(cells, BLANKS), pa.float64()).to_numpy(
                    zero_copy_only=False
                )
            except pa.ArrowInvalid:
                numbers = np.full(1, np.nan)
            if np.isfinite(numbers).all():
                self._count("number", len(numbers), place(0), cells[0].as_py())
                return numbers
        coded = cells.dictionary_encode()
        try:
            distinct = coded.dictionary.to_pylist()
        except UnicodeDecodeError:
            raise DataError(f"{place(0)} or below: the target is not UTF-8 text.") from None
        return self._judged(distinct, coded.indices.to_numpy(zero_copy_only=False), place)

    def _judged(self, distinct: list[str], codes: Array, place: Callable[[int], str]) -> Array:
        """The targets by every different text, or whatever is wrong with the first that is."""
        texts = [text.strip(BLANKS) for text in distinct]
        first = np.empty(len(texts), dtype=np.int64)
        first[codes[::-1]] = np.arange(len(codes))[::-1]
        counts = np.bincount(codes, minlength=len(texts)).tolist()
        for k in np.argsort(first).tolist():
            kind = "missing" if texts[k].lower() in self.gaps else kind_of(texts[k])
            fault = _fault(texts[k], kind)
            if fault is not None:
                raise DataError(f"{place(int(first[k]))}: {fault}.")
            self._count(kind, counts[k], place(int(first[k])), texts[k])
        if len(self.seen) == 2:
            raise DataError(self._slip())
        if "name" in self.seen:
            return np.asarray(texts, dtype=np.str_)[codes]
        numbers = np.array([float(text) for text in texts])[codes]
        if not np.isfinite(numbers).all():
            i = int(np.argmin(np.isfinite(numbers)))
            raise DataError(f"{place(i)}: {numbers[i]} is not a finite number.")
        return numbers

    def _count(self, kind: str, count: int, place: str, text: str) -> None:
        seen = self.seen.get(kind) or _Seen(0, place, text)
        self.seen[kind] = replace(seen, count=seen.count + count)

    def _slip(self) -> str:
        """What to say of numbers and names in one column."""
        odd = "number" if self.seen["number"].count < self.seen["name"].count else "name"
        what, others = ("a number", "are not") if odd == "number" else ("no number", "are")
        slip = self.seen[odd]
        return (
            f"{slip.place}: the target {shown(slip.text)} is {what}, and others {others}; mend it, or "
            "name all classes by words."
        )


def _fault(text: str, kind: Kind) -> str | None:
    """What is wrong with a target, if anything is.

    numpy drops NUL at the end of a text, and an array of texts is as wide as the longest of them.
    """
    if kind == "missing":
        return f"the target is missing ({text!r}); drop the row, or fill it in"
    if len(text) > LONGEST_NAME:
        return (
            f"the target {shown(text)} has {len(text)} characters, which no class has; name the right "
            "column, or close the quotes"
        )
    if "\0" in text:
        return f"the target {text!r} has a NUL character; remove it"
    if "\n" in text or "\r" in text:
        return f"the target {shown(text)} has a line break; is a quote missing?"
    if kind == "foreign":
        return f"the target {shown(text)} {FOREIGN}, and name classes by words"
    return None
