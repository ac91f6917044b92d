"""Rows that come a block at a time: the one interface of arrays, files and streams.

A ``RowSource`` yields ``Block``s, in the order of its rows. It may know how many rows there are and how
many features, and may be read again for another epoch, or, as standard input, only once. Blocks are cut
as the reader likes; ``windows`` cuts the rows anew, n at a time, so that whatever is learnt from them
depends on the rows alone. A window is also the buffer that rows are shuffled within. Where the reader
can begin anywhere, the file has segments, and a shuffled pass takes them in a random order first: a
window then holds rows from all over the file, sorted or not.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from asset_svm.arrays import Array, Matrix
from asset_svm.data.ahead import ahead
from asset_svm.data.compression import STANDARD_INPUT
from asset_svm.encoding.table import Table
from asset_svm.exceptions import DataError

BLOCK_BYTES = 4 << 20
"""What the readers of tables read at a time."""
SEGMENT_BYTES = 1 << 19
"""What other readers do, and what is taken in a random order: a window has many of them."""


@dataclass(frozen=True, eq=False)
class Block:
    """Some rows: X dense, CSR, or a table as it came, and their targets, None where there are none."""

    X: Matrix  # or a Table
    y: Array | None

    def __len__(self) -> int:
        return int(self.X.shape[0])

    def __getitem__(self, rows: Any) -> Block:
        return Block(self.X[rows], None if self.y is None else self.y[rows])

    @property
    def n_bytes(self) -> int:
        """The bytes that the block takes in memory."""
        X = self.X
        parts = (X.data, X.indices, X.indptr) if sp.issparse(X) else (X,)
        return int(sum(part.nbytes for part in parts)) + (0 if self.y is None else self.y.nbytes)

    @staticmethod
    def joined(blocks: list[Block]) -> Block:
        """All of them as one; CSR blocks are as wide as the widest."""
        if len(blocks) == 1:
            return blocks[0]
        parts = [block.X for block in blocks]
        if isinstance(parts[0], Table):
            X: Matrix = Table.joined(parts)
        elif sp.issparse(parts[0]):
            width = max(part.shape[1] for part in parts)
            X = sp.vstack([widened(part, width) for part in parts], format="csr")
        else:
            X = np.concatenate(parts)
        targets = [block.y for block in blocks if block.y is not None]
        return Block(X, np.concatenate(targets) if targets else None)


def widened(X: Matrix, n_features: int) -> Matrix:
    """A CSR matrix with empty columns added; nothing is copied."""
    if X.shape[1] == n_features:
        return X
    return sp.csr_matrix((X.data, X.indices, X.indptr), shape=(X.shape[0], n_features))


class RowSource(ABC):
    """Rows and targets of a file, a stream or arrays.

    Attributes
    ----------
    name : str
        What messages call it.
    n_rows, n_features : int or None
        None where only reading can tell.
    feature_names : tuple of str or None
    rereadable : bool
        Whether ``blocks`` can be called again.
    files : tuple of path
        Where the rows lie on the disk, if they do.
    n_segments : int or None
        Parts that can be read in any order; None where only the first row can be the first.
    """

    name: str
    n_rows: int | None = None
    n_features: int | None = None
    feature_names: tuple[str, ...] | None = None
    rereadable: bool = True
    files: tuple[Path, ...] = ()
    n_segments: int | None = None
    _spent = False

    @abstractmethod
    def _read(self, order: Array | None) -> Iterator[Block]:
        """The rows, or the segments of these numbers, in blocks of at least one row."""

    def plain_blocks(self, order: Array | None) -> Iterator[Block]:
        """What ``blocks`` gives, read by whoever asks for it; there may be no rows at all."""
        return self._read(order)

    def blocks(self, order: Array | None = None) -> Iterator[Block]:
        """The rows from the first to the last, read ahead by a thread of its own.

        ``order`` has the numbers of all segments in another order, where there are any.
        """
        if self._spent and not self.rereadable:
            raise DataError(f"{self.name} can be read only once; save it to a file first.")
        self._spent = True
        any_rows = False
        with closing(ahead(self._read(order))) as blocks:  # type: ignore[type-var]
            for block in blocks:
                any_rows = True
                yield self._fitting(block)
        if not any_rows:
            raise DataError(f"{self.name} has no rows.")

    def _fitting(self, block: Block) -> Block:
        """The block with ``n_features`` columns, where that is known."""
        n, width = self.n_features, block.X.shape[1]
        if n is None or n == width:
            return block
        if width > n or not sp.issparse(block.X):
            raise DataError(f"{self.name} has rows of {width} features where {n} are expected.")
        return Block(widened(block.X, n), block.y)

    def windows(
        self, n_rows: int, *, shuffle: tuple[int, ...] | None = None, skip: int = 0
    ) -> Iterator[Block]:
        """The rows cut into windows of ``n_rows``, the last one shorter.

        Parameters
        ----------
        shuffle : tuple of int, optional
            A seed: segments, if there are any, come in a random order, and so do the rows of each
            window, as a function of the seed.
        skip : int
            Leave out so many windows.
        """
        held: list[Block] = []
        count, number = 0, 0

        def finished(blocks: list[Block]) -> Iterator[Block]:
            if number < skip:
                return
            window = Block.joined(blocks)
            if shuffle is not None:
                order = np.random.default_rng([*shuffle, number]).permutation(len(window))
                window = window[order]
            yield window

        order = None
        if shuffle is not None and self.n_segments is not None:
            order = np.random.default_rng([*shuffle]).permutation(self.n_segments)
        with closing(self.blocks(order)) as blocks:  # type: ignore[type-var]
            for block in blocks:
                while count + len(block) >= n_rows:
                    room = n_rows - count
                    yield from finished([*held, block[:room]])
                    held, count, number, block = [], 0, number + 1, block[room:]
                if len(block):
                    held.append(block)
                    count += len(block)
        if count:
            yield from finished(held)

    def read(self) -> Block:
        """Read all rows at once."""
        return Block.joined(list(self.blocks()))

    def transformed(
        self, function: Callable[[Matrix], Matrix], n_features: int | None = None
    ) -> RowSource:
        """The same rows with ``function`` applied to the X of every block.

        They have ``n_features`` columns then, by default as many as before.
        """
        return _Transformed(self, function, n_features)

    def with_targets(self, function: Callable[[Array], Array]) -> RowSource:
        """The same rows with ``function`` applied to the targets of every block."""
        return _WithTargets(self, function)

    def unlabelled(self) -> RowSource:
        """The same rows with targets of 1, whatever they have, or where they have none."""
        return _Unlabelled(self)

    def part(self, share: float, seed: int, *, kept: bool) -> RowSource:
        """The rows that are left where about this share of them is drawn at random, or those drawn."""
        return _Part(self, share, seed, kept=kept)

    def settle(self, kinds: Mapping[str, str]) -> None:
        """Read columns of tables as these kinds from now on, whatever the cells of a part look like."""
        del kinds  # there are none here: matrices have numbers alone

    def narrowed(self, n_features: int) -> RowSource:
        """The same rows, known to have this many features."""
        return _Narrowed(self, n_features)


class TextRows(RowSource):
    """Rows of a text file, or of standard input, which is read only once."""

    path: str | Path

    def _set_path(self, path: str | Path) -> None:
        self.path, self.rereadable = path, str(path) != STANDARD_INPUT
        self.files = (Path(path),) if self.rereadable else ()
        self.name = str(path) if self.rereadable else "standard input"


class _Wrapped(RowSource):
    def __init__(self, source: RowSource):
        self.source = source
        self.name, self.n_rows, self.n_features = source.name, source.n_rows, source.n_features
        self.feature_names, self.rereadable = source.feature_names, source.rereadable
        self.files, self.n_segments = source.files, source.n_segments

    def settle(self, kinds: Mapping[str, str]) -> None:
        """Read columns of tables as these kinds from now on."""
        self.source.settle(kinds)


class _Transformed(_Wrapped):
    def __init__(self, source: RowSource, function: Callable[[Matrix], Matrix], n_features: int | None):
        super().__init__(source)
        self.function = function
        if n_features is not None:
            self.n_features, self.feature_names = n_features, None

    def _read(self, order: Array | None) -> Iterator[Block]:
        for block in self.source.blocks(order):
            yield Block(self.function(block.X), block.y)


class _WithTargets(_Wrapped):
    def __init__(self, source: RowSource, function: Callable[[Array], Array]):
        super().__init__(source)
        self.function = function

    def _read(self, order: Array | None) -> Iterator[Block]:
        for block in self.source.blocks(order):
            yield Block(block.X, None if block.y is None else self.function(block.y))


class _Unlabelled(_Wrapped):
    def _read(self, order: Array | None) -> Iterator[Block]:
        for block in self.source.blocks(order):
            yield Block(block.X, np.ones(len(block)))


class _Part(_Wrapped):
    def __init__(self, source: RowSource, share: float, seed: int, *, kept: bool):
        super().__init__(source)
        self.share, self.seed, self.kept = share, seed, kept
        self.n_rows = self.n_segments = None  # a row is known by its place among all

    def _read(self, order: Array | None) -> Iterator[Block]:
        rng = np.random.default_rng([self.seed, 7])
        for block in self.source.blocks():
            drawn = rng.random(len(block)) < self.share
            block = block[np.flatnonzero(drawn != self.kept)]
            if len(block):
                yield block


class _Narrowed(_Wrapped):
    def __init__(self, source: RowSource, n_features: int):
        super().__init__(source)
        self.n_features = n_features

    def _read(self, order: Array | None) -> Iterator[Block]:
        return self.source.blocks(order)


def check_targets(y: Array, place: Callable[[int], str]) -> None:
    """Raise where a target is not finite; ``place`` says where target i stands."""
    if y.dtype.kind == "f" and not np.isfinite(y).all():
        rows = np.isfinite(y) if y.ndim == 1 else np.isfinite(y).all(axis=1)
        i = int(np.argmin(rows))
        raise DataError(f"{place(i)}: {y[i]} is not a finite number.")
