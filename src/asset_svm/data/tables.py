"""Tables with named columns: which of them are features, which is the target, and their values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from asset_svm.arrays import Array
from asset_svm.exceptions import DataError

USUAL_TARGETS = ("target", "label", "y", "class")


def need_pyarrow(what: str) -> None:
    """Raise where pyarrow, by which ``what`` is done, is not installed."""
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
    targets : tuple of str
        None where only features are wanted.
    """

    features: tuple[str, ...]
    targets: tuple[str, ...]

    @classmethod
    def choose(
        cls,
        names: list[str],
        target: str | Sequence[str] | None,
        features: tuple[str, ...] | None,
        name: str,
        *,
        targets: bool = True,
    ) -> Columns:
        """The columns, from the names in the file: the target, and all others or those of ``features``.

        Several targets are named in a sequence, or one after the other with commas. Without ``targets``
        their columns are left out, if there are any.
        """
        seen: set[str] = set()
        for column in names:
            if column in seen:
                raise DataError(f"{name} has two columns named {column!r}; rename one.")
            seen.add(column)
        if features is None and target is None:
            usual = [column for column in names if column in USUAL_TARGETS]
            if len(usual) > 1 or (targets and not usual):
                raise DataError(
                    f"{name} has the columns {listed(names)}; say which is the target with "
                    "target= (--target)."
                )
            target = usual[0] if usual else None
        chosen = _targets(target, names, name)
        if features is None:
            features = tuple(column for column in names if column not in chosen)
        elif target is None:
            usual = [c for c in names if c in USUAL_TARGETS and c not in features]
            chosen = tuple(usual) if len(usual) == 1 else ()
        missing = [column for column in (*features, *chosen) if column not in seen]
        if missing:
            raise DataError(f"{name} has no column {missing[0]!r}; its columns are {listed(names)}.")
        if not features:
            raise DataError(f"{name} has no column beside the target {target!r}.")
        return cls(features, chosen if targets else ())

    @property
    def all(self) -> list[str]:
        """The names of the features, then those of the targets."""
        return [*self.features, *self.targets]

    @property
    def target(self) -> str | None:
        """The targets as they are given to ``choose``, by which they are found again."""
        return ",".join(self.targets) or None


def _targets(target: str | Sequence[str] | None, names: list[str], name: str) -> tuple[str, ...]:
    """The columns that are named; one whose name has a comma is that column."""
    if target is None:
        return ()
    if isinstance(target, str):
        several = "," in target and target not in names
        target = [part.strip() for part in target.split(",")] if several else [target]
    twice = next((column for column in target if list(target).count(column) > 1), None)
    if twice is not None:
        raise DataError(f"{name}: the target {twice!r} is named twice; name each column once.")
    return tuple(target)


def listed(names: list[str]) -> str:
    """The names, at most eight of them, for a message."""
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
