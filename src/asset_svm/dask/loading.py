"""The rows of a fit, as they lie on a cluster, and what the client knows of them.

load      partitions are checked where they lie; a summary of each comes to the client
sample    so do some rows, with their targets
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from dask.delayed import Delayed, delayed

from asset_svm.dask.cluster import Watch
from asset_svm.dask.partitions import Part, Summary, join, partitions, summarise
from asset_svm.dask.work import Encoding
from asset_svm.families.rows import Rows
from asset_svm.settings import Settings
from asset_svm.tasks import Encoded, Task

SAMPLE_ROWS = 20_000
"""Rows that come to the client at least; all, where there are no more."""


@dataclass(eq=False)
class Loaded:
    """Rows on a cluster.

    Parameters
    ----------
    parts : list of Delayed
        From their source.
    loaded : list of Delayed
        The same as they lie on the cluster; cleared to let go of them.
    summaries : list of Summary
    task : Task
        Settled by all rows.
    rows, encoded : Rows, Encoded
        A sample of all rows.
    encoding : Encoding
    weights : list of float
        Of the parts, in (PL).
    even : bool
        Whether all weights are alike.
    heaviest : float
        The largest weight of a row.
    lam : float
    seed : int
    """

    parts: list[Delayed]
    loaded: list[Delayed]
    summaries: list[Summary]
    task: Task
    rows: Rows
    encoded: Encoded
    encoding: Encoding
    weights: list[float]
    even: bool
    heaviest: float
    lam: float
    seed: int

    @property
    def n_rows(self) -> int:
        """Of positive weight."""
        return sum(s.n_rows for s in self.summaries)

    @property
    def skipped(self) -> int:
        """Rows of weight 0."""
        return sum(s.skipped for s in self.summaries)

    @property
    def total_weight(self) -> float:
        """W."""
        return sum(self.weights)

    @property
    def dtype(self) -> np.dtype:
        """Of the rows, when they are joined."""
        return self.rows.X.dtype


def load_rows(
    settings: Settings,
    task: Task,
    watch: Watch,
    X: Any,
    y: Any,
    sample_weight: Any,
    wanted: Callable[[int], int],
) -> Loaded:
    """Check collections on the cluster, and sample them: at least ``wanted(m)`` rows of m."""
    numeric = task.numeric
    parts = partitions(X, y, sample_weight, numeric=numeric)
    seed = settings.draw_seed()
    loaded = watch.client.persist(parts)
    summaries = _summaries(watch, loaded, numeric=numeric)
    total = sum(s.n_rows for s in summaries)
    chosen = np.arange(total)
    count = max(SAMPLE_ROWS, wanted(total))
    if count < total:
        rng = np.random.default_rng([seed, 6])
        chosen = np.sort(rng.choice(total, size=count, replace=False))
    filled = [s for s in summaries if s.n_rows]
    dtype = np.result_type(*(s.dtype for s in filled))
    sample = join(watch.gather(watch.client.compute(_taken(loaded, summaries, chosen))), dtype)
    even = all(s.even and s.largest_weight == filled[0].largest_weight for s in filled)
    heaviest = max(s.largest_weight for s in filled)
    if numeric:
        task = task.settled(sample.y, sample.weight)
        encoded = task.encode(sample.y)
        ends = np.concatenate([s.values for s in filled])
        encoded = replace(encoded, y_max=float(np.abs(ends - encoded.offset).max()))
        encoding = Encoding(offset=encoded.offset)
    else:
        classes = np.unique(np.concatenate([s.values for s in filled]))
        task = task.with_classes(classes).settled(sample.y, sample.weight)
        encoded = task.encode(sample.y)
        encoding = Encoding(classes, _factors(task, classes, filled))
        if encoding.factors is not None:
            even = even and bool((encoding.factors == encoding.factors[0]).all())
            heaviest *= float(encoding.factors.max())
    rows = Rows(sample.X, sample.y, sample.weight, encoding(sample)[1], chosen)
    weights = [_weight(s, encoding) for s in summaries]
    lam = settings.lam_of(sum(weights))
    return Loaded(
        parts,
        list(loaded),
        summaries,
        task,
        rows,
        encoded,
        encoding,
        weights,
        even,
        heaviest,
        float(lam),
        seed,
    )


def _summaries(watch: Watch, loaded: Any, *, numeric: bool) -> list[Summary]:
    """Of all parts, which must agree with each other."""
    tasks = [delayed(summarise, pure=False)(part, numeric) for part in loaded]
    found: list[Summary] = watch.gather(watch.client.compute(tasks))
    filled = [s for s in found if s.n_rows]
    if not filled:
        raise ValueError("X has no row of positive weight; give some row a positive weight.")
    for what, kinds in (
        ("numbers of columns", {s.n_features for s in filled}),
        ("kinds of rows (sparse or not)", {s.sparse for s in filled}),
    ):
        if len(kinds) > 1:
            raise ValueError(
                f"The partitions of X have several {what}, {sorted(kinds)}; they must agree."
            )
    return found


def _taken(loaded: Any, summaries: list[Summary], chosen: np.ndarray) -> list[Delayed]:
    """The chosen rows of each part that has any."""
    tasks, begin = [], 0
    for part, summary in zip(loaded, summaries, strict=True):
        end = begin + summary.n_rows
        inside = chosen[np.searchsorted(chosen, begin) : np.searchsorted(chosen, end)] - begin
        if len(inside):
            tasks.append(delayed(Part.take, pure=False)(part, inside))
        begin = end
    return tasks


def _factors(task: Task, classes: np.ndarray, filled: list[Summary]) -> np.ndarray | None:
    """What the class of a row multiplies its weight by; None where nothing does."""
    totals = np.zeros(len(classes))
    for s in filled:
        totals[np.searchsorted(classes, s.values)] += s.value_weights
    factors = task.factors(totals)
    if factors is not None and not factors.all():
        raise ValueError(
            "class_weight has a weight of 0; leave the rows of that class out of X and y instead."
        )
    return factors


def _weight(summary: Summary, encoding: Encoding) -> float:
    """The weight of a part in (PL)."""
    if encoding.classes is None or encoding.factors is None or not summary.n_rows:
        return summary.weight
    codes = np.searchsorted(encoding.classes, summary.values)
    return float(summary.value_weights @ encoding.factors[codes])
