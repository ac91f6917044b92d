"""What a run returns: the averaged model, and what is known of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from asset_svm.exceptions import NonFiniteError
from asset_svm.problem import Certificate
from asset_svm.solvers import SolverState

Array = npt.NDArray[Any]


@dataclass(frozen=True, eq=False)
class Solution:
    """The averaged model of a run and what is known of it."""

    coef: Array
    intercept: Array
    certificate: Certificate
    epochs: int
    step_scale: float | None
    state: SolverState
    gradient_bounds: Array
    kappa: float
    steps: int = 0
    history: list[dict[str, Any]] = field(default_factory=list)
    timed_out: bool = False
    bulk: float = float("inf")


def check_finite(coef: Array, intercept: Array, certificate: Certificate) -> None:
    """Raise unless a model and its objective are finite: sums can overflow where iterates do not."""
    if not all(np.isfinite(part).all() for part in (coef, intercept, certificate.objective)):
        raise NonFiniteError(
            "The averaged model is not finite; scale the columns of X, and the targets of a "
            "regression, to moderate size (StandardScaler)."
        )
