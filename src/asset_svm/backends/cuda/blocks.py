"""The blocked exact form on the card: the state of K models there, and the kernel that moves it.

``CardState`` mirrors ``SolverState`` with coef itself in place of scale * direction, and ``columns``
columns, a multiple of ``TILE``; ``Chunk`` holds the rows of some steps. ``CudaForm`` runs the kernel of
blocked_form.cu over a range of a chunk.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from asset_svm.arrays import Array
from asset_svm.backends.cuda.compiler import kernel, structure
from asset_svm.features import Metric
from asset_svm.losses import axis_arguments
from asset_svm.solvers import ModelAxis, SolverState

BLOCK = 256
"""Rows of a Gram block: as many steps lie between two looks at V."""
TILE = 128
THREADS = 256
_NAMES = {torch.float32: "float", torch.float64: "double", torch.float16: "half_bits"}
_OF_STATE = "direction total intercept steps weight_sum intercept_total shrink_due tally"

_Run = structure(
    "_Run",
    "V positions gram target weight lam radius bound eta horizon parameter direction total intercept "
    "steps weight_sum intercept_total shrink_due partial norms a gained factors slopes tally "
    "metric_square directions transposed along_partial along arrived",
    "stride chunk begin end piece models columns tiles n_directions averages",
    "power reach rest_square",
    ctypes.c_double,
)


@dataclass(eq=False)
class Chunk:
    """The rows of steps [first, first + count), and what they are multiplied with."""

    first: int
    count: int
    V: Tensor
    positions: Tensor
    gram: Tensor
    target: Tensor
    weight: Tensor
    rows: Tensor
    slopes: Tensor


@dataclass(eq=False)
class CardState:
    """The iterates of K models and the open segment of their average."""

    direction: Tensor
    total: Tensor
    intercept: Tensor
    steps: Tensor
    weight_sum: Tensor
    intercept_total: Tensor
    shrink_due: Tensor
    tally: Tensor

    @classmethod
    def upload(cls, state: SolverState, columns: int, device: torch.device) -> CardState:
        """Return a copy of the host's state on the card."""
        state.unscale()
        spare = columns - state.direction.shape[1]

        def wide(array: Array) -> Tensor:
            return torch.from_numpy(np.pad(array, ((0, 0), (0, spare)))).to(device)

        def copy(array: Array) -> Tensor:
            return torch.from_numpy(array.copy()).to(device)

        return cls(
            wide(state.direction),
            wide(state.total),
            copy(state.intercept),
            copy(state.steps),
            copy(state.weight),
            copy(state.intercept_total),
            copy(state.shrink_due),
            torch.zeros((len(state.scale), 4), dtype=torch.float64, device=device),
        )

    def download(self, state: SolverState) -> None:
        """Copy everything back into the state on the host."""
        d = state.direction.shape[1]
        state.direction[:] = self.direction[:, :d].cpu().numpy()
        state.scale[:] = 1.0
        state.total = self.total[:, :d].cpu().numpy()
        state.weight[:] = self.weight_sum.cpu().numpy()
        for name in ("intercept", "steps", "intercept_total", "shrink_due"):
            getattr(state, name)[:] = getattr(self, name).cpu().numpy()

    def clear_segment(self) -> None:
        """Open a new segment of the average."""
        for tensor in (self.total, self.weight_sum, self.intercept_total):
            tensor.zero_()


class CudaForm:
    """The kernel, with the constants and scratch memory of a run.

    Parameters
    ----------
    axis : ModelAxis
    value_type : torch.dtype
        Of V: the rows' own, or float16 for float32 rows.
    """

    def __init__(
        self, axis: ModelAxis, columns: int, real: torch.dtype, value: torch.dtype, device: torch.device
    ):
        models, tiles = len(axis.lam), columns // TILE
        self.device, self.tiles, self.models, self.columns = device, tiles, models, columns
        self.axis = axis

        def number(values: Any) -> Tensor:
            return torch.from_numpy(np.array(values, dtype=np.float64)).to(device)

        def scratch(*shape: int, dtype: torch.dtype = real) -> Tensor:
            return torch.zeros(shape, dtype=dtype, device=device)

        n = -1 if axis.metric is None else 0
        self._tensors: dict[str, Tensor] = {
            "lam": number(axis.lam),
            "radius": number(axis.radius),
            "bound": number(axis.bound),
            "eta": number(axis.eta),
            "horizon": number(axis.horizon),
            "parameter": number(axis_arguments(axis.loss, models)[1]),
            "partial": scratch(tiles, models, BLOCK),
            "norms": scratch(tiles, models, dtype=torch.float64),
            "a": scratch(models, BLOCK),
            "gained": scratch(models, BLOCK),
            "factors": scratch(models, 4, dtype=torch.float64),
            "arrived": scratch(1, dtype=torch.int32),
        }
        rest = 1.0
        if axis.metric is not None:
            n, rest = self._add_metric(axis.metric, real)
        multiprocessors = torch.cuda.get_device_properties(device).multi_processor_count
        rounds = -(-tiles // multiprocessors)
        self.grid = max(-(-tiles // rounds), min(models, multiprocessors))
        self.kernel = kernel(
            "blocked_form.cu", "run_blocks", device.index,
            loss=axis.loss.cuda, BLOCK=BLOCK, VALUE=_NAMES[value], REAL=_NAMES[real],
            TRUNCATED=int(np.isfinite(axis.reach)),
        )  # fmt: skip
        self.shared = 2 * 32 * BLOCK * torch.finfo(real).bits // 8
        self.kernel.reserve(self.shared)
        self.fixed: dict[str, Any] = {name: tensor.data_ptr() for name, tensor in self._tensors.items()}
        self.fixed |= dict(models=models, columns=columns, tiles=tiles, n_directions=n)
        self.fixed |= dict(power=axis.power, rest_square=rest**2)
        self.fixed |= dict(reach=axis.reach if np.isfinite(axis.reach) else 0.0)

    def _add_metric(self, metric: Metric, real: torch.dtype) -> tuple[int, float]:
        """Add the tensors of a metric; return (the number of its directions, rest)."""
        d = len(metric.scale) if metric.directions is None else len(metric.directions)

        def wide(array: Array) -> Tensor:
            out = np.zeros((self.columns, *array.shape[1:]))
            out[:d] = array
            return torch.from_numpy(out).to(self.device).to(real)

        if metric.directions is None:
            self._tensors["metric_square"] = wide(metric.scale**2)
            return 0, 1.0
        n = metric.directions.shape[1]
        directions = wide(metric.directions)
        square = torch.from_numpy(metric.scale**2).to(self.device).to(real)
        self._tensors |= dict(directions=directions, transposed=directions.T.contiguous())
        new = dict(dtype=real, device=self.device)
        self._tensors |= dict(
            metric_square=square,
            along_partial=torch.zeros((self.tiles, self.models, n), **new),
            along=torch.zeros((self.models, n), **new),
        )
        return n, metric.rest

    def run(
        self, state: CardState, chunk: Chunk, begin: int, end: int, piece: int, *, averages: bool
    ) -> None:
        """Take the steps [begin, end) of the chunk; shrink, in a metric, at multiples of ``piece``."""
        self._tensors["arrived"].zero_()
        held = [(chunk, "V positions gram target weight slopes"), (state, _OF_STATE)]
        arguments = _Run(
            **{name: getattr(one, name).data_ptr() for one, names in held for name in names.split()},
            stride=chunk.V.stride(0),
            chunk=chunk.target.shape[1],
            begin=begin,
            end=end,
            piece=piece,
            averages=int(averages),
            **self.fixed,
        )
        self.kernel(arguments, self.grid, THREADS, cooperative=True, shared=self.shared)
        if self.axis.metric is not None and end % piece == 0:
            state.shrink_due.zero_()
