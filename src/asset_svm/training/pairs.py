"""(PL) for many classes on few rows, solved exactly, two coordinates of the dual at a time.

    G = V V^T                        shared by all models
    beta_k by ``solvers.pair_form``  each model by itself, spread over threads
    coef_k = V^T beta_k, b_k the best one for it

Steps cost d operations a row, epoch and model, whatever a class looks like. A class of a few rows has
a few support vectors, and a few pairs find them.
"""

from __future__ import annotations

import numpy as np

from asset_svm import clock
from asset_svm.backends.cpu import CpuBackend
from asset_svm.solvers.pair_form import solve_pairs
from asset_svm.solvers.tallies import Slopes
from asset_svm.threads.blas import few_threads
from asset_svm.threads.team import side_by_side
from asset_svm.training.certificate import certify_rows, settle_intercept
from asset_svm.training.plan import measure
from asset_svm.training.recipe import Recipe
from asset_svm.training.rows import TrainingRows
from asset_svm.training.solution import Solution, check_finite

FEWEST_MODELS = 8
"""Fewer models are trained by steps."""
MOST_ROWS = 4096
"""More rows are left to steps: G would take more than 128 MB."""
TOLERANCE = 1e-3
"""The duality gap of each model, relative to its objective, at which it counts as solved."""
PAIRS = 20
"""A model takes at most so many times m steps; harder ones are left to stochastic steps."""
UNSOLVED = 0.01
"""A gap of a larger part of the objective shows that pairs were of no use."""


def suits_pairs(recipe: Recipe, rows: TrainingRows) -> bool:
    """Whether there are many models of few rows, with the steps that are ours to choose."""
    few = rows.order.n_rows <= MOST_ROWS and len(recipe.lam) >= FEWEST_MODELS
    free = recipe.step == "metric" and recipe.free_intercept and recipe.intercept_bound is None
    return few and free and recipe.loss.suits_pairs


def train_by_pairs(backend: CpuBackend, recipe: Recipe, rows: TrainingRows) -> Solution | None:
    """The solution by pairs; None where some of the models are too hard for them."""
    begun = clock.now()
    m, K = rows.order.n_rows, len(recipe.lam)
    V = rows.take(np.arange(m)).astype(np.float64)
    if rows.metric is not None:
        V = rows.metric.invert(V)
    with few_threads(m):
        G = V @ V.T
    y = rows.targets.block(np.arange(m)).astype(np.float64)
    beta, steps = np.zeros((K, m)), np.zeros(K, dtype=np.int64)
    total = float(rows.weight.sum())

    def solve(k: int) -> None:
        cost, r = rows.weight / (recipe.lam[k] * total), y[k].copy()
        steps[k] = solve_pairs(G, y[k], cost, recipe.loss.of_model(k), TOLERANCE, PAIRS * m, beta[k], r)

    side_by_side(solve, range(K))
    coef = beta @ V
    inner = coef if rows.metric is None else rows.metric.invert(coef)
    model = settle_intercept(rows, recipe, (inner, np.zeros(K)))
    lam = np.array(recipe.lam)[:, None]
    visited = Slopes((-lam * total * beta / rows.weight).astype(np.float32), np.ones(m, np.float32))
    found = certify_rows(rows, recipe, model, visited, tight=False)
    if (found.dual_gap > UNSOLVED * found.objective).any():
        return None
    check_finite(coef, model[1], found)
    sweeps = max(-(-int(steps.max()) // m), 1)
    record = {"epoch": sweeps, "steps": sweeps * m, "seconds": clock.now() - begun}
    sizes, dtype = measure(recipe, rows), rows.mapped.dtype
    return Solution(coef, model[1], found, sizes, None, dtype, sweeps, sweeps * m, [record])
