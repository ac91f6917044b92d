"""What a fit of cells leaves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from asset_svm.arrays import Array
from asset_svm.families.beginning import Beginning
from asset_svm.families.cells.constant import Constant
from asset_svm.families.cells.decision import CellDecision, CellModels
from asset_svm.families.cells.nested import Nested
from asset_svm.families.one_map.fitted import BARE, HISTORY
from asset_svm.kernels import Kernel
from asset_svm.tasks import Task


@dataclass(frozen=True, eq=False)
class FittedCells:
    """A model of cells.

    Parameters
    ----------
    task : Task
    kernel : Kernel
    decision : CellDecision
        The cells of every partition.
    seed : int
        Of the cells' models in a stream.
    lam : float
    n_iter, steps : int
    objective, dual_gap : float
        The means over partitions.
    history : list of dict
    support, n_support : arrays, optional
        The rows that are support vectors, and how many of each class: of a model of one exact cell.
    beginning : Beginning, optional
        The first rows of a stream, as long as the model may begin anew.
    extra : dict
        Attributes that some kinds of fits have besides.
    fixed : str or None
        Why the model cannot go on learning, and what to do; None where it can.
    """

    task: Task
    kernel: Kernel
    decision: CellDecision
    seed: int
    lam: float
    n_iter: int
    steps: int
    objective: float
    dual_gap: float
    history: list[dict[str, Any]]
    support: Array | None = None
    n_support: Array | None = None
    beginning: Beginning | None = None
    extra: dict[str, Any] = field(default_factory=dict)
    fixed: str | None = None

    @classmethod
    def empty(
        cls,
        task: Task,
        kernel: Kernel,
        dtype: np.dtype[Any],
        seed: int,
        lam: float,
        parts: Sequence[CellModels] = (),
    ) -> FittedCells:
        """A model that has learnt nothing yet, in the cells of these partitions."""
        decision = CellDecision(list(parts), task.n_models, dtype, alone=not kernel.is_reentrant)
        return cls(task, kernel, decision, seed, lam, 0, 0, 0.0, 0.0, [])

    def joined(
        self, parts: Sequence[CellModels], history: list[dict[str, Any]], n_rows: int
    ) -> FittedCells:
        """The model of partitions that were trained on so many rows, from their records."""
        sweeps = max(record["sweeps"] for record in history)
        return replace(
            self,
            decision=replace(self.decision, parts=list(parts)),
            n_iter=sweeps,
            steps=sweeps * n_rows,
            objective=float(np.mean([record["objective"] for record in history])),
            dual_gap=float(np.mean([record["dual_gap"] for record in history])),
            history=list(history),
        )

    def attributes(self) -> dict[str, Any]:
        """What users see of the model, by the names of an estimator's attributes."""
        parts = self.decision.parts
        found = {
            "cells_": parts,
            "n_cells_": int(np.mean([part.partition.n_cells for part in parts]).round()),
            "gamma_": self.kernel.gamma,
            "n_iter_": self.n_iter,
            "t_": self.steps,
            "lam_": self.lam,
            "history_": self.history,
            "objective_": self.objective,
            "dual_gap_": self.dual_gap,
        }
        if self.support is not None:
            found |= {"support_": self.support, "n_support_": self.n_support, **self._exact()}
        return found | self.extra

    def _exact(self) -> dict[str, Any]:
        """What the model of one exact cell has by SVC's names."""
        decision: Any = self.decision.parts[0].decisions[0]
        if isinstance(decision, Constant):
            return {
                "support_vectors_": decision.X[:0],
                "dual_coef_": np.empty((len(decision.values), 0)),
                "intercept_": decision.values,
            }
        return {
            "support_vectors_": decision.source.components,
            "dual_coef_": decision.weights,
            "intercept_": decision.intercept,
        }

    def begun_with(self, beginning: Beginning | None) -> FittedCells:
        """The model with other first rows."""
        return replace(self, beginning=beginning)

    def counted_after(self, before: FittedCells) -> FittedCells:
        """This model of a first batch as one more batch after those of another."""
        batches = before.n_iter + 1
        history = [*before.history, {**self.history[-1], "batch": batches}][-HISTORY:]
        return replace(self, n_iter=batches, history=history)

    def bare(self) -> FittedCells:
        """The model with no more than prediction needs."""
        parts = [
            replace(part, decisions=[_bare(d) for d in part.decisions]) for part in self.decision.parts
        ]
        decision = CellDecision(parts, self.decision.n_models, self.decision.dtype, self.decision.alone)
        return replace(self, decision=decision, beginning=None, fixed=self.fixed or BARE)


def _bare(decision: Any) -> Any:
    """The decision function of a cell, without what ``partial_fit`` goes on from."""
    if isinstance(decision, Nested):
        return replace(decision, model=replace(decision.model.bare(), history=[]))
    if isinstance(decision, Constant) and decision.X is not None:
        return Constant(decision.values, decision.X[:0])
    return decision
