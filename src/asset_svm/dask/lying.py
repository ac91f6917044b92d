"""Checked partitions, as they lie on a cluster: of numbers, or of tables that are to be encoded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import dask.dataframe as dd
import numpy as np
from dask.delayed import Delayed, delayed

from asset_svm.arrays import Array
from asset_svm.dask.cluster import Cluster
from asset_svm.dask.partitions import Part, Summary, join, partitions, summarise
from asset_svm.encoding.kinds import ColumnKinds
from asset_svm.encoding.table import Table, as_levels
from asset_svm.estimators.encoded import usual_encoder
from asset_svm.estimators.tables import TableEncoder
from asset_svm.search.heats import OF_EVERY_CLASS
from asset_svm.tasks.units import Units, UnitsOfColumns

AnyUnits = Units | UnitsOfColumns


@dataclass(frozen=True, eq=False)
class Lying:
    """Partitions of checked rows.

    Parameters
    ----------
    parts, loaded : lists of Delayed
        From their source, and the same as they lie on the cluster.
    summaries : list of Summary
    encoder : TableEncoder or None
        What is to make numbers of their tables; None where they are numbers.
    named : bool
        Whether these tables have names of columns.
    """

    parts: list[Delayed]
    loaded: list[Delayed]
    summaries: list[Summary]
    encoder: TableEncoder | None
    named: bool

    @cached_property
    def filled(self) -> list[Summary]:
        """The summaries of parts that have rows."""
        return [summary for summary in self.summaries if summary.n_rows]

    @property
    def n_rows(self) -> int:
        """The number of rows of positive weight."""
        return sum(summary.n_rows for summary in self.summaries)

    @property
    def tables(self) -> list[Delayed]:
        """The parts that have rows, as they lie on the cluster."""
        pairs = zip(self.loaded, self.summaries, strict=True)
        return [part for part, summary in pairs if summary.n_rows]

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the rows when they are joined."""
        return np.result_type(*(summary.dtype for summary in self.filled))

    @property
    def mixed(self) -> tuple[str, ...]:
        """The columns that are of other kinds in other parts: they are levels in all."""
        kinds = ColumnKinds()
        for summary in self.filled:
            kinds.join(summary.kinds or ColumnKinds())
        return kinds.mixed

    def taken(self, chosen: Array, rare: dict[int, Array] | None = None) -> list[Delayed]:
        """The rows of these numbers, which increase, part by part, and some of rare classes."""
        tasks, begin = [], 0
        for number, (part, summary) in enumerate(zip(self.loaded, self.summaries, strict=True)):
            end = begin + summary.n_rows
            inside = chosen[np.searchsorted(chosen, begin) : np.searchsorted(chosen, end)] - begin
            if rare and number in rare:
                tasks.append(delayed(taken_with, pure=False)(part, inside, rare[number]))
            elif len(inside):
                tasks.append(delayed(Part.take, pure=False)(part, inside))
            begin = end
        return tasks

    def sample(self, cluster: Cluster, chosen: Array) -> Part:
        """The rows of these numbers, which increase, on the client."""
        return join(cluster.gather(cluster.client.compute(self.taken(chosen))), self.dtype)

    def sample_there(self, cluster: Cluster, chosen: Array, rare: dict[int, Array]) -> Delayed:
        """The same on the cluster, which makes them again where they are lost; columns are settled.

        ``rare`` are classes of parts that some rows are taken of besides.
        """
        settle, levels = delayed(settled_part, pure=False), self.mixed
        parts = [settle(part, levels, None) for part in self.taken(chosen, rare)]
        (sample,) = cluster.client.persist([delayed(join, pure=False)(parts, self.dtype)])
        return sample

    def settled(self, cluster: Cluster, sample: Part, units: AnyUnits | None) -> tuple[Lying, Part]:
        """The same with targets in these units, and with levels for columns of several kinds.

        So is the sample.
        """
        levels = self.mixed
        if units is None and not levels:
            return self, sample
        summaries = self.summaries
        if units is not None:  # they increase with y
            summaries = [replace(s, values=units.into(s.values)) for s in summaries]
        changed = self.changed(cluster, settled_part, levels, delayed(units, pure=False))
        return replace(changed, summaries=summaries), settled_part(sample, levels, units)

    def changed(self, cluster: Cluster, function: Any, *told: Any) -> Lying:
        """The same parts as a function of them and of what it is told makes them, where they lie."""
        go = delayed(function, pure=False)
        parts = [go(part, *told) for part in self.parts]
        loaded = cluster.client.persist([go(part, *told) for part in self.loaded])
        return replace(self, parts=parts, loaded=list(loaded))


def taken_with(part: Part, inside: Array, rare: Array) -> Part:
    """Rows of a part, and some of each of these classes."""
    more = [np.flatnonzero(part.y == label)[:OF_EVERY_CLASS] for label in rare]
    return part.take(np.unique(np.concatenate([inside, *more])))


def settled_part(part: Part, levels: tuple[str, ...], units: AnyUnits | None) -> Part:
    """A part with levels for these columns, and targets in these units."""
    if not len(part.y):
        return part
    X = part.X
    if levels:
        columns = (
            as_levels(column) if name in levels else column
            for name, column in zip(X.names, X.columns, strict=True)
        )
        X = Table(X.names, tuple(columns))
    return replace(part, X=X, y=part.y if units is None else units.into(part.y))


def lie(
    cluster: Cluster,
    X: Any,
    y: Any,
    sample_weight: Any,
    *,
    numeric: bool,
    encoder: TableEncoder | str | None,
) -> Lying:
    """Check collections on the cluster, and take them apart.

    With ``encoder="auto"`` frames are read as numbers; those of their partitions that are not so are
    tables, and if there is one, all others are read again as tables too.
    """
    frame = isinstance(X, dd.DataFrame)
    if encoder == "auto" and not frame:
        encoder = None
    parts = partitions(X, y, sample_weight, numeric=numeric, encoder=encoder)
    loaded = list(cluster.client.persist(parts))
    summaries = _summaries(cluster, loaded, numeric=numeric)
    if encoder == "auto":
        encoder = None
        if any(s.kinds is not None for s in summaries):
            encoder = usual_encoder()
            again = [k for k, s in enumerate(summaries) if s.n_rows and s.kinds is None]
            tables = partitions(X, y, sample_weight, numeric=numeric, encoder=encoder)
            if again:  # numbers alone
                read = cluster.client.persist([tables[k] for k in again])
                found = _summaries(cluster, read, numeric=numeric)
                for k, part, summary in zip(again, read, found, strict=True):
                    parts[k], loaded[k], summaries[k] = tables[k], part, summary
    assert not isinstance(encoder, str)
    _check_alike(summaries)
    return Lying(parts, loaded, summaries, encoder, frame)


def _summaries(cluster: Cluster, loaded: Sequence[Delayed], *, numeric: bool) -> list[Summary]:
    """The summaries of parts."""
    tasks = [delayed(summarise, pure=False)(part, numeric) for part in loaded]
    return cluster.gather(cluster.client.compute(tasks))


def _check_alike(summaries: list[Summary]) -> None:
    """Raise where there are no rows, or parts that do not agree with each other."""
    filled = [s for s in summaries if s.n_rows]
    if not filled:
        raise ValueError("X has no row of positive weight; give some row a positive weight.")
    for what, kinds in (
        ("numbers of columns", {s.n_features for s in filled}),
        ("kinds of rows (sparse or not)", {s.sparse for s in filled}),
        ("names of columns", {s.kinds.names for s in filled if s.kinds is not None}),
    ):
        if len(kinds) > 1:
            raise ValueError(
                f"The partitions of X have several {what}, {sorted(kinds)}; they must agree."
            )
    outputs = {s.outputs for s in filled}
    if len(outputs) > 1:
        raise ValueError(
            f"The partitions of y have several numbers of columns, {sorted(outputs)}; they must agree."
        )
