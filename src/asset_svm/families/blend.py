"""A weighted mean of models of any family, on the same rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from asset_svm.arrays import Array
from asset_svm.families.base import DecisionFunction
from asset_svm.tasks import Task

FIXED = "it is a mean of several models; fit one of them by itself"


@dataclass(eq=False)
class BlendDecision:
    """The weighted mean of decisions.

    Parameters
    ----------
    members : tuple of DecisionFunction
    weights : array
        They add up to 1.
    """

    members: tuple[DecisionFunction, ...]
    weights: Array

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of rows that the models were made for."""
        return np.result_type(*(member.dtype for member in self.members))

    @property
    def alone(self) -> bool:
        """Whether one thread of the host must decide."""
        return any(member.alone for member in self.members)

    def __call__(self, X: Any) -> Array:
        """The (rows, K) decisions, in float64."""
        return self._mean([member(X) for member in self.members])

    def gradients(self, X: Any) -> Array:
        """The (rows, K, n) gradients of the decisions, in float64."""
        return self._mean([member.gradients(X) for member in self.members])

    def unchecked(self, dtype: np.dtype[Any]) -> Callable[[Any], Array]:
        """A function from rows of this type to decisions, without any check."""
        decide = [member.unchecked(dtype) for member in self.members]
        return lambda X: self._mean([each(X) for each in decide])

    def on_card(self, backend: Any, X: Any) -> Array:
        """The (rows, K) decisions, computed on a card."""
        return self._mean([member.on_card(backend, X) for member in self.members])

    def _mean(self, found: list[Array]) -> Array:
        total = self.weights[0] * found[0]
        for weight, each in zip(self.weights[1:], found[1:], strict=True):
            total += weight * each
        return np.asarray(total)


@dataclass(frozen=True, eq=False)
class FittedBlend:
    """Several models of one task on the same rows, and the weight of each.

    Parameters
    ----------
    members : tuple of FittedMap, FittedCells or FittedRelevance
        The one of the largest weight first.
    weights : array
        They add up to 1.
    """

    members: tuple[Any, ...]
    weights: Array

    @property
    def task(self) -> Task:
        """The task that the models have learnt."""
        task: Task = self.members[0].task
        return task

    @cached_property
    def decision(self) -> DecisionFunction:
        """The function that the mean predicts with."""
        return BlendDecision(tuple(member.decision for member in self.members), self.weights)

    @property
    def fixed(self) -> str | None:
        """Why it cannot go on learning, and what to do."""
        return FIXED

    @property
    def objective(self) -> float:
        """Not a number: the mean solves no problem of its own."""
        return float("nan")

    @property
    def dual_gap(self) -> float:
        """Not a number."""
        return float("nan")

    def attributes(self) -> dict[str, Any]:
        """What users see of the mean: that of the first model, where there is no more to say."""
        each = [member.attributes() for member in self.members]
        found = {
            "blend_": [dict(one, weight=float(w)) for one, w in zip(each, self.weights, strict=True)],
            "n_iter_": max(one["n_iter_"] for one in each),
            "t_": sum(one["t_"] for one in each),
            "lam_": each[0]["lam_"],
            "history_": each[0]["history_"],
            "objective_": self.objective,
            "dual_gap_": self.dual_gap,
        }
        shares = [one["feature_importances_"] for one in each if "feature_importances_" in one]
        if len(shares) == len(each):
            found["feature_importances_"] = np.average(shares, axis=0, weights=self.weights)
        return found

    def bare(self) -> FittedBlend:
        """The mean with no more than prediction needs."""
        return replace(self, members=tuple(member.bare() for member in self.members))
