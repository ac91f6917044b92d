"""How many epochs a fit has where nobody says."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Epochs:
    """So many epochs, more where rows are so few that they would not make that many steps.

    Parameters
    ----------
    least : int
    steps : int
    """

    least: int
    steps: int

    def over(self, m: int, asked: int | None = None) -> int:
        """The epochs over m rows: those asked for, where somebody does."""
        return int(asked or max(self.least, -(-self.steps // m)))
