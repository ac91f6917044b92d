"""A search in heats: parts of it that machines search apart, and what all of them have found.

    of a race   a heat for each kernel and relevance, on few rows; the best third go on with all of them
    of a grid   a heat for each gamma, with all Cs, epsilons and folds

A heat is a search of its own over what the others leave out, with ``refit=False``. What comes of it
does not depend on where or when it runs, so that neither does what comes of all.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from sklearn.base import clone

from asset_svm import clock
from asset_svm.arrays import Array
from asset_svm.encoding.table import Table as Columns
from asset_svm.estimators.inside import checked_rows, settings_of, task_of
from asset_svm.exceptions import NonFiniteError
from asset_svm.kernels import formula_type
from asset_svm.search.all_rows import RowsElsewhere
from asset_svm.search.auto.race import FEW
from asset_svm.search.auto.search import open_kernels, open_relevances
from asset_svm.search.auto.shapes import GIVEN, Shape, is_absolute
from asset_svm.search.base import SearchEstimator
from asset_svm.search.grid import MOST_BEYOND, resolve_gammas
from asset_svm.search.inside import gammas_of, leaderboard, learner_of, search_watched, table_of
from asset_svm.search.racing import OPEN
from asset_svm.search.results import Table

Heat = dict[str, Any]
"""The parameters of a search that a heat fixes."""
GOING_ON = 3
"""One heat in so many of a race goes on with all rows that are looked at."""
FIRST_ROWS = 2 * FEW
"""Rows of the first heats of a race: of these, half learn in its first stages, or more."""
OF_EVERY_CLASS = 20
"""Rows of every class that are looked at, where there are as many."""
SEEN = ("classes_", "n_features_in_", "feature_names_in_")
"""Attributes that a search has of its rows."""


@dataclass(frozen=True, eq=False)
class HeatResult:
    """What a heat has found.

    Parameters
    ----------
    heat : dict
    n_rows : int
        The rows that were looked at.
    seconds : float
    score : float
        That of the best candidate; NaN where none has one.
    params : dict
        Its parameters.
    results : dict of arrays
        Of a race, as ``cv_results_``; and so are the next two.
    board : dict of lists
        The columns of the leaderboard.
    index : int
        The place of the best in the results.
    table : Table, optional
        Of a grid.
    n_splits : int
    seen : dict
        Attributes of the search that tell of its rows.
    failure : str
        Why there is no score.
    finite : bool
        False where a model was not.
    """

    heat: Heat
    n_rows: int
    seconds: float
    score: float = np.nan
    params: dict[str, Any] = field(default_factory=dict)
    results: dict[str, Any] = field(default_factory=dict)
    board: dict[str, list[Any]] = field(default_factory=dict)
    index: int = 0
    table: Table | None = None
    n_splits: int = 0
    seen: dict[str, Any] = field(default_factory=dict)
    failure: str = ""
    finite: bool = True

    def __str__(self) -> str:
        """A line of a log."""
        words = []
        for name, value in self.heat.items():
            value = value[0] if isinstance(value, list) else value
            words.append(f"{name}={value:.4g}" if isinstance(value, float) else f"{name}={value}")
        told = self.failure or f"score {self.score:.5f}"
        return f"heat {', '.join(words) or 'of all'}: {told}, {self.n_rows} rows, {self.seconds:.1f} s"


def heats_of_race(search: SearchEstimator, n_features: int, *, sparse: bool) -> list[Heat]:
    """The heats of a race: a kernel and a relevance each, of those that are left open."""
    asked = None if search.kernel == OPEN else search.kernel
    return [
        {"kernel": kernel, "relevance": relevance}
        for kernel in open_kernels(asked, sparse=sparse)
        for relevance in open_relevances(search.relevance, n_features)
        if relevance is None
        or search.relevance != "auto"
        or (Shape(GIVEN, kernel).has_gamma and not (relevance == "directions" and is_absolute(kernel)))
    ]


def heats_of_grid(search: SearchEstimator, X: Any, y: Array, weight: Array, n_rows: int) -> list[Heat]:
    """The heats of a grid: a gamma each, where gammas are searched."""
    learner = learner_of(search)
    learner.set_params(encoder=_elsewhere(X, n_rows).encoder_of(learner))
    settings = settings_of(learner)
    found = checked_rows(learner, task_of(learner, settings), X, y, weight, first=True, means=False)
    assert found is not None  # of rows of weight 0 none are here
    rng = np.random.default_rng([settings.draw_seed(), 6])
    formula = formula_type(learner.get_params(deep=False)["kernel"])
    gammas = resolve_gammas(gammas_of(search), found[1].X, rng, formula)
    return [{}] if gammas is None else [{"gammas": [gamma]} for gamma in gammas]


def next_heat(search: SearchEstimator, found: Sequence[HeatResult], begun_with: int) -> Heat | None:
    """The gamma beyond the first or the last, where that is the best of gammas="auto"; else None.

    ``begun_with`` is the number of the first heats.
    """
    if not isinstance(gammas_of(search), str) or len(found) >= begun_with + MOST_BEYOND:
        return None
    if all(each.table is None for each in found):
        return None
    table = joined_table(found)
    end = table.end(list(range(len(table.grid.gammas or ()))))
    return None if end is None else {"gammas": [table.grid.beyond(above=end > 0)]}


def run_heat(
    search: SearchEstimator,
    heat: Heat,
    X: Any,
    y: Array,
    weight: Array,
    n_rows: int,
    *,
    in_cells: bool = True,
) -> HeatResult:
    """Search what a heat leaves open on rows that are a sample of ``n_rows``.

    One that finds no model, or no score, is left behind. ``in_cells`` says whether models in cells
    are open.
    """
    begun, own = clock.now(), clone(search).set_params(**heat, refit=False)
    elsewhere = replace(_elsewhere(X, n_rows), fit_in_cells=in_cells)
    try:
        with quiet():  # whoever asked is told of all heats, by the client
            search_watched(own, X, y, weight=weight, elsewhere=elsewhere)
    except (NonFiniteError, ValueError, MemoryError) as error:
        why, finite = str(error), not isinstance(error, NonFiniteError)
        return HeatResult(heat, len(y), clock.now() - begun, failure=why, finite=finite)
    score, table = float(own.best_score_), table_of(own)
    seen = {name: getattr(own, name) for name in SEEN if hasattr(own, name)}
    told: dict[str, Any] = dict(score=score, n_splits=own.n_splits_, seen=seen, table=table)
    if table is None:
        told |= dict(results=own.cv_results_, board=leaderboard(own), index=own.best_index_)
        told["params"] = {"kernel": heat["kernel"]} | own.best_params_
    return HeatResult(heat, len(y), clock.now() - begun, **told)


_lock, _quiet = threading.Lock(), list["warnings.catch_warnings[None]"]()
"""Of heats beside each other in one process, which share its filters of warnings."""
_beside = [0]


@contextmanager
def quiet() -> Iterator[None]:
    """Nobody is warned inside; the first heat that begins says so, the last one takes it back."""
    with _lock:
        _beside[0] += 1
        if _beside[0] == 1:
            _quiet.append(warnings.catch_warnings())
            _quiet[0].__enter__()
            warnings.simplefilter("ignore")
    try:
        yield
    finally:
        with _lock:
            _beside[0] -= 1
            if _beside[0] == 0:
                _quiet.pop().__exit__(None, None, None)


def _elsewhere(X: Any, n_rows: int) -> RowsElsewhere:
    return RowsElsewhere(n_rows, isinstance(X, Columns))


def ranked_heats(found: Sequence[HeatResult]) -> list[HeatResult]:
    """Those that have a score, of the most rows first, the best first; raises where none has one."""
    scored = [each for each in found if np.isfinite(each.score)]
    if not scored:
        kind = ValueError if all(each.finite for each in found) else NonFiniteError
        why = next(
            (each.failure for each in found if each.failure), "the score of no split is a number"
        )
        raise kind(f"No candidate of the search has a score: {why}")
    return sorted(scored, key=lambda each: (-each.n_rows, -each.score))


def going_on(found: Sequence[HeatResult]) -> list[Heat]:
    """The better heats of a race, which go on."""
    ranked = ranked_heats(found)
    return [each.heat for each in ranked[: -(-len(ranked) // GOING_ON)]]


def some_rows(y: Array, count: int, seed: int, *, numeric: bool) -> Array:
    """The places of so many rows drawn at random, and of some of every class; they increase."""
    order = np.random.default_rng([seed, 24]).permutation(len(y))
    chosen = order[:count]
    if not numeric and y.ndim == 1:
        classes, codes = np.unique(y[order], return_inverse=True)
        for code in range(len(classes)):
            chosen = np.union1d(chosen, order[np.flatnonzero(codes == code)[:OF_EVERY_CLASS]])
    return np.sort(chosen)


# What all heats have found --------------------------------------------------------------------------


def joined_table(found: Sequence[HeatResult]) -> Table:
    """The table of all heats of a grid; lines of those that have failed are missing."""
    tables = [each.table for each in found if each.table is not None]
    ranked_heats(found)  # raises where there is none
    gammas = [each.heat["gammas"][0] for each in found if "gammas" in each.heat]
    if not gammas:
        return tables[0]
    joined = Table(replace(tables[0].grid, gammas=tuple(sorted(gammas))), tables[0].n_splits)
    for table in tables:
        assert table.grid.gammas is not None and joined.grid.gammas is not None
        number = joined.grid.gammas.index(table.grid.gammas[0])
        joined.lines |= {(number, epsilon): line for (_, epsilon), line in table.lines.items()}
        joined.late |= table.late
    return joined


def joined_results(found: Sequence[HeatResult]) -> dict[str, Any]:
    """``cv_results_`` of the heats of a race; what one has not is masked, or not a number."""
    ranked = ranked_heats(found)
    counts = [len(each.results["params"]) for each in ranked]
    joined: dict[str, Any] = {"params": [one for each in ranked for one in each.results["params"]]}
    for name in dict.fromkeys(name for each in ranked for name in each.results):
        if name in ("params", "rank_test_score"):
            continue
        columns = [
            each.results.get(name, _nothing(name, count))
            for each, count in zip(ranked, counts, strict=True)
        ]
        join = np.ma.concatenate if name.startswith("param_") else np.concatenate
        joined[name] = join(columns)
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
        places = np.asarray(each.results["rank_test_score"]) - 1
        lines += [{name: values[place] for name, values in each.board.items()} for place in places]
    order = np.argsort(results["rank_test_score"])
    return {name: [lines[number][name] for number in order] for name in lines[0]}


def _nothing(name: str, count: int) -> Array:
    """A column of results that a heat does not have."""
    if name.startswith("param_"):
        return np.ma.MaskedArray(np.full(count, None, dtype=object), mask=True)
    return np.full(count, np.nan)
