"""Rounds that learn the relevance of columns: quick fits, and mean outer products of their gradients.

With f of a quick fit on rows u = T z, z the standardised columns,

    M = mean over rows, sum over outputs of grad f grad f^T, by z, each output in units of its spread
    T = M^(1/2) ("directions"), or its diagonal to the power 1/2 ("columns"; 0.8 for |x - z|_1)

and the next round fits on T z. That is the average gradient outer product of Radhakrishnan, Beaglehole,
Pandit and Belkin (2024). Rows that no quick fit sees judge every round:

    bandwidth   of standardised columns, by few rows: wider or narrower as long as that is better
    rounds      of each shape, as long as each is better than those before it
    choice      the round with the smallest loss; with "auto" rows as they are, unless theirs is larger
                by a part of it and by standard errors of the difference, row by row

Quick fits have settings of their own, and targets in units of their standard deviation: what is learnt
depends on the rows, the targets and the kernel, and on none of gamma, C and epsilon.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp

from asset_svm import clock
from asset_svm.arrays import Array, Matrix
from asset_svm.backends.cpu import CpuBackend
from asset_svm.backends.device import on_host
from asset_svm.families.decision import Decision
from asset_svm.families.epochs import Epochs
from asset_svm.families.observing import logger
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
"""Of a quick fit."""
LEARNING_ROWS, JUDGING_ROWS = 20_000, 5_000
"""Rows that a quick fit sees, and that judge it, where there are more."""
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
MOST_ROUNDS = 5
FACTOR, MOST_FACTORS = 4.0, 3
"""Of squared bandwidths, and how many steps one way are tried."""
GUARD, LEAST_GAIN = 2.0, 0.01
"""Standard errors, and a part of the loss, that rows as they are must be worse by."""
AUTO_COLUMNS = 1024
"""The eigenvectors of more columns take longer than a round: "auto" tries no directions then."""


def learn_relevance(settings: Settings, task: Task, rows: Rows, seed: int) -> Learnt:
    """The relevance of the columns of these rows, by what ``relevance`` asks for."""
    begun = clock.now()
    fewer = NARROWER if rows.X.shape[1] > WIDE else 1
    most = (LEARNING_ROWS + JUDGING_ROWS) // fewer
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
    judged = _Judged(settings, task, rows.take(kept), rows.take(held), seed)
    found = judged.choose(shapes, auto=auto)
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
    decision: Decision
    X: Matrix
    losses: Array
    loss: float
    score: float
    seconds: float
    factor: float

    @property
    def record(self) -> dict[str, Any]:
        """What the history tells of the fit."""
        return {
            "shape": self.shape,
            "round": self.round,
            "validation_score": self.score,
            "validation_loss": self.loss,
            "bandwidth": self.factor**-0.5,
            "rows": self.X.shape[0],
            "seconds": self.seconds,
        }


@dataclass(frozen=True, eq=False)
class _Judged:
    """Rows to learn the relevance from, and rows that judge it."""

    settings: Settings
    whole: Task
    learning: Rows
    judging: Rows
    seed: int

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
        settings = quick_settings(self.settings, gamma)
        phi = draw_map(settings, backend, X, rows.uneven, self.seed)
        lam = 1.0 / (QUICK_C * len(y))
        decision = trial(settings, backend, phi, rows, task.encode(y), lam, self.seed, QUICK)
        decisions = decision(X_out)
        losses, score = task.row_losses(decisions, y_out), task.score(decisions, y_out, self.weight)
        loss = float(self.weight @ losses)
        seconds = clock.now() - begun
        return _Fit(shape, number, relevance, decision, X, losses, loss, score, seconds, c)

    @property
    def smaller(self) -> _Judged:
        """The same with fewer rows to learn from, which tell bandwidths apart."""
        count = len(self.learning.y)
        if count <= 2 * BANDWIDTH_ROWS:
            return self
        rows = some_of(count, BANDWIDTH_ROWS, np.random.default_rng([self.seed, 14]))
        return replace(self, learning=self.learning.take(rows))

    def with_bandwidths(self, relevance: Relevance) -> list[_Fit]:
        """Fits with wider and narrower kernels, as long as they are better; the best comes first."""
        best = self.fit("columns", 0, relevance, 1.0)
        found = [best]
        for factor in (1.0 / FACTOR, FACTOR):
            for _ in range(MOST_FACTORS):
                next_one = self.fit("columns", 0, relevance, best.factor * factor)
                found.append(next_one)
                if next_one.loss >= best.loss:
                    break
                best = next_one
            if best.factor != 1.0:
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

    def choose(self, shapes: Sequence[Shape], *, auto: bool) -> Learnt:
        """The best of all rounds."""
        scaled, smaller = self.moments.standard(), self.smaller
        first, *fits = smaller.with_bandwidths(scaled)
        if smaller is not self:
            fits = [first, *fits]
            first = self.fit("columns", 0, scaled, first.factor)
        fits.append(first)
        plain: _Fit | None = None
        if auto:
            # Rows whose columns have one scale differ from standardised ones in nothing.
            factors = [] if self.moments.alike else sorted({1.0, first.factor})
            others = [self.fit(None, 0, None, factor) for factor in factors]
            plain, fits = min(others, key=lambda fit: fit.loss, default=first), [*fits, *others]
        M = self.outer_product(first, full="directions" in shapes)
        importances = {id(first): M}
        candidates = [first] if auto and not self.moments.alike else []
        for shape in shapes:
            rounds = self.rounds(shape, first, M, importances)
            candidates += rounds
            fits += rounds
        best = min(candidates, key=lambda fit: fit.loss, default=None)
        if best is not None and plain is not None:
            clear = clearly_less(best.losses, plain.losses, self.weight, GUARD)
            worth = clear and best.loss < (1.0 - LEAST_GAIN) * plain.loss
            best = best if worth else None
        relevance = best.relevance if best is not None else None
        if best is None and not auto:  # no gradient to learn from
            best, relevance = first, first.relevance
        by = importances[id(best)] if best is not None else M
        chosen = plain if best is None else best
        history = [{**fit.record, "chosen": fit is chosen} for fit in fits]
        return Learnt(relevance, _shares(by), history)

    def rounds(self, shape: Shape, first: _Fit, M: Array, importances: dict[int, Array]) -> list[_Fit]:
        """Rounds of one shape, as long as each is better than those before it."""
        found: list[_Fit] = []
        least = np.inf
        for number in range(1, MOST_ROUNDS + 1):
            relevance = self.next_map(shape, M)
            if relevance is None:
                break
            fit = self.fit(shape, number, relevance, first.factor)
            importances[id(fit)] = M
            found.append(fit)
            if fit.loss >= least:
                break
            least = fit.loss
            if number < MOST_ROUNDS:
                M = self.outer_product(fit, full=shape == "directions")
        return found


def _shares(M: Array) -> Array:
    """The parts of the columns in the diagonal of M."""
    diagonal = np.diagonal(M) if M.ndim == 2 else M
    total = float(diagonal.sum())
    if not np.isfinite(total) or total <= 0.0:
        return np.full(len(diagonal), 1.0 / len(diagonal))
    return np.asarray(diagonal / total)


def quick_settings(settings: Settings, gamma: float) -> Settings:
    """The settings of a quick fit with the kernel of these."""
    return settings.changed(
        gamma=gamma,
        n_components=LANDMARKS,
        landmarks="uniform",
        rank=None,
        rank_threshold=None,
        rank_rule="relative",
        approximation="nystroem",
        n_cells=None,
        n_partitions=1,
        step="metric",
        step_scale=None,
        free_intercept=True,
        intercept_bound=None,
        average="auto",
        sampling="auto",
        max_iter=None,
        tol=None,
        early_stopping=False,
        time_limit=None,
        warm_start=False,
        device="cpu",
        verbose=0,
        relevance=None,
    )
