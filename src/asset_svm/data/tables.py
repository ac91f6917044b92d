"""Tables with named columns: which of them are features, which is the target, and their values."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from asset_svm.data.source import check_targets
from asset_svm.exceptions import DataError

Array = npt.NDArray[Any]
USUAL_TARGETS = ("target", "label", "y", "class")
NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
BLANKS = " \t"
"""What may stand around a number, as in the other columns; a control character is a slip."""
MISSING = frozenset(
    (
        "", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN",
        "N/A", "NA", "NULL", "NaN", "n/a", "nan", "null",
    )
)  # fmt: skip
"""As pyarrow has it for columns of numbers."""
LONGEST_NAME = 1000
SHOWN = 40
"""Characters of a target that a message shows."""


def need_pyarrow(what: str) -> None:
    """Say which extra is missing, if it is."""
    try:
        import pyarrow  # noqa: F401
    except ImportError:
        raise ImportError(
            f'{what} needs pyarrow, which is not installed; run: pip install "asset-svm[files]"'
        ) from None


@dataclass(frozen=True)
class Columns:
    """The columns to read.

    Parameters
    ----------
    features : tuple of str
    target : str or None
        None where only features are wanted.
    """

    features: tuple[str, ...]
    target: str | None

    @classmethod
    def choose(
        cls,
        names: list[str],
        target: str | None,
        features: tuple[str, ...] | None,
        name: str,
    ) -> Columns:
        """From the names in the file: the target, and all others or those of ``features``."""
        seen: set[str] = set()
        for column in names:
            if column in seen:
                raise DataError(f"{name} has two columns named {column!r}; rename one.")
            seen.add(column)
        if features is None and target is None:
            usual = [column for column in names if column in USUAL_TARGETS]
            if len(usual) != 1:
                raise DataError(
                    f"{name} has the columns {listed(names)}; say which is the target with "
                    "target= (--target)."
                )
            target = usual[0]
        if features is None:
            features = tuple(column for column in names if column != target)
        elif target is None:
            usual = [c for c in names if c in USUAL_TARGETS and c not in features]
            target = usual[0] if len(usual) == 1 else None
        missing = [c for c in (*features, *([] if target is None else [target])) if c not in seen]
        if missing:
            raise DataError(f"{name} has no column {missing[0]!r}; its columns are {listed(names)}.")
        if not features:
            raise DataError(f"{name} has no column beside the target {target!r}.")
        return cls(features, target)

    @property
    def all(self) -> list[str]:
        """Features, then the target."""
        return [*self.features, *([] if self.target is None else [self.target])]


def listed(names: list[str]) -> str:
    """The names for a message."""
    shown = ", ".join(repr(column) for column in names[:8])
    return shown if len(names) <= 8 else f"{shown}, ... ({len(names)} in all)"


def as_matrix(batch: Any, columns: Columns, dtype: np.dtype[Any], place: Callable[[int], str]) -> Array:
    """The features of a record batch whose feature columns are numeric; ``place(i)`` names row i."""
    X = np.empty((batch.num_rows, len(columns.features)), dtype=dtype)
    for j, column in enumerate(columns.features):
        array = batch.column(column)
        if array.null_count:
            i = int(np.argmax(array.is_null().to_numpy(zero_copy_only=False)))
            raise DataError(f"{place(i)}, column {column!r}: the value is missing.")
        values = array.to_numpy(zero_copy_only=False)
        with np.errstate(over="ignore", invalid="ignore"):  # told below
            X[:, j] = values
        finite = np.isfinite(X[:, j])
        if not finite.all():
            i = int(np.argmin(finite))
            raise DataError(
                f"{place(i)}, column {column!r}: {values[i]} is not a finite {dtype} number."
            )
    return X


class TextTargets:
    """Targets that stand as text: numbers if the first of all is one, else names.

    What the first one has settled holds for all that follow: a column with both is a column of numbers
    with a slip in it. What pyarrow takes for a missing value in a column of numbers (an empty cell, NA,
    null, ...) is one here too.
    """

    def __init__(self, column: str):
        self.column, self.kind = column, ""

    def __call__(self, cells: Any, place: Callable[[int], str]) -> Array:
        """The targets of an arrow array of text; ``place(i)`` names row i."""
        import pyarrow as pa
        import pyarrow.compute as pc

        def where(i: int) -> str:
            return f"{place(i)}, column {self.column!r}"

        try:
            trimmed = pc.utf8_trim(cells, BLANKS)
            numbers: Array = pc.cast(trimmed, pa.float64()).to_numpy(zero_copy_only=False)
        except pa.ArrowInvalid:
            numbers = np.empty(0)
        if self.kind != "names" and len(numbers) and np.isfinite(numbers).all():
            self.kind = "numbers"
            return numbers
        return self._looked_at(cells, where)

    def _looked_at(self, cells: Any, where: Callable[[int], str]) -> Array:
        """The same by every different text: names, or whatever is wrong with them."""
        texts = names_of(cells, where)
        distinct, first, codes = np.unique(texts, return_index=True, return_inverse=True)
        stripped = [text.strip(BLANKS) for text in distinct.tolist()]
        numeric = np.array([NUMBER.fullmatch(text) is not None for text in stripped])
        if not self.kind:
            self.kind = "numbers" if numeric[codes[0]] else "names"
        for i, text, number in sorted(zip(first.tolist(), stripped, numeric.tolist(), strict=True)):
            if text in MISSING:
                raise DataError(
                    f"{where(i)}: the target is missing ({text!r}); drop the row, or fill it in."
                )
            if number != (self.kind == "numbers"):
                kind, others = ("a number", "are not") if number else ("no number", "are")
                raise DataError(
                    f"{where(i)}: the target {_shown(text)} is {kind}, and those before it {others}; "
                    "mend it, or name all classes by words."
                )
            if "\n" in text or "\r" in text:
                raise DataError(
                    f"{where(i)}: the target {_shown(text)} has a line break; is a quote missing?"
                )
        if self.kind == "names":
            return texts
        numbers = np.array([float(text) for text in stripped])[codes]
        check_targets(numbers, where)
        return numbers


def _shown(text: str) -> str:
    return repr(text if len(text) <= SHOWN else text[:SHOWN] + "...")


def names_of(cells: Any, place: Callable[[int], str]) -> Array:
    """An arrow array of text as numpy's.

    Empty ones are refused, and so is NUL, which numpy drops at the end of a text, and a text so long
    that numpy's array, as wide as the longest of them, would fill the memory.
    """
    try:
        names = cells.to_pylist()
    except UnicodeDecodeError:
        raise DataError(f"{place(0)} or below: the target is not UTF-8 text.") from None
    for i, text in enumerate(names):
        if not text.strip():
            raise DataError(
                f"{place(i)}: the target is missing ({text!r}); drop the row, or fill it in."
            )
        if len(text) > LONGEST_NAME:
            raise DataError(
                f"{place(i)}: the target {_shown(text)} has {len(text)} characters, which no class "
                "has; name the right column, or close the quotes."
            )
        if "\0" in text:
            raise DataError(f"{place(i)}: the target {text!r} has a NUL character; remove it.")
    return np.asarray(names, dtype=np.str_)
