"""A whole training run, from the paper's objects to a solution with its certificate.

set up     feasible sets, D_G from a sample, step rules (by a pilot if the scale is "auto")
epochs     ``Driver.advance`` an epoch at a time; after each, the stopping rules
certify    objective and duality gap of the averaged model, from one more pass
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import numpy.typing as npt

from asset_svm import clock
from asset_svm.backends.base import Backend
from asset_svm.feasible import FeasibleSet
from asset_svm.problem import Certificate
from asset_svm.solvers import Average, Driver, ModelAxis, SolverState
from asset_svm.solvers.driver import Slopes
from asset_svm.training.certificate import (
    LITTLE,
    certify_rows,
    finish,
    run_work,
    settle_intercept,
    tight_work,
)
from asset_svm.training.gradients import GradientSample, bulk_of
from asset_svm.training.pilot import choose_step_scale
from asset_svm.training.recipe import Recipe
from asset_svm.training.rows import TrainingRows
from asset_svm.training.solution import Solution, check_finite
from asset_svm.training.stopping import Stopping

Array = npt.NDArray[Any]
Matrix = Any
MOST_LOOKS = 200
"""Records that the history of a run on tiny data has."""


def sample_gradients(recipe: Recipe, rows: TrainingRows) -> tuple[Array, float, float]:
    """(D_G of each model, kappa, bulk) from a random sample of ``gradient_sample`` rows."""
    even = bool((rows.weight == rows.weight[0]).all())
    p = None if even or rows.slope_weight is not None else rows.weight / rows.weight.sum()
    sample = GradientSample.draw(recipe, rows.mapped, rows.order.n_rows, rows.metric, p)
    weight = None if rows.slope_weight is None else rows.slope_weight[sample.rows]
    y = rows.targets.block(sample.rows)
    return sample.bounds(recipe, y, weight), sample.kappa, bulk_of(y, weight)


def train(
    backend: Backend,
    recipe: Recipe,
    rows: TrainingRows,
    stopping: Stopping,
    *,
    start: SolverState | None = None,
) -> Solution:
    """Solve (PL) for K models on the same rows.

    ``start`` continues from an earlier state: its iterates and step counts, not its average.
    """
    K, total = len(recipe.lam), rows.order.n_rows * stopping.epochs
    with backend.pool(K) as pool, backend.working(rows.mapped):
        bounds, kappa, bulk = sample_gradients(recipe, rows)
        sets = recipe.feasible_sets(rows.y_max, kappa, bulk, rows.metric)
        if max(s.radius for s in sets) == 0.0:
            return _trivial(recipe, rows)
        decaying = stopping.end_is_known
        scale = recipe.step_scale
        if scale is None:
            scale = pilot_scale(backend, recipe, rows, sets, bounds, total, pool, decaying=decaying)
        staged = decaying and recipe.step == "metric"

        def plan(epochs: int) -> tuple[ModelAxis, Average]:
            """Steps and average of a stage of so many epochs."""
            steps = rows.order.n_rows * epochs
            rules = recipe.rules(sets, bounds, scale, steps if decaying else 0, rows.metric)
            axis = ModelAxis.build(recipe.loss, recipe.lam, sets, rules)
            return axis, Average(
                recipe.window(steps, stream=not decaying, looked_at=stopping.looked_at)
            )

        state = start or SolverState.zeros(K, rows.mapped.dimension, rows.mapped.dtype)
        state.clear_segment()
        axis, average = plan(stopping.stage(0) if staged else stopping.epochs)
        driver = backend.driver(
            rows.mapped,
            rows.targets,
            rows.order,
            axis,
            state,
            average,
            weight=rows.slope_weight,
            cut=backend.cut(),
            form=recipe.loop_form,
            pool=pool,
            length=total,
            ahead=True,
        )
        run = _Epochs(driver, recipe, rows, stopping, plan if staged else None)
        certificate = run.go()
        driver.settle()
        chosen = stopping.chosen() if stopping.chosen is not None else None
        if certificate is None or chosen is not None:
            certificate = run.certify(chosen or driver.model(), finished=chosen is None)
        coef, intercept = run.certified
    if rows.metric is not None:
        coef = rows.metric.apply(coef)
    check_finite(coef, intercept, certificate)
    return Solution(
        coef,
        intercept,
        certificate,
        run.done,
        scale,
        state,
        bounds,
        kappa,
        driver.position,
        run.history,
        timed_out=run.timed_out,
        bulk=bulk,
    )


class _Epochs:
    """The epochs of a run, with what is looked at between them.

    With ``plan``, a run that ``tol`` may end goes in stages of 1, 1, 2, 4, ... epochs, each with steps
    that decay to 0, so that what is checked at the end of a stage is a finished model.
    """

    def __init__(
        self,
        driver: Driver,
        recipe: Recipe,
        rows: TrainingRows,
        stopping: Stopping,
        plan: Callable[[int], tuple[ModelAxis, Average]] | None,
    ):
        self.driver, self.recipe, self.rows, self.stopping = driver, recipe, rows, stopping
        self.plan = plan
        self.done, self.timed_out = 0, False
        self.history: list[dict[str, Any]] = []
        self.begun = clock.now()
        self.certified: tuple[Array, Array]

    def go(self) -> Certificate | None:
        """Run; returns the certificate of the last model, if it was needed on the way."""
        m, stopping, driver = self.rows.order.n_rows, self.stopping, self.driver
        epochs, K = stopping.epochs, len(self.recipe.lam)
        # Tiny data run thousands of epochs: looking at each would take longer than learning.
        stride = max(1, epochs // MOST_LOOKS) if m < driver.cut.size else 1
        if stopping.tol is not None:
            stride = 1
        next_check = renewed = 1
        while self.done < epochs:
            # The dual point is made of late slopes only: early ones are far from it.
            if self.done == 0 or self.done >= renewed:
                driver.slopes = Slopes.zeros(K, m)
                renewed = max(2 * self.done, 1)
                if renewed > epochs // 2 >= self.done:
                    renewed = epochs // 2
                if self.done >= epochs // 2:
                    renewed = epochs
            count = min(stride, epochs - self.done)
            taken = driver.advance(count * m, stopping.deadline)
            self.done = -(-driver.position // m)  # a deadline may end the first of several
            self.timed_out = clock.now() > stopping.deadline
            record = _record(driver, self.done, clock.now() - self.begun)
            self.history.append(record)
            certificate, ended = None, self.timed_out or self.done == epochs
            if stopping.tol is not None and (self.done >= next_check or ended):
                next_check = 2 * self.done
                certificate = self.certify(driver.model())
                record["objective"] = float(certificate.objective.sum())
                record["dual_gap"] = float(certificate.dual_gap.sum())
            halt = stopping.after_epoch is not None and stopping.after_epoch(
                self.done, driver.model(), record
            )
            if ended or halt or self._converged(certificate):
                break
            if certificate is not None and self.plan is not None:
                driver.restart(*self.plan(stopping.stage(self.done)))
        average = self.recipe.average
        if self.timed_out and taken < count * m and isinstance(average, int):
            # The end was not announced: average the next k, if they are few.
            driver.advance(average if average <= driver.cut.size else 0)
            certificate = None
        return certificate

    def _converged(self, certificate: Certificate | None) -> bool:
        tol = self.stopping.tol
        if certificate is None or tol is None:
            return False
        return bool(certificate.dual_gap.sum() <= tol * certificate.objective.sum())

    def certify(self, model: tuple[Array, Array], *, finished: bool = True) -> Certificate:
        """The certificate; the tight one where ``tol`` needs it and it costs no more than the run.

        It is that of ``certified``, the model with its intercept settled. When the time is up, on as
        many rows only as were visited.
        """
        if not self.timed_out:
            model = settle_intercept(self.rows, self.recipe, model)
        self.certified = model
        slopes, rows = self.driver.slopes, self.rows
        if self.timed_out and self.driver.position < rows.order.n_rows:
            rows = rows.some(max(self.driver.position, 1000), self.recipe.seed)
            return certify_rows(rows, self.recipe, model, None, tight=False)
        if self.timed_out or not finished:
            return certify_rows(rows, self.recipe, model, slopes)
        if self.stopping.tol is None:
            self.certified, found = finish(rows, self.recipe, model, slopes)
            return found
        found = certify_rows(rows, self.recipe, model, slopes, tight=False)
        spent = max(run_work(rows, self.recipe, self.done), LITTLE)
        work = tight_work(rows.order.n_rows, rows.mapped.dimension, len(self.recipe.lam))
        if not self._converged(found) and work <= spent:
            self.certified, found = finish(rows, self.recipe, model, slopes, tight=True)
        return found


def _record(driver: Driver, epoch: int, seconds: float) -> dict[str, Any]:
    """One line of the history, from what the loop saw on its way: nothing is recomputed."""
    progress = driver.take_progress()
    steps = max(progress.steps, 1)
    coef = driver.state.coef
    if driver.axis.metric is not None:
        coef = driver.axis.metric.apply(coef)
    regulariser = 0.5 * driver.axis.lam * np.einsum("kd,kd->k", coef, coef)
    return {
        "epoch": epoch,
        "steps": int(driver.state.steps.max()),
        "seconds": seconds,
        "progressive_loss": float(progress.loss.sum()) / steps,
        "progressive_objective": float((progress.loss / steps + regulariser).sum()),
        "active": float(progress.active.mean()) / steps,
        "sign_errors": float(progress.errors.mean()) / steps,
    }


def pilot_scale(
    backend: Backend,
    recipe: Recipe,
    rows: TrainingRows,
    sets: list[FeasibleSet],
    bounds: Array,
    total: int,
    pool: ThreadPoolExecutor | None,
    *,
    decaying: bool,
) -> float:
    """The multiplier of D_X for a run of ``total`` steps."""
    if recipe.step == "strong":
        return 1.0

    def axis(scale: float, steps: int) -> ModelAxis:
        rules = recipe.rules(sets, bounds, scale, steps if decaying else 0, rows.metric)
        return ModelAxis.build(recipe.loss, recipe.lam, sets, rules)

    return choose_step_scale(
        rows.mapped,
        rows.targets,
        rows.order.n_rows,
        axis,
        total=total,
        weight=rows.weight,
        seed=recipe.seed,
        backend=backend,
        pool=pool,
        average=recipe.usual_average(decaying=decaying),
    )


def _trivial(recipe: Recipe, rows: TrainingRows) -> Solution:
    """epsilon >= |y|_inf: (0, 0) is a solution with objective 0."""
    K = len(recipe.lam)
    zero = np.zeros(K)
    state = SolverState.zeros(K, rows.mapped.dimension, rows.mapped.dtype)
    certificate = Certificate(zero, zero.copy(), zero.copy())
    return Solution(state.coef, zero, certificate, 0, 1.0, state, np.ones(K), 1.0)
