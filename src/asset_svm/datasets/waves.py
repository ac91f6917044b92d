"""Waves: any number of made rows, whose least possible error is known.

    x_j = size_j u_j,  u_j uniform in [-1, 1),  size_j = max(2^(-j), 0.01),  j = 0..19
    f(x) = sum over 12 waves of sin(w x + phase)
    y = sign f(x), the other one with probability ``noise``

So sign f is the best classifier there is, and its error, Bayes's, is the noise. A few columns tell much
and many little, as after a principal component analysis; the waves are the same in all sets.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from asset_svm.arrays import Array
from asset_svm.data.source import Block, RowSource

N_FEATURES = 20
SIZES = np.maximum(0.5 ** np.arange(N_FEATURES), 0.01)
N_WAVES = 12
BLOCK_ROWS = 32_768
"""Rows that are made from one seed: what a row is depends on its place alone."""


def _waves() -> tuple[Array, Array]:
    rng = np.random.default_rng(20)
    w = rng.normal(0.0, 3.0, size=(N_FEATURES, N_WAVES))
    return w.astype(np.float32), rng.uniform(0.0, 2 * np.pi, size=N_WAVES).astype(np.float32)


W, PHASES = _waves()


def wave_function(X: Array) -> Array:
    """f of rows; the best guess of their classes is its sign."""
    return np.asarray(np.sin(X @ W + PHASES).sum(axis=1))


class WaveRows(RowSource):
    """Made rows, in constant memory.

    Attributes
    ----------
    bayes_error : float
        The least error that a classifier can have.
    """

    def __init__(self, n_rows: int, noise: float, seed: int):
        self.name, self.noise, self.seed = "waves", noise, seed
        self.n_rows, self.n_features = n_rows, N_FEATURES
        self.feature_names = tuple(f"x{j}" for j in range(N_FEATURES))
        self.n_segments = -(-n_rows // BLOCK_ROWS)
        self.bayes_error = noise

    def _read(self, order: Array | None) -> Iterator[Block]:
        numbers = range(self.n_segments or 0) if order is None else order.tolist()
        for number in numbers:
            yield self._block(number)

    def _block(self, number: int) -> Block:
        assert self.n_rows is not None
        rng = np.random.default_rng([self.seed, 9, number])
        X = rng.random((BLOCK_ROWS, N_FEATURES), dtype=np.float32)
        X *= 2.0
        X -= 1.0
        X *= SIZES.astype(np.float32)
        flipped = rng.random(BLOCK_ROWS) < self.noise
        f = np.concatenate([wave_function(part) for part in np.array_split(X, 8)])
        y = np.where((f > 0.0) != flipped, 1, -1).astype(np.int8)
        count = min(BLOCK_ROWS, self.n_rows - number * BLOCK_ROWS)
        return Block(X[:count], y[:count])


def make_waves(n_rows: int, *, noise: float = 0.05, seed: int = 0) -> WaveRows:
    """Any number of made rows of 20 columns and two classes, whose least possible error is known.

    Parameters
    ----------
    n_rows : int
        They are made as they are read, in memory that does not grow with them. The first rows of many
        are those of few.
    noise : float, default=0.05
        The share of labels that are wrong, below 1/2: the least error that a classifier can have,
        ``bayes_error``.
    seed : int, default=0
        Of the rows; another one makes other rows of the same problem, for a test.

    Returns
    -------
    source : RowSource
        For ``fit``, ``write_rows``, or ``read()``, which has all of them in memory.

    Examples
    --------
    >>> from asset_svm.datasets import make_waves
    >>> make_waves(1000).read().X.shape
    (1000, 20)
    """
    if n_rows < 1:
        raise ValueError(f"n_rows={n_rows}: a set has at least one row.")
    if not 0.0 <= noise < 0.5:
        raise ValueError(f"noise={noise}: the share of wrong labels is from 0 to below 1/2.")
    return WaveRows(int(n_rows), float(noise), int(seed))
