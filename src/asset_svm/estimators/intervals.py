"""Intervals around the predictions of a regression: scaled split-conformal prediction.

Some rows are kept out of the fit. With f the model, and s(x) a model of how large |y - f(x)| is at x,
both learnt from the other rows, each of the n rows kept out has a score

    |y - f(x)| / s(x),

and f(x) -+ q s(x), q the ceil((n + 1) coverage)-th smallest score, holds a new y with a probability of
at least ``coverage``, and at most 1 / (n + 1) more without ties, whatever f and s are worth, as long as
the rows are exchangeable (Lei et al. 2018). Where n is too small for a coverage, q is infinite. All of
it happens in the units that the model learns in: where these are logarithms the ends go back by exp.

The probability is one over new rows and the rows kept out, not one for each x.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils import _safe_indexing, check_consistent_length
from sklearn.utils.validation import _num_samples

from asset_svm.arrays import Array
from asset_svm.backends.device import on_card, on_host
from asset_svm.data.source import Block, RowSource
from asset_svm.estimators.inside import encoder_of, fitted_of, settings_of
from asset_svm.estimators.quantiles import AssetQuantileRegressor
from asset_svm.estimators.validation import check_weight
from asset_svm.exceptions import DataError

if TYPE_CHECKING:
    from asset_svm.estimators.regressor import AssetRegressor

SPREAD_ROWS = 20_000
"""Rows that the spread of the errors is learnt from, at most."""
SPREAD_LANDMARKS = 256
FLOOR = 0.1
"""Times the mean |error|: no spread is smaller, or a row that happens to be met would have a score
beyond all others."""


@dataclass(frozen=True, eq=False)
class Intervals:
    """What intervals of any coverage are made of.

    Parameters
    ----------
    spread : AssetQuantileRegressor
        The median of |error| / unit, from rows of numbers.
    unit : float
        The mean |error| of the rows that the model has learnt from.
    scores : array of shape (n,)
        Those of the rows kept out, from the smallest on.
    """

    spread: AssetQuantileRegressor
    unit: float
    scores: Array

    @classmethod
    def of_spread(cls, spread: AssetQuantileRegressor, rows: Any, errors: Array) -> Intervals:
        """Learn the spread of these |errors|, of rows of numbers; no row is kept out yet."""
        unit = float(errors.mean()) or 1.0
        return cls(spread.fit(rows, errors / unit), unit, np.empty(0))

    def widths(self, rows: Any) -> Array:
        """s of these rows of numbers."""
        return self.unit * np.maximum(self.spread.predict(rows), FLOOR)

    def factor(self, coverage: float) -> float:
        """Return q, the ceil((n + 1) coverage)-th smallest score; infinite where n is too small."""
        n = len(self.scores)
        place = math.ceil(round((n + 1) * coverage, 9))
        return float(self.scores[place - 1]) if place <= n else math.inf

    def around(self, rows: Any, decisions: Array, units: Any, coverage: float) -> Array:
        """(rows, 2): the ends of the intervals, in the user's units."""
        reach = self.factor(coverage) * self.widths(rows)
        ends = np.column_stack([decisions - reach, decisions + reach])
        return ends if units is None else np.asarray(units.back(ends))


def fit_with_intervals(model: AssetRegressor, X: Any, y: Any, sample_weight: Any) -> Intervals:
    """Fit a model to some of the rows, and make intervals of the others, as its parameters say."""
    settings = settings_of(model)
    seed, share = settings.draw_seed(), settings.validation_fraction
    if isinstance(X, RowSource):
        kept, out = parted(X, share, seed)
        model._fit_plainly(kept, y, sample_weight)
        return intervals_of_rows(
            model, rows_of_numbers(model, kept).blocks(), rows_of_numbers(model, out).blocks(), seed
        )
    y = on_host(y)
    check_consistent_length(X, y)
    learnt, held = _split(_num_samples(X), share, seed)
    weight = None if sample_weight is None else check_weight(on_host(sample_weight), y)
    if weight is not None and not weight[learnt].any():
        raise ValueError(
            f"intervals=True keeps {len(held)} of n_samples={len(weight)} rows out, among them all of "
            "positive weight; give more rows a weight, or set intervals=False."
        )
    model._fit_plainly(
        _taken(X, learnt), _safe_indexing(y, learnt), None if weight is None else weight[learnt]
    )
    if weight is not None:  # a row of weight 0 is none
        learnt, held = learnt[weight[learnt] > 0.0], held[weight[held] > 0.0]
    some = np.sort(np.random.default_rng([seed, 8]).permutation(learnt)[:SPREAD_ROWS])
    blocks = [
        Block(numbers_of(model, _taken(X, rows)), np.asarray(_safe_indexing(y, rows)).ravel())
        for rows in (some, held)
        if len(rows)
    ]
    return intervals_of_rows(model, blocks[:1], blocks[1:], seed)


def parted(source: RowSource, share: float, seed: int) -> tuple[RowSource, RowSource]:
    """The rows of a source but about this share of them, and these, drawn at random."""
    if not source.rereadable:
        raise DataError(
            f"intervals=True reads rows twice, and {source.name} can be read only once; save it to a "
            "file first."
        )
    return source.part(share, seed, kept=True), source.part(share, seed, kept=False)


def intervals_of_rows(
    model: AssetRegressor, learnt: Iterable[Block], held: Iterable[Block], seed: int
) -> Intervals:
    """The intervals of a fitted model, from rows of numbers that it has learnt from, and others.

    Where the former are many the spread is learnt from some of them.
    """
    sample = _Sample(seed)
    for block in learnt:
        sample.add(Block(block.X, _errors(model, block)))
    some = sample.take()
    assert some.y is not None
    found = Intervals.of_spread(_spread_of(model, seed, len(some)), some.X, some.y)
    scores = [_errors(model, block) / found.widths(block.X) for block in held]
    return Intervals(found.spread, found.unit, np.sort(np.concatenate([np.empty(0), *scores])))


def numbers_of(model: AssetRegressor, X: Any) -> Any:
    """The rows of numbers that a model makes of what users pass, on the host."""
    encoder = encoder_of(model)
    return on_host(model._checked(X)) if encoder is None else encoder.rows(X)


def rows_of_numbers(model: AssetRegressor, source: RowSource) -> RowSource:
    """The rows of a source as a model has learnt from them."""
    encoder = encoder_of(model)
    if encoder is None:
        return source.narrowed(model.n_features_in_)
    return source.transformed(encoder.rows, encoder.encoding_.width)


def _errors(model: AssetRegressor, block: Block) -> Array:
    """|y - f| of rows of numbers, in the units that the model learns in."""
    fitted, y = fitted_of(model), np.asarray(block.y, dtype=np.float64)
    y = y if fitted.task.units is None else fitted.task.units.into(y)
    return np.asarray(np.abs(y - fitted.decision(block.X)[:, 0]))


def _spread_of(model: AssetRegressor, seed: int, n_rows: int) -> AssetQuantileRegressor:
    """An estimator of the spread, with the kernel of the model."""
    own = {name: getattr(model, name) for name in ("kernel", "gamma", "degree", "coef0", "n_jobs")}
    return AssetQuantileRegressor(
        quantiles=0.5,
        n_components=min(SPREAD_LANDMARKS, n_rows),
        encoder=None,
        memory_limit=model.memory_limit,
        random_state=seed,
        **own,
    )


def _split(n_rows: int, share: float, seed: int) -> tuple[Array, Array]:
    """The numbers of the rows to learn from, and of those to keep out, in order."""
    count = math.ceil(share * n_rows)
    if count >= n_rows:
        raise ValueError(
            f"intervals=True keeps validation_fraction={share:g} of the rows out, and of n_samples="
            f"{n_rows} none would be left to learn from; give more rows, or set intervals=False."
        )
    order = np.random.default_rng([seed, 7]).permutation(n_rows)
    return np.sort(order[count:]), np.sort(order[:count])


def _taken(X: Any, rows: Array) -> Any:
    return X[rows.tolist()] if on_card(X) else _safe_indexing(X, rows)


class _Sample:
    """Up to ``SPREAD_ROWS`` of the rows that are added, each as likely as any other."""

    def __init__(self, seed: int):
        self.rng, self.keys, self.blocks = np.random.default_rng([seed, 8]), np.empty(0), list[Block]()

    def add(self, block: Block) -> None:
        self.keys = np.concatenate([self.keys, self.rng.random(len(block))])
        self.blocks.append(block)
        if len(self.keys) > 2 * SPREAD_ROWS:
            self.take()

    def take(self) -> Block:
        """The rows so far."""
        kept = np.argsort(self.keys, kind="stable")[:SPREAD_ROWS]
        self.blocks, self.keys = [Block.joined(self.blocks)[kept]], self.keys[kept]
        return self.blocks[0]
