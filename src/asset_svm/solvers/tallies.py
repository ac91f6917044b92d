"""What is added up while a run takes its steps: the slopes of rows, and losses for its records."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from asset_svm.arrays import Array
from asset_svm.losses import is_seen, scalar_excess
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

    def count(self, rows: Array) -> None:
        """Count one visit of each of these rows."""
        _count(rows, self.visits)

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


class Notes(NamedTuple):
    """What compiled loops add up as they go, in place.

    Parameters
    ----------
    slopes : float32 array of shape (K, m)
        ``Slopes.total``; without columns where nobody wants it.
    loss, errors, active : arrays of shape (K,)
        Those of ``Progress``; empty where nothing is to be noted.
    finite : bool array of shape (K,)
        Whether every margin was.
    """

    slopes: Array
    loss: Array
    errors: Array
    active: Array
    finite: Array

    @classmethod
    def of(cls, progress: Progress, slopes: Slopes | None) -> Notes:
        """Notes that go into these sums."""
        K = len(progress.loss)
        total = np.empty((K, 0), dtype=np.float32) if slopes is None else slopes.total
        finite = np.ones(K, dtype=np.bool_)
        return cls(total, progress.loss, progress.errors, progress.active, finite)

    @classmethod
    def none(cls) -> Notes:
        """Nothing is noted."""
        nothing = np.empty(0)
        empty = np.empty((0, 0), dtype=np.float32)
        return cls(empty, nothing, nothing, nothing, np.empty(0, dtype=np.bool_))


@njit(cache=True, nogil=True)
def note(
    code: int,
    parameter: float,
    rows: Array,
    target: Array,
    weight: Array,
    margins: Array,
    slopes: Array,
    notes: Notes,
    k: int,
) -> None:
    """Add up what model k saw of some rows."""
    keeps, finite = notes.slopes.shape[1] > 0, True
    loss, errors, active = notes.loss[k], notes.errors[k], notes.active[k]
    for i in range(rows.shape[0]):
        if not is_seen(code, target[i]):
            continue  # it costs nothing, and has no slope
        if keeps:
            notes.slopes[k, rows[i]] += np.float32(slopes[i])
        if weight[i] < 0.0:
            continue
        y, f = target[i], margins[i]
        finite = finite and np.isfinite(f)
        loss += max(scalar_excess(code, parameter, y, f), 0.0)
        errors += 1.0 if y * f <= 0.0 else 0.0
        active += 1.0 if slopes[i] != 0.0 else 0.0
    notes.loss[k], notes.errors[k], notes.active[k] = loss, errors, active
    if not finite:
        notes.finite[k] = False


@njit(cache=True, nogil=True)
def _count(rows: Array, visits: Array) -> None:
    """Add 1 to the visits of each row, some of which may be there twice."""
    for i in range(rows.shape[0]):
        visits[rows[i]] += np.float32(1)
