"""What is added up while a run takes its steps: the slopes of rows, and losses for its records."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from asset_svm.arrays import Array
from asset_svm.numerics.compiling import njit


@dataclass(eq=False)
class Slopes:
    """The average slope of every row at its visits: a point of the dual (see ``problem``)."""

    total: Array
    visits: Array

    @classmethod
    def zeros(cls, n_models: int, n_rows: int) -> Slopes:
        """The slopes of rows of which none was visited yet."""
        return cls(np.zeros((n_models, n_rows), dtype=np.float32), np.zeros(n_rows, dtype=np.float32))

    def add(self, rows: Array, slopes: Array) -> None:
        """Add one visit of each of these rows."""
        _add_visits(rows, slopes, self.total, self.visits)

    def mean(self, rows: Array) -> Array:
        """Return the (K, len(rows)) averages; NaN where a row was never visited."""
        visits = self.visits[rows]
        seen = np.where(visits > 0, visits, np.nan).astype(np.float64)
        return np.asarray(self.total[:, rows] / seen)


@dataclass(eq=False)
class Progress:
    """Sums over the steps since the last ``take``: what progressive validation reports."""

    steps: int
    loss: Array
    errors: Array
    active: Array

    @classmethod
    def zeros(cls, n_models: int) -> Progress:
        """The sums over no step."""
        return cls(0, np.zeros(n_models), np.zeros(n_models), np.zeros(n_models))

    def __add__(self, other: Progress) -> Progress:
        return Progress(
            self.steps + other.steps,
            self.loss + other.loss,
            self.errors + other.errors,
            self.active + other.active,
        )

    def record(self, lam: Array, coef: Array) -> dict[str, float]:
        """What a history tells of these steps: nothing is computed anew.

        ``coef`` is that of the objective, in the basis of phi.
        """
        steps = max(self.steps, 1)
        regulariser = 0.5 * lam * np.einsum("kd,kd->k", coef, coef)
        return {
            "progressive_loss": float(self.loss.sum()) / steps,
            "progressive_objective": float((self.loss / steps + regulariser).sum()),
            "active": float(self.active.mean()) / steps,
            "sign_errors": float(self.errors.mean()) / steps,
        }


@njit(cache=True, nogil=True)
def _add_visits(rows: Array, slopes: Array, total: Array, visits: Array) -> None:
    """Add one visit of each row, some of which may be there twice, and its slopes."""
    for i in range(rows.shape[0]):
        visits[rows[i]] += np.float32(1)
    for k in range(total.shape[0]):
        for i in range(rows.shape[0]):
            total[k, rows[i]] += np.float32(slopes[k, i])
