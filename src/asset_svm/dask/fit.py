"""One fit on a cluster by averaging, from rows that are loaded to a solution.

plan      the map, the metric and the step sizes, from the sample
shards    neighbouring partitions, joined, each on its worker
rounds    ``training.shards``, on the cluster
certify   the intercept settled by the sample; objective and duality gap, from sums over shards
"""

from __future__ import annotations

import logging
from collections import Counter
from typing import Any

import numpy as np
from distributed import futures_of

from asset_svm.backends.cpu import CpuBackend
from asset_svm.dask.cluster import ShardedRun, Watch
from asset_svm.dask.loading import Loaded
from asset_svm.dask.partitions import group
from asset_svm.dask.work import Assignment
from asset_svm.data import GivenOrder
from asset_svm.families.observing import Observer
from asset_svm.families.one_map.drawn import DrawnMap
from asset_svm.families.one_map.fit import DEFAULT_EPOCHS
from asset_svm.families.one_map.maps import draw_map
from asset_svm.families.one_map.monitor import Monitor
from asset_svm.families.rows import resolve_sampling
from asset_svm.features import Evaluable, FeatureMap, Metric
from asset_svm.settings import Settings
from asset_svm.solvers import SolverState
from asset_svm.training.certificate import finish, settle_intercept
from asset_svm.training.likeness import are_alike
from asset_svm.training.plan import find_step_sizes
from asset_svm.training.recipe import Recipe
from asset_svm.training.rows import TrainingRows
from asset_svm.training.run import trivial_solution
from asset_svm.training.shards import Plan, run_rounds
from asset_svm.training.solution import Solution, check_finite

logger = logging.getLogger("asset_svm")

MOST_SHARDS = 128
"""Shards that partitions make by default; the error grows with their number."""
ROUNDS_PER_EPOCH = 10
"""Where shards differ; where they are alike one does, and more gain nothing (docs/scaling.md)."""
ROUND_STEPS = 1000
"""The least that a shard should do in a round, by default, as long as there are some rounds."""
FEWEST_ROUNDS = 10


class ClusterFit:
    """A fit of an estimator to loaded rows; ``run`` does it.

    After it, ``phi``, ``metric``, ``recipe``, ``monitor`` and the ``sizes`` of the shards are there.
    """

    phi: FeatureMap
    metric: Metric | None
    recipe: Recipe
    monitor: Monitor
    sizes: list[int]

    def __init__(
        self,
        settings: Settings,
        watch: Watch,
        data: Loaded,
        observer: Observer,
        *,
        n_shards: int | None,
        rounds_per_epoch: int | None,
    ):
        self.settings, self.watch, self.data, self.observer = settings, watch, data, observer
        self.n_shards, self.rounds_per_epoch = n_shards, rounds_per_epoch

    def run(self) -> Solution:
        """The solution."""
        settings, data, seed = self.settings, self.data, self.data.seed
        rows, encoded, total = data.rows, data.encoded, data.n_rows
        backend = settings.host()
        phi = draw_map(settings, backend, rows.X, rows.uneven, seed)
        drawn = DrawnMap.measured(backend, phi, rows, settings.step, seed)
        self.phi, self.metric = drawn.phi, drawn.metric
        n_models = encoded.targets.n_models
        self.recipe = recipe = settings.recipe(encoded.loss, data.lam, n_models, seed)
        sizes = [s.n_rows for s in data.summaries]
        groups = group(sizes, self.n_shards or MOST_SHARDS)
        self.sizes = [sum(sizes[k] for k in members) for members in groups]
        shares = np.array(self.sizes) / total
        epochs = DEFAULT_EPOCHS.over(total, settings.max_iter)
        mean_weight = None if data.even else data.total_weight / total
        sampling = resolve_sampling(
            settings.sampling, settings.step, data.heaviest, data.total_weight / total
        )
        if sampling == "uniform":  # rows are drawn by their weights, which shares must then follow
            weights = [sum(data.weights[k] for k in members) for members in groups]
            shares = np.array(weights) / data.total_weight
        mapping = self.phi if self.metric is None else self.phi.in_metric(self.metric)
        slopes = None if mean_weight is None or sampling == "uniform" else rows.weight / mean_weight
        sample = self._sample(backend, mapping, slopes)
        steps = total * epochs // len(groups)
        with backend.pool(n_models) as pool, backend.working(sample.mapped):
            found = find_step_sizes(
                backend, recipe, sample, steps, pool, y_max=encoded.y_max, decaying=True
            )
        self.monitor = Monitor(
            settings, data.task, backend, self.phi, self.metric, None, epochs, self.observer
        )
        if found.trivial:
            return trivial_solution(recipe, self.phi.dimension, data.dtype)
        rounds = self._rounds(epochs, steps, sample)
        plan = Plan(recipe, mapping, self.metric, found, epochs, rounds, len(groups))
        assignment = Assignment(
            plan,
            data.encoding,
            sampling,
            mean_weight,
            encoded.y_max,
            [seed, *map(int, np.random.SeedSequence(seed).generate_state(len(groups) - 1))],
            settings.memory_limit,
        )
        del sample
        cluster = ShardedRun(
            self.watch,
            [[data.parts[k] for k in members] for members in groups],
            [[data.loaded[k] for k in members] for members in groups],
            self.sizes,
            [sum(data.summaries[k].n_bytes for k in members) for members in groups],
            self._holders(groups),
            assignment,
            max(plan.rounds // epochs, 1),
            data.dtype,
        )
        data.loaded.clear()  # the shards have them
        return self._solve(cluster, shares, backend)

    def _sample(self, backend: CpuBackend, phi: Evaluable, slopes: np.ndarray | None) -> TrainingRows:
        """The rows that the client has, mapped."""
        rows, encoded = self.data.rows, self.data.encoded
        return TrainingRows(
            backend.rows(phi, rows.X),
            encoded.targets,
            GivenOrder(len(rows.y)),
            rows.weight,
            slopes,
            encoded.y_max,
            self.metric,
        )

    def _solve(self, cluster: ShardedRun, shares: np.ndarray, backend: CpuBackend) -> Solution:
        plan, epochs = cluster.plan, 0

        def after_round(model: Any, record: dict[str, Any]) -> bool:
            nonlocal epochs
            ended, epochs = record["epoch"] > epochs, record["epoch"]
            return ended and self.monitor(epochs, model, record)

        model, history = run_rounds(plan, shares, cluster.round, after_round)
        sample = self._sample(backend, plan.phi, None)
        model = settle_intercept(sample, self.recipe, model)
        if len(self.data.rows.y) == self.data.n_rows:  # the client has them all
            model, _ = finish(sample, self.recipe, model)
        coef, intercept = model
        certificate = cluster.certificate_sums((coef, intercept)).certificate(
            np.array(self.recipe.lam), coef,
            free_intercept=self.recipe.free_intercept, metric=self.metric,
        )  # fmt: skip
        if self.metric is not None:
            coef = self.metric.apply(coef)
        check_finite(coef, intercept, certificate)
        return Solution(
            coef,
            intercept,
            certificate,
            epochs,
            plan.sizes.scale,
            SolverState.zeros(len(coef), self.phi.dimension, self.data.dtype),
            plan.sizes.bounds,
            plan.sizes.kappa,
            history[-1]["steps"],
            history,
        )

    def _rounds(self, epochs: int, steps: int, sample: TrainingRows) -> int:
        """Of the whole run, for shards of about so many steps."""
        asked = self.rounds_per_epoch
        if len(self.sizes) == 1:  # nobody to average with: only the epochs are of interest
            return epochs
        if asked is not None:
            return int(asked) * epochs
        each = 1 if self._alike(sample) else ROUNDS_PER_EPOCH
        return max(min(each * epochs, steps // ROUND_STEPS), FEWEST_ROUNDS)

    def _alike(self, sample: TrainingRows) -> bool:
        """Whether shards are, as far as the sample tells."""
        shard = np.searchsorted(np.cumsum(self.sizes), self.data.rows.index, side="right")
        alike = are_alike(self.recipe, sample, shard)
        if not alike:
            logger.info(
                "The rows of the %d shards differ by more than chance; models are averaged more often. "
                "Shuffle rows that are sorted: the model will be better, and there sooner.",
                len(self.sizes),
            )
        return alike

    def _holders(self, groups: list[list[int]]) -> list[Counter[str]]:
        """For each shard, how many of its parts each worker has."""
        loaded = self.data.loaded
        where = self.watch.wait(self.watch.client.who_has, futures_of(loaded))
        return [Counter(w for k in members for w in where.get(loaded[k].key, ())) for members in groups]
