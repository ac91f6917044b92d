"""Quick fits on mapped rows, the rows that judge them, and the outer products of their gradients.

A quick fit has settings of its own, and targets in units of their standard deviation: what is learnt
from it depends on the rows, the targets and the kernel, and on none of gamma, C and epsilon. Its rows
are in single precision and in units of their spread, and columns far from 0 are centred.
The rows that judge are in two parts: one chooses among fits, and the other says, once, whether the
chosen one is worth anything.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp

from asset_svm import clock
from asset_svm.arrays import Array, Matrix
from asset_svm.backends.cpu import CpuBackend
from asset_svm.families.base import DecisionFunction
from asset_svm.families.cells import Cells
from asset_svm.families.epochs import Epochs
from asset_svm.families.observing import Nobody
from asset_svm.families.one_map.maps import draw_map
from asset_svm.families.one_map.trial import some_of, trial
from asset_svm.families.rows import Rows
from asset_svm.features.relevance import Moments, Relevance, leading_directions
from asset_svm.kernels import Argument, formula_type
from asset_svm.settings import Settings
from asset_svm.tasks import Task
from asset_svm.threads.blocks import map_in_blocks

Shape = Literal["columns", "directions"]

LANDMARKS, COARSE = 512, 2
"""The landmarks of a quick fit on one map, and the part of them that tells bandwidths apart."""
QUICK_C = 100.0
"""Its C; a smaller one was worse on every set."""
QUICK = Epochs(least=3, steps=30_000)
"""Its epochs."""
CELL_C = 10.0
"""The C of a quick fit in cells."""
CELL_TOLERANCE = 0.1
"""The part of its objective to which a cell is solved: gradients need no more."""
GRADIENTS = 40_000
"""Rows times outputs whose gradients make M; the rows lie between the next two."""
FEWEST_GRADIENTS, MOST_GRADIENTS = 500, 4_000
MOST_PARTIAL = 8_000_000
"""Entries of all gradients together: of very many columns there are fewer rows."""
GRADIENT_BYTES = 32 << 20
"""The bytes of gradients that are there at a time."""
FAR = 10.0
"""Deviations from 0: a column whose mean is further away is centred."""
SINGLE = np.dtype(np.float32)
TINY = np.finfo(np.float64).tiny


def is_absolute(settings: Settings) -> bool:
    """Whether the kernel is one of |x - z|_1, which has no directions but its columns."""
    return formula_type(settings.map.kernel).argument is Argument.ABSOLUTE_DISTANCE


@dataclass(frozen=True, eq=False, kw_only=True)
class QuickFit:
    """A quick fit, and what the rows that judge say of it.

    Parameters
    ----------
    shape : str or None
        The shape of the map; None where rows are as they are.
    round : int
        The round; 0 is standardised columns, or rows as they are.
    relevance : Relevance or None
        The map; None where rows are as they are.
    made_of : array or None
        The M that the map was made of; None where it was made of none.
    decision : DecisionFunction
    X : matrix
        The mapped rows that the fit has seen, in units of their spread.
    losses : array
        The smoothed losses of the rows that judge.
    loss : float
        The mean of those of the part that chooses.
    score : float
        What scikit-learn calls the score, of the same rows.
    error : float
        The mean of what the other part adds to the error that users look at.
    factor : float
        How much narrower than the spread of the rows the kernel is, of squared distances.
    cells : bool
        Whether the fit has cells.
    seconds : float
    """

    shape: Shape | None
    round: int
    relevance: Relevance | None
    made_of: Array | None
    decision: DecisionFunction
    X: Matrix
    losses: Array
    loss: float
    score: float
    error: float
    factor: float
    cells: bool
    seconds: float

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
class Judged:
    """Rows to learn the relevance from, and rows that judge it.

    Parameters
    ----------
    settings : Settings
        Those of the model; the kernel is theirs.
    whole : Task
        The task of the model.
    learning, judging : Rows
    last : int
        So many of the rows that judge, from the end, have no part in any choice but the last.
    seed : int
    cells : bool
        Whether quick fits have cells.
    landmarks : int, optional
        Those of a quick fit on one map, where they are fewer than ``LANDMARKS``.
    """

    settings: Settings
    whole: Task
    learning: Rows
    judging: Rows
    last: int
    seed: int
    cells: bool = False
    landmarks: int | None = None

    def of(self, count: int) -> Judged:
        """The same with at most so many rows to learn from."""
        if len(self.learning.y) <= count:
            return self
        rows = some_of(len(self.learning.y), count, np.random.default_rng([self.seed, 14]))
        return replace(self, learning=self.learning.take(rows))

    def coarse(self, count: int) -> Judged:
        """The same with at most so many rows, and fewer landmarks: enough to compare bandwidths by."""
        return replace(self.of(count), landmarks=LANDMARKS // COARSE)

    # What the rows tell -------------------------------------------------------------------------

    @cached_property
    def moments(self) -> Moments:
        """The moments of the columns."""
        return Moments.of(self.learning.X, self.learning.weight, absolute=is_absolute(self.settings))

    @cached_property
    def targets(self) -> tuple[Task, Array, Array]:
        """The task of quick fits, and the targets to learn from and to judge by."""
        rows, out = self.learning, self.judging
        y = np.concatenate([rows.y, out.y])
        weight = np.concatenate([rows.weight, np.zeros(len(out.y))])  # those that judge settle nothing
        task, y = self.whole.standardised(y, weight)
        return task, y[: len(rows.y)], y[len(rows.y) :]

    @cached_property
    def choosing(self) -> Array:
        """The weights of the rows that judge, those that choose; they add up to 1."""
        weight = np.array(self.judging.weight)
        weight[len(weight) - self.last :] = 0.0
        return np.asarray(weight / weight.sum())

    @cached_property
    def deciding(self) -> Array:
        """The weights of the others, which say at the end whether the choice is worth anything."""
        weight = np.array(self.judging.weight)
        weight[: len(weight) - self.last] = 0.0
        return np.asarray(weight / weight.sum()) if self.last else self.choosing

    @cached_property
    def unit(self) -> float:
        """The length by which mapped rows are measured: the square root of their spread, or it."""
        spread = self.moments.spread
        return (spread if self.moments.absolute else spread**0.5) or 1.0

    @cached_property
    def standardised(self) -> tuple[Array, Array]:
        """The rows to learn from and to judge by, dense ones, with standardised columns."""
        return self._standardised(self.learning.X), self._standardised(self.judging.X)

    def _standardised(self, X: Array) -> Array:
        """Dense rows with columns of deviation 1 in single precision; one of a single value is 0."""
        deviation, mean = self.moments.deviation, self.moments.mean
        # Zeros of columns that lie about 0 stay zeros, which products of many of them make use of.
        mean = np.where(np.abs(mean) > FAR * deviation, mean, 0.0)
        inverse = np.where(deviation > 0.0, 1.0, 0.0) / np.maximum(deviation, TINY)
        return map_in_blocks(
            lambda block: (block - mean) * inverse, X, len(mean), SINGLE, reentrant=True
        )

    @cached_property
    def some_standardised(self) -> Array:
        """Some rows Z of standardised columns, Z^T Z their covariance: directions are scaled by it."""
        rows = self.learning
        index = some_of(len(rows.y), MOST_GRADIENTS, np.random.default_rng([self.seed, 13]))
        share = rows.weight[index] / rows.weight[index].sum()
        if sp.issparse(rows.X):
            Z = self._standardised(rows.X[index].toarray())
        else:
            Z = self.standardised[0][index]
        return np.asarray((Z - share @ Z) * np.sqrt(share)[:, None])

    def mapped(self, relevance: Relevance | None) -> tuple[Matrix, Matrix]:
        """The rows of a quick fit, to learn from and to judge by, in units of their spread."""
        if sp.issparse(self.learning.X):
            parts = self.learning.X, self.judging.X
            if relevance is not None:
                parts = relevance(parts[0]), relevance(parts[1])
            return (parts[0] / self.unit).astype(SINGLE), (parts[1] / self.unit).astype(SINGLE)
        deviation = self.moments.deviation / self.unit
        weights = deviation if relevance is None else relevance.weights * deviation
        scaled = Relevance(weights, None, 1.0)
        return scaled(self.standardised[0]), scaled(self.standardised[1])

    # Fits ---------------------------------------------------------------------------------------

    def fit(
        self,
        shape: Shape | None,
        number: int,
        relevance: Relevance | None,
        factor: float,
        made_of: Array | None = None,
    ) -> QuickFit:
        """A quick fit on mapped rows, whose squared distances are measured by their spread / factor."""
        begun, backend = clock.now(), CpuBackend()
        task, y, y_out = self.targets
        X, X_out = self.mapped(relevance)
        weight = self.learning.weight / self.learning.weight.mean()
        rows = replace(self.learning, X=X, y=y, weight=weight)
        gamma = formula_type(self.settings.map.kernel).gamma_of(1.0 / factor)
        settings = quick_settings(self.settings, gamma, self.landmarks or LANDMARKS, cells=self.cells)
        decision: DecisionFunction
        if self.cells:
            decision = Cells().fit(settings, task, rows, begun, Nobody()).fitted.decision
        else:
            phi = draw_map(settings, backend, X, rows.uneven, self.seed)
            lam = 1.0 / (QUICK_C * len(y))
            decision = trial(settings, backend, phi, rows, task.encode(y), lam, self.seed, QUICK)
        decisions = decision(X_out)
        losses = task.soft_losses(decisions, y_out)
        return QuickFit(
            shape=shape,
            round=number,
            relevance=relevance,
            made_of=made_of,
            decision=decision,
            X=X,
            losses=losses,
            loss=float(self.choosing @ losses),
            score=task.score(decisions, y_out, self.choosing),
            error=float(self.deciding @ task.row_losses(decisions, y_out)),
            factor=factor,
            cells=self.cells,
            seconds=clock.now() - begun,
        )

    # Gradients ----------------------------------------------------------------------------------

    def outer_product(self, fit: QuickFit, *, full: bool) -> Array:
        """M of a fit, by standardised columns; its diagonal where not ``full``.

        Outputs are divided by their spread, and rows count by their weight.
        """
        task = self.targets[0]
        n, deviation = len(self.moments.deviation), self.moments.deviation / self.unit
        most = min(GRADIENTS // task.n_models, len(self.learning.y) // 4, MOST_GRADIENTS)
        most = min(most, MOST_PARTIAL // (n * task.n_models))
        count = max(most, FEWEST_GRADIENTS)
        index = some_of(len(self.learning.y), count, np.random.default_rng([self.seed, 12, fit.round]))
        X, weight = fit.X[index], self.learning.weight[index] / self.learning.weight[index].sum()
        decisions = fit.decision(X)
        spread = np.sqrt(weight @ (decisions - weight @ decisions) ** 2)
        units = np.where(spread > 0.0, 1.0, 0.0) / np.maximum(spread, TINY)
        total = np.zeros((n, n) if full else n)
        step = max(GRADIENT_BYTES // (8 * n * task.n_models), 1)
        for start in range(0, len(index), step):
            block = slice(start, start + step)
            G = fit.decision.gradients(X[block])
            if fit.relevance is not None:
                G = fit.relevance.back(G)
            G = G * (units[:, None] * deviation)
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
            return self.moments.scaled(leading_directions(M, 0.5), self.some_standardised)
        power = 0.8 if self.moments.absolute else 0.5
        return self.moments.scaled((diagonal / largest) ** power)


def quick_settings(settings: Settings, gamma: float, landmarks: int, *, cells: bool) -> Settings:
    """The settings of a quick fit with the kernel of these, on one map or in cells."""
    return settings.changed(
        gamma=gamma,
        C=CELL_C,
        lam=None,
        n_components=landmarks,
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
