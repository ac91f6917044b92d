"""Random Fourier features phi(x) = sqrt(2/d) cos(nu^T x + omega), E phi(x).phi(z) = k(x, z).

nu is drawn from the kernel's spectral density, omega uniformly on [0, 2 pi]:

    rbf        exp(-gamma |x - z|^2)     nu ~ N(0, 2 gamma I)   (the density's exponent is n/2)
    laplacian  exp(-gamma |x - z|_1)     nu_q ~ Cauchy(0, gamma), independent
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from asset_svm.features.base import map_in_blocks
from asset_svm.features.metric import FEWEST_ROWS, METRIC_DIRECTIONS, Metric, MetricFeatures
from asset_svm.kernels import Kernel
from asset_svm.numerics.elementwise import scaled_cosines
from asset_svm.numerics.padding import padded_columns
from asset_svm.numerics.rows import sparse_times_dense

Array = npt.NDArray[Any]
Matrix = Any


@dataclass(frozen=True, eq=False)
class FourierFeatures:
    """phi(x) = sqrt(2/d) cos(x frequencies + phases).

    Parameters
    ----------
    frequencies : array of shape (n, d), float64
        The columns nu_1, ..., nu_d.
    phases : array of shape (d,), float64
        omega.
    """

    frequencies: Array
    phases: Array

    @classmethod
    def sample(
        cls, kernel: Kernel, n_features_in: int, dimension: int, rng: np.random.Generator
    ) -> FourierFeatures:
        """Draw nu from the spectral density of ``kernel`` and omega uniformly."""
        shape = (n_features_in, dimension)
        if kernel.name == "rbf":
            frequencies = rng.normal(scale=np.sqrt(2.0 * kernel.gamma), size=shape)
        elif kernel.name == "laplacian":
            frequencies = kernel.gamma * rng.standard_cauchy(size=shape)
        else:
            raise ValueError(
                f"kernel={kernel.name!r} has no spectral density to draw Fourier features from; use "
                "kernel='rbf' or 'laplacian', or the Nystroem approximation."
            )
        return cls(frequencies, rng.uniform(0.0, 2.0 * np.pi, size=dimension))

    @property
    def dimension(self) -> int:
        """d."""
        return int(self.frequencies.shape[1])

    @property
    def n_features_in(self) -> int:
        """n."""
        return int(self.frequencies.shape[0])

    @property
    def basis_dimension(self) -> int:
        """d."""
        return self.dimension

    def basis(self, dtype: npt.DTypeLike) -> Callable[[Matrix], Array]:
        """x -> phi(x)."""
        turn = 2.0 * np.pi
        frequencies, phases = padded_columns(self.frequencies / turn, dtype), self.phases / turn
        amplitude = float(np.sqrt(2.0 / self.dimension))

        def phi(X: Matrix) -> Array:
            rows = X.astype(dtype, copy=False)
            turns = sparse_times_dense(rows, frequencies) if sp.issparse(X) else rows @ frequencies
            return scaled_cosines(np.asarray(turns), phases, amplitude)

        return phi

    def find_metric(self, V: Array, weight: Array | None, rng: np.random.Generator) -> Metric:
        """Along the sample's top directions: the columns are alike."""
        if len(V) < FEWEST_ROWS:
            return Metric.identity(self.dimension)
        return Metric.of_directions(V, METRIC_DIRECTIONS, rng, weight)

    def in_metric(self, metric: Metric) -> MetricFeatures:
        """x -> phi(x) T, 4 d k more operations a row."""
        return MetricFeatures(self, metric)

    @property
    def lift_is_cheap(self) -> bool:
        """There is nothing to do."""
        return True

    @property
    def reentrant(self) -> bool:
        """Always."""
        return True

    def lift(self, dtype: npt.DTypeLike) -> Callable[[Array], Array]:
        """phi is its own basis."""
        return lambda V: V

    def lower(self, dtype: npt.DTypeLike) -> Callable[[Array], Array]:
        """coef -> coef."""
        return lambda coef: coef.astype(dtype, copy=False)

    def decision_weights(self, coef: Array) -> Array:
        """The coefficients of phi themselves."""
        return np.asarray(coef, dtype=np.float64)

    def __call__(self, X: Matrix) -> Array:
        """phi(X), in the type of X."""
        return map_in_blocks(self.basis(X.dtype), X, self.dimension)
