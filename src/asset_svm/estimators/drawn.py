"""A map that was drawn for some rows, and what is known of them by it: a fit may begin from there."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from asset_svm.engines.local import LocalRows
from asset_svm.engines.task import Engine, StepKind
from asset_svm.estimators.rows import Rows
from asset_svm.features import FeatureMap, Metric
from asset_svm.solvers import BlockRows


@dataclass(frozen=True, eq=False)
class DrawnMap:
    """phi, its metric, and the rows that it was drawn for, mapped, where they were kept.

    Parameters
    ----------
    phi : FeatureMap
    metric : Metric, optional
    mapped : LocalRows, optional
        In the metric; whole features, not led.
    """

    phi: FeatureMap
    metric: Metric | None
    mapped: LocalRows | None = None

    @classmethod
    def measured(
        cls, engine: Engine, phi: FeatureMap, rows: Rows, step: StepKind, seed: int
    ) -> DrawnMap:
        """With the metric of these rows, where steps are taken in one."""
        if step != "metric":
            return cls(phi, None)
        return cls(phi, engine.find_metric(phi, rows.X, rows.weight, seed))

    def rows(self, engine: Engine, X: Any, *, lead: bool) -> BlockRows:
        """The rows of X; those mapped before, where they are as asked for."""
        if self.mapped is not None and not lead:
            return self.mapped
        phi = self.phi if self.metric is None else self.phi.in_metric(self.metric)
        return engine.rows(phi, X, lead=lead)

    def keeping(self, rows: BlockRows) -> DrawnMap:
        """With mapped rows, where they lie in this machine's memory."""
        return replace(self, mapped=rows) if isinstance(rows, LocalRows) and rows.kept_bytes else self

    def beside_another(self, limit: int) -> DrawnMap:
        """Without the mapped rows, where they and those of another map would take more bytes."""
        if self.mapped is None:
            return self
        another = len(self.mapped.seen) * self.phi.basis_dimension * self.mapped.dtype.itemsize
        return self if self.mapped.kept_bytes + another <= limit else replace(self, mapped=None)
