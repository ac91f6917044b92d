"""Random Fourier features phi(x) = sqrt(2/d) cos(nu^T x + omega), E phi(x).phi(z) = k(x, z).

``frequencies`` says how nu and omega are drawn, ``hadamard`` how nu^T x can do without a product.
Convention: there are f <= d frequencies, and feature j has the frequency j mod f.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from asset_svm.arrays import Array, Matrix
from asset_svm.features.base import CentredMap, centred_values
from asset_svm.features.frequencies import DRAWS, TURN
from asset_svm.features.metric import FEWEST_ROWS, METRIC_DIRECTIONS, Metric
from asset_svm.kernels import Kernel
from asset_svm.numerics.elementwise import scaled_cosines
from asset_svm.numerics.padding import padded_columns
from asset_svm.numerics.products import csr_times


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

    def turns(self, dtype: npt.DTypeLike) -> Callable[[Matrix], Array]:
        """A function from a block of rows to its (rows, at least f) numbers nu^T x / 2 pi."""
        raise NotImplementedError

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
        turns, phases, f = self.turns(dtype), self.phases / TURN, self.n_frequencies
        amplitude, d = float(np.sqrt(2.0 / self.dimension)), self.dimension

        def phi(X: Matrix) -> Array:
            angles = turns(X.astype(dtype, copy=False))
            if f < d:
                once, angles = angles, np.empty((X.shape[0], d), dtype=dtype)
                for start in range(0, d, f):
                    angles[:, start : start + f] = once[:, : min(f, d - start)]
            return scaled_cosines(angles, phases, amplitude)

        return phi

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

    def turns(self, dtype: npt.DTypeLike) -> Callable[[Matrix], Array]:
        """The function x -> x frequencies / 2 pi."""
        frequencies = padded_columns(self.frequencies / TURN, dtype)
        return lambda X: csr_times(X, frequencies) if sp.issparse(X) else X @ frequencies
