"""Numbers, within a tube of half-width epsilon."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from asset_svm.arrays import Array
from asset_svm.data import RealTargets
from asset_svm.losses import EpsilonInsensitive, Huber, Loss, SquaredEpsilonInsensitive
from asset_svm.settings import checks as check
from asset_svm.tasks.base import Constancy, Encoded, train_test_rows
from asset_svm.tasks.units import Units

LOSSES: dict[str, type[Any]] = {
    "epsilon_insensitive": EpsilonInsensitive,
    "squared_epsilon_insensitive": SquaredEpsilonInsensitive,
    "huber": Huber,
}
"""The losses, by the parameter ``loss``."""
NARROW = 0.03
"""Times the range of the targets: predictions that range over less tell no rows apart."""
STANDARD_EPSILON = 0.05
"""The half-width of the tube around targets in units of their standard deviation."""
UNEQUAL = 10.0
"""Times C: targets that spread over more are out of reach."""


@dataclass(frozen=True, eq=False)
class Regression:
    """Learning numbers.

    Parameters
    ----------
    epsilon : float
    centred : bool
        Whether the weighted median of the targets is subtracted: with an intercept, or in cells, it is
        the same problem in a smaller ball.
    offset : float
        What is subtracted.
    units : Units or None
        Those of targets and decisions, where they are not the user's.
    loss_name : {"epsilon_insensitive", "squared_epsilon_insensitive", "huber"}
    """

    epsilon: float = 0.1
    centred: bool = True
    offset: float = 0.0
    units: Units | None = None
    loss_name: str = "epsilon_insensitive"
    numeric: ClassVar[bool] = True
    classes: ClassVar[Array | None] = None

    @classmethod
    def of(cls, epsilon: Any, *, centred: bool, loss: str = "epsilon_insensitive") -> Regression:
        """The task of the parameters, which are checked."""
        if isinstance(loss, str) and loss in ("quantile", "pinball"):
            raise ValueError(
                f'loss="{loss}" is that of AssetQuantileRegressor, which learns several; use it.'
            )
        check.check_choice("loss", loss, LOSSES)
        check.check_not_negative("epsilon", epsilon)
        if loss == "huber" and epsilon == 0:
            raise ValueError(
                'epsilon=0 leaves nothing of loss="huber" that is round; set epsilon above 0, or '
                'loss="epsilon_insensitive".'
            )
        return cls(float(epsilon), centred, loss_name=loss)

    @property
    def loss(self) -> Loss:
        """The epsilon-insensitive loss, or the one that was asked for."""
        found: Loss = LOSSES[self.loss_name](self.epsilon)
        return found

    @property
    def in_units(self) -> bool:
        """Whether targets have units that are not the user's."""
        return self.units is not None

    @property
    def n_models(self) -> int:
        """Numbers have one model."""
        return 1

    def of_cell(self, *, known: bool, free_intercept: bool) -> Regression:
        """The same task, of targets that are less the offset already."""
        return replace(self, centred=free_intercept, offset=0.0)

    @property
    def offset_of_cell(self) -> float:
        """The offset."""
        return self.offset

    def targets_of_cell(self, y: Array) -> Array:
        """Return the targets less the offset."""
        return y - self.offset

    def with_classes(self, classes: Array) -> Regression:
        """There are no classes: numbers may happen to be few."""
        return self

    def with_epsilon(self, epsilon: float) -> Regression:
        """The task with another half-width of the tube."""
        return replace(self, epsilon=float(epsilon))

    def with_loss(self, name: str) -> Regression:
        """The task with another loss."""
        return replace(self, loss_name=name)

    def standardised(self, y: Array, weight: Array) -> tuple[Regression, Array]:
        """The task of targets in units of their standard deviation."""
        y = np.asarray(y, dtype=np.float64)
        mean = np.average(y, weights=weight)
        spread = float(np.sqrt(np.average((y - mean) ** 2, weights=weight)))
        y = y / spread if spread > 0.0 else y
        return Regression(STANDARD_EPSILON).settled(y, weight), y

    def settled(self, y: Array, weight: Array) -> Regression:
        """The task with the median of these rows as offset."""
        y = np.asarray(y, dtype=np.float64)
        return replace(self, offset=weighted_median(y, weight) if self.centred else 0.0)

    def encode(self, y: Array) -> Encoded:
        """Return the targets less the offset, as the solver sees them."""
        centred = np.asarray(y, dtype=np.float64) - self.offset
        return Encoded(RealTargets(centred), self.loss, float(np.abs(centred).max()), self.offset)

    def class_weights(self, y: Array, weight: Array) -> Array | None:
        """Return None: there are no classes."""
        return None

    def factors(self, totals: Array) -> Array | None:
        """Return None: there are no classes."""
        return None

    def factors_of(self, factors: Array, y: Array) -> Array:
        """Return 1 for every row: there are no classes."""
        return np.ones(len(y))

    def check_stream(self) -> None:
        """Numbers can always be learnt from one batch after the other."""

    def predict(self, decisions: Array) -> Array:
        """Return the decisions in the user's units."""
        return decisions.ravel() if self.units is None else self.units.back(decisions.ravel())

    def decisions(self, decisions: Array) -> Array:
        """Return one decision a row."""
        return decisions.ravel()

    def slopes(self, decisions: Array) -> Array | None:
        """Return the derivatives of predictions by decisions; None where they are the same."""
        return None if self.units is None else self.units.slope(decisions)

    def score(self, decisions: Array, y: Array, weight: Array | None) -> float:
        """Return R^2."""
        from sklearn.metrics import r2_score

        return float(r2_score(y, decisions.ravel(), sample_weight=weight))

    def row_losses(self, decisions: Array, y: Array) -> Array:
        """Return |y - prediction| of every row."""
        return np.abs(y - decisions.ravel())

    def soft_losses(self, decisions: Array, y: Array) -> Array:
        """Return |y - prediction| of every row, which nowhere jumps."""
        return self.row_losses(decisions, y)

    def importance(self, decisions: Array, y: Array) -> Array:
        """Return numbers that are high for rows with large residuals."""
        return np.abs(y - decisions.ravel())

    def constancy(self, decisions: Array, y: Array, weight: Array, C: float | None) -> Constancy | None:
        """What is to be said where predictions range over next to nothing beside the targets."""
        found, wanted = quantile_range(decisions.ravel(), weight), quantile_range(y, weight)
        if found > NARROW * wanted or wanted == 0.0:
            return None
        seen = (
            f"half of its predictions lie within {found:.2g}, half of the targets within {wanted:.2g}"
        )
        causes, advice = [], ["raise C"]
        if wanted <= 2.0 * self.epsilon:
            causes.append(f"targets within epsilon={self.epsilon:g} of each other count as the same")
            advice = ["lower epsilon"]
        elif C is not None and wanted > UNEQUAL * C:
            causes.append(f"the targets spread over {wanted / C:.2g} times C={C:g}")
            advice.append('divide the targets by their spread (target_transform="standard")')
        return Constancy(seen, causes, advice)

    def split(self, y: Array, fraction: float, seed: int) -> tuple[Array, Array]:
        """Split the rows at random."""
        return train_test_rows(len(y), fraction, seed)

    def count_by_class(self, y: Array) -> Array:
        """Return the number of all rows."""
        return np.array([len(y)])


def weighted_median(y: Array, weight: Array) -> float:
    """The smallest y below or at which lies half of the weight."""
    order = np.argsort(y, kind="stable")
    running = np.cumsum(weight[order])
    return float(y[order[np.searchsorted(running, 0.5 * running[-1])]])


def quantile_range(values: Array, weight: Array) -> float:
    """The range from the first quartile to the last, by weight, which outliers do not change."""
    values = np.asarray(values, dtype=np.float64)
    order = np.argsort(values)
    running = np.cumsum(weight[order])
    low, high = np.searchsorted(running, (0.25 * running[-1], 0.75 * running[-1]))
    return float(values[order[high]] - values[order[low]])
