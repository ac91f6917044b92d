"""Rounds that learn the relevance of columns: quick fits, and mean outer products of their gradients.

With f of a quick fit on rows u = T z, z the standardised columns,

    M = mean over rows, sum over outputs of grad f grad f^T, by z, each output in units of its spread
    T = M^(1/2) ("directions"), or its diagonal to the power 1/2 ("columns"; 0.8 for |x - z|_1)

and the next round fits on T z. That is the average gradient outer product of Radhakrishnan, Beaglehole,
Pandit and Belkin (2024). Rows that no quick fit sees judge every round:

    bandwidth   of standardised columns, by few rows: wider or narrower as long as that is better
    rounds      of each shape, as long as each is better than those before it; one that is not is
                tried with a narrower kernel first
    cells       where the model has cells: rounds from the best map so far on, of more rows, whose quick
                fits have cells too; they see what a few landmarks do not
    choice      the round with the smallest loss; with "auto" rows as they are, unless theirs is larger
                by a part of it and by standard errors of the difference, row by row

Quick fits have settings of their own, and targets in units of their standard deviation: what is learnt
depends on the rows, the targets and the kernel, and on none of gamma, C and epsilon.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp

from asset_svm import clock
from asset_svm.arrays import Array, Matrix
from asset_svm.backends.cpu import CpuBackend
from asset_svm.backends.device import on_host
from asset_svm.families.base import DecisionFunction
from asset_svm.families.cells import Cells
from asset_svm.families.epochs import Epochs
from asset_svm.families.observing import Nobody, logger
from asset_svm.families.one_map.components import clearly_less
from asset_svm.families.one_map.maps import draw_map
from asset_svm.families.one_map.trial import some_of, trial
from asset_svm.families.rows import Rows
from asset_svm.features.relevance import Learnt, Moments, Relevance, leading_directions
from asset_svm.kernels import Argument, formula_type
from asset_svm.settings import Settings
from asset_svm.tasks import Task
from asset_svm.tasks.base import train_test_rows

Shape = Literal["columns", "directions"]

LANDMARKS, QUICK_C, QUICK = 512, 100.0, Epochs(least=3, steps=30_000)
"""Of a quick fit on one map."""
CELL_C, CELL_TOLERANCE, CELL_FACTOR = 10.0, 0.1, 4.0
"""Of one in cells, whose gradients need no more, and how much narrower its kernel is to begin with."""
LEARNING_ROWS, JUDGING_ROWS = 20_000, 5_000
"""Rows that a quick fit sees, and that judge it, where there are more."""
CELL_PART, CELL_ROWS = 0.125, 60_000
"""The part of the rows that quick fits in cells see, and so many at most; at least as others do."""
WIDE = 200
"""From so many columns on these are fewer by ``NARROWER``: a quick fit would take too long."""
NARROWER = 3
JUDGING = 0.25
"""The part of the rows that judges, where they are few."""
FEWEST_ROWS = 40
"""Fewer rows judge nothing: columns are standardised, and no more."""
BANDWIDTH_ROWS = 5_000
"""Rows that tell the bandwidth."""
GRADIENTS, FEWEST_GRADIENTS, MOST_GRADIENTS = 40_000, 500, 4_000
"""Rows times outputs whose gradients make M; rows at least, and at most."""
GRADIENT_BYTES = 32 << 20
"""Gradients that are there at a time."""
TINY = np.finfo(np.float64).tiny
MOST_ROUNDS, MOST_CELL_ROUNDS = 5, 8
CELL_PATIENCE = 1
"""Rounds in cells that may be no better, since each has another partition's seams."""
FACTOR, MOST_FACTORS = 4.0, 3
"""Of squared bandwidths, and how many steps one way are tried."""
GUARD, LEAST_GAIN = 2.0, 0.01
"""Standard errors, and a part of the loss, that rows as they are must be worse by."""
AUTO_COLUMNS = 1024
"""The eigenvectors of more columns take longer than a round: "auto" tries no directions then."""


def learn_relevance(settings: Settings, task: Task, rows: Rows, seed: int) -> Learnt:
    """The relevance of the columns of these rows, by what ``relevance`` asks for."""
    begun = clock.now()
    deadline = begun + (settings.time_limit or np.inf) / 2
    fewer = NARROWER if rows.X.shape[1] > WIDE else 1
    most = (LEARNING_ROWS + JUDGING_ROWS) // fewer
    if settings.n_cells is not None:
        most = max(most, JUDGING_ROWS + min(int(CELL_PART * len(rows.y)), CELL_ROWS // fewer))
    rows = rows.take(some_of(len(rows.y), most, np.random.default_rng([seed, 11])))
    rows = replace(rows, X=on_host(rows.X))
    shapes = shapes_of(settings, rows.X.shape[1], sparse=bool(sp.issparse(rows.X)))
    auto = settings.relevance == "auto"
    if len(rows.y) < FEWEST_ROWS:
        moments = _moments(settings, rows)
        even = np.full(rows.X.shape[1], 1.0 / rows.X.shape[1])
        return Learnt(None if auto else moments.standard(), even)
    out = min(JUDGING_ROWS // fewer, int(JUDGING * len(rows.y)))
    kept, held = _split(task, rows.y, out, seed)
    judged = _Judged(settings, task, rows.take(kept), rows.take(held), seed, deadline)
    found = judged.choose(shapes, LEARNING_ROWS // fewer, auto=auto)
    by = next(record for record in found.history if record["chosen"])
    shown = "rows as they are" if found.relevance is None else "{shape}, round {round}".format(**by)
    logger.info(
        "relevance: %s, after %d quick fits in %.1f s", shown, len(found.history), clock.now() - begun
    )
    return found


def _split(task: Task, y: Array, count: int, seed: int) -> tuple[Array, Array]:
    """The rows to learn from, and so many that judge, of every class where that can be."""
    if task.classes is None or count >= 2 * len(task.classes):
        return task.split(y, count / len(y), seed)
    return train_test_rows(len(y), count / len(y), seed)


def shapes_of(settings: Settings, n: int, *, sparse: bool) -> tuple[Shape, ...]:
    """The shapes of maps that are tried for rows of n columns."""
    if settings.relevance == "columns":
        return ("columns",)
    if settings.relevance == "directions":
        return ("directions",)
    full = not is_absolute(settings) and n <= AUTO_COLUMNS and not sparse
    return ("columns", "directions") if full else ("columns",)


def is_absolute(settings: Settings) -> bool:
    """Whether the kernel is one of |x - z|_1, which has no directions but its columns."""
    return formula_type(settings.map.kernel).argument is Argument.ABSOLUTE_DISTANCE


def _moments(settings: Settings, rows: Rows) -> Moments:
    return Moments.of(rows.X, rows.weight, absolute=is_absolute(settings))


@dataclass(frozen=True, eq=False)
class _Fit:
    """A quick fit, on rows that a map has mapped.

    Parameters
    ----------
    relevance : Relevance or None
        None: rows as they are.
    losses : array
        Those of the rows that judge it.
    loss : float
        Their mean.
    """

    shape: Shape | None
    round: int
    relevance: Relevance | None
    decision: DecisionFunction
    X: Matrix
    losses: Array
    loss: float
    score: float
    seconds: float
    factor: float
    cells: bool
    error: float
    """The mean of what the rows that judge add to the error that users look at."""

    @property
    def record(self) -> dict[str, Any]:
        """What the history tells of the fit."""
        return {
            "shape": self.shape,
            "round": self.round,
            "cells": self.cells,
            "validation_score": self.score,
            "validation_loss": self.loss,
            "bandwidth": self.factor**-0.5,
            "rows": self.X.shape[0],
            "seconds": self.seconds,
        }


@dataclass(frozen=True, eq=False)
class _Judged:
    """Rows to learn the relevance from, and rows that judge it; ``cells`` have quick fits in cells."""

    settings: Settings
    whole: Task
    learning: Rows
    judging: Rows
    seed: int
    deadline: float
    cells: bool = False

    @property
    def is_late(self) -> bool:
        """Whether there is no time for one fit more."""
        return clock.now() > self.deadline

    @cached_property
    def moments(self) -> Moments:
        """The moments of the columns."""
        return _moments(self.settings, self.learning)

    @cached_property
    def targets(self) -> tuple[Task, Array, Array]:
        """The task of quick fits, and the targets to learn from and to judge by."""
        rows, out = self.learning, self.judging
        y = np.concatenate([rows.y, out.y])
        weight = np.concatenate([rows.weight, np.zeros(len(out.y))])  # those that judge settle nothing
        task, y = self.whole.standardised(y, weight)
        return task, y[: len(rows.y)], y[len(rows.y) :]

    @cached_property
    def weight(self) -> Array:
        """The weights of the rows that judge; they add up to 1."""
        return np.asarray(self.judging.weight / self.judging.weight.sum())

    @cached_property
    def standardised(self) -> Array:
        """Some rows with standardised columns, by which maps of directions are scaled."""
        rows, moments = self.learning, self.moments
        index = some_of(len(rows.y), MOST_GRADIENTS, np.random.default_rng([self.seed, 13]))
        X = rows.X[index].toarray() if sp.issparse(rows.X) else rows.X[index]
        inverse = np.where(moments.deviation > 0.0, 1.0, 0.0) / np.maximum(moments.deviation, TINY)
        share = rows.weight[index] / rows.weight[index].sum()
        Z = (X - moments.mean) * inverse
        return np.asarray((Z - share @ Z) * np.sqrt(share)[:, None])

    # Quick fits ---------------------------------------------------------------------------------

    def fit(self, shape: Shape | None, number: int, relevance: Relevance | None, c: float) -> _Fit:
        """A quick fit on mapped rows, whose squared distances are divided by the spread over c."""
        begun, backend = clock.now(), CpuBackend()
        task, y, y_out = self.targets
        mean_weight = self.learning.weight.mean()
        X, X_out = self.learning.X, self.judging.X
        if relevance is not None:
            X, X_out = relevance(X), relevance(X_out)
        rows = replace(self.learning, X=X, y=y, weight=self.learning.weight / mean_weight)
        spread = self.moments.spread or 1.0
        gamma = formula_type(self.settings.map.kernel).gamma_of(spread / c)
        settings = quick_settings(self.settings, gamma, cells=self.cells)
        decision: DecisionFunction
        if self.cells:
            decision = Cells().fit(settings, task, rows, begun, Nobody()).fitted.decision
        else:
            phi = draw_map(settings, backend, X, rows.uneven, self.seed)
            lam = 1.0 / (QUICK_C * len(y))
            decision = trial(settings, backend, phi, rows, task.encode(y), lam, self.seed, QUICK)
        decisions = decision(X_out)
        losses, score = task.soft_losses(decisions, y_out), task.score(decisions, y_out, self.weight)
        error = float(self.weight @ task.row_losses(decisions, y_out))
        loss, seconds = float(self.weight @ losses), clock.now() - begun
        return _Fit(
            shape, number, relevance, decision, X, losses, loss, score, seconds, c, self.cells, error
        )

    def of(self, count: int) -> _Judged:
        """The same with at most so many rows to learn from."""
        if len(self.learning.y) <= count:
            return self
        rows = some_of(len(self.learning.y), count, np.random.default_rng([self.seed, 14]))
        return replace(self, learning=self.learning.take(rows))

    def with_bandwidths(
        self, shape: Shape, number: int, relevance: Relevance, first: float = 1.0
    ) -> list[_Fit]:
        """Fits with wider and narrower kernels, as long as they are better; the best comes first."""
        best = self.fit(shape, number, relevance, first)
        found = [best]
        for factor in (1.0 / FACTOR, FACTOR):
            for _ in range(0 if self.is_late else MOST_FACTORS):
                next_one = self.fit(shape, number, relevance, best.factor * factor)
                found.append(next_one)
                if next_one.loss >= best.loss:
                    break
                best = next_one
            if best.factor != first:
                break
        return [best, *(each for each in found if each is not best)]

    # Gradients ----------------------------------------------------------------------------------

    def outer_product(self, fit: _Fit, *, full: bool) -> Array:
        """M of a fit, by standardised columns; its diagonal where not ``full``."""
        task = self.targets[0]
        most = min(GRADIENTS // task.n_models, len(self.learning.y) // 4)
        count = min(max(most, FEWEST_GRADIENTS), MOST_GRADIENTS)
        index = some_of(len(self.learning.y), count, np.random.default_rng([self.seed, 12, fit.round]))
        X, weight = fit.X[index], self.learning.weight[index] / self.learning.weight[index].sum()
        decisions = fit.decision(X)
        spread = np.sqrt(weight @ (decisions - weight @ decisions) ** 2)
        units = np.where(spread > 0.0, 1.0, 0.0) / np.maximum(spread, TINY)
        n, deviation = len(self.moments.deviation), self.moments.deviation
        total = np.zeros((n, n) if full else n)
        step = max(GRADIENT_BYTES // (8 * n * task.n_models), 1)
        for start in range(0, len(index), step):
            block = slice(start, start + step)
            G = fit.decision.gradients(X[block])
            if fit.relevance is not None:
                G = fit.relevance.back(G)
            G = G * (units[:, None] * deviation)  # by standardised columns
            G *= np.sqrt(weight[block])[:, None, None]
            G = G.reshape(-1, n)
            total += G.T @ G if full else np.einsum("ij,ij->j", G, G)
        return total

    def next_map(self, shape: Shape, M: Array) -> Relevance | None:
        """The map that M makes; None where no gradient is left."""
        diagonal = np.diagonal(M) if M.ndim == 2 else M
        largest = float(diagonal.max())
        if not np.isfinite(largest) or largest <= 0.0:
            return None
        if shape == "directions":
            return self.moments.scaled(leading_directions(M, 0.5), self.standardised)
        power = 0.8 if self.moments.absolute else 0.5
        return self.moments.scaled((diagonal / largest) ** power)

    # The choice ---------------------------------------------------------------------------------

    def choose(self, shapes: Sequence[Shape], count: int, *, auto: bool) -> Learnt:
        """The best of all rounds, of quick fits with ``count`` rows, then of those in cells."""
        found = self.of(count).on_one_map(shapes, auto=auto)
        if self.settings.n_cells is not None:
            found = replace(self, cells=True).in_cells(found, auto=auto)
        return found.learnt(auto=auto, weight=self.weight)

    def on_one_map(self, shapes: Sequence[Shape], *, auto: bool) -> _Found:
        """The rounds of every shape, from standardised columns on."""
        scaled = self.moments.standard()
        few = self.of(BANDWIDTH_ROWS) if len(self.learning.y) > 2 * BANDWIDTH_ROWS else self
        first, *fits = few.with_bandwidths("columns", 0, scaled)
        if few is not self:
            fits = [first, *fits]
            first = self.fit("columns", 0, scaled, first.factor)
        fits.append(first)
        # Rows whose columns have one scale differ from standardised ones in nothing.
        plain = first
        if auto and not self.moments.alike:
            others = self.plain({1.0, first.factor})
            plain, fits = min(others, key=_loss), [*fits, *others]
        M = self.outer_product(first, full="directions" in shapes)
        found = _Found(fits, [first] if auto and not self.moments.alike else [], plain, first)
        found.products[id(first)] = M
        for shape in shapes:
            self.go_on(found, shape, first, M, MOST_ROUNDS)
        return found

    def in_cells(self, before: _Found, *, auto: bool) -> _Found:
        """Rounds in cells, from the best map of others on."""
        start = before.best or before.first
        assert start.relevance is not None and start.shape is not None
        first, *fits = self.with_bandwidths(start.shape, start.round, start.relevance, CELL_FACTOR)
        plain = first
        if auto:
            others = self.plain({first.factor, CELL_FACTOR})
            plain, fits = min(others, key=_loss), [*fits, *others]
        found = _Found([*before.fits, *fits, first], [first], plain, first)
        found.products.update(before.products)
        found.products[id(first)] = before.products[id(start)]
        shape: Shape = start.shape
        M = self.outer_product(first, full=shape == "directions")
        self.go_on(found, shape, first, M, MOST_CELL_ROUNDS, CELL_PATIENCE)
        return found

    def plain(self, factors: set[float]) -> list[_Fit]:
        """Fits on rows as they are."""
        return [self.fit(None, 0, None, factor) for factor in sorted(factors)]

    def go_on(
        self, found: _Found, shape: Shape, first: _Fit, M: Array, most: int, patience: int = 0
    ) -> None:
        """Rounds of one shape, from M on, as long as each is better than those before it."""
        factor, least, waited = first.factor, np.inf, 0
        for number in range(first.round + 1, first.round + most + 1):
            relevance = self.next_map(shape, M)
            if relevance is None:
                return
            fit = self.fit(shape, number, relevance, factor)
            found.add(fit, M)
            if fit.loss >= min(least, first.loss) and not self.is_late:
                narrower = self.fit(shape, number, relevance, FACTOR * factor)
                found.add(narrower, M)
                if narrower.loss < fit.loss:
                    fit, factor = narrower, FACTOR * factor
            waited = 0 if fit.loss < least else waited + 1
            least = min(least, fit.loss)
            if waited > patience or self.is_late:
                return
            M = self.outer_product(fit, full=shape == "directions")


@dataclass(frozen=True, eq=False)
class _Found:
    """Quick fits so far.

    Parameters
    ----------
    fits : list of _Fit
        All of them.
    candidates : list of _Fit
        Those whose maps may be taken.
    plain : _Fit
        The best on rows as they are.
    first : _Fit
        The one that rounds began with.
    products : dict
        The M that each candidate's map was made of, by its identity.
    """

    fits: list[_Fit]
    candidates: list[_Fit]
    plain: _Fit
    first: _Fit
    products: dict[int, Array] = field(default_factory=dict)

    def add(self, fit: _Fit, M: Array) -> None:
        """Take a fit of a round into account."""
        self.fits.append(fit)
        self.candidates.append(fit)
        self.products[id(fit)] = M

    @property
    def best(self) -> _Fit | None:
        """The candidate with the smallest loss."""
        return min(self.candidates, key=_loss, default=None)

    def learnt(self, *, auto: bool, weight: Array) -> Learnt:
        """What is taken: the best, or, with ``auto``, rows as they are unless it is clearly better."""
        best, plain = self.best, self.plain
        if auto and best is not None:
            clear = clearly_less(best.losses, plain.losses, weight, GUARD)
            worth = clear and best.loss < (1.0 - LEAST_GAIN) * plain.loss and best.error <= plain.error
            best = best if worth else None
        chosen = best or (plain if auto else self.first)
        relevance = None if auto and best is None else chosen.relevance
        history = [{**fit.record, "chosen": fit is chosen} for fit in self.fits]
        return Learnt(relevance, _shares(self.products[id(best or self.first)]), history)


def _loss(fit: _Fit) -> float:
    return fit.loss


def _shares(M: Array) -> Array:
    """The parts of the columns in the diagonal of M."""
    diagonal = np.diagonal(M) if M.ndim == 2 else M
    total = float(diagonal.sum())
    if not np.isfinite(total) or total <= 0.0:
        return np.full(len(diagonal), 1.0 / len(diagonal))
    return np.asarray(diagonal / total)


def quick_settings(settings: Settings, gamma: float, *, cells: bool) -> Settings:
    """The settings of a quick fit with the kernel of these, on one map or in cells."""
    return settings.changed(
        gamma=gamma,
        C=CELL_C,
        lam=None,
        n_components=LANDMARKS,
        landmarks="uniform",
        rank=None,
        rank_threshold=None,
        rank_rule="relative",
        approximation="nystroem",
        n_cells="auto" if cells else None,
        n_partitions=1,
        step="metric",
        step_scale=None,
        free_intercept=not cells,
        intercept_bound=None,
        average="auto",
        sampling="auto",
        max_iter=None,
        tol=CELL_TOLERANCE if cells else None,
        early_stopping=False,
        time_limit=None,
        warm_start=False,
        random_state=0,
        device="cpu",
        verbose=0,
        relevance=None,
    )
