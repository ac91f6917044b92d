"""The rows of a fit, as they lie on a cluster, and what the client knows of them.

lie       partitions are checked where they lie; a summary of each comes to the client
sample    so do some rows, with their targets
encode    tables become rows of numbers, where they lie too
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from dask.delayed import Delayed, delayed

from asset_svm.arrays import Array
from asset_svm.dask.cluster import Cluster
from asset_svm.dask.lying import Lying, lie
from asset_svm.dask.partitions import Part, ShardRows, Summary, group
from asset_svm.dask.tables import encode_parts
from asset_svm.encoding.summary import TableSummary
from asset_svm.estimators.encoded import InUnits
from asset_svm.estimators.tables import TableEncoder
from asset_svm.families.rows import Rows
from asset_svm.families.whole import WholeTask
from asset_svm.features.cells import SAMPLE
from asset_svm.features.relevance import Learnt
from asset_svm.settings import Settings
from asset_svm.tasks import Encoded, Task, for_targets, units_of

SAMPLE_ROWS = 20_000
"""At least so many rows come to the client; all, where there are no more."""


@dataclass(eq=False)
class Loaded:
    """Rows on a cluster.

    Parameters
    ----------
    parts : list of Delayed
        From their source.
    loaded : list of Delayed
        The same as they lie on the cluster; cleared to let go of them.
    whole : WholeTask
        Settled by all rows.
    rows : Rows
        A sample of all rows.
    weights : list of float
        The weight of each part in (PL).
    even : bool
        Whether all weights are alike.
    heaviest : float
        The largest weight of a row.
    encoder, table : TableEncoder and TableSummary, optional
        What has made the rows of a table, and what is known of its columns.
    """

    parts: list[Delayed]
    loaded: list[Delayed]
    summaries: list[Summary]
    whole: WholeTask
    rows: Rows
    weights: list[float]
    even: bool
    heaviest: float
    lam: float
    seed: int
    encoder: TableEncoder | None = None
    table: TableSummary | None = None

    def shards(self, most: int) -> list[ShardRows]:
        """At most so many shards of neighbouring parts, of about as many rows."""
        return [
            ShardRows(
                [self.parts[k] for k in members],
                [self.loaded[k] for k in members],
                sum(self.summaries[k].n_rows for k in members),
                sum(self.summaries[k].n_bytes for k in members),
                sum(self.weights[k] for k in members),
            )
            for members in group([s.n_rows for s in self.summaries], most)
        ]

    def mapped(self, cluster: Cluster, learnt: Learnt) -> Loaded:
        """The same rows as a model behind a relevance sees them, mapped where they lie."""
        relevance = learnt.relevance
        if relevance is None:
            return self
        by = delayed(relevance, pure=False)
        go = delayed(Part.mapped, pure=False)
        parts = [go(part, by) for part in self.parts]
        loaded = cluster.client.persist([go(part, by) for part in self.loaded])
        dtype = self.rows.X.dtype
        summaries = [
            replace(
                s,
                n_features=relevance.width,
                n_bytes=relevance.mapped_bytes(s.n_rows, s.n_bytes, dtype),
            )
            for s in self.summaries
        ]
        rows = replace(self.rows, X=relevance(self.rows.X))
        return replace(self, parts=parts, loaded=list(loaded), summaries=summaries, rows=rows)

    @property
    def task(self) -> Task:
        """The task, settled by all rows."""
        return self.whole.task

    @cached_property
    def encoded(self) -> Encoded:
        """The targets of the sample."""
        return self.whole.encode(self.rows.y)

    @property
    def n_rows(self) -> int:
        """The number of rows of positive weight."""
        return sum(s.n_rows for s in self.summaries)

    @property
    def skipped(self) -> int:
        """The number of rows of weight 0."""
        return sum(s.skipped for s in self.summaries)

    @property
    def total_weight(self) -> float:
        """The weight of all rows in (PL), W."""
        return sum(self.weights)

    @property
    def dtype(self) -> np.dtype:
        """The type of the rows when they are joined."""
        return self.rows.X.dtype


def load_rows(
    settings: Settings,
    task: Task,
    cluster: Cluster,
    X: Any,
    y: Any,
    sample_weight: Any,
    *,
    encoder: TableEncoder | str | None,
    in_units: InUnits,
) -> Loaded:
    """Check collections on the cluster, and take a sample of their rows.

    Parameters
    ----------
    encoder : TableEncoder, "auto" or None
        What makes numbers of tables, not fitted yet.
    in_units : callable
        It gives a task the units of its targets, and these in them.
    """
    numeric = task.numeric
    lying = lie(cluster, X, y, sample_weight, numeric=numeric, encoder=encoder)
    seed, total = settings.draw_seed(), lying.n_rows
    chosen = np.arange(total)
    count = max(SAMPLE_ROWS, _needed_rows(settings, total))
    if count < total:
        rng = np.random.default_rng([seed, 6])
        chosen = np.sort(rng.choice(total, size=count, replace=False))
    sample = lying.sample(cluster, chosen)
    task, _ = in_units(for_targets(task, sample.y), sample.y, sample.weight)
    lying, sample = lying.settled(cluster, sample, units_of(task))
    filled = lying.filled
    even = all(s.even and s.largest_weight == filled[0].largest_weight for s in filled)
    heaviest = max(s.largest_weight for s in filled)
    if numeric:
        ends = np.concatenate([s.values for s in filled])
        whole = WholeTask.of_numbers(task, sample.y, sample.weight, ends)
    else:
        known = _classes(filled)
        whole = WholeTask.of_classes(task, sample.y, sample.weight, *known)
    weights = [s.weight for s in lying.summaries]
    if whole.factors is not None:
        weights, even, heaviest = _weigh(cluster, lying, whole)
    table = None
    if lying.encoder is not None:
        lying, sample, table = encode_parts(cluster, lying, sample, whole.task)
    weight = whole.weights(sample.y, sample.weight)
    rows = Rows(sample.X, sample.y, sample.weight, weight, chosen)
    lam = float(settings.lam_of(sum(weights)))
    return Loaded(
        lying.parts, lying.loaded, lying.summaries, whole, rows, weights, even, heaviest, lam, seed,
        lying.encoder, table,
    )  # fmt: skip


def _needed_rows(settings: Settings, m: int) -> int:
    """The rows, of m, that a map is drawn or a partition grown from.

    Four a landmark, or as many a cell as k-means looks at.
    """
    if settings.n_cells is None:
        return 4 * (settings.map.number or 0)
    return SAMPLE * settings.cells_of(m)


def _classes(filled: Sequence[Summary]) -> tuple[Any, Any]:
    """All classes, and the weights of their rows; lists of both where there are several outputs."""
    found = []
    for output in range(filled[0].outputs):
        each = [_of_output(s, output) for s in filled]
        classes = np.unique(np.concatenate([values for values, _ in each]))
        totals = np.zeros(len(classes))
        for values, weights in each:
            totals[np.searchsorted(classes, values)] += weights
        found.append((classes, totals))
    if filled[0].outputs == 1:
        return found[0]
    return [classes for classes, _ in found], [totals for _, totals in found]


def _of_output(summary: Summary, output: int) -> tuple[Array, Array]:
    """The classes of an output in a part, and their weights."""
    if summary.outputs == 1:
        return summary.values, summary.value_weights
    return summary.values[output], summary.value_weights[output]


def _weigh(cluster: Cluster, lying: Lying, whole: WholeTask) -> tuple[list[float], bool, float]:
    """The weight of each part in (PL), whether those of all rows are alike, and the largest."""
    each = whole.factors if isinstance(whole.factors, list) else [whole.factors]
    if any(factors is not None and not factors.all() for factors in each):
        raise ValueError(
            "class_weight has a weight of 0; leave the rows of that class out of X and y instead."
        )
    look, told = delayed(weigh_part, pure=False), delayed(whole, pure=False)
    found = cluster.gather(cluster.client.compute([look(part, told) for part in lying.loaded]))
    ends = [end for _, *both in found for end in both if end > 0.0]
    return [total for total, *_ in found], min(ends) == max(ends), max(ends)


# On workers ---------------------------------------------------------------------------------------


def weigh_part(part: Part, whole: WholeTask) -> tuple[float, float, float]:
    """The weight of a part in (PL), and the least and the largest of its rows; 0 where it has none."""
    if not len(part.y):
        return 0.0, 0.0, 0.0
    weight = whole.weights(part.y, part.weight)
    return float(weight.sum()), float(weight.min()), float(weight.max())
