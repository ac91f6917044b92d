"""The values that a search tries: from Cs, gammas and epsilons to arrays of numbers."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import scipy.sparse as sp

from asset_svm.arrays import Array
from asset_svm.backends.device import on_host
from asset_svm.kernels import Formula
from asset_svm.settings.checks import check_choice, is_integer

C_RANGE = (-2.0, 4.0)
"""A number of Cs is spread between these powers of 10."""
AUTO_FACTORS = (0.0625, 0.25, 1.0, 4.0, 16.0, 64.0)
"""gammas="auto" tries these multiples of the median heuristic, or their roots: the same lengths."""
MOST_BEYOND = 4
"""gammas="auto" tries at most so many beyond the ends, where the best is one of them."""
MEDIAN_ROWS = 500
"""The median is that of the distances between so many rows."""


@dataclass(frozen=True, eq=False)
class Grid:
    """The candidates of a search: gammas x epsilons x Cs, C fastest; None where not searched."""

    Cs: Array
    gammas: tuple[float, ...] | None
    epsilons: tuple[float, ...] | None

    @property
    def maps(self) -> list[tuple[int, int]]:
        """The numbers (of gamma, of epsilon) of each line of Cs."""
        return list(product(range(len(self.gammas or (0,))), range(len(self.epsilons or (0,)))))

    def beyond(self, *, above: bool) -> float:
        """The gamma next to the last, or to the first, at the distance that neighbours have."""
        assert self.gammas is not None
        (first, second), (before, last) = self.gammas[:2], self.gammas[-2:]
        return last * (last / before) if above else first * (first / second)

    def params(self, line: tuple[int, int]) -> list[dict[str, Any]]:
        """The parameters of the candidates on a line."""
        shared: dict[str, Any] = {}
        if self.gammas is not None:
            shared["gamma"] = self.gammas[line[0]]
        if self.epsilons is not None:
            shared["epsilon"] = self.epsilons[line[1]]
        return [{"C": float(C), **shared} for C in self.Cs]


def resolve_costs(Cs: Any, unit: float = 1.0) -> Array:
    """The values of C to try, ascending: so many from 0.01 to 10000 times a unit, or those given."""
    if is_integer(Cs):
        if Cs < 1:
            raise ValueError(f"Cs={Cs!r} asks for no value of C; set Cs to an integer of at least 1.")
        return unit * (np.logspace(*C_RANGE, int(Cs)) if Cs > 1 else np.ones(1))
    return _values("Cs", Cs, "an integer or a list of numbers above 0")


def target_unit(y: Array) -> float:
    """The power of 10 nearest to the spread of the targets of a regression, the unit of C.

    The spread is 1.4826 times the median distance to the median: the standard deviation of normal
    targets, and little moved by outliers. Where half of the targets are alike, the mean distance. Of
    several outputs the unit is the geometric mean of theirs.
    """
    if y.ndim == 2:
        return 10.0 ** round(float(np.mean([np.log10(target_unit(own)) for own in y.T])))
    away = np.abs(np.asarray(y, dtype=np.float64) - np.median(y))
    spread = 1.4826 * float(np.median(away)) or float(away.mean())
    return 10.0 ** round(np.log10(spread)) if 0.0 < spread < np.inf else 1.0


def resolve_gammas(
    gammas: Any, X: Any, rng: np.random.Generator, formula: type[Formula] = Formula
) -> tuple[float, ...] | None:
    """The values of gamma of a formula to try, ascending; None where it is not searched."""
    if gammas is None:
        return None
    if isinstance(gammas, str):
        check_choice("gammas", gammas, ("auto",))
        middle = formula.gamma_of(median_square(X, rng))
        # Gammas of squared lengths 1/4, 1/16, ... of the median: factors, or their roots.
        return tuple(middle * formula.gamma_of(1.0 / factor) for factor in AUTO_FACTORS)
    return tuple(_values("gammas", gammas, '"auto", None or a list of numbers above 0').tolist())


def resolve_epsilons(epsilons: Any) -> tuple[float, ...] | None:
    """The values of epsilon to try, ascending; None where it is not searched."""
    if epsilons is None:
        return None
    found = _values("epsilons", epsilons, "None or a list of numbers of at least 0", zero=True)
    return tuple(found.tolist())


def median_square(X: Any, rng: np.random.Generator) -> float:
    """The median squared distance between two rows; 1 where there is none but 0."""
    chosen = np.sort(rng.choice(X.shape[0], size=min(MEDIAN_ROWS, X.shape[0]), replace=False))
    rows = on_host(X[chosen])
    rows = (rows.toarray() if sp.issparse(rows) else np.asarray(rows)).astype(np.float64)
    square = np.einsum("ij,ij->i", rows, rows)
    distance = square[:, None] + square[None, :] - 2.0 * rows @ rows.T
    upper = distance[np.triu_indices(len(rows), 1)]
    upper = upper[upper > 1e-12 * max(float(square.max()), 1e-300)]
    return float(np.median(upper)) if len(upper) else 1.0


def _values(name: str, given: Any, what: str, *, zero: bool = False) -> Array:
    try:
        values = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        values = np.empty(0)
    good = values.ndim == 1 and len(values) > 0 and bool(np.isfinite(values).all())
    if not good or values.min() < 0.0 or (values.min() == 0.0 and not zero):
        raise ValueError(f"{name}={given!r} is not {what}; give for example {name}=[0.1, 1.0, 10.0].")
    if len(np.unique(values)) < len(values):
        raise ValueError(f"{name}={given!r} has a value twice; give each once.")
    return np.sort(values)
