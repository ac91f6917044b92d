"""Which larger models like a candidate there are."""

from __future__ import annotations

from typing import Any

from asset_svm.search.auto.guesses import Guesses
from asset_svm.search.auto.shapes import WHOLE_ROWS, Candidate
from asset_svm.settings.solving import CELL_ROWS


def larger_sizes(guesses: Guesses, candidate: Candidate) -> tuple[int, ...]:
    """The larger models like a candidate; cells of few rows are one already, as are few columns.

    What is fixed may leave nothing larger.
    """
    shape, n_rows = candidate.shape, guesses.n_rows
    usual = guesses.family(candidate.changed(size=0), n_rows)
    if shape.cells:
        if n_rows <= 1.5 * CELL_ROWS:
            return ()
        sizes: tuple[int, ...] = (1, 2) if n_rows <= WHOLE_ROWS else (1, 3, 4)
    else:
        most = n_rows if shape.has_gamma else guesses.width(candidate)
        sizes = (1,) if usual["n_components"] < most else ()
    found: dict[int, dict[str, Any]] = {}
    for size in sorted(sizes, key=lambda size: size != 2):  # what is one cell is called so
        larger = guesses.family(candidate.changed(size=size), n_rows)
        if larger not in (usual, *found.values()):
            found[size] = larger
    return tuple(sorted(found))
