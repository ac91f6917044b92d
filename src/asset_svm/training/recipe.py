"""How K problems (PL) are solved: everything but the rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from asset_svm.arrays import Array
from asset_svm.data import Targets, models_of_a_row
from asset_svm.feasible import FeasibleSet
from asset_svm.features import Metric
from asset_svm.losses import Loss
from asset_svm.solvers import CountWindow, FinalWindow, FractionWindow, NoWindow
from asset_svm.solvers.average import Window
from asset_svm.solvers.blocked_form import MANY_MODELS
from asset_svm.solvers.driver import Form
from asset_svm.steps import MetricStep, RobustStep, StepRule, StrongStep

StepKind = Literal["metric", "robust", "strong"]
UNASKED = 1e9
"""The tight bound is computed unasked where it takes at most so many operations: tenths of a second."""


@dataclass(frozen=True)
class Recipe:
    """How to solve K problems (PL): everything but the rows.

    Parameters
    ----------
    lam : tuple of float
        That of each model.
    step : {"robust", "strong", "metric"}
    step_scale : float or None
        None: by a pilot.
    average : float, int, None or "auto"
        "auto": the last half; the last twentieth where the steps decay to 0.
    intercept_bound : float or None
        None: the loss's own.
    form : {"row", "blocked"}
    tight_within : float
        Operations that the tight bound of a certificate may take without a ``tol`` that asks for it.
    """

    loss: Loss
    lam: tuple[float, ...]
    step: StepKind = "robust"
    step_scale: float | None = None
    average: float | int | Literal["auto"] | None = "auto"
    free_intercept: bool = True
    intercept_bound: float | None = None
    gradient_sample: int = 1000
    form: Form = "row"
    seed: int = 0
    tight_within: float = UNASKED

    def feasible_sets(
        self, y_max: float | Array, kappa: float, bulk: float | Array, metric: Metric | None
    ) -> list[FeasibleSet]:
        """The feasible set of each model; ``kappa`` is the largest |v|, ``bulk`` that of most |y|.

        ``y_max`` and ``bulk`` are those of all models, or of each.

        The paper's, for its steps. Steps in the metric have smaller ones where a few targets are far
        larger than all others, which would make them too long: |coef| <= steepest slope * kappa / lam;
        and where |y| <= bulk for half of the rows, their slopes alone keep an optimal intercept below
        the bound for these. Slopes without a bound have no such intercept.
        """
        sets = []
        each = zip(
            *(np.broadcast_to(size, len(self.lam)).tolist() for size in (y_max, bulk)), strict=True
        )
        for lam, (own, usual) in zip(self.lam, each, strict=True):
            radius, largest = self.loss.radius(lam, own), own
            if self.step == "metric" and kappa > 0.0:
                radius = min(radius, self.loss.steepest * kappa / lam)
                if self.loss.steepest < np.inf:
                    largest = min(usual, own)
            bound = self.intercept_bound
            if bound is None:
                bound = self.loss.intercept_bound(largest, kappa * radius)
            if metric is not None:
                radius /= metric.least
            sets.append(FeasibleSet(radius, bound if self.free_intercept else None))
        return sets

    def rules(
        self,
        sets: list[FeasibleSet],
        gradient_bounds: Array,
        scale: float,
        horizon: int = 0,
        metric: Metric | None = None,
    ) -> list[StepRule]:
        """The step rule of each model; ``horizon`` is the number of steps, 0 where not known."""
        if metric is not None:
            return [
                MetricStep(s.size, float(g), metric, scale, horizon)
                for s, g in zip(sets, gradient_bounds, strict=True)
            ]
        if self.step == "strong":
            return [StrongStep(lam) for lam in self.lam]
        return [RobustStep(s.size, float(g), scale) for s, g in zip(sets, gradient_bounds, strict=True)]

    def form_for(self, targets: Targets) -> Form:
        """How rows are stepped through; where many models see each, by matrix products that they share.

        Of many pairs of classes few see a row, and products would be those of all.
        """
        return "blocked" if models_of_a_row(targets) >= MANY_MODELS else self.form

    def usual_average(self, *, decaying: bool) -> float:
        """The fraction of its steps that a run averages where ``average`` is "auto"."""
        return 0.05 if self.step == "metric" and decaying else 0.5

    def window(self, total: int | None, *, stream: bool = False, looked_at: bool = True) -> Window:
        """The averaging window of a run of ``total`` steps (None: not known).

        ``stream`` says that the steps do not decay to 0 at its end, ``looked_at`` that its model is
        of interest before.
        """
        if self.average is None:
            return NoWindow()
        if isinstance(self.average, int):
            return CountWindow(self.average, total, every_step=total is None)
        fraction = self.average
        if fraction == "auto":
            fraction = self.usual_average(decaying=not stream)
        if total is None or looked_at:
            return FractionWindow(fraction, total)
        return FinalWindow(fraction, total)
