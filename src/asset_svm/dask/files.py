"""Rows of files as Dask collections, read by the readers of one machine.

A file is cut into pieces where its reader can begin anywhere (Parquet, svmlight, arrays), and is one
piece elsewhere (CSV, compressed text). Workers open the files themselves: the paths must lead there
from every worker, as on a shared disk. Rows are read twice: one pass counts them, and tells what the
columns of tables are over all pieces, as which the other reads them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol, TypeVar

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import scipy.sparse as sp
from dask.dataframe.utils import clear_known_categories
from dask.delayed import delayed
from distributed import Client, get_client

from asset_svm.arrays import Array, Matrix
from asset_svm.dask.cluster import Cluster
from asset_svm.data.joined import matching_files
from asset_svm.data.opening import open_rows
from asset_svm.data.scan import Summary, TargetSummary, summary_of
from asset_svm.data.several_targets import SeveralTargets
from asset_svm.data.source import Block, RowSource, widened
from asset_svm.encoding.kinds import ColumnKinds
from asset_svm.encoding.table import TIME, Column, Levels, Table
from asset_svm.exceptions import DataError
from asset_svm.families.observing import logger

PIECE_BYTES = 64 << 20
"""The bytes of a file that make a partition."""


class RowObserver(Protocol):
    """Whoever looks at rows on the way, such as the scaling of columns."""

    def observe(self, X: Matrix) -> None:
        """Take the rows of a block into account."""

    def join(self, other: Any) -> None:
        """Take what another observer saw into account."""


Seen = TypeVar("Seen", bound=RowObserver)


@dataclass(frozen=True, eq=False)
class Piece:
    """Some segments of a file; all of it where ``segments`` is None.

    ``kinds`` are those of the columns of a table, where they are known.
    """

    path: str
    options: dict[str, Any]
    segments: Array | None
    kinds: dict[str, str] = field(default_factory=dict)

    def blocks(self) -> Iterator[Block]:
        """The rows of the piece, which may be none."""
        source = open_rows(self.path, **self.options)
        source.settle(self.kinds)
        return source._read(self.segments)


@dataclass(eq=False)
class PieceSummary:
    """What a pass over some rows tells."""

    n_rows: int
    n_features: int
    n_bytes: int
    sparse: bool
    targets: TargetSummary | SeveralTargets | None
    kinds: ColumnKinds
    seen: Any


class RowFiles:
    """Files of rows, cut into pieces.

    Parameters
    ----------
    path, options
        Those of ``asset_svm.open_rows``.
    """

    def __init__(self, path: str | Path, **options: Any):
        self.source = source = open_rows(path, **options)
        if not source.rereadable:
            raise ValueError(f"{source.name} cannot be read by the workers of a cluster; use files.")
        self.raw = options.get("raw") is not None
        target = options.get("target") or ()
        self.target_names = target.split(",") if isinstance(target, str) else [str(n) for n in target]
        self.path, self.dtype = path, np.dtype(options.get("dtype", np.float32))
        files = matching_files(path) or [Path(path)]
        sources = getattr(source, "sources", (source,))
        options = options | {"features": source.feature_names}
        self.pieces = [
            Piece(str(file.absolute()), options, segments)
            for file, part in zip(files, sources, strict=True)
            for segments in _cut(part)
        ]

    def scan(self, client: Client, seen: Seen | None = None) -> tuple[Summary, Seen | None]:
        """Read all rows once; returns their summary, without a sample, and what an observer saw."""
        cluster, name = Cluster(client), self.source.name
        with cluster.watching():
            look = delayed(scan_piece, pure=False)
            self.found: list[PieceSummary] = cluster.gather(
                client.compute([look(piece, seen) for piece in self.pieces])
            )
        n_rows = sum(found.n_rows for found in self.found)
        if not n_rows:
            raise DataError(f"{name} has no rows.")
        self.kinds, targets = ColumnKinds(), None
        for found in self.found:
            targets = _joined(targets, found.targets, name)
            self.kinds.join(found.kinds)
            if seen is not None and found.n_rows:
                seen.join(found.seen)
        width = self.source.n_features or max(max(found.n_features for found in self.found), 1)
        n_bytes = sum(found.n_bytes for found in self.found)
        assert targets is not None
        empty = Block(np.empty((0, width), dtype=self.dtype), np.empty(0))
        return Summary(n_rows, width, n_bytes, targets, empty), seen

    def collections(
        self, summary: Summary, transform: Callable[[Matrix], Matrix] | None = None
    ) -> tuple[Any, Any]:
        """X and y, with a partition a piece; a dataframe and a series where columns have names."""
        targets, width = summary.targets, summary.n_features
        kind = _target_type(targets)
        load, kinds = delayed(read_piece, pure=True, nout=2), self.kinds.settled
        if self.kinds.mixed:
            mixed = ", ".join(self.kinds.mixed)
            logger.info("table: some cells of %s are numbers, others not: all are levels", mixed)
        outputs = (len(targets.parts),) if isinstance(targets, SeveralTargets) else ()
        parts = [
            (load(replace(piece, kinds=kinds), width, kind, transform), found)
            for piece, found in zip(self.pieces, self.found, strict=True)
            if found.n_rows
        ]
        names = self.source.feature_names
        if names is not None:
            frame = pd.DataFrame(np.empty((0, width), dtype=self.dtype), columns=list(names))
            if self.raw:
                frame = clear_known_categories(as_frame(_empty_table(names, kinds), names))
            frames = [delayed(as_frame, pure=True)(rows[0], names) for rows, _ in parts]
            shown = dict(zip(self.target_names, _target_types(targets), strict=False))
            series = [delayed(as_series, pure=True)(rows[1], shown) for rows, _ in parts]
            meta = as_series(np.empty((0, *outputs), dtype=kind), shown)
            meta = meta.astype(object) if kind.kind == "U" else meta
            return dd.from_delayed(frames, meta=frame, verify_meta=False), dd.from_delayed(
                series, meta=meta, verify_meta=False
            )
        sparse = parts[0][1].sparse
        rows_meta = sp.csr_matrix((0, 0), dtype=self.dtype) if sparse else np.empty((0, 0), self.dtype)
        X = [da.from_delayed(rows[0], (found.n_rows, width), meta=rows_meta) for rows, found in parts]
        y = [da.from_delayed(rows[1], (found.n_rows, *outputs), dtype=kind) for rows, found in parts]
        return da.concatenate(X), da.concatenate(y)


def read_rows(path: str | Path, *, client: Client | None = None, **options: Any) -> tuple[Any, Any]:
    """X and y of files, as Dask collections.

    Parameters
    ----------
    path : path or pattern
        As in ``asset_svm.open_rows``, and so are ``options``: target, format, features, n_features,
        zero_based, dtype, raw. Every worker must find the files there.
    client : distributed.Client, optional
        None: the current one.

    Returns
    -------
    X, y : Dask dataframe and series where columns have names, else arrays
        With ``raw`` the columns are as they came, each of one kind in all partitions: numbers with
        NaN for gaps, times, or categories.

    Notes
    -----
    For weights, or files in a store, use Dask's own readers (``dask.dataframe.read_parquet``).
    """
    files = RowFiles(path, **options)
    summary, _ = files.scan(get_client() if client is None else client)
    return files.collections(summary)


def _joined(
    targets: TargetSummary | SeveralTargets | None,
    others: TargetSummary | SeveralTargets | None,
    name: str,
) -> TargetSummary | SeveralTargets | None:
    """What is known of the targets of both; None of a piece without rows."""
    if targets is None or others is None:
        return others if targets is None else targets
    if isinstance(targets, SeveralTargets) and isinstance(others, SeveralTargets):
        targets.join(others, name)
    else:
        assert isinstance(targets, TargetSummary) and isinstance(others, TargetSummary)
        targets.join(others, name)
    return targets


def _target_types(targets: TargetSummary | SeveralTargets) -> list[np.dtype[Any]]:
    """The type of each column of targets, in all partitions."""
    if isinstance(targets, SeveralTargets):
        return [_target_type(part) for part in targets.parts]
    return [_target_type(targets)]


def _target_type(targets: TargetSummary | SeveralTargets) -> np.dtype[Any]:
    """The type of targets in all partitions: of objects where columns are of several kinds."""
    if isinstance(targets, SeveralTargets):
        found = set(_target_types(targets))
        if len(found) == 1:
            return found.pop()
        return np.dtype(object if any(kind.kind == "U" for kind in found) else np.float64)
    countable = targets.kind == "numbers" and targets.whole and targets.counts is not None
    return np.dtype(np.int64 if countable else np.float64 if targets.kind == "numbers" else np.str_)


def _cut(source: RowSource) -> list[Array | None]:
    """The segments of each piece of a source."""
    if source.n_segments is None:
        return [None]
    size = sum(file.stat().st_size for file in source.files)
    count = min(max(-(-size // PIECE_BYTES), 1), max(source.n_segments, 1))
    return list(np.array_split(np.arange(source.n_segments), count))


# On workers ---------------------------------------------------------------------------------------


def scan_piece(piece: Piece, seen: Any) -> PieceSummary:
    """Read a piece once, and tell what its rows are."""
    summary = PieceSummary(0, 0, 0, False, None, ColumnKinds(), seen)
    for block in piece.blocks():
        if block.y is None:
            raise DataError(f"{piece.path} has no targets; say where they are with target=.")
        if summary.targets is None:
            summary.targets = summary_of(block.y)
        summary.targets.add(block.y, piece.path)
        summary.n_rows, summary.n_bytes = summary.n_rows + len(block), summary.n_bytes + block.n_bytes
        summary.n_features = max(summary.n_features, block.X.shape[1])
        summary.sparse = sp.issparse(block.X)
        if isinstance(block.X, Table):
            summary.kinds.observe(block.X)
        if seen is not None:
            seen.observe(block.X)
    return summary


def read_piece(
    piece: Piece, width: int, kind: np.dtype[Any], transform: Callable[[Matrix], Matrix] | None
) -> tuple[Matrix, Array]:
    """The rows and targets of a piece."""
    block = Block.joined(list(piece.blocks()))
    X = widened(block.X, width) if sp.issparse(block.X) else block.X
    X = X if transform is None else transform(X)
    return X, np.asarray(block.y).astype(kind, copy=False)


def as_series(y: Array, kinds: dict[str, np.dtype[Any]]) -> Any:
    """The targets as a series, or as a dataframe of columns with these names and types."""
    if y.ndim == 1:
        return pd.Series(y)
    columns = zip(kinds.items(), y.T, strict=True)
    return pd.DataFrame(
        {name: column.astype(object if kind.kind == "U" else kind) for (name, kind), column in columns}
    )


def as_frame(X: Array | Table, names: tuple[str, ...]) -> Any:
    """The rows as a dataframe, with the names of their columns."""
    if not isinstance(X, Table):
        return pd.DataFrame(X, columns=list(names), copy=False)
    columns = (
        pd.Categorical.from_codes(column.codes, list(column.names))
        if isinstance(column, Levels)
        else column
        for column in X.columns
    )
    return pd.DataFrame(dict(zip(names, columns, strict=True)), copy=False)


def _empty_table(names: tuple[str, ...], kinds: dict[str, str]) -> Table:
    """A table of no rows with columns of these kinds; of numbers, where no row has a value."""
    of: dict[str, Column] = {
        "number": np.empty(0),
        "time": np.empty(0, dtype=TIME),
        "levels": Levels(np.empty(0, dtype=np.int32), ()),
    }
    return Table(names, tuple(of[kinds.get(name, "number")] for name in names))
