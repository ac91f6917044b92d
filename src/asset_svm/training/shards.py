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

from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from asset_svm import clock
from asset_svm.backends.cpu import CpuBackend
from asset_svm.features import Evaluable, Metric
from asset_svm.solvers import Average, Cut, Driver, ModelAxis, SolverState
from asset_svm.solvers.tallies import Progress, Slopes
from asset_svm.training.plan import StepSizes
from asset_svm.training.recipe import Recipe
from asset_svm.training.rows import TrainingRows

Array = npt.NDArray[Any]
Model = tuple[Array, Array]
"""(K, d) coef in the basis of the mapped rows, (K,) intercept."""


@dataclass(frozen=True, eq=False)
class Plan:
    """What every shard must know beside its rows.

    Parameters
    ----------
    recipe : Recipe
    phi : Evaluable
        The map, with the metric folded in.
    metric : Metric or None
    sizes : StepSizes
    epochs, rounds : int
        Of the whole run.
    n_shards : int
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
        Rounds behind it.
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
    backend : CpuBackend
    plan : Plan
    rows : TrainingRows
        In the map and metric of the plan.
    past : ShardSnapshot
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
        self.driver = Driver(
            rows.mapped,
            rows.targets,
            rows.order,
            plan.axis(steps),
            state,
            average,
            weight=rows.slope_weight,
            cut=cut,
            form=recipe.loop_form,
            length=steps,
            ahead=True,
        )
        self.driver.position = self.rounds.begin(self.done)
        self.driver.slopes = Slopes.zeros(len(recipe.lam), m)

    def advance(self, mean: Model | None) -> Report:
        """The next round, from this model; None, or any where there is one shard: from its own."""
        driver, plan = self.driver, self.plan
        if mean is not None and plan.n_shards > 1:
            driver.state.move_to(*mean)
        if self.done == plan.rounds // 2:  # the dual point is made of late slopes only
            driver.slopes = Slopes.zeros(len(plan.recipe.lam), self.rows.order.n_rows)
        with self.backend.pool(len(plan.recipe.lam)) as pool, self.backend.working(self.rows.mapped):
            driver.pool = pool
            driver.advance(self.rounds.begin(self.done + 1) - driver.position)
        driver.pool = None
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
    """sum_i share_i model_i."""
    coef = sum(share * model[0] for share, model in zip(shares, models, strict=True))
    intercept = sum(share * model[1] for share, model in zip(shares, models, strict=True))
    return np.asarray(coef), np.asarray(intercept)


def run_rounds(
    plan: Plan,
    shares: Array,
    run: Callable[[int, Model | None], Sequence[Report]],
    after_round: Callable[[Model, dict[str, Any]], bool] | None = None,
) -> tuple[Model, list[dict[str, Any]]]:
    """All rounds; ``run(r, mean)`` has every shard do round r, and returns their reports in order.

    ``after_round`` is called with the mean model and the record of the round; True ends the run.
    """
    mean, history, steps, begun = None, [], 0, clock.now()
    for r in range(plan.rounds):
        reports = run(r, mean)
        mean = mean_model([report.model for report in reports], shares)
        progress = sum((report.progress for report in reports), Progress.zeros(len(plan.recipe.lam)))
        coef = mean[0] if plan.metric is None else plan.metric.apply(mean[0])
        steps += progress.steps
        record: dict[str, Any] = {
            "round": r + 1,
            "epoch": (r + 1) * plan.epochs // plan.rounds,
            "steps": steps,
            "seconds": clock.now() - begun,
            **progress.record(np.array(plan.recipe.lam), coef),
        }
        history.append(record)
        if after_round is not None and after_round(mean, record):
            break
    assert mean is not None
    return mean, history
