"""Quantiles on the command line: their scores, a block at a time, and what a page shows of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from asset_svm.losses import Pinball
from asset_svm.pages import Line, Part, Table, Value, line_chart

Array = npt.NDArray[Any]


@dataclass(eq=False)
class QuantileScores:
    """The scores of a model of quantiles.

    Parameters
    ----------
    quantiles : tuple of float
    """

    quantiles: tuple[float, ...]
    n_rows: int = 0
    losses: Array = field(init=False)
    """The sum of the pinball losses of each quantile."""
    below: Array = field(init=False)
    """The number of rows at or below each quantile."""

    def __post_init__(self) -> None:
        self.losses, self.below = (np.zeros(len(self.quantiles)) for _ in range(2))

    def add(self, y: Array, predicted: Array, decisions: Array) -> None:
        """Take a block into account; its predictions have a column a quantile, or one axis."""
        found = predicted.reshape(len(y), -1).T
        y = np.broadcast_to(np.asarray(y, dtype=np.float64), found.shape)
        self.losses += Pinball(self.quantiles).value(y, found).sum(axis=1)
        self.below += (y <= found).sum(axis=1)
        self.n_rows += y.shape[1]

    @property
    def pinball(self) -> Array:
        """The mean pinball loss of each quantile."""
        return np.asarray(self.losses / max(self.n_rows, 1))

    @property
    def coverage(self) -> Array:
        """The part of the rows at or below each quantile."""
        return np.asarray(self.below / max(self.n_rows, 1))

    @property
    def lines(self) -> list[list[str]]:
        """The scores, as lines of a name and a value."""
        return [
            ["rows", str(self.n_rows)],
            ["mean pinball loss", f"{self.pinball.mean():.6g}"],
            *(
                [f"rows at or below {name}", f"{100 * share:.2f} %"]
                for name, share in zip(column_names(self.quantiles), self.coverage, strict=True)
            ),
        ]

    @property
    def parts(self) -> list[Part]:
        """What a page shows: the loss and coverage of each quantile, and a chart of the latter."""
        numbers = zip(self.quantiles, self.pinball, self.coverage, strict=True)
        rows: list[list[Value]] = [
            [f"{q:g}", f"{loss:.6g}", f"{100 * share:.2f} %"] for q, loss, share in numbers
        ]
        table = Table(["quantile", "pinball loss", "rows at or below it"], rows)
        lines = [
            Line("model", self.quantiles, self.coverage),
            Line("as it should be", [0, 1], [0, 1], dashed=True),
        ]
        caption = "The part of the rows at or below each quantile."
        return [table, line_chart(lines, "quantile", "part", title="Coverage", caption=caption)]


def column_names(quantiles: tuple[float, ...]) -> list[str]:
    """The name of the column of each quantile: q0.1, q0.5, ..."""
    return [f"q{q:g}" for q in quantiles]
