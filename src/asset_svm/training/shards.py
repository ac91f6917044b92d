"""Parallel stochastic subgradients with periodic averaging: the rows in shards, the run in rounds.

    plan     map, metric, D_X, D_G, step scale: settled once, from a sample of all rows
    round    every shard goes on from the mean model, through its share of its rows, by the local loop
    mean     sum_i share_i model_i, share_i the shard's part of the rows
    end      the mean of the shards' averaged models

Only models, K (d + 1) numbers, pass between a shard and the one who averages. A shard behaves as a
local run on its rows alone would: it has m_i times ``epochs`` steps, which decay to 0 over them, and
averages its own iterates. With one shard nothing is exchanged, and the run is the local backend's.

A round is a pure function of the shard's rows, the plan, what the shard was after an earlier round
(its ``ShardSnapshot``) and the mean models since: whoever has these can repeat it elsewhere, bit for
bit. Two things serve this. Blocks end where rounds do, so that no block has seen two models. And the
shrink that is due in a metric need not be done before averaging, being linear.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from asset_svm import clock
from asset_svm.arrays import Array
from asset_svm.backends.cpu import CpuBackend
from asset_svm.features import Evaluable, Metric
from asset_svm.problem import CertificateSums
from asset_svm.solvers import Average, Cut, ModelAxis, SolverState
from asset_svm.solvers.tallies import Progress, Slopes
from asset_svm.training.certificate import finish, settle_intercept
from asset_svm.training.likeness import are_alike
from asset_svm.training.plan import StepSizes
from asset_svm.training.recipe import Recipe
from asset_svm.training.rows import TrainingRows, plain_coef
from asset_svm.training.solution import Solution
from asset_svm.training.stopping import AfterEpoch

logger = logging.getLogger("asset_svm")
Model = tuple[Array, Array]
"""(K, d) coef in the basis of the mapped rows, (K,) intercept."""
ROUNDS_PER_EPOCH = 10
"""Models are averaged so often where shards differ; where they are alike, once (docs/scaling.md)."""
ROUND_STEPS = 1000
"""A shard should do so many steps in a round, by default, as long as there are some rounds."""
FEWEST_ROUNDS = 10
"""A run has at least so many rounds, by default."""


@dataclass(frozen=True, eq=False)
class Plan:
    """What every shard must know beside its rows.

    Parameters
    ----------
    phi : Evaluable
        The map, with the metric folded in.
    epochs, rounds : int
        Those of the whole run.
    """

    recipe: Recipe
    phi: Evaluable
    metric: Metric | None
    sizes: StepSizes
    epochs: int
    rounds: int
    n_shards: int

    def axis(self, steps: int) -> ModelAxis:
        """The models of a shard with so many steps."""
        return self.sizes.axis(self.recipe, self.metric, steps)


@dataclass(frozen=True)
class Rounds:
    """The steps of a shard, cut evenly: round r = 0, 1, ... ends at step (r + 1) steps // count."""

    steps: int
    count: int

    def begin(self, r: int) -> int:
        """The first step of round r."""
        return r * self.steps // self.count

    def of(self, position: int) -> int:
        """The round of a step."""
        return ((position + 1) * self.count - 1) // self.steps


@dataclass(frozen=True)
class RoundCut(Cut):
    """Blocks that end where rounds do."""

    rounds: Rounds = Rounds(1, 1)

    def around(self, position: int) -> tuple[int, int]:
        """[first, end) of the block of this step."""
        first, end = super().around(position)
        r = self.rounds.of(position)
        return max(first, self.rounds.begin(r)), min(end, self.rounds.begin(r + 1))


@dataclass(frozen=True, eq=False)
class ShardSnapshot:
    """All that a shard keeps from one round to the next, beside what can be computed anew.

    Parameters
    ----------
    rounds : int
        The rounds that it has behind it.
    state, average
        Without the iterates, which the next mean model replaces; None before the first round.
    """

    rounds: int = 0
    state: SolverState | None = None
    average: Average | None = None


@dataclass(frozen=True, eq=False)
class Report:
    """What a shard tells after a round: its model, and sums over the steps of the round."""

    model: Model
    progress: Progress


class Shard:
    """One shard of the rows, and where its run stands.

    Parameters
    ----------
    rows : TrainingRows
        In the map and metric of the plan.
    """

    def __init__(self, backend: CpuBackend, plan: Plan, rows: TrainingRows, past: ShardSnapshot):
        self.backend, self.plan, self.rows = backend, plan, rows
        m, recipe = rows.order.n_rows, plan.recipe
        steps = m * plan.epochs
        self.rounds, self.done = Rounds(steps, plan.rounds), past.rounds
        cut = backend.cut()
        if plan.n_shards > 1:
            cut = RoundCut(cut.size, cut.until, cut.later, self.rounds)
        state = SolverState.zeros(len(recipe.lam), rows.mapped.dimension, rows.mapped.dtype)
        average = Average(recipe.window(steps, looked_at=False))
        if past.state is not None and past.average is not None:
            kept, average = deepcopy((past.state, past.average))
            state = replace(kept, direction=state.direction, pending=state.pending)
        visits = rows.visits(cut, form=recipe.form_for(rows.targets), length=steps, ahead=True)
        self.driver = backend.driver(visits, plan.axis(steps), state, average)
        self.driver.position = self.rounds.begin(self.done)
        self.driver.slopes = Slopes.zeros(len(recipe.lam), m)

    def advance(self, mean: Model | None) -> Report:
        """Do the next round from this model; from its own where that is None, or there is one shard."""
        driver, plan = self.driver, self.plan
        if mean is not None and plan.n_shards > 1:
            driver.state.move_to(*mean)
        if self.done == plan.rounds // 2:  # the dual point is made of late slopes only
            driver.slopes = Slopes.zeros(len(plan.recipe.lam), self.rows.order.n_rows)
        with self.backend.working(self.rows.mapped):
            driver.advance(self.rounds.begin(self.done + 1) - driver.position)
        self.done += 1
        state = driver.state
        if self.done == plan.rounds:
            driver.settle()
            model = driver.model()
        elif plan.n_shards > 1:  # in the type of the rows: half as long to send, and as exact
            state.unscale()
            model = state.direction.copy(), state.intercept.copy()
        else:
            model = state.coef, state.intercept.copy()
        return Report(model, driver.take_progress())

    def snapshot(self) -> ShardSnapshot:
        """What a twin of this shard begins from, in a run of several shards.

        Their blocks end with rounds, and the next one begins from a mean model: the iterate need not
        be kept, nor segments of the average that lie before the final one.
        """
        driver, window = self.driver, self.driver.average.window
        driver.state.fold()
        none = np.empty((len(self.plan.recipe.lam), 0), dtype=driver.state.direction.dtype)
        state = deepcopy(replace(driver.state, direction=none, pending=none))
        first = window.start(self.rounds.steps)
        segments = [s for s in driver.average.segments if s.begin >= first]
        average = deepcopy(replace(driver.average, segments=segments))
        return ShardSnapshot(self.done, state, average)


def mean_model(models: Sequence[Model], shares: Array) -> Model:
    """The mean of models, sum_i share_i model_i."""
    coef = sum(share * model[0] for share, model in zip(shares, models, strict=True))
    intercept = sum(share * model[1] for share, model in zip(shares, models, strict=True))
    return np.asarray(coef), np.asarray(intercept)


def run_rounds(
    plan: Plan,
    shares: Array,
    run: Callable[[int, Model | None], Sequence[Report]],
    after_epoch: AfterEpoch | None = None,
) -> tuple[Model, list[dict[str, Any]]]:
    """Run all rounds; ``run(r, mean)`` has every shard do round r, and returns their reports in order.

    ``after_epoch`` is called as that of ``Stopping``, after rounds that end an epoch.
    """
    mean, history, steps, begun, epoch = None, [], 0, clock.now(), 0
    for r in range(plan.rounds):
        reports = run(r, mean)
        mean = mean_model([report.model for report in reports], shares)
        progress = sum((report.progress for report in reports), Progress.zeros(len(plan.recipe.lam)))
        coef = plain_coef(mean[0], plan.metric)
        steps += progress.steps
        ended, epoch = epoch, (r + 1) * plan.epochs // plan.rounds
        record: dict[str, Any] = {
            "round": r + 1,
            "epoch": epoch,
            "steps": steps,
            "seconds": clock.now() - begun,
            **progress.record(np.array(plan.recipe.lam), coef),
        }
        history.append(record)
        if after_epoch is not None and epoch > ended and after_epoch(epoch, mean, record):
            break
    assert mean is not None
    return mean, history


class Shards(Protocol):
    """All shards of a run, wherever they are."""

    def round(self, r: int, mean: Model | None) -> Sequence[Report]:
        """Have every shard do round r; their reports, in order."""

    def certificate_sums(self, model: Model) -> CertificateSums:
        """What the rows of all shards add to the certificate of a model."""


def train_shards(
    plan: Plan,
    shares: Array,
    shards: Shards,
    take_sample: Callable[[], TrainingRows],
    after_epoch: AfterEpoch,
    *,
    whole: bool,
) -> Solution:
    """Solve (PL) by all rounds, whose intercept is then settled by a sample of the rows.

    ``take_sample`` maps it when it is needed; ``whole`` says that it has all rows.
    """
    recipe, metric = plan.recipe, plan.metric
    model, history = run_rounds(plan, shares, shards.round, after_epoch)
    sample = take_sample()
    model = settle_intercept(sample, recipe, model)
    if whole:
        model, _ = finish(sample, recipe, model)
    certificate = shards.certificate_sums(model).certificate(
        np.array(recipe.lam), model[0], free_intercept=recipe.free_intercept, metric=metric
    )
    dtype, last = sample.mapped.dtype, history[-1]
    return Solution.of(
        model, metric, certificate, plan.sizes, dtype, last["epoch"], last["steps"], history
    )


def count_rounds(
    recipe: Recipe, epochs: int, steps: int, sample: TrainingRows, shard: Array, n_shards: int
) -> int:
    """How many rounds a run has, for shards of about so many steps.

    ``shard`` has the shard of each row of the sample: where shards differ by more than chance, their
    models are averaged more often.
    """
    each = 1
    if not are_alike(recipe, sample, shard):
        each = ROUNDS_PER_EPOCH
        logger.info(
            "The rows of the %d shards differ by more than chance; models are averaged more often. "
            "Shuffle rows that are sorted: the model will be better, and there sooner.",
            n_shards,
        )
    return max(min(each * epochs, steps // ROUND_STEPS), FEWEST_ROUNDS)
