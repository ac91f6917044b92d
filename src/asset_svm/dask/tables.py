"""Tables on a cluster: summarised where they lie, their encoder settled on the client, encoded there.

Summaries and sums of targets are joined by the workers, a few at a time and in the order of the
partitions, so that one of each comes to the client, and the same whoever joins them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
import scipy.sparse as sp
from dask.delayed import Delayed, delayed

from asset_svm.dask.cluster import Cluster
from asset_svm.dask.lying import Lying
from asset_svm.dask.partitions import Part
from asset_svm.encoding.plan import MeansFit
from asset_svm.encoding.summary import TableSummary
from asset_svm.estimators.tables import TableEncoder, outputs_of
from asset_svm.tasks import Task

TOGETHER = 8
"""Summaries that one task joins."""
Joined = TypeVar("Joined", TableSummary, MeansFit)


def encode_parts(
    cluster: Cluster, lying: Lying, sample: Part, task: Task
) -> tuple[Lying, Part, TableSummary]:
    """Settle the encoder of tables, and make rows of numbers of them to learn from, where they lie.

    Returns
    -------
    lying, sample
        The parts and the sample, encoded.
    summary : TableSummary
        What is known of the columns.
    """
    encoder, of_task = lying.encoder, delayed(task, pure=False)
    assert encoder is not None
    mean = sum(s.weight for s in lying.filled) / lying.n_rows

    def fill(filled: MeansFit) -> MeansFit:
        empty, add = delayed(filled, pure=False), delayed(part_means, pure=False)
        return _joined(cluster, [add(part, empty, of_task, mean) for part in lying.tables])

    look = delayed(part_summary, pure=False)
    summary = _joined(
        cluster, [look(part, task.numeric and sample.y.ndim == 1) for part in lying.tables]
    )
    targets = sample.y, sample.weight
    encoder.settle(summary, sample.X, task, targets, fill, named=lying.named)
    by = delayed(encoder, pure=False)
    sample = encode_part(sample, encoder)
    per_row = sample.__sizeof__() / len(sample.y)
    summaries = [
        replace(
            s,
            n_features=encoder.encoding_.width,
            n_bytes=int(per_row * s.n_rows),
            dtype=sample.X.dtype,
            sparse=sp.issparse(sample.X),
        )
        for s in lying.summaries
    ]
    return replace(lying.changed(cluster, encode_part, by), summaries=summaries), sample, summary


def _joined(cluster: Cluster, tasks: Sequence[Delayed]) -> Any:
    """What all of these tasks have found, joined by the workers."""
    go: Callable[..., Delayed] = delayed(join_found, pure=False)
    while len(tasks) > 1:
        tasks = [go(tasks[k : k + TOGETHER]) for k in range(0, len(tasks), TOGETHER)]
    (found,) = cluster.gather(cluster.client.compute(list(tasks)))
    return found


# On workers ---------------------------------------------------------------------------------------


def part_summary(part: Part, numeric: bool) -> TableSummary:
    """What a part tells of the columns."""
    return TableSummary.of(part.X, np.asarray(part.y, dtype=np.float64) if numeric else None)


def part_means(part: Part, empty: MeansFit, task: Task, mean: float) -> MeansFit:
    """The sums of the targets of a part; weights count in units of their ``mean`` over all rows."""
    filled = deepcopy(empty)  # others have it too
    filled.add(part.X, outputs_of(task, part.y), part.weight / mean)
    return filled


def join_found(found: Sequence[Joined]) -> Joined:
    """What all of them tell, together."""
    whole = deepcopy(found[0])  # the worker may be asked for it again
    for other in found[1:]:
        whole.join(other)
    return whole


def encode_part(part: Part, encoder: TableEncoder) -> Part:
    """The rows of a part as numbers to learn from."""
    if not len(part.y):
        return replace(part, X=np.empty((0, encoder.encoding_.width), dtype=encoder.dtype))
    return replace(part, X=encoder.rows(part.X, learning=True))
