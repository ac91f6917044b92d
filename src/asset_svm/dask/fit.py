"""One fit on a cluster by averaging, from rows that are loaded to a model on one map.

plan      the map, the metric and the step sizes, from the sample
shards    neighbouring partitions, joined, each on its worker
rounds    ``training.shards``, on the cluster
certify   the intercept settled by the sample; objective and duality gap, from sums over shards
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

from asset_svm.dask.cluster import Cluster, ShardedRun
from asset_svm.dask.loading import Loaded
from asset_svm.dask.work import Assignment
from asset_svm.data import GivenOrder
from asset_svm.families.observing import Observer
from asset_svm.families.one_map import FittedMap
from asset_svm.families.one_map.drawn import DrawnMap
from asset_svm.families.one_map.fit import DEFAULT_EPOCHS
from asset_svm.families.one_map.monitor import Monitor
from asset_svm.families.rows import resolve_sampling, visiting_order
from asset_svm.settings import Settings
from asset_svm.training.plan import find_step_sizes
from asset_svm.training.shards import Plan, count_rounds, train_shards
from asset_svm.training.solution import Solution

MOST_SHARDS = 128
"""Shards that partitions make by default; the error grows with their number."""


def fit_shards(
    settings: Settings,
    cluster: Cluster,
    data: Loaded,
    observer: Observer,
    *,
    n_shards: int | None,
    rounds_per_epoch: int | None,
) -> FittedMap:
    """Train one model on all shards, by rounds after which their models are averaged.

    Parameters
    ----------
    data : Loaded
        Its parts on the cluster are let go of when the shards have them.
    n_shards, rounds_per_epoch : int, optional
        Those of the estimator.
    """
    rows, encoded, seed, total = data.rows, data.encoded, data.seed, data.n_rows
    backend, K = settings.host(), encoded.targets.n_models
    drawn = DrawnMap.draw(settings, backend, rows, seed)
    recipe = settings.recipe(encoded.loss, data.lam, K, seed)
    epochs = DEFAULT_EPOCHS.over(total, settings.max_iter)
    monitor = Monitor(settings, data.task, drawn, epochs, observer)
    shards = data.shards(n_shards or MOST_SHARDS)
    sizes, count = np.array([shard.n_rows for shard in shards]), len(shards)
    steps = total * epochs // count
    mean = data.total_weight / total
    sampling = resolve_sampling(settings.sampling, settings.step, data.heaviest, mean)
    mean_weight = None if data.even else mean
    _, slopes = visiting_order(sampling, seed, rows.weight, mean_weight)
    take_sample = partial(drawn.training, backend, rows, encoded, GivenOrder(len(rows.y)))
    sample = take_sample(slopes)
    with backend.working(sample.mapped):
        found = find_step_sizes(backend, recipe, sample, steps, decaying=True)
    if found.trivial:
        solution = Solution.trivial(recipe, drawn.phi.dimension, data.dtype)
    else:
        rounds = epochs * (rounds_per_epoch or 1)
        if count == 1:  # nobody to average with: only the epochs are of interest
            rounds = epochs
        elif rounds_per_epoch is None:
            shard = np.searchsorted(np.cumsum(sizes), rows.index, side="right")
            rounds = count_rounds(recipe, epochs, steps, sample, shard, count)
        plan = Plan(recipe, drawn.mapping, drawn.metric, found, epochs, rounds, count)
        del sample  # mapped rows take memory
        seeds = [seed, *map(int, np.random.SeedSequence(seed).generate_state(count - 1))]
        limit = settings.memory_limit
        assignment = Assignment(plan, data.whole, sampling, mean_weight, seeds, limit)
        run = ShardedRun(cluster, shards, assignment, data.dtype)
        data.loaded.clear()
        shares = sizes / total
        if sampling == "uniform":  # rows are drawn by their weights, which shares must then follow
            shares = np.array([shard.weight for shard in shards]) / data.total_weight
        whole = len(rows.y) == total
        solution = train_shards(plan, shares, run, take_sample, monitor, whole=whole)
    fitted = FittedMap.solved(
        settings,
        data.task,
        drawn,
        recipe,
        solution,
        rows,
        mean_weight=float(rows.weight.mean()),
        y_max=encoded.y_max,
        extra={"n_shards_": count, "n_rounds_": len(solution.history)},
    )
    if data.skipped:  # landmarks are numbered without those rows
        fitted = replace(fitted, indices=None)
    monitor.finish(solution.coef, solution.intercept)
    return fitted
