"""The driver on the card: the steps of ``solvers.Driver``, a chunk of blocks at a time.

    advance(n):
      while steps are left:
        chunk t = steps [t C, (t+1) C)   its rows mapped or found, its Gram blocks multiplied
        one launch up to the next of     the chunk's end, the end asked for, a boundary of the average

Launches are not waited for: while the card steps through a chunk, the host draws the next one. The
state lies on the card within ``advance``, and on the host between calls.
"""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import torch

from asset_svm import clock
from asset_svm.arrays import Array
from asset_svm.backends.cuda.blocks import BLOCK, CardState, Chunk, CudaForm
from asset_svm.backends.cuda.maps import torch_type
from asset_svm.backends.cuda.memory import warn_of_smaller_blocks
from asset_svm.backends.cuda.products import gram_blocks
from asset_svm.backends.cuda.rows import CHUNK, ChunkedRows
from asset_svm.solvers import Average, Driver, ModelAxis


class CardDriver(Driver):
    """One run of K models over rows on the card.

    Parameters
    ----------
    parts, options
        The parameters of ``Driver``.
    card_form : class
        It steps through a chunk, as ``CudaForm`` does.
    chunk_size : int
        The steps whose rows are mapped together.
    """

    def __init__(
        self,
        *parts: Any,
        device: torch.device,
        card_form: type[CudaForm] = CudaForm,
        chunk_size: int = CHUNK,
        **options: Any,
    ):
        super().__init__(*parts, **options)
        self.device, self.make_form, self.chunk_size = device, card_form, chunk_size
        self.source = cast(ChunkedRows, self.rows)
        self._chunk: Chunk | None = None
        self._form: Any = None

    def restart(self, axis: ModelAxis, average: Average) -> None:
        """Go on from here with other steps, counted from 1, and a new average."""
        super().restart(axis, average)
        self._form = None

    def advance(self, steps: int, deadline: float = np.inf) -> int:
        """Take ``steps`` more steps, or as many as end by ``deadline`` (``clock.now``)."""
        begin, end = self.position, self.position + steps
        card = CardState.upload(self.state, self.source.columns, self.device)
        seen = self._new_slopes()
        if self._form is None:
            real = torch_type(self.rows.dtype)
            self._form = self.make_form(
                self.axis, self.source.columns, real, self.source.value_type, self.device
            )
        while self.position < end:
            room = self.average.steps_to_boundary(end - self.position)
            if room <= 0:
                card.download(self.state)
                self.average.close_segment(self.state)
                card.clear_segment()
                continue
            chunk = self._current_chunk()
            stop = min(chunk.first + chunk.count, end, self.position + room)
            part = slice(self.position - chunk.first, stop - chunk.first)
            self._form.run(
                card, chunk, part.start, part.stop, self.shrink_interval, averages=self.average.averages
            )
            if seen is not None:
                rows = chunk.rows[part]
                seen[0].index_add_(1, rows, chunk.slopes[:, part].float())
                seen[1].index_add_(0, rows, torch.ones_like(rows, dtype=torch.float32))
            self.average.step += stop - self.position
            self.progress.steps += stop - self.position
            self.position = stop
            if deadline < np.inf and stop == chunk.first + chunk.count:
                card.tally.cpu()  # waits for the launches so far
                if clock.now() > deadline:
                    break
        card.download(self.state)
        self._note(card, seen)
        return self.position - begin

    def _new_slopes(self) -> tuple[torch.Tensor, torch.Tensor] | None:
        if self.slopes is None:
            return None
        total, visits = self.slopes.total, self.slopes.visits
        return (
            torch.zeros(total.shape, dtype=torch.float32, device=self.device),
            torch.zeros(visits.shape, dtype=torch.float32, device=self.device),
        )

    def _note(self, card: CardState, seen: tuple[torch.Tensor, torch.Tensor] | None) -> None:
        """Carry what the launches saw over to the host."""
        loss, errors, active, bad = card.tally.cpu().numpy().T
        self.progress.loss += loss
        self.progress.errors += errors
        self.progress.active += active
        if seen is not None and self.slopes is not None:
            self.slopes.total += seen[0].cpu().numpy()
            self.slopes.visits += seen[1].cpu().numpy()
        self._check_finite(not bad.any())

    def _rows_of(self, first: int) -> Array | None:
        stop = min(first + self.chunk_size, self.length)
        return self.order.rows(first, stop) if first < stop else None

    def _current_chunk(self) -> Chunk:
        """The chunk of the next step; smaller ones from here on where the card has no memory for it."""
        size = self.chunk_size
        while True:
            first = self.position - self.position % self.chunk_size
            if self._chunk is None or self._chunk.first != first:
                self._chunk = None
                try:
                    self._chunk = self._make_chunk(first)
                except torch.OutOfMemoryError:
                    if self.chunk_size <= BLOCK:
                        raise
                    torch.cuda.empty_cache()
                    self.chunk_size = max(self.chunk_size // 2, BLOCK)
                    continue
            if self.chunk_size < size:
                warn_of_smaller_blocks(self.chunk_size)
            return self._chunk

    def _make_chunk(self, first: int) -> Chunk:
        """The chunk that begins at step ``first``."""
        rows = self._rows_of(first)
        assert rows is not None
        wants_next = getattr(self.rows, "keep", True) is False
        coming = self._rows_of(first + self.chunk_size) if wants_next else None
        V, positions = self.source.chunk(rows, coming)
        count, device = len(rows), self.device
        spare = -count % BLOCK
        padded = torch.cat([positions, positions[:1].expand(spare)]) if spare else positions
        real = torch_type(self.rows.dtype)
        target = np.ascontiguousarray(np.pad(self.targets.block(rows), ((0, 0), (0, spare))))
        weight = np.ones(count) if self.weight is None else self.weight[rows]
        weight = np.pad(weight.astype(np.float64), (0, spare), constant_values=-1.0)
        return Chunk(
            first,
            count,
            V,
            padded,
            gram_blocks(V, padded, BLOCK),
            torch.from_numpy(target).to(device).to(real),
            torch.from_numpy(weight).to(device),
            torch.from_numpy(np.ascontiguousarray(rows)).to(device),
            torch.zeros(target.shape, dtype=real, device=device),
        )
