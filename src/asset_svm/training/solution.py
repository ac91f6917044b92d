"""What a run returns: the averaged model, and what is known of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from asset_svm.arrays import Array
from asset_svm.exceptions import NonFiniteError
from asset_svm.features import Metric
from asset_svm.problem import Certificate
from asset_svm.training.plan import StepSizes
from asset_svm.training.recipe import Recipe
from asset_svm.training.rows import plain_coef


@dataclass(frozen=True, eq=False)
class Solution:
    """The averaged model of a run and what is known of it.

    Parameters
    ----------
    coef, intercept : arrays of shape (K, d), (K,)
        The model, in the basis of phi.
    step_scale : float or None
        The multiplier of the steps; None where there were none.
    dtype : dtype
        The type of the rows.
    epochs, steps : int
        How far the run went; no step was taken where (0, 0) is the solution.
    """

    coef: Array
    intercept: Array
    certificate: Certificate
    sizes: StepSizes
    step_scale: float | None
    dtype: np.dtype[Any]
    epochs: int = 0
    steps: int = 0
    history: list[dict[str, Any]] = field(default_factory=list)

    @classmethod
    def of(
        cls,
        model: tuple[Array, Array],
        metric: Metric | None,
        certificate: Certificate,
        sizes: StepSizes,
        dtype: np.dtype[Any],
        epochs: int,
        steps: int,
        history: list[dict[str, Any]],
    ) -> Solution:
        """The solution of a run that ended with this model, in the basis of its rows.

        Raises where the model is not finite.
        """
        coef = plain_coef(model[0], metric)
        check_finite(coef, model[1], certificate)
        return cls(coef, model[1], certificate, sizes, sizes.scale, dtype, epochs, steps, history)

    @classmethod
    def trivial(cls, recipe: Recipe, dimension: int, dtype: npt.DTypeLike) -> Solution:
        """(0, 0), which is a solution with objective 0 where epsilon >= |y|_inf."""
        K = len(recipe.lam)
        nothing = Certificate(*np.zeros((2, K)))
        sizes = StepSizes([], np.ones(K), 1.0, np.inf)
        return cls(np.zeros((K, dimension)), np.zeros(K), nothing, sizes, 1.0, np.dtype(dtype))


def check_finite(coef: Array, intercept: Array, certificate: Certificate) -> None:
    """Raise unless a model and its objective are finite: sums can overflow where iterates do not."""
    if not all(np.isfinite(part).all() for part in (coef, intercept, certificate.objective)):
        raise NonFiniteError(
            "The averaged model is not finite; scale the columns of X, and the targets of a "
            "regression, to moderate size (StandardScaler)."
        )
