"""What a run is made of, over the model axis: constants (``ModelAxis``) and state (``SolverState``).

An iterate is kept as coef = scale * direction, so that a step on a row whose loss is inactive, which
only shrinks coef, touches one number.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from asset_svm.arrays import Array
from asset_svm.feasible import FeasibleSet
from asset_svm.features import Metric
from asset_svm.losses import Loss, axis_arguments
from asset_svm.numerics.shrinking import LoopMetric, no_metric
from asset_svm.steps import StepRule

BY_MODEL = ("lam", "radius", "bound", "eta", "horizon")
"""The fields of ``ModelAxis`` that have one number a model."""
LEADING = 64
"""Directions of a metric, those of the longest rows, that say how often coefficients shrink."""
SHRINK_STEPS = 64
"""The number of steps between two shrinks in a metric, at least."""


class LoopAxis(NamedTuple):
    """The numbers of a ``ModelAxis`` as compiled loops have them.

    ``lam`` is what a loop shrinks by at every step: 0 in a metric, where ``rate`` says how much the
    coefficients shrink every now and then.
    """

    code: int
    parameter: Array
    lam: Array
    rate: Array
    radius: Array
    bound: Array
    eta: Array
    power: float
    horizon: Array
    reach: float


class LoopState(NamedTuple):
    """The arrays of a ``SolverState``, which compiled loops change in place."""

    direction: Array
    scale: Array
    intercept: Array
    steps: Array
    total: Array
    weight: Array
    intercept_total: Array
    pending: Array
    pending_weight: Array
    shrink_due: Array


@dataclass(frozen=True, eq=False)
class ModelAxis:
    """The numbers of K models that compiled code needs; arrays of shape (K,).

    ``bound`` is 0 where there is no intercept: b starts at 0 and is clipped to [0, 0]. With a
    ``metric`` the rows are those of V T, and coefficients shrink after some steps, not at each.
    """

    loss: Loss
    lam: Array
    radius: Array
    bound: Array
    eta: Array
    power: float
    horizon: Array
    reach: float
    free_intercept: bool
    metric: Metric | None = None

    @classmethod
    def build(
        cls,
        loss: Loss,
        lam: Sequence[float],
        sets: Sequence[FeasibleSet],
        rules: Sequence[StepRule],
    ) -> ModelAxis:
        """Line up the parts of K problems that share a loss and a power of j."""
        powers = {rule.power for rule in rules}
        if len(powers) != 1:
            raise ValueError(f"Models that train together need one kind of step, not {powers}.")
        return cls(
            loss,
            np.array(lam, dtype=np.float64),
            np.array([s.radius for s in sets]),
            np.array([s.bound or 0.0 for s in sets]),
            np.array([rule.scale for rule in rules]),
            powers.pop(),
            np.array([rule.horizon for rule in rules], dtype=np.int64),
            rules[0].reach,
            sets[0].bound is not None,
            rules[0].metric,
        )

    @classmethod
    def joined(cls, parts: Sequence[ModelAxis]) -> ModelAxis:
        """The models of all parts on one axis; they share loss, power, intercept and metric."""
        joined: dict[str, Any] = {
            name: np.concatenate([getattr(part, name) for part in parts]) for name in BY_MODEL
        }
        return replace(parts[0], **joined)

    def take(self, which: Array) -> ModelAxis:
        """Some of the models, or all of them in another order."""
        taken: dict[str, Any] = {name: getattr(self, name)[which] for name in BY_MODEL}
        return replace(self, loss=self.loss.of_models(which), **taken)

    @property
    def loop_lam(self) -> Array:
        """The lam that the compiled loop sees at every step: 0 in a metric."""
        return self.lam if self.metric is None else np.zeros(len(self.lam))

    def for_loops(self, dtype: np.dtype[Any]) -> tuple[LoopAxis, LoopMetric]:
        """What compiled loops are told, for coefficients of this type."""
        axis = LoopAxis(
            *axis_arguments(self.loss, len(self.lam)),
            self.loop_lam,
            self.lam,
            self.radius,
            self.bound,
            self.eta,
            float(self.power),
            self.horizon,
            float(self.reach),
        )
        return axis, no_metric(dtype) if self.metric is None else self.metric.for_loops(dtype)

    def shrink_interval(self, block_size: int) -> int:
        """After how many steps coefficients shrink in a metric: those of a block, or fewer.

        Done once for n steps instead of n times, the shrink of a coordinate by exp(-a) has an error
        of a^2 / 12 in the average: n is halved until a <= 1/2 along the ``LEADING`` directions,
        or n is at most 64. Beyond, only directions that the regulariser holds near 0 are concerned:
        with n = 1 the objective was the same to 4 digits on every set tried.
        """
        if self.metric is None:
            return block_size
        steepest = float(np.sort(self.metric.scale)[:LEADING][-1]) ** 2
        rate = float((self.lam * self.eta).max()) * steepest
        interval = block_size
        while interval > SHRINK_STEPS and interval * rate > 0.5:
            interval //= 2
        return interval


@dataclass(eq=False)
class SolverState:
    """The iterates of K models, the open segment of their average, and how far they are.

    Parameters
    ----------
    direction : array of shape (K, d), the type of the rows
    scale, intercept : arrays of shape (K,)
        coef = scale * direction.
    steps : int64 array of shape (K,)
        j, the steps each model has taken.
    total, weight, intercept_total : arrays of shape (K, d), (K,), (K,)
        Sums of eta coef, eta, eta b over the open segment, less what is pending.
    pending : array of shape (K, d), the type of the rows
    pending_weight : array of shape (K,)
        Abel's summation: the open segment also holds pending_weight * direction - pending.
    shrink_due : array of shape (K,)
        The sum of eta since the last shrink, in a metric.
    """

    direction: Array
    scale: Array
    intercept: Array
    steps: Array
    total: Array
    weight: Array
    intercept_total: Array
    pending: Array
    pending_weight: Array
    shrink_due: Array

    @classmethod
    def zeros(cls, n_models: int, dimension: int, dtype: npt.DTypeLike) -> SolverState:
        """The first iterate (0, 0)."""
        shape = (n_models, dimension)
        return cls(
            direction=np.zeros(shape, dtype=dtype),
            scale=np.ones(n_models),
            intercept=np.zeros(n_models),
            steps=np.zeros(n_models, dtype=np.int64),
            total=np.zeros(shape),
            weight=np.zeros(n_models),
            intercept_total=np.zeros(n_models),
            pending=np.zeros(shape, dtype=dtype),
            pending_weight=np.zeros(n_models),
            shrink_due=np.zeros(n_models),
        )

    def for_loops(self) -> LoopState:
        """The arrays, for compiled loops."""
        return LoopState(*(getattr(self, name) for name in LoopState._fields))

    @property
    def coef(self) -> Array:
        """The current iterates, (K, d) in float64."""
        return self.direction.astype(np.float64) * self.scale[:, None]

    def segment_total(self) -> Array:
        """Sum of eta coef over the open segment, the pending part included; changes nothing."""
        pending = self.pending_weight[:, None] * self.direction - self.pending
        return np.asarray(self.total + pending)

    def fold(self) -> None:
        """Move the pending part of the open segment into its total; the sum stays the same."""
        if not self.pending_weight.any() and not self.pending.any():
            return
        self.total = self.segment_total()
        self.pending[:] = 0
        self.pending_weight[:] = 0.0

    def unscale(self) -> None:
        """Multiply scale into direction; the iterate stays the same."""
        self.fold()
        self.direction *= self.scale[:, None].astype(self.direction.dtype)
        self.scale[:] = 1.0

    def project(self, radius: Array) -> None:
        """Project the iterates onto balls of these radii; where scale is 1."""
        norms = np.sqrt(np.einsum("kd,kd->k", self.direction, self.direction, dtype=np.float64))
        far = norms > radius
        self.direction[far] *= (radius[far] / norms[far])[:, None].astype(self.direction.dtype)

    def change_basis(self, change: Callable[[Array], Array]) -> None:
        """Put the iterates and the open segment into another basis of feature space."""
        self.unscale()
        self.direction[:] = change(self.direction)
        self.total = change(self.total)

    def move_to(self, coef: Array, intercept: Array) -> None:
        """Put the iterates elsewhere; what was averaged so far stays."""
        self.fold()
        self.direction[:] = coef
        self.scale[:] = 1.0
        self.intercept[:] = intercept

    def clear_segment(self) -> None:
        """Open a new segment of the average."""
        for array in (
            self.total,
            self.weight,
            self.intercept_total,
            self.pending,
            self.pending_weight,
        ):
            array[:] = 0

    def is_finite(self) -> bool:
        """Whether every number of the iterates is finite."""
        parts = (self.direction, self.scale, self.intercept)
        return all(bool(np.isfinite(part).all()) for part in parts)
