"""What every feature map phi: R^n -> R^d offers.

A map is a frozen dataclass: ``sample(..., rng)`` draws one, ``__call__`` applies it. It has two parts,
each prepared for rows of a type: the basis, s kernel values (Nystroem) or phi itself (Fourier), and
a linear map from there to the features, phi(x) = lift(basis(x)). Its transpose takes coefficients of
the features to weights of the basis, phi(x).coef = basis(x).decision_weights(coef): a decision needs no
lift, which for the Nystroem map is most of the work.

Where an intercept is free a map may be centred: its basis values are those of ``plain`` less a constant
vector, and intercepts b of phi(x).coef + b are those of plain decisions plus ``drift(coef)``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from asset_svm.arrays import Array, Matrix
from asset_svm.features.metric import Metric, MetricFeatures
from asset_svm.threads.blocks import map_in_blocks


class Evaluable(Protocol):
    """Anything that turns rows into features: all that training needs of a map."""

    @property
    def dimension(self) -> int:
        """The length d of phi(x)."""

    @property
    def basis_dimension(self) -> int:
        """The length s of basis(x)."""

    @property
    def reentrant(self) -> bool:
        """Whether threads may evaluate it side by side: not where a user's function is called."""

    def basis(self, dtype: npt.DTypeLike) -> Callable[[Matrix], Array]:
        """A function from a block of rows to its (rows, s) basis values in ``dtype``."""

    def lift(self, dtype: npt.DTypeLike) -> Callable[[Array], Array]:
        """A function from basis values to the (rows, d) features."""


class FeatureMap(Evaluable, Protocol):
    """phi, and the cheaper basis that decisions are made of."""

    @property
    def n_features_in(self) -> int:
        """The length n of x."""

    def find_metric(self, V: Array, weight: Array | None, rng: np.random.Generator) -> Metric:
        """The metric of the data in this map's basis, from a sample V of its features."""

    def in_metric(self, metric: Metric) -> Evaluable:
        """The map x -> phi(x) T."""

    def decision_weights(self, coef: Array) -> Array:
        """(K, d) coefficients of phi to (K, s) weights of the basis."""

    @property
    def plain(self) -> Any:
        """What decisions are made of: the basis without a centre, by its ``basis(dtype)``."""

    def drift(self, coef: Array) -> Array:
        """The excess of plain(x).decision_weights(coef) over phi(x).coef, (K,)."""

    def __call__(self, X: Matrix) -> Array:
        """Return phi(X), in the type of X."""


def centred_values(values: Callable[[Matrix], Array], centre: Array) -> Callable[[Matrix], Array]:
    """The function of a block of rows, less ``centre``."""

    def less(X: Matrix) -> Array:
        found = values(X)
        found -= centre
        return found

    return less


def evaluator(phi: Evaluable, dtype: npt.DTypeLike) -> Callable[[Matrix], Array]:
    """The function x -> phi(x) for rows of this type."""
    basis, lift = phi.basis(dtype), phi.lift(dtype)
    return lambda X: lift(basis(X))


class CentredMap:
    """What maps that may be centred have in common; ``centre`` is None where they are not."""

    centre: Array | None

    def in_metric(self, metric: Metric) -> MetricFeatures:
        """The map x -> phi(x) T."""
        return MetricFeatures(self, metric)

    def lift_in(self: Any, metric: Metric, dtype: npt.DTypeLike) -> Callable[[Array], Array]:
        """The function k -> lift(k) T for basis values of this type."""
        lift = self.lift(dtype)
        return lambda K: metric.apply(lift(K))

    def drift(self: Any, coef: Array) -> Array:
        """The product centre.decision_weights(coef) of each of K models."""
        if self.centre is None:
            return np.zeros(len(coef))
        return np.asarray(self.decision_weights(coef) @ self.centre)

    def __call__(self: Any, X: Matrix) -> Array:
        """Return phi(X), in the type of X."""
        phi = evaluator(self, X.dtype)
        return map_in_blocks(phi, X, self.dimension, X.dtype, reentrant=self.reentrant)
