"""The one-class SVM as a hinge problem, and what is left to find for it: lam, and the threshold.

(OC)  min over coef, rho of  nu/2 |coef|^2 - nu rho + (1/W) sum_i w_i max(rho - v_i.coef, 0)

Let (coef, rho), rho > 0, solve (OC). Then coef / rho solves (PL) with the hinge loss, all targets 1, no
intercept, and lam = nu rho. Which rho that is, nobody knows beforehand. But whatever lam is, the mean
slope at the solution of (PL), by what its optimality says of it,

    share(lam) = lam |coef|^2 + (1/W) sum_i w_i max(1 - v_i.coef, 0),

is the nu whose problem (OC) has the same solution, and it grows with lam:

    train models of several lam at once on some of the rows, each share by its objective
    interpolate lam at share = nu, in logarithms; once more with lams nearer to it

The features are those of the map itself: (OC) separates rows from the origin, and taking their mean off
would move it.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from asset_svm.arrays import Array
from asset_svm.backends.base import Backend
from asset_svm.training.certificate import settling_margins
from asset_svm.training.recipe import Recipe
from asset_svm.training.rows import RepeatedTargets, TrainingRows
from asset_svm.training.run import train
from asset_svm.training.stopping import Stopping

WIDE = 4.0 * 0.5 ** np.arange(7.0, -1.0, -1.0)
"""Times nu |mean row|^2: the first lams. A solution's rho is seldom far from the squared mean."""
NEAR = np.array([0.8, 1.0, 1.25])
"""Times the lam that the first ones tell of: the last ones."""
EXTENSIONS = 4
"""Grids of lams that are tried, each beyond the other, until shares below and above nu are known."""
FARTHEST = 1e-6
"""Times nu and the mean of |v|^2: rows that no larger lam tells from the origin surround it."""


def find_lam(backend: Backend, recipe: Recipe, rows: TrainingRows, nu: float, epochs: int) -> float:
    """The lam of (PL) whose solution on these rows, with targets of 1, is that of (OC)."""
    near, size = mean_square(rows)
    least = FARTHEST * nu * size
    lams = np.maximum(WIDE * nu * near, least)
    found: dict[float, float] = {}
    for _ in range(EXTENSIONS):
        found |= _shares(backend, recipe, rows, np.unique(lams), epochs)
        low, high = min(found.values()), max(found.values())
        if low > nu and min(found) > least:
            lams = np.maximum(lams * (min(found) / lams.max() / 2.0), least)
        elif high < nu:
            lams = lams * (max(found) / lams.min() * 2.0)
        else:
            break
    lam = interpolated(found, nu)
    refined = _shares(backend, recipe, rows, np.maximum(NEAR * lam, least), epochs)
    return interpolated(refined, nu)


def _shares(
    backend: Backend, recipe: Recipe, rows: TrainingRows, lams: Array, epochs: int
) -> dict[float, float]:
    """The share of each lam, by models that are trained side by side."""
    several = replace(recipe, lam=tuple(lams.tolist()))
    targets = RepeatedTargets(np.ones((1, rows.order.n_rows)), len(lams))
    solution = train(backend, several, replace(rows, targets=targets), Stopping(epochs))
    squares = np.einsum("kd,kd->k", solution.coef, solution.coef)
    shares = solution.certificate.objective + 0.5 * lams * squares
    return dict(zip(lams.tolist(), shares.tolist(), strict=True))


def interpolated(shares: dict[float, float], nu: float) -> float:
    """The lam whose share is nu, between or beyond the nearest that are known, in logarithms."""
    lams = np.log(np.array(sorted(shares)))
    logs = np.maximum.accumulate(np.log([shares[lam] for lam in sorted(shares)]))
    if len(lams) == 1:
        return float(np.exp(lams[0]))
    i = int(np.clip(np.searchsorted(logs, np.log(nu)), 1, len(lams) - 1))
    rise = logs[i] - logs[i - 1]
    part = (np.log(nu) - logs[i - 1]) / rise if rise > 0.0 else 0.5
    return float(np.exp(lams[i - 1] + np.clip(part, -1.0, 2.0) * (lams[i] - lams[i - 1])))


def mean_square(rows: TrainingRows) -> tuple[float, float]:
    """(the squared length of the mean row, the mean of some squared lengths), by features of phi."""
    sums, blocks = np.zeros((1, rows.mapped.dimension)), list(rows.blocks())
    for index in blocks:
        sums += rows.mapped.open(index).exact_sums(rows.weight[None, index]).sum(axis=0)
    some = rows.take(blocks[0]).astype(np.float64)
    if rows.metric is not None:
        sums, some = rows.metric.invert(sums), rows.metric.invert(some)
    mean = sums[0] / float(rows.weight.sum())
    return float(mean @ mean), float(np.einsum("ij,ij->", some, some)) / len(some)


def threshold_of(
    rows: TrainingRows, coef: Array, nu: float, seed: int, most: int | None = None
) -> float:
    """The threshold that leaves a share nu of these rows outside, by scores v.coef of one model.

    ``coef`` is that of the mapped rows. Where there are more than ``most`` rows, or very many, a sample
    of them tells.
    """
    some, scores = settling_margins(rows, coef.astype(np.float64), seed, most)
    return lower_quantile(scores[0], rows.weight[some], nu)


def lower_quantile(scores: Array, weight: Array, nu: float) -> float:
    """A number below which scores of a share nu of the weight lie, or of as much less as must be.

    It lies between two scores, so that rounding moves none to the other side.
    """
    order = np.argsort(scores, kind="stable")
    scores, running = scores[order], np.cumsum(weight[order])
    outside = int(np.searchsorted(running, nu * running[-1] * (1.0 + 1e-12), side="right"))
    inside = scores[min(outside, len(scores) - 1)]
    below = int(np.searchsorted(scores, inside))  # rows of the same score stay together
    if below == 0:
        return float(inside - 1e-6 * abs(inside))
    return float(0.5 * (scores[below - 1] + inside))
