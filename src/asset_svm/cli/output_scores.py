"""Scores of predictions of several outputs: those of each, and of all together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from asset_svm.cli.quantiles import QuantileScores
from asset_svm.cli.scores import ClassScores, OutlierScores, RealScores
from asset_svm.data.several_targets import columns_of
from asset_svm.tasks import Outputs

Array = npt.NDArray[Any]


@dataclass(eq=False)
class OutputScores:
    """The scores of a model of several outputs.

    Parameters
    ----------
    names : list of str
        Of the outputs.
    task : Outputs
    """

    names: list[str]
    task: Outputs
    n_rows: int = 0
    wrong: int = 0
    """The rows of which some output has another class than predicted."""

    def __post_init__(self) -> None:
        self.parts: list[ClassScores | RealScores] = [
            RealScores() if self.task.numeric else ClassScores(np.asarray(part.classes))
            for part in self.task.parts
        ]

    def add(self, y: Array, predicted: Array, decisions: Array) -> None:
        """Take a block into account; targets of classes must be known ones."""
        columns = zip(self.parts, columns_of(y), columns_of(predicted), strict=True)
        right = np.ones(len(y), dtype=bool)
        for (scores, own, found), each in zip(columns, self._decisions(decisions), strict=True):
            scores.add(own, found, each)
            right &= own == found
        self.n_rows += len(y)
        self.wrong += int((~right).sum())

    def _decisions(self, decisions: Array) -> list[Array]:
        """The decisions of each output; those of one class say nothing."""
        ends = np.cumsum([part.n_models for part in self.task.parts])[:-1]
        return np.split(decisions, ends, axis=1)

    @property
    def error(self) -> float:
        """The part of the rows of which some output is misclassified."""
        return self.wrong / max(self.n_rows, 1)

    @property
    def lines(self) -> list[list[str]]:
        """The scores, as lines of a name and a value."""
        lines = [["rows", str(self.n_rows)]]
        if not self.task.numeric:
            lines.append(["error of any", f"{100 * self.error:.3f} %"])
        for name, part in zip(self.names, self.parts, strict=True):
            if isinstance(part, ClassScores):
                auc = "" if part.auc is None else f", AUC {part.auc:.5f}"
                lines.append([f"error of {name}", f"{100 * part.error:.3f} %{auc}"])
            else:
                lines.append(
                    [f"R2 of {name}", f"{part.r2:.5f}, RMSE {part.rmse:.6g}, MAE {part.mae:.6g}"]
                )
        return lines


Scores = ClassScores | RealScores | OutputScores | QuantileScores | OutlierScores


def output_names(target: str | None, count: int) -> list[str]:
    """The names of so many outputs: those of their columns, where these are known."""
    names = [] if target is None else target.split(",")
    return names if len(names) == count else [f"output_{number}" for number in range(1, count + 1)]
