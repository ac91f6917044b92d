"""The Nystroem map phi(x) = k(x, S) P, with P P^T the (pseudo-)inverse of K_SS.

    K_SS = Q D Q^T in float64            s landmarks, D descending
    keep D_ii >= threshold * D_11        or >= threshold (rule "absolute"), or the first ``rank``
    P = Q_(1..d) D_(1..d)^(-1/2)         (s x d)

Where nothing is cut, any P with P P^T = K_SS^(-1) gives the same (PL) up to a rotation, and
P = L^(-T) of the Cholesky factor K_SS = L L^T costs a twentieth of the eigendecomposition.

A centred map takes the mean c = (1/s) sum_j k(z_j, S) off the kernel values, phi(x) = (k(x, S) - c) P,
and has the eigenvectors of the centred K_SS: with a free intercept the problem is the same, and steps
see how rows differ instead of what they have in common, which is nearly all of them where the kernel
is flat or the columns of a linear one lie far from 0. (What is lost is the one direction along which
all landmarks are alike, as the intercept is; the Cholesky route keeps it.)

Conventions: K_SS and its factor are always float64. The default threshold follows the type of the
rows: noise below it would be multiplied by D^(-1/2) until rows have |v|^2 far above k(x, x). That
bound is checked on a sample, and the threshold raised tenfold until it holds. Centred kernel values are
as noisy as they were before: eigenvalues must also exceed the machine precision of the rows times
|K_SS|.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import scipy.linalg as la

from asset_svm.arrays import Array, Matrix
from asset_svm.exceptions import NonFiniteError
from asset_svm.features.base import CentredMap, centred_values, evaluator
from asset_svm.features.diagnostics import trace_error
from asset_svm.features.factors import (
    centred_gram,
    default_threshold,
    descending_eigenpairs,
    inverse_cholesky,
    symmetrise,
)
from asset_svm.features.kernel_basis import KernelBasis
from asset_svm.features.landmarks import Sampler, uniform_landmarks
from asset_svm.features.metric import FEWEST_ROWS, METRIC_DIRECTIONS, Metric
from asset_svm.kernels import Kernel
from asset_svm.numerics.padding import padded_columns
from asset_svm.numerics.row_products import product
from asset_svm.threads.blas import few_threads
from asset_svm.threads.blocks import map_in_blocks

RankRule = Literal["relative", "absolute"]
Basis = Literal["auto", "eigen", "cholesky"]

COMPACT_ERROR = 1e-2
"""Times the spread of decisions: a change of them that a compacted model may not have."""
NORM_TOLERANCE = 1e-3
ROUNDING = 16.0
"""Times k(x, x) and the machine precision: what centring a kernel value may be off by."""
CHECK_ROWS = 256


@dataclass(frozen=True, eq=False)
class NystroemFeatures(CentredMap, KernelBasis):
    """phi(x) = (k(x, components) - centre) projection.

    Parameters
    ----------
    kernel : Kernel
    components : matrix of shape (s, n)
        The landmarks, dense or CSR as the rows they came from.
    projection : array of shape (s, d), float64
    indices : array of shape (s,) or None
        The rows that the landmarks were, None where they were given.
    eigenvalues : array of shape (d,) or None
        The kept D, None on the Cholesky route.
    threshold : float
        The eigenvalue threshold that was applied, relative or absolute as asked.
    trace_error : float or None
        Of the (centred) kernel approximation, on a sample of the rows that the map was drawn for.
    centre : array of shape (s,) or None
        What is taken off kernel values.
    """

    projection: Array
    indices: Array | None = None
    eigenvalues: Array | None = None
    threshold: float = 0.0
    trace_error: float | None = None
    centre: Array | None = field(default=None, kw_only=True)

    @classmethod
    def sample(
        cls,
        X: Matrix,
        kernel: Kernel,
        n_landmarks: int,
        rng: np.random.Generator,
        *,
        weight: Array | None = None,
        sampler: Sampler = uniform_landmarks,
        **options: Any,
    ) -> NystroemFeatures:
        """Draw landmarks for the rows of X; ``options`` as in ``from_landmarks``."""
        chosen = sampler(X, kernel, n_landmarks, rng, weight)
        probe = X[np.sort(rng.choice(X.shape[0], min(CHECK_ROWS, X.shape[0]), replace=False))]
        features = cls.from_landmarks(
            chosen.points, kernel, dtype=X.dtype, indices=chosen.indices, probe=probe, **options
        )
        with few_threads(n_landmarks):
            return cls.measured(features, probe)

    @classmethod
    def measured(cls, features: NystroemFeatures, probe: Matrix) -> NystroemFeatures:
        """The map with its trace error on these rows."""
        return replace(features, trace_error=trace_error(features, features.own_squares, probe))

    @classmethod
    def from_landmarks(
        cls,
        components: Matrix,
        kernel: Kernel,
        *,
        dtype: npt.DTypeLike | None = None,
        rank: int | None = None,
        threshold: float | None = None,
        rule: RankRule = "relative",
        basis: Basis = "auto",
        indices: Array | None = None,
        probe: Matrix | None = None,
        centred: bool = False,
    ) -> NystroemFeatures:
        """Factor K_SS of given landmarks.

        Parameters
        ----------
        dtype : dtype, optional
            The type of the rows to be mapped; by default that of the landmarks.
        rank : int, optional
            Keep at most this many eigenpairs.
        threshold : float, optional
            Keep eigenvalues of at least this, by ``rule`` relative to the largest or absolute.
        basis : {"auto", "eigen", "cholesky"}
            "auto" takes the Cholesky factor where it is certain that nothing is cut.
        probe : matrix, optional
            Rows on which |phi(x)|^2 <= k(x, x) is checked (relative rule only).
        centred : bool
            Whether the mean of the landmarks is taken off; of one landmark nothing would be left.
        """
        dtype = np.dtype(dtype or components.dtype)
        with few_threads(components.shape[0]):
            gram = kernel(components, components)
        kernel.check_values(gram, components)
        if not kernel.is_reentrant:
            gram = np.array(gram)  # a user's function may keep what it returned
        symmetrise(gram)
        if not np.isfinite(gram).all():
            raise NonFiniteError(
                "The kernel matrix of the landmarks is not finite; scale the columns of X "
                "(StandardScaler) or lower gamma."
            )
        floor = default_threshold(dtype) if rule == "relative" else 0.0
        used = max(floor, threshold or 0.0)
        centre = gram.mean(axis=0) if centred and len(gram) > 1 else None
        if rank is None and rule == "relative" and basis != "eigen":
            factor = inverse_cholesky(gram, used)
            if factor is not None:
                return cls(kernel, components, factor, indices, None, used, centre=centre)
        if basis == "cholesky":
            raise ValueError(
                'basis="cholesky" needs a kernel matrix from which nothing is cut; use basis="auto".'
            )
        noise, wide = 0.0, False
        if centre is not None:
            gram, noise, wide = centred_gram(gram, centre, dtype, used)
        values, vectors = descending_eigenpairs(gram, overwrite=True)
        if np.abs(values).max() <= noise:  # every landmark is 0, or all are alike: so is every feature
            nothing = np.zeros((len(values), 1))
            return cls(kernel, components, nothing, indices, np.ones(1), used, centre=centre, wide=wide)
        if values[0] <= default_threshold(np.float64) * np.abs(values).max():
            raise ValueError(
                "The kernel matrix of the landmarks has no positive eigenvalue; the kernel is zero "
                "or negative on this data: choose another kernel, gamma or coef0."
            )
        while True:
            level = max(used * values[0], noise) if rule == "relative" else used
            d = int(np.count_nonzero((values >= level) & (values > 0.0)))
            d = max(1, min(d, rank or d))
            projection = np.ascontiguousarray(vectors[:, :d])
            projection /= np.sqrt(values[:d])
            if centre is not None:  # its columns are orthogonal to 1, but for rounding that counts here
                projection -= projection.mean(axis=0)
            features = cls(
                kernel, components, projection, indices, values[:d], used, centre=centre, wide=wide
            )
            if rule == "absolute" or probe is None or d == 1 or features._norms_hold(probe, dtype):
                return features
            used *= 10.0

    def _norms_hold(self, probe: Matrix, dtype: np.dtype[Any]) -> bool:
        """Whether |phi(x)|^2 <= k(x, x) (1 + 1e-3), which positive semidefinite kernels guarantee."""
        if not self.kernel.positive_definite:
            return True
        rounding = ROUNDING * float(np.finfo(dtype).eps) * self.kernel.diagonal(probe)
        limit = self.own_squares(probe) * (1.0 + NORM_TOLERANCE) + rounding
        with few_threads(self.dimension):
            phi = evaluator(self, dtype)
            v = map_in_blocks(phi, probe, self.dimension, dtype, reentrant=self.reentrant)
            v = v.astype(np.float64)
        return bool((np.einsum("ij,ij->i", v, v) <= limit).all())

    def own_squares(self, X: Matrix) -> Array:
        """k(x, x) of every row, of the centred kernel where the map is centred, in float64."""
        squares = self.kernel.diagonal(X)
        if self.centre is None:
            return squares
        return squares - 2.0 * self.kernel(X, self.components).mean(axis=1) + self.centre.mean()

    def basis(self, dtype: npt.DTypeLike) -> Callable[[Matrix], Array]:
        """The function x -> k(x, S) - centre for rows of this type."""
        values = super().basis(dtype)
        if self.centre is None:
            return values
        if not self.wide:
            return centred_values(values, self.centre.astype(dtype))
        centred = centred_values(values, self.centre)
        return lambda X: centred(X).astype(dtype)

    @property
    def plain(self) -> KernelBasis:
        """The kernel values that decisions are made of."""
        if self.centre is None:
            return self
        return KernelBasis(self.kernel, self.components, wide=self.wide)

    @classmethod
    def own_sampler(cls, sampler: Sampler, X: Matrix) -> Sampler:
        """The sampler, or one that does the same where this class does its work."""
        return sampler

    @property
    def dimension(self) -> int:
        """The number d <= s of features."""
        return int(self.projection.shape[1])

    @property
    def n_features_in(self) -> int:
        """The length n of x."""
        return int(self.components.shape[1])

    @property
    def basis_dimension(self) -> int:
        """The number s of landmarks."""
        return int(self.projection.shape[0])

    def lift(self, dtype: npt.DTypeLike) -> Callable[[Array], Array]:
        """The function k -> k P for values of this type."""
        return _product(self.projection, dtype)

    def lift_in(self, metric: Metric, dtype: npt.DTypeLike) -> Callable[[Array], Array]:
        """The function k -> k P T for values of this type: one product, where T would be two more.

        A diagonal T costs little, and leaves the features rounded as they are without it.
        """
        if metric.directions is None:
            return super().lift_in(metric, dtype)
        return _product(metric.apply(self.projection), dtype)

    def find_metric(self, V: Array, weight: Array | None, rng: np.random.Generator) -> Metric:
        """Along the columns in the eigenbasis of K_SS, else along the sample's top directions.

        D_qq / s, the mean square of column q over the landmarks themselves, is what counts where the
        sample is too small, and the least otherwise: a landmark far from all other rows has a
        direction of its own, in which a sample without it sees nothing, and steps on its row would
        be a thousand times too long (seen on "protein": R2 of -0.09 instead of 0.48).
        """
        if self.eigenvalues is not None and len(V) < FEWEST_ROWS:
            metric = Metric.of_mean_squares(self.eigenvalues)
        elif len(V) < FEWEST_ROWS:
            metric = Metric.identity(self.dimension)
        elif self.eigenvalues is not None:
            metric = Metric.of_columns(V, weight, self.eigenvalues / len(self.projection))
        else:
            metric = Metric.of_directions(V, METRIC_DIRECTIONS, rng, weight)
        return metric if self.centre is None else metric.beside_intercept(V, weight)

    def decision_weights(self, coef: Array) -> Array:
        """alpha_S = P coef = Q D^(-1/2) coef, in float64 (the paper's "Efficient Prediction")."""
        with few_threads(0):
            return np.asarray(coef, dtype=np.float64) @ self.projection.T

    def compact(self, coef: Array) -> tuple[Array, Array]:
        """d of the s landmarks, and weights of their kernel values alone, for the same coef.

        V_D^T alpha_D = coef has a solution for any d independent rows V_D = phi(landmarks D); a
        pivoted QR factorisation chooses well-conditioned ones. The decision function differs from
        phi(x).coef by the approximation phi(x).phi(z) ~ k(x, z) itself: exact where nothing is cut.

        Returns
        -------
        chosen : array of shape (d,)
            Positions among the landmarks.
        weights : array of shape (K, d)
        """
        gram = self.kernel(self.components, self.components)
        if self.centre is not None:  # a centred kernel value needs all landmarks, a plain one does not
            whole = NystroemFeatures.from_landmarks(
                self.components, self.kernel, threshold=self.threshold, basis="eigen"
            )
            all_weights = self.decision_weights(coef)
            chosen, fewer = whole.compact(all_weights @ gram @ whole.projection)
            found, other = all_weights @ gram, fewer @ gram[chosen]
            off = np.abs(found - other).max(axis=1) > COMPACT_ERROR * found.std(axis=1)
            # Beside a large mean the directions that tell rows apart may be cut: keep all landmarks.
            return (np.arange(len(gram)), all_weights) if off.any() else (chosen, fewer)
        rows = gram @ self.projection
        _, _, pivots = la.qr(rows.T, mode="economic", pivoting=True, check_finite=False)
        chosen = np.sort(pivots[: self.dimension])
        weights: Array = la.solve(rows[chosen].T, np.asarray(coef, dtype=np.float64).T).T
        return chosen, weights


def _product(matrix: Array, dtype: npt.DTypeLike) -> Callable[[Array], Array]:
    """The function K -> K matrix for values of this type."""
    padded, d = padded_columns(matrix, dtype), matrix.shape[1]
    return lambda K: product(K, padded)[:, :d]
