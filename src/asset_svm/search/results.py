"""What a search found, candidate by candidate, and in the words of GridSearchCV."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from asset_svm.arrays import Array
from asset_svm.search.grid import Grid
from asset_svm.search.lines import Path


@dataclass(frozen=True, eq=False)
class Line:
    """The models of one gamma and one epsilon.

    ``scores`` is (Cs, splits); ``round_number`` that of the race, ``n_rows`` what it ran on.
    """

    scores: Array
    round_number: int
    n_rows: int
    fit_seconds: float
    score_seconds: float
    path: Path | None = None


@dataclass(eq=False)
class Table:
    """The lines found so far, by the numbers of gamma and epsilon.

    ``late`` where the time was up before all were tried, or before one of them was finished.
    """

    grid: Grid
    n_splits: int
    lines: dict[tuple[int, int], Line] = field(default_factory=dict)
    late: bool = False

    def add_gamma(self, gamma: float) -> int:
        """Make place for a gamma below or above all others, and return its number."""
        gammas = self.grid.gammas
        assert gammas is not None and not gammas[0] <= gamma <= gammas[-1]
        first = int(gamma < gammas[0])
        self.lines = {(number + first, epsilon): line for (number, epsilon), line in self.lines.items()}
        self.grid = replace(self.grid, gammas=(gamma, *gammas) if first else (*gammas, gamma))
        return 0 if first else len(gammas)

    def top(self, gamma: int) -> float:
        """The best mean score of a gamma, by its number; -inf where it has none."""
        lines = [line for (number, _), line in self.lines.items() if number == gamma]
        means = np.concatenate([[-np.inf], *(line.scores.mean(axis=1) for line in lines)])
        return float(np.max(np.where(np.isnan(means), -np.inf, means)))

    def end(self, numbers: list[int]) -> int | None:
        """The first or last gamma, where it is the best of those with these numbers; else None.

        Scores that do not change from there to its neighbour point nowhere.
        """
        best, last = max(numbers, key=self.top), len(self.grid.gammas or (0,)) - 1
        if best not in (0, last) or last == 0 or self.top(best) == -np.inf:
            return None
        beside = 1 if best == 0 else last - 1
        return None if beside in numbers and self.top(best) == self.top(beside) else best

    def edges(self) -> dict[str, str]:
        """The parameters whose best value is the "smallest" or "largest" of those to try, and which.

        Not where fewer than three have a score, where the value beside it does as well, nor at 0.
        """
        grid, found = self.grid, {}
        named = {"gamma": grid.gammas, "epsilon": grid.epsilons, "C": tuple(grid.Cs.tolist())}
        axes = [(name, values or (0.0,)) for name, values in named.items()]
        shape = [len(values) for _, values in axes]
        means, rounds = self.means().reshape(shape), self.rounds().reshape(shape)
        best = tuple(int(place) for place in np.unravel_index(self.best_index(), shape))
        for axis, (name, values) in enumerate(axes):
            place, last = best[axis], len(values) - 1
            others = tuple(other for other in range(len(axes)) if other != axis)
            scored = int(np.isfinite(means).any(axis=others).sum())
            if scored < 3 or place not in (0, last) or values[place] == 0.0:
                continue
            beside = (*best[:axis], 1 if place == 0 else last - 1, *best[axis + 1 :])
            if rounds[beside] < rounds[best] or means[beside] < means[best]:
                found[name] = "smallest" if place == 0 else "largest"
        return found

    def means(self) -> Array:
        """The mean score of every candidate; NaN where it has none."""
        return self._each(lambda line: line.scores.mean(axis=1))

    def deviations(self) -> Array:
        """The standard deviation of the scores of every candidate over the splits."""
        return self._each(lambda line: line.scores.std(axis=1))

    def rounds(self) -> Array:
        """The round that each candidate reached, -1 where it never ran."""
        found = self._each(lambda line: np.full(len(self.grid.Cs), float(line.round_number)))
        return np.where(np.isnan(found), -1, found).astype(int)

    def params(self) -> list[dict[str, Any]]:
        """The parameters of all candidates."""
        return [params for line in self.grid.maps for params in self.grid.params(line)]

    def ranks(self) -> Array:
        """The ranks, 1 for the best; candidates of a later round come before all others."""
        mean, reached = self.means(), self.rounds()
        value = np.where(np.isnan(mean), -np.inf, mean)
        reached = np.where(np.isnan(mean), -2, reached)
        keys = sorted(set(zip(-reached, -value, strict=True)))
        first, rank = {}, 1
        pairs = list(zip(-reached, -value, strict=True))
        for key in keys:
            first[key] = rank
            rank += pairs.count(key)
        return np.array([first[pair] for pair in pairs], dtype=np.int32)

    def best_index(self) -> int:
        """The first candidate of rank 1."""
        return int(np.argmin(self.ranks()))

    def best_line(self) -> tuple[int, int]:
        """The numbers of the gamma and the epsilon of the best candidate."""
        return self.grid.maps[self.best_index() // len(self.grid.Cs)]

    def best_gammas(self, numbers: list[int], count: int) -> list[int]:
        """The ``count`` of these gammas whose best candidates have the highest scores."""
        return sorted(sorted(numbers, key=lambda gamma: -self.top(gamma))[:count])

    def cv_results(self) -> dict[str, Any]:
        """All results as GridSearchCV has them, with ``n_resources`` (rows) and ``iter`` (rounds).

        Models of one line train together: each is given an equal share of the time.
        """
        params = self.params()
        models = len(self.grid.Cs) * self.n_splits

        def seconds(name: str) -> Array:
            return self._each(lambda line: np.full(len(self.grid.Cs), getattr(line, name) / models))

        out: dict[str, Any] = {
            "mean_fit_time": seconds("fit_seconds"),
            "std_fit_time": 0.0 * seconds("fit_seconds"),
            "mean_score_time": seconds("score_seconds"),
            "std_score_time": 0.0 * seconds("score_seconds"),
        }
        for name in params[0]:
            values = np.array([candidate[name] for candidate in params])
            out[f"param_{name}"] = np.ma.MaskedArray(values, mask=np.zeros(len(values), dtype=bool))
        out["params"] = params
        for number in range(self.n_splits):

            def of_split(line: Line, number: int = number) -> Array:
                return np.asarray(line.scores[:, number])

            out[f"split{number}_test_score"] = self._each(of_split)
        out["mean_test_score"] = self.means()
        out["std_test_score"] = self.deviations()
        out["rank_test_score"] = self.ranks()
        rows = self._each(lambda line: np.full(len(self.grid.Cs), float(line.n_rows)))
        out["n_resources"] = np.where(np.isnan(rows), 0, rows).astype(int)
        out["iter"] = self.rounds()
        return out

    def _each(self, values: Callable[[Line], Array]) -> Array:
        """What each line says of its candidates, in their order; NaN for lines not found yet."""
        nothing = np.full(len(self.grid.Cs), np.nan)
        parts = []
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # scores of NaN
            for key in self.grid.maps:
                line = self.lines.get(key)
                parts.append(nothing if line is None else np.asarray(values(line)))
        return np.concatenate(parts)
