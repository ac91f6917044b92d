"""What the fits learn from: rows made from fixed seeds, and small sets that scikit-learn brings."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits

NEW = 200
"""Rows that are held out, at most."""


@dataclass(frozen=True, eq=False)
class Problem:
    """Rows, their targets, uneven weights of them, and rows that no fit has seen."""

    X: Any
    y: np.ndarray
    weight: np.ndarray
    X_new: Any

    @classmethod
    def split(cls, X: Any, y: np.ndarray, seed: int) -> Problem:
        """The last rows are held out."""
        m = X.shape[0] - min(NEW, X.shape[0] // 4)
        weight = np.random.default_rng([seed, 1]).uniform(0.2, 3.0, size=m)
        parts = [X[:m], y[:m], weight, X[m:]]
        for part in parts:
            for array in (part.data, part.indices, part.indptr) if sp.issparse(part) else (part,):
                array.setflags(write=False)
        return cls(*parts)

    def first(self, m: int) -> Problem:
        """The same with fewer rows to learn from."""
        return replace(self, X=self.X[:m], y=self.y[:m], weight=self.weight[:m])

    def sorted(self) -> Problem:
        """The same rows, ordered by their targets."""
        order = np.argsort(self.y, kind="stable")
        return replace(self, X=self.X[order], y=self.y[order], weight=self.weight[order])


def _curved(m: int, n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows, and a noisy function of them that no plane separates."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(m, n))
    return X, np.sin(2.0 * X[:, 0]) + X[:, 1] ** 2 - 0.8 + 0.3 * rng.normal(size=m)


@cache
def two_classes() -> Problem:
    """Of float64, some of them mislabelled."""
    X, value = _curved(1100, 4, 0)
    return Problem.split(X, np.where(value > 0.0, 1, -1), 0)


@cache
def crowd() -> Problem:
    """So many rows of float32 that short runs are led, and that gammas race."""
    X, value = _curved(9400, 5, 1)
    return Problem.split(X.astype(np.float32), (value > 0.0).astype(int), 1)


@cache
def four_classes() -> Problem:
    """Of float32, with words for labels."""
    X, value = _curved(1300, 5, 2)
    code = (value > 0.0).astype(int) + 2 * (X[:, 2] + 0.5 * X[:, 3] > 0.3)
    return Problem.split(X.astype(np.float32), np.array(["ash", "birch", "elm", "oak"])[code], 2)


@cache
def islands() -> Problem:
    """Eight clusters far from each other, most of one class alone."""
    rng = np.random.default_rng(9)
    place = rng.integers(8, size=900)
    X = 8.0 * rng.normal(size=(8, 3))[place] + rng.normal(size=(900, 3))
    return Problem.split(X, np.where(place < 6, place % 2, X[:, 0] > X[:, 1]).astype(int), 9)


@cache
def digits() -> Problem:
    """Ten classes of 64 columns, half of whose entries are 0."""
    X, y = load_digits(return_X_y=True)
    return Problem.split((X[:1400] / 16.0).astype(np.float32), y[:1400], 3)


@cache
def cancer() -> Problem:
    """569 rows of 30 columns that go together; standardised."""
    X, y = load_breast_cancer(return_X_y=True)
    return Problem.split((X - X.mean(axis=0)) / X.std(axis=0), y, 4)


@cache
def diabetes() -> Problem:
    """A regression of 442 rows; standardised."""
    X, y = load_diabetes(return_X_y=True)
    return Problem.split(X / X.std(axis=0), (y - y.mean()) / y.std(), 5)


@cache
def waves() -> Problem:
    """A regression of float64 whose targets are far from 0."""
    X, value = _curved(1100, 3, 6)
    return Problem.split(X, 5.0 + value, 6)


@cache
def waves32() -> Problem:
    """A regression of float32."""
    X, value = _curved(1500, 3, 7)
    return Problem.split(X.astype(np.float32), value.astype(np.float32), 7)


@cache
def words() -> Problem:
    """CSR rows of float32: 400 columns, of which a row has some twelve."""
    rng = np.random.default_rng(8)
    X = sp.random(1200, 400, 0.03, format="csr", random_state=8, dtype=np.float64)
    value = X @ rng.normal(size=400) + 0.1 * rng.normal(size=1200)
    return Problem.split(sp.csr_matrix(X, dtype=np.float32), (value > 0.0).astype(int), 8)


@cache
def wide_words() -> Problem:
    """The same as dense rows."""
    return replace(words(), X=words().X.toarray(), X_new=words().X_new.toarray())


@cache
def words64() -> Problem:
    """The same in float64, with real targets."""
    sparse = words()
    value = np.asarray(sparse.X.sum(axis=1), dtype=np.float64).ravel() - 5.0 + sparse.y
    return replace(
        sparse, X=sparse.X.astype(np.float64), y=value, X_new=sparse.X_new.astype(np.float64)
    )
