"""The rows of a run: mapped, with targets, weights and the order of visits."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from asset_svm.arrays import Array
from asset_svm.backends.base import Visits
from asset_svm.data import Order, Targets
from asset_svm.features import Evaluable, FeatureMap, Metric
from asset_svm.solvers import BlockRows, Cut
from asset_svm.solvers.driver import Form


@dataclass(frozen=True, eq=False)
class TrainingRows:
    """The rows of a run: mapped, with targets, weights of (PL), and the order of visits.

    ``slope_weight`` multiplies slopes where the order itself does not follow the weights. With a
    ``metric`` the mapped rows are those of V T.
    """

    mapped: BlockRows
    targets: Targets
    order: Order
    weight: Array
    slope_weight: Array | None
    y_max: float | Array
    metric: Metric | None = None

    def blocks(self, among: Array | None = None) -> Iterator[Array]:
        """The numbers of all rows in their order, or of those ``among`` them, a block at a time."""
        size, count = self.mapped.look_size, self.order.n_rows if among is None else len(among)
        for start in range(0, count, size):
            stop = min(start + size, count)
            yield np.arange(start, stop) if among is None else among[start:stop]

    def visits(
        self,
        cut: Cut,
        *,
        form: Form = "row",
        length: int | None = None,
        ahead: bool = False,
    ) -> Visits:
        """The visits of these rows, in their order; parameters as in ``Driver``."""
        parts = self.mapped, self.targets, self.order, cut, self.slope_weight
        return Visits(*parts, form, length, ahead)

    def draw(self, count: int, seed: int) -> Array | None:
        """The numbers of ``count`` rows, drawn at random; None where there are no more."""
        m = self.order.n_rows
        if count >= m:
            return None
        return np.sort(np.random.default_rng([seed, 4]).choice(m, size=count, replace=False))

    def take(self, index: Array) -> Array:
        """The mapped rows of these numbers."""
        V, positions = self.mapped.fetch(index)
        return V[positions, : self.mapped.dimension]


def in_metric(phi: FeatureMap, metric: Metric | None) -> Evaluable:
    """The map of the rows of a run: phi, in the metric if there is one."""
    return phi if metric is None else phi.in_metric(metric)


def plain_coef(coef: Array, metric: Metric | None) -> Array:
    """Coefficients of phi from those of the rows of a run, which are in the metric if there is one."""
    return coef if metric is None else metric.apply(coef)


@dataclass(frozen=True, eq=False)
class RepeatedTargets:
    """The (T, m) targets of some models, ``times`` of each."""

    values: Array
    times: int = 1

    @property
    def n_models(self) -> int:
        """The number of models, T for each time."""
        return len(self.values) * self.times

    def block(self, rows: Array) -> Array:
        """The (K, len(rows)) targets of these rows."""
        return np.tile(self.values[:, rows], (self.times, 1))
