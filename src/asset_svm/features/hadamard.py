"""Structured Fourier features: nu^T x by fast Walsh-Hadamard transforms.

In blocks of p = 2^k >= n frequencies, with H the Hadamard matrix of order p and D_i random signs,

    (nu_1 ... nu_p)^T x = diag(l) p^(-3/2) H D_3 H D_2 H D_1 (x, 0)

The matrix is orthogonal up to the lengths l, those of the spectral density in p columns, and its
directions are uniform nearly, the better the larger p: 3 p log2 p additions a row and block, where a
product takes 2 n p.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from asset_svm.arrays import Array, Matrix
from asset_svm.features.fourier import CosineFeatures
from asset_svm.features.frequencies import TURN, paired_phases, spectral_density
from asset_svm.kernels import Kernel
from asset_svm.numerics.hadamard import project_dense, project_sparse

SMALLEST_ORDER = 64
"""The least order of H: sums of few signs are far from normal. With p = n = 8 (abalone) the kernel's
error did not fall below 10 %, however many the features."""

AT_A_TIME = 256
"""Columns whose part in the frequencies is computed at a time."""


@dataclass(frozen=True, eq=False)
class HadamardFeatures(CosineFeatures):
    """Fourier features of a rotation invariant density, whose frequencies are never formed.

    Parameters
    ----------
    signs : array of shape (blocks, 3, p), int8
        The diagonals of D_1, D_2, D_3.
    scales : array of shape (f,), float64
        l_j p^(-3/2).
    n_columns : int
        n <= p.
    """

    signs: Array
    scales: Array
    n_columns: int

    @classmethod
    def sample(
        cls, kernel: Kernel, n_features_in: int, dimension: int, rng: np.random.Generator
    ) -> HadamardFeatures:
        """Draw signs, lengths and phases."""
        density = spectral_density(kernel, rotation_invariant="hadamard")
        count, phases = paired_phases(dimension, rng)
        p = max(1 << (n_features_in - 1).bit_length(), SMALLEST_ORDER)
        signs = (2 * rng.integers(0, 2, size=(-(-count // p), 3, p)) - 1).astype(np.int8)
        lengths = density.lengths(p, count, rng)
        return cls(phases, signs, lengths * float(p) ** -1.5, n_features_in)

    @property
    def n_features_in(self) -> int:
        """The length n of x."""
        return self.n_columns

    @property
    def n_frequencies(self) -> int:
        """The number f of frequencies."""
        return len(self.scales)

    @property
    def frequencies(self) -> Array:
        """The (n, f) columns nu_1, ..., nu_f, made for who wants to see them."""
        return self.columns(np.arange(self.n_frequencies))

    @property
    def lengths(self) -> Array:
        """The lengths of the f frequencies, of which rows with fewer than p columns see a part."""
        return np.asarray(self.scales * float(self.signs.shape[2]) ** 1.5)

    def columns(self, which: Array) -> Array:
        """The frequencies of these numbers, (n, count), from those of some columns at a time."""
        turns, found = self.turns(np.float64), np.empty((self.n_columns, len(which)))
        for start in range(0, self.n_columns, AT_A_TIME):
            count = min(AT_A_TIME, self.n_columns - start)
            unit = np.eye(count, self.n_columns, start)
            found[start : start + count] = TURN * turns(unit)[:, which]
        return found

    def turns(self, dtype: npt.DTypeLike) -> Callable[[Matrix], Array]:
        """The function x -> nu^T x / 2 pi."""
        signs, scales = self.signs.astype(dtype), (self.scales / TURN).astype(dtype)

        def project(X: Matrix) -> Array:
            out = np.empty((X.shape[0], len(scales)), dtype=dtype)
            if sp.issparse(X):
                project_sparse(X.indptr, X.indices, X.data, signs, scales, out)
            else:
                project_dense(X, signs, scales, out)
            return out

        return project
