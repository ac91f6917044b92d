"""Averages of the iterates over a window that ends now, kept as sums over segments.

A window says where segments must end (``next_boundary``) and how far back the average at step t
reaches (``start``). The driver stops the loop at each boundary; ``Average`` closes the segment there
and drops those that no later average can reach.

- ``FractionWindow(r, total)``: the last r of the steps. Boundaries are geometric, so that at any t
  the average covers between r/2 and r of what was run; when ``total`` is known, exactly the last r
  of it at its end. Two or three segments are alive at a time.
- ``CountWindow(k, total)``: exactly the last k, at ``total`` and at the ends the driver announces
  (k or more steps apart). ``every_step`` keeps the last k iterates singly, for streams where the
  next end is not known.
- ``NoWindow``: the last iterate.

Steps here are counted over the whole run, 0 before the first.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from asset_svm.arrays import Array
from asset_svm.solvers.state import SolverState

NEVER = np.iinfo(np.int64).max


class Window(ABC):
    """The steps that an average covers."""

    @abstractmethod
    def next_boundary(self, opened: int, step: int, end: int) -> int:
        """Where the segment opened at ``opened`` must end; ``end`` is the announced stop."""

    @abstractmethod
    def start(self, step: int) -> int:
        """The average at ``step`` covers the segments that begin here or later."""

    def counts(self, opened: int) -> bool:
        """Whether the segment opened at ``opened`` can be part of an average; always, by default."""
        return True


@dataclass(frozen=True)
class FractionWindow(Window):
    """A window of the last ``fraction`` of the steps."""

    fraction: float
    total: int | None = None

    def next_boundary(self, opened: int, step: int, end: int) -> int:
        """The next of the geometric sequence, or the exact start for the known end.

        Consecutive boundaries have the ratio (1 - r/2) / (1 - r), so that at every t one of them
        lies in [t (1 - r), t (1 - r/2)].
        """
        keep = 1.0 - self.fraction
        grown = opened * (1.0 - self.fraction / 2) / keep if keep > 0.0 else np.inf
        boundary = NEVER if grown > 1e18 else max(opened + 1, int(grown))
        if self.total is not None and opened < self.start(self.total):
            boundary = min(boundary, self.start(self.total))
        return boundary

    def start(self, step: int) -> int:
        """The window begins at step - r step."""
        return step - round(self.fraction * step)


@dataclass(frozen=True)
class FinalWindow(Window):
    """The last ``fraction`` of ``total`` steps, for a run that nobody looks at before its end."""

    fraction: float
    total: int

    @property
    def first(self) -> int:
        """The number of steps before the window."""
        return self.total - round(self.fraction * self.total)

    def next_boundary(self, opened: int, step: int, end: int) -> int:
        """The only boundary is where the window begins."""
        return self.first if opened < self.first else NEVER

    def start(self, step: int) -> int:
        """The window begins at ``first``."""
        return min(self.first, step)

    def counts(self, opened: int) -> bool:
        """Segments count from ``first`` on."""
        return opened >= self.first


@dataclass(frozen=True)
class CountWindow(Window):
    """A window of exactly the last ``count`` steps."""

    count: int
    total: int | None = None
    every_step: bool = False

    def next_boundary(self, opened: int, step: int, end: int) -> int:
        """``count`` steps before an end; from then on every step, if asked."""
        ends = (end,) if self.total is None else (end, self.total)
        begins = [stop - self.count for stop in ends]
        ahead = [begin for begin in begins if opened < begin and step <= begin]
        if ahead:
            return min(ahead)
        return max(opened + 1, step) if self.every_step else NEVER

    def start(self, step: int) -> int:
        """The window begins at step - count."""
        return max(step - self.count, 0)


@dataclass(frozen=True)
class NoWindow(Window):
    """No window: the average is the last iterate."""

    def next_boundary(self, opened: int, step: int, end: int) -> int:
        """There is no boundary."""
        return NEVER

    def start(self, step: int) -> int:
        """Nothing is averaged."""
        return step

    def counts(self, opened: int) -> bool:
        """No segment counts."""
        return False


@dataclass(eq=False)
class Segment:
    """The sums over the steps begin + 1, ..., end."""

    begin: int
    end: int
    total: Array
    weight: Array
    intercept_total: Array


@dataclass(eq=False)
class Average:
    """The segments of a run's average, oldest first; the open one is in the ``SolverState``."""

    window: Window
    step: int = 0
    opened: int = 0
    segments: list[Segment] = field(default_factory=list)

    @property
    def averages(self) -> bool:
        """Whether the loop has to keep sums now."""
        return self.window.counts(self.opened)

    def steps_to_boundary(self, steps_to_end: int) -> int:
        """How many steps may be taken before ``close_segment`` is due."""
        end = self.step + steps_to_end
        return self.window.next_boundary(self.opened, self.step, end) - self.step

    def close_segment(self, state: SolverState) -> None:
        """End the open segment here and begin the next."""
        state.fold()
        self.segments.append(
            Segment(
                self.opened,
                self.step,
                state.total.copy(),
                state.weight.copy(),
                state.intercept_total.copy(),
            )
        )
        state.clear_segment()
        self.opened = self.step
        reach = self.window.start(self.step)
        self.segments = [segment for segment in self.segments if segment.end > reach]

    def change_basis(self, change: Callable[[Array], Array]) -> None:
        """Put the closed segments into another basis of feature space."""
        for segment in self.segments:
            segment.total = change(segment.total)

    def result(self, state: SolverState) -> tuple[Array, Array]:
        """The averaged (K, d) coef and (K,) intercept at this step; changes nothing."""
        start = self.window.start(self.step)
        chosen = [segment for segment in self.segments if segment.begin >= start]
        weight = sum((s.weight for s in chosen), state.weight)
        if not self.averages or not np.all(weight > 0.0):
            return state.coef, state.intercept.copy()
        total = sum((s.total for s in chosen), state.segment_total())
        intercept = sum((s.intercept_total for s in chosen), state.intercept_total)
        return np.asarray(total / weight[:, None]), np.asarray(intercept / weight)
