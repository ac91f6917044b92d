"""When a run stops."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from asset_svm.arrays import Array

AfterEpoch = Callable[[int, tuple[Array, Array], dict[str, Any]], bool]
"""Called with (epoch, model, record) after an epoch; True asks to stop."""


FIRST_STAGE = 3
"""Epochs before the first of the looks that tell whether a run is flat."""


class Keep(Protocol):
    """Whoever saves a run between its epochs."""

    def __call__(self, snapshot: Callable[[], Any], *, stopped: bool) -> None:
        """Save what ``snapshot`` returns, if it is time to, or if the run was asked to stop."""


@dataclass(frozen=True)
class Look:
    """What is seen of a run at the end of a stage, on a sample of its rows.

    Parameters
    ----------
    epoch : int
    objective : float
    errors : float
        The part of the targets on whose other side decisions are.
    """

    epoch: int
    objective: float
    errors: float


@dataclass(frozen=True)
class Stopping:
    """When a run stops, and who looks at it between epochs.

    Parameters
    ----------
    epochs : int
        The run has at most so many.
    tol : float or None
        Stop when gap / objective is below it; checked after 1, 2, 4, 8, ... epochs.
    deadline : float
        The moment by ``clock.now`` after which it ends.
    flat : float or None
        Stop when what all epochs that are left would gain, by what those so far have, is a smaller
        part of the objective, and of the errors; looked at after 3, 9, 27, ... epochs.
    least_steps : int
        No run ends by ``flat`` before so many.
    chosen : callable, optional
        Gives the model to return instead of the last one, or None.
    early : bool
        Whether ``after_epoch`` is there to stop the run.
    watched : bool
        Whether ``after_epoch`` looks at the model.
    keep : Keep, optional
        Saves the run between epochs.
    """

    epochs: int
    tol: float | None = None
    deadline: float = float("inf")
    flat: float | None = None
    least_steps: int = 0
    after_epoch: AfterEpoch | None = None
    chosen: Callable[[], tuple[Array, Array] | None] | None = None
    early: bool = False
    watched: bool = False
    keep: Keep | None = None

    @property
    def looked_at(self) -> bool:
        """Whether the model is of interest before the end of the run."""
        return self.watched or self.early or not self.end_is_known or self.tol is not None

    @property
    def end_is_known(self) -> bool:
        """Whether the run, or a stage of it, ends when planned: steps can decay to 0 then."""
        return self.deadline == float("inf") and not self.early

    def stage(self, done: int) -> int:
        """The epochs of the next stage.

        All, or, to be checked by ``tol``, as many as are done; by ``flat``, twice as many, after 3.
        """
        left = self.epochs - done
        if self.tol is not None:
            return min(max(done, 1), left)
        return left if self.flat is None else min(max(2 * done, FIRST_STAGE), left)

    def is_flat(self, before: Look, now: Look, n_rows: int) -> bool:
        """Whether what is left to gain is little, by the last look and this one.

        What a stage that ends with t epochs leaves, of the objective and of errors, is about a / t:
        two looks tell a. Where the objective has risen nothing is known.
        """
        t, u = before.epoch, now.epoch
        if self.flat is None or u * n_rows < self.least_steps or now.objective > before.objective:
            return False
        rest = (1 / u - 1 / self.epochs) / (1 / t - 1 / u)
        gains = before.objective - now.objective, before.errors - now.errors
        return all(
            rest * gain <= self.flat * left
            for gain, left in zip(gains, (now.objective, now.errors), strict=True)
        )
