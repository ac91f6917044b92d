"""phi on the card: the same function as in ``features``, a chunk of rows at a time.

A ``CardBasis`` turns rows into basis values, (rows, s) kernel values or Fourier features; ``CardMap``
goes on to the features, with the metric where there is one. Both are prepared once for a type of rows
and a precision.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
import torch
from torch import Tensor

from asset_svm.backends.cuda.products import Finish, Precision, right_factor
from asset_svm.features import FourierFeatures, HadamardFeatures, Metric
from asset_svm.features.kernel_basis import KernelBasis
from asset_svm.features.metric import MetricFeatures
from asset_svm.kernels import Argument, Kernel

_TORCH = {np.dtype(np.float32): torch.float32, np.dtype(np.float64): torch.float64}


def torch_type(dtype: npt.DTypeLike) -> torch.dtype:
    """The torch type of float32 or float64 rows."""
    return _TORCH[np.dtype(dtype)]


def to_card(array: Any, device: torch.device, dtype: torch.dtype | None = None) -> Tensor:
    """A tensor on the card, from a tensor, an array or a CSR matrix."""
    if isinstance(array, torch.Tensor):
        return array.to(device, dtype)
    if sp.issparse(array):
        array = array.toarray()
    array = np.ascontiguousarray(array)
    if not array.flags.writeable:
        array = array.copy()  # torch has no read-only tensors and warns of such memory
    return torch.from_numpy(array).to(device, dtype)


class CardBasis(Protocol):
    """A function from rows to basis(x), prepared for one type of rows."""

    width: int

    def __call__(self, X: Tensor, out: Tensor) -> None:
        """Fill out, of shape (rows, width), with the values of rows of the prepared type."""


class FourierBasis:
    """sqrt(2/d) cos(2 pi (x nu / 2 pi + omega / 2 pi))."""

    def __init__(
        self,
        phi: FourierFeatures | HadamardFeatures,
        dtype: torch.dtype,
        precision: Precision,
        device: torch.device,
    ):
        turn = 2.0 * np.pi
        self.width = phi.dimension
        frequencies = to_card(phi.frequencies.T, device).div_(turn).to(dtype)
        if phi.n_frequencies < phi.dimension:  # feature j has the frequency j mod f
            places = torch.arange(phi.dimension, device=device) % phi.n_frequencies
            frequencies = frequencies[places]
        self.right = right_factor(frequencies, precision)
        phases = to_card(phi.phases / turn, device, dtype)
        amplitude = float(np.sqrt(2.0 / phi.dimension))
        self.finish = Finish("cosines", right=phases, amplitude=amplitude)
        self.long: Tensor | None = None
        if dtype == torch.float32:
            self._prepare_long(phi, device)

    def _prepare_long(self, phi: FourierFeatures | HadamardFeatures, device: torch.device) -> None:
        """The features whose frequencies are multiplied in float64, as on the host."""
        long, frequencies = phi.long_frequencies()
        if len(long):
            position = np.full(phi.n_frequencies, -1)
            position[long] = np.arange(len(long))
            of = position[np.arange(phi.dimension) % phi.n_frequencies]
            self.long = to_card(np.flatnonzero(of >= 0), device)
            self.of = to_card(of[of >= 0], device)
            self.frequencies = to_card(frequencies, device)
            self.phases = to_card(phi.phases[of >= 0] / (2.0 * np.pi), device)

    def __call__(self, X: Tensor, out: Tensor) -> None:
        """Fill out with phi(X)."""
        self.right(X, out, self.finish)
        if self.long is not None:
            turns = (X.double() @ self.frequencies)[:, self.of].add_(self.phases)
            turns.sub_(turns.round())
            values = turns.to(X.dtype).mul_(2.0 * torch.pi).cos_().mul_(self.finish.amplitude)
            out[:, self.long] = values.to(out.dtype)


class SquaredDistanceBasis:
    """A profile of 2 x'.z' - |x'|^2 - |z'|^2, x' = sqrt(rate) (x - shift), as in ``kernels``."""

    def __init__(
        self, kernel: Kernel, Z: Any, dtype: torch.dtype, precision: Precision, device: torch.device
    ):
        landmarks = to_card(Z, device)
        self.formula: Any = kernel.formula
        self.width = len(landmarks)
        self.shift = landmarks.mean(dim=0, dtype=torch.float64).to(landmarks.dtype)
        self.factor = float(np.sqrt(-self.formula.factor))
        moved = ((landmarks.double() - self.shift.double()) * self.factor).to(dtype)
        self.shift = self.shift.to(dtype)
        self.norms = squared_norms(moved)
        self.right = right_factor(moved, precision)

    def __call__(self, X: Tensor, out: Tensor) -> None:
        """Fill out with k(X, Z)."""
        moved = (X - self.shift).mul_(self.factor)
        self.right(
            moved, out, Finish("distances", squared_norms(moved), self.norms, formula=self.formula)
        )


class ProductBasis:
    """Values of a kernel that is a function of x.z."""

    def __init__(
        self, kernel: Kernel, Z: Any, dtype: torch.dtype, precision: Precision, device: torch.device
    ):
        self.formula: Any = kernel.formula
        landmarks = to_card(Z, device, dtype)
        self.width = len(landmarks)
        self.right = right_factor(landmarks, precision)

    def __call__(self, X: Tensor, out: Tensor) -> None:
        """Fill out with k(X, Z)."""
        self.right(X, out)
        self.formula.values(out, torch)


class AbsoluteDistanceBasis:
    """Values of a kernel that is a function of |x - z|_1: no matrix product can help."""

    def __init__(
        self, kernel: Kernel, Z: Any, dtype: torch.dtype, precision: Precision, device: torch.device
    ):
        self.formula, self.landmarks = kernel.formula, to_card(Z, device, dtype)
        self.width = len(self.landmarks)

    def __call__(self, X: Tensor, out: Tensor) -> None:
        """Fill out with k(X, Z)."""
        t = torch.cdist(X, self.landmarks, p=1).mul_(self.formula.factor)
        out.copy_(self.formula.profile(t, torch))


class HostBasis:
    """A user's kernel: evaluated where it was written for, on the host."""

    def __init__(
        self, kernel: Kernel, Z: Any, dtype: torch.dtype, precision: Precision, device: torch.device
    ):
        self.width = Z.shape[0]
        self.values = kernel.against(Z, np.float32 if dtype == torch.float32 else np.float64)

    def __call__(self, X: Tensor, out: Tensor) -> None:
        """Fill out with k(X, Z)."""
        out.copy_(to_card(self.values(X.cpu().numpy()), X.device))


class CentredBasis:
    """A basis less a constant vector."""

    def __init__(self, plain: CardBasis, centre: Tensor):
        self.plain, self.centre, self.width = plain, centre, plain.width

    def __call__(self, X: Tensor, out: Tensor) -> None:
        """Fill out with plain(X) - centre."""
        if out.dtype == self.centre.dtype:
            self.plain(X, out)
            out.sub_(self.centre)
            return
        values = torch.empty(out.shape, dtype=self.centre.dtype, device=out.device)
        self.plain(X.to(values.dtype), values)
        out.copy_(values.sub_(self.centre))


_BASES: dict[Argument, Any] = {
    Argument.PRODUCT: ProductBasis,
    Argument.SQUARED_DISTANCE: SquaredDistanceBasis,
    Argument.ABSOLUTE_DISTANCE: AbsoluteDistanceBasis,
    Argument.ROWS: HostBasis,
}


def squared_norms(X: Tensor) -> Tensor:
    """|x|^2 of every row, summed in float64."""
    return X.square().sum(dim=1, dtype=torch.float64).to(X.dtype)


def card_basis(
    source: Any, dtype: torch.dtype, precision: Precision, device: torch.device
) -> CardBasis:
    """The basis of a map, or of a kernel with its landmarks."""
    if isinstance(source, MetricFeatures):
        return card_basis(source.phi, dtype, precision, device)
    centre = getattr(source, "centre", None)
    if centre is not None:
        wider = torch.float64 if getattr(source, "wide", False) else dtype
        plain = card_basis(source.plain, wider, precision, device)
        return CentredBasis(plain, to_card(centre, device, wider))
    if isinstance(source, FourierFeatures | HadamardFeatures):
        return FourierBasis(source, dtype, precision, device)
    assert isinstance(source, KernelBasis)
    kernel, Z = source.kernel, source.components
    return _BASES[kernel.argument](kernel, Z, dtype, precision, device)


class CardMetric:
    """The change of basis V -> V T, in place."""

    def __init__(self, metric: Metric, dtype: torch.dtype, device: torch.device):
        self.scale = to_card(metric.scale, device, dtype)
        self.rest = metric.rest
        self.directions = None
        if metric.directions is not None:
            self.directions = to_card(metric.directions, device, dtype)

    def __call__(self, V: Tensor) -> None:
        """Multiply the rows of V, in place."""
        if self.directions is None:
            V.mul_(self.scale)
            return
        along = (V @ self.directions).mul_(self.scale - self.rest)
        V.mul_(self.rest).addmm_(along, self.directions.T)


class CardMap:
    """x -> phi(x), for anything that ``Evaluable`` stands for.

    Parameters
    ----------
    phi : FourierFeatures, HadamardFeatures, NystroemFeatures or MetricFeatures
    dtype : torch.dtype
        Of the rows, and of what is computed.
    """

    def __init__(self, phi: Any, dtype: torch.dtype, precision: Precision, device: torch.device):
        self.dimension, self.dtype = int(phi.dimension), dtype
        self.metric = None
        if isinstance(phi, MetricFeatures):
            self.metric = CardMetric(phi.metric, dtype, device)
            phi = phi.phi
        self.basis = card_basis(phi, dtype, precision, device)
        self.lift = None
        if isinstance(phi, KernelBasis):
            projection = getattr(phi, "projection_on_card", None)
            triangular = projection is not None and phi.triangular  # type: ignore[attr-defined]
            if projection is None:
                projection = to_card(phi.projection, device)  # type: ignore[attr-defined]
            factor = projection.T.to(dtype).contiguous()
            self.lift = right_factor(factor, precision, triangular=triangular)

    def __call__(self, X: Tensor, out: Tensor) -> None:
        """Fill the first d columns of out; it may be narrower than the rows, float16."""
        features = out[:, : self.dimension]
        direct = out.dtype == self.dtype or self.metric is None
        target = features if direct else torch.empty(features.shape, dtype=self.dtype, device=X.device)
        if self.lift is None:
            self.basis(X, target)
        else:
            values = torch.empty((len(X), self.basis.width), dtype=self.dtype, device=X.device)
            self.basis(X, values)
            self.lift(values, target)
        if self.metric is not None:
            self.metric(target)
        if not direct:
            features.copy_(target)
