"""How a card is used: which rows are kept, in what precision, and what runs where."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from asset_svm.arrays import Array, Matrix
from asset_svm.backends.base import Visits
from asset_svm.backends.cpu import METRIC_SAMPLE
from asset_svm.backends.cuda.blocks import BLOCK, CudaForm
from asset_svm.backends.cuda.cell_decision import CardCellDecision
from asset_svm.backends.cuda.cells import CardCells
from asset_svm.backends.cuda.driver import CardDriver
from asset_svm.backends.cuda.maps import CardMap, card_basis, to_card, torch_type
from asset_svm.backends.cuda.memory import free_memory, in_chunks
from asset_svm.backends.cuda.nystroem import CardNystroem
from asset_svm.backends.cuda.products import Precision
from asset_svm.backends.cuda.rows import CHUNK, CardRows, HeldRows, padded
from asset_svm.backends.cuda.sweeps import CudaSweeps
from asset_svm.backends.cuda.transfer import RowFeeder
from asset_svm.features import Evaluable, FeatureMap, Metric
from asset_svm.features.metric import FEWEST_ROWS, METRIC_DIRECTIONS
from asset_svm.solvers import Average, BlockRows, Cut, ModelAxis, SolverState
from asset_svm.solvers.cell_models import CellFunctions

CARD = torch.device("cuda", 0)
WORKING_MEMORY = 6 << 30
"""The products of a chunk take at most so many bytes, beside the rows that are kept."""


@dataclass(frozen=True)
class CudaBackend:
    """A card, and how it is used.

    Parameters
    ----------
    memory_limit : int, optional
        Bytes that mapped rows may take on the card; by default what is free.
    precision : {"float32", "float16"}
        That of products, and of features that are kept, for float32 rows.
    """

    memory_limit: int | None = None
    precision: Precision = "float32"
    device: torch.device = CARD
    form: type[CudaForm] = CudaForm
    sweeps: type[CudaSweeps] = CudaSweeps

    block_size = BLOCK
    hides_rows_by_model = False
    """Whether models that train together may each see other rows."""

    @property
    def nystroem(self) -> type[CardNystroem]:
        """The class of Nystroem maps whose landmarks are factored here."""
        return type("CardNystroem", (CardNystroem,), {"device": self.device})

    def rows(self, phi: Evaluable, X: Matrix) -> CardRows:
        """The rows of X: kept on the card where they fit, else mapped whenever they are visited."""
        dtype = host_type(X)
        size = 2 if self.precision == "float16" and dtype == np.float32 else dtype.itemsize
        needed = X.shape[0] * padded(int(phi.dimension)) * size
        keep = needed <= self.memory()
        return CardRows(phi, X, dtype, self.device, self.precision, keep=keep)

    def map_all(self, rows: BlockRows) -> None:
        """Do nothing: the card maps rows a chunk at a time when they are first visited."""

    def memory(self) -> int:
        """The bytes that mapped rows may take on the card."""
        if self.memory_limit is not None:
            return self.memory_limit
        return max(free_memory(self.device) - WORKING_MEMORY, WORKING_MEMORY // 2)

    def cut(self) -> Cut:
        """The blocks of steps that share a Gram matrix."""
        return Cut(BLOCK)

    @contextmanager
    def working(self, rows: BlockRows) -> Iterator[None]:
        """Do nothing: the card maps rows by itself, a chunk at a time."""
        yield

    def driver(
        self, visits: Visits, axis: ModelAxis, state: SolverState, average: Average
    ) -> CardDriver:
        """A driver of these models through rows of this backend; their form is the card's own."""
        parts = {"axis": axis, "state": state, "average": average, **vars(visits)}
        return CardDriver(**parts, device=self.device, card_form=self.form)

    def hold(self, mapped: BlockRows, rows: Array) -> HeldRows:
        """Some of the mapped rows, to be stepped through many times."""
        assert isinstance(mapped, CardRows)
        return mapped.hold(rows)

    def find_metric(self, phi: FeatureMap, X: Matrix, weight: Array, seed: int) -> Metric:
        """The metric of the data from a random sample of rows.

        As ``phi.find_metric``; top directions by the sample's own Gram matrix, in float64.
        """
        rng = np.random.default_rng([seed, 3])
        count = min(METRIC_SAMPLE, X.shape[0])
        chosen = np.sort(rng.choice(X.shape[0], size=count, replace=False))
        V = self._features(phi, X, chosen)
        if getattr(phi, "eigenvalues", None) is not None or count < FEWEST_ROWS:
            return phi.find_metric(V.cpu().numpy(), weight[chosen], rng)
        w = torch.from_numpy(np.sqrt(weight[chosen] / weight[chosen].sum())).to(self.device)
        scaled = V.double() * w[:, None]
        values, vectors = torch.linalg.eigh(scaled @ scaled.T)
        k = min(METRIC_DIRECTIONS, *V.shape)
        values, vectors = values.flip(0)[:k].clamp(min=0), vectors.flip(1)[:, :k]
        keep = values > 1e-12 * values[0]
        values, vectors = values[keep], vectors[:, keep]
        directions = (scaled.T @ vectors) / values.sqrt()
        metric = Metric.along(values.cpu().numpy(), directions.cpu().numpy())
        if getattr(phi, "centre", None) is None:
            return metric
        return metric.beside_intercept(V.cpu().numpy(), weight[chosen])

    def held_out(self, phi: FeatureMap, X: Matrix) -> Callable[[Array], Array]:
        """A function from (K, d) coef to the (rows, K) decisions on these rows, without intercept."""
        rows = self.rows(phi, X)
        every = np.arange(X.shape[0])
        return lambda coef: rows.open(every).margins(coef).T

    def _features(self, phi: FeatureMap, X: Matrix, chosen: Array) -> Tensor:
        dtype = torch_type(host_type(X))
        rows = RowFeeder(X, dtype, self.device)
        part = rows.take(chosen)
        rows.close()
        V = torch.empty((len(chosen), int(phi.dimension)), dtype=dtype, device=self.device)
        CardMap(phi, dtype, self.precision, self.device)(part, V)
        return V

    def decision(self, source: Any, weights: Array, intercept: Array, dtype: Any) -> CardDecision:
        """The decision function, prepared for rows of this type."""
        return CardDecision(self, source, weights, intercept, np.dtype(dtype))

    def cells(self, X: Matrix) -> CardCells:
        """The cells of these rows, to be found and solved here."""
        return CardCells(X, self.device, self.memory(), self.sweeps)

    def cell_decision(
        self, parts: Sequence[CellFunctions], n_features: int, dtype: Any
    ) -> CardCellDecision:
        """The decision function of cells, prepared for rows of this type."""
        return CardCellDecision(parts, n_features, dtype, self.device)


class CardDecision:
    """Decisions basis(X) weights^T + intercept, computed on the card."""

    def __init__(
        self, backend: CudaBackend, source: Any, weights: Array, intercept: Array, dtype: np.dtype[Any]
    ):
        self.device, self.dtype = backend.device, torch_type(dtype)
        if getattr(source, "wide", False):
            self.dtype = torch.float64
        self.basis = card_basis(source, self.dtype, backend.precision, self.device)
        self.weights = to_card(weights.T, self.device, self.dtype)
        self.intercept = torch.from_numpy(np.array(intercept, dtype=np.float64)).to(self.device)

    def __call__(self, X: Matrix) -> Array:
        """The (rows, K) decisions, on the host, in float64."""
        m = X.shape[0]
        out = torch.empty((m, self.weights.shape[1]), dtype=torch.float64, device=self.device)
        feeder = RowFeeder(X, self.dtype, self.device)

        def work(start: int, stop: int) -> None:
            following = slice(stop, min(2 * stop - start, m))
            coming = following if following.start < following.stop else None
            rows = feeder.take(slice(start, stop), coming)
            values = torch.empty((len(rows), self.basis.width), dtype=self.dtype, device=self.device)
            self.basis(rows, values)
            out[start:stop] = (values @ self.weights).double() + self.intercept

        try:
            in_chunks(m, CHUNK, work)
        finally:
            feeder.close()
        return np.asarray(out.cpu().numpy())


def host_type(X: Matrix) -> np.dtype[Any]:
    """The numpy type of rows, tensors included."""
    if isinstance(X, torch.Tensor):
        return np.dtype(np.float64 if X.dtype == torch.float64 else np.float32)
    return np.dtype(X.dtype)
