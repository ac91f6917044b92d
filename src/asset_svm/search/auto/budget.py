"""What a race may spend: seconds of the clock, or work that is counted without looking at one.

Work is in nominal seconds, a guess from the numbers of rows, columns and models that is the same on
every machine, so that a race without a time limit is the same whenever it is run. With a limit, what
such a second takes here is measured on the way, kind of work by kind.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from asset_svm import clock
from asset_svm.search.journal import Journal

DOUBT, MOST_DOUBT = 0.02, 1.0
"""Seconds that count as having taken what they were guessed to, of those in all, and at most: little
work tells little of more."""


@dataclass(eq=False)
class Budget:
    """What is left to spend.

    Parameters
    ----------
    total : float
        Seconds in all: nominal ones, or of the clock.
    begun : float, optional
        The moment of ``clock.now`` from which on the clock counts; None: work is counted.
    journal : Journal, optional
        What knows how the clock was read before, in a race that goes on.
    """

    total: float
    begun: float | None = None
    spent: float = 0.0
    work: dict[str, tuple[float, float]] = field(default_factory=dict)
    """Of each kind of work, how much was done, and what it took."""
    stopped: bool = False
    journal: Journal | None = None

    @property
    def used(self) -> float:
        """The seconds that are spent."""
        if self.begun is None:
            return self.spent
        seconds = clock.now() - self.begun
        return seconds if self.journal is None else self.journal.clocked(seconds)

    @property
    def left(self) -> float:
        """The seconds that are left; none after Ctrl-C, or when somebody asked to stop.

        Looks that were made before are gone through first, as they were made.
        """
        again = self.journal is not None and bool(self.journal.looks)
        return 0.0 if self.stopped and not again else self.total - self.used

    def seconds(self, kind: str, nominal: float) -> float:
        """What such work will take."""
        if self.begun is None:
            return nominal
        done, took = self.work.get(kind, (0.0, 0.0))
        doubt = min(DOUBT * self.total, MOST_DOUBT)
        return nominal * (took + doubt) / (done + doubt)

    def add(self, nominal: float) -> None:
        """Count work that was done and not foreseen; what the clock counts is known."""
        self.spent += max(nominal, 0.0)

    @contextmanager
    def within(self, outer: str, kind: str, nominal: float) -> Iterator[None]:
        """Work of this kind is done inside of work of another, whose time it is not."""
        begun = clock.now()
        with self.spending(kind, nominal):
            yield
        done, took = self.work.get(outer, (0.0, 0.0))
        self.work[outer] = done, took - (clock.now() - begun)

    @contextmanager
    def spending(self, kind: str, nominal: float) -> Iterator[None]:
        """Work of this kind and size is done inside."""
        begun = clock.now()
        try:
            yield
        finally:  # work that fails has taken its time too
            self.spent += nominal
            done, took = self.work.get(kind, (0.0, 0.0))
            self.work[kind] = done + nominal, took + clock.now() - begun
