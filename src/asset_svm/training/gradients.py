"""D_G, kappa and the bulk of the targets, estimated from a random sample of the rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from asset_svm.arrays import Array
from asset_svm.backends.base import gather
from asset_svm.features import Metric
from asset_svm.solvers import BlockRows
from asset_svm.steps import gradient_bound
from asset_svm.training.recipe import Recipe


@dataclass(frozen=True, eq=False)
class GradientSample:
    """Some rows, their features in float64, and kappa, the largest |v| among them.

    In a metric the features are those of V T; kappa is of V.
    """

    rows: Array
    V: Array
    kappa: float

    @classmethod
    def draw(
        cls,
        recipe: Recipe,
        mapped: BlockRows,
        n_rows: int,
        metric: Metric | None,
        p: Array | None = None,
    ) -> GradientSample:
        """Draw ``gradient_sample`` of the rows: each at most once, or, with ``p``, by these chances."""
        rng = np.random.default_rng([recipe.seed, 1])
        count = min(recipe.gradient_sample, n_rows)
        chosen = rng.choice(n_rows, size=count, replace=p is not None, p=p)
        V = gather(mapped, chosen)
        plain = V if metric is None else metric.invert(V)
        kappa = float(np.sqrt(np.max(np.einsum("ij,ij->i", plain, plain, dtype=np.float64))))
        return cls(chosen, V.astype(np.float64), kappa)

    def bounds(self, recipe: Recipe, y: Array, weight: Array | None) -> Array:
        """D_G of each model, by its targets of these rows, (K, rows), and multipliers of slopes.

        Rows whose multiplier is negative are not seen.
        """
        seen = np.ones(len(self.V), dtype=bool) if weight is None else weight >= 0.0
        if not seen.any():
            seen, weight = ~seen, None
        V, y = self.V[seen], y[:, seen]
        weight = None if weight is None else weight[seen]
        norms = np.einsum("ij,ij->i", V, V) + (1.0 if recipe.free_intercept else 0.0)
        return np.array(
            [gradient_bound(recipe.loss.of_model(k), norms, own, weight) for k, own in enumerate(y)]
        )


BULK = 0.55
"""The part of the targets that counts as most: a half, and three standard errors of 1000 rows."""


def bulk_of(y: Array, weight: Array | None, *, each: bool = False) -> float | Array:
    """A size that ``BULK`` of the targets, by weight, do not exceed; the largest over models, or each.

    Half of them would do (see ``Recipe.feasible_sets``); of a sample it had better be more.
    """
    weight = np.ones(y.shape[1]) if weight is None else np.maximum(weight, 0.0)
    sizes = np.abs(y)
    order = np.argsort(sizes, axis=1)
    running = np.cumsum(weight[order], axis=1)
    first = (running < BULK * running[:, -1:]).sum(axis=1)
    found = np.take_along_axis(sizes, order, axis=1)[np.arange(len(y)), first]
    return found if each else float(found.max())
