"""Rows of X on the card, wherever they lie: on the card, in memory, in a memory-mapped file, in CSR.

Rows from the host go through two pinned buffers: threads gather the next chunk into one while the
copy engine sends the other and the card computes, so that only the slower of the three is waited for.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from asset_svm.arrays import Array
from asset_svm.backends.cuda.maps import to_card
from asset_svm.backends.cuda.memory import in_chunks

RowNumbers = Array | slice
GATHERERS = 8
"""Threads that copy rows into pinned memory: one alone is slower than the bus."""


class RowFeeder:
    """Chunks of the rows of X, in ``dtype``, on the card.

    Parameters
    ----------
    X : tensor on the card, array, memory map or CSR matrix of shape (m, n)
    """

    def __init__(self, X: Any, dtype: torch.dtype, device: torch.device):
        self.X, self.dtype, self.device = X, dtype, device
        self._direct = isinstance(X, torch.Tensor) or sp.issparse(X) or device.type != "cuda"
        self._awaited: tuple[Any, Future[tuple[Tensor, Any]]] | None = None
        self._buffers: list[Tensor | None] = [None, None]
        self._sent: list[Any] = [None, None]
        self._turn = 0
        if not self._direct:
            self._stream = torch.cuda.Stream(device)
            self._caller = ThreadPoolExecutor(1)
            self._gatherers = ThreadPoolExecutor(GATHERERS)

    def close(self) -> None:
        """End the threads that gather rows."""
        if not self._direct:
            self._caller.shutdown()
            self._gatherers.shutdown()

    def take(self, rows: RowNumbers, coming: RowNumbers | None = None) -> Tensor:
        """Return these rows; ``coming`` ones are sent for while the card works on these."""
        if self._direct:
            return self._take_directly(rows)
        future = self._send_for(rows)
        self._awaited = None
        chunk, event = future.result()
        stream = torch.cuda.current_stream(self.device)
        stream.wait_event(event)
        chunk.record_stream(stream)
        if coming is not None:
            self._awaited = (coming, self._send_for(coming))
        return chunk

    def over_all(self, size: int, work: Callable[[slice, Tensor], None]) -> int:
        """work(where, rows) of all rows, so many at a time, those that follow under way.

        Returns the size that memory allowed (``in_chunks``).
        """
        m = self.X.shape[0]

        def take(start: int, stop: int) -> None:
            coming = slice(stop, min(2 * stop - start, m))
            rows = self.take(slice(start, stop), coming if coming.start < coming.stop else None)
            work(slice(start, stop), rows)

        return in_chunks(m, size, take)

    def _take_directly(self, rows: RowNumbers) -> Tensor:
        X = self.X
        if isinstance(X, torch.Tensor):
            if isinstance(rows, slice):
                return X[rows].to(self.device, self.dtype)
            index = torch.from_numpy(np.ascontiguousarray(rows)).to(X.device)
            return X[index].to(self.device, self.dtype)
        return to_card(X[rows], self.device, self.dtype)

    def _send_for(self, rows: RowNumbers) -> Future[tuple[Tensor, Any]]:
        if self._awaited is not None and _same(self._awaited[0], rows):
            return self._awaited[1]
        return self._caller.submit(self._send, rows)

    def _send(self, rows: RowNumbers) -> tuple[Tensor, Any]:
        """Gather into the pinned buffer whose turn it is, and start the copy."""
        n = self.X.shape[1]
        numbers = np.arange(rows.start, rows.stop) if isinstance(rows, slice) else rows
        count, first = len(numbers), _first_of_run(numbers)
        turn, self._turn = self._turn, 1 - self._turn
        buffer = self._buffers[turn]
        if self._sent[turn] is not None:
            self._sent[turn].synchronize()
        if buffer is None or len(buffer) < count:
            buffer = self._buffers[turn] = torch.empty((count, n), dtype=self.dtype, pin_memory=True)
        host = buffer.numpy()

        def gather(start: int, stop: int) -> None:
            if first is not None:
                np.copyto(host[start:stop], self.X[first + start : first + stop])
            else:
                np.take(self.X, numbers[start:stop], axis=0, out=host[start:stop], mode="clip")

        step = -(-count // GATHERERS)
        parts = [(start, min(start + step, count)) for start in range(0, count, step)]
        list(self._gatherers.map(lambda part: gather(*part), parts))
        with torch.cuda.stream(self._stream):
            chunk = buffer[:count].to(self.device, non_blocking=True)
            event = torch.cuda.Event()
            event.record(self._stream)
        self._sent[turn] = event
        return chunk, event


def _first_of_run(rows: Array) -> int | None:
    """The first of consecutive rows; None where they are not."""
    if len(rows) and rows[-1] - rows[0] == len(rows) - 1 and bool((np.diff(rows) == 1).all()):
        return int(rows[0])
    return None


def _same(one: RowNumbers, other: RowNumbers) -> bool:
    if isinstance(one, slice) or isinstance(other, slice):
        return isinstance(one, slice) and isinstance(other, slice) and one == other
    return one is other or np.array_equal(one, other)
