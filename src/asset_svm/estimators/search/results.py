"""What a search found, candidate by candidate, and in the words of GridSearchCV."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from asset_svm.estimators.search.grid import Grid


@dataclass(frozen=True, eq=False)
class Line:
    """The models of one gamma and one epsilon.

    ``scores`` is (Cs, splits); ``round_number`` that of the race, ``n_rows`` what it ran on.
    """

    scores: np.ndarray
    round_number: int
    n_rows: int
    fit_seconds: float
    score_seconds: float
    path: Any = None


@dataclass(eq=False)
class Table:
    """The lines found so far, by the numbers of gamma and epsilon.

    ``late`` where the time was up before all were tried, or before one of them was finished.
    """

    grid: Grid
    n_splits: int
    lines: dict[tuple[int, int], Line] = field(default_factory=dict)
    late: bool = False

    def means(self) -> np.ndarray:
        """Mean score of every candidate; NaN where it has none."""
        return self._each(lambda line: line.scores.mean(axis=1))

    def deviations(self) -> np.ndarray:
        """Standard deviation of the scores of every candidate over the splits."""
        return self._each(lambda line: line.scores.std(axis=1))

    def rounds(self) -> np.ndarray:
        """The round that each candidate reached, -1 where it never ran."""
        found = self._each(lambda line: np.full(len(self.grid.Cs), float(line.round_number)))
        return np.where(np.isnan(found), -1, found).astype(int)

    def params(self) -> list[dict[str, Any]]:
        """The candidates."""
        return [params for line in self.grid.maps for params in self.grid.params(line)]

    def ranks(self) -> np.ndarray:
        """1 for the best: candidates of a later round come before those of an earlier one."""
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
        """The numbers of its gamma and its epsilon."""
        return self.grid.maps[self.best_index() // len(self.grid.Cs)]

    def best_gammas(self, numbers: list[int], count: int) -> list[int]:
        """So many of these gammas: those whose best candidates have the highest scores."""
        top: dict[int, float] = {}
        for (gamma, _), line in self.lines.items():
            means = line.scores.mean(axis=1)
            best = float(np.max(np.where(np.isnan(means), -np.inf, means)))
            top[gamma] = max(top.get(gamma, -np.inf), best)
        ordered = sorted(numbers, key=lambda gamma: -top.get(gamma, -np.inf))
        return sorted(ordered[:count])

    def cv_results(self) -> dict[str, Any]:
        """As in GridSearchCV, with ``n_resources`` (rows) and ``iter`` (round) as in the halving ones.

        Models of one line train together: each is given an equal share of the time.
        """
        params = self.params()
        models = len(self.grid.Cs) * self.n_splits

        def seconds(name: str) -> np.ndarray:
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
            out[f"split{number}_test_score"] = self._each(lambda line, n=number: line.scores[:, n])
        out["mean_test_score"] = self.means()
        out["std_test_score"] = self.deviations()
        out["rank_test_score"] = self.ranks()
        rows = self._each(lambda line: np.full(len(self.grid.Cs), float(line.n_rows)))
        out["n_resources"] = np.where(np.isnan(rows), 0, rows).astype(int)
        out["iter"] = self.rounds()
        return out

    def _each(self, values: Any) -> np.ndarray:
        nothing = np.full(len(self.grid.Cs), np.nan)
        parts = []
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # scores of NaN
            for key in self.grid.maps:
                line = self.lines.get(key)
                parts.append(nothing if line is None else np.asarray(values(line)))
        return np.concatenate(parts)
