"""Rows that are sorted into bundles on the disk: what does not fit in memory comes back in parts.

All bundles are in one temporary file that has no name: nothing of it is left when the process ends, in
whatever way. A window of rows is written in one piece, sorted by bundle, so that writing is sequential,
and a bundle comes back in the order in which its rows came.
"""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from asset_svm.arrays import Array, Matrix
from asset_svm.memory import in_gigabytes


@dataclass(frozen=True, eq=False)
class _Window:
    """Where the rows of a window are.

    Parameters
    ----------
    starts : array of shape (bundles + 1,)
        The first row of each bundle in the window.
    entries : array of shape (bundles + 1,), optional
        The first entry of each bundle, where rows are sparse.
    at : tuple of int
        Where the cells, the targets, and the parts of X begin in the file.
    """

    starts: Array
    entries: Array | None
    at: tuple[int, ...]


class Bundles:
    """Rows, their targets and their cells, by bundle.

    Parameters
    ----------
    folder : path
        Where the temporary file is.
    count : int
        Of bundles.
    """

    def __init__(self, folder: str | Path, count: int):
        self.folder, self.count = Path(folder), count
        with self._told():
            self.file: Any = tempfile.TemporaryFile(dir=self.folder, buffering=0)  # noqa: SIM115
        self.windows: list[_Window] = []
        self.sizes = np.zeros(count, dtype=np.int64)
        self.size = 0

    def close(self) -> None:
        """Give back what the rows take on the disk."""
        self.file.close()

    def add(self, X: Matrix, y: Array, cells: Array, bundle: Array) -> None:
        """Take rows, the bundle of each of which is known."""
        order = np.argsort(bundle, kind="stable")
        starts = np.concatenate([[0], np.cumsum(np.bincount(bundle, minlength=self.count))])
        X, self.kind = X[order], X[:0]
        y = y[order]
        self.targets = y[:0]
        parts: list[Array] = [cells[order].astype(np.int32), y]
        entries = None
        if sp.issparse(X):
            lengths = np.diff(X.indptr).astype(np.int64)
            entries = X.indptr[starts].astype(np.int64)
            parts += [lengths, X.indices.astype(np.int32, copy=False), X.data]
        else:
            parts.append(X)
        at = []
        for part in parts:
            at.append(self.size)
            self._write(np.ascontiguousarray(part))
        self.windows.append(_Window(starts, entries, tuple(at)))
        self.sizes += np.diff(starts)

    def read(self, bundle: int) -> tuple[Matrix, Array, Array]:
        """The rows of a bundle, their targets and their cells."""
        m = int(self.sizes[bundle])
        here = [w for w in self.windows if w.starts[bundle + 1] > w.starts[bundle]]
        spans = [(int(w.starts[bundle]), int(w.starts[bundle + 1])) for w in here]
        cells, y = (
            np.empty(m, dtype=np.int32),
            np.empty((m, *self.targets.shape[1:]), self.targets.dtype),
        )
        self._fill(cells, spans, [w.at[0] for w in here])
        self._fill(y, spans, [w.at[1] for w in here])
        n = self.kind.shape[1]
        if not sp.issparse(self.kind):
            X = np.empty((m, n), dtype=self.kind.dtype)
            self._fill(X, spans, [w.at[2] for w in here])
            return X, y, cells
        lengths = np.empty(m, dtype=np.int64)
        self._fill(lengths, spans, [w.at[2] for w in here])
        inside = [
            (int(w.entries[bundle]), int(w.entries[bundle + 1])) for w in here if w.entries is not None
        ]
        indptr = np.concatenate([[0], np.cumsum(lengths)])
        indices, data = np.empty(indptr[-1], dtype=np.int32), np.empty(indptr[-1], self.kind.dtype)
        self._fill(indices, inside, [w.at[3] for w in here])
        self._fill(data, inside, [w.at[4] for w in here])
        made = type(self.kind)((data, indices, indptr.astype(np.int32)), shape=(m, n))
        return made, y, cells

    def read_each(self, bundles: list[int]) -> Iterator[tuple[int, Matrix, Array, Array]]:
        """These bundles with their numbers, one after the other."""
        for bundle in bundles:
            yield bundle, *self.read(bundle)

    def _fill(self, out: Array, spans: list[tuple[int, int]], at: list[int]) -> None:
        """Read the entries [start, stop) of the arrays that begin at these places."""
        bytes_each = out.itemsize * int(np.prod(out.shape[1:], dtype=np.int64))
        view, done = out.reshape(-1).view(np.uint8).data, 0
        for (start, stop), place in zip(spans, at, strict=True):
            size = (stop - start) * bytes_each
            self.file.seek(place + start * bytes_each)
            end = done + size
            while done < end:
                got = self.file.readinto(view[done:end])
                if not got:
                    raise OSError(errno.EIO, "a temporary file was cut short", str(self.folder))
                done += got

    def _write(self, part: Array) -> None:
        view = part.reshape(-1).view(np.uint8).data
        with self._told():
            done = 0
            while done < len(view):
                done += self.file.write(view[done : done + (1 << 30)])
        self.size += len(view)

    @contextmanager
    def _told(self) -> Iterator[None]:
        """Errors of the system inside are about the folder."""
        try:
            yield
        except OSError as error:
            error.filename, error.filename2 = f"{self.folder} (temporary rows of cells)", None
            raise


def row_bytes(X: Matrix, y: Array) -> float:
    """The bytes on the disk of one of rows like these."""
    size = sum(part.nbytes for part in ((X.data, X.indices) if sp.issparse(X) else (X,)))
    return (size + y.nbytes) / max(X.shape[0], 1) + 4 + 8 * sp.issparse(X)


def require_space(needed: float, folder: str | Path) -> None:
    """Raise unless so many bytes are free where temporary files go."""
    free = shutil.disk_usage(folder).free
    if needed > free:
        raise OSError(
            f"Rows sorted by cells take {in_gigabytes(needed)} of temporary files, and "
            f"{in_gigabytes(free)} are free in {os.fspath(folder)}; name another folder "
            "(temp_dir=, --temp-dir), or make room."
        )


def cut_into(sizes: Array, most: float) -> Array:
    """The bundle of each cell: neighbours together, while their sizes add up to at most ``most``."""
    of, number, filled = np.zeros(len(sizes), dtype=np.int32), 0, 0.0
    for cell, size in enumerate(sizes.tolist()):
        if filled > 0.0 and filled + size > most:
            number, filled = number + 1, 0.0
        of[cell], filled = number, filled + size
    return of
