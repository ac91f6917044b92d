"""Rows of any source as a file of numbers: Parquet or .npy, a block at a time."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from asset_svm.data.source import RowSource
from asset_svm.data.tables import need_pyarrow
from asset_svm.exceptions import DataError
from asset_svm.storage.atomic import replacing

Told = Callable[[int], Any]


def write_rows(source: RowSource, path: str | Path, *, told: Told | None = None) -> int:
    """Write the rows of a source to a file that is whole or absent, in constant memory.

    Parameters
    ----------
    source : RowSource
        Dense rows with one target each; of .npy it must know how many there are.
    path : path
        By its extension .parquet, with a column y of the targets after those of the features, or .npy,
        a matrix of float32 whose last column has them.
    told : callable, optional
        Called with the number of rows that are written so far.

    Returns
    -------
    n_rows : int
    """
    kind = Path(path).suffix.lower()
    if kind not in WRITERS:
        raise ValueError(f"{path}: rows are written as {' or '.join(WRITERS)}, by the extension.")
    with replacing(path) as file:
        return WRITERS[kind](source, file, told or (lambda n_rows: None))


def _write_parquet(source: RowSource, file: BinaryIO, told: Told) -> int:
    need_pyarrow("Writing Parquet")
    import pyarrow as pa
    import pyarrow.parquet as pq

    done, writer = 0, None
    try:
        with closing(source.blocks()) as blocks:  # type: ignore[type-var]
            for block in blocks:
                names = source.feature_names or [f"x{j}" for j in range(block.X.shape[1])]
                columns = [np.ascontiguousarray(column) for column in block.X.T]
                table = pa.table([*columns, np.asarray(block.y)], names=[*names, "y"])
                if writer is None:
                    # Numbers like these do not get smaller, and plain ones are read faster.
                    writer = pq.ParquetWriter(
                        file, table.schema, compression="none", use_dictionary=False
                    )
                writer.write_table(table)
                done += len(block)
                told(done)
    finally:
        if writer is not None:
            writer.close()
    return done


def _write_npy(source: RowSource, file: BinaryIO, told: Told) -> int:
    if source.n_rows is None or source.n_features is None:
        raise DataError(f"{source.name} does not know its rows; write it as Parquet.")
    shape = (source.n_rows, source.n_features + 1)
    header = {"descr": "<f4", "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(file, header)
    done = 0
    with closing(source.blocks()) as blocks:  # type: ignore[type-var]
        for block in blocks:
            rows = np.column_stack([block.X, np.asarray(block.y)]).astype("<f4")
            file.write(rows.data)
            done += len(block)
            told(done)
    return done


WRITERS: dict[str, Callable[[RowSource, BinaryIO, Told], int]] = {
    ".parquet": _write_parquet,
    ".npy": _write_npy,
}
