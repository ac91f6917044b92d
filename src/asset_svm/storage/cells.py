"""Records of cells that are solved, for a run that may be cut."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from asset_svm.arrays import Array
from asset_svm.storage.fields import Fields


@dataclass(frozen=True, eq=False)
class SolvedCell:
    """A cell that need not be solved again.

    Parameters
    ----------
    partition, number : int
        Which one it is.
    weight : float
        Of all its rows.
    support : matrix or None
        The rows that its decisions are sums over; None where they are ``intercept`` everywhere.
    weights : array of shape (K, rows) or None
    intercept : array of shape (K,)
    some, targets
        A few of its rows, where they decide nothing.
    objective, dual_gap : float
    sweeps : int
    converged, definite : bool
    """

    partition: int
    number: int
    weight: float
    support: Any
    weights: Array | None
    intercept: Array
    some: Any
    targets: Array | None
    objective: float
    dual_gap: float
    sweeps: int
    converged: bool
    definite: bool


def solved_cell(f: Fields, n: int) -> SolvedCell:
    """The cell with rows of n columns."""
    intercept = f.array("intercept", (None,))
    support, some = f.maybe(f.rows, "support", n), f.maybe(f.rows, "some", n)
    count = 0 if support is None else support.shape[0]
    return SolvedCell(
        f.integer("partition"),
        f.integer("number"),
        f.number("weight", 0.0),
        support,
        f.maybe(f.array, "weights", (len(intercept), count)),
        intercept,
        some,
        f.maybe(f.targets, "targets", 0 if some is None else some.shape[0]),
        f.number("objective", finite=False),
        f.number("dual_gap", finite=False),
        f.integer("sweeps"),
        f.flag("converged"),
        f.flag("definite"),
    )
