"""Mapped rows on the card: kept where they fit, else computed anew a chunk at a time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from asset_svm.arrays import Array
from asset_svm.backends.cuda.blocks import TILE
from asset_svm.backends.cuda.maps import CardMap, torch_type
from asset_svm.backends.cuda.memory import in_chunks
from asset_svm.backends.cuda.products import Precision
from asset_svm.backends.cuda.transfer import RowFeeder
from asset_svm.exceptions import warn_caller

CHUNK = 16_384
"""Rows mapped, and stepped through, at a time: enough to fill the card."""


class ChunkedRows(Protocol):
    """Rows that a ``CardDriver`` can step through."""

    @property
    def columns(self) -> int:
        """The number of columns of V: d, up to a multiple of ``TILE``."""

    @property
    def value_type(self) -> torch.dtype:
        """The type in which features are kept."""

    def chunk(self, rows: Array, coming: Array | None) -> tuple[Tensor, Tensor]:
        """A matrix on the card and positions in it of these rows; ``coming`` ones are next."""


def padded(dimension: int) -> int:
    """The columns that a row of this dimension takes."""
    return -(-dimension // TILE) * TILE


class CardRows:
    """phi of the rows of X.

    Parameters
    ----------
    phi : Evaluable
    X : tensor on the card, array, memory map or CSR matrix of shape (m, n)
    keep : bool
    precision : {"float32", "float16"}
        "float16" keeps features as halves.
    """

    look_size = CHUNK
    looks_ahead = 0
    in_memory = False

    def __init__(
        self, phi: Any, X: Any, dtype: Any, device: torch.device, precision: Precision, *, keep: bool
    ):
        self.phi, self.X, self.device, self.precision = phi, X, device, precision
        self.dimension, self.dtype = int(phi.dimension), np.dtype(dtype)
        self.columns = padded(self.dimension)
        self.value_type = torch_type(self.dtype)
        if precision == "float16" and self.value_type == torch.float32 and device.type == "cuda":
            self.value_type = torch.float16
        self.feeder = RowFeeder(X, torch_type(self.dtype), device)
        self.map = CardMap(phi, torch_type(self.dtype), precision, device)
        self.size = CHUNK
        self.keep = keep
        self.kept: Tensor | None = None

    def is_shared(self) -> bool:
        """False: chunks go to the card one after the other."""
        return False

    def close(self) -> None:
        """Free the card's memory and the threads."""
        self.kept = None
        self.feeder.close()

    def _new(self, rows: int) -> Tensor:
        new = torch.empty if self.columns == self.dimension else torch.zeros
        return new((rows, self.columns), dtype=self.value_type, device=self.device)

    def fill(self) -> None:
        """Map all rows, once, where they are kept."""
        if self.kept is not None or not self.keep:
            return
        try:
            kept = self._new(self.X.shape[0])
        except torch.OutOfMemoryError:
            self._give_up_keeping()
            return

        self.size = self.feeder.over_all(self.size, lambda part, rows: self.map(rows, kept[part]))
        self.kept = kept

    def _give_up_keeping(self) -> None:
        torch.cuda.empty_cache()
        self.keep = False
        warn_caller(
            f"The {self.X.shape[0]} mapped rows do not fit on the card after all; they are computed "
            "anew at every visit. Set memory_limit lower to decide so from the start.",
            RuntimeWarning,
        )

    def chunk(self, rows: Array, coming: Array | None) -> tuple[Tensor, Tensor]:
        """A matrix on the card and positions in it of these rows."""
        self.fill()
        if self.kept is not None:
            return self.kept, torch.from_numpy(np.ascontiguousarray(rows)).to(self.device)
        V = self._mapped(self.feeder.take(rows, coming))
        return V, torch.arange(len(rows), device=self.device)

    def _mapped(self, X: Tensor) -> Tensor:
        V = self._new(len(X))

        def work(start: int, stop: int) -> None:
            self.map(X[start:stop], V[start:stop])

        self.size = in_chunks(len(X), self.size, work)
        return V

    def _features(self, rows: Array, coming: Array | None = None) -> Tensor:
        """The features of these rows, (rows, d), in the type of X."""
        if self.kept is None and not (self.keep and len(rows) == self.X.shape[0]):
            V = self._mapped(self.feeder.take(rows, coming))
        else:
            matrix, positions = self.chunk(rows, None)
            consecutive = len(rows) and rows[-1] - rows[0] == len(rows) - 1
            whole = consecutive and bool((np.diff(rows) == 1).all())
            V = matrix[int(rows[0]) : int(rows[-1]) + 1] if whole else matrix[positions]
        return V[:, : self.dimension]

    def fetch(self, rows: Array) -> tuple[Array, Array]:
        """The features of these rows on the host."""
        features = self._features(rows).to(torch_type(self.dtype))
        return features.cpu().numpy(), np.arange(len(rows))

    def expect(self, rows: Array) -> None:
        """Nobody announces anything: ``chunk`` is told what comes next."""

    def open(self, rows: Array) -> CardBlock:
        """Products with these rows; those that follow them are sent for where they are not kept."""
        last = int(rows[-1]) + 1
        following = np.arange(last, min(last + len(rows), self.X.shape[0]))
        return CardBlock(self._features(rows, following if len(following) else None))

    def hold(self, rows: Array) -> HeldRows:
        """Return these rows alone, mapped once."""
        V = self._new(len(rows))
        V[:, : self.dimension] = self._features(rows)
        return HeldRows(V, self.dimension, self.dtype)


@dataclass(frozen=True, eq=False)
class CardBlock:
    """Some mapped rows on the card, for products with them."""

    V: Tensor

    def margins(self, coef: Array) -> Array:
        """Return V coef^T, (K, B)."""
        return np.asarray(self._multiply(coef, self._wide, transposed=True))

    def exact_margins(self, coef: Array) -> Array:
        """Return V coef^T, (K, B), in float64."""
        return np.asarray(self._multiply(coef, torch.float64, transposed=True))

    def exact_sums(self, beta: Array) -> Array:
        """Return min(beta, 0) V and max(beta, 0) V, (2, K, d), in float64."""
        both = np.concatenate([np.minimum(beta, 0.0), np.maximum(beta, 0.0)])
        return self._multiply(both, torch.float64, transposed=False).reshape(2, len(beta), -1)

    @property
    def _wide(self) -> torch.dtype:
        return torch.float32 if self.V.dtype == torch.float16 else self.V.dtype

    def _multiply(self, left: Array, wide: torch.dtype, *, transposed: bool) -> Array:
        factor = torch.from_numpy(np.array(left, dtype=np.float64)).to(self.V.device).to(wide)
        parts = []
        for start in range(0, len(self.V), CHUNK):
            V = self.V[start : start + CHUNK].to(wide)
            parts.append(factor @ V.T if transposed else factor[:, start : start + CHUNK] @ V)
        product = torch.cat(parts, dim=1) if transposed else torch.stack(parts).double().sum(dim=0)
        return np.asarray(product.double().cpu().numpy())


@dataclass(frozen=True, eq=False)
class HeldRows:
    """Some rows that were mapped once and stay on the card."""

    V: Tensor
    dimension: int
    dtype: np.dtype[Any]
    in_memory = True

    @property
    def mean_square(self) -> float:
        """The mean of |v|^2 over these rows."""
        return float(self.V[:, : self.dimension].square().sum(dim=1).mean())

    @property
    def columns(self) -> int:
        """The number of columns of V."""
        return self.V.shape[1]

    @property
    def value_type(self) -> torch.dtype:
        """The type in which V is kept."""
        return self.V.dtype

    def chunk(self, rows: Array, coming: Array | None) -> tuple[Tensor, Tensor]:
        """Return V and the positions of these rows in it."""
        return self.V, torch.from_numpy(np.ascontiguousarray(rows)).to(self.V.device)

    def margins(self, coef: Array, count: int) -> Array:
        """V coef^T of the first ``count`` rows, (K, count)."""
        return CardBlock(self.V[:count, : self.dimension]).margins(coef)
