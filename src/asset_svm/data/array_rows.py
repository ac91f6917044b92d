"""Rows of arrays, in memory or mapped from a file."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from asset_svm.arrays import Array, Matrix
from asset_svm.data.pages import give_back
from asset_svm.data.several_targets import beside
from asset_svm.data.source import SEGMENT_BYTES, Block, RowSource, check_targets
from asset_svm.data.text_targets import TextTargets
from asset_svm.exceptions import DataError

KEPT_PAGES = 2 << 20
"""Bytes of rows after which the pages of a mapped file are given back: they count as memory."""


class ArrayRows(RowSource):
    """Rows of arrays in memory or memory-mapped, dense or CSR.

    Parameters
    ----------
    X : matrix of shape (m, n)
    y : array of shape (m,) or (m, outputs), optional
    name : str
    dtype : dtype
        Of the rows that come out.
    """

    def __init__(
        self,
        X: Matrix,
        y: Array | None,
        *,
        name: str = "the array",
        dtype: npt.DTypeLike = np.float32,
        feature_names: tuple[str, ...] | None = None,
        files: tuple[Path, ...] = (),
    ):
        if y is not None and len(y) != X.shape[0]:
            raise DataError(f"{name} has {X.shape[0]} rows and {len(y)} targets.")
        self.X, self.y, self.name, self.dtype = X, y, name, np.dtype(dtype)
        self.n_rows, self.n_features = X.shape
        self.feature_names, self.files = feature_names, files
        m, n = X.shape
        row_bytes = n * self.dtype.itemsize
        if sp.issparse(X):
            row_bytes = int(X.indptr[-1]) * (self.dtype.itemsize + 4) // max(m, 1)
        self.step = max(1, SEGMENT_BYTES // max(row_bytes, 1))
        self.n_segments = -(-m // self.step)

    def _read(self, order: Array | None) -> Iterator[Block]:
        step, passed, texts = self.step, 0, TextTargets()
        wide: list[TextTargets] = []
        segments = range(self.n_segments or 0) if order is None else order.tolist()
        for start in (segment * step for segment in segments):
            if passed > KEPT_PAGES:
                passed = 0
                give_back(*self._arrays())
            part = self._features(self.X[start : start + step])
            if sp.issparse(part):
                X: Matrix = part.astype(self.dtype)
                values: Array = X.data
            else:
                with np.errstate(over="ignore", invalid="ignore"):  # told below
                    X = values = np.ascontiguousarray(part, dtype=self.dtype)
            if not np.isfinite(values).all():
                raise DataError(self._where(start, part))
            y = None
            if self.y is not None:
                y, place = np.asarray(self.y[start : start + step]), partial(self._target_place, start)
                if y.ndim == 2 and y.dtype.kind == "U":
                    wide = wide or [TextTargets() for _ in range(y.shape[1])]
                    y = beside([each(own, place) for each, own in zip(wide, y.T, strict=True)])
                elif y.dtype.kind == "U":
                    y = texts(y, place)
                check_targets(y, place)
            block = Block(X, y)
            passed += block.n_bytes
            yield block
        give_back(*self._arrays())

    def _features(self, part: Matrix) -> Matrix:
        """The columns of some rows that are features."""
        return part

    def _column(self, feature: int) -> int:
        """The place of a feature in a row of the file."""
        return feature

    def _arrays(self) -> list[Any]:
        """The arrays that the rows are made of."""
        X = self.X
        return [*((X.data, X.indices, X.indptr) if sp.issparse(X) else (X,)), self.y]

    def _target_place(self, start: int, i: int) -> str:
        return f"{self.name}, row {start + i} (counted from 0), target"

    def _where(self, start: int, part: Matrix) -> str:
        dense = part.toarray() if sp.issparse(part) else np.asarray(part)
        with np.errstate(over="ignore", invalid="ignore"):
            row, feature = np.argwhere(~np.isfinite(dense.astype(self.dtype)))[0].tolist()
        value = dense[row, feature].item()
        return (
            f"{self.name}, row {start + row}, column {self._column(feature)}: {value} is not a finite "
            f"{self.dtype} number (rows and columns counted from 0)."
        )
