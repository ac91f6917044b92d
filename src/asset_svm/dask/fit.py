"""One fit on a cluster, from collections to a solution.

load      partitions are checked where they lie; a summary of each comes to the client
sample    so do some rows, from which the map, the metric and the step sizes are made
shards    neighbouring partitions, joined, each on its worker
rounds    ``engines.averaging``, on the cluster
certify   objective and duality gap, from sums over shards
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
from dask.delayed import delayed
from distributed import Client, futures_of

from asset_svm.dask.cluster import ShardedRun, Watch
from asset_svm.dask.partitions import Part, Summary, group, join, partitions, summarise
from asset_svm.dask.work import Assignment, Encoding
from asset_svm.data import GivenOrder
from asset_svm.engines.averaging import (
    Plan,
    Snapshot,
    StepSizes,
    find_step_sizes,
    lifted_rows,
    run_rounds,
)
from asset_svm.engines.task import Recipe, Solution, TrainingRows
from asset_svm.engines.training import check_finite
from asset_svm.estimators.base import Encoded
from asset_svm.estimators.learning import DEFAULT_EPOCHS, DEFAULT_STEPS, MILD_WEIGHTS, Rows
from asset_svm.estimators.monitor import Monitor
from asset_svm.features import FeatureMap, Metric
from asset_svm.problem import Certificate
from asset_svm.solvers import SolverState

SAMPLE_ROWS = 20_000
"""Rows that come to the client: the map, the metric, D_G and the pilot are made of them."""
MOST_SHARDS = 128
"""Shards that partitions make by default; the error grows with their number."""
ROUNDS_PER_EPOCH = 10
"""One would do where rows are shuffled; where partitions differ, more are better (docs/scaling.md)."""
ROUND_STEPS = 1000
"""The least that a shard should do in a round, by default, as long as there are some rounds."""
FEWEST_ROUNDS = 10


class ClusterFit:
    """A fit of an estimator to collections; ``run`` does it.

    After it, ``phi``, ``metric``, ``recipe``, ``monitor``, ``n_features``, the ``sizes`` of the shards
    and the number of rows ``skipped`` for their weight of 0 are there.
    """

    phi: FeatureMap
    metric: Metric | None
    recipe: Recipe
    monitor: Monitor
    sizes: list[int]

    def __init__(
        self, estimator: Any, client: Client, X: Any, y: Any, sample_weight: Any, look: Any = None
    ):
        self.estimator, self.client, self.X, self.y = estimator, client, X, y
        self.numeric = estimator._y_numeric
        self.watch, self.look = Watch(client), look
        self.parts = partitions(X, y, sample_weight, numeric=self.numeric)
        self.seed = estimator._seed()

    def run(self) -> tuple[Solution, Rows, Encoded]:
        """The solution, and the sample with its targets."""
        estimator, seed = self.estimator, self.seed
        loaded = self.client.persist(self.parts)
        summaries = self._summaries(loaded)
        rows, encoded, encoding, even, heaviest = self._sample(loaded, summaries)
        total = sum(s.n_rows for s in summaries)
        weights = [_weight(s, encoding) for s in summaries]
        weight_sum = sum(weights)
        lam = estimator.lam if estimator.lam is not None else 1.0 / (estimator.C * weight_sum)
        engine = estimator._host_engine()
        self.phi = estimator._draw_map(engine, rows.X, rows.uneven, seed, batch=False)
        self.metric = None
        if estimator._step == "metric":
            self.metric = engine.find_metric(self.phi, rows.X, rows.weight, seed)
        n_models = encoded.targets.n_models
        self.recipe = recipe = estimator._recipe(encoded.loss, float(lam), n_models, seed)
        groups = group([s.n_rows for s in summaries], estimator.n_shards or MOST_SHARDS)
        self.sizes = [sum(summaries[k].n_rows for k in members) for members in groups]
        shares = np.array(self.sizes) / total
        epochs = estimator.max_iter or max(DEFAULT_EPOCHS, -(-DEFAULT_STEPS // total))
        mean_weight = None if even else weight_sum / total
        sampling = estimator.sampling
        if sampling == "auto":
            mild = heaviest <= MILD_WEIGHTS * weight_sum / total
            sampling = "shuffle" if estimator._step == "metric" and mild else "uniform"
        if sampling == "uniform":  # rows are drawn by their weights, which shares must then follow
            shares = np.array([sum(weights[k] for k in members) for members in groups]) / weight_sum
        phi = self.phi if self.metric is None else self.phi.in_metric(self.metric)
        sample = TrainingRows(
            engine.rows(phi, rows.X, screen=recipe.screens),
            encoded.targets,
            GivenOrder(len(rows.y)),
            rows.weight,
            None if mean_weight is None or sampling == "uniform" else rows.weight / mean_weight,
            encoded.y_max,
            self.metric,
        )
        steps = total * epochs // len(groups)
        sizes = find_step_sizes(engine, recipe, sample, encoded.y_max, steps)
        self.monitor = Monitor(
            estimator, engine, self.phi, self.metric, encoded, None, epochs, self.X, self.y, self.look
        )
        if sizes.trivial:
            return self._trivial(sizes, rows), rows, encoded
        plan = Plan(recipe, phi, self.metric, sizes, epochs, self._rounds(epochs, steps), len(groups))
        limit = estimator.memory_limit
        assignment = Assignment(
            plan,
            encoding,
            sampling,
            mean_weight,
            encoded.y_max,
            [seed, *map(int, np.random.SeedSequence(seed).generate_state(len(groups) - 1))],
            None if limit is None else int(limit),
        )
        lifted = rows.index[lifted_rows(sample)]
        del sample
        cluster = ShardedRun(
            self.watch,
            [[self.parts[k] for k in members] for members in groups],
            [[loaded[k] for k in members] for members in groups],
            self.sizes,
            self._holders(loaded, groups),
            assignment,
            self._befores(lifted),
            max(plan.rounds // epochs, 1),
            rows.X.dtype,
        )
        del loaded
        return self._solve(cluster, shares, rows), rows, encoded

    def _solve(self, cluster: ShardedRun, shares: np.ndarray, rows: Rows) -> Solution:
        plan, epochs = cluster.plan, 0

        def after_round(model: Any, record: dict[str, Any]) -> bool:
            nonlocal epochs
            ended, epochs = record["epoch"] > epochs, record["epoch"]
            return ended and self.monitor(epochs, model, record)

        (coef, intercept), history = run_rounds(plan, shares, cluster.round, after_round)
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
            SolverState.zeros(len(coef), self.phi.dimension, rows.X.dtype),
            plan.sizes.bounds,
            plan.sizes.kappa,
            history[-1]["steps"],
            history,
        )

    def _trivial(self, sizes: StepSizes, rows: Rows) -> Solution:
        """epsilon >= |y|_inf: (0, 0) is a solution with objective 0."""
        state = SolverState.zeros(1, self.phi.dimension, rows.X.dtype)
        zero = np.zeros(1)
        certificate = Certificate(zero, zero.copy(), zero.copy())
        return Solution(state.coef, zero, certificate, 0, 1.0, state, sizes.bounds, sizes.kappa)

    def _summaries(self, loaded: Any) -> list[Summary]:
        """Of all parts, which must agree with each other."""
        tasks = [delayed(summarise, pure=False)(part, self.numeric) for part in loaded]
        found: list[Summary] = self.watch.gather(self.client.compute(tasks))
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
        self.n_features = filled[0].n_features
        self.skipped = sum(s.skipped for s in found)
        return found

    @staticmethod
    def _class_totals(summaries: list[Summary], classes: Any) -> np.ndarray:
        """The weight of each class."""
        totals = np.zeros(len(classes))
        for s in summaries:
            if s.n_rows:
                totals[np.searchsorted(classes, s.values)] += s.value_weights
        return totals

    def _sample(
        self, loaded: Any, summaries: list[Summary]
    ) -> tuple[Rows, Encoded, Encoding, bool, float]:
        """Some of all rows with their targets; whether all weights are alike, and the largest."""
        estimator, filled = self.estimator, [s for s in summaries if s.n_rows]
        total = sum(s.n_rows for s in summaries)
        count = min(total, max(SAMPLE_ROWS, 4 * (estimator.n_components or 0)))
        chosen = np.arange(total)
        if count < total:
            rng = np.random.default_rng([self.seed, 6])
            chosen = np.sort(rng.choice(total, size=count, replace=False))
        tasks, begin = [], 0
        for part, summary in zip(loaded, summaries, strict=True):
            end = begin + summary.n_rows
            inside = chosen[np.searchsorted(chosen, begin) : np.searchsorted(chosen, end)] - begin
            if len(inside):
                tasks.append(delayed(Part.take, pure=False)(part, inside))
            begin = end
        dtype = np.result_type(*(s.dtype for s in filled))
        part = join(self.watch.gather(self.client.compute(tasks)), dtype)
        even = all(s.even and s.largest_weight == filled[0].largest_weight for s in filled)
        heaviest = max(s.largest_weight for s in filled)
        if self.numeric:
            encoded = estimator._encode(part.y, part.weight)
            ends = np.concatenate([s.values for s in filled])
            y_max = float(np.abs(ends - encoded.offset).max())
            encoding = Encoding(offset=encoded.offset)
            rows = Rows(part.X, part.y, part.weight, part.weight, chosen)
            return rows, replace(encoded, y_max=y_max), encoding, even, heaviest
        classes = np.unique(np.concatenate([s.values for s in filled]))
        encoded = estimator._encode(part.y, part.weight, classes)
        factors = estimator._class_weights(classes, self._class_totals(summaries, classes))
        if factors is not None:
            if not factors.all():
                raise ValueError(
                    f"class_weight={estimator.class_weight} has a weight of 0; leave the rows of that "
                    "class out of X and y instead."
                )
            even = even and bool((factors == factors[0]).all())
            heaviest *= float(factors.max())
        encoding = Encoding(classes, factors)
        _, weight = encoding(part)
        return Rows(part.X, part.y, part.weight, weight, chosen), encoded, encoding, even, heaviest

    def _rounds(self, epochs: int, steps: int) -> int:
        """Of the whole run, for shards of about so many steps."""
        asked = self.estimator.rounds_per_epoch
        if len(self.sizes) == 1:  # nobody to average with: only the epochs are of interest
            return epochs
        if asked is not None:
            return int(asked) * epochs
        return max(min(ROUNDS_PER_EPOCH * epochs, steps // ROUND_STEPS), FEWEST_ROUNDS)

    def _befores(self, lifted: np.ndarray) -> list[Snapshot]:
        """The shards before the first round: rows that the sample lifted count as lifted there too."""
        found, begin = [], 0
        for size in self.sizes:
            inside = lifted[np.searchsorted(lifted, begin) : np.searchsorted(lifted, begin + size)]
            found.append(Snapshot.before(size, inside - begin))
            begin += size
        return found

    def _holders(self, loaded: Any, groups: list[list[int]]) -> list[Counter[str]]:
        """For each shard, how many of its parts each worker has."""
        where = self.watch.wait(self.client.who_has, futures_of(loaded))
        keys = [part.key for part in loaded]
        return [Counter(w for k in members for w in where.get(keys[k], ())) for members in groups]


def _weight(summary: Summary, encoding: Encoding) -> float:
    """The weight of a part in (PL)."""
    if encoding.classes is None or encoding.factors is None or not summary.n_rows:
        return summary.weight
    codes = np.searchsorted(encoding.classes, summary.values)
    return float(summary.value_weights @ encoding.factors[codes])
