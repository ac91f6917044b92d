"""What a fit with learnt relevance leaves: the map of the columns, and a model on mapped rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from asset_svm.families.base import DecisionFunction
from asset_svm.families.beginning import Beginning
from asset_svm.families.relevance.decision import MappedDecision
from asset_svm.families.rows import Rows
from asset_svm.features.relevance import Learnt
from asset_svm.tasks import Task

MAPPED_ROWS = ("components_", "support_vectors_")
"""Attributes of the model that are mapped rows."""


@dataclass(frozen=True, eq=False)
class FittedRelevance:
    """A model of another family, on rows that the learnt relevance maps.

    Parameters
    ----------
    learnt : Learnt
    inner : FittedMap or FittedCells
        The model on mapped rows; on rows as they are, where that was found to be no worse.
    beginning : Beginning, optional
        The first rows of a stream, as they came, as long as the model may begin anew.
    """

    learnt: Learnt
    inner: Any
    beginning: Beginning | None = None

    @property
    def task(self) -> Task:
        """The task that the model has learnt."""
        task: Task = self.inner.task
        return task

    @cached_property
    def decision(self) -> DecisionFunction:
        """The function that the model predicts with."""
        relevance, decision = self.learnt.relevance, self.inner.decision
        found: DecisionFunction = decision if relevance is None else MappedDecision(relevance, decision)
        return found

    @property
    def fixed(self) -> str | None:
        """Why it cannot go on learning, and what to do; None where it can."""
        why: str | None = self.inner.fixed
        return why

    @property
    def objective(self) -> float:
        """The value of (PL) on mapped rows."""
        return float(self.inner.objective)

    @property
    def dual_gap(self) -> float:
        """An upper bound of objective minus optimum, on mapped rows."""
        return float(self.inner.dual_gap)

    def attributes(self) -> dict[str, Any]:
        """What users see of the model, by the names of an estimator's attributes."""
        learnt = self.learnt
        found: dict[str, Any] = dict(self.inner.attributes())
        if learnt.relevance is not None:
            unmoved = learnt.relevance.unmoved
            found |= {name: unmoved(found[name]) for name in MAPPED_ROWS if name in found}
        weights = None if learnt.relevance is None else learnt.relevance.weights
        return found | {
            "relevance_": weights,
            "feature_importances_": learnt.importances,
            "relevance_history_": learnt.history,
        }

    def mapped(self, rows: Rows) -> Rows:
        """The rows as the model sees them."""
        return mapped_rows(self.learnt, rows)

    def begun_with(self, beginning: Beginning | None) -> FittedRelevance:
        """The model with other first rows."""
        return replace(self, beginning=beginning)

    def counted_after(self, before: FittedRelevance) -> FittedRelevance:
        """This model of a first batch as one more batch after those of another."""
        return replace(self, inner=self.inner.counted_after(before.inner))

    def bare(self) -> FittedRelevance:
        """The model with no more than prediction needs."""
        return replace(self, inner=self.inner.bare(), beginning=None)


def mapped_rows(learnt: Learnt, rows: Rows) -> Rows:
    """The rows as a model sees them that was trained with what was learnt."""
    return rows if learnt.relevance is None else replace(rows, X=learnt.relevance(rows.X))
