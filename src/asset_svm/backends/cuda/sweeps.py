"""Sweeps over the duals of many cells on the card: the kernel of cell_sweeps.cu and its arguments."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from asset_svm.backends.cuda.compiler import kernel, shared_memory, structure
from asset_svm.losses import Loss, axis_arguments

THREADS = 256
OWN_BYTES = 1 << 10
"""Bytes of shared memory that the kernel has for itself, or the card keeps."""
_NAMES = {torch.float32: "float", torch.float64: "double"}

_Run = structure(
    "_Run",
    "matrix size stride first y cost parameter wanted seed beta found scratch",
    "models rows most shared_rows scratch_bytes",
    "tube curvature tol budget",
    ctypes.c_double,
)


@dataclass(frozen=True)
class SweepRule:
    """The loss, and when sweeps end: see ``solvers.exact_form``.

    Parameters
    ----------
    loss : Loss
    budget : float
        Changes of a beta after which no new sweep begins, times m^2.
    """

    loss: Loss
    tol: float
    most: int
    budget: float


@dataclass(eq=False)
class Wave:
    """Cells that are solved at a time; the rows of all of them lie one after the other.

    Parameters
    ----------
    matrices : list of tensors
        Kernel matrices of several cells each, (cells, p, p), p >= m a multiple of 4, in the order of
        the cells, with the ridge of the loss on their diagonals.
    sizes, first : int64 tensors of shape (cells,)
        m, and the cell's first row; multiples of 4.
    y : float64 tensor of shape (models, rows)
    cost : float64 tensor of shape (rows,)
    wanted : int32 tensor of shape (cells, models)
    seeds : int64 tensor of shape (cells,)
    """

    matrices: list[Tensor]
    sizes: Tensor
    first: Tensor
    y: Tensor
    cost: Tensor
    wanted: Tensor
    seeds: Tensor


class CudaSweeps:
    """A function from a wave to (beta, found).

    beta is (models, rows), found (cells, models, 3): sweeps, P, D. Both are 0 where nothing is wanted.
    """

    def __init__(self, real: torch.dtype, rule: SweepRule, device: torch.device):
        self.real, self.rule, self.device = real, rule, device
        self.kernel: Any = kernel(
            "cell_sweeps.cu", "solve_cells", device.index, loss=rule.loss.cuda, REAL=_NAMES[real]
        )
        self.shared = shared_memory(device.index) - OWN_BYTES

    def __call__(self, wave: Wave) -> tuple[Tensor, Tensor]:
        """Solve the models of the wave that are wanted."""
        models, rows = wave.y.shape
        cells = len(wave.sizes)
        size = self.real.itemsize
        addresses, strides = [], []
        for matrix in wave.matrices:
            step = matrix.stride(0) * size
            addresses += [matrix.data_ptr() + c * step for c in range(len(matrix))]
            strides += [matrix.stride(1)] * len(matrix)
        matrix, stride = (
            torch.tensor(numbers, dtype=torch.int64).to(self.device) for numbers in (addresses, strides)
        )
        # beta, F and the order of visits of a row
        row_bytes, largest = 8 + size + 2, -(-max(strides) // 4) * 4
        shared_rows = min(largest, self.shared // row_bytes // 4 * 4)
        scratch_bytes = -(-largest * row_bytes // 16) * 16 if largest > shared_rows else 0
        parameter = torch.from_numpy(axis_arguments(self.rule.loss, models)[1]).to(self.device)
        new: dict[str, Any] = dict(device=self.device)
        scratch = torch.empty(cells * models * scratch_bytes, dtype=torch.uint8, **new)
        beta = torch.zeros((models, rows), dtype=torch.float64, **new)
        found = torch.zeros((cells, models, 3), dtype=torch.float64, **new)
        tensors = dict(
            matrix=matrix, size=wave.sizes, stride=stride, first=wave.first, y=wave.y, cost=wave.cost,
            parameter=parameter, wanted=wave.wanted, seed=wave.seeds, beta=beta, found=found,
            scratch=scratch,
        )  # fmt: skip
        rule = self.rule
        arguments = _Run(
            **{name: tensor.data_ptr() for name, tensor in tensors.items()},
            models=models, rows=rows, most=rule.most, shared_rows=shared_rows,
            scratch_bytes=scratch_bytes, tube=rule.loss.tube,
            curvature=rule.loss.curvature, tol=rule.tol, budget=rule.budget,
        )  # fmt: skip
        self.kernel.reserve(shared_rows * row_bytes)
        self.kernel(arguments, cells * models, THREADS, shared=shared_rows * row_bytes)
        return beta, found
