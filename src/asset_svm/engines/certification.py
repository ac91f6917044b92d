"""Objective and duality gap of a model on the rows of a run.

Two bounds, the better of which counts: that of the run's average slopes, from the pass that gives the
objective anyway; and the tight one of ``dual``, on request and where it is cheap.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from asset_svm.dual import tight_bound
from asset_svm.engines.task import Recipe, TrainingRows
from asset_svm.problem import Certificate, CertificateSums, RowProducts, certificate_sums, certify
from asset_svm.solvers.driver import Slopes

Array = npt.NDArray[Any]
UNASKED = 1e9
"""Operations up to which the tight bound is computed unasked: some tenths of a second."""
LITTLE = 5e9
"""Operations that a run with a ``tol`` spends on it, however short the run: about a second."""
PRODUCTS = 10.0
"""Operations of a matrix product that take as long as one of a loop over rows."""


def tight_work(rows: TrainingRows, recipe: Recipe) -> float:
    """About what the tight bound takes: some 100 m d + 60 d^3 operations a model."""
    d, m = rows.mapped.dimension, rows.order.n_rows
    return len(recipe.lam) * (100.0 * m * d + 60.0 * d**3)


def run_work(rows: TrainingRows, recipe: Recipe, epochs: int) -> float:
    """About what so many epochs took: a map of 2 d^2 operations a row, steps of 4 d a model.

    Operations are counted, and not seconds: when a run ends must not depend on the machine's mood.
    """
    d, m = rows.mapped.dimension, rows.order.n_rows
    return m * (2.0 * d**2 / PRODUCTS + 4.0 * d * len(recipe.lam) * epochs)


def row_sums(
    rows: TrainingRows, recipe: Recipe, model: tuple[Array, Array], slopes: Slopes | None
) -> CertificateSums:
    """What these rows add to the certificate of a model."""
    return certificate_sums(recipe.loss, model, _blocks(rows, slopes))


def _blocks(
    rows: TrainingRows, slopes: Slopes | None
) -> Iterator[tuple[RowProducts, Array, Array, Array]]:
    for index in rows.indices():
        y = rows.targets.block(index)
        mean = np.full(y.shape, np.nan) if slopes is None else slopes.mean(index)
        yield rows.mapped.open(index), y, rows.weight[index], mean


def certify_rows(
    rows: TrainingRows,
    recipe: Recipe,
    model: tuple[Array, Array],
    slopes: Slopes | None = None,
    *,
    tight: bool | None = None,
) -> Certificate:
    """The certificate of a model; ``tight=None`` decides by what it costs."""
    coef, intercept = model
    lam = np.array(recipe.lam)
    found = certify(
        recipe.loss,
        lam,
        coef,
        intercept,
        _blocks(rows, slopes),
        free_intercept=recipe.free_intercept,
        metric=rows.metric,
    )
    if not np.isfinite(found.objective).all():
        return found
    if tight if tight is not None else tight_work(rows, recipe) <= UNASKED:
        for k in range(len(lam)):
            found.dual_gap[k] = min(found.dual_gap[k], _tight_gap(rows, recipe, model, k))
    return found


def _tight_gap(rows: TrainingRows, recipe: Recipe, model: tuple[Array, Array], k: int) -> float:
    def blocks() -> Iterator[tuple[Array, Array, Array]]:
        for index in rows.indices():
            yield rows.take(index), rows.targets.block(index)[k], rows.weight[index]

    objective, bound = tight_bound(
        recipe.loss,
        recipe.lam[k],
        model[0][k],
        float(model[1][k]),
        blocks,
        free_intercept=recipe.free_intercept,
        metric=rows.metric,
    )
    return max(objective - bound, 0.0)
