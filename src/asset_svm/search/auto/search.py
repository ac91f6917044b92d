"""From what was passed to ``fit`` to the outcome of a race."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone

from asset_svm.arrays import Array
from asset_svm.backends.device import on_host
from asset_svm.encoding.frames import as_table, is_frame, is_plain
from asset_svm.estimators.encoded import checked_columns
from asset_svm.estimators.inside import checked_rows, in_units, settings_of, task_of
from asset_svm.estimators.learner import Learner
from asset_svm.estimators.tables import TableEncoder
from asset_svm.search.auto.budget import Budget
from asset_svm.search.auto.columns import Columns, Given
from asset_svm.search.auto.confirm import CONFIRMED, confirm
from asset_svm.search.auto.judged import Judged
from asset_svm.search.auto.looks import Looks
from asset_svm.search.auto.outcome import Outcome
from asset_svm.search.auto.parts import Part, draw_parts
from asset_svm.search.auto.race import Axes, Race, Watch
from asset_svm.search.auto.shapes import GIVEN
from asset_svm.search.journal import Journal
from asset_svm.search.scores import Scorer
from asset_svm.settings import Settings
from asset_svm.tasks import for_targets

KERNELS = ("rbf", "laplacian", "exponential", "linear")
RELEVANCES = (None, "columns", "directions")
MOST_DIRECTIONS, MOST_PIECES = 1000, 100
"""Columns up to which directions are learnt, and numbers are cut into pieces."""
MODELS_OF_MEANS = 2.5
"""The models like the best that time is kept for, where a mean may follow."""
KEPT_TIME = 0.95
"""The part of a time limit that a race counts on."""
SHORT = 20.0
"""Seconds below which more candidates gain more than other folds of the best, or a mean of them."""
ROWS_A_SECOND = 5000
"""Rows for every second, from which on looks at all of them leave time for few shapes."""
BALANCED = 3
"""Finalists that are tried with balanced classes, where there is a score of the user's."""
EXACT_ROWS = 1500
"""Rows up to which every model is exact."""
LEAST_WORK, MOST_WORK = 0.4, 60.0
"""Nominal seconds without a time limit."""
SECOND_ROWS, GROWTH = 250.0, 1.3
"""So many rows have one, and more of them by this power."""


@dataclass(frozen=True)
class Asked:
    """What the user has fixed; None is open.

    Parameters
    ----------
    kernel, relevance : str, optional
        ``relevance`` is "auto" where it is open.
    cells : bool, optional
    fixed : dict
        Parameters of the estimator that every candidate has.
    """

    kernel: str | None
    relevance: str | None
    cells: bool | None
    fixed: dict[str, Any]


def gather(learner: Learner, X: Any, y: Any, sample_weight: Any) -> tuple[Given, Array, Learner] | None:
    """What was passed to ``fit``, checked, and the numbers of its rows of positive weight.

    Columns are those of the learner that comes back.
    """
    settings = settings_of(learner)
    task, asked = task_of(learner, settings), learner.encoder
    raw = isinstance(asked, TableEncoder) or (asked is not None and is_frame(X) and not is_plain(X))
    if raw:
        encoder = clone(asked) if isinstance(asked, TableEncoder) else TableEncoder()
        table, y, weight = checked_columns(encoder, task, X, y, sample_weight, first=True)
        index = np.flatnonzero(weight)
        if len(index) == 0:
            return None
        table = encoder.given(table[index] if len(index) < len(y) else table)
        y, weight = y[index], weight[index]
        task, y = in_units(learner, for_targets(task, y), y, weight)
        task = task.settled(y, weight)
        learner.n_features_in_ = table.shape[1]
        if is_frame(X):
            learner.feature_names_in_ = np.array(table.names, dtype=object)
        return Given(None, table, y, weight, task, _encoders(encoder)), index, learner
    plain = learner.set_params(encoder=None)
    found = checked_rows(plain, task, X, y, sample_weight, first=True)
    if found is None:
        return None
    task, rows = found
    own = on_host(rows.X)
    columns = None if sp.issparse(own) else as_table(own)
    open_encoders = {} if columns is None or asked is None else _encoders(TableEncoder())
    return Given(own, columns, rows.y, rows.sample_weight, task, open_encoders), rows.index, plain


def _encoders(encoder: TableEncoder) -> dict[str, TableEncoder]:
    """The encodings that an encoder leaves open."""
    if encoder.numbers != "auto":
        return {encoder.numbers: encoder}
    return {name: clone(encoder).set_params(numbers=name) for name in ("standard", "pieces")}


def axes_of(given: Given, asked: Asked) -> Axes:
    """What is tried: what is open, and makes sense for these rows."""
    n = (given.X if given.X is not None else given.table).shape[1]  # type: ignore[union-attr]
    encodings = [name for name in given.encoders if name != "pieces" or n <= MOST_PIECES]
    if given.X is not None:
        encodings.insert(1, GIVEN)
        if "standard" in encodings and given.is_standard:
            encodings.remove("standard")
    kernels = open_kernels(asked.kernel, sparse=sp.issparse(given.X))
    relevances = open_relevances(asked.relevance, n)
    cells = (False, True) if asked.cells is None else (asked.cells,)
    if asked.cells is None and len(given.y) <= EXACT_ROWS:
        cells = (True,)
    return Axes(tuple(encodings), kernels, relevances, cells)


def open_kernels(asked: str | None, *, sparse: bool) -> tuple[str, ...]:
    """The kernels of a race; the product Laplacian would make landmarks of sparse rows dense."""
    if asked is not None:
        return (asked,)
    return tuple(each for each in KERNELS if each != "laplacian" or not sparse)


def open_relevances(asked: str | None, n: int) -> tuple[str | None, ...]:
    """The relevances of a race over n columns; "auto" is what is open."""
    if asked != "auto":
        return (asked,)
    return tuple(each for each in RELEVANCES if each != "directions" or n <= MOST_DIRECTIONS)


def run_race(
    learner: Callable[..., Learner],
    given: Given,
    asked: Asked,
    parts: list[Part] | None,
    scorer: Scorer | None,
    seed: int,
    begun: float,
    time_limit: float | None,
    watch: Watch | None,
    *,
    ensemble: bool,
    n_rows: int | None = None,
    reading: float | None = None,
    elsewhere: bool = False,
    journal: Journal | None = None,
) -> tuple[Outcome, Budget]:
    """Race, until the budget is spent; ``learner`` makes an estimator with given parameters.

    The final model learns from ``n_rows``, by default those that are given; ``reading`` them once takes
    so many seconds, where they are not in memory. ``elsewhere``, where others train it. ``journal``
    keeps what looks find, and knows what they have found in a race that goes on.
    """
    others: list[Part] = []
    if parts is None:
        parts, others = draw_parts(given.task, given.y, seed)
    m = len(given.y)
    work = float(np.clip((m / SECOND_ROWS) ** GROWTH, LEAST_WORK, MOST_WORK))
    limit = time_limit if journal is None else journal.limit

    def total(limit: float | None) -> float:
        return work if limit is None else KEPT_TIME * limit

    budget = Budget(total(limit), None if limit is None else begun, journal=journal)

    def settings(params: dict[str, Any]) -> Settings:
        return settings_of(learner(random_state=seed, **(params | asked.fixed)))

    all_rows = m if n_rows is None else n_rows
    columns = Columns(given, parts, settings)
    looks = Looks(
        columns, budget, scorer, seed, asked.fixed,
        n_rows=all_rows, reading=reading, elsewhere=elsewhere,
    )  # fmt: skip
    if journal is not None:
        looks.begun -= journal.elapsed
    axes = axes_of(given, asked)
    race = Race(looks, axes, all_rows, watch)

    def settle(limit: float | None) -> None:
        """Have what hangs on the time limit, which may be another for a race that goes on."""
        budget.total = total(limit)
        short = budget.total < SHORT
        race.hurried = limit is not None and (short or m > ROWS_A_SECOND * budget.total)
        race.models = MODELS_OF_MEANS if ensemble and not (limit is not None and short) else 1.0
        # Models in cells, of which only some are solved, do not judge all rows of a fold.
        confirms = others and not short and not (True in axes.cells and m > looks.most_solved)
        race.kept = CONFIRMED if confirms else 0.0

    settle(limit)
    if journal is not None:
        journal.settle = settle
    race.run()
    outcome = Outcome.of(looks, race.history, asked.relevance)
    if race.kept:
        race.kept = 0.0
        outcome = confirm(outcome, others, budget.total - race.reserve(outcome.best.candidate), watch)
    return outcome, budget


def balanced_outcome(outcome: Outcome, learner: Callable[..., Learner]) -> Outcome | None:
    """The outcome of the best candidates with balanced classes, where the score is better so."""
    before, columns = outcome.looks, outcome.looks.columns
    if before.scorer is None or columns.given.task.numeric:
        return None
    model = learner(class_weight="balanced")
    task = for_targets(task_of(model, settings_of(model)), columns.given.y)
    task = task.settled(columns.given.y, columns.given.weight)
    given = replace(columns.given, task=task)
    looks = Looks(
        Columns(given, columns.parts, columns.settings),
        before.budget,
        before.scorer,
        before.seed,
        before.fixed,
        begun=before.begun,
        n_rows=before.n_rows,
        reading=before.reading,
        elsewhere=before.elsewhere,
    )
    found: list[Judged] = []
    for number in outcome.finalists[:BALANCED]:
        each = outcome.history[number]
        if found and before.budget.left <= 0.0:
            break
        found += looks.look(each.candidate, (each.candidate.C,), each.rows, each.judging)
    if not found or max(each.score for each in found) <= outcome.best.score:
        return None
    return outcome.joined(looks, [replace(each, balanced=True) for each in found])
