"""Cells on the card: the same problems as in ``solvers.cells``, many at a time.

    cells by their number of rows, largest first
    a wave        cells whose kernel matrices fit on the card together
      a batch     neighbours of nearly one size: rows gathered, one batched product
      sweeps      one launch for all cells and models of the wave
    a batch       what sweeps have not solved goes on by the interior-point method

The rows of a cell are padded, with some of them, up to the size of the batch; sweeps never look there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
import torch
from torch import Tensor

from asset_svm.arrays import Array, Matrix
from asset_svm.backends.cuda.batches import kernel_values
from asset_svm.backends.cuda.clusters import CardClusters
from asset_svm.backends.cuda.interior import Duals, solve_interior
from asset_svm.backends.cuda.maps import to_card, torch_type
from asset_svm.backends.cuda.memory import free_memory, warn_of_smaller_blocks
from asset_svm.backends.cuda.sweeps import CudaSweeps, SweepRule, Wave
from asset_svm.backends.cuda.transfer import RowFeeder
from asset_svm.backends.device import on_host
from asset_svm.exceptions import NonFiniteError
from asset_svm.features.cells import Partition
from asset_svm.losses import Loss, dual_ridge
from asset_svm.memory import in_gigabytes
from asset_svm.solvers.cell_models import CellSolution, constants
from asset_svm.solvers.cells import INSIDE, CellProblem
from asset_svm.solvers.gather import gathered
from asset_svm.threads.granted import granted

ALIGNMENT = 16
"""The sizes of batches are multiples of it."""
SLACK = 0.9
"""The smallest cell of a batch has at least this part of the rows of the largest."""
BATCH_BYTES = 1 << 30
"""Bytes of the gathered rows of a batch, unless it is one cell."""
LEAST_BYTES = 1 << 26
"""Bytes that kernel matrices may take whatever the limit: a card is slow with a cell at a time."""


@dataclass(frozen=True, eq=False)
class Batch:
    """Some cells of a wave.

    Parameters
    ----------
    cells : sequence of int
        Their numbers.
    index : int array of shape (cells, p)
        The rows of each, then some of them again.
    """

    cells: Sequence[int]
    index: Array
    sizes: Array


class CardCells:
    """The cells of one set of rows.

    Parameters
    ----------
    X : array, memory map, CSR matrix or tensor on the card
    memory : int
        Bytes that kernel matrices may take on the card.
    """

    def __init__(self, X: Matrix, device: torch.device, memory: int, sweeps: Any = CudaSweeps):
        self.device, self._memory, self.make_sweeps = device, memory, sweeps
        self.dtype = X.dtype if isinstance(X, torch.Tensor) else torch_type(X.dtype)
        self.is_sparse = hasattr(X, "tocsr")
        fits = X.shape[0] * X.shape[1] * self.dtype.itemsize <= memory // 2
        self.feeder = RowFeeder(
            to_card(X, device) if fits and not self.is_sparse else X, self.dtype, device
        )

    def close(self) -> None:
        """End the threads that bring rows."""
        self.feeder.close()

    def memory(self) -> int:
        """The bytes that kernel matrices may take on the card."""
        return self._memory

    def grow(self, X: Matrix, n_cells: int, rng: np.random.Generator) -> tuple[Partition, Array]:
        """A partition of X, as ``Partition.grow``: on the host, unless the rows are on the card.

        Its samples are many and small, and a card would be waited for after every pass.
        """
        clusters = CardClusters(self.feeder) if isinstance(X, torch.Tensor) else None
        return Partition.grow(X, n_cells, rng, clusters)

    def solve(
        self, problem: CellProblem, cells: Sequence[Array], seeds: Sequence[int]
    ) -> list[CellSolution]:
        """The models of the cells with these rows, in their order."""
        found: list[Any] = [None] * len(cells)
        order = sorted(range(len(cells)), key=lambda c: -len(cells[c]))
        budget, start = max(self._memory // 2, LEAST_BYTES), 0
        while start < len(order):
            wave = _wave(cells, order[start:], budget, self.dtype.itemsize)
            try:
                solved = self._solve_wave(problem, cells, wave, seeds)
            except torch.OutOfMemoryError:
                if len(wave) == 1:
                    self._refuse(len(cells[wave[0]]))
                torch.cuda.empty_cache()
                budget = sum(_bytes(len(cells[c]), self.dtype.itemsize) for c in wave) // 2
                warn_of_smaller_blocks(sum(len(cells[c]) for c in wave) // 2)
                continue
            for cell, solution in zip(wave, solved, strict=True):
                found[cell] = solution
            start += len(wave)
        return found

    def _refuse(self, rows: int) -> NoReturn:
        """Tell that a cell does not fit on the card by itself."""
        raise MemoryError(
            f"The kernel matrix of a cell of {rows} rows takes "
            f"{in_gigabytes(_bytes(rows, self.dtype.itemsize))} on the card, and "
            f"{in_gigabytes(free_memory(self.device))} are free; raise n_cells, or set memory_limit, "
            "above which a cell is approximated."
        )

    def _batches(self, cells: Sequence[Array], wave: Sequence[int]) -> Iterator[Batch]:
        """Cut the wave into batches of cells of nearly one size."""
        width = self.feeder.X.shape[1] * self.dtype.itemsize
        start = 0
        while start < len(wave):
            p = _padded(len(cells[wave[start]]))
            most = max(BATCH_BYTES // (p * width), 1)
            stop = start + 1
            while (
                stop < min(len(wave), start + most) and len(cells[wave[stop]]) >= SLACK * p - ALIGNMENT
            ):
                stop += 1
            chosen = wave[start:stop]
            index = np.array([np.pad(cells[c], (0, p - len(cells[c])), mode="wrap") for c in chosen])
            yield Batch(chosen, index, np.array([len(cells[c]) for c in chosen]))
            start = stop

    def _kernel_matrices(self, problem: CellProblem, batch: Batch) -> Tensor:
        count, p = batch.index.shape
        X = self.feeder.take(batch.index.ravel()).view(count, p, -1)
        K = kernel_values(problem.kernel, X, X, X.mean(dim=1, keepdim=True))
        if not bool(torch.isfinite(K).all()):
            raise NonFiniteError(
                "The kernel matrix of a cell is not finite; scale the columns of X (StandardScaler) or "
                "lower gamma."
            )
        if problem.loss.curvature > 0.0:
            ridge = dual_ridge(problem.loss, problem.cost[batch.index].ravel()).reshape(count, p)
            K.diagonal(dim1=1, dim2=2).add_(to_card(ridge, self.device, self.dtype))
        return K

    def _solve_wave(
        self,
        problem: CellProblem,
        cells: Sequence[Array],
        wave: Sequence[int],
        seeds: Sequence[int],
    ) -> list[CellSolution]:
        batches = list(self._batches(cells, wave))
        matrices = [self._kernel_matrices(problem, batch) for batch in batches]
        rows = np.concatenate([batch.index.ravel() for batch in batches])
        y, cost, late = problem.targets.block(rows), problem.cost[rows], problem.is_late
        sizes = np.concatenate([batch.sizes for batch in batches])
        padded = np.repeat([b.index.shape[1] for b in batches], [len(b.cells) for b in batches])
        first = np.cumsum(padded) - padded
        parts = [slice(a, a + m) for a, m in zip(first, sizes, strict=True)]
        trivial = np.array([problem.is_trivial(y[:, part]) for part in parts])
        like = np.array([problem.alike(y[:, part]) for part in parts])
        again = like != np.arange(len(y))
        rule = SweepRule(
            problem.loss,
            problem.tol,
            problem.most_sweeps(late=late),
            problem.budget(late=late),
        )
        numbers = np.array([seeds[c] for c in wave], dtype=np.int64)
        there = (sizes, first, y, cost, (~(trivial | again)).astype(np.int32), numbers)
        sweeps = self.make_sweeps(self.dtype, rule, self.device)
        swept = sweeps(Wave(matrices, *(to_card(array, self.device) for array in there)))
        beta, found = (tensor.cpu().numpy() for tensor in swept)
        solved = problem.is_solved(found[..., 1], found[..., 2]) | trivial | again
        of_batch = np.repeat(np.arange(len(batches)), [len(b.cells) for b in batches])
        small = np.array([problem.goes_inside(int(m), late=late) for m in sizes])
        inside: dict[tuple[int, int], tuple[Array, int]] = {}
        for number, K in enumerate(matrices):
            hard = np.argwhere(~solved & (small & (of_batch == number))[:, None])
            if len(hard):
                c, k = hard.T
                columns = first[c, None] + np.arange(K.shape[1])
                chosen = c - np.searchsorted(of_batch, number)
                of_models = [problem.loss.of_model(one) for one in k]
                boxes = (y[k[:, None], columns], cost[columns], of_models)
                ends = self._inside(problem, K, chosen, sizes[c], *boxes)
                inside |= zip(zip(c.tolist(), k.tolist(), strict=True), ends, strict=True)

        b = np.where(trivial, [constants(y[:, part]) for part in parts], 0.0)
        for c, k in np.argwhere(~solved):
            part, place = parts[c], c - np.searchsorted(of_batch, of_batch[c])
            times = _Product(matrices[of_batch[c]][place, : sizes[c], : sizes[c]])
            ended, end = (beta[k, part], int(found[c, k, 0])), inside.get((c, k))
            model = problem.of_model(k).settled(times, y[k, part], cost[part], *ended, end)
            beta[k, part], b[c, k], found[c, k] = model[0], model[1], (model[4], *model[2:4])
        for c, k in np.argwhere(again & ~trivial):
            same = like[c, k]
            beta[k, parts[c]], b[c, k], found[c, k] = beta[same, parts[c]], b[c, same], found[c, same]
        found[trivial] = 0.0
        real = np.concatenate([np.arange(part.start, part.stop) for part in parts])
        return problem.solutions(
            rows[real],
            np.concatenate([[0], np.cumsum(sizes)]),
            beta[:, real],
            b,
            found[..., 1],
            found[..., 2],
            found[..., 0].max(axis=1),
            None if self.is_sparse else self._gathered(problem.X),
        )

    def _gathered(self, X: Matrix) -> Callable[[Array], Array]:
        """A function from numbers of rows to these rows, on the host."""
        if isinstance(X, torch.Tensor):
            return lambda rows: on_host(X[torch.from_numpy(rows).to(X.device)])
        return lambda rows: gathered(X, rows, granted())

    def _inside(
        self,
        problem: CellProblem,
        K: Tensor,
        which: Array,
        sizes: Array,
        y: Array,
        cost: Array,
        losses: Sequence[Loss],
    ) -> Iterator[tuple[Array, int]]:
        """What the interior-point method finds for some models of a batch.

        Of each: ``which`` of the cells of the batch it belongs to, its size, targets, costs and loss.
        """
        p = K.shape[1]
        most = max(self._memory // 2 // (64 * p * p), 1)  # K, its factor, and what they are made of
        boxes = [loss.box(*each) for loss, *each in zip(losses, y, cost, strict=True)]
        low, high = np.array(boxes).swapaxes(0, 1)
        for start in range(0, len(which), most):
            part = slice(start, start + most)
            m = sizes[part]
            there = [to_card(a, self.device) for a in (which[part], np.arange(p) < m[:, None])]
            numbers = [to_card(a, self.device) for a in (y[part], low[part], high[part], m)]
            real = there[1].double()
            duals = Duals(
                K[there[0]].double() * real[:, :, None] * real[:, None, :],
                y=numbers[0], low=numbers[1], high=numbers[2], sizes=numbers[3],
                tube=problem.loss.tube, rounding=torch.finfo(K.dtype).eps,
                intercept=problem.intercept,
            )  # fmt: skip
            beta, steps = solve_interior(duals, INSIDE * problem.tol)
            ends = zip(beta.cpu().numpy(), steps.cpu().numpy(), m, strict=True)
            yield from ((one[:size], int(count)) for one, count, size in ends)


@dataclass(frozen=True, eq=False)
class _Product:
    """The function beta -> K beta, computed on the card."""

    K: Tensor

    def __call__(self, beta: Array) -> Array:
        there = torch.from_numpy(np.array(beta, dtype=np.float64)).to(self.K.device)
        return np.asarray((self.K.double() @ there).cpu().numpy())


def _padded(m: int) -> int:
    return -(-m // ALIGNMENT) * ALIGNMENT


def _bytes(m: int, itemsize: int) -> int:
    """The bytes of the kernel matrix of a cell, and of what is computed on the way."""
    return _padded(m) ** 2 * (itemsize + 1)


def _wave(cells: Sequence[Array], order: Sequence[int], budget: int, itemsize: int) -> Sequence[int]:
    """The first cells of the order that fit, one at least."""
    taken, count = 0, 0
    for c in order:
        taken += _bytes(len(cells[c]), itemsize)
        if count and taken > budget:
            break
        count += 1
    return order[:count]
