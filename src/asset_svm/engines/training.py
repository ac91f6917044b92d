"""A whole training run, from the paper's objects to a solution with its certificate.

set up     feasible sets, D_G from a sample, step rules (by a pilot if the scale is "auto")
epochs     ``Driver.advance`` an epoch at a time; after each, the stopping rules
certify    objective and duality gap of the averaged model, from one more pass
"""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import numpy.typing as npt

from asset_svm.engines.certification import certify_rows
from asset_svm.engines.local import LocalEngine
from asset_svm.engines.task import BLOCK, Recipe, Solution, Stopping, TrainingRows
from asset_svm.exceptions import NonFiniteError
from asset_svm.feasible import FeasibleSet
from asset_svm.features import FeatureMap, Metric
from asset_svm.problem import Certificate
from asset_svm.solvers import Average, Driver, ModelAxis, SolverState
from asset_svm.solvers.driver import Slopes
from asset_svm.solvers.pilot import choose_step_scale
from asset_svm.steps import estimate_gradient_bound

Array = npt.NDArray[Any]
Matrix = Any
METRIC_SAMPLE = 2048
"""Rows from which the metric is estimated."""


def sample_gradients(recipe: Recipe, rows: TrainingRows) -> tuple[Array, float]:
    """(D_G of each model, kappa) from a random sample of ``gradient_sample`` rows."""
    m = rows.order.n_rows
    rng = np.random.default_rng([recipe.seed, 1])
    p = None if rows.slope_weight is not None else rows.weight / rows.weight.sum()
    chosen = rng.choice(m, size=min(recipe.gradient_sample, m), replace=False, p=p)
    y = rows.targets.block(chosen)
    weight = None if rows.slope_weight is None else rows.slope_weight[chosen]
    V = np.concatenate([rows.take(chosen[i : i + BLOCK]) for i in range(0, len(chosen), BLOCK)])
    bounds = [
        estimate_gradient_bound(recipe.loss, V, y[k], intercept=recipe.free_intercept, weight=weight)
        for k in range(len(y))
    ]
    plain = V if rows.metric is None else rows.metric.invert(V)
    kappa = float(np.sqrt(np.max(np.einsum("ij,ij->i", plain, plain, dtype=np.float64))))
    return np.array(bounds), kappa


def find_metric(
    phi: FeatureMap, X: Matrix, weight: Array, seed: int, count: int = METRIC_SAMPLE
) -> Metric:
    """The metric of the data from a random sample of rows."""
    rng = np.random.default_rng([seed, 3])
    chosen = np.sort(rng.choice(X.shape[0], size=min(count, X.shape[0]), replace=False))
    return phi.find_metric(phi(X[chosen]), weight[chosen], rng)


def train(
    engine: LocalEngine,
    recipe: Recipe,
    rows: TrainingRows,
    stopping: Stopping,
    *,
    start: SolverState | None = None,
) -> Solution:
    """Solve (PL) for K models on the same rows.

    ``start`` continues from an earlier state: its iterates and step counts, not its average.
    """
    m, K = rows.order.n_rows, len(recipe.lam)
    epochs = stopping.epochs
    with engine.pool(K) as pool:
        bounds, kappa = sample_gradients(recipe, rows)
        sets = recipe.feasible_sets(rows.y_max, kappa)
        if max(s.radius for s in sets) == 0.0:
            return _trivial(recipe, rows)
        scale = recipe.step_scale
        if scale is None:
            scale = 1.0
            if recipe.step != "strong":
                scale = pilot_scale(engine, recipe, rows, sets, bounds, m * epochs, pool)
        horizon = m * epochs if stopping.deadline == float("inf") else 0
        rules = recipe.rules(sets, bounds, scale, horizon, rows.metric)
        axis = ModelAxis.build(recipe.loss, recipe.lam, sets, rules)
        state = start or SolverState.zeros(K, rows.mapped.dimension, rows.mapped.dtype)
        state.clear_segment()
        driver = Driver(
            rows.mapped,
            rows.targets,
            rows.order,
            axis,
            state,
            Average(recipe.window(m * epochs, stream=not horizon)),
            weight=rows.slope_weight,
            block_size=engine.block_size,
            form=recipe.form,
            pool=pool,
            length=m * epochs,
        )
        history: list[dict[str, Any]] = []
        certificate = None
        begun, done, timed_out, next_check = time.perf_counter(), 0, False, 1
        for epoch in range(1, epochs + 1):
            # The dual point is made of the last half of the slopes: early ones are far from it.
            if epoch == 1 or epoch == epochs // 2 + 1 or (epoch & (epoch - 1)) == 0:
                driver.slopes = Slopes.zeros(K, m)
            taken = driver.advance(m, stopping.deadline)
            done, certificate = epoch, None
            timed_out = time.perf_counter() > stopping.deadline
            record = _record(driver, epoch, time.perf_counter() - begun)
            history.append(record)
            if stopping.tol is not None and (epoch in (next_check, epochs) or timed_out):
                next_check *= 2
                certificate = certify_rows(rows, recipe, driver.model(), driver.slopes, tight=True)
                record["objective"] = float(certificate.objective.sum())
                record["dual_gap"] = float(certificate.dual_gap.sum())
            halt = stopping.after_epoch is not None and stopping.after_epoch(
                epoch, driver.model(), record
            )
            converged = (
                certificate is not None
                and stopping.tol is not None
                and certificate.dual_gap.sum() <= stopping.tol * certificate.objective.sum()
            )
            if timed_out or halt or converged:
                break
        if timed_out and taken < m and isinstance(recipe.average, int) and recipe.average:
            driver.advance(recipe.average)  # its own end was not announced: average the next k
            certificate = None
        driver.settle()
        chosen = stopping.chosen() if stopping.chosen is not None else None
        coef, intercept = chosen or driver.model()
        if certificate is None or chosen is not None:
            certificate = certify_rows(rows, recipe, (coef, intercept), driver.slopes)
    if rows.metric is not None:
        coef = rows.metric.apply(coef)
    check_finite(coef, intercept, certificate)
    return Solution(coef, intercept, certificate, done, scale, state, history, timed_out=timed_out)


def check_finite(coef: Array, intercept: Array, certificate: Certificate) -> None:
    """Raise unless a model and its objective are finite: sums can overflow where iterates do not."""
    if not all(np.isfinite(part).all() for part in (coef, intercept, certificate.objective)):
        raise NonFiniteError(
            "The averaged model is not finite; scale the columns of X, and the targets of a "
            "regression, to moderate size (StandardScaler)."
        )


def _record(driver: Driver, epoch: int, seconds: float) -> dict[str, Any]:
    """One line of the history, from what the loop saw on its way: nothing is recomputed."""
    progress = driver.take_progress()
    steps = max(progress.steps, 1)
    coef = driver.state.coef
    regulariser = 0.5 * driver.axis.lam * np.einsum("kd,kd->k", coef, coef)
    return {
        "epoch": epoch,
        "steps": int(driver.state.steps.max()),
        "seconds": seconds,
        "progressive_loss": float(progress.loss.sum()) / steps,
        "progressive_objective": float((progress.loss / steps + regulariser).sum()),
        "active": float(progress.active.mean()) / steps,
    }


def pilot_scale(
    engine: LocalEngine,
    recipe: Recipe,
    rows: TrainingRows,
    sets: list[FeasibleSet],
    bounds: Array,
    total: int,
    pool: ThreadPoolExecutor | None,
) -> float:
    """The multiplier of D_X for a run of ``total`` steps."""

    def axis(scale: float, steps: int) -> ModelAxis:
        rules = recipe.rules(sets, bounds, scale, steps, rows.metric)
        return ModelAxis.build(recipe.loss, recipe.lam, sets, rules)

    return choose_step_scale(
        rows.mapped,
        rows.targets,
        rows.order.n_rows,
        axis,
        total=total,
        weight=rows.weight,
        seed=recipe.seed,
        block_size=engine.block_size,
        pool=pool,
        average=recipe.usual_average(decaying=True),
    )


def _trivial(recipe: Recipe, rows: TrainingRows) -> Solution:
    """epsilon >= |y|_inf: (0, 0) is a solution with objective 0."""
    K = len(recipe.lam)
    zero = np.zeros(K)
    state = SolverState.zeros(K, rows.mapped.dimension, rows.mapped.dtype)
    return Solution(state.coef, zero, Certificate(zero, zero.copy(), zero.copy()), 0, 1.0, state)
