"""A map that was drawn for some rows, and what is known of them by it: a fit may begin from there."""

from __future__ import annotations

from dataclasses import dataclass

from asset_svm.arrays import Array, Matrix
from asset_svm.backends.base import Backend
from asset_svm.backends.cpu import CpuRows
from asset_svm.data import Order
from asset_svm.families.one_map.maps import draw_map
from asset_svm.families.rows import Rows
from asset_svm.features import Evaluable, FeatureMap, Metric
from asset_svm.settings import Settings
from asset_svm.solvers import BlockRows
from asset_svm.tasks import Encoded
from asset_svm.training.recipe import StepKind
from asset_svm.training.rows import TrainingRows, in_metric


@dataclass(eq=False)
class DrawnMap:
    """phi, its metric, and the rows that it was drawn for, mapped, until somebody takes them.

    Parameters
    ----------
    mapped : CpuRows, optional
        Those rows, in the metric.
    """

    phi: FeatureMap
    metric: Metric | None
    mapped: CpuRows | None = None

    @classmethod
    def draw(cls, settings: Settings, backend: Backend, rows: Rows, seed: int) -> DrawnMap:
        """The map of these rows, whose targets are not looked at, with its metric."""
        phi = draw_map(settings, backend, rows.X, rows.uneven, seed)
        return cls.measured(backend, phi, rows, settings.step, seed)

    @classmethod
    def measured(
        cls, backend: Backend, phi: FeatureMap, rows: Rows, step: StepKind, seed: int
    ) -> DrawnMap:
        """The map with the metric of these rows, where steps are taken in one."""
        if step != "metric":
            return cls(phi, None)
        return cls(phi, backend.find_metric(phi, rows.X, rows.weight, seed))

    @property
    def mapping(self) -> Evaluable:
        """The map of the rows of a run: phi, in the metric if there is one."""
        return in_metric(self.phi, self.metric)

    def rows(self, backend: Backend, X: Matrix) -> BlockRows:
        """The rows of X; those that were mapped before are given away."""
        mapped, self.mapped = self.mapped, None
        if mapped is not None:
            return mapped
        return backend.rows(self.mapping, X)

    def training(
        self,
        backend: Backend,
        rows: Rows,
        encoded: Encoded,
        order: Order,
        slope_weight: Array | None = None,
    ) -> TrainingRows:
        """The rows of a run on this map."""
        mapped, targets, y_max = self.rows(backend, rows.X), encoded.targets, encoded.y_max
        return TrainingRows(mapped, targets, order, rows.weight, slope_weight, y_max, self.metric)

    def keep(self, rows: BlockRows) -> None:
        """Keep mapped rows, where they lie in this machine's memory."""
        if isinstance(rows, CpuRows) and rows.kept_bytes:
            self.mapped = rows

    def make_way(self, limit: int) -> None:
        """Let the mapped rows go, where they and those of another map would take more bytes."""
        if self.mapped is not None:
            another = len(self.mapped.seen) * self.phi.basis_dimension * self.mapped.dtype.itemsize
            if self.mapped.kept_bytes + another > limit:
                self.mapped = None
