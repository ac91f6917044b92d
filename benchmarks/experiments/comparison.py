"""A table of everybody: a row a solver, a column a data set, in a cell the error and the CPU time.

A solver that was stopped at its limit says so in its cell; one that was not run at all is a row
without numbers that says why.
"""

from __future__ import annotations

from collections.abc import Sequence

from asset_svm.pages import Cell, Value
from experiments.base import PAPER_SETS, Record, seconds_shown, select, select_stopped, shown, values
from solvers import SOLVERS


def rows_of(
    records: Sequence[Record], solvers: Sequence[str], s: int, elsewhere: str
) -> list[list[Value]]:
    """The rows, from the records of one experiment; ``elsewhere``: where one not run here is run."""
    return [_row(records, solver, s, elsewhere) for solver in solvers]


def _row(records: Sequence[Record], solver: str, s: int, elsewhere: str) -> list[Value]:
    settings = {} if SOLVERS[solver].exact else dict(s=s)
    cells = [_cell(records, solver, dataset, settings) for dataset in PAPER_SETS]
    # What ran is what the records say: a page may be written where the solver is no longer there.
    software = next((r["software"] for r in records if r["solver"] == solver), None)
    if any(cells):
        return [Cell(solver, software or ""), *cells]
    reason = "not installed" if SOLVERS[solver].version() is None else elsewhere
    return [Cell(solver, reason, "quiet"), *cells]


def _cell(
    records: Sequence[Record], solver: str, dataset: str, settings: dict[str, int]
) -> Cell | None:
    ended = select(records, dataset=dataset, solver=solver, **settings)
    stopped = select_stopped(records, dataset=dataset, solver=solver, **settings)
    patience = f"within {max((r['result']['stopped'] for r in stopped), default=0):g} s"
    if ended:
        times = seconds_shown(values(ended, "seconds"))
        others = f"; {len(stopped)} more did not end {patience}" if stopped else ""
        return Cell(f"{shown(values(ended, 'error'))} %", times + others)
    return Cell("did not end", patience, "quiet") if stopped else None
