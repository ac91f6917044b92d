"""Objective and duality gap of a model on the rows of a run.

Two bounds, the better of which counts: that of the run's average slopes, from the pass that gives the
objective anyway; and the tight one of ``dual``, on request and where it is cheap.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import TypeVar

import numpy as np

from asset_svm.arrays import Array
from asset_svm.dual import tight_bound
from asset_svm.losses import best_intercept
from asset_svm.problem import Certificate, CertificateSums
from asset_svm.solvers.tallies import Slopes
from asset_svm.threads.granted import granted
from asset_svm.threads.team import side_by_side
from asset_svm.training.recipe import Recipe
from asset_svm.training.rows import TrainingRows, plain_coef
from asset_svm.training.stopping import Look

Result = TypeVar("Result")

SETTLING = 1 << 22
"""Intercepts are settled by at most so many margins, of all models together."""
LOOKED_AT, FEWEST_LOOKED_AT = 1 << 16, 1 << 12
"""Between stages an objective is estimated from so many margins, of all models together, or rows."""
BLOCKS_A_THREAD = 4
"""Blocks whose results wait to be added up, for each thread."""
FINISHES = 4
"""A model is exchanged for a better one at most so many times, less one."""
UNFINISHED = 0.01
"""A model whose gap is a larger part of its objective is exchanged for one found on the way."""
LITTLE = 5e9
"""A run with a ``tol`` may spend so many operations on it, however short it is: about a second."""
PRODUCTS = 10.0
"""So many operations of a matrix product take as long as one of a loop over rows."""


def tight_work(n_rows: int, dimension: int, n_models: int) -> float:
    """The operations of the tight bound: about 100 m d + 60 d^3 a model."""
    return n_models * (100.0 * n_rows * dimension + 60.0 * dimension**3)


def run_work(rows: TrainingRows, recipe: Recipe, epochs: int) -> float:
    """The operations of so many epochs: about 2 d^2 a row for the map, 4 d a step and model.

    Operations are counted, and not seconds: when a run ends must not depend on the machine's mood.
    """
    d, m = rows.mapped.dimension, rows.order.n_rows
    return m * (2.0 * d**2 / PRODUCTS + 4.0 * d * len(recipe.lam) * epochs)


def settle_intercept(
    rows: TrainingRows, recipe: Recipe, model: tuple[Array, Array]
) -> tuple[Array, Array]:
    """The model with the best intercept for its coef, by these rows, or a sample where they are many.

    Steps leave the intercept where it happened to be among those that are about as good: which rows
    lie on which side of it can hang on that, where decisions hardly differ. The paper's steps are
    left as they are, and so is a problem without an intercept, or with a bound of the user's.
    """
    if recipe.step != "metric" or not recipe.free_intercept or recipe.intercept_bound is not None:
        return model
    coef = model[0].astype(np.float64)
    some, margins = settling_margins(rows, coef, recipe.seed)
    targets, weight = rows.targets.block(some), rows.weight[some]

    def best(k: int) -> float:
        return best_intercept(recipe.loss.of_model(k), targets[k], margins[k], weight)

    return model[0], np.array(side_by_side(best, range(len(coef))))


def settling_margins(
    rows: TrainingRows, coef: Array, seed: int, most: int | None = None
) -> tuple[Array, Array]:
    """The numbers of all rows, or of a sample where they are many, and their margins, (K, rows).

    They are many where they are more than ``most``.
    """
    some = rows.draw(max(SETTLING // len(coef), 1) if most is None else most, seed)
    parts = _by_blocks(rows, some, lambda index: rows.mapped.open(index).margins(coef))
    margins = np.concatenate(list(parts), axis=1)
    return np.arange(rows.order.n_rows) if some is None else some, margins


def look_at(rows: TrainingRows, recipe: Recipe, model: tuple[Array, Array], epoch: int) -> Look:
    """The objective and errors of all models by these rows, or a sample where they are many."""
    coef, intercept = model[0].astype(np.float64), model[1]
    some = rows.draw(max(LOOKED_AT // len(coef), FEWEST_LOOKED_AT), recipe.seed)
    plain = plain_coef(coef, rows.metric)

    def losses(index: Array) -> Array:
        y, weight = rows.targets.block(index), rows.weight[index]
        f = rows.mapped.open(index).margins(coef) + intercept[:, None]
        wrong = (y * f <= 0.0) & (recipe.loss.kink(y, f)[0] != 0.0)
        return np.array([(part @ weight).sum() for part in (recipe.loss.value(y, f), wrong)])

    loss, errors = sum(_by_blocks(rows, some, losses), np.zeros(2))
    weight = float(rows.weight.sum() if some is None else rows.weight[some].sum())
    square = 0.5 * float(np.array(recipe.lam) @ (plain**2).sum(axis=1))
    return Look(epoch, float(loss) / weight + square, float(errors) / (weight * len(coef)))


def row_sums(
    rows: TrainingRows,
    recipe: Recipe,
    model: tuple[Array, Array],
    slopes: Slopes | None,
    among: Array | None = None,
) -> CertificateSums:
    """What these rows, or those ``among`` them, add to the certificate of a model."""
    model = model[0].astype(np.float64), model[1]

    def sums(index: Array) -> CertificateSums:
        y, found = rows.targets.block(index), CertificateSums.zeros(*model[0].shape)
        mean = np.full(y.shape, np.nan) if slopes is None else slopes.mean(index)
        found.add(recipe.loss, model, rows.mapped.open(index), y, rows.weight[index], mean)
        return found

    return sum(_by_blocks(rows, among, sums), CertificateSums.zeros(*model[0].shape))


def _by_blocks(
    rows: TrainingRows, among: Array | None, function: Callable[[Array], Result]
) -> Iterator[Result]:
    """function(numbers) of all rows, or of those among them, a block at a time, by threads.

    It is that of some blocks at a time, since a result may be large; they come in order.
    """
    blocks = list(rows.blocks(among))
    threads = granted() if rows.mapped.is_shared() else 1
    for start in range(0, len(blocks), BLOCKS_A_THREAD * threads):
        lot = blocks[start : start + BLOCKS_A_THREAD * threads]
        yield from side_by_side(partial(_of, function, lot), range(len(lot)), threads)


def _of(function: Callable[[Array], Result], blocks: list[Array], number: int) -> Result:
    """The function of the block with this number."""
    return function(blocks[number])


def certify_rows(
    rows: TrainingRows,
    recipe: Recipe,
    model: tuple[Array, Array],
    slopes: Slopes | None = None,
    *,
    tight: bool | None = None,
    smoothed: list[Array] | None = None,
    among: Array | None = None,
) -> Certificate:
    """The certificate of a model; ``tight=None`` decides by what it costs.

    Where the bound is tight ``smoothed`` gains the solution of each model's smoothed problem. With
    ``among`` it is that of the rows of these numbers, and the bound is not the tight one.
    """
    lam = np.array(recipe.lam)
    found = row_sums(rows, recipe, model, slopes, among).certificate(
        lam, model[0], free_intercept=recipe.free_intercept, metric=rows.metric
    )
    if not np.isfinite(found.objective).all():
        return found
    work = tight_work(rows.order.n_rows, rows.mapped.dimension, len(lam))
    if tight if tight is not None else work <= recipe.tight_within:
        for k in range(len(lam)):
            gap, solution = _tight_gap(rows, recipe, model, k)
            found.dual_gap[k] = min(found.dual_gap[k], gap)
            if smoothed is not None:
                smoothed.append(solution)
    return found


def finish(
    rows: TrainingRows,
    recipe: Recipe,
    model: tuple[Array, Array],
    slopes: Slopes | None = None,
    *,
    tight: bool | None = None,
) -> tuple[tuple[Array, Array], Certificate]:
    """The model of a run with its certificate, or a better one, where that was found on the way.

    Steps go slowly where lam is small and the kernel smooth; Newton's method, by which the tight
    bound is found, does not mind. Where it was affordable and a model is farther than ``UNFINISHED``
    from the optimum, its solution is taken. The paper's steps end where they end, and Newton's know
    no bound of the user's.
    """
    bound = np.full(len(recipe.lam), -np.inf)
    for looks in range(1, FINISHES + 1):
        smoothed: list[Array] = []
        found = certify_rows(rows, recipe, model, slopes, tight=tight, smoothed=smoothed)
        bound = np.maximum(bound, found.objective - found.dual_gap)
        found = replace(found, dual_gap=np.maximum(found.objective - bound, 0.0))
        far = found.dual_gap > UNFINISHED * found.objective
        ours = recipe.step == "metric" and recipe.intercept_bound is None
        if not ours or not smoothed or not far.any() or looks == FINISHES:
            break
        solved, d = np.stack(smoothed), model[0].shape[1]
        other = solved[:, :d], solved[:, d] if recipe.free_intercept else model[1]
        other = settle_intercept(rows, recipe, other)
        better = certify_rows(rows, recipe, other, slopes, tight=False)
        taken = far & (better.objective < found.objective)
        if not taken.any():
            break
        coef = np.where(taken[:, None], other[0], model[0])
        model = coef, np.where(taken, other[1], model[1])
    return model, found


def _tight_gap(
    rows: TrainingRows, recipe: Recipe, model: tuple[Array, Array], k: int
) -> tuple[float, Array]:
    def blocks() -> Iterator[tuple[Array, Array, Array]]:
        for index in rows.blocks():
            yield rows.take(index), rows.targets.block(index)[k], rows.weight[index]

    objective, bound, solution = tight_bound(
        recipe.loss.of_model(k),
        recipe.lam[k],
        model[0][k],
        float(model[1][k]),
        blocks,
        free_intercept=recipe.free_intercept,
        metric=rows.metric,
    )
    return max(objective - bound, 0.0), solution
