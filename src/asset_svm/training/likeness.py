"""Whether shards are alike, which settles how often their models must be averaged.

Between two averages a shard steps towards its own solution. Where all shards are random parts of the
same rows, these solutions hardly differ, and one average an epoch does; where rows were sorted, or
written day by day, they do. A sample tells: what rows are, (v_l, 1), and their gradients at the first
iterate, slope_l (v_l, 1), have means by shard that differ by chance only, or by more. With g_l the two
of them side by side, times the weight of the row:

    C    = centred G G^T of n sampled rows, from V V^T and the slopes: G itself is not made
    B    = sum over shards of n_i |mean of g in shard i - mean of g|^2
    E B  = (P - 1) tr C / (n - 1)        if rows were dealt to P shards at random
    V B ~ 2 (P - 1) sum over l != k of C_lk^2 / (n - 1)^2
"""

from __future__ import annotations

import numpy as np

from asset_svm.arrays import Array
from asset_svm.training.recipe import Recipe
from asset_svm.training.rows import TrainingRows

LOOKED_AT = 1000
"""So many rows of the sample are compared."""
CHANCE = 3.0
"""So many standard deviations of B pass for chance. To take shards that are alike for others costs a
little time, the other mistake accuracy."""


def are_alike(recipe: Recipe, sample: TrainingRows, shard: Array) -> bool:
    """Whether the rows of a sample might have been dealt to their shards at random.

    ``shard`` has the number of the shard of each row.
    """
    count = min(LOOKED_AT, len(shard))
    chosen = np.arange(count) * len(shard) // count  # evenly: each shard has its part
    V, weight = sample.take(chosen).astype(np.float64), sample.weight[chosen]
    y = sample.targets.block(chosen)
    slopes = recipe.loss.slope(y, np.zeros(y.shape))
    factors = np.vstack([np.ones(count), slopes]) * (weight / weight.max())
    products = V @ V.T + (1.0 if recipe.free_intercept else 0.0)
    return chance(products * (factors.T @ factors), shard[chosen]) <= CHANCE


def chance(gram: Array, group: Array) -> float:
    """By how many standard deviations B is above what random groups would have.

    Parameters
    ----------
    gram : array of shape (n, n)
        Inner products of the rows' vectors.
    group : array of int of shape (n,)
    """
    _, group, sizes = np.unique(group, return_inverse=True, return_counts=True)
    n, count = len(group), len(sizes)
    centred = gram - gram.mean(axis=0) - gram.mean(axis=1)[:, None] + gram.mean()
    members = group == np.arange(count)[:, None]
    between = float(np.sum(np.einsum("gi,gi->g", members @ centred, members) / sizes))
    expected = (count - 1) * np.trace(centred) / max(n - 1, 1)
    square = float(np.sum(centred**2) - np.sum(np.diag(centred) ** 2))
    if count == 1 or square <= 0.0:
        return 0.0
    return float((between - expected) * (n - 1) / np.sqrt(2.0 * (count - 1) * square))
