"""A search in heats: parts of it that machines search apart, and what all of them have found.

    of a race   a heat for each kernel and relevance, on few rows; the best third go on with all of them
    of a grid   a heat for each gamma, with all Cs, epsilons and folds

A heat is a search of its own over what the others leave out, with ``refit=False``. What comes of it
does not depend on where or when it runs, so that neither does what comes of all.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from asset_svm import clock
from asset_svm.arrays import Array
from asset_svm.encoding.table import Table
from asset_svm.estimators.inside import checked_rows, settings_of, task_of
from asset_svm.exceptions import NonFiniteError
from asset_svm.kernels import formula_type
from asset_svm.search.all_rows import FarRows
from asset_svm.search.auto.race import FEW
from asset_svm.search.auto.search import KERNELS, MOST_DIRECTIONS, RELEVANCES
from asset_svm.search.auto.shapes import is_absolute
from asset_svm.search.base import SearchEstimator
from asset_svm.search.grid import AUTO_FACTORS, MOST_BEYOND, resolve_gammas
from asset_svm.search.inside import gammas_of, leaderboard, learner_of, races, search_watched

Heat = dict[str, Any]
"""The parameters of a search that a heat fixes."""
GOING_ON = 3
"""One heat in so many of a race goes on with all rows that are looked at."""
FIRST_ROWS = 2 * FEW
"""Rows of the first heats of a race: of these, half learn in its first stages, or more."""
FIRST_SHARE = 0.4
"""The part of a time limit that the first heats have, where others follow."""
OF_EVERY_CLASS = 20
"""Rows of every class that the first heats have, where there are as many."""


@dataclass(frozen=True, eq=False)
class HeatResult:
    """What a heat has found.

    Parameters
    ----------
    heat : dict
    params : dict
        The best parameters.
    score : float
        Their score; NaN where no candidate of the heat has one.
    index : int
        The place of the best in the results.
    results : dict of arrays
        As ``cv_results_``.
    board : dict of lists, optional
        The columns of the leaderboard of a race.
    n_splits : int
    n_rows : int
        The rows that were looked at.
    seconds : float
    error, failure : type and str, optional
        What has ended it.
    """

    heat: Heat
    params: dict[str, Any]
    score: float
    index: int
    results: dict[str, Any]
    board: dict[str, list[Any]] | None
    n_splits: int
    n_rows: int
    seconds: float
    error: type[Exception] | None = None
    failure: str = ""

    def __str__(self) -> str:
        """A line of a log."""
        values = (value[0] if isinstance(value, list) else value for value in self.heat.values())
        named = zip(self.heat, values, strict=True)
        what = ", ".join(f"{name}={value:.4g}" if isinstance(value, float) else f"{name}={value}"
                         for name, value in named)  # fmt: skip
        told = self.failure or f"score {self.score:.5f}"
        return f"heat {what or 'of all'}: {told}, {self.n_rows} rows, {self.seconds:.1f} s"


def heats_of_race(search: SearchEstimator, n_features: int, *, sparse: bool) -> list[Heat]:
    """The heats of a race: a kernel and a relevance each, of those that are left open."""
    kernels: tuple[str, ...] = KERNELS if search.kernel == "auto" else (search.kernel,)
    if sparse and search.kernel == "auto":  # it would make landmarks dense
        kernels = tuple(each for each in kernels if each != "laplacian")
    heats = []
    for kernel in kernels:
        relevances: tuple[str | None, ...] = (search.relevance,)
        if search.relevance == "auto":
            relevances = RELEVANCES if kernel != "linear" else (None,)
            if n_features > MOST_DIRECTIONS or is_absolute(kernel):
                relevances = (None, "columns")
        elif search.relevance == "directions" and is_absolute(kernel):
            continue
        heats += [{"kernel": kernel, "relevance": each} for each in relevances]
    return heats


def heats_of_grid(search: SearchEstimator, X: Any, y: Array, weight: Array) -> list[Heat]:
    """The heats of a grid: a gamma each, where gammas are searched."""
    learner = learner_of(search)
    settings = settings_of(learner)
    found = checked_rows(learner, task_of(learner, settings), X, y, weight, first=True, means=False)
    if found is None:
        raise ValueError("Every row has weight 0; give some row a positive weight.")
    rng = np.random.default_rng([settings.draw_seed(), 6])
    formula = formula_type(learner.get_params(deep=False)["kernel"])
    gammas = resolve_gammas(gammas_of(search), found[1].X, rng, formula)
    return [{}] if gammas is None else [{"gammas": [gamma]} for gamma in gammas]


def next_heat(search: SearchEstimator, found: Sequence[HeatResult]) -> Heat | None:
    """The gamma beyond the first or the last, where that is the best of gammas="auto"; else None."""
    if not isinstance(gammas_of(search), str) or len(found) >= len(AUTO_FACTORS) + MOST_BEYOND:
        return None
    ordered = sorted(found, key=lambda each: each.heat["gammas"][0])
    gammas = [each.heat["gammas"][0] for each in ordered]
    scores = np.array([each.score for each in ordered])
    if np.isnan(scores).all():
        return None
    best = int(np.nanargmax(scores))
    if best == 0 and scores[0] != scores[1]:
        return {"gammas": [gammas[0] * gammas[0] / gammas[1]]}
    if best == len(scores) - 1 and scores[-1] != scores[-2]:
        return {"gammas": [gammas[-1] * gammas[-1] / gammas[-2]]}
    return None


def run_heat(
    search: SearchEstimator, heat: Heat, X: Any, y: Array, weight: Array, n_rows: int
) -> HeatResult:
    """Search what a heat leaves open on rows that are a sample of ``n_rows``.

    One that finds no model, or no score, is left behind.
    """
    begun, tells = clock.now(), races(search)
    own = clone(search).set_params(**heat, refit=False)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # of edges and limits of this part
            search_watched(own, X, y, weight=weight, far=FarRows(n_rows, isinstance(X, Table)))
    except (NonFiniteError, ValueError) as error:
        seconds = clock.now() - begun
        return HeatResult(heat, {}, np.nan, 0, {}, None, 0, len(y), seconds, type(error), str(error))
    params = {name: value for name, value in heat.items() if name == "kernel"} | own.best_params_
    return HeatResult(
        heat, params, float(own.best_score_), own.best_index_, own.cv_results_,
        leaderboard(own) if tells else None, own.n_splits_, len(y), clock.now() - begun,
    )  # fmt: skip


def going_on(found: Sequence[HeatResult]) -> list[Heat]:
    """The better heats of a race, which go on."""
    ranked = ranked_heats(found)
    return [each.heat for each in ranked[: -(-len(ranked) // GOING_ON)]]


def ranked_heats(found: Sequence[HeatResult]) -> list[HeatResult]:
    """Those that have a score, of the most rows first, the best first; raises where none has one."""
    scored = [each for each in found if np.isfinite(each.score)]
    if not scored:
        first = found[0]
        raise (first.error or ValueError)(first.failure)
    return sorted(scored, key=lambda each: (-each.n_rows, -each.score))


def some_rows(y: Array, count: int, seed: int, *, numeric: bool) -> Array:
    """The places of so many rows drawn at random, and of some of every class; they increase."""
    order = np.random.default_rng([seed, 24]).permutation(len(y))
    chosen = order[:count]
    if not numeric and y.ndim == 1:
        codes = np.unique(y[order], return_inverse=True)[1]
        by_class = np.argsort(codes, kind="stable")
        begins = np.searchsorted(codes[by_class], codes[by_class])
        first = by_class[np.arange(len(y)) - begins < OF_EVERY_CLASS]
        chosen = np.union1d(chosen, order[first])
    return np.sort(chosen)


def joined_results(found: Sequence[HeatResult]) -> dict[str, Any]:
    """``cv_results_`` of all heats, the best first; what one has not is masked, or not a number."""
    ranked = ranked_heats(found)
    counts = [len(each.results["params"]) for each in ranked]
    names = dict.fromkeys(name for each in ranked for name in each.results)
    joined: dict[str, Any] = {
        "params": [
            {name: value for name, value in each.heat.items() if name in ("kernel", "relevance")} | one
            for each in ranked
            for one in each.results["params"]
        ]
    }
    for name in names:
        if name in ("params", "rank_test_score"):
            continue
        columns = [
            each.results.get(name, _nothing(name, count))
            for each, count in zip(ranked, counts, strict=True)
        ]
        joined[name] = (
            np.ma.concatenate(columns) if name.startswith("param_") else np.concatenate(columns)
        )
    best = ranked[0].index
    rows = np.repeat([each.n_rows for each in ranked], counts)
    scores = np.nan_to_num(joined["mean_test_score"], nan=-np.inf)
    order = np.lexsort((-scores, -joined["n_resources"], -rows))
    order = np.concatenate([[best], order[order != best]])
    ranks = np.empty(len(order), dtype=np.int32)
    ranks[order] = np.arange(1, len(order) + 1)
    joined["rank_test_score"] = ranks
    return joined


def joined_board(found: Sequence[HeatResult], results: dict[str, Any]) -> dict[str, list[Any]]:
    """The leaderboards of the heats of a race as one, in the order of the joined results."""
    lines: list[dict[str, Any]] = []
    for each in ranked_heats(found):
        assert each.board is not None
        places = np.asarray(each.results["rank_test_score"]) - 1
        lines += [{name: values[place] for name, values in each.board.items()} for place in places]
    order = np.argsort(results["rank_test_score"])
    return {name: [lines[number][name] for number in order] for name in lines[0]}


def _nothing(name: str, count: int) -> Array:
    """A column of results that a heat does not have."""
    if name.startswith("param_"):
        return np.ma.masked_all(count, dtype=object)
    return np.full(count, np.nan)
