"""The Nystroem map, its landmarks' kernel matrix factored on the card, in float64.

As in ``features.nystroem``: the Cholesky factor where nothing is cut, else the eigendecomposition; that
one only up to ``LARGEST_EIGEN`` landmarks, since it takes forty times as long. With more,
K_SS + threshold D_11 I is factored instead: directions that the threshold would cut are damped, by a
factor of two at the threshold, and |phi(x)|^2 <= k(x, x) holds all the same.

The projection stays on the card, and comes to the host when somebody asks for it, or pickles it.
"""

from __future__ import annotations

from functools import partial
from typing import Any, cast

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from asset_svm.arrays import Array
from asset_svm.backends.cuda.clusters import kmeans_landmarks
from asset_svm.backends.cuda.maps import card_basis
from asset_svm.exceptions import NonFiniteError
from asset_svm.features import NystroemFeatures
from asset_svm.features.diagnostics import trace_error
from asset_svm.features.factors import default_threshold
from asset_svm.features.kernel_basis import KernelBasis
from asset_svm.features.landmarks import Sampler
from asset_svm.features.landmarks import kmeans_landmarks as host_kmeans_landmarks
from asset_svm.kernels import Argument, Kernel

SMALLEST = 256
"""Fewer landmarks are factored on the host."""
LARGEST_EIGEN = 2048
POWER_STEPS = 30
CHUNK = 4096


class CardNystroem(NystroemFeatures):
    """phi(x) = k(x, components) projection, the projection on the card."""

    device = torch.device("cuda", 0)
    triangular = False
    projection_on_card: Tensor | None
    _host: Array | None

    @property
    def projection(self) -> Array:
        """P on the host, fetched when it is first asked for."""
        if self._host is None:
            assert self.projection_on_card is not None
            object.__setattr__(self, "_host", self.projection_on_card.cpu().numpy())
        assert self._host is not None
        return self._host

    @projection.setter
    def projection(self, value: Array | Tensor) -> None:
        on_card = isinstance(value, torch.Tensor)
        object.__setattr__(self, "projection_on_card", value if on_card else None)
        object.__setattr__(self, "_host", None if on_card else value)

    def on_host(self) -> NystroemFeatures:
        """The same map without the card: what is stored, and taken elsewhere."""
        return NystroemFeatures(*self._parts, centre=self.centre, wide=self.wide)

    def __reduce__(self) -> tuple[Any, ...]:
        return partial(NystroemFeatures, centre=self.centre, wide=self.wide), self._parts

    @property
    def _parts(self) -> tuple[Any, ...]:
        parts = (self.kernel, self.components, self.projection)
        return *parts, self.indices, self.eigenvalues, self.threshold, self.trace_error

    @classmethod
    def own_sampler(cls, sampler: Sampler, X: Any) -> Sampler:
        """The sampler, or k-means on the card where it is k-means of dense rows."""
        if sampler is host_kmeans_landmarks and not sp.issparse(X):
            return partial(kmeans_landmarks, cls.device)
        return sampler

    @classmethod
    def from_landmarks(cls, components: Any, kernel: Kernel, **options: Any) -> NystroemFeatures:
        """Factor K_SS of given landmarks; few ones, and cases without a route here, on the host."""
        if isinstance(components, torch.Tensor):
            components = components.cpu().numpy()
        if isinstance(options.get("probe"), torch.Tensor):
            options["probe"] = options["probe"].cpu().numpy()
        if isinstance(options.get("dtype"), torch.dtype):
            options["dtype"] = components.dtype
        plain = options.get("rank") is None and options.get("rule", "relative") == "relative"
        wants_eigen = options.get("basis", "auto") == "eigen"
        small = components.shape[0] <= (LARGEST_EIGEN if wants_eigen else SMALLEST)
        if not plain or kernel.argument is Argument.ROWS or small:
            return NystroemFeatures.from_landmarks(components, kernel, **options)
        dtype = np.dtype(options.get("dtype") or components.dtype)
        used = max(default_threshold(dtype), options.get("threshold") or 0.0)
        gram = _gram(kernel, components, cls.device)
        centre = gram.mean(dim=0).cpu().numpy() if options.get("centred") else None
        inverse = _inverse_factor(gram, used)
        if inverse is None and len(gram) <= LARGEST_EIGEN:
            return NystroemFeatures.from_landmarks(components, kernel, **options)
        if inverse is None:
            top = _largest(gram, symmetric=True)
            gram.diagonal().add_(used * top)
            inverse = _inverse_factor(gram, 0.0)
        if inverse is None:
            raise NonFiniteError(
                "The kernel matrix of the landmarks has no Cholesky factor; raise rank_threshold, or "
                "scale the columns of X (StandardScaler)."
            )
        factor, indices = cast(Array, inverse.T), options.get("indices")
        made = cls(kernel, components, factor, indices, None, used, centre=centre)
        object.__setattr__(made, "triangular", True)
        return made

    @classmethod
    def measured(cls, features: NystroemFeatures, probe: Any) -> NystroemFeatures:
        """The map with its trace error on these rows, computed where its projection lies."""
        if isinstance(probe, torch.Tensor):
            probe = probe.cpu().numpy()
        if not isinstance(features, CardNystroem):
            return super().measured(features, probe)
        projection = features.projection_on_card
        assert projection is not None

        def phi(X: Any) -> Array:
            values = _kernel_values(features.kernel, X, features.components, projection.device)
            if features.centre is not None:
                values -= torch.from_numpy(features.centre).to(projection.device)
            return np.asarray((values @ projection).cpu().numpy())

        object.__setattr__(features, "trace_error", trace_error(phi, features.own_squares, probe))
        return features

    @property
    def dimension(self) -> int:
        """The number d of features."""
        held = self.projection_on_card
        return int((held if held is not None else self.projection).shape[1])

    @property
    def basis_dimension(self) -> int:
        """The number s of landmarks."""
        held = self.projection_on_card
        return int((held if held is not None else self.projection).shape[0])

    def decision_weights(self, coef: Array) -> Array:
        """alpha_S = P coef, in float64."""
        if self.projection_on_card is None:
            return super().decision_weights(coef)
        on_card = torch.from_numpy(np.array(coef, dtype=np.float64)).to(self.projection_on_card.device)
        return np.asarray((on_card @ self.projection_on_card.T).cpu().numpy())


def _kernel_values(kernel: Kernel, X: Any, components: Any, device: torch.device) -> Tensor:
    """Return k(X, components), in float64."""
    basis = card_basis(KernelBasis(kernel, components), torch.float64, "float32", device)
    X = X.toarray() if hasattr(X, "toarray") else X
    rows = torch.from_numpy(np.array(X, dtype=np.float64)).to(device)
    values = torch.empty((len(rows), basis.width), dtype=torch.float64, device=device)
    for start in range(0, len(rows), CHUNK):
        basis(rows[start : start + CHUNK], values[start : start + CHUNK])
    return values


def _gram(kernel: Kernel, components: Any, device: torch.device) -> Tensor:
    """Return K_SS, in float64."""
    gram = _kernel_values(kernel, components, components, device)
    if not bool(torch.isfinite(gram).all()):
        raise NonFiniteError(
            "The kernel matrix of the landmarks is not finite; scale the columns of X "
            "(StandardScaler) or lower gamma."
        )
    return gram


def _inverse_factor(gram: Tensor, threshold: float) -> Tensor | None:
    """L^(-1) of gram = L L^T, or None where something would be cut.

    lambda_max and 1 / lambda_min = |L^(-1)|^2 by power iteration, which can fall short by a small
    factor: hence the margin of 10, as on the host.
    """
    factor, failed = torch.linalg.cholesky_ex(gram)
    if int(failed):
        return None
    unit = torch.eye(len(gram), dtype=gram.dtype, device=gram.device)
    inverse: Tensor = torch.linalg.solve_triangular(factor, unit, upper=False)
    del factor, unit
    if threshold > 0.0:
        smallest = 1.0 / _largest(inverse, symmetric=False)
        if smallest < 10.0 * threshold * _largest(gram, symmetric=True):
            return None
    return inverse


def _largest(A: Tensor, *, symmetric: bool) -> float:
    """The largest eigenvalue of a symmetric A, or of A^T A."""
    generator = torch.Generator(A.device).manual_seed(0)
    x = torch.randn(len(A), dtype=A.dtype, device=A.device, generator=generator)
    value = torch.zeros((), dtype=A.dtype, device=A.device)
    for _ in range(POWER_STEPS):
        x = x / x.norm()
        y = A @ x if symmetric else A.T @ (A @ x)
        value, x = x @ y, y
    return float(value)
