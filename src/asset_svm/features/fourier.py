"""Random Fourier features phi(x) = sqrt(2/d) cos(nu^T x + omega), E phi(x).phi(z) = k(x, z).

``frequencies`` says how nu and omega are drawn, ``hadamard`` how nu^T x can do without a product.
Convention: there are f <= d frequencies, and feature j has the frequency j mod f.

Densities with heavy tails, of the laplacian and the exponential kernel above all, have a few
frequencies that are hundreds of times as long as most: float32 leaves their products few digits, or
none, behind the point, which is all that a cosine sees. With float32 rows these are computed in
float64, and reduced to less than a turn.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from asset_svm.arrays import Array, Matrix
from asset_svm.features.base import CentredMap, centred_values
from asset_svm.features.frequencies import DRAWS, TURN
from asset_svm.features.metric import FEWEST_ROWS, METRIC_DIRECTIONS, Metric
from asset_svm.kernels import Kernel
from asset_svm.kernels.gradients import in_pieces
from asset_svm.numerics.elementwise import put_parts_of_turns, scaled_cosines
from asset_svm.numerics.padding import padded_columns
from asset_svm.numerics.products import csr_times
from asset_svm.numerics.row_products import product

LONG = 16.0
"""Times the median length: longer frequencies are multiplied in float64. None of the Gaussian's is, 3 %
of the exponential's are."""


@dataclass(frozen=True, eq=False)
class CosineFeatures(CentredMap):
    """phi(x) = sqrt(2/d) cos(nu^T x + phases); subclasses supply nu^T x.

    Parameters
    ----------
    phases : array of shape (d,), float64
        omega.
    centre : array of shape (d,) or None
        Taken off every phi(x), where an intercept is free: the mean over a sample of rows.
    """

    phases: Array
    centre: Array | None = field(default=None, kw_only=True)

    def centred(self, X: Matrix) -> Self:
        """The map less its mean over these rows."""
        return replace(self, centre=self(X).mean(axis=0, dtype=np.float64))

    @property
    def n_features_in(self) -> int:
        """The length n of x."""
        raise NotImplementedError

    @property
    def n_frequencies(self) -> int:
        """The number f of frequencies."""
        raise NotImplementedError

    @property
    def lengths(self) -> Array:
        """The lengths of the f frequencies."""
        raise NotImplementedError

    def columns(self, which: Array) -> Array:
        """The frequencies of these numbers, (n, count)."""
        raise NotImplementedError

    def turns(self, dtype: npt.DTypeLike) -> Callable[[Matrix], Array]:
        """A function from a block of rows to its (rows, at least f) numbers nu^T x / 2 pi."""
        raise NotImplementedError

    def long_frequencies(self) -> tuple[Array, Array]:
        """The numbers of frequencies that float32 is too short for, and nu / 2 pi, (n, count)."""
        lengths = self.lengths
        which = np.flatnonzero(lengths > LONG * np.median(lengths))
        return which, self.columns(which) / TURN

    def _whole_turns(self, dtype: npt.DTypeLike) -> Callable[[Matrix], Array]:
        """``turns``, those of long frequencies from products in float64, less whole turns."""
        turns = self.turns(dtype)
        if np.dtype(dtype) == np.float64:
            return turns
        long, frequencies = self.long_frequencies()
        if len(long) == 0:
            return turns
        matrix = padded_columns(frequencies, np.float64)

        def reduced(X: Matrix) -> Array:
            found = turns(X)
            exact = csr_times(X, matrix) if sp.issparse(X) else product(X, matrix)
            put_parts_of_turns(exact, long, found)
            return found

        return reduced

    @property
    def dimension(self) -> int:
        """The number d of features."""
        return len(self.phases)

    @property
    def basis_dimension(self) -> int:
        """The number of basis values: d, phi is its own basis."""
        return self.dimension

    def basis(self, dtype: npt.DTypeLike) -> Callable[[Matrix], Array]:
        """The function x -> phi(x) for rows of this type."""
        if self.centre is not None:
            return centred_values(self.plain.basis(dtype), self.centre.astype(dtype))
        turns, phases, f = self._whole_turns(dtype), self.phases / TURN, self.n_frequencies
        amplitude, d = float(np.sqrt(2.0 / self.dimension)), self.dimension

        def phi(X: Matrix) -> Array:
            angles = turns(X.astype(dtype, copy=False))
            if f < d:
                once, angles = angles, np.empty((X.shape[0], d), dtype=dtype)
                for start in range(0, d, f):
                    angles[:, start : start + f] = once[:, : min(f, d - start)]
            return scaled_cosines(angles, phases, amplitude)

        return phi

    def gradients(self: Any, weights: Array) -> Callable[[Matrix], Array]:
        """The function from rows to the (rows, K, n) gradients of sums with (K, d) weights.

        That is -sqrt(2/d) sum_j weights_kj sin(nu_j^T x + omega_j) nu_j, in float64.
        """
        n, f, d = self.n_features_in, self.n_frequencies, self.dimension
        turns, phases = self.turns(np.float64), self.phases
        by = np.ascontiguousarray(self.frequencies.T)
        weights = -np.sqrt(2.0 / d) * np.asarray(weights, dtype=np.float64)
        K = len(weights)

        def at(X: Array, out: Array) -> None:
            angles = turns(X)[:, :f] * TURN
            W = np.zeros((len(X), K, f))
            for start in range(0, d, f):
                part = slice(start, min(start + f, d))
                sines = np.sin(angles[:, : part.stop - start] + phases[part])
                W[:, :, : part.stop - start] += sines[:, None, :] * weights[:, part]
            np.matmul(W.reshape(len(X) * K, f), by, out=out.reshape(len(X) * K, n))

        return lambda X: in_pieces(at, X, (K, n), K * max(f, n))

    def find_metric(self, V: Array, weight: Array | None, rng: np.random.Generator) -> Metric:
        """The metric along the sample's top directions: the columns are alike."""
        if len(V) < FEWEST_ROWS:
            metric = Metric.identity(self.dimension)
        else:
            metric = Metric.of_directions(V, METRIC_DIRECTIONS, rng, weight)
        return metric if self.centre is None else metric.beside_intercept(V, weight)

    @property
    def reentrant(self) -> bool:
        """Threads may always evaluate it side by side."""
        return True

    def lift(self, dtype: npt.DTypeLike) -> Callable[[Array], Array]:
        """phi is its own basis."""
        return lambda V: V

    def decision_weights(self, coef: Array) -> Array:
        """The coefficients of phi themselves."""
        return np.asarray(coef, dtype=np.float64)

    @property
    def plain(self) -> Self:
        """The map without its centre."""
        return self if self.centre is None else replace(self, centre=None)


@dataclass(frozen=True, eq=False)
class FourierFeatures(CosineFeatures):
    """Frequencies of any kind: a matrix product, 2 n f operations a row.

    Parameters
    ----------
    frequencies : array of shape (n, f), float64
        The columns nu_1, ..., nu_f.
    """

    frequencies: Array

    @classmethod
    def sample(
        cls,
        kernel: Kernel,
        n_features_in: int,
        dimension: int,
        rng: np.random.Generator,
        kind: str = "iid",
    ) -> FourierFeatures:
        """Draw nu from the spectral density of ``kernel``, and omega; ``kind`` of ``DRAWS``."""
        frequencies, phases = DRAWS[kind](kernel, n_features_in, dimension, rng)
        return cls(phases, frequencies)

    @property
    def n_features_in(self) -> int:
        """The length n of x."""
        return int(self.frequencies.shape[0])

    @property
    def n_frequencies(self) -> int:
        """The number f of frequencies."""
        return int(self.frequencies.shape[1])

    @property
    def lengths(self) -> Array:
        """The lengths of the f frequencies."""
        return np.asarray(np.linalg.norm(self.frequencies, axis=0))

    def columns(self, which: Array) -> Array:
        """The frequencies of these numbers, (n, count)."""
        return np.asarray(self.frequencies[:, which])

    def turns(self, dtype: npt.DTypeLike) -> Callable[[Matrix], Array]:
        """The function x -> x frequencies / 2 pi."""
        frequencies = padded_columns(self.frequencies / TURN, dtype)
        return lambda X: csr_times(X, frequencies) if sp.issparse(X) else product(X, frequencies)
