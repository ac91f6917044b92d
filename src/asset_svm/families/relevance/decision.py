"""Decisions of rows that a relevance maps first."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from asset_svm.arrays import Array
from asset_svm.families.base import DecisionFunction
from asset_svm.features.relevance import Relevance


@dataclass(eq=False)
class MappedDecision:
    """The decision function of a model on mapped rows, as one of rows as they come."""

    relevance: Relevance
    inner: DecisionFunction

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of rows that the model was made for."""
        return self.inner.dtype

    @property
    def alone(self) -> bool:
        """Whether one thread of the host must decide."""
        return self.inner.alone

    def __call__(self, X: Any) -> Array:
        """The (rows, K) decisions, in float64."""
        return self.inner(self.relevance(X))

    def gradients(self, X: Any) -> Array:
        """The (rows, K, n) gradients of the decisions by the columns of X, in float64."""
        return self.relevance.back(self.inner.gradients(self.relevance(X)))

    def unchecked(self, dtype: np.dtype[Any]) -> Callable[[Any], Array]:
        """A function from rows of this type to decisions, without any check."""
        mapped, decide = self.relevance.plain(dtype), self.inner.unchecked(dtype)
        return lambda X: decide(mapped(X))

    def on_card(self, backend: Any, X: Any) -> Array:
        """The (rows, K) decisions, computed on a card."""
        return self.inner.on_card(backend, self.relevance(X))
