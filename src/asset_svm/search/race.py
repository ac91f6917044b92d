"""The race of the gammas: successive halving by the number of rows.

All of them are searched on a part of the rows, the better third again on three times as many, and so
on, until one or two are left for all rows. Where there are few gammas, or few rows, there is no race.
"""

from __future__ import annotations

from dataclasses import dataclass

FACTOR = 3
FINALISTS = 2
"""Where there is a race, no more gammas than these are searched on all rows."""
FEWEST_ROWS = 3000
"""The first round has no fewer rows: a smaller sample tells little of gamma."""


@dataclass(frozen=True)
class Round:
    """A round of the race: ``count`` gammas on a ``share`` of the rows."""

    count: int
    share: float


def rounds(n_gammas: int, n_rows: int) -> list[Round]:
    """The rounds of a race, first to last."""
    counts = [n_gammas]
    while counts[-1] > FINALISTS and n_rows >= FEWEST_ROWS * FACTOR ** len(counts):
        counts.append(-(-counts[-1] // FACTOR))
    last = len(counts) - 1
    return [Round(count, FACTOR ** (number - last)) for number, count in enumerate(counts)]
