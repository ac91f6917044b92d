"""The rows of a run: mapped, with targets, weights and the order of visits."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from asset_svm.arrays import Array
from asset_svm.backends.base import Visits
from asset_svm.data import GivenOrder, Order, Targets
from asset_svm.features import Evaluable, FeatureMap, Metric
from asset_svm.solvers import BlockRows, Cut, RowBlock
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
    y_max: float
    metric: Metric | None = None

    def indices(self) -> Iterator[Array]:
        """The numbers of all rows in their order, a block at a time."""
        size = self.mapped.look_size
        for start in range(0, self.order.n_rows, size):
            yield np.arange(start, min(start + size, self.order.n_rows))

    def visits(
        self,
        cut: Cut,
        *,
        form: Form = "row",
        pool: ThreadPoolExecutor | None = None,
        length: int | None = None,
        ahead: bool = False,
    ) -> Visits:
        """The visits of these rows, in their order; parameters as in ``Driver``."""
        parts = self.mapped, self.targets, self.order, cut, self.slope_weight
        return Visits(*parts, form, pool, length, ahead)

    def some(self, count: int, seed: int) -> TrainingRows:
        """At most ``count`` of the rows, drawn at random."""
        m = self.order.n_rows
        if count >= m:
            return self
        chosen = np.sort(np.random.default_rng([seed, 4]).choice(m, size=count, replace=False))
        return replace(
            self,
            mapped=_Some(self.mapped, chosen),
            targets=_SomeTargets(self.targets, chosen),
            order=GivenOrder(count),
            weight=self.weight[chosen],
            slope_weight=None,
        )

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
class _Some:
    """Some of the mapped rows."""

    mapped: BlockRows
    chosen: Array

    @property
    def dimension(self) -> int:
        return self.mapped.dimension

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.mapped.dtype

    def fetch(self, rows: Array) -> tuple[Array, Array]:
        return self.mapped.fetch(self.chosen[rows])

    @property
    def look_size(self) -> int:
        return self.mapped.look_size

    @property
    def looks_ahead(self) -> int:
        return self.mapped.looks_ahead

    def expect(self, rows: Array) -> None:
        self.mapped.expect(self.chosen[rows])

    def open(self, rows: Array) -> RowBlock:
        return self.mapped.open(self.chosen[rows])


@dataclass(frozen=True, eq=False)
class _SomeTargets:
    """The targets of some of the rows."""

    targets: Targets
    chosen: Array

    @property
    def n_models(self) -> int:
        return self.targets.n_models

    def block(self, rows: Array) -> Array:
        return self.targets.block(self.chosen[rows])
