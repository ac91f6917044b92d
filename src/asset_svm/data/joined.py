"""Several files one after the other, as one source of rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from glob import glob, has_magic
from pathlib import Path

import numpy as np

from asset_svm.arrays import Array
from asset_svm.data.source import Block, RowSource
from asset_svm.exceptions import DataError


class JoinedRows(RowSource):
    """The rows of several sources, which must have the same columns.

    Parameters
    ----------
    sources : sequence of RowSource
    name : str
    """

    def __init__(self, sources: Sequence[RowSource], name: str):
        self.sources, self.name = tuple(sources), name
        first = self.sources[0]
        for other in self.sources[1:]:
            if other.feature_names != first.feature_names:
                raise DataError(f"{other.name} has other columns than {first.name}.")
            if other.n_features != first.n_features:
                raise DataError(
                    f"{other.name} has {other.n_features} features and {first.name} has "
                    f"{first.n_features}; they must agree."
                )
        self.feature_names, self.n_features = first.feature_names, first.n_features
        self.columns = getattr(first, "columns", None)
        self.files = tuple(file for source in self.sources for file in source.files)
        counts = [source.n_rows for source in self.sources if source.n_rows is not None]
        self.n_rows = sum(counts) if len(counts) == len(self.sources) else None
        segments = [source.n_segments for source in self.sources if source.n_segments is not None]
        self.n_segments = sum(segments) if len(segments) == len(self.sources) else None
        self._ends = np.cumsum(segments)

    def settle(self, kinds: Mapping[str, str]) -> None:
        """Read columns of tables as these kinds from now on."""
        for source in self.sources:
            source.settle(kinds)

    def _read(self, order: Array | None) -> Iterator[Block]:
        if order is None:
            for source in self.sources:
                yield from source.plain_blocks(None)
            return
        for number in order:
            place = int(np.searchsorted(self._ends, number, side="right"))
            before = int(self._ends[place - 1]) if place else 0
            yield from self.sources[place].plain_blocks(np.array([number - before]))


def matching_files(path: str | Path) -> list[Path] | None:
    """The files that a pattern with ``*``, ``?`` or ``[...]`` matches, by name; None: no pattern."""
    if not has_magic(str(path)) or Path(path).exists():
        return None
    found = sorted(Path(name) for name in glob(str(path)))
    if not found:
        raise FileNotFoundError(f"{path} matches no file.")
    return found
