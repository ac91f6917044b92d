"""Dask collections as partitions of checked rows.

``partitions`` takes collections apart into lazy ``Part``s, which are checked where they lie; what the
whole run must know of them comes back as a ``Summary`` of a few numbers each, and as a sample.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import dask.array as da
import dask.dataframe as dd
import numpy as np
import scipy.sparse as sp
from dask.delayed import Delayed, delayed
from sklearn.utils.validation import check_array, column_or_1d

from asset_svm.arrays import Array, Matrix
from asset_svm.data.several_targets import columns_of
from asset_svm.encoding.frames import as_table, is_frame, is_plain
from asset_svm.encoding.kinds import ColumnKinds
from asset_svm.encoding.table import Table
from asset_svm.estimators.tables import TableEncoder
from asset_svm.estimators.validation import FLOATS, check_weight, is_wide
from asset_svm.features.relevance import Relevance
from asset_svm.settings.kinds import check_kind, check_targets


@dataclass(frozen=True, eq=False)
class Part:
    """The rows of a partition, but for ``skipped`` ones of weight 0, their targets and weights."""

    X: Matrix  # or a Table
    y: Array
    weight: Array
    skipped: int = 0

    def __sizeof__(self) -> int:
        X = self.X
        size = X.data.nbytes + X.indices.nbytes + X.indptr.nbytes if sp.issparse(X) else X.nbytes
        return int(size + self.y.nbytes + self.weight.nbytes)

    def mapped(self, relevance: Relevance) -> Part:
        """The rows as a model behind a relevance sees them."""
        return replace(self, X=relevance(self.X)) if len(self.y) else self

    def take(self, rows: Array) -> Part:
        """Some of the rows."""
        return Part(self.X[rows], self.y[rows], self.weight[rows])


@dataclass(frozen=True, eq=False)
class Summary:
    """What the run must know of a part.

    ``values`` are the classes there, or the extremes of y; of several columns of targets a list of the
    classes of each, or the extremes in two rows; ``value_counts`` are the rows of each class. ``kinds``
    is what the columns of a table are, None where rows are numbers.
    """

    n_rows: int
    n_bytes: int
    skipped: int
    n_features: int
    dtype: np.dtype[Any]
    sparse: bool
    weight: float
    largest_weight: float
    even: bool
    values: Any
    value_weights: Any
    outputs: int = 1
    kinds: ColumnKinds | None = None
    value_counts: Any = None


@dataclass(frozen=True, eq=False)
class ShardRows:
    """The rows of a shard: some neighbouring parts.

    Parameters
    ----------
    parts, loaded : lists of Delayed
        The parts from their source, and the same as they lie on the cluster.
    n_rows, n_bytes, weight
        How many rows there are, what they take in memory, and their weight in (PL).
    """

    parts: list[Delayed]
    loaded: list[Delayed]
    n_rows: int
    n_bytes: int
    weight: float


def is_collection(X: Any) -> bool:
    """Whether X is a Dask array, dataframe or series."""
    return isinstance(X, da.Array | dd.DataFrame | dd.Series)


def column_names(X: Any) -> Array | None:
    """The names of the columns, where all are strings."""
    if not isinstance(X, dd.DataFrame):
        return None
    names = np.asarray(X.columns, dtype=object)
    return names if all(isinstance(name, str) for name in names) else None


def partitions(
    X: Any, y: Any, sample_weight: Any, *, numeric: bool, encoder: TableEncoder | str | None
) -> list[Delayed]:
    """A lazy ``Part`` for each partition of X; ``encoder`` as for ``load_part``."""
    if not isinstance(X, da.Array | dd.DataFrame):
        raise TypeError(
            f"X is a {type(X).__name__}, not a Dask array or dataframe; wrap it by "
            "dask.array.from_array(X, chunks=(rows, -1)), or use the estimator without Dask."
        )
    blocks = {"X": _blocks("X", X), "y": _blocks("y", y)}
    if sample_weight is not None:
        blocks["sample_weight"] = _blocks("sample_weight", sample_weight)
    for name, found in blocks.items():
        if len(found) != len(blocks["X"]):
            raise ValueError(
                f"{name} has {len(found)} partitions and X has {len(blocks['X'])}; "
                f"give both the same partitions (rechunk or repartition {name})."
            )
    weights = blocks.get("sample_weight", [None] * len(blocks["X"]))
    load = delayed(load_part, pure=True)
    names = enumerate(zip(blocks["X"], blocks["y"], weights, strict=True))
    return [load(number, *parts, numeric, encoder) for number, parts in names]


def _blocks(name: str, collection: Any) -> list[Any]:
    if not is_collection(collection):
        raise TypeError(
            f"{name} is a {type(collection).__name__} and X a Dask collection; make {name} one too, "
            "with the partitions of X."
        )
    if isinstance(collection, da.Array):
        if collection.ndim > 1 and any(count > 1 for count in collection.numblocks[1:]):
            raise ValueError(
                f"{name} has chunks of {collection.chunksize[1]} of its {collection.shape[1]} "
                f"columns; a chunk must hold whole rows: {name}.rechunk({{1: -1}})."
            )
        return list(np.ravel(collection.to_delayed()))
    # Optimised, columns of one source may be cut into other partitions than the rest of them.
    return list(collection.to_delayed(optimize_graph=False))


def load_part(
    number: int, X: Any, y: Any, weight: Any, numeric: bool, encoder: TableEncoder | str | None
) -> Part:
    """Check the rows of a partition; those of weight 0 are left out.

    They are a table, to be encoded later, where there is an encoder, or where ``encoder="auto"`` and
    the partition is a frame with columns that are no numbers, or with gaps.
    """
    where = f"partition {number}"
    check_targets(y, f"In {where}, y", numeric=numeric)
    X = _checked_rows(X, where, encoder)
    y = np.asarray(y)
    y = y if is_wide(y) else column_or_1d(y)
    if y.dtype.kind == "O" and all(isinstance(label, str) for label in y.ravel()):
        y = y.astype(np.str_)  # which takes less room on its way
    if len(y) != X.shape[0]:
        raise ValueError(f"In {where}, X has {X.shape[0]} rows and y has {len(y)}; they must agree.")
    if len(y) and (numeric or y.dtype.kind in "fc"):
        y = check_array(y, ensure_2d=False, dtype="numeric", input_name="y")
    if not len(y):
        return Part(X, y, np.empty(0))
    if weight is None:
        return Part(X, y, np.ones(len(y)))
    weight = np.asarray(weight)
    if weight.shape != (len(y),):
        raise ValueError(
            f"In {where}, X has {len(y)} rows and sample_weight the shape {weight.shape}; "
            "they must agree."
        )
    weight = check_weight(weight, y, part=True)
    if weight.all():
        return Part(X, y, weight)
    positive = np.flatnonzero(weight)
    return replace(Part(X, y, weight).take(positive), skipped=len(y) - len(positive))


def _checked_rows(X: Any, where: str, encoder: TableEncoder | str | None) -> Any:
    """The rows of a partition as a matrix, or as a table."""
    if encoder is not None and X.shape[0] == 0:  # of whatever columns
        return np.empty(X.shape, dtype=np.float32)
    if encoder is not None:
        try:
            if isinstance(encoder, TableEncoder):
                return encoder.given(as_table(X, encoder.unread))
            if is_frame(X) and not is_plain(X):
                return as_table(X)
        except (TypeError, ValueError) as error:
            raise type(error)(f"In {where}, {error}") from None
    check_kind(X, f"In {where}, X")
    return check_array(X, accept_sparse="csr", dtype=FLOATS, ensure_min_samples=0, input_name="X")


def summarise(part: Part, numeric: bool) -> Summary:
    """What the client must know of a part."""
    X, y, w = part.X, part.y, part.weight
    values: Any
    weights: Any
    counts: Any = np.zeros(0, dtype=np.int64)
    if not len(y):
        values, weights = y, w
    elif numeric:
        values, weights = np.array([y.min(axis=0), y.max(axis=0)], dtype=np.float64), np.zeros(2)
    else:
        found = [np.unique(column, return_inverse=True) for column in columns_of(y)]
        values = [labels for labels, _ in found]
        weights = [np.bincount(codes, weights=w) for _, codes in found]
        counts = [np.bincount(codes) for _, codes in found]
        if y.ndim == 1:
            (values,), (weights,), (counts,) = values, weights, counts
    largest = float(w.max(initial=0.0))
    even = bool((w == largest).all())
    kinds, dtype = None, getattr(X, "dtype", np.dtype(np.float64))
    if isinstance(X, Table):
        kinds = ColumnKinds()
        kinds.observe(X)
    return Summary(
        len(y), part.__sizeof__(), part.skipped, X.shape[1], dtype, sp.issparse(X),
        float(w.sum()), largest, even, values, weights, _outputs(y), kinds, counts,
    )  # fmt: skip


def _outputs(y: Array) -> int:
    """The number of columns of targets."""
    return 1 if y.ndim == 1 else y.shape[1]


def join(parts: Sequence[Part], dtype: Any) -> Part:
    """All rows of some parts; of one that has the type, without a copy. Tables are of none."""
    if isinstance(parts[0].X, Table):
        tables = Table.joined([part.X for part in parts])
        y = np.concatenate([part.y for part in parts])
        return Part(tables, y, np.concatenate([part.weight for part in parts]))
    stack = sp.vstack if sp.issparse(parts[0].X) else np.concatenate
    X = parts[0].X if len(parts) == 1 else stack([part.X for part in parts])
    if sp.issparse(X):
        X = sp.csr_matrix(X) if isinstance(X, sp.spmatrix) else sp.csr_array(X)
    y = np.concatenate([part.y for part in parts])
    return Part(X.astype(dtype, copy=False), y, np.concatenate([part.weight for part in parts]))


def group(sizes: Sequence[int], count: int) -> list[list[int]]:
    """Neighbouring parts in at most ``count`` groups of about as many rows; empty parts are in none."""
    filled = [number for number, size in enumerate(sizes) if size]
    groups: list[list[int]] = [[] for _ in range(min(count, len(filled)))]
    total, so_far = sum(sizes), 0
    for position, number in enumerate(filled):
        # By where the middle of the part lies, but so that no group stays empty.
        place = int((so_far + sizes[number] / 2) * len(groups) / total)
        last = max((k for k, members in enumerate(groups) if members), default=-1)
        left = len(filled) - position
        place = min(max(place, last, len(groups) - left), last + 1)
        groups[place].append(number)
        so_far += sizes[number]
    return groups
